//go:build unix

package cas

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

func TestLinkIsTheSameFile(t *testing.T) {
	s := open(t)
	h := put(t, s, []byte("x"))
	for way, same := range map[int32]bool{byLink: true, byCopy: false} {
		s.place.Store(way)
		out := filepath.Join(t.TempDir(), "out")
		if err := s.Materialise(h, everywhere, out); err != nil {
			t.Fatal(err)
		}
		a, _ := os.Stat(out)
		b, _ := os.Stat(s.Path(h))
		if os.SameFile(a, b) != same {
			t.Errorf("way %d: the same file %t", way, !same)
		}
		if s.place.Load() != way {
			t.Errorf("way %d was given up", way)
		}
	}
}

// TestRefusedWays: what the file system refuses is not tried again, but for a blob with too many links.
func TestRefusedWays(t *testing.T) {
	for _, c := range []struct {
		err  error
		then int32
		ok   bool
	}{
		{syscall.EXDEV, byCopy, true}, {syscall.EPERM, byCopy, true}, {syscall.EOPNOTSUPP, byCopy, true},
		{syscall.EMLINK, byLink, true}, {syscall.EIO, byLink, false}, {syscall.ENOSPC, byLink, false},
	} {
		s := open(t)
		s.place.Store(byLink)
		s.ways[byLink] = func(_, dst string) error { return &fs.PathError{Op: "link", Path: dst, Err: c.err} }
		h := put(t, s, []byte("x"))
		out := filepath.Join(t.TempDir(), "out")
		err := s.Materialise(h, everywhere, out)
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, c.err) {
			t.Errorf("%v: %v", c.err, err)
		}
		if c.ok {
			wantOutput(t, out, "x")
		}
		if got := s.place.Load(); got != c.then {
			t.Errorf("%v: then way %d, not %d", c.err, got, c.then)
		}
	}
}

// TestReflinkIsWhole: an output is never there while its content is not.
func TestReflinkIsWhole(t *testing.T) {
	s := open(t)
	h := put(t, s, []byte("x"))
	out := filepath.Join(t.TempDir(), "out")
	s.ways[byReflink] = func(src, dst string) error {
		if dst == out {
			t.Error("made in place")
		}
		data, err := os.ReadFile(src)
		if err != nil {
			return err
		}
		return os.WriteFile(dst, data, 0o444)
	}
	for range 2 {
		if err := s.Materialise(h, everywhere, out); err != nil {
			t.Fatal(err)
		}
		wantOutput(t, out, "x")
	}
	wantNothingHalf(t, filepath.Dir(out))
}

// TestFullDisk runs itself in a name space of its own, where it may mount a file system of a megabyte.
func TestFullDisk(t *testing.T) {
	const inside = "KILN_TEST_FULL_DISK"
	dir := os.Getenv(inside)
	if dir == "" {
		if runtime.GOOS != "linux" {
			t.Skip("needs Linux")
		}
		dir = t.TempDir()
		script := `mount -t tmpfs -o size=1m none "$1" || exit 77; shift; exec "$@"`
		for _, flags := range []string{"-m", "-rm"} { // as root, or as root of a user name space
			c := exec.Command("unshare", flags, "sh", "-c", script, "sh", dir, os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
			c.Env = append(os.Environ(), inside+"="+dir)
			out, err := c.CombinedOutput()
			if err == nil {
				return
			}
			if e, ok := err.(*exec.ExitError); ok && e.ExitCode() == 1 && len(out) > 0 && out[0] == '=' {
				t.Fatalf("%s", out)
			}
			t.Logf("unshare %s: %v %s", flags, err, out)
		}
		t.Skip("no file system can be mounted here")
	}
	s, err := Open(filepath.Join(dir, "cas"))
	if err != nil {
		t.Fatal(err)
	}
	full := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", what, err)
		}
		wantNoTemp(t, s)
		wantNothingHalf(t, dir)
	}
	_, err = s.Add(noise(2 << 20)) // as a stream
	full("large blob", err)
	h := put(t, s, noise(600<<10))
	s.place.Store(byCopy)
	full("copy", s.Materialise(h, everywhere, filepath.Join(dir, "out", "x")))
	if _, err := os.Lstat(filepath.Join(dir, "out", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("half an output file")
	}
	_, err = s.Add(noise(smallBlob)) // from memory
	for i := 0; err == nil && i < 8; i++ {
		_, err = s.Add(noise(smallBlob - 4096*(i+1)))
	}
	full("small blob", err)
	if err := s.Verify(h); err != nil {
		t.Error(err)
	}
	n := 0
	s.Walk(func(h digest.Hash, _ fs.FileInfo) error { n++; return s.Verify(h) })
	if n == 0 {
		t.Error("no blob at all")
	}
}

// TestEqualBlobsAreOneFile: whoever stores the same bytes at the same time, all outputs are links to one file, so that an edit of
// one is an edit of all.
func TestEqualBlobsAreOneFile(t *testing.T) {
	const workers, rounds = 8, 50
	s, err := Open(filepath.Join(t.TempDir(), "cas"))
	if err != nil {
		t.Fatal(err)
	}
	s.place.Store(byLink)
	out := t.TempDir()
	for round := range rounds {
		data := fmt.Appendf(nil, "round %d", round)
		at := func(w int) string { return filepath.Join(out, fmt.Sprint(round, "-", w)) }
		start := make(chan struct{})
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				<-start
				h, err := s.Add(data)
				if err == nil {
					err = s.Materialise(h, everywhere, at(w))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		first, err := os.Stat(at(0))
		if err != nil {
			t.Fatal(err)
		}
		for w := range workers {
			if info, err := os.Stat(at(w)); err != nil || !os.SameFile(first, info) {
				t.Fatalf("round %d: worker %d has a file of its own: %v", round, w, err)
			}
		}
	}
}
