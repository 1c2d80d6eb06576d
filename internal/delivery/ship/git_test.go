package ship

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a git repository with files, and an index of a version.
func repository(t *testing.T, version string, files ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "index.version=" + version}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	for _, f := range files {
		file := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(f), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run("add", ".")
	run("update-index", "--index-version", version)
	if version == "3" {
		run("update-index", "--skip-worktree", "a/b.txt") // what version 3 is for
	}
	return dir
}

// TestInGit: a file is found in indexes as git writes them, from folders below, and from a worktree.
func TestInGit(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		dir := repository(t, version, "a/b.txt", "a/bb.txt", "game/assets/knight.png", "game/kiln.ids", "game/kiln.toml", "kiln.idsx")
		for at, want := range map[string]bool{"game": true, ".": false, "a": false, "game/assets": false} {
			if got := inGit(filepath.Join(dir, at), "kiln.ids"); got != want {
				t.Errorf("version %s, %s: %v", version, at, got)
			}
		}
		index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(index[4:]); string('0'+rune(got)) != version {
			t.Errorf("git wrote version %d, not %s", got, version)
		}
		for n := range index { // cut off anywhere
			if indexed(index[:n], "nothing") {
				t.Errorf("%d bytes of it have a file", n)
			}
		}
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, ".git"), []byte("gitdir: "+filepath.ToSlash(filepath.Join(dir, ".git"))+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(other, "game"), 0o777); err != nil {
			t.Fatal(err)
		}
		if !inGit(filepath.Join(other, "game"), "kiln.ids") {
			t.Errorf("version %s: not found from another working tree", version)
		}
	}
	if inGit(t.TempDir(), "kiln.ids") {
		t.Error("a folder without git has it")
	}
}

func FuzzIndexed(f *testing.F) {
	entry := func(name string) string { return strings.Repeat("\x00", 61) + string(rune(len(name))) + name }
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"+entry("kiln.ids")+"\x00\x00"), "kiln.ids")
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x02"+entry("\x00kiln\x00")+entry("\x02ln.ids\x00")), "kiln.ids")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		if indexed(data, path) && path != "" && !strings.Contains(string(data), path[len(path)-1:]) {
			t.Errorf("a path that is not in the data")
		}
	})
}
