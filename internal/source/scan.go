package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/kiln-pipeline/kiln/internal/digest"
)

// IgnoreFile in any folder lists patterns in .gitignore syntax.
const IgnoreFile = ".kilnignore"

// builtinIgnore is what no game content is: version control, what desktops and editors leave behind.
var builtinIgnore = []string{
	".git", ".hg", ".svn", ".DS_Store", "Thumbs.db", "desktop.ini", "*~", ".#*", ".*.sw[op]",
}

// Options of a scan.
type Options struct {
	Roots   []string // absolute, symbolic links in the roots' own paths resolved
	Ignore  []string // of the project file
	Exclude []string // absolute folders that are passed over: the output, Kiln's own
	Workers int
	Relist  bool // list all folders again: what is ignored may be other files than last time
	Hash    bool // look at the content of every file whose hash is known, whatever its stat says
}

// Change is a file whose content, presence or trouble differs from the table before.
type Change struct {
	Root int
	Path string
}

// Scan makes the table anew. prev is the table of last time under the same options, or nil: then everything is listed. Files and folders
// that are as they were keep their hashes and listings. The answer tells whether content, presence or a listing changed at all, and
// whether any stat did; where neither is so, the table is prev itself.
func Scan(prev *Table, o Options) (t *Table, contents, stats bool, err error) {
	s := &scan{o: o, prev: prev}
	for i, r := range o.Roots {
		if _, err := os.Stat(r); err != nil {
			return nil, false, false, err
		}
		if prev == nil || o.Relist {
			s.todo = append(s.todo, &folder{Folder: Folder{Root: i}})
		}
	}
	if prev != nil && !o.Relist {
		if same := s.look(); same && len(s.suspects) == 0 {
			return prev, false, false, nil
		}
	}
	s.list()
	t = s.assemble()
	contents = s.hashSuspects(t)
	return t, contents || s.listed, true, nil
}

// scan is one Scan under way.
type scan struct {
	o    Options
	prev *Table
	real []string

	kept     []*folder // as they were, but for stats
	todo     []*folder // to be listed
	mu       sync.Mutex
	listed   bool // some listing differs from before
	suspects []suspect
	ignores  map[string][]gitignore.Pattern
}

// folder is a folder under construction.
type folder struct {
	Folder
	files []File
	links []string // real paths of the folders that hold the symbolic links on the way here
}

type suspect struct {
	root int
	path string
	old  digest.Hash
	stat Stat
}

// look compares the stats of all that prev has. It fills kept and todo, and reports whether nothing at all differs.
func (s *scan) look() bool {
	p := s.prev
	out := make([]*folder, len(p.Folders))
	var same atomic.Bool
	same.Store(true)
	s.parallel(len(p.Folders), func(i int) {
		f, changed := s.lookFolder(&p.Folders[i])
		if changed {
			same.Store(false)
		}
		out[i] = f
	})
	for i, f := range out {
		switch {
		case f == nil: // as it was, stats and all
			old := &p.Folders[i]
			s.kept = append(s.kept, &folder{Folder: *old, files: p.Files[old.First : old.First+old.Count]})
		case f.Stat == Stat{}: // to be listed, if its parent still has it
		default:
			s.kept = append(s.kept, f)
		}
	}
	// A changed folder is listed from scratch, with what is below it in prev taken over by the walk.
	if !same.Load() {
		s.relist(out)
	}
	return same.Load()
}

