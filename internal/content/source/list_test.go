package source

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

func TestParseList(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "a/b.png\nc d.png\n", []string{"a/b.png", "c d.png"}},
		{"no end of line", "a\nb", []string{"a", "b"}},
		{"Windows", "a\\b\r\n\r\nc\r\n", []string{"a\\b", "c"}},
		{"empty lines", "\n\na\n\n", []string{"a"}},
		{"byte order mark", "\ufeffa\nb\n", []string{"a", "b"}},
		{"spaces count", " a \n", []string{" a "}},
		{"git's quotes", `"\303\244.png"` + "\n" + `"a\tb\"c\\d\n"` + "\n", []string{"ä.png", "a\tb\"c\\d\n"}},
		{"all letters", `"\a\b\t\n\v\f\r\"\\"`, []string{"\a\b\t\n\v\f\r\"\\"}},
		{"not rightly quoted", "\"a\n\"a\\\"\n\"\\q\"\n\"\\000\"\n\"\\400\"\n\"\\12\"\n\"\\18x\"\n\"a\"b\"\n\"", []string{`"a`, `"a\"`, `"\q"`, `"\000"`, `"\400"`, `"\12"`, `"\18x"`, `"a"b"`, `"`}},
		{"quoted nothing", "\"\"\n", nil},
		{"zero bytes", "a\nb\x00\"c\"\x00d\r\x00", []string{"a\nb", `"c"`, "d\r"}},
		{"one, without a zero byte at its end", "a\x00b", []string{"a", "b"}},
		{"UTF-16, little", "\xff\xfea\x00\xe4\x00\r\x00\n\x00b\x00", []string{"aä", "b"}},
		{"UTF-16, big", "\xfe\xff\x00a\x00\n\xd8\x3d\xde\x00", []string{"a", "😀"}},
		{"UTF-16, cut short", "\xff\xfea\x00b", []string{"a"}},
		{"not UTF-8", "a\xff\n", []string{"a\xff"}},
	} {
		if diff := cmp.Diff(c.want, ParseList([]byte(c.in))); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func FuzzParseList(f *testing.F) {
	for _, s := range []string{"a\nb\r\n", `"\303\244"`, "a\x00b\x00", "\xff\xfea\x00", "\"\\", "\ufeff\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		paths := ParseList(data)
		for _, p := range paths {
			if p == "" {
				t.Error("an empty path")
			}
		}
		// Between zero bytes every path comes back as it is.
		again := "x\x00" + strings.Join(paths, "\x00") + "\x00"
		if !bytes.ContainsRune(data, 0) && !slices.Equal(ParseList([]byte(again))[1:], paths) {
			t.Errorf("%q, with zero bytes %q", paths, ParseList([]byte(again))[1:])
		}
		l := &List{Paths: paths, Bases: []string{"/p/game", "/p", "/"}}
		for _, s := range l.spots([]string{"/p/game/assets", "/"}) {
			if strings.HasPrefix(s.path, "/") || s.path == ".." || strings.HasPrefix(s.path, "../") {
				t.Errorf("%q is below no root", s.path)
			}
		}
	})
}

