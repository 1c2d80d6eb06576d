package source

import (
	"bytes"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxList is the maximum size of a list of paths, in bytes.
const MaxList = 256 << 20

// List has the changed paths, for example from version control.
type List struct {
	Paths []string // files, links and folders, which mean everything below; existing or removed
	Bases []string // absolute: the folders to which a path may be relative. It means the results for all of them
	Roots []string // other names of the source roots, absolute, for paths that lead through a symbolic link; may be empty
}

// ParseList parses a list of paths: one a line, quoted where git quotes it, or, if there is a zero byte, separated by
// zero bytes and never quoted. Empty lines are skipped, and lines may end as on Windows. UTF-16 with a byte order mark,
// as some shells write it, is accepted.
func ParseList(data []byte) []string {
	data = bytes.TrimPrefix(fromUTF16(data), []byte("\ufeff"))
	zero := bytes.IndexByte(data, 0) >= 0
	end := byte('\n')
	if zero {
		end = 0
	}
	var paths []string
	for len(data) > 0 {
		var line []byte
		if i := bytes.IndexByte(data, end); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			line, data = data, nil
		}
		p := string(line)
		if !zero {
			p = unquote(strings.TrimSuffix(p, "\r"))
		}
		if p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

func fromUTF16(data []byte) []byte {
	low := 0 // position of the low byte in a unit
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		low = 1
	default:
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, uint16(data[i+low])|uint16(data[i+1-low])<<8)
	}
	out := make([]byte, 0, len(data))
	for _, r := range utf16.Decode(units) {
		out = utf8.AppendRune(out, r)
	}
	return out
}

// unquote reverses git's quoting of a path with unusual characters (core.quotePath in git-config(1)). A path that is
// not correctly quoted is returned unchanged.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	const letters, meanings = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
	in := s[1 : len(s)-1]
	var out []byte
	for i := 0; i < len(in); i++ {
		switch {
		case in[i] == '"':
			return s
		case in[i] != '\\':
			out = append(out, in[i])
			continue
		}
		i++
		if i == len(in) {
			return s
		}
		if k := strings.IndexByte(letters, in[i]); k >= 0 {
			out = append(out, meanings[k])
			continue
		}
		if i+3 > len(in) || in[i] > '3' || strings.Trim(in[i:i+3], "01234567") != "" || in[i:i+3] == "000" {
			return s
		}
		out = append(out, (in[i]-'0')<<6|(in[i+1]-'0')<<3|(in[i+2]-'0'))
		i += 2
	}
	return string(out)
}

// spot is an entry, or a possible one, of a source root. The path of the root itself is "".
type spot struct {
	root int
	path string
}

// spots returns everything that the list may mean below the roots, without duplicates.
func (l *List) spots(roots []string) []spot {
	found := map[spot]bool{}
	bases := slices.Clone(l.Bases)
	for _, b := range l.Bases {
		if real, err := filepath.EvalSymlinks(b); err == nil {
			bases = append(bases, real)
		}
	}
	bases = compact(slices.Sorted(slices.Values(bases)))
	for _, p := range l.Paths {
		if p = filepath.ToSlash(p); !filepath.IsAbs(p) {
			for _, b := range bases {
				find(found, path.Join(filepath.ToSlash(b), p), roots, l.Roots)
			}
			continue
		}
		if p = path.Clean(p); !find(found, p, roots, l.Roots) {
			find(found, realPath(p), roots)
		}
	}
	return slices.Collect(maps.Keys(found))
}

// find adds what an absolute path means below each of the roots. A parent of a root means the whole root.
func find(found map[spot]bool, p string, names ...[]string) (any bool) {
	for _, roots := range names {
		for i, r := range roots {
			r = filepath.ToSlash(r)
			rel, ok := below(r, p)
			if !ok {
				if _, ok = below(p, r); !ok {
					continue
				}
				rel = ""
			}
			found[spot{i, rel}] = true
			any = true
		}
	}
	return any
}

// below is the rest of a path below a folder. It ignores case: some systems do, and checking more than necessary is
// harmless.
func below(folder, p string) (rel string, ok bool) {
	folder = strings.TrimSuffix(folder, "/")
	if len(p) < len(folder) || !strings.EqualFold(p[:len(folder)], folder) {
		return "", false
	}
	rel, ok = strings.CutPrefix(p[len(folder):], "/")
	return rel, ok || rel == ""
}

// realPath resolves the symbolic links in the folders of a path, as far as they exist.
func realPath(p string) string {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		if real, err := filepath.EvalSymlinks(filepath.FromSlash(dir)); err == nil {
			return path.Join(filepath.ToSlash(real), strings.TrimPrefix(p, dir))
		}
		if dir == path.Dir(dir) {
			return p
		}
	}
}

// listed is the state of checking a list.
type listed struct {
	*scan
	entries map[int][]int // by folder of prev: which of its entries to compare
	stands  map[int]bool  // whether a folder of prev still is a folder
	names   map[int]map[string]bool
}

