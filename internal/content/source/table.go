// Package source is the table of source files: the files under the source roots, and whether they have changed
// since the table was made. It knows files, not assets.
//
// A file has changed if its content has. Size, modification and change time and inode only decide when the
// content must be read: if any of them differs, older times included, or if the file was modified so shortly
// before its content was hashed that a later edit may not have changed the times ("racy").
package source

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Stat is compared before content is. Times are nanoseconds since 1970.
type Stat struct {
	Size  int64
	MTime int64
	CTime int64 // 0 if the system has none
	Inode uint64
}

// Trouble is something special about an entry of a folder, usually a problem. Such entries are kept, so that each build
// reports them; except LFSPointer and Linked they are not source files.
type Trouble uint8

const (
	Fine         Trouble = iota
	LFSPointer           // a Git LFS pointer instead of the content
	Loop                 // a symbolic link to a folder above it
	Escapes              // a symbolic link out of the roots
	Dangling             // a symbolic link to nothing
	NotUTF8              // the name is not UTF-8
	Irregular            // a pipe, socket or device
	Unreadable           // a folder that cannot be listed
	IgnoreList           // no problem: an ignore file, which is watched but is not content
	IgnoredLink          // no problem: a symbolic link that is ignored because of its target
	Linked               // no problem: a file reached by a symbolic link
	LinkedFolder         // no problem: a symbolic link to a folder, which is in the table under the link's name
	Unseen               // a file without a stat, or an ignore file that cannot be read
	Litter               // no problem: what a system or a program left beside other files
)

// File is an entry of a folder that is not a folder.
type File struct {
	Name    string
	Trouble Trouble
	Racy    bool // Hash may be older than the content although Stat is equal
	Stat    Stat
	Hash    digest.Hash // zero until it was needed
}

// Folder is a folder under a root. Its files are Files[First:First+Count] of the table, sorted by name.
type Folder struct {
	Root  int    // index of the root
	Path  string // below the root; "" is the root itself
	Racy  bool   // changed so recently that the listing may be older than the folder
	Stat  Stat   // Size is not used
	First int
	Count int
}

// Table has all folders, sorted by root and path, and all files. Several goroutines may add content hashes of files;
// everything else stays as Scan made it.
type Table struct {
	Roots   []string // absolute
	Folders []Folder
	Files   []File

	once    sync.Once
	folders []map[string]int // by root: path to index

	mu     sync.Mutex // guards Hash, Racy and Stat of files, and learnt
	learnt []Index    // files whose hashes were added, if since is set

	since  *Table // the table that Scan compared with and that has the same folders; nil: none
	others []int  // folders that may differ from those of since
}