// TestSpots: what a path may mean, given where it may be looked for.
func TestSpots(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("the paths are those of Unix")
	}
	roots := []string{"/repo/game/assets", "/repo/art"}
	bases := []string{"/repo/game/assets/ui", "/repo/game", "/repo", "/"}
	for _, c := range []struct {
		path string
		want []string
	}{
		{"assets/a.png", []string{"0:a.png", "0:ui/assets/a.png"}}, // below the project, or the working folder
		{"./assets//ui/../a.png", []string{"0:a.png", "0:ui/assets/a.png"}},
		{"game/assets/a.png", []string{"0:a.png", "0:ui/game/assets/a.png"}}, // below what holds the project
		{"b.png", []string{"0:ui/b.png"}},                                    // below the working folder
		{"../a.png", []string{"0:a.png"}},
		{"art/x", []string{"0:ui/art/x", "1:x"}}, // it may mean either
		{"/repo/art/x", []string{"1:x"}},         // absolute
		{"/mnt/big/x", []string{"0:x"}},          // the root under another name
		{"/REPO/Art/X", []string{"1:X"}},
		{"assets", []string{"0:", "0:ui/assets"}}, // all
		{"/repo", []string{"0:", "1:"}},
		{"src/main.c", []string{"0:ui/src/main.c"}}, // below the working folder it could be one
		{"/repo/assets2/a.png", nil},
		{"/repo/game/assets2", nil},
		{"/nowhere/at/all", nil},
		{"../../../../../../../../etc/passwd", nil},
		{`M	assets/a.png`, []string{"0:ui/M\tassets/a.png"}}, // nonsense is there for nobody
	} {
		l := &List{Paths: []string{c.path}, Bases: bases, Roots: []string{"/mnt/big", "/repo/art"}}
		var got []string
		for _, s := range l.spots(roots) {
			got = append(got, fmt.Sprintf("%d:%s", s.root, s.path))
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.path, diff)
		}
	}
}

// TestListThroughLinks: an absolute path, and a folder to start from, may lead through a symbolic link.
func TestListThroughLinks(t *testing.T) {
	links(t)
	dir := tree(t, map[string]string{"real/assets/d/a": "1", "way": "->real"})
	root := filepath.Join(dir, "real", "assets")
	for _, l := range []*List{
		{Paths: []string{filepath.Join(dir, "way", "assets", "d", "a")}},
		{Paths: []string{filepath.Join(dir, "way", "assets", "d", "gone", "a")}},
		{Paths: []string{"assets/d/a"}, Bases: []string{filepath.Join(dir, "way")}},
	} {
		got := l.spots([]string{root})
		if len(got) != 1 || !strings.HasPrefix(got[0].path, "d/") || !strings.HasSuffix(got[0].path, "a") {
			t.Errorf("%q from %q: %v", l.Paths, l.Bases, got)
		}
	}
}

// TestList: lists of all kinds, each after the same edits. What is looked at is what the list names, and nothing else.
func TestList(t *testing.T) {
	before := map[string]string{
		"a": "1", "b": "1", "d/c": "1", "d/e/f": "1", "d/e/g": "1", "gone/x": "1", "gone/deep/y": "1", "same": "1", "was": "1", "was2/z": "1",
		"skip/s": "1",
	}
	for _, c := range []struct {
		list string // paths; * stands for all that changed
		want string // files that are known to be new, other or gone
	}{
		{"", ""},
		{"a", "a"},
		{"a b", "a b"},
		{"same nonsense/at/all nonsense ../outside /etc/passwd .", "*"},
		{"same nonsense/at/all nonsense ../outside /etc/passwd", ""},
		{"d/e/f", "d/e/f"},
		{"d/e", "d/e/f d/e/g d/e/new"},
		{"d/", "d/c d/e/f d/e/g d/e/new"},
		{"d/e/new", "d/e/f d/e/g d/e/new"}, // its folder is listed
		{"d/e/g", "d/e/f d/e/g d/e/new"},   // gone
		{"gone/x", "TOP"},                  // its folder is gone, so what holds that is listed
		{"gone/deep/y", "TOP"},
		{"gone", "TOP"},
		{"fresh/n", "TOP"}, // its folder is new
		{"fresh", "TOP"},
		{"fresh/no", "TOP"},
		{"was", "TOP"}, // is a folder now
		{"was/w", "TOP"},
		{"was2", "TOP"}, // is a file now
		{"was2/z", "TOP"},
		{"skip/s", "TOP"}, // is ignored, which is known where its folder is listed
		{"skip/no", "TOP"},
		{"no/skip", ""}, // is not there and never was
		{"*", "*"},
	} {
		dir := tree(t, before)
		o := Options{Roots: []string{dir}, Ignore: []string{"skip/"}, Workers: 2}
		table, _, _ := scanned(t, nil, o)
		old := modelOf(t, table)
		for _, gone := range []string{"gone", "d/e/g", "was", "was2"} {
			os.RemoveAll(filepath.Join(dir, gone))
		}
		put(t, dir, map[string]string{"a": "22", "b": "22", "d/c": "22", "d/e/f": "22", "d/e/new": "2", "fresh/n": "2", "fresh/o/p": "2", "was/w": "2", "was2": "2"})
		all := "a b d/c d/e/f d/e/g d/e/new fresh/n fresh/o/p gone/deep/y gone/x was was/w was2 was2/z"
		top := "a b fresh/n fresh/o/p gone/deep/y gone/x was was/w was2 was2/z" // what a listing of the root shows
		want := strings.NewReplacer("*", all, "TOP", top).Replace(c.want)
		list := strings.ReplaceAll(c.list, "*", all)

		o.List = &List{Paths: strings.Fields(list), Bases: []string{dir}}
		next, contents, stats := scanned(t, table, o)
		got := strings.Join(changes(old, modelOf(t, next)), " ")
		if got != want {
			t.Errorf("list %q: %q, not %q", c.list, got, want)
		}
		if (contents || stats) != (next != table) || contents != (want != "") {
			t.Errorf("list %q: contents %t, stats %t, the same table %t", c.list, contents, stats, next == table)
		}
		o.List = nil
		last, _, _ := scanned(t, next, o)
		if diff := changes(walkAll(t, o), modelOf(t, last)); len(diff) > 0 {
			t.Errorf("list %q: a scan without a list does not see %q", c.list, diff)
		}
	}
}