// lookFolder stats a folder and its files. nil: all as it was. A zero Stat: the listing is not to be trusted.
func (s *scan) lookFolder(old *Folder) (*folder, bool) {
	d, err := openDir(s.abs(old.Root, old.Path))
	if err != nil {
		return &folder{Folder: Folder{Root: old.Root, Path: old.Path}}, true
	}
	defer d.close()
	st, err := d.self()
	if err != nil || old.Racy || st.MTime != old.Stat.MTime || st.Inode != old.Stat.Inode {
		return &folder{Folder: Folder{Root: old.Root, Path: old.Path}}, true
	}
	files := s.prev.Files[old.First : old.First+old.Count]
	var fresh []File // copied on the first difference
	for i := range files {
		f := &files[i]
		if !f.visible() && f.Trouble != IgnoreList {
			continue
		}
		st, mode, err := d.stat(f.Name)
		if err != nil || mode != 0 {
			return &folder{Folder: Folder{Root: old.Root, Path: old.Path}}, true
		}
		if st == f.Stat && !f.Racy && !(s.o.Hash && !f.Hash.IsZero()) {
			continue
		}
		if f.Trouble == IgnoreList {
			return &folder{Folder: Folder{Root: old.Root, Path: old.Path}}, true
		}
		if fresh == nil {
			fresh = slices.Clone(files)
		}
		s.changed(old.Root, old.Path, &fresh[i], st, d)
	}
	if fresh == nil {
		return nil, false
	}
	return &folder{Folder: *old, files: fresh}, true
}

// changed takes over a new stat; content that was known becomes suspect.
func (s *scan) changed(root int, dir string, f *File, st Stat, d dir) {
	if !f.Hash.IsZero() {
		s.mu.Lock()
		s.suspects = append(s.suspects, suspect{root, path.Join(dir, f.Name), f.Hash, st})
		s.mu.Unlock()
	} else if st.Size != f.Stat.Size || f.Trouble == LFSPointer {
		s.mu.Lock()
		s.listed = true
		s.mu.Unlock()
	}
	f.Stat, f.Hash, f.Racy = st, digest.Hash{}, false
	f.Trouble = lfs(s.abs(root, path.Join(dir, f.Name)), st.Size)
}

// relist puts folders that must be listed into todo, but only the topmost: the walk finds the rest.
func (s *scan) relist(out []*folder) {
	bad := map[[2]string]bool{}
	for i, f := range out {
		if f == nil || f.Stat != (Stat{}) {
			continue
		}
		old := &s.prev.Folders[i]
		bad[[2]string{s.o.Roots[old.Root], old.Path}] = true
		if old.Path == "" || !s.hasBadParent(bad, old) {
			s.todo = append(s.todo, &folder{Folder: Folder{Root: old.Root, Path: old.Path}, links: s.linksTo(old.Root, old.Path)})
		}
	}
	if len(bad) == 0 {
		return
	}
	s.kept = slices.DeleteFunc(s.kept, func(f *folder) bool { return s.hasBadParent(bad, &f.Folder) })
	s.listed = true
}

func (s *scan) hasBadParent(bad map[[2]string]bool, f *Folder) bool {
	for p := f.Path; p != ""; {
		p, _ = split(p)
		if bad[[2]string{s.o.Roots[f.Root], p}] {
			return true
		}
	}
	return false
}

// list lists the folders in todo and all below them, side by side.
func (s *scan) list() {
	for len(s.todo) > 0 {
		level := s.todo
		s.todo = nil
		below := make([][]*folder, len(level))
		gone := make([]bool, len(level))
		s.parallel(len(level), func(i int) {
			below[i], gone[i] = s.listFolder(level[i])
		})
		for i, f := range level {
			if !gone[i] {
				s.kept = append(s.kept, f)
			}
			s.todo = append(s.todo, below[i]...)
		}
		s.listed = true
	}
}

// listFolder lists one folder, and tells the folders in it. gone: it is no longer there.
func (s *scan) listFolder(f *folder) (below []*folder, gone bool) {
	abs := s.abs(f.Root, f.Path)
	now := time.Now()
	d, err := openDir(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, true
		}
		f.files = []File{{Name: ".", Trouble: Unreadable}}
		return nil, false
	}
	defer d.close()
	if f.Stat, err = d.self(); err != nil {
		return nil, true
	}
	f.Racy = racy(f.Stat.MTime, now)
	entries, err := d.list()
	if err != nil {
		f.files = []File{{Name: ".", Trouble: Unreadable}}
		return nil, false
	}
	ignored := s.ignored(f.Root, f.Path)
	for _, e := range entries {
		file, sub := s.entry(f, d, e, ignored)
		if sub != nil {
			below = append(below, sub)
		} else if file.Name != "" {
			f.files = append(f.files, file)
		}
	}
	sort.Slice(f.files, func(i, j int) bool { return f.files[i].Name < f.files[j].Name })
	return below, false
}

