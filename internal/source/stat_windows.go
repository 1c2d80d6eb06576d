package source

import (
	"io/fs"
	"os"
	"syscall"
)

// dir is a folder. Windows has no stat relative to an open folder in the standard
// library, so files are found by path, which costs more.
type dir struct{ path string }

// openDir opens a folder. Unless follow is set, a symbolic link to one is an error.
func openDir(path string, follow bool) (dir, error) {
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	info, err := stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return dir{path}, err
}

func (d dir) close() {}

func (d dir) self() (Stat, error) {
	st, _, err := StatPath(d.path)
	return st, err
}

func (d dir) list() ([]fs.DirEntry, error) { return os.ReadDir(d.path) }

// stat does not follow symbolic links.
func (d dir) stat(name string) (Stat, fs.FileMode, error) {
	info, err := os.Lstat(d.path + `\` + name)
	if err != nil {
		return Stat{}, 0, err
	}
	return statOf(info), info.Mode().Type(), nil
}

func statOf(info fs.FileInfo) Stat {
	return Stat{Size: info.Size(), MTime: info.ModTime().UnixNano()}
}

// StatFile is the stat of an open file, with its file index as inode.
func StatFile(f *os.File) (Stat, error) {
	info, err := f.Stat()
	if err != nil {
		return Stat{}, err
	}
	return statOf(info), nil
}

// StatPath is the stat of a path; links are followed.
func StatPath(path string) (Stat, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Stat{}, 0, err
	}
	return statOf(info), info.Mode().Type(), nil
}
