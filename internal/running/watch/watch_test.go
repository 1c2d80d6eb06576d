package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// patience is how long something may take to be told. A machine may be busy; what is lost takes for ever.
const patience = time.Minute

// system is the notifier of this system.
func system(t *testing.T) notifier {
	t.Helper()
	n, err := newNotifier()
	if err != nil {
		t.Skip(err) // other programs may use up what it gives
	}
	return n
}

// ways are all notifiers that this system has. Trees are said to be listed, as followers list them.
func ways(t *testing.T, f func(t *testing.T, start func(Options) *Watcher)) {
	for name, make := range map[string]func() (notifier, error){
		"system":   newNotifier,
		"fsnotify": newFSNotify,
		"poll":     func() (notifier, error) { return newPoller(5 * time.Millisecond), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, func(o Options) *Watcher {
				for i := range o.Trees {
					o.Trees[i].Lists = true
				}
				n, err := make()
				if err != nil {
					t.Skip(err)
				}
				w, err := newWith(o, func() (notifier, error) { return n, nil })
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(w.Close)
				return w
			})
		})
	}
}

// follower knows a tree by what it is told of it.
type follower struct {
	*testing.T
	root string
	w    *Watcher
	seen map[string]string // content by path, below the root
}

func follow(t *testing.T, root string, w *Watcher) *follower {
	f := &follower{T: t, root: root, w: w}
	f.seen = readTree(root)
	return f
}

func readTree(root string) map[string]string {
	all := map[string]string{}
	filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			data, _ := os.ReadFile(path)
			all[path] = string(data)
		}
		return nil
	})
	return all
}

// take looks again at what a batch names, and at nothing else.
func (f *follower) take(b Batch) {
	if b.Lost {
		f.seen = readTree(f.root)
		return
	}
	for _, p := range b.Paths {
		for known := range f.seen {
			if within(known, p) {
				delete(f.seen, known)
			}
		}
		for path, data := range readTree(p) {
			f.seen[path] = data
		}
		if data, err := os.ReadFile(p); err == nil {
			f.seen[p] = string(data)
		}
	}
}

// catchesUp waits until what the follower knows is what there is.
func (f *follower) catchesUp(what string) (batches int) {
	f.Helper()
	deadline := time.After(patience)
	for {
		if d := cmp.Diff(readTree(f.root), f.seen); d == "" {
			return batches
		}
		select {
		case b := <-f.w.Batches():
			batches++
			f.take(b)
		case <-deadline:
			f.Fatalf("%s: what is there (-) and what is known (+):\n%s", what, cmp.Diff(readTree(f.root), f.seen))
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func put(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666))
}

// TestSaves goes through the ways in which programs save.
func TestSaves(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root := t.TempDir()
		at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
		must(t, put(at("a.txt"), "one"), put(at("deep/er/b.txt"), "one"))
		f := follow(t, root, start(Options{Trees: []Tree{{Path: root}}}))
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"truncate and write", func() error { return os.WriteFile(at("a.txt"), []byte("second"), 0o666) }},
			{"write beside and rename", func() error {
				return errors.Join(os.WriteFile(at("a.tmp"), []byte("the third"), 0o666), os.Rename(at("a.tmp"), at("a.txt")))
			}},
			{"backup, then anew", func() error {
				return errors.Join(os.Rename(at("a.txt"), at("a.txt.bak")), os.WriteFile(at("a.txt"), []byte("the fourth one"), 0o666), os.Remove(at("a.txt.bak")))
			}},
			{"a new file", func() error { return put(at("c.txt"), "c") }},
			{"a new file in new folders", func() error { return put(at("x/y/z/d.txt"), "d") }},
			{"an edit in new folders", func() error { return put(at("x/y/z/d.txt"), "another d") }},
			{"as it was", func() error { return os.Chtimes(at("c.txt"), time.Unix(1e9, 5), time.Unix(1e9, 5)) }},
			{"a folder is renamed", func() error { return os.Rename(at("x"), at("w")) }},
			{"an edit in a renamed folder", func() error { return put(at("w/y/z/d.txt"), "yet another d") }},
			{"a folder takes the old name", func() error { return put(at("x/y/e.txt"), "e") }},
			{"a folder comes from outside", func() error {
				outside := t.TempDir()
				return errors.Join(put(filepath.Join(outside, "in/f.txt"), "f"), os.Rename(filepath.Join(outside, "in"), at("in")))
			}},
			{"an edit in a folder from outside", func() error { return put(at("in/f.txt"), "f, edited") }},
			{"a folder goes away", func() error { return os.RemoveAll(at("w")) }},
			{"a file takes a folder's place", func() error {
				return errors.Join(os.RemoveAll(at("x")), os.WriteFile(at("x"), []byte("a file"), 0o666))
			}},
			{"a folder takes a file's place", func() error { return errors.Join(os.Remove(at("x")), put(at("x/g.txt"), "g")) }},
			{"a file goes away", func() error { return os.Remove(at("a.txt")) }},
			{"appended", func() error {
				h, err := os.OpenFile(at("deep/er/b.txt"), os.O_APPEND|os.O_WRONLY, 0)
				must(t, err)
				_, err = h.WriteString(" more")
				return errors.Join(err, h.Close())
			}},
			{"a hard link", func() error { return os.Link(at("deep/er/b.txt"), at("linked.txt")) }},
			{"with the size and the time it had", func() error {
				st, err := os.Stat(at("c.txt"))
				return errors.Join(err, os.WriteFile(at("c.txt"), []byte("d"), 0o666), os.Chtimes(at("c.txt"), st.ModTime(), st.ModTime()))
			}},
		} {
			must(t, step.do())
			f.catchesUp(step.name)
		}
	})
}

