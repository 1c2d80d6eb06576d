package contentdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"
)

// Other programs, with a SQLite of their own, in processes of their own.

// python finds the interpreter.
func python(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	return python
}

// compiled is examples/content-db/ask.c as a program, or "" if that cannot be made here.
func compiled(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Log("without gcc, the example in C is not tried")
		return ""
	}
	if out, err := exec.Command(cc, "-E", "-include", "sqlite3.h", "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Logf("without sqlite3.h (libsqlite3-dev), the example in C is not tried: %.200s", out)
		return ""
	}
	program := filepath.Join(t.TempDir(), "ask")
	out, err := exec.Command(cc, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", program, "../../../examples/content-db/ask.c", "-lsqlite3").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestExamples: the examples in C and Python answer as the named questions do.
func TestExamples(t *testing.T) {
	askers := [][]string{{python(t), "../../../examples/content-db/ask.py"}}
	if c := compiled(t); c != "" {
		askers = append(askers, []string{c})
	}
	path := knights(t)
	r := reader(t, path)
	for _, c := range []struct {
		args    string
		named   string
		columns []int // of the named question's that the example shows
	}{
		{"products sprites/ui/", "asset-products", []int{0, 2, 3, 4}},
		{"products data/level.json", "asset-products", []int{0, 2, 3, 4}},
		{"users sprites/hero.png", "referenced-by", []int{0, 1, 2}},
		{"users data/old.txt", "referenced-by", []int{0, 1, 2}},
		{"failures", "failures", []int{0, 1, 2, 6}},
	} {
		args := strings.Fields(c.args)
		res, err := r.Run(context.Background(), c.named, args[1:], 0)
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, row := range res.Rows {
			if c.named == "failures" && row[9] != nil { // not a root cause
				continue
			}
			var cells []string
			for _, i := range c.columns {
				cells = append(cells, fmt.Sprint(row[i]))
			}
			want.WriteString(strings.Join(cells, "\t") + "\n")
		}
		for _, asker := range askers {
			cmd := exec.Command(asker[0], append(append(asker[1:], path), args...)...)
			var said strings.Builder // a Python that is a shell script may say something of its own
			cmd.Stderr = &said
			if out, err := cmd.Output(); err != nil || string(out) != want.String() {
				t.Errorf("%s %s: %v\n%s\nwant\n%s\n%s", asker[0], c.args, err, out, want.String(), said.String())
			}
		}
	}
	run(t, path, "PRAGMA user_version = 1")
	for _, asker := range askers {
		for _, file := range []string{path, path + ".none"} {
			if out, err := exec.Command(asker[0], append(asker[1:], file, "failures")...).CombinedOutput(); err == nil || !strings.Contains(string(out), file) || strings.Contains(string(out), "Traceback") {
				t.Errorf("%s of another file: %v\n%s", asker[0], err, out)
			}
		}
	}
}

// outsider is testdata/reader.py.
type outsider struct {
	t   *testing.T
	in  *bufio.Writer
	out *bufio.Scanner
	end func()
}

func newOutsider(t *testing.T, path string) *outsider {
	t.Helper()
	cmd := exec.Command(python(t), "testdata/reader.py", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &outsider{t, bufio.NewWriter(in), bufio.NewScanner(out), func() { in.Close(); cmd.Wait() }}
	t.Cleanup(o.end)
	return o
}

func (o *outsider) tell(line string) {
	o.t.Helper()
	o.in.WriteString(line + "\n")
	if err := o.in.Flush(); err != nil {
		o.t.Fatal(err)
	}
}

// wants says a line, and what the answer has to be: all records are of one build.
func (o *outsider) wants(line string, build int64) {
	o.t.Helper()
	o.tell(line)
	o.out.Scan()
	if want := ofBuild(build); o.out.Text() != want {
		o.t.Errorf("%s: the reader sees %q, not %q", line, o.out.Text(), want)
	}
}

func ofBuild(n int64) string { return fmt.Sprint(n, n, n, n, 40, n) }

// TestOtherProgramsRead: a reader in another process neither waits for a build nor sees half of one, and no build waits for a reader.
func TestOtherProgramsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db := open(t, path)
	build := func(n int64, halfway func()) {
		// Next to no room for pages: what is written goes into the log at once, where readers could see it.
		if err := sqlitex.ExecuteTransient(db.conn, "PRAGMA cache_size = 2", nil); err != nil {
			t.Fatal(err)
		}
		b := begin(t, db, Start{Number: n, After: n - 1, Platforms: []string{"pc"}})
		for i, a := range generation(n) {
			b.Put(a)
			if i == 20 {
				settle(b)
				log := path + "-wal"
				if n == 1 {
					log = draftName(path)
				}
				if info, err := os.Stat(log); err != nil || info.Size() < 20*4096 {
					t.Errorf("half of build %d is not in %s: %v, %v", n, log, info, err)
				}
				halfway()
			}
		}
		finish(t, b)
	}
	build(1, func() {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("half of the first build can be seen: %v", err)
		}
	})
	o, keeps := newOutsider(t, path), newOutsider(t, path)
	o.wants("once", 1)
	build(2, func() { o.wants("once", 1) })
	o.wants("once", 2)
	// One that keeps its transaction over whole builds sees what it saw, and a build finishes all the same.
	build(3, func() { keeps.wants("begin", 2) })
	keeps.wants("again", 2)
	o.wants("once", 3)
	build(4, func() { keeps.wants("again", 2); o.wants("once", 3) })
	keeps.wants("again", 2)
	keeps.tell("end")
	keeps.out.Scan()
	keeps.wants("once", 4)
	// A build that is cancelled is never seen.
	b := begin(t, db, Start{Number: 5, After: 4, Platforms: []string{"pc"}})
	b.Put(generation(5)[0])
	settle(b)
	o.wants("once", 4)
	if err := b.Cancel(); err != nil {
		t.Fatal(err)
	}
	o.wants("once", 4)
}

// TestOtherProgramsReadAlways: a reader that asks again and again, while builds open the file, write and close it, finds whole builds,
// one after the other.
func TestOtherProgramsReadAlways(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	const builds = 12
	build := func(n int64) {
		db, _, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b := begin(t, db, Start{Number: n, After: n - 1, Platforms: []string{"pc"}})
		for _, a := range generation(n) {
			b.Put(a)
		}
		finish(t, b)
		if n%2 == 0 {
			err = db.Close()
		} else {
			_, err = db.Leave()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build(1)
	o := newOutsider(t, path)
	o.tell("loop")
	last := int64(1)
	for n := int64(1); n <= builds; n++ {
		if n > 1 {
			build(n)
		}
		for more := true; more; more = last < n { // answers from before the build first
			o.out.Scan()
			var seen int64
			if fmt.Sscan(o.out.Text(), &seen); seen < last || seen > n || o.out.Text() != ofBuild(seen) {
				t.Fatalf("after build %d the reader sees %q, and %d before", n, o.out.Text(), last)
			}
			last = seen
		}
	}
	o.tell("end of the loop")
}
