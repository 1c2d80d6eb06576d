package source

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

var seedFlag = flag.Uint64("seed", 0, "run this seed only")

// TestRandomEdits edits a real tree at random and compares each scan with a fresh one and with a walk that reads everything.
func TestRandomEdits(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = nil
		n := uint64(15)
		if !thorough.Enabled() {
			n = 5
		}
		first := thorough.Seed(t)
		for i := range n {
			seeds = append(seeds, first+i)
		}
	}
	for _, seed := range seeds {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { randomEdits(t, seed, 40) }) {
			return
		}
	}
}

func randomEdits(t *testing.T, seed uint64, steps int) {
	e := newEditor(t, seed)
	o := e.options()
	for range 12 {
		e.edit()
	}
	e.settle()
	table, contents, stats, err := Scan(nil, o)
	if err != nil || !contents || !stats {
		t.Fatalf("first scan: %v %t %t", err, contents, stats)
	}
	before := walkAll(t, o)
	e.disk = e.seenOnDisk()
	if got := modelOf(t, table); !got.equal(before) {
		e.fail("first scan", got, before)
	}
	for range steps {
		e.log = append(e.log, "--")
		for range e.r.IntN(4) {
			e.edit()
		}
		e.settle()
		after := walkAll(t, o)
		e.checkLists(table, before, after)
		o := o
		o.Relist, o.Hash = e.r.IntN(8) == 0, e.r.IntN(8) == 0
		next, contents, stats, err := Scan(table, o)
		if err != nil {
			t.Fatal(err)
		}
		e.check(table, next, o, after, contents, stats)
		if want := !after.equal(before); contents != want {
			e.fail(fmt.Sprintf("contents is %t", contents), after, before)
		}
		table, before = next, after
	}
}

// check compares a scan with a fresh one and with the model.
func (e *editor) check(prev, next *Table, o Options, want model, contents, stats bool) {
	e.t.Helper()
	if (next == prev) != (!contents && !stats) {
		e.t.Fatalf("seed %d: same table %t, contents %t, stats %t", e.seed, next == prev, contents, stats)
	}
	o.Relist, o.Hash = false, false
	fresh, _, _, err := Scan(nil, o)
	if err != nil {
		e.t.Fatal(err)
	}
	for i := range next.Files { // what was kept is right before anybody asks for it
		f := next.Files[i]
		if root, p := next.PathOf(Index(i)); !f.Hash.IsZero() && f.Hash != want.files[fmt.Sprintf("%d:%s", root, p)].hash {
			e.fail("an old hash was kept for "+p, modelOf(e.t, next), want)
		}
	}
	if got := modelOf(e.t, next); !got.equal(want) {
		e.fail("the table", got, want)
	}
	modelOf(e.t, fresh)
	if !slices.Equal(next.Folders, fresh.Folders) || !slices.Equal(next.Files, fresh.Files) {
		e.fail("a fresh scan has other stats", modelOf(e.t, next), modelOf(e.t, fresh))
	}
	e.checkFind(next, want)
}

// checkFind asks the table as a build does.
func (e *editor) checkFind(t *Table, want model) {
	paths := map[string]int{}
	for k, f := range want.files {
		root, p, _ := strings.Cut(k, ":")
		if want.hidden(p) {
			if _, _, ok := t.Find(p); ok || slices.Contains(t.Names(filepath.ToSlash(filepath.Dir(p))), filepath.Base(p)) {
				e.t.Fatalf("seed %d: found the file %q, which is a folder in another root", e.seed, p)
			}
			continue
		}
		if f.trouble == Fine || f.trouble == LFSPointer || f.trouble == Linked {
			paths[p] = max(paths[p], int(root[0]-'0'))
		}
	}
	var sorted []string
	for p := range paths {
		sorted = append(sorted, p)
	}
	sort.Strings(sorted)
	if got := t.Paths(); !slices.Equal(got, sorted) {
		e.t.Fatalf("seed %d: paths %q, not %q", e.seed, got, sorted)
	}
	for p, root := range paths {
		i, r, ok := t.Find(p)
		if !ok || r != root {
			e.t.Fatalf("seed %d: Find(%q) is %t in root %d, not %d", e.seed, p, ok, r, root)
		}
		if gr, gp := t.PathOf(i); gr != root || gp != p {
			e.t.Fatalf("seed %d: PathOf(Find(%q)) is %d %q", e.seed, p, gr, gp)
		}
		dir, name := split(p)
		if !slices.Contains(t.Names(dir), name) || !t.HasFolder(dir) {
			e.t.Fatalf("seed %d: %q is not among the names of its folder", e.seed, p)
		}
	}
	if _, _, ok := t.Find("no/such/file"); ok {
		e.t.Fatal("found what is not there")
	}
}