// changes are the files of the first root that differ between two models.
func changes(a, b model) []string {
	var l []string
	for p := range a.files {
		if a.files[p] != b.files[p] {
			l = append(l, p[2:])
		}
	}
	for p := range b.files {
		if _, ok := a.files[p]; !ok {
			l = append(l, p[2:])
		}
	}
	slices.Sort(l)
	return l
}

// TestListTrusts: what is not listed is not looked at, not even its stat, and keeps the one it had.
func TestListTrusts(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b": "1", "d/c": "1"})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	modelOf(t, table)
	for _, p := range []string{"a", "b", "d/c"} {
		if err := os.WriteFile(filepath.Join(dir, p), []byte("22"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, dir)
	o.List = &List{Paths: []string{"a"}, Bases: []string{dir}}
	next, contents, stats := scanned(t, table, o)
	if !contents || !stats {
		t.Errorf("contents %t, stats %t", contents, stats)
	}
	for p, known := range map[string]string{"a": "22", "b": "1", "d/c": "1"} {
		i, _ := next.FindIn(0, p)
		j, _ := table.FindIn(0, p)
		if f := next.At(i); f.Hash != digest.Of([]byte(known)) || (f == table.At(j)) != (known == "1") {
			t.Errorf("%s: %+v, before %+v", p, f, table.At(j))
		}
	}
	// The same list again: nothing differs any more, and the table is the same one.
	if again, contents, stats := scanned(t, next, o); again != next || contents || stats {
		t.Errorf("again: contents %t, stats %t", contents, stats)
	}
	o.List = &List{}
	if again, contents, stats := scanned(t, next, o); again != next || contents || stats {
		t.Errorf("no list: contents %t, stats %t", contents, stats)
	}
	o.List = nil
	last, contents, _ := scanned(t, next, o)
	if got, want := modelOf(t, last), walkAll(t, o); !contents || !got.equal(want) {
		t.Errorf("without a list: contents %t\n%s\nwant\n%s", contents, got, want)
	}
}

// TestListDoubts: what the table itself is not sure of is looked at although it is not listed.
func TestListDoubts(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b": "1", "d/c": "1", "e/f": "1"})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	modelOf(t, table)
	wrong := func(p string) *File {
		i, _ := table.FindIn(0, p)
		table.Files[i].Hash = digest.Of([]byte("wrong"))
		return &table.Files[i]
	}
	wrong("a").Racy = true
	wrong("d/c").Stat = Stat{} // as kiln verify leaves it
	wrong("b")
	for i := range table.Folders {
		table.Folders[i].Racy = table.Folders[i].Path == "e"
	}
	put(t, dir, map[string]string{"e/new": "1"})
	o.List = &List{}
	next, contents, _ := scanned(t, table, o)
	if !contents {
		t.Error("nothing was seen")
	}
	for p, known := range map[string]string{"a": "1", "d/c": "1", "b": "wrong"} {
		if i, _ := next.FindIn(0, p); next.At(i).Hash != digest.Of([]byte(known)) {
			t.Errorf("%s: %+v", p, next.At(i))
		}
	}
	if _, ok := next.FindIn(0, "e/new"); !ok {
		t.Error("a folder that was too young was not listed")
	}
}

// TestListFoldsNames: where the file system takes two names for one, the list may have the other.
func TestListFoldsNames(t *testing.T) {
	dir := tree(t, map[string]string{"Art/Deep/a": "1", "b": "1"})
	if _, err := os.Stat(filepath.Join(dir, "aRT")); err != nil {
		t.Skip("upper and lower case are not one here")
	}
	for _, list := range []string{"aRT/dEEP/A", "aRT/Deep", "aRT", "Art/dEEP/a", "Art/Deep/A"} {
		put(t, dir, map[string]string{"Art/Deep/a": "1"})
		o := Options{Roots: []string{dir}}
		table, _, _ := scanned(t, nil, o)
		modelOf(t, table)
		put(t, dir, map[string]string{"Art/Deep/a": "22"})
		o.List = &List{Paths: []string{list}, Bases: []string{dir}}
		next, contents, _ := scanned(t, table, o)
		if i, ok := next.FindIn(0, "Art/Deep/a"); !contents || !ok || next.At(i).Hash != digest.Of([]byte("22")) {
			t.Errorf("%s: contents %t", list, contents)
		}
	}
}

// TestListIgnoreFiles: an ignore file counts as soon as it is listed, and below it everything is looked at.
func TestListIgnoreFiles(t *testing.T) {
	dir := tree(t, map[string]string{"d/a.txt": "1", "d/e/b.txt": "1", "d/e/c": "1", "x.txt": "1"})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	listed := o
	listed.List = &List{Paths: []string{"d/.kilnignore"}, Bases: []string{dir}}
	for _, text := range []string{"*.txt", "b.txt", ""} {
		if text == "" {
			os.Remove(filepath.Join(dir, "d/.kilnignore"))
		} else {
			put(t, dir, map[string]string{"d/.kilnignore": text})
		}
		next, contents, _ := scanned(t, table, listed)
		if got, want := modelOf(t, next), walkAll(t, o); !contents || !got.equal(want) {
			t.Errorf("%q: contents %t, got\n%s\nwant\n%s", text, contents, got, want)
		}
		table = next
	}
}

// seenOnDisk is what version control sees: files and links by path, with what is in them; folders too.
func (e *editor) seenOnDisk() map[string]string {
	seen := map[string]string{}
	filepath.WalkDir(e.base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			e.t.Fatal(err)
		}
		rel, _ := filepath.Rel(e.base, p)
		what := d.Type().String()
		switch {
		case d.Type().IsRegular():
			data, _ := os.ReadFile(p)
			what = "content " + string(data)
		case d.Type()&fs.ModeSymlink != 0:
			what, _ = os.Readlink(p)
			what = "to " + what
		}
		seen[rel] = what
		return nil
	})
	return seen
}

