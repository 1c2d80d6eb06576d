package local

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// alone has the test use folders of its own.
func alone(t *testing.T) (cache, temp string) {
	t.Helper()
	cache, temp = t.TempDir(), t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData", "HOME"} {
		t.Setenv(name, cache)
	}
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	return cache, temp
}

func TestFolder(t *testing.T) {
	cache, _ := alone(t)
	first, second := filepath.Join(t.TempDir(), "first"), t.TempDir()
	if err := os.Mkdir(first, 0o777); err != nil {
		t.Fatal(err)
	}
	one, two := Folder(first, "kiln"), Folder(second, "kiln")
	if !strings.HasPrefix(one, cache) || one == two || one != Folder(first+"/.", "kiln") {
		t.Errorf("%s, %s", one, two)
	}
	if all := Folder("", "wasm"); !strings.HasPrefix(all, cache) || all != Folder("", "wasm") {
		t.Error(all)
	}
	if err := os.MkdirAll(one, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	Folder(t.TempDir(), "kiln") // a new project
	if _, err := os.Stat(one); !os.IsNotExist(err) {
		t.Errorf("the folder of a project that was removed is left: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(two)); err != nil {
		t.Errorf("the folder of a project that is there: %v", err)
	}
}

// TestFolderOfOthers: a folder that others can write to, or that is a link, is not used.
func TestFolderOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders of a user are private there")
	}
	cache, temp := alone(t)
	if runtime.GOOS == "darwin" {
		cache = filepath.Join(cache, "Library", "Caches")
	}
	shared := filepath.Join(cache, name)
	if err := os.MkdirAll(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := Folder("", "kiln"); !strings.HasPrefix(got, temp) {
		t.Errorf("%q", got)
	}
	entries, err := os.ReadDir(temp)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	at := filepath.Join(temp, entries[0].Name())
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), at); err != nil {
		t.Fatal(err)
	}
	if got := Folder("", "kiln"); got != "" {
		t.Errorf("%q", got)
	}
}
