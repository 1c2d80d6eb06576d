package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Options of a scan.
type Options struct {
	Roots   []string // absolute, with symbolic links in the roots' own paths resolved
	Ignore  []string // patterns of the project file
	Exclude []string // absolute folders to skip: the output, Kiln's own
	Workers int
	Relist  bool         // list all folders again, because other files may be ignored than last time
	Hash    bool         // read every file whose hash is known, whatever its stat
	Spare   []File       // memory for the new table's files: from a table that is no longer used
	Passed  func(Passed) // called for each entry that is skipped, by several goroutines; if set, everything is listed
	List    *List        // check only these, and trust prev for everything else; ignored without prev, and with Relist or Hash
}

// Scan makes a new table. prev is the last table with the same options, or nil: then everything is listed. Unchanged
// files and folders keep their hashes and listings. contents reports whether content, presence or a listing changed,
// and stats whether any stat did; if both are false, t is prev itself. If the hash of a file was not known, a changed
// stat counts as changed content.
//
// First every folder and file of prev is checked in parallel. If nothing changed, that is all. If entries of some
// folder may have changed, the tree is walked from its roots: unchanged folders are taken from prev, others are listed.
// Changes are found by comparing the two tables.
//
// With a List, only what it names is checked first. Everything else keeps its stat, so that a later scan without a list
// notices other changes.
func Scan(prev *Table, o Options) (t *Table, contents, stats bool, err error) {
	for i, r := range o.Roots {
		if info, err := os.Stat(r); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return nil, false, false, &RootError{i, r}
		} else if err != nil {
			return nil, false, false, err
		}
	}
	s := &scan{o: o, prev: prev}
	if prev != nil && !slices.Equal(prev.Roots, o.Roots) {
		s.prev = nil
	}
	if s.prev != nil && !o.Relist && !o.Hash && o.Passed == nil {
		look := s.look
		if o.List != nil {
			look = s.lookListed
		}
		switch look() {
		case sameStats:
			return prev, false, false, nil
		case otherStats:
			s.takeOver()
		}
	}
	if s.kept == nil {
		if err := s.walk(); err != nil {
			return nil, false, false, err
		}
	}
	t = s.assemble()
	contents, stats = s.compare(t)
	if !contents && !stats {
		t = prev
	}
	return t, contents, stats, nil
}

// RootError means that a source root is not a folder, or was removed.
type RootError struct {
	Root int // index in Options.Roots
	Path string
}

func (e *RootError) Error() string { return fmt.Sprintf("source root %s is not a folder", e.Path) }

// scan is the state of a Scan.
type scan struct {
	o     Options
	prev  *Table
	found []finding // by folder of prev; nil: everything is listed
	below [][]int   // by folder of prev: the folders in it
	kept  []*folder
}

// folder is a folder of the new table.
type folder struct {
	Folder
	files  []File
	real   string    // its path without symbolic links, in the system's own form
	ignore []pattern // patterns of the project and of the ignore files down to here
	links  []string  // real paths of the folders of the symbolic links on the way here
	unread bool      // its ignore file cannot be read
	force  bool      // do not trust prev for it
	gone   bool
	as     int // 1 + the number of the folder of prev that it equals in every way; 0: none
}

// sub returns a subfolder.
func (f *folder) sub(name string) *folder {
	return &folder{Folder: Folder{Root: f.Root, Path: join(f.Path, name)}, real: f.real + string(filepath.Separator) + name, ignore: f.ignore}
}

// listing is how much of a folder of prev still holds. The maximum of all folders decides what the scan does.
type listing int

const (
	sameStats  listing = iota // nothing differs
	otherStats                // the entries are the same; finding.files has their new state
	otherNames                // it must be listed
	otherBelow                // it must be listed, with all folders below
	otherEntry                // it is no longer a folder, or now a link to one: its parent must be listed
)

// finding is the result of checking a folder of prev.
type finding struct {
	listing listing
	files   []File
}

// look compares the stats of everything in prev.
func (s *scan) look() listing {
	s.found = make([]finding, len(s.prev.Folders))
	s.parallel(len(s.found), func(i int) { s.found[i] = s.lookFolder(&s.prev.Folders[i]) })
	return s.most()
}

// most is the maximum of the findings. A root without entries in prev, perhaps because it was missing, must be
// listed.
func (s *scan) most() listing {
	most, roots := sameStats, 0
	for i := range s.found {
		most = max(most, s.found[i].listing)
		if s.prev.Folders[i].Path == "" {
			roots++
		}
	}
	if roots < len(s.prev.Roots) {
		most = max(most, otherNames)
	}
	return most
}

