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

// OpenFile is os.OpenFile for a file in whose place anybody may have put anything.
func OpenFile(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return open(path, flags, uint32(perm.Perm()))
}

// open is os.OpenFile without asking whether Go's poller can watch the file: that takes five system calls, and of regular files the
// answer is no. It does not wait: to open a pipe would last until another program writes to it.
func open(path string, flags int, perm uint32) (*os.File, error) {
	flags |= syscall.O_CLOEXEC | syscall.O_NONBLOCK
	for {
		fd, err := syscall.Open(path, flags, perm)
		switch err {
		case nil:
			if err := isFile(fd); err != nil {
				syscall.Close(fd)
				return nil, &os.PathError{Op: "open", Path: path, Err: err}
			}
			return os.NewFile(uintptr(fd), path), nil
		case syscall.EINTR: // a file system of the network: go.dev/issue/11180
		case syscall.EAGAIN: // a file server has a lease on the file, and has to be waited for
			flags &^= syscall.O_NONBLOCK
		case syscall.ENXIO: // a socket, or a pipe that would be written to
			return nil, &os.PathError{Op: "open", Path: path, Err: ErrNotAFile}
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// isFile returns an error if a descriptor is of a pipe or a device. What is read of a folder is an error of its own.
func isFile(fd int) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & syscall.S_IFMT; kind != syscall.S_IFREG && kind != syscall.S_IFDIR {
		return ErrNotAFile
	}
	return syscall.SetNonblock(fd, false) // else Go asks its poller
}

// Full tells whether an error says that there is no room.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Passing tells whether an error is of what the machine has left, of its disks or of a network's, and not of what was asked: the same may
// work later.
func Passing(err error) bool {
	for _, no := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EROFS} {
		if errors.Is(err, no) {
			return true
		}
	}
	return Full(err)
}

// InUse tells whether an error says that another program has the file open, which stops nobody here.
func InUse(error) bool { return false }

// SyncFolder waits until the names in a folder are on the disk. Some file systems cannot, or keep names safe by themselves, and some
// folders may be written and not read: then it is as good as it gets.
func SyncFolder(dir string) error {
	f, err := Open(dir)
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
