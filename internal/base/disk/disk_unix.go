//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Replace gives the file from the name to, whose file goes.
func Replace(from, to string) error { return os.Rename(from, to) }

// Remove removes a file, or a folder that is empty.
func Remove(path string) error { return os.Remove(path) }

// Open opens a file for reading. Others may replace and remove it meanwhile.
func Open(path string) (*os.File, error) { return open(path, os.O_RDONLY, 0) }

// Create makes a file that is not there yet, to be read and written.
func Create(path string, perm fs.FileMode) (*os.File, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, uint32(perm.Perm()))
}

// open is os.OpenFile without asking whether Go's poller can watch the file: that takes five system calls, and of regular files the
// answer is no.
func open(path string, flags int, perm uint32) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, perm)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), path), nil
		case syscall.EINTR: // a file system of the network: go.dev/issue/11180
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// ReadFile reads a file whole. Others may replace and remove it meanwhile.
func ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// Full tells whether an error says that there is no room.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// InUse tells whether an error says that another program has the file open, which stops nobody here.
func InUse(error) bool { return false }

// SyncFolder waits until the names in a folder are on the disk. Some file systems cannot, or keep names safe by themselves, and some
// folders may be written and not read: then it is as good as it gets.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// alive tells whether there is a process of that number.
func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) != syscall.ESRCH }
