package build

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h.
const immutableFlag = 0x10

// immutable makes a folder one in which nothing can be made, removed or renamed, root's rights or not, until the answer is called.
func immutable(t *testing.T, dir string) func() {
	t.Helper()
	set := func(on bool) error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		flags &^= immutableFlag
		if on {
			flags |= immutableFlag
		}
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err := set(true); err != nil {
		t.Skipf("a folder cannot be made immutable here: %v", err)
	}
	done := false
	release := func() {
		if !done {
			done = true
			if err := set(false); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(release)
	return release
}
