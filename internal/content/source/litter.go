package source

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// litterKind is a kind of files that systems and programs leave beside others. The name only makes a file a candidate: its
// content decides, and for notes about another file also that this is there.
type litterKind struct {
	name   string // a pattern, see path.Match
	begins string // the file begins with this
	of     string // the extension that makes a file's name that of the notes about it; "": the file is not about another one
	lock   bool   // a lock file of Microsoft Office
	What   string
}

var litterKinds = []litterKind{
	{name: "._*", begins: "\x00\x05\x16\x07", What: "AppleDouble, written by macOS on disks of other systems"}, // RFC 1740, 4
	{name: "*.meta", begins: "fileFormatVersion:", of: ".meta", What: "Unity's notes about the file beside it"},
	{name: "*.import", begins: "[remap]", of: ".import", What: "Godot's notes about the file beside it"},
	{name: "*.uid", begins: "uid://", of: ".uid", What: "Godot's identity of the file beside it"},
	{name: "*:Zone.Identifier", begins: "[ZoneTransfer]", What: "where Windows downloaded the file beside it from"},
	{name: "~$*", lock: true, What: "a lock file of an office program"},
	{name: "Icon\r", What: "the icon of a folder, written by macOS"},
}

// maxLockFile is the size of the lock files of Word, Excel and PowerPoint, at most: the user's name, which begins with its
// length, in two encodings.
const maxLockFile = 165

// candidate returns the kind whose names include this one, or nil.
func candidate(name string) *litterKind {
	for i := range litterKinds {
		if ok, _ := path.Match(litterKinds[i].name, name); ok {
			return &litterKinds[i]
		}
	}
	return nil
}

// litter returns the kind of litter that a file is, or nil. A file that cannot be read is none: reading it reports the error.
func litter(abs, name string, size int64) *litterKind {
	k := candidate(name)
	switch {
	case k == nil, size < int64(len(k.begins)), k.lock && (size == 0 || size > maxLockFile):
		return nil
	case k.of != "":
		if _, err := os.Lstat(strings.TrimSuffix(abs, k.of)); errors.Is(err, fs.ErrNotExist) || strings.TrimSuffix(name, k.of) == "" {
			return nil
		}
	}
	if k.begins == "" && !k.lock {
		return k
	}
	f, err := disk.Open(abs)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, max(1, len(k.begins)))
	if _, err := io.ReadFull(f, head); err != nil {
		return nil
	}
	if k.lock && int64(head[0]) < size && head[0] > 0 || !k.lock && bytes.Equal(head, []byte(k.begins)) {
		return k
	}
	return nil
}

// NeverContent reports whether an entry of a folder is never an asset, whatever a project says: by its name, or by its content.
func NeverContent(abs string, isDir bool) bool {
	name := filepath.Base(abs)
	if ignored(basePatterns(nil), name, isDir) {
		return true
	}
	if isDir || candidate(name) == nil {
		return false
	}
	info, err := os.Stat(abs)
	return err == nil && litter(abs, name, info.Size()) != nil
}

// Passed is an entry that a scan passes over.
type Passed struct {
	Root    int
	Path    string // below the root
	Folder  bool   // with all that is in it
	Because string // "" if a pattern says so
	Pattern string // as written
	File    string // where the pattern stands: a path below the root, or "" for Kiln's own and the project's
	Project bool   // it is the project file's
}

// PassedOver lists what a scan passes over, by root and path.
func PassedOver(o Options) ([]Passed, error) {
	var mu sync.Mutex
	var all []Passed
	o.Passed = func(p Passed) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p)
	}
	_, _, _, err := Scan(nil, o)
	slices.SortFunc(all, func(a, b Passed) int { return cmp.Or(cmp.Compare(a.Root, b.Root), cmp.Compare(a.Path, b.Path)) })
	return all, err
}

// pass reports an entry that is skipped, if somebody wants to know.
func (s *scan) pass(f *folder, name string, isDir bool, because string) {
	if s.o.Passed == nil {
		return
	}
	p := Passed{Root: f.Root, Path: join(f.Path, name), Folder: isDir, Because: because}
	if because == "" {
		by := decides(f.ignore, p.Path, isDir)
		if by == nil {
			return
		}
		p.Pattern, p.File, p.Project = by.text, by.file, by.project
	}
	s.o.Passed(p)
}
