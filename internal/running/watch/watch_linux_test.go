package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// TestNoFiles: no file can be opened for a moment, just when a folder that is new is to be listed. What is in it is watched nevertheless.
func TestNoFiles(t *testing.T) {
	root := t.TempDir()
	w, err := New(Options{Trees: []Tree{{Path: root}}})
	must(t, err)
	defer w.Close()
	f := follow(t, root, w)
	must(t, os.MkdirAll(filepath.Join(root, "other", "new", "deep"), 0o777))
	f.take(w.Flush(context.Background()))
	outside := filepath.Join(t.TempDir(), "new")
	must(t, os.MkdirAll(filepath.Join(outside, "deep"), 0o777))
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}))
	err = os.Rename(outside, filepath.Join(root, "new"))
	b := w.Flush(context.Background())
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit), err)
	f.take(b)
	must(t, put(filepath.Join(root, "new", "deep", "file"), "1"))
	f.catchesUp("a file in a folder that could not be listed")
}

// TestEventOfAnother: a folder and one in it change their places before the watcher hears of the first, so that it is told that the second
// is gone by a name which another folder has by now. That one is watched all the same.
func TestEventOfAnother(t *testing.T) {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	must(t, put(in("a/sub/x"), "1"), put(in("b/sub/y"), "1"))
	h := &held{notifier: system(t), out: make(chan []event), quit: make(chan struct{}), gate: make(chan struct{}, 1)}
	h.gate <- struct{}{}
	go h.run()
	w, err := newWith(Options{Trees: []Tree{{Path: root}}}, func() (notifier, error) { return h, nil })
	must(t, err)
	t.Cleanup(func() { close(h.quit); w.Close() })
	f := follow(t, root, w)
	<-h.gate
	must(t, os.Rename(in("a"), in("c")), os.Rename(in("b"), in("a")), os.RemoveAll(in("c/sub")))
	for end := time.Now().Add(patience); !h.notifier.sync(); { // all of it has a name now
		if time.Now().After(end) {
			t.Fatal("the system cannot tell")
		}
	}
	h.gate <- struct{}{}
	f.catchesUp("they changed places")
	must(t, put(in("a/sub/y"), "2"))
	f.catchesUp("a file in the one that is there")
}

// TestNewNameFirst: a folder is moved into a new one, which is watched before its old name is reported as removed. It is still watched
// after that, although fsnotify knows a watched folder by one name only.
func TestNewNameFirst(t *testing.T) {
	system(t).close() // there is one
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	must(t, put(in("old/sub/file"), "1"))
	reader, err := fsnotify.NewWatcher() // reads no event before the last one was taken
	must(t, err)
	moved, once := make(chan struct{}), sync.Once{}
	pass := func(path string, _ bool) bool { // the watcher asks before it watches
		if path != in("new") {
			return false
		}
		once.Do(func() {
			defer close(moved)
			for i := range 8 { // more than what is read ahead, so that the move is not read yet
				must(t, put(in(fmt.Sprint(i)), ""))
			}
			must(t, os.Rename(in("old"), in("new/name")))
		})
		return false
	}
	n := startFSNotify(reader, 0)
	w, err := newWith(Options{Trees: []Tree{{Path: root, Pass: pass}}}, func() (notifier, error) { return n, nil })
	must(t, err)
	t.Cleanup(w.Close)
	f := follow(t, root, w)
	must(t, os.Mkdir(in("new"), 0o777))
	<-moved
	f.catchesUp("it is moved")
	must(t, put(in("new/name/sub/file"), "2"))
	f.catchesUp("an edit by its new name")
}

// TestErrorNotTaken: fsnotify has an error to report, because a watched folder was moved and then removed, while the watcher takes no events.
// It locks itself until somebody takes the error. Folders can be watched nevertheless.
func TestErrorNotTaken(t *testing.T) {
	system(t).close() // there is one
	root := t.TempDir()
	from, to := filepath.Join(root, "from"), filepath.Join(root, "to")
	must(t, os.Mkdir(from, 0o777))
	reader, err := fsnotify.NewBufferedWatcher(2)
	must(t, err)
	n := startFSNotify(reader, 0)
	must(t, n.add(root, true), n.add(from, false))
	for i := range 8 { // more than what is read ahead, so that the move is not read yet
		must(t, put(filepath.Join(root, fmt.Sprint(i)), ""))
	}
	must(t, os.Rename(from, to), os.Remove(to))
	told := false // the error was reported, maybe before what was read ahead
	for e := range n.out {
		if told = told || e[0].kind == lost; e[0] == (event{path: from, kind: removed}) {
			break
		}
	}
	done := make(chan error)
	go func() {
		for slices.Contains(reader.WatchList(), from) { // until it has read that the folder was moved
			runtime.Gosched()
		}
		done <- n.add(root, true)
	}()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("it waits for itself")
	}
	for !told {
		select {
		case e := <-n.out:
			told = e[0].kind == lost
		case <-time.After(patience):
			t.Fatal("the error is not reported")
		}
	}
	n.close()
}

// TestTwoNames: a folder is watched by two names, and each of them is told: one of a tree, one that leads there by a link, for a single
// file.
func TestTwoNames(t *testing.T) {
	ways(t, func(t *testing.T, start func(Options) *Watcher) {
		root, by := t.TempDir(), filepath.Join(t.TempDir(), "link")
		must(t, put(filepath.Join(root, "file"), "1"), put(filepath.Join(root, "sub", "other"), "1"), os.Symlink(root, by))
		file := filepath.Join(by, "file")
		w := start(Options{Trees: []Tree{{Path: root}}, Files: []string{file, filepath.Join(by, "sub", "none")}})
		f := follow(t, root, w)
		seen := false
		for _, text := range []string{"2", "3"} {
			must(t, put(filepath.Join(root, "file"), text), put(filepath.Join(root, "sub", "other"), text))
			for seen = false; !seen; {
				select {
				case b := <-w.Batches():
					f.take(b)
					delete(f.seen, file)
					seen = b.Lost || slices.Contains(b.Paths, file)
				case <-time.After(patience):
					t.Fatal("it was not told by the other name")
				}
			}
			f.catchesUp("by its own name as well")
		}
		must(t, os.RemoveAll(filepath.Join(root, "sub")), put(filepath.Join(root, "sub", "other"), "4"))
		f.catchesUp("a folder that was watched by two names is another one")
	})
}

// held keeps events back as long as somebody has taken what is in its gate.
type held struct {
	notifier
	out  chan []event
	quit chan struct{}
	gate chan struct{}
}

func (h *held) events() <-chan []event { return h.out }

func (h *held) run() {
	for {
		select {
		case events := <-h.notifier.events():
			h.gate <- <-h.gate
			select {
			case h.out <- events:
			case <-h.quit:
				return
			}
		case <-h.quit:
			return
		}
	}
}