func (s *scan) lookFolder(old *Folder) finding {
	d, err := openDir(s.abs(old.Root, old.Path), old.Path == "")
	if err != nil {
		return finding{listing: otherEntry}
	}
	defer d.close()
	st, err := d.self()
	if err != nil || old.Racy || st.MTime != old.Stat.MTime || st.CTime != old.Stat.CTime || st.Inode != old.Stat.Inode {
		return finding{listing: otherNames}
	}
	return s.lookFiles(old, d, nil)
}

// lookFiles compares all or some entries of a folder of prev.
func (s *scan) lookFiles(old *Folder, d dir, only []int) finding {
	files := s.prev.Files[old.First : old.First+old.Count]
	n := len(files)
	if only != nil {
		n = len(only)
	}
	var fresh []File // copied at the first difference
	for k := range n {
		i := k
		if only != nil {
			i = only[k]
		}
		f, l := s.lookFile(old, d, &files[i])
		if l == otherNames {
			return finding{listing: otherNames}
		}
		if l == otherStats {
			if fresh == nil {
				fresh = slices.Clone(files)
			}
			fresh[i] = f
		}
	}
	if fresh == nil {
		return finding{}
	}
	return finding{otherStats, fresh}
}

// lookFile compares one entry, and returns its new state if its stat differs.
func (s *scan) lookFile(in *Folder, d dir, old *File) (File, listing) {
	switch old.Trouble {
	case NotUTF8:
		return File{}, sameStats
	case IgnoredLink, LinkedFolder:
		return File{}, otherNames // patterns, and what is below, are handled when folders are listed
	}
	st, mode, err := d.stat(old.Name)
	now := File{Name: old.Name, Stat: st}
	switch {
	case err != nil:
		return File{}, otherNames
	case mode == fs.ModeSymlink:
		// A folder that is reached by a link is listed at each scan, whatever the result here, so the path of this one
		// is its real one.
		now, _ = s.link(&folder{Folder: *in, real: filepath.FromSlash(s.abs(in.Root, in.Path))}, old.Name)
	case mode == fs.ModeIrregular:
		now = File{Name: old.Name, Trouble: Irregular}
	case mode != 0:
		return File{}, otherNames
	case old.Trouble == IgnoreList, old.Trouble == LFSPointer, old.Trouble == Litter:
		now.Trouble = old.Trouble // unless its stat says otherwise
	}
	switch {
	case now.Name == old.Name && now.Trouble == old.Trouble && now.Stat == old.Stat && !old.Racy:
		return File{}, sameStats
	case !old.visible() || !now.visible() || now.Name == "" || candidate(now.Name) != nil:
		return File{}, otherNames
	}
	now.Hash, now.Racy = digest.Hash{}, false
	now.Trouble = lfs(s.abs(in.Root, join(in.Path, old.Name)), now.Stat.Size)
	switch {
	case now.Trouble == Unseen:
		return File{}, otherNames
	case now.Trouble == Fine && mode == fs.ModeSymlink:
		now.Trouble = Linked
	}
	return now, otherStats
}

// takeOver keeps all folders of prev.
func (s *scan) takeOver() {
	for i := range s.prev.Folders {
		f := &folder{Folder: s.prev.Folders[i]}
		f.files, f.as = s.filesNow(i), s.same(i)
		s.kept = append(s.kept, f)
	}
}

// same is folder.as of a folder that need not be listed.
func (s *scan) same(i int) int {
	if s.found[i].files != nil {
		return 0
	}
	return i + 1
}

// filesNow returns the entries of a folder of prev that need not be listed.
func (s *scan) filesNow(i int) []File {
	if s.found[i].files != nil {
		return s.found[i].files
	}
	f := &s.prev.Folders[i]
	return s.prev.Files[f.First : f.First+f.Count]
}

// walk visits all folders from the roots down, those of one depth in parallel. It fails if a root was removed since the
// check: its files would count as removed, and nothing above a root is watched, so its return would not be noticed.
func (s *scan) walk() error {
	if s.found != nil {
		s.family()
	}
	base := basePatterns(s.o.Ignore)
	var level []*folder
	for i, r := range s.o.Roots {
		level = append(level, &folder{Folder: Folder{Root: i}, real: filepath.FromSlash(r), ignore: slices.Clip(base)})
	}
	for len(level) > 0 {
		below := make([][]*folder, len(level))
		s.parallel(len(level), func(i int) { below[i] = s.visit(level[i]) })
		for _, f := range level {
			switch {
			case !f.gone:
				s.kept = append(s.kept, f)
			case f.Path == "":
				return &RootError{f.Root, s.o.Roots[f.Root]}
			}
		}
		level = slices.Concat(below...)
	}
	return nil
}

