//go:build unix

package folder

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// TestModeOfFolder: what is made in a folder has the mode of the folder, whatever the umask of the user.
func TestModeOfFolder(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	key := share.Key{1}
	if err := f.Put(context.Background(), key, []byte("value"), nil); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{
		f.dir: 0o770, filepath.Join(f.dir, "tmp"): 0o770, filepath.Dir(f.path("entries", key.String())): 0o770,
		f.path("entries", key.String()): 0o660,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, not %v; %v", path, info.Mode(), want, err)
		}
	}
}

// TestReadersTouch: what is read is used, also by those who only read.
func TestReadersTouch(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	key := share.Key{1}
	if err := f.Put(context.Background(), key, []byte("value"), nil); err != nil {
		t.Fatal(err)
	}
	path, past := f.path("entries", key.String()), time.Now().Add(-48*time.Hour)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(dir, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Get(context.Background(), key); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > 24*time.Hour {
		t.Errorf("the use was not recorded: %v, %v", info.ModTime(), err)
	}
}
