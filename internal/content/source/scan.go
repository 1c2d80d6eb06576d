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
	Roots   []string // absolute, symbolic links in the roots' own paths resolved
	Ignore  []string // of the project file
	Exclude []string // absolute folders that are passed over: the output, Kiln's own
	Workers int
	Relist  bool   // list all folders again: what is ignored may be other files than last time
	Hash    bool   // look at the content of every file whose hash is known, whatever its stat says
	Spare   []File // what the new table's files may be put into: those of a table that nobody uses any more
	List    *List  // look at these only, and trust prev for all else; without prev, or with Relist or Hash, everything is looked at
}

// Scan makes the table anew. prev is the table of last time under the same options, or nil: then everything is listed. Files and folders
// that are as they were keep their hashes and listings. The answer tells whether content, presence or a listing changed at all, and
// whether any stat did; where neither is so, the table is prev itself. A file whose hash was not known counts as changed if its stat did.
//
// First every folder and file of prev is looked at side by side, which is all there is to do if nothing changed. If some folder's
// entries may be others, the tree is walked from its roots: folders that were found to be as they were are taken over, others
// are listed. What changed is found by comparing the two tables.
//
// With a List the first look is at what it names. What was not looked at keeps the stat it had, so that a later scan without a list
// sees whatever changed there.
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
	if s.prev != nil && !o.Relist && !o.Hash {
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

// RootError says that a source root is no folder, or no more.
type RootError struct {
	Root int // of Options.Roots
	Path string
}

func (e *RootError) Error() string { return fmt.Sprintf("source root %s is not a folder", e.Path) }

// scan is one Scan under way.
type scan struct {
	o     Options
	prev  *Table
	found []finding // by folder of prev; nil: everything is listed
	below [][]int   // by folder of prev: the folders in it
	kept  []*folder
}

// folder is a folder under construction.
type folder struct {
	Folder
	files  []File
	real   string    // its path without symbolic links, in the system's own form
	ignore []pattern // of the project and of the ignore files down to here
	links  []string  // real paths of the folders that hold the symbolic links on the way here
	unread bool      // its ignore file cannot be read
	force  bool      // what prev has of it is not to be trusted
	gone   bool
	as     int // 1 + the number of the folder of prev that it is in every way; 0: of none
}

// sub is a folder in a folder.
func (f *folder) sub(name string) *folder {
	return &folder{Folder: Folder{Root: f.Root, Path: join(f.Path, name)}, real: f.real + string(filepath.Separator) + name, ignore: f.ignore}
}

// listing says how much of a folder of prev still holds. The greatest of all folders decides what is to be done.
type listing int

const (
	sameStats  listing = iota // nothing differs
	otherStats                // the entries are the same; finding.files has what is known of them now
	otherNames                // it must be listed
	otherBelow                // it must be listed, and so must all folders below
	otherEntry                // it is no folder any more, or a link to one: what holds it must be listed
)

// finding is what a look at a folder of prev came to.
type finding struct {
	listing listing
	files   []File
}

// look compares the stats of all that prev has.
func (s *scan) look() listing {
	s.found = make([]finding, len(s.prev.Folders))
	s.parallel(len(s.found), func(i int) { s.found[i] = s.lookFolder(&s.prev.Folders[i]) })
	return s.most()
}

// most is the greatest of what was found. A root that prev has nothing of, as if it had been gone, must be listed.
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

// lookFiles compares the entries of a folder of prev, all of them or only some.
func (s *scan) lookFiles(old *Folder, d dir, only []int) finding {
	files := s.prev.Files[old.First : old.First+old.Count]
	n := len(files)
	if only != nil {
		n = len(only)
	}
	var fresh []File // copied on the first difference
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

// lookFile compares one entry, and gives it anew if it has other stats.
func (s *scan) lookFile(in *Folder, d dir, old *File) (File, listing) {
	switch old.Trouble {
	case NotUTF8:
		return File{}, sameStats
	case IgnoredLink, LinkedFolder:
		return File{}, otherNames // patterns, and what is below, are known where folders are listed
	}
	st, mode, err := d.stat(old.Name)
	now := File{Name: old.Name, Stat: st}
	switch {
	case err != nil:
		return File{}, otherNames
	case mode == fs.ModeSymlink:
		// A folder that is reached by a link is listed at each scan, whatever is found here, so the path of this one is its real one.
		now, _ = s.link(&folder{Folder: *in, real: filepath.FromSlash(s.abs(in.Root, in.Path))}, old.Name)
	case mode == fs.ModeIrregular:
		now = File{Name: old.Name, Trouble: Irregular}
	case mode != 0:
		return File{}, otherNames
	case old.Trouble == IgnoreList, old.Trouble == LFSPointer:
		now.Trouble = old.Trouble // unless its stat says otherwise
	}
	switch {
	case now.Name == old.Name && now.Trouble == old.Trouble && now.Stat == old.Stat && !old.Racy:
		return File{}, sameStats
	case !old.visible() || !now.visible() || now.Name == "":
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

// same is folder.as for a folder that need not be listed.
func (s *scan) same(i int) int {
	if s.found[i].files != nil {
		return 0
	}
	return i + 1
}

// filesNow are the entries of a folder of prev that need not be listed.
func (s *scan) filesNow(i int) []File {
	if s.found[i].files != nil {
		return s.found[i].files
	}
	f := &s.prev.Folders[i]
	return s.prev.Files[f.First : f.First+f.Count]
}

// walk visits all folders from the roots down, those of one depth side by side. It fails if a root went since it was last looked at: what
// lay there would be taken for removed, and nothing above a root is watched that would tell of its return.
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
	for _, line := range slices.Concat(builtinIgnore, ignore) {
		if p, ok := parsePattern(line, ""); ok {
			base = append(base, p)
		}
	}
	return base
}

// family finds the folders in each folder of prev, and lists again those that hold one which is no folder any more.
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

// visit takes a folder over from prev or lists it, and tells the folders in it.
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

// list lists one folder, and tells the folders in it.
func (s *scan) list(f *folder) (below []*folder) {
	now := time.Now()
	d, err := openDir(s.abs(f.Root, f.Path), true)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		f.gone = true // since what holds it was listed, which will be noticed there
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

// listIgnore reads the ignore file among the entries of a folder. If it is not the one that prev knows, nothing below is taken over.
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

// readIgnore adds the patterns of a folder's ignore file, and tells whether it could be read. One that could not ignores nothing:
// more is built then, and nothing that was is taken away.
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
		f.ignore = append(slices.Clip(f.ignore), parsePatterns(string(data), base)...)
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// assemble makes the table of what was kept.
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
	t.Folders = make([]Folder, 0, len(s.kept))
	for _, f := range s.kept {
		f.First, f.Count = len(t.Files), len(f.files)
		t.Folders = append(t.Folders, f.Folder)
		t.Files = append(t.Files, f.files...)
	}
	return t
}

// compare finds what differs from prev. It hashes the files that have another stat than when their hash was made; what
// cannot be read counts as changed, and who needs it will say so.
func (s *scan) compare(t *Table) (contents, stats bool) {
	if s.prev == nil {
		return true, true
	}
	contents = len(t.Folders) != len(s.prev.Folders) || len(t.Files) != len(s.prev.Files)
	var pairs [][2]Index // entries that differ, then and now
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

// pair finds the entries of a folder that are not the same in two tables, and whether one has an entry that the other has not.
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

// parallel calls f for 0..n-1 from as many goroutines as there are workers.
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