// basePatterns are Kiln's own and the project's.
func basePatterns(ignore []string) []pattern {
	var base []pattern
	for i, line := range slices.Concat(builtinIgnore, ignore) {
		if p, ok := parsePattern(line, ""); ok {
			p.project = i >= len(builtinIgnore)
			base = append(base, p)
		}
	}
	return base
}

// family finds the subfolders of each folder of prev, and marks those for listing that contain one that is no
// longer a folder.
func (s *scan) family() {
	s.prev.index()
	s.below = make([][]int, len(s.found))
	for i := range s.prev.Folders {
		f := &s.prev.Folders[i]
		if f.Path == "" {
			continue
		}
		dir, _ := split(f.Path)
		up, ok := s.prev.folders[f.Root][dir]
		if !ok {
			continue
		}
		s.below[up] = append(s.below[up], i)
		if s.found[i].listing == otherEntry {
			s.found[up].listing = max(s.found[up].listing, otherNames)
		}
	}
}

// visit takes a folder from prev or lists it, and returns its subfolders.
func (s *scan) visit(f *folder) []*folder {
	i, known := s.known(f)
	if known && s.found != nil && s.found[i].listing >= otherBelow {
		f.force = true
	}
	if !known || f.force || s.found == nil || s.found[i].listing > otherStats {
		return s.list(f)
	}
	f.Folder, f.files = s.prev.Folders[i], s.filesNow(i)
	if e, ok := entryIn(f.files, IgnoreFile); ok && !s.readIgnore(f, e) {
		f.files = nil
		return s.list(f)
	}
	f.as = s.same(i)
	subs := make([]*folder, len(s.below[i]))
	for k, j := range s.below[i] {
		_, name := split(s.prev.Folders[j].Path)
		subs[k] = f.sub(name)
	}
	return subs
}

// known finds a folder in prev.
func (s *scan) known(f *folder) (int, bool) {
	if s.prev == nil {
		return 0, false
	}
	s.prev.index()
	i, ok := s.prev.folders[f.Root][f.Path]
	return i, ok
}

func entryIn(files []File, name string) (File, bool) {
	i := sort.Search(len(files), func(i int) bool { return files[i].Name >= name })
	if i == len(files) || files[i].Name != name {
		return File{}, false
	}
	return files[i], true
}

// list lists one folder, and returns its subfolders.
func (s *scan) list(f *folder) (below []*folder) {
	now := time.Now()
	d, err := openDir(s.abs(f.Root, f.Path), true)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		f.gone = true // removed since its parent was listed, which will be noticed there
		return nil
	}
	if err != nil {
		f.files = []File{{Name: ".", Trouble: Unreadable}}
		return nil
	}
	defer d.close()
	var entries []fs.DirEntry
	if f.Stat, err = d.self(); err == nil {
		f.Racy = racy(f.Stat.MTime, now)
		entries, err = d.list()
	}
	if err != nil {
		f.files = []File{{Name: ".", Trouble: Unreadable}}
		return nil
	}
	s.listIgnore(f, d, entries)
	for _, e := range entries {
		file, sub := s.entry(f, d, e.Name(), e.Type())
		if f.unread && file.Trouble == IgnoreList {
			file.Trouble = Unseen
		}
		if sub != nil {
			below = append(below, sub)
		}
		if file.Name != "" {
			f.files = append(f.files, file)
		}
	}
	sort.Slice(f.files, func(i, j int) bool { return f.files[i].Name < f.files[j].Name })
	return below
}

// listIgnore reads the ignore file among the entries of a folder. If it differs from that in prev, nothing below is
// taken from prev.
func (s *scan) listIgnore(f *folder, d dir, entries []fs.DirEntry) {
	var before, after File
	if i, ok := s.known(f); ok {
		old := &s.prev.Folders[i]
		before, _ = entryIn(s.prev.Files[old.First:old.First+old.Count], IgnoreFile)
	}
	for _, e := range entries {
		if e.Name() == IgnoreFile {
			after, _ = s.entry(f, d, e.Name(), e.Type())
			f.unread = !s.readIgnore(f, after)
		}
	}
	if before != after || before.Racy {
		f.force = true
	}
}

