package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// TestLinkedTool: a program that gets another name while jobs run, as backups give it, is what it was. One that is written to, or
// replaced, is not.
func TestLinkedTool(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		do   func(file string) error
		same bool
	}{
		"linked": {func(file string) error { return os.Link(file, file+".link") }, true},
		"mode":   {func(file string) error { return os.Chmod(file, 0o755) }, true},
		"written": {func(file string) error {
			return errors.Join(os.WriteFile(file, []byte("2"), 0o777), os.Chtimes(file, old, old))
		}, false},
		"replaced": {func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("1"), 0o777), os.Rename(file+".new", file))
		}, false},
		"removed": {os.Remove, false},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "tool")
		if err := errors.Join(os.WriteFile(file, []byte("1"), 0o777), os.Chtimes(file, old, old)); err != nil {
			t.Fatal(err)
		}
		w := &World{dir: dir, Tools: map[string]*Tool{}}
		found := w.tool(file)
		time.Sleep(20 * time.Millisecond) // a change time of its own
		if err := tt.do(file); err != nil {
			t.Fatal(err)
		}
		if got := w.sameTool(file, found); got != tt.same || (w.Changed == "") != tt.same {
			t.Errorf("%s: same %t, changed %q", name, got, w.Changed)
		}
	}
}

// TestToolSubjects: what a folder, a list of its names and an entry of the loader's cache are worth.
func TestToolSubjects(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	mkdir := func(name string) error { return os.Mkdir(at(name), 0o777) }
	put := func(name, text string) error { return os.WriteFile(at(name), []byte(text), 0o666) }
	hash := func(name string) digest.Hash {
		w := &World{dir: dir, hidden: []string{at("d/build")}, Tools: map[string]*Tool{}}
		return w.tool(name).Hash
	}
	if err := mkdir("d"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name    string
		do      func() error
		changes string // of which subjects
	}{
		{"nothing", func() error { return nil }, ""},
		{"an empty folder turns up", func() error { return mkdir("x") }, "x"},
		{"a file in it", func() error { return put("x/a", "") }, ""},
		{"it becomes a file", func() error { return errors.Join(os.RemoveAll(at("x")), put("x", "file")) }, "x"},
		{"a file is added", func() error { return put("d/a", "1") }, "d/"},
		{"it is edited", func() error { return put("d/a", "2") }, ""},
		{"it becomes a folder", func() error { return errors.Join(os.Remove(at("d/a")), mkdir("d/a")) }, "d/"},
		{"Kiln's own comes", func() error { return mkdir("d/build") }, ""},
		{"an ignored file comes", func() error { return put("d/a~", "") }, "d/"},
		{"the folder goes", func() error { return os.RemoveAll(at("d")) }, "d d/"},
	} {
		subjects := []string{"x", "d", "d/"}
		before := map[string]digest.Hash{}
		for _, s := range subjects {
			before[s] = hash(dir + "/" + s)
		}
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		var changed []string
		for _, s := range subjects {
			if hash(dir+"/"+s) != before[s] {
				changed = append(changed, s)
			}
		}
		if got := strings.Join(changed, " "); got != step.changes {
			t.Errorf("%s: %q changed, want %q", step.name, got, step.changes)
		}
	}
}

// TestToolThatChangesMeanwhile: a job that comes later in the build has seen what is there then, and the next build looks at all of them.
func TestToolThatChangesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	w := &World{dir: dir, Tools: map[string]*Tool{}}
	file := filepath.Join(dir, "font")
	missing := w.tool(file).Hash
	if err := os.WriteFile(file, []byte("1"), 0o666); err != nil {
		t.Fatal(err)
	}
	one := w.tool(file).Hash
	if w.tool(file).Hash != one || w.Changed == "" {
		t.Error("the same file is another")
	}
	if err := os.WriteFile(file, []byte("another"), 0o666); err != nil {
		t.Fatal(err)
	}
	if two := w.tool(file).Hash; !missing.IsZero() || one.IsZero() || two == one {
		t.Errorf("%v, %v, %v", missing, one, two)
	}
}
