package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"

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