// readIgnore adds the patterns of a folder's ignore file, and reports whether it could be read. An unreadable one
// ignores nothing: then more is built, and nothing is removed.
func (s *scan) readIgnore(f *folder, e File) bool {
	if e.Trouble != IgnoreList || e.Stat.Size > maxIgnoreFile {
		return e.Trouble != Unseen
	}
	base := ""
	if f.Path != "" {
		base = f.Path + "/"
	}
	data, err := os.ReadFile(s.abs(f.Root, join(f.Path, IgnoreFile)))
	if err == nil && len(data) <= maxIgnoreFile {
		own := parsePatterns(string(data), base)
		for i := range own {
			own[i].file = join(f.Path, IgnoreFile)
		}
		f.ignore = append(slices.Clip(f.ignore), own...)
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// assemble makes the table from all folders.
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
	if t.Files = s.o.Spare[:0]; cap(t.Files) < n {
		t.Files = make([]File, 0, n+n/64)
	}
	t.Files = t.Files[:n]
	t.Folders = make([]Folder, 0, len(s.kept))
	at := 0
	for _, f := range s.kept {
		f.First, f.Count = at, len(f.files)
		t.Folders = append(t.Folders, f.Folder)
		at += f.Count
	}
	s.parallel(len(s.kept), func(i int) { copy(t.Files[s.kept[i].First:], s.kept[i].files) })
	return t
}

// compare finds the differences from prev. It hashes the files whose stat differs from that of their hash. A file that
// cannot be read counts as changed; reading it later reports the error.
func (s *scan) compare(t *Table) (contents, stats bool) {
	if s.prev == nil {
		return true, true
	}
	contents = len(t.Folders) != len(s.prev.Folders) || len(t.Files) != len(s.prev.Files)
	var pairs [][2]Index // differing entries, old and new
	shape := len(t.Folders) == len(s.prev.Folders)
	for i := range t.Folders {
		if as := s.kept[i].as; as > 0 {
			shape = shape && as == i+1
			continue
		}
		t.others = append(t.others, i)
		now := &folder{Folder: t.Folders[i]}
		j, ok := s.known(now)
		shape = shape && ok && i == j
		if !ok {
			contents = true
			continue
		}
		old := s.prev.Folders[j]
		stats = stats || old.Stat != now.Stat || old.Racy != now.Racy
		more, differ := pair(s.prev, &old, t, &now.Folder)
		pairs, contents = append(pairs, more...), contents || differ
	}
	if shape {
		t.since = s.prev
	}
	var differs, other atomic.Bool
	s.parallel(len(pairs), func(k int) {
		old, i := s.prev.Files[pairs[k][0]], pairs[k][1]
		now := t.Files[i]
		if !old.Hash.IsZero() && now.visible() {
			if _, err := t.Hash(i); err != nil {
				differs.Store(true)
			}
			now = t.At(i)
		}
		if old.Trouble != now.Trouble || old.visible() && (old.Hash != now.Hash || old.Hash.IsZero() && old.Stat != now.Stat) {
			differs.Store(true)
		}
		if old != now {
			other.Store(true)
		}
	})
	return contents || differs.Load(), stats || other.Load()
}

// pair finds the differing entries of a folder in two tables, and whether one has an entry that the other does not
// have.
func pair(prev *Table, old *Folder, t *Table, now *Folder) (pairs [][2]Index, differ bool) {
	before := prev.Files[old.First : old.First+old.Count]
	differ = old.Count != now.Count
	for i := range now.Count {
		f := &t.Files[now.First+i]
		j := i
		if j >= len(before) || before[j].Name != f.Name {
			j = sort.Search(len(before), func(j int) bool { return before[j].Name >= f.Name })
		}
		if j == len(before) || before[j].Name != f.Name {
			differ = true
		} else if before[j] != *f {
			pairs = append(pairs, [2]Index{Index(old.First + j), Index(now.First + i)})
		}
	}
	return pairs, differ
}

func (s *scan) abs(root int, p string) string {
	if p == "" {
		return s.o.Roots[root]
	}
	return s.o.Roots[root] + "/" + p
}

// parallel calls f for 0 to n-1 from several goroutines.
func (s *scan) parallel(n int, f func(int)) { parallel(s.o.Workers, n, f) }

func parallel(workers, n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(max(1, workers), n) {
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
