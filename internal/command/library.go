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

	"github.com/kiln-pipeline/kiln/internal/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// Where programs are not watched, the libraries that they are linked with are found as the dynamic loader of Linux finds them (ld.so(8)): by
// the names in a binary (DT_NEEDED), in the folders that it names (DT_RPATH, DT_RUNPATH), those of LD_LIBRARY_PATH, the loader's cache
// and the usual ones. What a program opens by itself while it runs (dlopen), and what a script's interpreter is told to load, nobody knows.

const (
	maxLibraries = 1000     // of one program
	maxCache     = 64 << 20 // of the loader's cache, in bytes
	loaderCache  = "/etc/ld.so.cache"
)

// linked remembers the libraries of programs: finding them takes 1 ms, and looking whether they are still the same ones 10 µs.
type linked struct {
	mu sync.Mutex
	of map[string][]seal.Access // by program
}

// files are the program's loaders and libraries, and where libraries were looked for in vain.
func (l *linked) files(program, path string) []seal.Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := program + "\x00" + path
	found := l.of[key]
	if found == nil || slices.ContainsFunc(found, func(a seal.Access) bool { return seal.StateOf(a.Path) != a.State }) {
		s := search{path: filepath.SplitList(path), seen: map[string]bool{}}
		s.see(loaderCache) // whether it changed says that others may be found
		s.program(program)
		found = s.files
		if l.of == nil {
			l.of = map[string][]seal.Access{}
		}
		l.of[key] = found
	}
	return found[1:]
}

// recordLinked tells the job what programs are linked with that nobody watches.
func (p *proc) recordLinked(job processor.Job, tools []string) error {
	if runtime.GOOS != "linux" || p.config.Reads == Traced {
		return nil
	}
	var path string
	if slices.Contains(p.config.Env, libraryPath) {
		path, _ = job.Env(libraryPath)
	}
	for _, tool := range tools {
		for _, a := range p.linked.files(tool, path) {
			if _, err := job.Tool(a.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

const libraryPath = "LD_LIBRARY_PATH"

// search goes from a binary to its libraries.
type search struct {
	path  []string // LD_LIBRARY_PATH
	cache map[string][]string
	seen  map[string]bool // paths, and names with their architecture
	files []seal.Access
}

// see notes a file, or that it is missing, and tells whether it is there and new.
func (s *search) see(file string) bool {
	if s.seen[file] || len(s.files) > maxLibraries {
		return false
	}
	s.seen[file] = true
	a := seal.Access{Path: file, Op: seal.Read, State: seal.StateOf(file)}
	s.files = append(s.files, a)
	return a.State.Exists && !a.State.Dir
}

// program looks at one, which the job has recorded, and at those that the kernel puts before it.
func (s *search) program(file string) {
	s.binary(file, nil)
	for _, a := range loaders(file) {
		if s.see(a.Path) {
			s.binary(a.Path, nil)
		}
	}
}

// binary looks for what a binary needs. Folders are those of DT_RPATH of the binaries that need it.
func (s *search) binary(file string, folders []string) {
	f, err := elf.Open(file)
	if err != nil {
		return // a script, or nothing that the loader would take
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil || len(needed) == 0 {
		return
	}
	own := expandOrigin(f, elf.DT_RUNPATH, file)
	if len(own) == 0 {
		folders = append(expandOrigin(f, elf.DT_RPATH, file), folders...)
	}
	first := slices.Concat(s.path, own)
	if len(own) == 0 {
		first = slices.Concat(folders, s.path)
	}
	for _, name := range needed {
		key := f.Machine.String() + f.Class.String() + "\x00" + name // one of that name is loaded once
		if s.seen[key] {
			continue
		}
		s.seen[key] = true
		for _, found := range s.find(name, first, f) {
			if s.see(found) {
				s.binary(found, folders)
			}
		}
	}
}

// find finds a library. The cache may have several of a name for better processors; all of them are taken.
func (s *search) find(name string, first []string, of *elf.File) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	for _, folder := range first {
		file := filepath.Join(folder, name)
		if suits(file, of) {
			return []string{file}
		}
		if filepath.IsAbs(file) {
			s.see(file) // if one turns up there, it is taken
		}
	}
	if s.cache == nil {
		s.cache = readLoaderCache()
	}
	found := slices.DeleteFunc(slices.Clone(s.cache[name]), func(file string) bool { return !suits(file, of) })
	if len(found) > 0 {
		return found
	}
	for _, folder := range []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"} { // the last one is musl's
		if file := filepath.Join(folder, name); suits(file, of) {
			return []string{file}
		}
	}
	return nil
}

// suits tells whether a file is a library for the same processor.
func suits(file string, of *elf.File) bool {
	f, err := elf.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Class == of.Class && f.Machine == of.Machine
}

// expandOrigin is the folders in DT_RPATH or DT_RUNPATH, as absolute paths; $ORIGIN is the binary's own.
func expandOrigin(f *elf.File, tag elf.DynTag, file string) (folders []string) {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	lists, _ := f.DynString(tag)
	for _, list := range lists {
		for _, folder := range strings.Split(list, ":") {
			folder = strings.NewReplacer("$ORIGIN", filepath.Dir(file), "${ORIGIN}", filepath.Dir(file)).Replace(folder)
			if filepath.IsAbs(folder) {
				folders = append(folders, filepath.Clean(folder))
			}
		}
	}
	return folders
}

func readLoaderCache() map[string][]string {
	f, err := os.Open(loaderCache)
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

// parseLoaderCache lists the paths in glibc's cache by name, best first. Its format since glibc 2.2, in the byte order of the machine
// (glibc, sysdeps/generic/dl-cache.h):
//
//	magic    20 bytes "glibc-ld.so.cache1.1"
//	count    u32      of entries
//	strings  u32      size of the strings in bytes
//	         20 bytes
//	entries  24 bytes each: flags u32, name u32, path u32 (from the magic on), 12 bytes
//
// An older cache may stand before it.
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