// TestFiles watches single files, which come, change and go, with the folders that hold them.
func TestFiles(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		dir := t.TempDir()
		file := filepath.Join(dir, "sub", "kiln.toml")
		w := start(Options{Files: []string{file}})
		wait := func(what string) {
			t.Helper()
			select {
			case b := <-w.Batches():
				if !b.Lost && !slices.Equal(b.Paths, []string{file}) {
					t.Errorf("%s: %v", what, b.Paths)
				}
			case <-time.After(patience):
				t.Fatalf("%s: nothing was told", what)
			}
		}
		must(t, put(file, "one"))
		wait("its folder comes")
		for w.Flush(context.Background()).Paths != nil {
		}
		must(t, put(filepath.Join(dir, "sub", "other"), "passed over"), put(file, "two"))
		wait("it changes")
		must(t, os.Remove(file))
		wait("it goes")
	})
}

// TestPass passes over what it is told to, and whatever is below.
func TestPass(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root := t.TempDir()
		must(t, put(filepath.Join(root, "out/a"), "1"), put(filepath.Join(root, "in/a"), "1"))
		pass := func(path string, dir bool) bool { return dir && filepath.Base(path) == "out" }
		w := start(Options{Trees: []Tree{{Path: root, Pass: pass}}})
		must(t, put(filepath.Join(root, "out/a"), "22"), put(filepath.Join(root, "in/out/b"), "2"), put(filepath.Join(root, "in/a"), "22"))
		select {
		case b := <-w.Batches():
			for _, p := range b.Paths {
				if strings.Contains(p, "out") {
					t.Errorf("told of %s", p)
				}
			}
		case <-time.After(patience):
			t.Fatal("nothing was told")
		}
	})
}

// TestRootGone loses a whole tree and finds it again.
func TestRootGone(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root := filepath.Join(t.TempDir(), "root")
		must(t, put(filepath.Join(root, "a"), "1"))
		f := follow(t, root, start(Options{Trees: []Tree{{Path: root}}}))
		must(t, os.Rename(root, root+".away"))
		f.catchesUp("the tree is renamed")
		must(t, put(filepath.Join(root, "sub/b"), "2"))
		f.catchesUp("another takes its place")
		must(t, put(filepath.Join(root, "sub/b"), "another 2"))
		f.catchesUp("an edit in it")
	})
}

