package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNotAFile is what ReadText says of a pipe, a socket or a device.
var ErrNotAFile = errors.New("this is a pipe, a socket or a device, not a file")

// ReadText reads a file in whose place anybody may have put anything. To open a pipe would wait for somebody who writes to it. No more than
// max bytes and one are read; max 0 is no limit.
func ReadText(file string, max int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // what is read of a folder is an error of its own
		return nil, &fs.PathError{Op: "read", Path: file, Err: ErrNotAFile}
	}
	if max == 0 {
		return os.ReadFile(file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max+1))
}
