package disk_test

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

func TestFull(t *testing.T) {
	for no, want := range map[syscall.Errno]bool{windows.ERROR_DISK_FULL: true, windows.ERROR_HANDLE_DISK_FULL: true, windows.ERROR_ACCESS_DENIED: false} {
		if got := disk.Full(&os.PathError{Op: "write", Path: "x", Err: no}); got != want {
			t.Errorf("%v: %t", no, got)
		}
	}
}
