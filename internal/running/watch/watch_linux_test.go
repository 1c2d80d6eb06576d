package watch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// TestTwoNames: a folder is watched by two names, and each of them is told: one of a tree, one that leads there by a link, for a single
// file.
func TestTwoNames(t *testing.T) {
	for _, poll := range []time.Duration{0, 5 * time.Millisecond} {
		root, by := t.TempDir(), filepath.Join(t.TempDir(), "link")
		must(t, put(filepath.Join(root, "file"), "1"), put(filepath.Join(root, "sub", "other"), "1"), os.Symlink(root, by))
		file := filepath.Join(by, "file")
		w, err := New(Options{Trees: []Tree{{Path: root, Lists: true}}, Files: []string{file, filepath.Join(by, "sub", "none")}, Poll: poll})
		must(t, err)
		defer w.Close()
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
	}
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
