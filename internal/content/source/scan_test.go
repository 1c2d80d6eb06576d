package source

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// tree makes files below a new folder and dates them back. A content that begins with "->" is a symbolic link.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, files)
	return dir
}

// links skips a test where there are no symbolic links. Windows makes them for administrators, Wine 8 says so and makes none.
func links(t testing.TB) {
	t.Helper()
	p := filepath.Join(t.TempDir(), "link")
	err := os.Symlink("target", p)
	if _, lerr := os.Lstat(p); err != nil || lerr != nil {
		t.Skip("no symbolic links here: ", err, lerr)
	}
}

func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, isLink := strings.CutPrefix(content, "->"); {
		case isLink:
			err = os.Symlink(target, p)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(p, 0o777)
		default:
			err = os.WriteFile(p, []byte(content), 0o666)
		}
		if err != nil {
			t.Skip("cannot make ", name, ": ", err)
		}
	}
	settle(t, dir)
}

// settle dates what was just written back, so that nothing is racy, to a moment that no other call has: file systems whose clocks tick
// every
// 4 ms show no other difference between two files of the same size.
func settle(t testing.TB, dir string) {
	t.Helper()
	now := time.Now()
	at := now.AddDate(-5, 0, 0)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		if info, err := d.Info(); err != nil || info.ModTime().Before(now.AddDate(-1, 0, 0)) {
			return err
		}
		return os.Chtimes(p, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func scanned(t testing.TB, prev *Table, o Options) (table *Table, contents, stats bool) {
	t.Helper()
	table, contents, stats, err := Scan(prev, o)
	if err != nil {
		t.Fatal(err)
	}
	return table, contents, stats
}

func TestCaseCollision(t *testing.T) {
	for _, c := range []struct{ file, other, want string }{
		{"assets/Hero.png", "hero.png", `this name and "hero.png" differ only in case`},
		{"assets/\u00e9.txt", "mod/\u00c9.txt", "this name and \"mod/\u00c9.txt\" differ only in case"},
		{"assets/e\u0301.txt", "\u00e9.txt", `this name, "e\u0301.txt", and "\u00e9.txt" differ only in how accents are composed`},
	} {
		if got := CaseCollision(c.file, c.other).Text; got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	links(t)
	one := tree(t, map[string]string{
		"Hero.png": "1", "hero.png": "2", "HERO.PNG": "3", "art/x": "", "Art/y": "", "ART": "a file", "art/deep/A": "", "art/deep/a/": "",
		"up": "->.", "self": "->self", "ping": "->pong", "pong": "->ping", "out": "->/", "gone": "->nowhere", "a\xff": "", "art/b\xfe": "",
		"pointer.png": string(lfsPrefix) + "oid sha256:0\nsize 1\n",
	})
	two := tree(t, map[string]string{"B": "", "b": ""})
	if err := makePipe(filepath.Join(one, "pipe")); err != nil {
		t.Fatal(err)
	}
	table, _, _ := scanned(t, nil, Options{Roots: []string{one, two}, Workers: 2})
	want := []string{
		`assets/"a\xff" K0107 error: the name of this file is not valid UTF-8 / rename it; it was ignored`,
		`assets/Hero.png K0101 error: this name and "HERO.PNG" differ only in case / rename one of them: on Windows and macOS they are one file`,
		`assets/hero.png K0101 error: this name and "HERO.PNG" differ only in case / rename one of them: on Windows and macOS they are one file`,
		`assets/Art K0101 error: this name and "ART" differ only in case / rename one of them: on Windows and macOS they are one file`,
		`assets/art K0101 error: this name and "ART" differ only in case / rename one of them: on Windows and macOS they are one file`,
		`assets/art/"b\xfe" K0107 error: the name of this file is not valid UTF-8 / rename it; it was ignored`,
		`assets/art/deep/a K0101 error: this name and "A" differ only in case / rename one of them: on Windows and macOS they are one file`,
		`assets/gone K0106 error: this symbolic link leads to nothing / remove the link, or put back what it pointed to`,
		`assets/out K0105 error: this symbolic link leads out of the source roots / copy what it points to, or add that folder to ` + "`roots` in kiln.toml",
		`assets/ping K0104 error: this symbolic link leads to itself or to a folder above it / remove the link; it was not followed`,
		`assets/pong K0104 error: this symbolic link leads to itself or to a folder above it / remove the link; it was not followed`,
		`assets/self K0104 error: this symbolic link leads to itself or to a folder above it / remove the link; it was not followed`,
		`assets/up K0104 error: this symbolic link leads to itself or to a folder above it / remove the link; it was not followed`,
		`assets/pipe K0110 error: this is a pipe, a socket or a device, not a file / remove it, or name it in .kilnignore`,
		`mod/b K0101 error: this name and "B" differ only in case / rename one of them: on Windows and macOS they are one file`,
	}
	got := map[string]int{}
	var all []string
	for _, m := range Messages(table.Report([]string{"assets/", "mod/"}, nil, nil)) {
		line := fmt.Sprintf("%s %s %s: %s / %s", m.File, m.Code, m.Severity, m.Text, m.Hint)
		got[line]++
		all = append(all, line)
	}
	for _, w := range want {
		if got[w]--; got[w] != 0 {
			t.Errorf("%d times too few or many: %s", got[w], w)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d messages, not %d:\n%s", len(all), len(want), strings.Join(all, "\n"))
	}
	i, _, ok := table.Find("pointer.png")
	if !ok || table.At(i).Trouble != LFSPointer {
		t.Error("the pointer was not found")
	}
	if m := LFS("assets/pointer.png"); m.Code != diag.LFSPointer || m.Hint != "run `git lfs pull` to fetch it" || m.File != "assets/pointer.png" {
		t.Errorf("LFS: %v", m)
	}
	if _, _, ok := table.Find("gone"); ok {
		t.Error("a dangling link was found")
	}
}

func TestUnreadableFolder(t *testing.T) {
	dir := tree(t, map[string]string{"shut/a": "a", "open/b": "b"})
	// A folder that the system refuses to open is rare where tests run as root, so the table is made by hand.
	table := &Table{Roots: []string{dir}, Folders: []Folder{{Path: "shut", Count: 1}}, Files: []File{{Name: ".", Trouble: Unreadable}}}
	l := Messages(table.Report([]string{"assets/"}, nil, nil))
	if len(l) != 1 || l[0].Code != diag.SourceUnreadable || l[0].File != "assets/shut" || l[0].Hint != "check its permissions" {
		t.Errorf("report: %v", l)
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("permissions do not stop this user")
	}
	shut := filepath.Join(dir, "shut")
	if err := os.Chmod(shut, 0); err != nil {
		t.Fatal(err)
	}
	first, _, _ := scanned(t, nil, Options{Roots: []string{dir}})
	if l := Messages(first.Report([]string{"assets/"}, nil, nil)); len(l) != 1 || l[0].Code != diag.SourceUnreadable {
		t.Errorf("report: %v", l)
	}
	if _, contents, _ := scanned(t, first, Options{Roots: []string{dir}}); contents {
		t.Error("a folder that stays unreadable is a change")
	}
	if err := os.Chmod(shut, 0o755); err != nil {
		t.Fatal(err)
	}
	next, contents, _ := scanned(t, first, Options{Roots: []string{dir}})
	if _, _, ok := next.Find("shut/a"); !ok || !contents {
		t.Errorf("found %t, contents %t", ok, contents)
	}
}

func TestRootThatIsNoFolder(t *testing.T) {
	dir := tree(t, map[string]string{"file": ""})
	for _, root := range []string{"file", "missing"} {
		var gone *RootError
		if _, _, _, err := Scan(nil, Options{Roots: []string{dir, filepath.Join(dir, root)}}); !errors.As(err, &gone) || gone.Root != 1 {
			t.Errorf("root %s: %v", root, err)
		}
	}
}

// TestEntriesThatChangeMeanwhile: what was listed is something else when it is looked at.
func TestEntriesThatChangeMeanwhile(t *testing.T) {
	dir := tree(t, map[string]string{"was-folder": "", "was-file/x": ""})
	s := &scan{o: Options{Roots: []string{dir}}}
	root := &folder{real: dir}
	d, err := openDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if f, sub := s.entry(root, d, "gone", 0); f.Name != "" || sub != nil {
		t.Errorf("a file that is gone: %v", f)
	}
	if f, sub := s.entry(root, d, "was-file", 0); f.Name != "" || sub != nil {
		t.Errorf("a file that became a folder: %v", f)
	}
	for _, name := range []string{"gone", "was-folder"} {
		_, sub := s.entry(root, d, name, fs.ModeDir)
		if sub == nil {
			t.Fatal(name)
		}
		if below := s.list(sub); below != nil || !sub.gone || len(sub.files) != 0 {
			t.Errorf("%s: listed as %v", name, sub)
		}
	}
}

// TestRootThatGoesMeanwhile: a root that is no folder any more when it is listed is not taken for an empty one, and one that a table knows
// nothing of is listed.
func TestRootThatGoesMeanwhile(t *testing.T) {
	one, two := tree(t, map[string]string{"a": "1"}), tree(t, map[string]string{"b": "2", "c/d": "3"})
	for _, gone := range []string{filepath.Join(two, "gone"), filepath.Join(two, "b")} {
		s := &scan{o: Options{Roots: []string{one, gone}}}
		if err := s.walk(); err == nil || err.Error() != "source root "+gone+" is not a folder" {
			t.Errorf("%s: %v", gone, err)
		}
	}
	for _, list := range []*List{nil, {}} {
		table, _, _ := scanned(t, nil, Options{Roots: []string{one}})
		table.Roots = []string{one, two}
		if table, contents, _ := scanned(t, table, Options{Roots: []string{one, two}, List: list}); !contents || len(table.Paths()) != 3 {
			t.Errorf("there are %v", table.Paths())
		}
	}
}

func TestHashMode(t *testing.T) {
	dir := tree(t, map[string]string{"a": "old", "b": "same", ".kilnignore": "x"})
	o := Options{Roots: []string{dir}, Workers: 2}
	table, _, _ := scanned(t, nil, o)
	modelOf(t, table)
	// Content that no stat tells of: the table believes it saw this stat with another content.
	i, _, _ := table.Find("a")
	table.Know(i, table.At(i).Stat, digest.Of([]byte("other")), time.Now())
	if _, contents, _ := scanned(t, table, o); contents {
		t.Error("found by stat; the test is of no use")
	}
	o.Hash = true
	next, contents, stats := scanned(t, table, o)
	if i, _, _ = next.Find("a"); !contents || !stats || next.At(i).Hash != digest.Of([]byte("old")) {
		t.Errorf("contents %t, stats %t", contents, stats)
	}
	if same, contents, stats := scanned(t, next, o); same != next || contents || stats {
		t.Errorf("nothing changed: contents %t, stats %t", contents, stats)
	}
}

func TestUnknownHash(t *testing.T) {
	dir := tree(t, map[string]string{"a": "old"})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	put(t, dir, map[string]string{"a": "new"})
	if _, contents, _ := scanned(t, table, o); !contents {
		t.Error("a change of a file whose hash nobody asked for may matter")
	}
}

func TestOtherRoots(t *testing.T) {
	one, two := tree(t, map[string]string{"a": "1"}), tree(t, map[string]string{"b": "2"})
	table, _, _ := scanned(t, nil, Options{Roots: []string{one}})
	next, contents, _ := scanned(t, table, Options{Roots: []string{two, one}})
	if got := next.Paths(); !contents || len(got) != 2 {
		t.Errorf("contents %t, paths %q", contents, got)
	}
}

func TestHugeFolder(t *testing.T) {
	files := map[string]string{}
	for i := range 5000 {
		files[fmt.Sprintf("f%04d", i)] = "x"
	}
	dir := tree(t, files)
	o := Options{Roots: []string{dir}, Workers: 2}
	table, _, _ := scanned(t, nil, o)
	modelOf(t, table)
	if n := len(table.Paths()); n != 5000 {
		t.Fatalf("%d files", n)
	}
	if err := os.Remove(filepath.Join(dir, "f2500")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"f0001": "y"})
	next, contents, _ := scanned(t, table, o)
	if _, _, ok := next.Find("f2500"); ok || !contents || len(next.Paths()) != 4999 {
		t.Errorf("still there: %t, contents %t", ok, contents)
	}
	i, _, _ := next.Find("f0001")
	if next.At(i).Hash != digest.Of([]byte("y")) {
		t.Error("what changed was not hashed")
	}
}

// TestOneFolderIsListed: a change in one folder does not list others again.
func TestOneFolderIsListed(t *testing.T) {
	dir := tree(t, map[string]string{"a/x": "", "b/x": "", "b/c/x": "", "d/e/f/x": ""})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	if err := os.WriteFile(filepath.Join(dir, "b", "y"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := &scan{o: o, prev: table}
	if got := s.look(); got != otherNames {
		t.Fatalf("look: %d", got)
	}
	s.family()
	for i, f := range table.Folders {
		if got := s.found[i].listing; got != sameStats && f.Path != "b" || got != otherNames && f.Path == "b" {
			t.Errorf("%q: %d", f.Path, got)
		}
	}
}

// TestLoopBelowALink: what was on the way to a folder is known although only that folder changed.
func TestLoopBelowALink(t *testing.T) {
	links(t)
	dir := tree(t, map[string]string{"a/x": "", "b/c/d/y": "", "a/l": "->../b"})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	put(t, dir, map[string]string{"b/c/d/m": "->../../../a"})
	for _, d := range []string{"", "a", "b", "b/c", "b/c/d"} { // only b/c/d has another stat
		for i := range table.Folders {
			if st, _, err := StatPath(filepath.Join(dir, filepath.FromSlash(d))); err == nil && d != "b/c/d" && table.Folders[i].Stat.Inode == st.Inode {
				table.Folders[i].Stat = st
			}
		}
	}
	next, _, _ := scanned(t, table, o)
	fresh, _, _ := scanned(t, nil, o)
	if got, want := modelOf(t, next), modelOf(t, fresh); !got.equal(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if i, ok := next.FindIn(0, "a/l/c/d/m"); !ok || next.At(i).Trouble != Loop {
		t.Error("the loop was not found")
	}
}

// TestLinksBehindLinks: what a link leads to changes without a trace in the folder that holds it.
func TestLinksBehindLinks(t *testing.T) {
	links(t)
	outside := tree(t, map[string]string{"x": "secret", "d/": ""})
	dir := tree(t, map[string]string{"in/x": "1", "in/d/y": "2", "out/x": "", "away/": "", "r/link": "->../hop/x", "r/dir": "->../hop/d", "r/skip": "->../hop/d", "r/.kilnignore": "skip/"})
	hop := filepath.Join(dir, "hop")
	o := Options{Roots: []string{dir}, Exclude: []string{filepath.Join(dir, "out")}}
	var table *Table
	for _, c := range []struct {
		to        string
		link, dir Trouble
	}{
		{"in", Linked, LinkedFolder}, {"out", Escapes, Dangling}, {"in", Linked, LinkedFolder}, {outside, Escapes, Escapes}, {"away", Dangling, Dangling}, {"out", Escapes, Dangling},
		{"nowhere", Dangling, Dangling}, {"in", Linked, LinkedFolder}, {"r", Loop, Dangling},
	} {
		os.Remove(hop)
		if err := os.Symlink(c.to, hop); err != nil {
			t.Fatal(err)
		}
		next, _, _ := scanned(t, table, o)
		if i, ok := next.FindIn(0, "r/link"); c.to != "r" && (!ok || next.At(i).Trouble != c.link) {
			t.Errorf("to %s: link is there %t, trouble %d", c.to, ok, next.At(i).Trouble)
		}
		i, ok := next.FindIn(0, "r/dir")
		if !ok || next.At(i).Trouble != c.dir || next.HasFolder("r/dir") != (c.dir == LinkedFolder) {
			t.Errorf("to %s: the folder is an entry %t, trouble %d", c.to, ok, next.At(i).Trouble)
		}
		fresh, _, _ := scanned(t, nil, o)
		if got, want := modelOf(t, next), modelOf(t, fresh); !got.equal(want) {
			t.Errorf("to %s: got\n%s\nwant\n%s", c.to, got, want)
		}
		table = next
	}
}

func TestCompare(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "d/b": "2", "d/c": "3", "d/e/f": "4", "is/file": "5"})
	seen := []string{"a", "d/b", "d/c", "d/e/f", "d/no", "is/file/x", "no/x", "is"}
	stats := make([]Stat, len(seen))
	for i := range seen {
		if st, mode, err := StatPath(filepath.Join(dir, filepath.FromSlash(seen[i]))); err == nil && mode == 0 {
			stats[i] = st
		}
	}
	each := func(i int) (string, iter.Seq2[string, Stat]) { // a folder for each file, though some are the same
		folder, name := split(seen[i])
		return folder, func(yield func(string, Stat) bool) { yield(name, stats[i]) }
	}
	if err := os.Link(filepath.Join(dir, "d", "c"), filepath.Join(dir, "other-name")); err != nil {
		t.Fatal(err) // changes the change time, which is not compared
	}
	put(t, dir, map[string]string{"d/b": "22"})
	want := map[string]Presence{"d/b": Differs, "d/no": Missing, "is/file/x": Missing, "no/x": Missing, "is": Differs}
	for _, workers := range []int{0, 1, 8} {
		if got := Compare(dir, len(seen), each, workers); !maps.Equal(got, want) {
			t.Errorf("%d workers: %v, not %v", workers, got, want)
		}
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	links(t)
	if err := os.Symlink("d/c", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if got := Compare(dir, 1, each, 1); got["a"] != Differs {
		t.Errorf("a link in the place of a file: %v", got)
	}
	if got := Compare(filepath.Join(dir, "nowhere"), len(seen), each, 2); got["a"] != Missing || got["is"] != Missing {
		t.Errorf("no folder at all: %v", got)
	}
}

func TestHashOfAChangingFile(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x", "big": strings.Repeat("x", 100<<10)})
	for _, name := range []string{"a", "big"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if h, err := HashFile(filepath.Join(dir, name)); err != nil || h != digest.Of(data) {
			t.Errorf("%s: %v %v", name, h, err)
		}
	}
	for _, name := range []string{"no", "."} {
		if _, err := HashFile(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s has a hash", name)
		}
	}
	table, _, _ := scanned(t, nil, Options{Roots: []string{dir}})
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	i, _, _ := table.Find("a")
	if _, err := table.Hash(i); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	var n int
	table.Each(func(root int, p string, f *File) {
		if root == 0 && (p == "a" || p == "big") && f.Name == p {
			n++
		}
	})
	if n != 2 {
		t.Errorf("Each told of %d files", n)
	}
}

func TestLFSPointerSizes(t *testing.T) {
	p := string(lfsPrefix)
	for size, want := range map[int]Trouble{len(p) - 1: Fine, len(p): LFSPointer, 130: LFSPointer, 1023: LFSPointer, 1024: Fine} {
		text := (p + strings.Repeat("x", 2000))[:size]
		dir := tree(t, map[string]string{"a": text, "b": strings.Repeat("v", size)})
		table, _, _ := scanned(t, nil, Options{Roots: []string{dir}})
		for name, want := range map[string]Trouble{"a": want, "b": Fine} {
			if i, _, _ := table.Find(name); table.At(i).Trouble != want {
				t.Errorf("%s of %d bytes: trouble %d", name, size, table.At(i).Trouble)
			}
		}
	}
}

// TestLFSPointerInPlace: content comes and goes without a change of the folder.
func TestLFSPointerInPlace(t *testing.T) {
	dir := tree(t, map[string]string{"a": "content"})
	o := Options{Roots: []string{dir}}
	table, _, _ := scanned(t, nil, o)
	for _, c := range []struct {
		text string
		want Trouble
	}{{string(lfsPrefix) + "oid 0\n", LFSPointer}, {"content", Fine}} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		next, contents, _ := scanned(t, table, o)
		if i, _, ok := next.Find("a"); !ok || !contents || next.At(i).Trouble != c.want {
			t.Errorf("contents %t, trouble %d", contents, next.At(i).Trouble)
		}
		table = next
	}
}

// TestHugeIgnoreFile: one that is too large is none of the files, as any other, but ignores nothing.
func TestHugeIgnoreFile(t *testing.T) {
	dir := tree(t, map[string]string{IgnoreFile: huge("a\n"), "a": ""})
	table, _, _ := scanned(t, nil, Options{Roots: []string{dir}})
	if got := table.Paths(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("paths %q", got)
	}
}

func huge(text string) string { return text + strings.Repeat("#", maxIgnoreFile) }

// TestIgnoreFileComesAndGoes: what an ignore file says, or whether there is one, changes without a trace in its folder, although a pattern
// above means the ignore file itself.
func TestIgnoreFileComesAndGoes(t *testing.T) {
	for _, c := range []struct {
		name, link, file string // the ignore file is a link, if to something; the file comes, is edited and goes
		texts            []string
		want             []string // by text: what is there of a and b
	}{
		{"behind a link", "../lists/t", "lists/t", []string{"", "a", huge("a\n"), "b", ""}, []string{"ab", "b", "ab", "a", "ab"}},
		{"in place", "", "d/" + IgnoreFile, []string{huge("a\n"), "a", "b", huge("b\n")}, []string{"ab", "b", "a", "ab"}},
	} {
		for _, above := range []string{"", ".*"} {
			for _, listed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %q above, listed %t", c.name, above, listed), func(t *testing.T) {
					files := map[string]string{"d/a": "", "d/b": "", "lists/x": "", IgnoreFile: above}
					if c.link != "" {
						links(t)
						files["d/"+IgnoreFile] = "->" + c.link
					}
					if c.texts[0] != "" {
						files[c.file] = c.texts[0]
					}
					dir := tree(t, files)
					o := Options{Roots: []string{dir}}
					var table *Table
					for i, text := range c.texts {
						if i > 0 {
							set(t, filepath.Join(dir, filepath.FromSlash(c.file)), text, i)
						}
						if listed && i > 0 {
							o.List = &List{Paths: []string{c.file}, Bases: []string{dir}}
						}
						table, _, _ = scanned(t, table, o)
						if got := strings.Join(table.Names("d"), ""); got != c.want[i] {
							t.Errorf("step %d: %s, not %s", i, got, c.want[i])
						}
					}
				})
			}
		}
	}
}

// set writes or, with no text, removes a file, and dates it to the year 2020 and as many seconds; its folder is let be.
func set(t *testing.T, p, text string, seconds int) {
	t.Helper()
	if text == "" {
		os.Remove(p)
		return
	}
	at := time.Date(2020, 1, 1, 0, 0, seconds, 1000, time.UTC)
	if err := errors.Join(os.WriteFile(p, []byte(text), 0o666), os.Chtimes(p, at, at)); err != nil {
		t.Fatal(err)
	}
}
