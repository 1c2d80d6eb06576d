//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Replace renames from to to, and replaces a file of that name.
func Replace(from, to string) error { return os.Rename(from, to) }

// Remove removes a file, or a folder that is empty.
func Remove(path string) error { return os.Remove(path) }

// Open opens a file for reading. Others can replace and remove it meanwhile.
func Open(path string) (*os.File, error) { return open(path, os.O_RDONLY, 0) }

// Create creates a file that does not exist yet, for reading and writing.
func Create(path string, perm fs.FileMode) (*os.File, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, uint32(perm.Perm()))
}

// OpenFile is os.OpenFile for a path at which there may be something other than a file.
func OpenFile(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return open(path, flags, uint32(perm.Perm()))
}

// open is os.OpenFile without asking whether Go's poller can watch the file: that takes five system calls, and for
// regular files the answer is no. It does not block: opening a pipe would wait for a writer.
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
		case syscall.EINTR: // a network file system: go.dev/issue/11180
		case syscall.EAGAIN: // a file server has a lease on the file, so it is tried again
			flags &^= syscall.O_NONBLOCK
		case syscall.ENXIO: // a socket, or a pipe without a reader
			return nil, &os.PathError{Op: "open", Path: path, Err: ErrNotAFile}
		default:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// isFile returns an error for the descriptor of a pipe or a device. Reading from a folder fails anyway.
func isFile(fd int) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & syscall.S_IFMT; kind != syscall.S_IFREG && kind != syscall.S_IFDIR {
		return ErrNotAFile
	}
	return syscall.SetNonblock(fd, false) // otherwise Go asks its poller
}

// Full reports whether an error means that the disk is full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Passing reports whether an error is caused by the state of the machine, its disks or a network, and not by the
// request: the same may work later.
func Passing(err error) bool {
	for _, no := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EROFS} {
		if errors.Is(err, no) {
			return true
		}
	}
	return Full(err)
}

// InUse reports whether an error means that another program has the file open, which has no effect
// here.
func InUse(error) bool { return false }

// SyncFolder waits until the names in a folder are on the disk. Errors of file systems that do not support it, or do
// not need it, and of folders that cannot be read are ignored.
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

// alive reports whether there is a process with this number.
func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) != syscall.ESRCH }
