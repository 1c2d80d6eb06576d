package cas

import (
	"os"

	"golang.org/x/sys/unix"
)

// reflink makes dst a copy that shares src's blocks until one of them is written to. It fails with
// fs.ErrExist if dst exists.
func reflink(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(out.Fd()), int(in.Fd()))
	if err == nil {
		err = readOnly(out)
	}
	out.Close()
	if err != nil {
		if rerr := os.Remove(dst); rerr != nil {
			return rerr
		}
		return &os.PathError{Op: "reflink", Path: dst, Err: err}
	}
	return nil
}
