package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// pair is two read-only files, one to be put in the place of the other.
func pair(t *testing.T) (a, b string) {
	t.Helper()
	dir := t.TempDir()
	a, b = filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "new", 0o444)
	write(t, b, "old", 0o444)
	return a, b
}

// replaced wants the new one at b.
func replaced(t *testing.T, b string) {
	t.Helper()
	if got, err := os.ReadFile(b); err != nil || string(got) != "new" {
		t.Errorf("%q %v", got, err)
	}
}

func TestReadOnly(t *testing.T) {
	a, b := pair(t)
	if err := disk.Replace(a, b); err != nil {
		t.Fatal(err)
	}
	replaced(t, b)
	if err := disk.Remove(b); err != nil {
		t.Error(err)
	}
	for _, err := range []error{disk.Remove(b), disk.Replace(a, b)} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is not there: %v", err)
		}
	}
}

func TestFolderInTheWay(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "new", 0o444)
	if err := os.Mkdir(b, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := disk.Replace(a, b); !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.EISDIR) || disk.InUse(err) {
		t.Error(err)
	}
}

// TestOpenElsewhere: a file that is open is waited for where it stands in the way, and replaced at once where it does not.
func TestOpenElsewhere(t *testing.T) {
	a, b := pair(t)
	f, err := os.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = disk.Replace(a, b)
	if took := time.Since(began); err != nil && (!disk.InUse(err) || took < disk.Patience/4) {
		t.Errorf("after %v: %v", took, err)
	}
	readOnly := func() {
		t.Helper()
		if info, err := os.Lstat(b); err != nil || info.Mode()&0o200 != 0 {
			t.Errorf("it is not as it was: %v, %v", info.Mode(), err)
		}
	}
	readOnly()
	if err != nil { // it is closed while the next one waits
		if err := disk.Remove(b); !disk.InUse(err) {
			t.Errorf("removed: %v", err)
		}
		readOnly()
		time.AfterFunc(disk.Patience/10, func() { f.Close() })
		if err := disk.Replace(a, b); err != nil {
			t.Error(err)
		}
	}
	f.Close()
	replaced(t, b)
}