// TestRandom does to a tree what nobody foresaw, and asks now and then whether all of it was told.
func TestRandom(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		seed := thorough.Seed(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		root := t.TempDir()
		f := follow(t, root, start(Options{Trees: []Tree{{Path: root}}}))
		name := func() string {
			p := root
			for range 1 + rng.IntN(3) {
				p = filepath.Join(p, string(rune('a'+rng.IntN(4))))
			}
			return p
		}
		for i := range 1500 {
			p := name()
			switch rng.IntN(8) {
			case 0, 1, 2:
				put(p, fmt.Sprint(i))
			case 3:
				os.MkdirAll(p, 0o777)
			case 4, 5:
				os.Rename(p, name())
			case 6:
				os.RemoveAll(p)
			case 7:
				if rng.IntN(5) == 0 {
					f.catchesUp(fmt.Sprintf("step %d", i))
				}
			}
		}
		f.catchesUp("the end")
	})
}

// TestPollBetween: a folder is away just when it is looked at, and back with all that is in it before the one above is.
func TestPollBetween(t *testing.T) {
	root := t.TempDir()
	away, back := filepath.Join(root, "away"), filepath.Join(root, "c")
	inner := filepath.Join(back, "a")
	must(t, put(filepath.Join(inner, "b"), "1"))
	p := newPoller(time.Hour).(*poller)
	t.Cleanup(p.close)
	must(t, p.add(root, true), p.add(back, false), p.add(inner, false), os.Rename(back, away))
	if events := p.lookAt(nil, inner); len(events) != 1 || events[0] != (event{path: inner, kind: removed, dir: true}) {
		t.Fatalf("while it is away: %v", events)
	}
	p.remove(inner) // as the watcher does then
	must(t, os.Rename(away, back))
	events := p.look()
	events = slices.DeleteFunc(events, func(e event) bool { return e.kind == stirred })
	if len(events) != 1 || events[0] != (event{path: inner, kind: moved, dir: true}) {
		t.Errorf("once it is back: %v", events)
	}
}

// TestAwayWhenWatched: a folder is away just when it is to be watched, and back before the one above is looked at again. It is watched all
// the same.
func TestAwayWhenWatched(t *testing.T) {
	root := t.TempDir()
	in, away := filepath.Join(root, "in"), filepath.Join(t.TempDir(), "in")
	must(t, put(filepath.Join(in, "a"), "1"))
	first := true
	pass := func(path string, _ bool) bool { // it is asked between listing a folder and watching those in it
		if first && path == in {
			first = false
			must(t, os.Rename(in, away))
		}
		return false
	}
	w, err := New(Options{Trees: []Tree{{Path: root, Pass: pass, Lists: true}}, Poll: time.Hour, Quiet: time.Hour, Most: time.Hour}) // it looks when it is asked
	must(t, err)
	defer w.Close()
	must(t, os.Rename(away, in))
	w.Flush(t.Context())
	must(t, os.WriteFile(filepath.Join(in, "a"), []byte("another"), 0o666))
	if b := w.Flush(t.Context()); !slices.Contains(b.Paths, filepath.Join(in, "a")) {
		t.Errorf("an edit is not told: %+v", b)
	}
}

