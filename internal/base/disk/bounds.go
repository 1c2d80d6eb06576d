package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Bounds keeps what Kiln writes and removes below a folder. A path that a repository names may lead elsewhere through a
// link that is committed too: a symbolic link, or a junction of Windows. Bounds follows such a link only if it stays
// below the folder, or leads into a folder that the user has allowed, and never into version control.
//
// Each folder is checked once, before the first change in it, until Forget: 100,000 files in 300 folders take 300
// system calls. So this holds against a link that is there when a build begins, which is what a repository can do. It
// does not hold against a program that changes folders while Kiln works: that program can write there itself.
type Bounds struct {
	root    string
	allowed []string
	known   sync.Map // folders that exist and may be written to
}

// NewBounds returns the bounds of a folder. allowed are folders elsewhere into which links may lead.
func NewBounds(root string, allowed []string) *Bounds {
	return &Bounds{root: filepath.Clean(root), allowed: allowed}
}

// Root is the folder.
func (b *Bounds) Root() string { return b.root }

// Forget forgets what was checked. Call it before each build, and after folders were removed.
func (b *Bounds) Forget() { b.known.Clear() }

// ErrLink is the reason why a path is out of bounds, in an fs.PathError with the path of the link, or of the folder of
// version control.
type ErrLink struct {
	To      string // where the link leads; "" if the path is not a link
	Control bool   // a folder of version control
	Loop    bool   // links lead to each other
}

func (e *ErrLink) Error() string {
	switch {
	case e.Loop:
		return "this link leads to itself, or to nothing that can be found out"
	case e.Control && e.To == "":
		return "this is a name of version control, in which Kiln writes nothing"
	case e.Control:
		return "this link leads into a folder of version control, " + e.To
	}
	return "this link leads out of the project, to " + e.To
}

// LinkError returns what an error says about a link, and the path of the link; nil if it is about something else.
func LinkError(err error) (string, *ErrLink) {
	var pe *fs.PathError
	var le *ErrLink
	if errors.As(err, &pe) && errors.As(pe.Err, &le) {
		return pe.Path, le
	}
	return "", nil
}

// Folder returns an error if a folder below the root, or one above it up to the root, is out of bounds. What does not
// exist is not.
func (b *Bounds) Folder(dir string) error {
	_, err := b.folder(filepath.Clean(dir))
	return err
}

// Itself returns an error if the root is a link that leads elsewhere than the user has allowed.
func (b *Bounds) Itself() error {
	_, err := (&Bounds{allowed: b.allowed}).entry(b.root)
	return err
}

// folder is Folder, and reports whether it exists.
func (b *Bounds) folder(dir string) (there bool, err error) {
	if _, ok := b.known.Load(dir); ok || dir == b.root {
		return true, nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return false, &fs.PathError{Op: "write", Path: dir, Err: fmt.Errorf("this is not below %s", b.root)}
	}
	if there, err = b.folder(parent); err != nil {
		return false, err
	}
	if VersionControl(filepath.Base(dir)) {
		return false, &fs.PathError{Op: "write", Path: dir, Err: &ErrLink{Control: true}}
	}
	if !there {
		return false, nil
	}
	there, err = b.entry(dir)
	if there && err == nil {
		b.known.Store(dir, true)
	}
	return there, err
}

// File returns an error if a file, or a folder above it, is out of bounds. It is for files that are not replaced as a
// whole: opening one follows a link.
func (b *Bounds) File(file string) error {
	there, err := b.folder(filepath.Dir(file))
	if err != nil {
		return err
	}
	if VersionControl(filepath.Base(file)) {
		return &fs.PathError{Op: "write", Path: file, Err: &ErrLink{Control: true}}
	}
	if there {
		_, err = b.entry(file)
	}
	return err
}

// entry checks a file or a folder whose parent is within bounds, and reports whether it is a folder.
func (b *Bounds) entry(path string) (folder bool, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, nil // it is missing, or whoever writes there gets this error
	}
	if _, link, _ := readLink(path, info.Mode()); !link {
		return info.IsDir(), nil
	}
	if err := b.link(path); err != nil {
		return false, &fs.PathError{Op: "write", Path: path, Err: err}
	}
	info, err = os.Stat(path)
	return err == nil && info.IsDir(), nil
}