// editor edits a tree of three roots and what lies beside them.
type editor struct {
	t     *testing.T
	r     *rand.Rand
	seed  uint64
	base  string
	roots []string
	clock time.Time
	log   []string
	links int
	disk  map[string]string // as version control saw it last
}

func newEditor(t *testing.T, seed uint64) *editor {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, r: rand.New(rand.NewPCG(seed, 0)), seed: seed, base: base, clock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, r := range []string{"one", "two", "real/three"} {
		e.roots = append(e.roots, filepath.Join(base, filepath.FromSlash(r)))
	}
	for _, d := range []string{"one/d/e", "one/out/d", "two", "real/three", "beside/d"} {
		e.do(os.MkdirAll(filepath.Join(base, filepath.FromSlash(d)), 0o777))
	}
	e.do(os.WriteFile(filepath.Join(base, "beside", "a"), []byte("outside"), 0o666))
	e.do(os.WriteFile(filepath.Join(base, "one/out/a"), []byte("output"), 0o666))
	e.do(os.Symlink("one", filepath.Join(base, "hop"))) // a link that is retargeted behind other links' backs
	return e
}

func (e *editor) options() Options {
	return Options{Roots: e.roots, Ignore: []string{"*.skip", "!keep.skip"}, Exclude: []string{filepath.Join(e.base, "one", "out")}, Workers: 3}
}

func (e *editor) do(err error) {
	if err != nil && !os.IsNotExist(err) && !os.IsExist(err) {
		e.log = append(e.log, "  "+err.Error())
	}
}

func (e *editor) fail(what string, got, want model) {
	e.t.Helper()
	e.t.Fatalf("seed %d, %s\n-- got\n%s\n-- want\n%s\n-- edits\n%s", e.seed, what, got, want, strings.Join(e.log, "\n"))
}

// settle dates what was just written back, each to a moment of its own.
func (e *editor) settle() {
	recent := time.Now().Add(-time.Hour)
	filepath.WalkDir(e.base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		info, err := d.Info()
		if err != nil || info.ModTime().Before(recent) {
			return nil
		}
		e.clock = e.clock.Add(time.Second + time.Millisecond)
		return os.Chtimes(p, e.clock, e.clock)
	})
}

// folder chooses a folder of the roots, file a name in one.
func (e *editor) folder() string {
	p := e.roots[e.r.IntN(len(e.roots))]
	for range e.r.IntN(4) {
		next := filepath.Join(p, []string{"d", "e", "D"}[e.r.IntN(3)])
		if info, err := os.Lstat(next); err != nil || !info.IsDir() {
			break
		}
		p = next
	}
	return p
}

func (e *editor) file() string {
	return filepath.Join(e.folder(), []string{"a", "b", "A", "x.skip", "keep.skip", "c.txt", "d", "._a", "a.meta"}[e.r.IntN(9)])
}

func (e *editor) content() []byte {
	switch e.r.IntN(12) {
	case 0:
		return append(slices.Clone(lfsPrefix), "oid sha256:00\n"...)
	case 1:
		return []byte(strings.Repeat("x", len(lfsPrefix)+14)) // as long as the pointer
	case 2:
		return nil
	case 3:
		return []byte(appleDouble)
	case 4:
		return []byte("fileFormatVersion: 2\n")
	}
	return []byte(fmt.Sprintf("%03d", e.r.IntN(1000)))
}