// TestCameAndWent: what comes after a look and goes before the next is told of by its folder, or by its name if that was asked for, where
// somebody may have listed that folder.
func TestCameAndWent(t *testing.T) {
	for name, c := range map[string]struct {
		lists bool
		want  string
	}{"nobody lists": {false, "files/asked"}, "somebody lists": {true, "files/asked tree/in"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tree, in, files := filepath.Join(dir, "tree"), filepath.Join(dir, "tree", "in"), filepath.Join(dir, "files")
			old := time.Now().Add(-time.Minute)
			must(t, put(filepath.Join(in, "a"), "a"), put(filepath.Join(files, "there"), "t"))
			for _, p := range []string{in, tree, files, filepath.Join(in, "a"), filepath.Join(files, "there")} { // so that nothing is uncertain
				must(t, os.Chtimes(p, old, old))
			}
			w, err := New(Options{
				Trees: []Tree{{Path: tree, Lists: c.lists}}, Files: []string{filepath.Join(files, "there"), filepath.Join(files, "asked")},
				Poll: time.Hour, Quiet: time.Hour, Most: time.Hour,
			})
			must(t, err)
			defer w.Close()
			flushed := func() string {
				var all []string
				for _, p := range w.Flush(t.Context()).Paths {
					rel, err := filepath.Rel(dir, p)
					must(t, err)
					all = append(all, filepath.ToSlash(rel))
				}
				return strings.Join(all, " ")
			}
			if got := flushed(); got != "" {
				t.Errorf("nothing happened, and it tells of %s", got)
			}
			for _, p := range []string{filepath.Join(in, "b"), filepath.Join(files, "asked")} {
				must(t, put(p, "b"), os.Remove(p))
			}
			if got := flushed(); got != c.want {
				t.Errorf("it tells of %q, not of %q", got, c.want)
			}
			for _, p := range []string{in, files} {
				must(t, os.Chtimes(p, old, old))
			}
			flushed()
			if got := flushed(); got != "" {
				t.Errorf("it tells of it again: %s", got)
			}
		})
	}
}

// TestManyAtOnce: a branch switch is one batch.
func TestManyAtOnce(t *testing.T) {
	root := t.TempDir()
	w, err := New(Options{Trees: []Tree{{Path: root}}, Quiet: time.Hour, Most: time.Hour}) // TestPending has the clock
	must(t, err)
	defer w.Close()
	f := follow(t, root, w)
	for i := range 5000 {
		must(t, put(filepath.Join(root, fmt.Sprint(i/100), fmt.Sprint(i)), "x"))
	}
	select {
	case b := <-w.Batches():
		t.Errorf("%d paths are told before all is quiet, lost %t", len(b.Paths), b.Lost)
		f.take(b)
	default:
	}
	f.take(w.Flush(t.Context()))
	if n := len(readTree(root)); n != 5000 || len(f.seen) != n {
		t.Errorf("%d of %d files are known", len(f.seen), n)
	}
}

// TestFlush gives what changed before it, at once.
func TestFlush(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root := t.TempDir()
		f := follow(t, root, start(Options{Trees: []Tree{{Path: root}}, Quiet: time.Hour, Most: time.Hour}))
		for i := range 50 {
			must(t, put(filepath.Join(root, fmt.Sprint("sub", i%3), "a"), fmt.Sprint(i)))
			f.take(f.w.Flush(context.Background()))
			if d := cmp.Diff(readTree(root), f.seen); d != "" {
				t.Fatalf("after change %d:\n%s", i, d)
			}
		}
	})
}

// TestFlushRootBack: a tree that was removed and is there again has been told of, before the watcher looks for it by itself.
func TestFlushRootBack(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root := filepath.Join(t.TempDir(), "root")
		must(t, put(filepath.Join(root, "s", "a"), "0"))
		f := follow(t, root, start(Options{Trees: []Tree{{Path: root}}, Quiet: time.Hour, Most: time.Hour}))
		for i := range 10 {
			must(t, os.RemoveAll(root))
			f.take(f.w.Flush(t.Context()))
			must(t, put(filepath.Join(root, "s", "b"), fmt.Sprint(i)))
			f.take(f.w.Flush(t.Context()))
			if d := cmp.Diff(readTree(root), f.seen); d != "" {
				t.Fatalf("after change %d:\n%s", i, d)
			}
		}
	})
}