// lookListed compares what the list names, and what may change without being named: targets of symbolic links, and
// entries of prev that are uncertain.
func (s *scan) lookListed() listing {
	s.prev.index()
	s.found = make([]finding, len(s.prev.Folders))
	l := &listed{s, map[int][]int{}, map[int]bool{}, map[int]map[string]bool{}}
	l.doubtful()
	for _, p := range s.o.List.spots(s.prev.Roots) {
		l.lookAt(p.root, p.path)
	}
	l.lookAll()
	if l.otherNames() {
		l.lookAll()
	}
	return s.most()
}

// lookAll compares all collected entries, except in folders that must be listed completely.
func (l *listed) lookAll() {
	folders := slices.Collect(maps.Keys(l.entries))
	l.parallel(len(folders), func(k int) {
		if i := folders[k]; l.found[i].listing <= otherStats {
			l.found[i] = l.lookEntries(i, l.entries[i])
		}
	})
}

// otherNames adds the entries that were the same file as a changed one, because lists and systems name only one of a
// file's names. It returns false if there are none.
func (l *listed) otherNames() (any bool) {
	changed := map[uint64]bool{}
	for i, entries := range l.entries {
		if l.found[i].listing == sameStats {
			continue
		}
		was, now := l.prev.Files[l.prev.Folders[i].First:], l.found[i].files
		for _, k := range entries {
			if inode := was[k].Stat.Inode; inode != 0 && (now == nil || now[k] != was[k]) {
				changed[inode] = true
			}
		}
	}
	for i := range l.prev.Folders {
		f := &l.prev.Folders[i]
		for k := range f.Count {
			if e := &l.prev.Files[f.First+k]; len(changed) > 0 && changed[e.Stat.Inode] && !slices.Contains(l.entries[i], k) {
				l.entries[i] = append(l.entries[i], k)
				any = true
			}
		}
	}
	return any
}

func (s *scan) lookEntries(folder int, entries []int) finding {
	old := &s.prev.Folders[folder]
	d, err := openDir(s.abs(old.Root, old.Path), old.Path == "")
	if err != nil {
		return finding{listing: otherEntry}
	}
	defer d.close()
	slices.Sort(entries)
	return s.lookFiles(old, d, slices.Compact(entries))
}

// doubtful adds the entries that must be checked whatever the list says. An empty stat means that the hash was found to
// be wrong.
func (l *listed) doubtful() {
	for i := range l.prev.Folders {
		f := &l.prev.Folders[i]
		if f.Racy {
			l.raise(i, otherNames)
		}
		for k := range f.Count {
			if e := &l.prev.Files[f.First+k]; e.Trouble != Fine && e.Trouble != Litter || e.Racy || e.Stat == (Stat{}) {
				l.entries[i] = append(l.entries[i], k)
			}
		}
	}
}

func (l *listed) raise(folder int, to listing) {
	l.found[folder].listing = max(l.found[folder].listing, to)
}

// lookAt follows a spot from its root, as far as prev knows the folders and they still exist.
func (l *listed) lookAt(root int, p string) {
	at, ok := l.prev.folders[root][""]
	for dir := ""; ok && l.stillFolder(at); {
		if p == "" {
			l.raise(at, otherBelow)
			return
		}
		name, rest, _ := strings.Cut(p, "/")
		entry := l.entry(at, name)
		dir = join(dir, name)
		sub, isFolder := l.prev.folders[root][dir]
		if !entry && !isFolder {
			l.unknown(at, name)
		}
		at, ok, p = sub, isFolder, rest
	}
}

// entry adds an entry of prev, and reports whether prev has it.
func (l *listed) entry(folder int, name string) bool {
	f := &l.prev.Folders[folder]
	k, ok := slices.BinarySearchFunc(l.prev.Files[f.First:f.First+f.Count], name, func(e File, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return false
	}
	if l.prev.Files[f.First+k].Trouble == NotUTF8 {
		l.raise(folder, otherNames) // it has no stat to compare
	}
	l.entries[folder] = append(l.entries[folder], k)
	return true
}

// stillFolder reports whether a folder of prev exists and is not a link.
func (l *listed) stillFolder(i int) bool {
	if stands, ok := l.stands[i]; ok {
		return stands
	}
	f := &l.prev.Folders[i]
	d, err := openDir(l.abs(f.Root, f.Path), f.Path == "")
	if err != nil {
		l.raise(i, otherEntry)
	} else {
		d.close()
	}
	l.stands[i] = err == nil
	return err == nil
}

// unknown checks an entry that prev does not have. If it exists, but has another name in the listing, the file system
// has several names for one entry, for example in different case, and the spot may be anywhere below.
func (l *listed) unknown(folder int, name string) {
	f := &l.prev.Folders[folder]
	abs := l.abs(f.Root, f.Path)
	if _, err := os.Lstat(abs + "/" + name); err != nil {
		return
	}
	l.raise(folder, otherNames)
	names, ok := l.names[folder]
	if !ok {
		names = map[string]bool{}
		if entries, err := os.ReadDir(abs); err == nil {
			for _, e := range entries {
				names[e.Name()] = true
			}
		}
		l.names[folder] = names
	}
	if !names[name] {
		l.raise(folder, otherBelow)
	}
}
