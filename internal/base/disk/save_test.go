package disk_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

func wants(t *testing.T, file, text string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("%s: %q, %v", file, got, err)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kiln.ids")
	for _, text := range []string{"first", "second", ""} {
		if err := disk.Save(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		wants(t, file, text)
	}
	for _, mode := range []os.FileMode{0o640, 0o755, 0o444} {
		if runtime.GOOS == "windows" {
			mode = mode&0o200 | mode&0o200>>3 | mode&0o200>>6 | 0o444
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if err := disk.Save(file, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%v, not %v: %v", info.Mode(), mode, err)
		}
	}
	begun := time.Now()
	if err := disk.SaveAged(file, []byte("aged"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.ModTime().Sub(begun).Round(time.Minute) != -time.Hour {
		t.Errorf("the file is of %v, not an hour before %v: %v", info.ModTime(), begun, err)
	}
	if err := disk.Save(dir, nil); err == nil {
		t.Error("a folder was replaced")
	}
	if err := disk.Save(filepath.Join(dir, "none", "x"), nil); err == nil {
		t.Error("a file in no folder was written")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left: %v", got)
	}
}

// TestSaveThroughLinks: a link stays what it is, and so does where it leads to, be it there or not.
func TestSaveThroughLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, name := range []string{"project", "common/a/b"} {
		if err := os.MkdirAll(at(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write(t, at("common/kiln.ids"), "old", 0o600)
	for link, to := range map[string]string{
		"project/kiln.ids": "../common/again", "common/again": "kiln.ids", // of a link
		"project/into": "../common/a/b", "project/up": "into/../../new", // ".." of where a link leads to
		"project/round": "round",
	} {
		if err := os.Symlink(filepath.FromSlash(to), at(link)); err != nil {
			t.Skip(err)
		}
		if info, err := os.Lstat(at(link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Skip("no links are made here") // under Wine
		}
	}
	for file, real := range map[string]string{"project/kiln.ids": "common/kiln.ids", "project/up": "common/new"} {
		if err := disk.Save(at(file), []byte(file)); err != nil {
			t.Fatal(err)
		}
		wants(t, at(real), file)
		if info, err := os.Lstat(at(file)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", file, err)
		}
	}
	if info, err := os.Stat(at("common/kiln.ids")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := disk.Save(at("project/round"), nil); err == nil {
		t.Error("a link to itself was replaced")
	}
}

// TestLeft: what a process left that is no more goes; what another one is writing, and what is not Kiln's, stays.
func TestLeft(t *testing.T) {
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "kiln.ids")
	temp := func(pid int, name string) string {
		name = fmt.Sprintf(".kiln-%d-%s", pid, name)
		write(t, filepath.Join(dir, name), "half", 0o666)
		return name
	}
	temp(gone.Process.Pid, "kiln.ids")
	write(t, disk.Temp(file), "of this process", 0o444) // whose number was another's
	write(t, filepath.Join(dir, ".kiln-x-kiln.ids"), "somebody's", 0o666)
	want := []string{temp(gone.Process.Pid, "other"), ".kiln-x-kiln.ids", "kiln.ids"}
	if other := os.Getppid(); other > 0 { // Wine does not tell
		want = append(want, temp(other, "kiln.ids"))
	}
	slices.Sort(want)
	if err := disk.Save(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	wants(t, file, "new")
}
