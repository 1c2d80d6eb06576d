package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// TestBounds: links that stay are followed, others are not, and nothing is made through them.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	root, out := filepath.Join(dir, "root"), filepath.Join(dir, "out")
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for _, d := range []string{at("real/deep"), at(".git/hooks"), out} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"in": "real", "out": "../out", "abs": out, "back": "../root/real", "loop": "loop", "ring": "ring2", "ring2": "ring",
		"gone": "nothing", "lost": "../out/nothing",
		"hooks": ".git/hooks", "real/up": "..", "real/far": "../../out", "two": "out", "way": "real/far/x",
	} {
		if err := os.Symlink(filepath.FromSlash(to), at(name)); err != nil {
			t.Skip("there are no symbolic links")
		}
	}
	write(t, at("file"), "", 0o666)
	within := map[string]bool{
		"new/a": true, "in": true, "in/deep/new": true, "back/deep": true, "real/up/real/deep": true, "gone": true, "file": true,
		"out": false, "out/x": false, "abs": false, "loop": false, "ring/x": false, "lost": false, "hooks": false, "hooks/x": false,
		"real/far": false, "in/far/x": false, "two/x": false, "way": false, ".git": false, "new/.GIT/x": false, "new/.git": false,
	}
	b := disk.NewBounds(root, nil)
	for name, want := range within {
		err := b.File(at(name))
		if _, link := disk.LinkError(err); (link == nil) != want || (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.MkdirAll(at(name)); !want && err == nil {
			t.Errorf("%s was made", name)
		}
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("made elsewhere: %v, %v", left, err)
	}
	if info, err := os.Stat(at("in/deep/new")); err != nil || !info.IsDir() {
		t.Error(err)
	}
	if err := b.MkdirAll(at("file/x")); err == nil {
		t.Error("a folder in a file")
	}
	if err := b.File(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a path that is not below the root")
	}

	b = disk.NewBounds(root, []string{dir})
	for _, name := range []string{"out/x", "abs", "lost", "two/x", "real/far"} {
		if err := b.File(at(name)); err != nil {
			t.Errorf("allowed: %v", err)
		}
	}
	if err := b.File(at("hooks")); err == nil {
		t.Error("version control was allowed")
	}
	if err := disk.NewBounds(at("in"), nil).Itself(); err == nil {
		t.Error("a root that is a link was not noticed")
	}
	if err := disk.NewBounds(at("abs"), []string{dir}).Itself(); err != nil {
		t.Error(err)
	}
}

// TestBoundsForget: what was checked counts until it is forgotten.
func TestBoundsForget(t *testing.T) {
	dir := t.TempDir()
	b := disk.NewBounds(filepath.Join(dir, "root"), nil)
	sub := filepath.Join(b.Root(), "sub")
	if err := b.MkdirAll(sub); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(sub); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(dir, sub) != nil {
		t.Skip("there are no symbolic links")
	}
	b.Forget()
	if err := b.MkdirAll(filepath.Join(sub, "x")); err == nil {
		t.Error("a link was followed")
	}
}

func TestVersionControl(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, ".git ": true, ".git..": true, ".git::$INDEX_ALLOCATION": true, "GIT~1": true,
		".g\u200cit": true, "\u200c.git": true,
		".hg": true, ".svn": true, ".jj": true, ".p4": true, "_darcs": true, ".pijul": true,
		"": false, ".": false, "..": false, ".gitignore": false, ".github": false, "git": false, "a.git": false, "x": false, "é": false,
	} {
		if got := disk.VersionControl(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