// edit makes one edit; several of them may come to nothing.
func (e *editor) edit() {
	edits := []struct {
		name string
		do   func(p string)
	}{
		{"write", func(p string) { e.write(p, e.content()) }},
		{"write", func(p string) { e.write(p, e.content()) }},
		{"rewrite older", func(p string) { e.rewrite(p, -time.Hour) }},
		{"rewrite, same time", func(p string) { e.rewrite(p, 0) }},
		{"touch", func(p string) { now := time.Now(); e.do(os.Chtimes(p, now, now)) }},
		{"save beside", e.saveBeside},
		{"remove", func(p string) { e.do(os.RemoveAll(p)) }},
		{"rename", func(p string) { e.do(os.Rename(p, e.file())) }},
		{"mkdir", func(string) {
			e.do(os.MkdirAll(filepath.Join(e.folder(), []string{"d", "e", "D"}[e.r.IntN(3)], "e"), 0o777))
		}},
		{"remove folder", func(string) { e.removeFolder() }},
		{"move folder", func(string) { e.moveFolder() }},
		{"folder to file", func(string) { p := e.folder(); e.removeAt(p); e.do(os.WriteFile(p, e.content(), 0o666)) }},
		{"file to folder", func(p string) { e.do(os.Remove(p)); e.do(os.Mkdir(p, 0o777)) }},
		{"folder again", func(string) { e.folderAgain() }},
		{"link", func(p string) { e.link(p) }},
		{"link", func(string) { e.link(filepath.Join(e.folder(), []string{"l", "d", IgnoreFile}[e.r.IntN(3)])) }},
		{"hop", func(string) { e.hop() }},
		{"ignore", func(string) { e.ignore() }},
		{"ignore", func(string) { e.ignore() }},
		{"pipe", func(p string) { e.do(makePipe(p)) }},
		{"not UTF-8", func(string) { e.do(os.WriteFile(filepath.Join(e.folder(), "\xff\xfe"), nil, 0o666)) }},
		{"not UTF-8", func(string) { e.do(os.Mkdir(filepath.Join(e.folder(), "\xfd"), 0o777)) }},
		{"chmod", func(string) { e.do(os.Chmod(e.folder(), []fs.FileMode{0o755, 0o777}[e.r.IntN(2)])) }},
	}
	x := edits[e.r.IntN(len(edits))]
	if x.name == "not UTF-8" && runtime.GOOS == "windows" {
		return // names are UTF-16
	}
	p := e.file()
	e.log = append(e.log, x.name+" "+strings.TrimPrefix(p, e.base))
	x.do(p)
}

// write does not write into pipes, which would wait for a reader.
func (e *editor) write(p string, data []byte) {
	if info, err := os.Stat(p); err != nil || info.Mode().IsRegular() {
		e.do(os.WriteFile(p, data, 0o666))
	}
}

func (e *editor) rewrite(p string, by time.Duration) {
	info, err := os.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	data := []byte(strings.Repeat(string(rune('a'+e.r.IntN(26))), int(info.Size())))
	at := info.ModTime().Add(by)
	e.shows(p, func() {
		e.do(os.WriteFile(p, data, 0o666))
		e.do(os.Chtimes(p, at, at))
	})
}