// checkLists tries lists of what was edited since the table was made: exactly what changed, more, less, and nonsense.
func (e *editor) checkLists(prev *Table, before, after model) {
	e.t.Helper()
	now := e.seenOnDisk()
	var files, folders []string
	for _, p := range slices.Sorted(maps.Keys(merged(e.disk, now))) {
		switch was, is := e.disk[p], now[p]; {
		case was == is:
		case strings.HasPrefix(was, "d") || strings.HasPrefix(is, "d"):
			folders = append(folders, p)
			if was != "" && is != "" {
				files = append(files, p)
			}
		default:
			files = append(files, p)
		}
	}
	e.disk = now
	prev = e.copyOf(prev)

	// Version control knows no folders, so only files must be right; what has no right name may be a folder.
	next, contents := e.scanList(prev, files)
	got, want := onlyFiles(modelOf(e.t, next)), onlyFiles(after)
	if !got.equal(want) {
		e.fail(fmt.Sprintf("with the list %q", files), got, want)
	}
	if !contents && !want.equal(onlyFiles(before)) {
		e.fail(fmt.Sprintf("with the list %q, contents %t", files, contents), after, before)
	}
	e.checkLater(next, after)

	// With folders, all is; and too much does no harm.
	exact := slices.Concat(files, folders)
	more := append(slices.Clone(exact), "nonsense", "one/nonsense/x", "one/\xff/x", "../..", "two/a", "one/d/e/a", "one/a/b", "one/d")
	for _, list := range [][]string{exact, more, {"."}} {
		next, contents := e.scanList(prev, list)
		if got := modelOf(e.t, next); !got.equal(after) {
			e.fail(fmt.Sprintf("with the list %q", list), got, after)
		}
		if want := !after.equal(before); contents != want {
			e.fail(fmt.Sprintf("with the list %q, contents %t", list, contents), after, before)
		}
	}

	// Too little: whatever is left out is seen later.
	less := slices.DeleteFunc(slices.Clone(exact), func(string) bool { return e.r.IntN(2) == 0 })
	next, _ = e.scanList(prev, less)
	e.checkLater(next, after)
	next, _ = e.scanList(next, slices.DeleteFunc(slices.Clone(exact), func(string) bool { return e.r.IntN(2) == 0 }))
	e.checkLater(next, after)
}

