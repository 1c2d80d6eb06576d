package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// Replace renames from to to, and replaces a file of that name. Windows neither replaces nor removes read-only files,
// so the attribute is cleared for a moment; it belongs to the file, not to the name: other links to it are writable
// from then on.
func Replace(from, to string) error {
	old, oerr := os.Lstat(to)
	if at, err := os.Lstat(from); err == nil && oerr == nil && os.SameFile(at, old) { // a file cannot replace itself
		return errors.Join(Remove(from), os.Chmod(to, old.Mode())) // Remove has made it writable under all its names
	}
	err := os.Rename(from, to)
	if !InUse(err) {
		return err
	}
	if oerr == nil && old.IsDir() {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EISDIR} // as on other systems; Windows says "access denied"
	}
	return overwriting(to, false, func() error { return os.Rename(from, to) })
}

// Remove removes a file, or a folder that is empty.
func Remove(path string) error {
	old, oerr := os.Lstat(path) // os.Remove clears the attribute too
	err := os.Remove(path)
	if !InUse(err) {
		return err
	}
	return overwriting(path, oerr == nil && readOnly(old), func() error { return os.Remove(path) })
}

// overwriting runs Try on a file whose read-only attribute is cleared meanwhile. If that fails, the attribute is
// restored.
func overwriting(path string, was bool, do func() error) error {
	err := Try(func() error {
		if now, err := os.Lstat(path); err == nil && readOnly(now) {
			was = os.Chmod(path, 0o666) == nil || was
		}
		return do()
	})
	if err != nil && was {
		os.Chmod(path, 0o444) // it may be a blob too; if this fails, err is the better error
	}
	return err
}

func readOnly(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o200 == 0 }

// Try repeats an operation while others have the file open, for at most Patience.
func Try(do func() error) error { return try(InUse, do) }

func try(wait func(error) bool, do func() error) error {
	end := time.Now().Add(Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		err := do()
		if !wait(err) || time.Now().Add(pause).After(end) {
			return err
		}
		time.Sleep(pause)
	}
}

// Open opens a file for reading, so that it can be replaced and removed meanwhile, which os.Open prevents.
func Open(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	var h windows.Handle
	err = try(held, func() error {
		h, err = windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// Create creates a file that does not exist yet, for reading and writing.
func Create(path string, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
}

// OpenFile is os.OpenFile: there are no pipes in folders.
func OpenFile(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flags, perm)
}

// Full reports whether an error means that the disk is full.
func Full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// Passing reports whether an error is caused by the state of the machine, its disks or a network, and not by the
// request: the same may work later.
func Passing(err error) bool {
	for _, no := range []windows.Errno{windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY, windows.ERROR_TOO_MANY_OPEN_FILES,
		windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_NOT_READY, windows.ERROR_IO_DEVICE, windows.ERROR_WRITE_PROTECT} {
		if errors.Is(err, no) {
			return true
		}
	}
	return Full(err) || held(err)
}

// InUse reports whether an error means that another program has the file open. Windows sometimes says "access denied"
// then, as for a file to which the user has no right.
func InUse(err error) bool { return held(err) || errors.Is(err, fs.ErrPermission) }

func held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// SyncFolder does nothing: NTFS has a journal of names.
func SyncFolder(string) error { return nil }

// alive reports whether there is a process with this number.
func alive(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED)
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}