// TestLimit goes over to polling when the system watches no more.
func TestLimit(t *testing.T) {
	root := t.TempDir()
	must(t, put(filepath.Join(root, "a/b/c"), "1"))
	n := &limited{system(t), 2}
	w, err := newWith(Options{Trees: []Tree{{Path: root}}, Poll: 0}, func() (notifier, error) { return n, nil })
	must(t, err)
	defer w.Close()
	b := <-w.Batches()
	if len(b.Notes) != 1 || b.Notes[0].Hint != "raise it" {
		t.Fatalf("notes: %v", b.Notes)
	}
	f := follow(t, root, w)
	must(t, put(filepath.Join(root, "a/b/c"), "22"))
	f.catchesUp("an edit, polled")
}

// limited refuses all but a few folders.
type limited struct {
	notifier
	left int
}

func (l *limited) add(dir string, top bool) error {
	if l.left--; l.left < 0 {
		return &limitError{"the limit is reached", "raise it"}
	}
	return l.notifier.add(dir, top)
}

// TestPending: when a batch is due, by a clock of its own.
func TestPending(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	type told struct {
		at int
		e  event
	}
	for _, c := range []struct {
		name   string
		events []told
		due    int // milliseconds
		paths  string
	}{
		{"a file that was written", []told{{0, event{path: "a", kind: opened}}, {2, event{path: "a", kind: written}}}, 12, "a"},
		{"one of which the system does not tell when it is written", []told{{0, event{path: "a"}}, {20, event{path: "a"}}}, 50, "a"},
		{"one that is gone may come back", []told{{0, event{path: "a", kind: removed}}}, 30, "a"},
		{"one that is being written", []told{{0, event{path: "a", kind: opened}}}, 120, "a"},
		{"and written on", []told{{0, event{path: "a", kind: opened}}, {100, event{path: "a", kind: opened}}}, 220, "a"},
		{"one beside one that is being written", []told{{0, event{path: "a", kind: opened}}, {5, event{path: "b", kind: written}}}, 15, "b"},
		{"one that never comes to rest", []told{{0, event{path: "a"}}, {299, event{path: "a"}}}, 300, "a"},
		{"events were lost", []told{{0, event{path: "a"}}, {1, event{kind: lost}}}, 121, ""},
	} {
		p := pending{quiet: 30 * time.Millisecond, most: 300 * time.Millisecond}
		at := start
		for _, e := range c.events {
			if at = ms(e.at); e.e.kind == lost {
				p.lose(at)
			} else {
				p.add(e.e, at)
			}
		}
		if due := at.Add(p.due(at)).Sub(start).Milliseconds(); due != int64(c.due) {
			t.Errorf("%s: due after %d ms, not %d", c.name, due, c.due)
		}
		if b := p.ready(ms(c.due)); strings.Join(b.Paths, " ") != c.paths || b.Lost != (c.paths == "") || b.Seen != start && c.paths != "b" {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}

// TestLost loses events now and then, as a kernel whose queue is full, and misses nothing for it.
func TestLost(t *testing.T) {
	root := t.TempDir()
	l := &lossy{system(t), make(chan []event), make(chan struct{})}
	t.Cleanup(func() { close(l.quit) })
	go l.run()
	w, err := newWith(Options{Trees: []Tree{{Path: root}}}, func() (notifier, error) { return l, nil })
	must(t, err)
	defer w.Close()
	f := follow(t, root, w)
	for i := range 300 {
		must(t, put(filepath.Join(root, fmt.Sprint(i%7), fmt.Sprint(i%5), fmt.Sprint(i%3)), fmt.Sprint(i)))
		if i%20 == 0 {
			must(t, os.RemoveAll(filepath.Join(root, fmt.Sprint(i%7))))
			f.catchesUp(fmt.Sprint("step ", i))
		}
	}
	f.catchesUp("the end")
}

// lossy forgets every third group of events, and says so.
type lossy struct {
	notifier
	out  chan []event
	quit chan struct{}
}

func (l *lossy) events() <-chan []event { return l.out }

func (l *lossy) run() {
	i := 0
	for {
		select {
		case events := <-l.notifier.events():
			if i++; i%3 == 0 {
				events = []event{{kind: lost}}
			}
			select {
			case l.out <- events:
			case <-l.quit:
				return
			}
		case <-l.quit:
			return
		}
	}
}

// told is a notifier that says what a test has it say. Folders can be watched if they are in there.
type told struct {
	out   chan []event
	mu    sync.Mutex
	there map[string]bool
}

func (n *told) add(dir string, _ bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.there[dir] {
		return fs.ErrNotExist
	}
	return nil
}

func (n *told) remove(string)          {}
func (n *told) events() <-chan []event { return n.out }
func (n *told) sync() bool             { return true }
func (n *told) close()                 {}

func (n *told) set(dir string, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.there[dir] = there
}

// TestRootBack: the folder above tells that a tree is back when that was found already, by looking for it. It is watched all the same.
func TestRootBack(t *testing.T) {
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "root", "a")
	must(t, os.Mkdir(root, 0o777))
	n := &told{out: make(chan []event), there: map[string]bool{dir: true, root: true}}
	w, err := newWith(Options{Trees: []Tree{{Path: root}}, Files: []string{filepath.Join(dir, "kiln.toml")}}, func() (notifier, error) { return n, nil })
	must(t, err)
	defer w.Close()
	n.set(root, false)
	n.out <- []event{{path: root, kind: removed, dir: true}}
	if b := <-w.Batches(); b.Lost || len(b.Paths) != 1 {
		t.Fatalf("%+v", b)
	}
	n.set(root, true)
	if b := <-w.Batches(); !b.Lost {
		t.Fatalf("%+v", b)
	}
	n.out <- []event{{path: root, kind: moved, dir: true}}
	for end := time.Now().Add(patience); ; { // what the kernel tells of a folder it tells only if that is watched; so does this
		n.out <- []event{{path: file, kind: written}}
		b := w.Flush(context.Background())
		if slices.Contains(b.Paths, file) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("an edit is not told: %+v", b)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestToldNoMore: a notifier that ends is replaced.
func TestToldNoMore(t *testing.T) {
	root := t.TempDir()
	n := &told{out: make(chan []event), there: map[string]bool{root: true}}
	w, err := newWith(Options{Trees: []Tree{{Path: root}}}, func() (notifier, error) { return n, nil })
	must(t, err)
	defer w.Close()
	close(n.out)
	if b := <-w.Batches(); !b.Lost || len(b.Notes) != 1 {
		t.Fatalf("%+v", b)
	}
	f := follow(t, root, w)
	must(t, put(filepath.Join(root, "a"), "1"))
	f.catchesUp("an edit, polled")
}

// TestUnsure: that the system cannot tell whether all was told is not the same as that something was lost: who looks at everything because
// of it need not do so again and again.
func TestUnsure(t *testing.T) {
	system(t).close() // there is one
	w, err := newWith(Options{Trees: []Tree{{Path: t.TempDir()}}}, newFSNotify)
	must(t, err)
	defer w.Close()
	if b := w.Flush(t.Context()); !b.Lost || !b.Unsure {
		t.Errorf("lost %t, unsure %t", b.Lost, b.Unsure)
	}
}

// TestPassReads: a file that Pass reads is changed right after it was read.
func TestPassReads(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root, list := t.TempDir(), filepath.Join(t.TempDir(), "list")
		must(t, put(list, "old"), os.MkdirAll(filepath.Join(root, "in"), 0o777))
		pass := func(string, bool) bool {
			if data, _ := os.ReadFile(list); string(data) == "old" {
				must(t, put(list, "changed"))
			}
			return false
		}
		w := start(Options{Trees: []Tree{{Path: root, Pass: pass}}, Files: []string{list}})
		select {
		case b := <-w.Batches():
			if !b.Lost && !slices.Contains(b.Paths, list) {
				t.Errorf("%+v", b)
			}
		case <-time.After(patience):
			t.Error("never told")
		}
	})
}