// link returns an error if a link leads out of bounds.
func (b *Bounds) link(path string) error {
	to, err := Target(path)
	if err != nil {
		return &ErrLink{Loop: true}
	}
	for _, folder := range append([]string{b.root}, b.allowed...) {
		if folder == "" {
			continue
		}
		real, err := Target(folder)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(real, to)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		for _, name := range strings.Split(filepath.ToSlash(rel), "/") {
			if VersionControl(name) {
				return &ErrLink{To: rel, Control: true}
			}
		}
		return nil
	}
	return &ErrLink{To: to}
}

// MkdirAll creates a folder below the root, and those above it.
func (b *Bounds) MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	if there, err := b.folder(dir); there || err != nil {
		if dir == b.root && err == nil {
			return os.MkdirAll(dir, 0o777)
		}
		return err
	}
	if err := b.MkdirAll(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := b.folder(dir) // another goroutine may have made it, or it is a file or a link to nothing
	if err == nil && !there {
		_, err = os.Stat(dir)
		if err == nil {
			err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
	}
	return err
}

// readLink returns where a link leads, and whether an entry of a folder is one: a symbolic link or a junction. Go calls
// junctions irregular, and so the files that a cloud has not yet sent to Windows, which are no links.
func readLink(path string, mode fs.FileMode) (to string, link bool, err error) {
	if mode&(fs.ModeSymlink|fs.ModeIrregular) == 0 {
		return "", false, nil
	}
	if to, err = os.Readlink(path); err != nil && mode&fs.ModeSymlink == 0 {
		return "", false, nil
	}
	return to, true, err
}

// ForWriting is File, and creates the folder of the file.
func (b *Bounds) ForWriting(file string) error {
	if err := b.File(file); err != nil {
		return err
	}
	return b.MkdirAll(filepath.Dir(file))
}

// ForPlacing creates the folder in which a file is put as a whole, replacing what has its name, which may be a link.
func (b *Bounds) ForPlacing(file string) error {
	if VersionControl(filepath.Base(file)) {
		return &fs.PathError{Op: "write", Path: file, Err: &ErrLink{Control: true}}
	}
	return b.MkdirAll(filepath.Dir(file))
}

// manyLinks is how many links may follow each other, as on Linux.
const manyLinks = 40

// Target is where a path leads, all links in it resolved. What does not exist stays as it is written.
func Target(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	todo := splitPath(path)
	at := filepath.VolumeName(path) + string(filepath.Separator)
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		to, link := "", false
		if info, lerr := os.Lstat(next); lerr == nil {
			to, link, err = readLink(next, info.Mode())
		}
		if link {
			links++
		}
		if err != nil || links > manyLinks {
			return "", cmp.Or(err, error(&fs.PathError{Op: "readlink", Path: path, Err: errors.New("too many levels of symbolic links")}))
		}
		if !link {
			at = next
			continue
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + string(filepath.Separator)
		}
		todo = append(splitPath(to), todo...)
	}
	return at, nil
}

// splitPath returns the names in a path, without its volume.
func splitPath(path string) []string {
	return strings.Split(filepath.ToSlash(path[len(filepath.VolumeName(path)):]), "/")
}

// control are the names that systems of version control give to folders of their own, and files that stand for one.
var control = map[string]bool{
	".git": true, ".hg": true, ".svn": true, "_svn": true, ".jj": true, ".sl": true, ".bzr": true, "_darcs": true,
	".pijul": true, ".p4": true, ".p4root": true, ".plastic": true, ".fslckout": true, "_fossil_": true, "git~1": true,
}

// longestControl is the length of the longest of them.
const longestControl = len(".fslckout")

// VersionControl reports whether a name is one of version control, on any system: some ignore case, dots and spaces at
// the end, what follows a colon, or characters that are not seen.
func VersionControl(name string) bool {
	if name == "" || name[0] < 0x80 && strings.IndexByte("._gG", name[0]) < 0 {
		return false
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name)
	name = strings.TrimRight(name, ". ")
	return len(name) <= longestControl && control[strings.ToLower(name)]
}