// entry is one entry of a folder: a file, a folder, or neither if it is ignored.
func (s *scan) entry(f *folder, d dir, e fs.DirEntry, ignored func(string, bool) bool) (File, *folder) {
	name, mode := e.Name(), e.Type()
	if !utf8.ValidString(name) {
		return File{Name: name, Trouble: NotUTF8}, nil
	}
	rel := path.Join(f.Path, name)
	if mode&fs.ModeSymlink == 0 && ignored(rel, mode.IsDir()) {
		return File{}, nil
	}
	sub := &folder{Folder: Folder{Root: f.Root, Path: rel}, links: f.links}
	if mode&fs.ModeSymlink != 0 {
		return s.link(sub, d, name, ignored)
	}
	switch {
	case mode.IsDir():
		if slices.Contains(s.o.Exclude, filepath.FromSlash(s.abs(f.Root, rel))) {
			return File{}, nil
		}
		return File{}, sub
	case !mode.IsRegular():
		return File{Name: name, Trouble: Irregular}, nil
	}
	st, _, err := d.stat(name)
	if err != nil {
		return File{}, nil // gone since it was listed
	}
	if name == IgnoreFile {
		return File{Name: name, Stat: st, Trouble: IgnoreList, Racy: racy(st.MTime, time.Now())}, nil
	}
	return s.file(f.Root, rel, name, st), nil
}

// file is the entry of a regular file; it keeps the hash it had if nothing changed.
func (s *scan) file(root int, rel, name string, st Stat) File {
	out := File{Name: name, Stat: st}
	if s.prev != nil {
		if i, ok := s.prev.FindIn(root, rel); ok {
			old := s.prev.At(i)
			if old.Stat == st && !old.Racy && !s.o.Hash {
				return old
			}
			if !old.Hash.IsZero() {
				s.mu.Lock()
				s.suspects = append(s.suspects, suspect{root, rel, old.Hash, st})
				s.mu.Unlock()
			}
		}
	}
	out.Trouble = lfs(s.abs(root, rel), st.Size)
	return out
}

// link follows a symbolic link, if it stays inside the roots and makes no loop.
func (s *scan) link(sub *folder, d dir, name string, ignored func(string, bool) bool) (File, *folder) {
	abs := s.abs(sub.Root, sub.Path)
	target, err := filepath.EvalSymlinks(filepath.FromSlash(abs))
	if err != nil {
		if ignored(sub.Path, false) {
			return File{}, nil
		}
		if strings.Contains(err.Error(), "too many links") {
			return File{Name: name, Trouble: Loop}, nil
		}
		return File{Name: name, Trouble: Dangling}, nil
	}
	st, mode, err := StatPath(abs)
	if err != nil {
		return File{Name: name, Trouble: Dangling}, nil
	}
	switch {
	case ignored(sub.Path, mode.IsDir()):
		return File{}, nil
	case !s.inside(target):
		return File{Name: name, Trouble: Escapes}, nil
	case mode.IsDir():
		parent, err := filepath.EvalSymlinks(filepath.FromSlash(path.Dir(abs)))
		sub.links = append(slices.Clip(sub.links), parent)
		if err != nil || slices.ContainsFunc(sub.links, func(at string) bool { return within(at, target) }) {
			return File{Name: name, Trouble: Loop}, nil
		}
		return File{}, sub
	case mode != 0:
		return File{Name: name, Trouble: Irregular}, nil
	}
	return s.file(sub.Root, sub.Path, name, st), nil
}

func (s *scan) inside(target string) bool {
	for _, r := range s.o.Roots {
		if within(target, filepath.FromSlash(r)) {
			return true
		}
	}
	return false
}

// within tells whether a path is a folder or below it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, folder+string(filepath.Separator))
}

// linksTo finds the folder.links of a folder that is listed again on its own.
func (s *scan) linksTo(root int, p string) []string {
	var links []string
	for i := 0; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' || p == "" {
			continue
		}
		abs := filepath.FromSlash(s.abs(root, p[:i]))
		if info, err := os.Lstat(abs); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if parent, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
				links = append(links, parent)
			}
		}
	}
	return links
}