// Since returns the numbers, sorted, of all folders that may differ from those of an earlier table. ok is false if this
// table was not scanned with that one, or if it has other folders.
func (t *Table) Since(prev *Table) (folders []int, ok bool) {
	if t == prev {
		return nil, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since != prev || prev == nil {
		return nil, false
	}
	folders = slices.Clone(t.others)
	for _, i := range t.learnt {
		folders = append(folders, t.folderNumber(i))
	}
	slices.Sort(folders)
	return slices.Compact(folders), true
}

// Learnt returns the paths of files whose hashes were added; their sizes may have changed too. ok is false if there is
// no such list.
func (t *Table) Learnt() (paths []string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.learnt {
		_, p := t.PathOf(i)
		paths = append(paths, p)
	}
	return paths, t.since != nil
}

// Entries returns the files of a folder, and its other entries in the table.
func (t *Table) Entries(folder int) []File {
	f := &t.Folders[folder]
	return t.Files[f.First : f.First+f.Count]
}

// Visible reports whether an entry can be read as a source file.
func (f *File) Visible() bool { return f.visible() }

// Index is the index of a file in the table.
type Index int

func (t *Table) index() {
	t.once.Do(func() {
		t.folders = make([]map[string]int, len(t.Roots))
		for i := range t.folders {
			t.folders[i] = map[string]int{}
		}
		for i, f := range t.Folders {
			t.folders[f.Root][f.Path] = i
		}
	})
}

// split is path.Split with "" for the root folder.
func split(p string) (dir, name string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return "", p
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// FindIn returns a file in one root by its path below it.
func (t *Table) FindIn(root int, p string) (Index, bool) {
	t.index()
	dir, name := split(p)
	i, ok := t.folders[root][dir]
	if !ok {
		return 0, false
	}
	f := &t.Folders[i]
	files := t.Files[f.First : f.First+f.Count]
	j := sort.Search(len(files), func(j int) bool { return files[j].Name >= name })
	if j == len(files) || files[j].Name != name {
		return 0, false
	}
	return Index(f.First + j), true
}

// Find returns the file that a path means: that of the last root that has it.
func (t *Table) Find(p string) (Index, int, bool) {
	for root := len(t.Roots) - 1; root >= 0; root-- {
		if i, ok := t.FindIn(root, p); ok && t.Files[i].visible() && !t.hidden(p) {
			return i, root, true
		}
	}
	return 0, 0, false
}

// hidden reports whether a file is not a source file because another root has a folder of that path, whose content
// could not be reached otherwise.
func (t *Table) hidden(file string) bool { return len(t.Roots) > 1 && t.HasFolder(file) }

func (f *File) visible() bool {
	return f.Trouble == Fine || f.Trouble == LFSPointer || f.Trouble == Linked
}

// HasFolder reports whether some root has the folder.
func (t *Table) HasFolder(p string) bool {
	t.index()
	for root := range t.folders {
		if _, ok := t.folders[root][p]; ok {
			return true
		}
	}
	return false
}

// Names returns the names of the files in a folder, over all roots, sorted.
func (t *Table) Names(dir string) []string {
	t.index()
	var names []string
	for root := range t.folders {
		if i, ok := t.folders[root][dir]; ok {
			f := &t.Folders[i]
			for j := f.First; j < f.First+f.Count; j++ {
				if t.Files[j].visible() && !t.hidden(join(dir, t.Files[j].Name)) {
					names = append(names, t.Files[j].Name)
				}
			}
		}
	}
	sort.Strings(names)
	return compact(names)
}

func compact(s []string) []string {
	out := s[:0]
	for i, x := range s {
		if i == 0 || x != s[i-1] {
			out = append(out, x)
		}
	}
	return out
}

// Paths returns the paths of all readable files, once, sorted bytewise. With several roots, files that
// a later root overlays are omitted, and so are files whose path is a folder in another root.
func (t *Table) Paths() []string {
	all := make([]string, 0, len(t.Files))
	for i := range t.Folders {
		f := &t.Folders[i]
		for j := f.First; j < f.First+f.Count; j++ {
			if p := join(f.Path, t.Files[j].Name); t.Files[j].visible() && !t.hidden(p) {
				all = append(all, p)
			}
		}
	}
	if !sort.StringsAreSorted(all) {
		sort.Strings(all)
	}
	if len(t.Roots) > 1 {
		all = compact(all)
	}
	return all
}

// Abs is the path of the file on disk.
func (t *Table) Abs(root int, p string) string {
	return t.Roots[root] + "/" + p
}

// At returns a copy of a file's entry.
func (t *Table) At(i Index) File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Files[i]
}

// folderOf returns the folder of a file by the file's index.
func (t *Table) folderOf(i Index) *Folder { return &t.Folders[t.folderNumber(i)] }

func (t *Table) folderNumber(i Index) int {
	return sort.Search(len(t.Folders), func(j int) bool {
		return t.Folders[j].First+t.Folders[j].Count > int(i)
	})
}

// PathOf returns a file's root and its path below it.
func (t *Table) PathOf(i Index) (root int, p string) {
	f := t.folderOf(i)
	return f.Root, join(f.Path, t.Files[i].Name)
}

// Links returns the symbolic links that lead to a file or a folder, absolute, and all ignore files, which may be links,
// or lead to nothing yet.
func (t *Table) Links() []string {
	var links []string
	for i := range t.Folders {
		for _, f := range t.Entries(i) {
			if f.Trouble == Linked || f.Trouble == LinkedFolder || f.Name == IgnoreFile && f.Trouble != Escapes {
				links = append(links, t.Abs(t.Folders[i].Root, join(t.Folders[i].Path, f.Name)))
			}
		}
	}
	return links
}

// Dangles returns the target of a symbolic link that led to nothing. Links on the way are followed as far as they
// exist; ok is false if there are too many.
func Dangles(link string) (to string, ok bool) {
	for range maxLinks {
		dir := filepath.Dir(link)
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		link = filepath.Join(dir, filepath.Base(link))
		next, err := os.Readlink(link)
		if err != nil {
			return link, true
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(dir, next)
		}
		link = next
	}
	return "", false
}

// maxLinks is how many symbolic links are followed in sequence: as many as Linux follows.
const maxLinks = 40

// Each calls f for every readable file, in the order of the table.
func (t *Table) Each(f func(root int, path string, file *File)) {
	for i := range t.Folders {
		d := &t.Folders[i]
		for j := d.First; j < d.First+d.Count; j++ {
			if p := join(d.Path, t.Files[j].Name); t.Files[j].visible() && !t.hidden(p) {
				f(d.Root, p, &t.Files[j])
			}
		}
	}
}

// Difference is an entry of a folder that differs between two tables; nil where it does not exist.
type Difference struct {
	Root     int
	Folder   string
	Was, Now *File
}

// Differences returns the entries that differ from an earlier table of the same roots, and the paths of the folders
// that only one of the two has. Entries are the same if their contents are or, if those are not known, their stats.
func (t *Table) Differences(prev *Table) (entries []Difference, folders []string) {
	if numbers, ok := t.Since(prev); ok {
		for _, i := range numbers {
			entries = differences(entries, &t.Folders[i], prev.Entries(i), t.Entries(i))
		}
		return entries, nil
	}
	i, k := 0, 0
	for i < len(prev.Folders) || k < len(t.Folders) {
		order := 0
		switch {
		case k == len(t.Folders):
			order = -1
		case i == len(prev.Folders):
			order = 1
		default:
			a, b := &prev.Folders[i], &t.Folders[k]
			order = cmp.Or(cmp.Compare(a.Root, b.Root), strings.Compare(a.Path, b.Path))
		}
		switch {
		case order < 0:
			entries = differences(entries, &prev.Folders[i], prev.Entries(i), nil)
			folders = append(folders, prev.Folders[i].Path)
		case order > 0:
			entries = differences(entries, &t.Folders[k], nil, t.Entries(k))
			folders = append(folders, t.Folders[k].Path)
		default:
			entries = differences(entries, &t.Folders[k], prev.Entries(i), t.Entries(k))
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			k++
		}
	}
	return entries, folders
}

func differences(list []Difference, f *Folder, was, now []File) []Difference {
	for len(was) > 0 || len(now) > 0 {
		d := Difference{Root: f.Root, Folder: f.Path}
		switch {
		case len(now) == 0 || len(was) > 0 && was[0].Name < now[0].Name:
			d.Was, was = &was[0], was[1:]
		case len(was) == 0 || now[0].Name < was[0].Name:
			d.Now, now = &now[0], now[1:]
		default:
			d.Was, d.Now, was, now = &was[0], &now[0], was[1:], now[1:]
			if a, b := d.Was, d.Now; a.Trouble == b.Trouble && a.Hash == b.Hash && (!a.Hash.IsZero() || a.Stat == b.Stat) {
				continue
			}
		}
		list = append(list, d)
	}
	return list
}
