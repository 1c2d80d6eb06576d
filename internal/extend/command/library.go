package command

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// If programs are not traced, their libraries are found as by the dynamic loader of Linux (ld.so(8)): by the names in a binary (DT_NEEDED),
// in the folders that it names (DT_RPATH, DT_RUNPATH), those of LD_LIBRARY_PATH, the loader's cache and the usual ones. Libraries that a
// program opens while it runs (dlopen), and those that an interpreter loads for a script, are not found.

const (
	maxLibraries = 1000     // of one program
	maxCache     = 64 << 20 // of the loader's cache, in bytes
	loaderCache  = "/etc/ld.so.cache"
	preloaded    = "/etc/ld.so.preload"
)

// linked caches the libraries of programs: finding them takes 1 ms, checking that they are unchanged 10 µs.
type linked struct {
	mu sync.Mutex
	of map[string][]seal.Access // by program
}

// files returns the program's loaders and libraries, the places where libraries were not found, and the entries of the
// loader's cache for them.
func (l *linked) files(program, path string) []seal.Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := program + "\x00" + path
	found := l.of[key]
	if found == nil || slices.ContainsFunc(found, func(a seal.Access) bool { return seal.StateOf(a.Path) != a.State }) {
		s := search{path: filepath.SplitList(path), seen: map[string]bool{}}
		s.see(loaderCache) // if it changes, other libraries may be found
		s.program(program)
		found = s.files
		if l.of == nil {
			l.of = map[string][]seal.Access{}
		}
		l.of[key] = found
	}
	return found[1:]
}