func onlyFiles(m model) model {
	files := maps.Clone(m.files)
	maps.DeleteFunc(files, func(_ string, f seenFile) bool { return f.trouble == NotUTF8 })
	return model{files: files}
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

func (e *editor) scanList(prev *Table, list []string) (*Table, bool) {
	e.t.Helper()
	o := e.options()
	o.List = &List{Paths: list, Bases: []string{e.base}}
	next, contents, stats, err := Scan(prev, o)
	if err != nil {
		e.t.Fatal(err)
	}
	if (next == prev) != (!contents && !stats) {
		e.t.Fatalf("seed %d, list %q: same table %t, contents %t, stats %t", e.seed, list, next == prev, contents, stats)
	}
	return next, contents
}

// checkLater: a scan without a list sees what the list left out.
func (e *editor) checkLater(t *Table, want model) {
	e.t.Helper()
	last, _, _, err := Scan(e.copyOf(t), e.options())
	if err != nil {
		e.t.Fatal(err)
	}
	if got := modelOf(e.t, last); !got.equal(want) {
		e.fail("after a list, without one", got, want)
	}
}

// copyOf copies a table, so that hashes that are made for one check are not known to the next.
func (e *editor) copyOf(t *Table) *Table {
	return &Table{Roots: t.Roots, Folders: slices.Clone(t.Folders), Files: slices.Clone(t.Files)}
}

// BenchmarkList prints what a list of one file costs beside a scan without a list.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		p := filepath.Join(dir, fmt.Sprintf("d%03d", i/100), fmt.Sprintf("%05d", i))
		os.MkdirAll(filepath.Dir(p), 0o777)
		if err := os.WriteFile(p, []byte("x"), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	settle(b, dir)
	o := Options{Roots: []string{dir}, Workers: 2}
	table, _, _ := scanned(b, nil, o)
	listed := o
	listed.List = &List{Paths: []string{"d050/05000"}, Bases: []string{dir}}
	var all, some time.Duration
	for b.Loop() {
		start := time.Now()
		scanned(b, table, o)
		all += time.Since(start)
		start = time.Now()
		scanned(b, table, listed)
		some += time.Since(start)
	}
	b.ReportMetric(float64(some.Microseconds())/float64(b.N), "µs/list")
	b.ReportMetric(float64(all.Microseconds())/float64(b.N), "µs/stat")
	b.ReportMetric(float64(some)/float64(all), "list/stat")
}
