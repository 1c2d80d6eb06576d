package source

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// model is what a table should hold, found by walking and reading everything.
type model struct {
	files   map[string]seenFile // by root and path: "0:a/b"
	folders map[string]bool
}

type seenFile struct {
	trouble Trouble
	hash    digest.Hash // of files that can be read
}

func (m model) equal(o model) bool {
	return maps.Equal(m.files, o.files) && maps.Equal(m.folders, o.folders)
}

// hidden tells whether some root has a folder of a file's path.
func (m model) hidden(file string) bool {
	for k := range m.folders {
		if _, folder, _ := strings.Cut(k, ":"); folder == file {
			return true
		}
	}
	return false
}

func (m model) String() string {
	var l []string
	for p, f := range m.files {
		l = append(l, fmt.Sprintf("%q trouble %d %s", p, f.trouble, f.hash.Short()))
	}
	for p := range m.folders {
		l = append(l, fmt.Sprintf("%q/", p))
	}
	sort.Strings(l)
	return strings.Join(l, "\n")
}

// walkAll makes the model from the disk.
func walkAll(t *testing.T, o Options) model {
	m := model{map[string]seenFile{}, map[string]bool{}}
	for i, r := range o.Roots {
		ignore := parsePatterns(strings.Join(append(slices.Clone(builtinIgnore), o.Ignore...), "\n"), "")
		w := walker{t, o, m, i}
		w.folder("", r, nil, ignore)
	}
	return m
}

type walker struct {
	t    *testing.T
	o    Options
	m    model
	root int
}

func (w walker) put(rel string, trouble Trouble) {
	f := seenFile{trouble: trouble}
	if trouble == Fine || trouble == LFSPointer || trouble == Linked || trouble == IgnoreList {
		data, err := os.ReadFile(filepath.Join(w.o.Roots[w.root], rel))
		if err != nil {
			w.t.Fatal(err)
		}
		if f.hash = digest.Of(data); trouble == IgnoreList {
			f.hash = digest.Hash{} // is no content
		}
	}
	w.m.files[fmt.Sprintf("%d:%s", w.root, rel)] = f
}

// folder looks at a folder; way are the real paths of the folders on the way to it.
func (w walker) folder(rel, real string, way []string, ignore []pattern) {
	w.m.folders[fmt.Sprintf("%d:%s", w.root, rel)] = true
	way = append(slices.Clip(way), real)
	abs := filepath.Join(w.o.Roots[w.root], rel)
	if info, err := os.Stat(filepath.Join(abs, IgnoreFile)); err == nil && info.Mode().IsRegular() {
		if target, err := filepath.EvalSymlinks(filepath.Join(abs, IgnoreFile)); err == nil && w.inRoots(target) {
			text, _ := os.ReadFile(filepath.Join(abs, IgnoreFile))
			base := strings.TrimPrefix(rel+"/", "/")
			ignore = append(slices.Clip(ignore), parsePatterns(string(text), base)...)
		}
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		w.entry(strings.TrimPrefix(rel+"/"+e.Name(), "/"), filepath.Join(real, e.Name()), e.Type(), way, ignore)
	}
}

func (w walker) inRoots(target string) bool {
	return slices.ContainsFunc(w.o.Roots, func(r string) bool { return lies(target, r) })
}

func lies(path, folder string) bool {
	const end = string(filepath.Separator)
	return strings.HasPrefix(path+end, folder+end)
}

func (w walker) entry(rel, real string, mode fs.FileMode, way []string, ignore []pattern) {
	name, linked := filepath.Base(rel), Fine
	if !utf8.ValidString(name) {
		w.put(rel, NotUTF8)
		return
	}
	if mode == fs.ModeSymlink {
		target, err := filepath.EvalSymlinks(real)
		info, serr := os.Stat(real)
		trouble := Fine
		switch {
		case errors.Is(serr, syscall.ELOOP):
			trouble = Loop
		case err != nil || serr != nil:
			trouble = Dangling
		case !w.inRoots(target) || slices.ContainsFunc(w.o.Exclude, func(x string) bool { return lies(target, x) }):
			trouble = Escapes
		case info.IsDir() && slices.ContainsFunc(way, func(d string) bool { return lies(d, target) }):
			trouble = Loop
		}
		asFile, asFolder := ignored(ignore, rel, false), ignored(ignore, rel, true)
		isDir := trouble == Fine && info.IsDir()
		isList := name == IgnoreFile && trouble == Fine && info.Mode().IsRegular()
		passed := isDir && asFolder || !isDir && asFile || trouble == Dangling && asFolder
		if passed && !isList && (asFile != asFolder || name == IgnoreFile) {
			w.put(rel, IgnoredLink)
			return
		}
		if trouble != Fine {
			if !ignored(ignore, rel, false) && (trouble != Dangling || !ignored(ignore, rel, true)) {
				w.put(rel, trouble)
			}
			return
		}
		real, mode = target, info.Mode().Type()
		linked = Linked
		if isDir && !asFolder {
			w.put(rel, LinkedFolder)
		}
	}
	switch {
	case name == IgnoreFile && mode.IsRegular():
		w.put(rel, IgnoreList)
	case ignored(ignore, rel, mode.IsDir()):
	case mode.IsDir():
		if !slices.Contains(w.o.Exclude, real) {
			w.folder(rel, real, way, ignore)
		}
	case !mode.IsRegular():
		w.put(rel, Irregular)
	case w.litter(rel, name, real, ignore):
		w.put(rel, Litter)
	default:
		data, _ := os.ReadFile(real)
		trouble := linked
		if strings.HasPrefix(string(data), string(lfsPrefix)) && len(data) < 1024 {
			trouble = LFSPointer
		}
		w.put(rel, trouble)
	}
}

// modelOf reads a table as a model. All content is hashed.
func modelOf(t *testing.T, table *Table) model {
	t.Helper()
	m := model{map[string]seenFile{}, map[string]bool{}}
	for _, d := range table.Folders {
		m.folders[fmt.Sprintf("%d:%s", d.Root, d.Path)] = true
		for i := d.First; i < d.First+d.Count; i++ {
			f := &table.Files[i]
			s := seenFile{trouble: f.Trouble}
			if f.visible() {
				h, err := table.Hash(Index(i))
				if err != nil {
					t.Fatal(err)
				}
				s.hash = h
			}
			m.files[fmt.Sprintf("%d:%s", d.Root, join(d.Path, f.Name))] = s
		}
	}
	return m
}

// litter knows the kinds that the random tests write.
func (w walker) litter(rel, name, real string, ignore []pattern) bool {
	if decides(ignore, rel, false) != nil {
		return false
	}
	data, _ := os.ReadFile(real)
	if name == "._a" {
		return strings.HasPrefix(string(data), appleDouble[:4])
	}
	_, err := os.Lstat(filepath.Join(w.o.Roots[w.root], filepath.Dir(rel), "a"))
	return name == "a.meta" && err == nil && strings.HasPrefix(string(data), "fileFormatVersion:")
}