// shows does something to a path until its stat is another one: where the clock of a file system ticks every 4 ms, what keeps the
// modification time may leave no trace.
func (e *editor) shows(p string, do func()) {
	before, _, _ := StatPath(p)
	for range 100 {
		do()
		if now, _, err := StatPath(p); err != nil || now != before {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// saveBeside saves as careful editors do, with the same content.
func (e *editor) saveBeside(p string) {
	if info, err := os.Lstat(p); err != nil || !info.Mode().IsRegular() {
		return
	}
	data, _ := os.ReadFile(p)
	e.do(os.WriteFile(p+"~", data, 0o666))
	e.do(os.Rename(p+"~", p))
}

func (e *editor) isRoot(p string) bool { return slices.Contains(e.roots, p) }

func (e *editor) removeAt(p string) {
	if !e.isRoot(p) {
		e.do(os.RemoveAll(p))
	}
}

func (e *editor) removeFolder() { e.removeAt(e.folder()) }

func (e *editor) moveFolder() {
	from, to := e.folder(), filepath.Join(e.folder(), []string{"d", "e", "D"}[e.r.IntN(3)])
	if !e.isRoot(from) {
		e.do(os.Rename(from, to))
	}
}

// folderAgain removes a folder and makes one that looks like it; most file systems give it the same inode.
func (e *editor) folderAgain() {
	p := e.folder()
	info, err := os.Lstat(p)
	if err != nil || e.isRoot(p) {
		return
	}
	var b []byte
	holds := e.r.IntN(2) == 0
	if holds {
		b = e.content()
	}
	e.shows(p, func() {
		e.do(os.RemoveAll(p))
		e.do(os.Mkdir(p, 0o777))
		if holds {
			e.do(os.WriteFile(filepath.Join(p, "b"), b, 0o666))
		}
		e.do(os.Chtimes(p, info.ModTime(), info.ModTime()))
	})
}

func (e *editor) link(p string) {
	if e.links >= 8 { // each may multiply the tree
		return
	}
	e.links++
	targets := []string{
		e.file(), e.folder(), filepath.Dir(p), filepath.Base(p), "nowhere", filepath.Join(e.base, "beside"), filepath.Join(e.base, "beside", "a"),
		filepath.Join(e.base, "hop", "d"), filepath.Join(e.base, "hop", "a"), e.folder(), filepath.Join(e.base, "one", "out"), filepath.Join(e.folder(), "l"),
	}
	target := targets[e.r.IntN(len(targets))]
	e.log = append(e.log, "  "+p+" -> "+target)
	e.do(os.Remove(p))
	e.do(os.Symlink(target, p))
}

func (e *editor) hop() {
	p := filepath.Join(e.base, "hop")
	e.do(os.Remove(p))
	target := []string{"one", "two", "beside", "real/three"}[e.r.IntN(4)]
	e.log = append(e.log, "  to "+target)
	e.do(os.Symlink(target, p))
}

func (e *editor) ignore() {
	p := filepath.Join(e.folder(), IgnoreFile)
	lines := []string{"a", "!a", "*.txt", "/d/", "e", "!/d", "**/b", "*", "!*/", "!b", ".*", "d/*", "c.txt", "# a", "l", "l/", "a/", "!l/", "b/"}
	switch e.r.IntN(6) {
	case 0:
		e.do(os.Remove(p))
	case 1:
		e.rewrite(p, 0)
	default:
		var text []string
		for range 1 + e.r.IntN(3) {
			text = append(text, lines[e.r.IntN(len(lines))])
		}
		e.log = append(e.log, fmt.Sprintf("  %s: %q", p, text))
		e.write(p, []byte(strings.Join(text, "\n")))
	}
}

// TestRacyIsLookedAt: a file that was modified within the window of its hash is hashed again although its stat is the same.
func TestRacyIsLookedAt(t *testing.T) {
	now := time.Unix(1000, 500)
	for _, c := range []struct {
		ago  time.Duration
		want bool
	}{
		{0, true}, {racyWindow - 1, true}, {racyWindow, false}, {time.Hour, false}, {-time.Hour, true},
	} {
		if got := racy(now.Add(-c.ago).UnixNano(), now); got != c.want {
			t.Errorf("modified %v ago: racy %t", c.ago, got)
		}
	}
	// A time in whole seconds is taken for that of a coarse file system.
	for ago, want := range map[time.Duration]bool{time.Second + 500: true, 2*time.Second + 500: false} {
		if got := racy(now.Add(-ago).UnixNano(), now); got != want {
			t.Errorf("whole seconds, modified %v ago: racy %t", ago, got)
		}
	}

	e := newEditor(t, 1)
	p := filepath.Join(e.roots[0], "a")
	e.do(os.WriteFile(p, []byte("new"), 0o666))
	e.settle()
	table, _, _, err := Scan(nil, e.options())
	if err != nil {
		t.Fatal(err)
	}
	i, _, ok := table.Find("a")
	if !ok {
		t.Fatal("not found")
	}
	st := table.At(i).Stat
	table.Know(i, st, digest.Of([]byte("old")), time.Unix(0, st.MTime).Add(time.Millisecond))
	if !table.At(i).Racy {
		t.Fatal("not racy")
	}
	next, contents, stats, err := Scan(table, e.options())
	if err != nil || !contents || !stats {
		t.Fatalf("%v, contents %t, stats %t", err, contents, stats)
	}
	if got := next.At(i); got.Hash != digest.Of([]byte("new")) || got.Racy {
		t.Errorf("hash %s, racy %t", got.Hash.Short(), got.Racy)
	}
	o := e.options()
	o.Relist = true
	if again, contents, _, _ := Scan(table, o); !contents || again.At(i).Hash != digest.Of([]byte("new")) {
		t.Errorf("listed: contents %t, hash %s", contents, again.At(i).Hash.Short())
	}
	// The same, with the content that it had.
	next.Know(i, st, digest.Of([]byte("new")), time.Unix(0, st.MTime).Add(time.Millisecond))
	last, contents, stats, _ := Scan(next, e.options())
	if contents || !stats || last.At(i).Racy {
		t.Errorf("contents %t, stats %t, racy %t", contents, stats, last.At(i).Racy)
	}
	if again, contents, stats, _ := Scan(last, e.options()); again != last || contents || stats {
		t.Error("not settled")
	}
}
