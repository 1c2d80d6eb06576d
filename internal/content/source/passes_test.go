package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPasses: what a scan passes over is what Passes says, entry by entry from the roots down.
func TestPasses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/.kilnignore":          "*.tmp\n/top\n!keep.tmp\nsub/deep/\n",
		"a/x.tmp":                "",
		"a/keep.tmp":             "",
		"a/top":                  "",
		"a/sub/top":              "",
		"a/sub/x.tmp":            "",
		"a/sub/deep/y.png":       "",
		"a/sub/other/deep/y.png": "",
		"a/sub/.kilnignore":      "!x.tmp\nown*\n",
		"a/sub/own.png":          "",
		"a/sub/more/own.png":     "",
		"a/own.png":              "",
		"a/.git/config":          "",
		"a/x.png~":               "",
		"a/build/out.png":        "",
		"a/by-project.blend1":    "",
		"b/x.tmp":                "",
		"b/top":                  "",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{
		Roots: []string{filepath.ToSlash(filepath.Join(dir, "a")), filepath.ToSlash(filepath.Join(dir, "b"))}, Workers: 1,
		Ignore: []string{"*.blend1"}, Exclude: []string{filepath.Join(dir, "a", "build")},
	}
	table, _, _, err := Scan(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPasses(o)
	files := 0
	for i, root := range o.Roots {
		filepath.WalkDir(filepath.FromSlash(root), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				t.Fatal(err)
			}
			over := p.Over(path, e.IsDir())
			if e.IsDir() {
				if over {
					return fs.SkipDir
				}
				return nil
			}
			_, in := table.FindIn(i, strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
			if in == over {
				t.Errorf("%s: in the table %v, passed over %v", path, in, over)
			}
			if files++; over {
				files += 100
			}
			return nil
		})
	}
	if files < 500 || files%100 < 8 {
		t.Errorf("%d files were passed over, %d not: the test shows nothing", files/100, files%100)
	}
	if !p.Over(filepath.Join(dir, "elsewhere"), false) {
		t.Error("what is below no root is not passed over")
	}
}

// TestPassesForget: the ignore files of a folder and those below are read anew once it is forgotten, and others are not.
func TestPassesForget(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	folders := []string{"", "a", "a/b", "a/b/c", "a/bb", "d"}
	ignore := func(text string) {
		for _, f := range folders {
			if err := os.MkdirAll(in(f), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(in(f+"/"+IgnoreFile), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, forget := range append(folders, "a/none/at/all", "..") {
		ignore("x")
		p := NewPasses(Options{Roots: []string{filepath.ToSlash(dir)}})
		for _, f := range folders {
			if !p.Over(in(f+"/x"), false) {
				t.Fatalf("%s/x is not passed over", f)
			}
		}
		ignore("!x")
		p.Forget(in(forget))
		for _, f := range folders {
			anew := within(in(f), in(forget))
			if over := p.Over(in(f+"/x"), false); over == anew {
				t.Errorf("%q is forgotten: %s/x is passed over: %v", forget, f, over)
			}
		}
	}
}
