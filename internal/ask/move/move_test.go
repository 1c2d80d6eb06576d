package move

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// opener writes a project from files in txtar form, and returns a function that opens it.
func opener(t *testing.T, files string) (dir string, open func() (*build.Project, error)) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, f.Data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() (*build.Project, error) {
		return build.Open(workspace.Config{Dir: dir, Version: "test", Processors: processors.All()})
	}
}

// uuids returns the UUIDs of all assets by path.
func uuids(t *testing.T, open func() (*build.Project, error)) map[string]string {
	t.Helper()
	p, err := open()
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Look(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range v.Assets {
		all[v.Assets[i].Path] = v.Assets[i].UUID
	}
	return all
}

const twoRoots = `
-- kiln.toml --
[project]
name = "test"
roots = ["assets", "mod"]
[[rules]]
match = "art/tank.txt"
id = "tank"
[[rules]]
match = "art/ui/"
processor = "atlas"
[[parcels]]
name = "all"
assets = ["art/**", "other.txt"]
-- assets/art/tank.txt --
tank
-- assets/art/deep/rules.toml --
[[rules]]
match = "pinned.txt"
uuid = "0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"
-- assets/art/deep/pinned.txt --
p
-- assets/art/deep/free.txt --
f
-- assets/art/ui/note.txt --
n
-- mod/art/tank.txt --
tank of the mod
-- assets/other.txt --
o
`

// TestMove moves a folder that two roots have, and moves it back: every asset keeps its UUID.
func TestMove(t *testing.T) {
	dir, open := opener(t, twoRoots)
	before := uuids(t, open)
	move := func(from, to string) Result {
		t.Helper()
		p, err := open()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Move(context.Background(), p, open, from, to, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := move("art", "new/graphics"); r.Assets != 5 || r.Pinned != 3 || r.Files != 1 {
		t.Errorf("got %+v", r)
	}
	after := uuids(t, open)
	for name, want := range before {
		if rest, ok := strings.CutPrefix(name, "art"); ok {
			name = "new/graphics" + rest
		}
		if after[name] != want {
			t.Errorf("%s had %s, and has %q", name, want, after[name])
		}
	}
	for name, want := range map[string]string{
		"mod/new/graphics/tank.txt": "tank of the mod\n",
		"kiln.toml":                 strings.NewReplacer(`"art/`, `"new/graphics/`).Replace(strings.SplitAfter(twoRoots, "-- kiln.toml --\n")[1][:strings.Index(strings.SplitAfter(twoRoots, "-- kiln.toml --\n")[1], "-- assets")]),
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if r := move("assets/new/graphics", "art"); r.Assets != 5 || r.Pinned != 0 {
		t.Errorf("back: got %+v", r)
	}
	if after := uuids(t, open); len(after) != len(before) || after["art/deep/free.txt"] != before["art/deep/free.txt"] {
		t.Errorf("back: got %v", after)
	}
}

// TestRefused checks that a refused move changes nothing.
func TestRefused(t *testing.T) {
	dir, open := opener(t, twoRoots)
	p, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range [][3]string{
		{"nothing", "x", "there is no source file or folder"},
		{"art", "art/deeper", "cannot become"},
		{"art", "other.txt", "is there already"},
		{"art", "../art", "is not a path below"},
		{".", "x", "is not a path below"},
		{"art/deep/rules.toml", "x.toml", "is not content"},
		{"art", "a[r]t", "rules name"},
		{"art/deep", "art/d[e]ep", ""}, // the rules inside the folder name its files, so the folder's name may contain any character
		{"art/d[e]ep/free.txt", "art/d[e]ep/f.txt", ""},
		{"other.txt", "o*.txt", "could not be pinned"},
	} {
		_, err := Move(context.Background(), p, open, tt[0], tt[1], Options{})
		var refused *Refused
		if tt[2] == "" {
			if err != nil {
				t.Errorf("%s to %s: %v", tt[0], tt[1], err)
			}
		} else if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt[2]) {
			t.Errorf("%s to %s: %v, not %q", tt[0], tt[1], err, tt[2])
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "assets/other.txt")); err != nil {
		t.Error(err)
	}
}

// TestUndone checks that everything is restored if some rules cannot be updated, or the move is interrupted.
func TestUndone(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		do             func(t *testing.T, dir string, cancel func(), open *func() (*build.Project, error))
		want           string
	}{
		{"the project file cannot be written", "art", "new/graphics", func(t *testing.T, dir string, _ func(), _ *func() (*build.Project, error)) {
			block(t, disk.Temp(filepath.Join(dir, "kiln.toml")))
		}, "nothing was moved: kiln.toml cannot be written: "},
		{"a pin cannot be written", "art", "new/graphics", func(t *testing.T, dir string, _ func(), _ *func() (*build.Project, error)) {
			block(t, disk.Temp(filepath.Join(dir, "assets/art/rules.toml")))
		}, "nothing was moved: rules.toml cannot be written: "},
		{"the project does not open", "art", "new/graphics", func(_ *testing.T, _ string, _ func(), open *func() (*build.Project, error)) {
			*open = func() (*build.Project, error) { return nil, errors.New("no more files") }
		}, "nothing was moved: no more files"},
		{"interrupted", "art/tank.txt", "art/tonk.txt", func(_ *testing.T, _ string, cancel func(), open *func() (*build.Project, error)) {
			inner := *open
			*open = func() (*build.Project, error) { cancel(); return inner() }
		}, "nothing was moved: context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, open := opener(t, twoRoots)
			p, err := open()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			again := open
			c.do(t, dir, cancel, &again)
			before, had := files(t, dir), uuids(t, open)
			if _, err := Move(ctx, p, again, c.from, c.to, Options{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, not %q", err, c.want)
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("the files are not as they were:\n%s", diff)
			}
			if diff := cmp.Diff(had, uuids(t, open)); diff != "" {
				t.Errorf("the UUIDs are not as they were:\n%s", diff)
			}
		})
	}
}

// block makes a file impossible to write: it becomes a folder.
func block(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(file, "in the way"), 0o777); err != nil {
		t.Fatal(err)
	}
}

// files returns all files of a project, except Kiln's own, with their content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".kiln":
			return filepath.SkipDir
		case e.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