// recordLinked records the libraries of programs that are not traced.
func (p *proc) recordLinked(job processor.Job, tools []string) error {
	if runtime.GOOS != "linux" || p.config.Reads == Traced {
		return nil
	}
	var path string
	if slices.Contains(p.config.Env, libraryPath) {
		path, _ = job.Env(libraryPath)
	}
	done := map[string]bool{"": true}
	for _, tool := range tools {
		for _, a := range p.linked.files(tool, path) {
			for _, name := range []string{a.Path, inCache(a.Path)} {
				if done[name] {
					continue
				}
				done[name] = true
				if _, err := job.Tool(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

// inCache is the recorded name of a library's entry in the loader's cache, or "".
func inCache(library string) string {
	name := filepath.Base(library)
	if strings.HasPrefix(name, "ld.so.") || !strings.HasSuffix(name, ".so") && !strings.Contains(name, ".so.") {
		return ""
	}
	return loaderCache + ":" + name
}

const libraryPath = "LD_LIBRARY_PATH"

// search finds the libraries of a binary in the loader's order: first those of the program, then those of its libraries.
type search struct {
	path  []string        // LD_LIBRARY_PATH
	usual []string        // the loader's default folders
	seen  map[string]bool // paths, and names with their architecture
	files []seal.Access
	next  []needer // to be searched
}

// needer is a program or a library; folders are those of DT_RPATH of the binaries that need it.
type needer struct {
	file    string
	folders []string
}

// see records a file, or that it is missing, and reports whether it exists and is new.
func (s *search) see(file string) bool {
	if s.seen[file] || len(s.files) > maxLibraries {
		return false
	}
	s.seen[file] = true
	a := lookAt(file, seal.Read)
	s.files = append(s.files, a)
	return a.State.Exists && !a.State.Dir
}

// program handles a program, which the job has recorded, and those that the kernel starts for it. Libraries of
// ld.so.preload come before all others.
func (s *search) program(file string) {
	if s.see(preloaded) {
		text, _ := os.ReadFile(preloaded)
		for _, file := range strings.FieldsFunc(string(text), func(r rune) bool { return r == ':' || unicode.IsSpace(r) }) {
			if filepath.IsAbs(file) && s.see(file) {
				s.next = append(s.next, needer{file: file})
			}
		}
	}
	for _, file := range append([]string{file}, s.before(file)...) {
		s.usual = usualFolders(loader(file))
		s.next = append([]needer{{file: file}}, s.next...)
		for len(s.next) > 0 {
			b := s.next[0]
			s.next = s.next[1:]
			s.needs(b)
		}
	}
}

func (s *search) before(file string) (all []string) {
	for _, a := range loaders(file) {
		if s.see(a.Path) {
			all = append(all, a.Path)
		}
	}
	return all
}

// needs finds the libraries of a binary.
func (s *search) needs(b needer) {
	f, err := elf.Open(b.file)
	if err != nil {
		return // a script, or another file that the loader does not accept
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil || len(needed) == 0 {
		return
	}
	own, folders := s.expand(f, elf.DT_RUNPATH, b.file), b.folders
	if len(own) == 0 {
		folders = append(s.expand(f, elf.DT_RPATH, b.file), folders...)
	}
	first := slices.Concat(s.path, own)
	if len(own) == 0 {
		first = slices.Concat(folders, s.path)
	}
	of := f.Machine.String() + f.Class.String() + "\x00"
	for _, name := range needed {
		key := of + name // a library of this name is loaded once
		if s.seen[key] {
			continue
		}
		s.seen[key] = true
		for _, found := range s.find(name, first, f) {
			if s.see(found) {
				s.seen[of+soname(found)] = true // binaries that need it by this name use it
				s.next = append(s.next, needer{found, folders})
			}
		}
	}
}

// soname is the name that a library gives itself.
func soname(file string) string {
	f, err := elf.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	names, _ := f.DynString(elf.DT_SONAME)
	return strings.Join(names, "")
}

// find finds a library. If there are several of this name for better processors, it returns all of them.
func (s *search) find(name string, first []string, of *elf.File) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	for _, folder := range first {
		if found := s.in(folder, name, of); len(found) > 0 {
			return found
		}
	}
	var found []string
	for _, c := range CachedPaths(loaderCache, name) {
		if suits(c, of) {
			if found = append(found, c); !strings.Contains(c, "/glibc-hwcaps/") {
				return found
			}
		}
	}
	for _, folder := range s.usual {
		if more := s.in(folder, name, of); len(more) > 0 {
			return append(found, more...)
		}
	}
	return found
}

// in finds a library in a folder, and below it those for better processors. If there is none, it records that, because
// a file that appears there would be used.
func (s *search) in(folder, name string, of *elf.File) (found []string) {
	if !filepath.IsAbs(folder) {
		return nil // below the folder where the program runs, which is empty
	}
	better, _ := filepath.Glob(filepath.Join(processor.QuoteGlob(folder), "glibc-hwcaps", "*"))
	for _, at := range better {
		if file := filepath.Join(at, name); suits(file, of) {
			found = append(found, file)
		} else {
			s.see(file)
		}
	}
	if len(better) == 0 {
		s.see(filepath.Join(folder, "glibc-hwcaps"))
	}
	if file := filepath.Join(folder, name); suits(file, of) {
		found = append(found, file)
	} else {
		s.see(file)
	}
	return found
}

// usualFolders are the folders that the loader searches last. glibc has them in pairs, below / and /usr: the folder of
// the loader itself (lib64, or lib/x86_64-linux-gnu on Debian), and lib. /usr/local/lib is musl's.
func usualFolders(loader string) (folders []string) {
	if real, err := filepath.EvalSymlinks(loader); err == nil && loader != "" {
		of := strings.TrimPrefix(filepath.Dir(real), "/usr")
		folders = append(folders, of, "/usr"+of)
	}
	for _, folder := range []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"} {
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// suits reports whether a file is a library for the same processor.
func suits(file string, of *elf.File) bool {
	f, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Class == of.Class && f.Machine == of.Machine
}

// expand returns the folders in DT_RPATH or DT_RUNPATH as absolute paths; $ORIGIN is the binary's own folder, $LIB the
// name of the loader's.
func (s *search) expand(f *elf.File, tag elf.DynTag, file string) (folders []string) {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	words := strings.NewReplacer("$ORIGIN", filepath.Dir(file), "${ORIGIN}", filepath.Dir(file), "$LIB", s.usual[0][1:], "${LIB}", s.usual[0][1:],
		"$PLATFORM", platforms[f.Machine], "${PLATFORM}", platforms[f.Machine])
	lists, _ := f.DynString(tag)
	for _, list := range lists {
		for _, folder := range strings.Split(list, ":") {
			if folder = words.Replace(folder); filepath.IsAbs(folder) {
				folders = append(folders, filepath.Clean(folder))
			}
		}
	}
	return folders
}

// platforms are the kernel's names of processors.
var platforms = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// CachedLibrary splits the recorded name of an entry in the loader's cache: /etc/ld.so.cache:libc.so.6. The whole file
// is not recorded, because every installation of a package rewrites it, and few of its entries matter to a program.
func CachedLibrary(path string) (cache, name string, ok bool) {
	i := strings.LastIndexByte(path, ':')
	if i < 0 || filepath.Base(path[:i]) != filepath.Base(loaderCache) || !filepath.IsAbs(path) {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// CachedPaths are the libraries of a name in a loader's cache, best first.
func CachedPaths(cache, name string) []string {
	lastCache.mu.Lock()
	defer lastCache.mu.Unlock()
	if now := seal.StateOf(cache); lastCache.paths == nil || lastCache.file != cache || lastCache.state != now {
		lastCache.file, lastCache.state, lastCache.paths = cache, now, readLoaderCache(cache)
	}
	return lastCache.paths[name]
}

var lastCache struct {
	mu    sync.Mutex // guards all fields below
	file  string
	state seal.State
	paths map[string][]string
}

func readLoaderCache(file string) map[string][]string {
	f, err := os.Open(file)
	if err != nil {
		return map[string][]string{}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCache+1))
	if err != nil || len(data) > maxCache {
		return map[string][]string{}
	}
	return parseLoaderCache(data)
}

// parseLoaderCache returns the paths in glibc's cache by name, best first. Its format since glibc 2.2, in the byte
// order of the machine (glibc, sysdeps/generic/dl-cache.h):
//
//	magic    20 bytes "glibc-ld.so.cache1.1"
//	count    u32      of entries
//	strings  u32      size of the strings in bytes
//	         20 bytes
//	entries  24 bytes each: flags u32, name u32, path u32 (from the magic on), 12 bytes
//
// An older cache may precede it.
func parseLoaderCache(data []byte) map[string][]string {
	const magic, head, size = "glibc-ld.so.cache1.1", 48, 24
	paths := map[string][]string{}
	at := bytes.Index(data, []byte(magic))
	if at < 0 || len(data)-at < head {
		return paths
	}
	data = data[at:]
	count := uint64(binary.NativeEndian.Uint32(data[20:]))
	if count > uint64(len(data)-head)/size {
		return paths
	}
	text := func(at uint32) string {
		if uint64(at) >= uint64(len(data)) {
			return ""
		}
		s := data[at:]
		n := bytes.IndexByte(s[:min(len(s), 4<<10)], 0)
		return string(s[:max(n, 0)])
	}
	for e := data[head : head+count*size]; len(e) > 0; e = e[size:] {
		name, path := text(binary.NativeEndian.Uint32(e[4:])), text(binary.NativeEndian.Uint32(e[8:]))
		if name != "" && filepath.IsAbs(path) {
			paths[name] = append(paths[name], path)
		}
	}
	return paths
}