// ignored is the test for entries of a folder: built-in patterns, the project's, and those of the ignore
// files from the root down to the folder; the last that matches decides.
func (s *scan) ignored(root int, dir string) func(rel string, isDir bool) bool {
	var ps []gitignore.Pattern
	for _, p := range builtinIgnore {
		ps = append(ps, gitignore.ParsePattern(p, nil))
	}
	for _, p := range s.o.Ignore {
		ps = append(ps, gitignore.ParsePattern(p, nil))
	}
	at, rest := "", dir
	for {
		ps = append(ps, s.ignoreFile(root, at)...)
		if rest == "" {
			break
		}
		first, after, _ := strings.Cut(rest, "/")
		at, rest = path.Join(at, first), after
	}
	m := gitignore.NewMatcher(ps)
	return func(rel string, isDir bool) bool { return m.Match(strings.Split(rel, "/"), isDir) }
}

// ignoreFile reads the patterns of one folder, once.
func (s *scan) ignoreFile(root int, dir string) []gitignore.Pattern {
	key := s.abs(root, path.Join(dir, IgnoreFile))
	s.mu.Lock()
	defer s.mu.Unlock()
	if ps, ok := s.ignores[key]; ok {
		return ps
	}
	var ps []gitignore.Pattern
	if data, err := os.ReadFile(key); err == nil {
		var domain []string
		if dir != "" {
			domain = strings.Split(dir, "/")
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\r\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				ps = append(ps, gitignore.ParsePattern(line, domain))
			}
		}
	}
	if s.ignores == nil {
		s.ignores = map[string][]gitignore.Pattern{}
	}
	s.ignores[key] = ps
	return ps
}

// assemble makes the table of what was kept and listed.
func (s *scan) assemble() *Table {
	t := &Table{Roots: s.o.Roots}
	sort.Slice(s.kept, func(i, j int) bool {
		a, b := s.kept[i], s.kept[j]
		if a.Root != b.Root {
			return a.Root < b.Root
		}
		return a.Path < b.Path
	})
	n := 0
	for _, f := range s.kept {
		n += len(f.files)
	}
	t.Files = make([]File, 0, n)
	t.Folders = make([]Folder, 0, len(s.kept))
	for i, f := range s.kept {
		if i > 0 && s.kept[i-1].Root == f.Root && s.kept[i-1].Path == f.Path {
			continue
		}
		f.First, f.Count = len(t.Files), len(f.files)
		t.Folders = append(t.Folders, f.Folder)
		t.Files = append(t.Files, f.files...)
	}
	return t
}

// hashSuspects looks at the content of files whose stat changed, and tells whether any of it did. What
// cannot be read counts as changed; who needs it will say so.
func (s *scan) hashSuspects(t *Table) bool {
	var differs atomic.Bool
	s.parallel(len(s.suspects), func(i int) {
		su := &s.suspects[i]
		at, ok := t.FindIn(su.root, su.path)
		if !ok {
			differs.Store(true)
			return
		}
		if h, err := t.Hash(at); err != nil || h != su.old {
			differs.Store(true)
		}
	})
	return differs.Load()
}

func (s *scan) abs(root int, p string) string {
	if p == "" {
		return s.o.Roots[root]
	}
	return s.o.Roots[root] + "/" + p
}

// parallel calls f for 0..n-1 from as many goroutines as there are workers.
func (s *scan) parallel(n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(max(1, s.o.Workers), n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f(i)
			}
		})
	}
	wg.Wait()
}

// lfsPrefix begins every Git LFS pointer (git-lfs spec, version 1). Pointers are
// about 130 bytes long, and under 1,024 by the specification.
var lfsPrefix = []byte("version https://git-lfs.github.com/spec/v1\n")

func lfs(abs string, size int64) Trouble {
	if size < int64(len(lfsPrefix)) || size >= 1024 {
		return Fine
	}
	f, err := os.Open(abs)
	if err != nil {
		return Fine
	}
	defer f.Close()
	head := make([]byte, len(lfsPrefix))
	if _, err := io.ReadFull(f, head); err != nil || !bytes.Equal(head, lfsPrefix) {
		return Fine
	}
	return LFSPointer
}
