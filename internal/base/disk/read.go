package disk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNotAFile is the error of Open, OpenFile and the read functions for a pipe, a socket or a
// device.
var ErrNotAFile = errors.New("this is a pipe, a socket or a device, not a file")

// IsFile returns ErrNotAFile for a pipe, a socket or a device, which another package must not open.
func IsFile(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: ErrNotAFile}
	}
	return nil
}

// ReadFile reads a whole file. Others can replace and remove it meanwhile.
func ReadFile(path string) ([]byte, error) { return ReadText(path, 0) }

// ReadText is ReadFile for at most max bytes and one more; max 0 means no limit.
func ReadText(path string, max int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	r := io.Reader(f)
	if max > 0 {
		r = io.LimitReader(f, max+1)
	}
	if info.Mode().IsRegular() && (max == 0 || info.Size() <= max) {
		all.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err = all.ReadFrom(r)
	return all.Bytes(), err
}
