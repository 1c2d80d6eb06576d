//go:build unix

package source

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// dir is an open folder. Its files are looked up by name, not by a path from the root: 0.7 µs a stat
// instead of 0.95 with os.Lstat.
type dir struct{ f *os.File }

// openDir opens a folder. Without follow, a symbolic link to a folder is an error.
func openDir(path string, follow bool) (dir, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	return dir{f}, err
}

func (d dir) close() { d.f.Close() }

// self is the folder's own stat.
func (d dir) self() (Stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.f.Fd()), &st); err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: d.f.Name(), Err: err}
	}
	return statOf(&st), nil
}

// list lists the folder.
func (d dir) list() ([]fs.DirEntry, error) { return d.f.ReadDir(-1) }

// stat does not follow symbolic links.
func (d dir) stat(name string) (Stat, fs.FileMode, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(d.f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Stat{}, 0, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		return statOf(&st), modeOf(uint32(st.Mode)), nil
	}
}

func statOf(st *unix.Stat_t) Stat {
	return Stat{Size: st.Size, MTime: st.Mtim.Nano(), CTime: st.Ctim.Nano(), Inode: uint64(st.Ino)}
}

func modeOf(m uint32) fs.FileMode {
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}

// StatFile returns the stat of an open file.
func StatFile(f *os.File) (Stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return statOf(&st), nil
}

// StatPath returns the stat of a path; links are followed.
func StatPath(path string) (Stat, fs.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Stat{}, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return statOf(&st), modeOf(uint32(st.Mode)), nil
}
