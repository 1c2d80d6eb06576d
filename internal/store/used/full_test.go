//go:build linux || darwin

package used

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHalfWritten: of what the disk took only half of nothing stays, and all of it is written with what comes next. A limit of the size
// of files ends a write in its middle, as a full disk does.
func TestHalfWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(File(dir, "pc")), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(File(dir, "pc"), bytes.Repeat([]byte("\n"), 1<<20), 0o666); err != nil { // so that the limit is far above what the test program itself writes
		t.Fatal(err)
	}
	l, play := NewLog(dir), new(Play)
	if err := l.Add("pc", play, keys("a b")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(File(dir, "pc"))
	if err != nil {
		t.Fatal(err)
	}
	const line = 36 + len(" 99\n")
	lift := limitFiles(t, len(before)+line+line/2)
	err = l.Add("pc", play, keys("c d"))
	lift()
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("a line and a half fitted, and it says %v", err)
	}
	if now, err := os.ReadFile(File(dir, "pc")); err != nil || !bytes.Equal(now, before) {
		t.Errorf("it has %q more, %v", bytes.TrimPrefix(now, before), err)
	}
	if err := l.Add("pc", play, keys("e")); err != nil {
		t.Fatal(err)
	}
	wants(t, dir, keys("a b"), keys("b c d e"))
}

// limitFiles keeps this process from writing beyond so many bytes of any file, until lift is called.
func limitFiles(t *testing.T, size int) (lift func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Skipf("the size of files cannot be limited: %v", err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	now := was
	now.Cur = uint64(size)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		signal.Reset(syscall.SIGXFSZ)
		t.Skipf("the size of files cannot be limited: %v", err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
}
