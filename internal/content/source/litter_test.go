package source

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const appleDouble = "\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        "

// visibleFiles are the paths of the source files.
func visibleFiles(table *Table) (all []string) {
	for i := range table.Files {
		if table.Files[i].visible() {
			_, p := table.PathOf(Index(i))
			all = append(all, p)
		}
	}
	return all
}

// TestLitter: the content decides, not the name alone.
func TestLitter(t *testing.T) {
	lock := "\x04Ada " + strings.Repeat(" ", 157)
	dir := tree(t, map[string]string{
		"a.png": "png", "._a.png": appleDouble, "._b.png": "a picture of a dotted name", "._": appleDouble,
		"__MACOSX/._a.png": appleDouble, "__MACOSX/x.png": "x",
		"a.png.meta": "fileFormatVersion: 2\nguid: 1\n", "alone.meta": "fileFormatVersion: 2\n", "a.meta": "fileFormatVersion: 2\n",
		"b.meta": "our own", "b": "b",
		"folder/x.txt": "x", "folder.meta": "fileFormatVersion: 2\n",
		"a.png.import": "[remap]\n\nimporter=\"texture\"\n", "gone.png.import": "[remap]\n", "a.png.uid": "uid://abc\n",
		"id.uid":        "uid://abc\n",
		"~$budget.xlsx": lock, "~$tile.png": strings.Repeat("p", 166), "~$empty": "", ".~lock.a.ods#": ",ada,", ".~lock.a.png": "p",
		"Thumbs.db": "x", ".DS_Store": "x", ".Trashes/x": "x", "@eaDir/a.png/thumb.jpg": "x", "$RECYCLE.BIN/x": "x",
	})
	o := Options{Roots: []string{dir}, Workers: 2}
	table, _, _ := scanned(t, nil, o)
	want := []string{"._b.png", ".~lock.a.png", "a.meta", "a.png", "alone.meta", "b", "b.meta", "folder/x.txt",
		"gone.png.import", "id.uid", "~$empty", "~$tile.png"}
	if got := slices.Sorted(slices.Values(visibleFiles(table))); !slices.Equal(got, want) {
		t.Errorf("source files\n%q, want\n%q", got, want)
	}
	if r := table.Report([]string{"assets/"}, nil, nil); len(r) > 0 {
		t.Errorf("reported: %v", Messages(r))
	}
	if next, contents, stats := scanned(t, table, o); contents || stats || next != table {
		t.Errorf("scanned again: %t %t", contents, stats)
	}
	table, _, _ = scanned(t, nil, Options{Roots: []string{dir}, Ignore: []string{"!._*", "*.txt"}})
	if got := visibleFiles(table); !slices.Contains(got, "._a.png") || slices.Contains(got, "folder/x.txt") {
		t.Errorf("with patterns: %q", got)
	}
}

// TestLitterComes: a scan that lists only what changed sees litter come and go, and its file come and go.
func TestLitterComes(t *testing.T) {
	dir := tree(t, map[string]string{"a.png": "png", "a.png.meta": "fileFormatVersion: 2\n", "._a.png": appleDouble, "sub/x": "x"})
	o := Options{Roots: []string{dir}, Workers: 2}
	table, _, _ := scanned(t, nil, o)
	step := func(what, want string, change func()) {
		t.Helper()
		change()
		for _, list := range []*List{nil, {Paths: []string{"a.png", "b.png", "a.png.meta", "._a.png"}, Bases: []string{dir}}} {
			o.List = list
			next, _, _ := scanned(t, table, o)
			if got := fmt.Sprint(visibleFiles(next)); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
			if list != nil {
				table = next
			}
		}
	}
	step("as it is", "[a.png sub/x]", func() {})
	step("the content is a picture now", "[._a.png a.png sub/x]", func() { put(t, dir, map[string]string{"._a.png": "a picture"}) })
	step("and litter again", "[a.png sub/x]", func() { put(t, dir, map[string]string{"._a.png": appleDouble + "."}) })
	step("the file is renamed", "[a.png.meta b.png sub/x]", func() {
		if err := os.Rename(filepath.Join(dir, "a.png"), filepath.Join(dir, "b.png")); err != nil {
			t.Fatal(err)
		}
	})
	step("and back", "[a.png sub/x]", func() {
		if err := os.Rename(filepath.Join(dir, "b.png"), filepath.Join(dir, "a.png")); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPassed: what is passed over is reported with the reason, also if an earlier scan knows the folders.
func TestPassed(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.png": "", "._a.png": appleDouble, ".DS_Store": "", "x.bak": "",
		"art/.kilnignore": "raw/\n!keep.bak\n", "art/raw/a.png": "", "art/keep.bak": "",
		"build/pc/a.png": "",
	})
	var mu sync.Mutex
	var all []Passed
	o := Options{
		Roots: []string{dir}, Ignore: []string{"*.bak"}, Exclude: []string{filepath.Join(dir, "build")}, Workers: 2,
		Passed: func(p Passed) { mu.Lock(); defer mu.Unlock(); all = append(all, p) },
	}
	table, _, _ := scanned(t, nil, o)
	first := len(all)
	scanned(t, table, o)
	if first != len(all)-first {
		t.Errorf("%d at first, %d the second time", first, len(all)-first)
	}
	all = all[:first]
	slices.SortFunc(all, func(a, b Passed) int { return cmp.Compare(a.Path, b.Path) })
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprintf("%s %t %s%s %s %t", p.Path, p.Folder, p.Because, p.Pattern, p.File, p.Project))
	}
	want := []string{
		".DS_Store false .DS_Store  false", "._a.png false AppleDouble, written by macOS on disks of other systems  false",
		"art/raw true raw/ art/.kilnignore false", "build true Kiln writes it  false", "x.bak false *.bak  true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
}
