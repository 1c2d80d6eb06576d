package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
)

// everywhere are bounds that no file of a test is out of.
var everywhere = disk.NewBounds(filepath.VolumeName(os.TempDir())+string(filepath.Separator), nil)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "cas"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Store, b []byte) digest.Hash {
	t.Helper()
	h, err := s.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func has(s *Store, h digest.Hash) bool {
	all, err := s.Has(context.Background(), []digest.Hash{h})
	return err == nil && all[0]
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

// wantNoTemp checks that no writer left anything behind.
func wantNoTemp(t *testing.T, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if err != nil || len(entries) != 0 {
		t.Errorf("temporary files: %v %v", entries, err)
	}
}

func TestStore(t *testing.T) {
	s := open(t)
	sizes := []int{0, 1, 4096, smallBlob - 1, smallBlob, smallBlob + 1, 3*smallBlob + 7}
	want := map[digest.Hash][]byte{}
	for _, n := range sizes {
		b := noise(n)
		h := put(t, s, b)
		want[h] = b
		if h != digest.Of(b) {
			t.Errorf("%d bytes: another hash", n)
		}
		if again := put(t, s, b); again != h {
			t.Errorf("%d bytes: another hash the second time", n)
		}
		if !has(s, h) {
			t.Errorf("%d bytes: Has", n)
		}
		if got, err := s.Read(h); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes: Read: %v", n, err)
		}
		if err := s.Verify(h); err != nil {
			t.Errorf("%d bytes: Verify: %v", n, err)
		}
		if info, err := os.Stat(s.Path(h)); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%d bytes: %v %v, not read-only", n, info.Mode(), err)
		}
	}
	wantNoTemp(t, s)

	if err := os.WriteFile(filepath.Join(s.dir, "note.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var walked []string
	err := s.Walk(func(h digest.Hash, info fs.FileInfo) error {
		walked = append(walked, h.String())
		if int64(len(want[h])) != info.Size() {
			t.Errorf("Walk: %s of %d bytes", h.Short(), info.Size())
		}
		return nil
	})
	if err != nil || len(walked) != len(want) || !slices.IsSorted(walked) {
		t.Errorf("Walk: %v, %d blobs, sorted %t", err, len(walked), slices.IsSorted(walked))
	}
	stop := errors.New("stop")
	if err := s.Walk(func(digest.Hash, fs.FileInfo) error { return stop }); err != stop {
		t.Errorf("Walk does not stop: %v", err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s := open(t)
	h := digest.Of([]byte("never written"))
	if has(s, h) {
		t.Error("Has")
	}
	if _, err := s.Read(h); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read: %v", err)
	}
	for name, err := range map[string]error{
		"Verify": s.Verify(h), "Remove": s.Remove(h), "Materialise": s.Materialise(h, everywhere, filepath.Join(t.TempDir(), "x", "y")),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreams(t *testing.T) {
	s := open(t)
	b := noise(2*smallBlob + 100)
	for _, step := range []int{1000, smallBlob, smallBlob + 1, len(b)} {
		w := s.Create()
		for from := 0; from < len(b); from += step {
			if n, err := w.Write(b[from:min(from+step, len(b))]); err != nil || n != min(step, len(b)-from) {
				t.Fatal(n, err)
			}
		}
		h, n, err := w.Commit()
		if err != nil || h != digest.Of(b) || n != int64(len(b)) {
			t.Errorf("steps of %d: %v, %d bytes", step, err, n)
		}
	}
	for _, n := range []int{0, 10, smallBlob + 1} {
		w := s.Create()
		w.Write(b[:n])
		w.Abort()
	}
	wantNoTemp(t, s)
	count := 0
	s.Walk(func(digest.Hash, fs.FileInfo) error { count++; return nil })
	if count != 1 {
		t.Errorf("%d blobs", count)
	}
}

func TestConcurrentWriters(t *testing.T) {
	s := open(t)
	small, large := []byte("the same"), noise(smallBlob+1)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 8 {
				for _, b := range [][]byte{small, large, fmt.Appendf(nil, "%d", (i+j)%5)} {
					h, err := s.Add(b)
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := s.Read(h); err != nil || !bytes.Equal(got, b) {
						t.Error("read back", err)
					}
				}
			}
		})
	}
	wg.Wait()
	wantNoTemp(t, s)
}

func TestOpenRemovesWhatWasLeft(t *testing.T) {
	s := open(t)
	h := put(t, s, []byte("kept"))
	w := s.Create()
	w.Write(noise(smallBlob + 1)) // and the process is killed
	w.file.Close()
	again, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	wantNoTemp(t, again)
	if !has(again, h) {
		t.Error("the blob is gone")
	}
	w.Abort()
	ro := OpenReadOnly(filepath.Join(t.TempDir(), "none"))
	if has(ro, h) {
		t.Error("a store that is not there has a blob")
	}
	if _, err := os.Stat(ro.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("looking made the folder")
	}
}

func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(p string) error{
		"truncated": func(p string) error { return os.Truncate(p, 5) },
		"empty":     func(p string) error { return os.Truncate(p, 0) },
		"flipped": func(p string) error {
			b, err := os.ReadFile(p)
			if err == nil {
				b[3] ^= 1
				err = os.WriteFile(p, b, 0o666)
			}
			return err
		},
		"longer": func(p string) error {
			b, err := os.ReadFile(p)
			if err == nil {
				err = os.WriteFile(p, append(b, 0), 0o666)
			}
			return err
		},
	} {
		for _, read := range []bool{true, false} {
			s := open(t)
			s.place.Store(byLink)
			h := put(t, s, []byte("0123456789"))
			out := filepath.Join(t.TempDir(), "out")
			if err := s.Materialise(h, everywhere, out); err != nil {
				t.Fatal(err)
			}
			// Somebody makes the output writable and edits it, which is the blob as well.
			if err := os.Chmod(out, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := damage(out); err != nil {
				t.Fatal(err)
			}
			check := s.Verify
			if read {
				check = func(h digest.Hash) error { _, err := s.Read(h); return err }
			}
			if err := check(h); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Lstat(s.Path(h)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: the blob was not removed", name)
			}
			put(t, s, []byte("0123456789"))
			if err := s.Verify(h); err != nil {
				t.Errorf("%s: made again: %v", name, err)
			}
			if err := s.Materialise(h, everywhere, out); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got, _ := os.ReadFile(out); string(got) != "0123456789" {
				t.Errorf("%s: the output has %q", name, got)
			}
		}
	}
}

// TestDamagedBlobIsWrittenOver: a blob of another size is no reason to keep it.
func TestDamagedBlobIsWrittenOver(t *testing.T) {
	s := open(t)
	h := put(t, s, []byte("whole"))
	os.Chmod(s.Path(h), 0o666)
	if err := os.WriteFile(s.Path(h), []byte("sh"), 0o666); err != nil {
		t.Fatal(err)
	}
	put(t, s, []byte("whole"))
	if err := s.Verify(h); err != nil {
		t.Error(err)
	}
}

func TestMaterialise(t *testing.T) {
	for way, name := range map[int32]string{byReflink: "best", byLink: "link", byCopy: "copy"} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.place.Store(way)
			a, b := put(t, s, []byte("a")), put(t, s, []byte("bb"))
			dir := t.TempDir()
			out := filepath.Join(dir, "deep", "er", "out")
			for i, h := range []digest.Hash{a, a, b, a} { // new, the same again, over another one
				if err := s.Materialise(h, everywhere, out); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				wantOutput(t, out, map[digest.Hash]string{a: "a", b: "bb"}[h])
			}
			writable := filepath.Join(dir, "writable")
			if err := os.WriteFile(writable, []byte("somebody's own"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := s.Materialise(b, everywhere, writable); err != nil {
				t.Fatal(err)
			}
			wantOutput(t, writable, "bb")
			if err := s.Verify(b); err != nil {
				t.Error(err)
			}

			if err := os.RemoveAll(filepath.Join(dir, "deep")); err != nil { // behind the store's back
				t.Fatal(err)
			}
			if err := s.Materialise(b, everywhere, out); err != nil {
				t.Fatalf("folder removed: %v", err)
			}
			wantOutput(t, out, "bb")
			if err := os.RemoveAll(filepath.Join(dir, "deep")); err != nil {
				t.Fatal(err)
			}
			everywhere.Forget()
			if err := s.Materialise(b, everywhere, out); err != nil {
				t.Fatalf("folder removed, forgotten: %v", err)
			}

			inTheWay := filepath.Join(dir, "folder")
			if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := s.Materialise(a, everywhere, inTheWay); err == nil {
				t.Error("a folder in the way was replaced")
			}
			if err := s.Materialise(a, everywhere, filepath.Join(writable, "x")); err == nil {
				t.Error("a file in the way of a folder was replaced")
			}
			wantNothingHalf(t, dir)
		})
	}
}

func wantOutput(t *testing.T, p, want string) {
	t.Helper()
	got, err := os.ReadFile(p)
	if err != nil || string(got) != want {
		t.Errorf("%s: %q %v, not %q", p, got, err, want)
	}
	if info, err := os.Lstat(p); err != nil || info.Mode().Perm()&0o222 != 0 || !info.Mode().IsRegular() {
		t.Errorf("%s: %v, not a read-only file", p, info.Mode())
	}
}

// wantNothingHalf checks that no temporary files stay in the output tree.
func wantNothingHalf(t *testing.T, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".kiln-") {
			t.Errorf("%s was left", p)
		}
		return nil
	})
}

func TestManyAtOnceIntoOneFile(t *testing.T) {
	s := open(t)
	dir := t.TempDir()
	hashes := []digest.Hash{put(t, s, []byte("1")), put(t, s, []byte("2"))}
	var wg sync.WaitGroup
	writers := 8
	if runtime.GOOS == "windows" {
		writers = 2 // a file is replaced when nobody has it open under any name: eight could stand in each other's way for disk.Patience
	}
	for i := range writers {
		wg.Go(func() {
			for range 20 {
				if err := s.Materialise(hashes[i%2], everywhere, filepath.Join(dir, "x", "out")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantNothingHalf(t, dir)
	for _, h := range hashes {
		if err := s.Verify(h); err != nil {
			t.Error(err)
		}
	}
}

func TestUnwritableOutput(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("permissions do not stop this user")
	}
	s := open(t)
	h := put(t, s, []byte("x"))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := s.Materialise(h, everywhere, filepath.Join(dir, "out")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error: %v", err)
	}
}

func TestRemoveOutput(t *testing.T) {
	root := t.TempDir()
	for _, p := range []string{"a/b/c/file", "a/other", "top"} {
		p = filepath.Join(root, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	has := func(p string) bool { _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(p))); return err == nil }
	remove := func(p string) {
		t.Helper()
		if err := RemoveOutput(disk.NewBounds(root, nil), filepath.Join(root, filepath.FromSlash(p))); err != nil {
			t.Error(err)
		}
	}
	remove("a/b/c/file")
	if has("a/b") || !has("a/other") {
		t.Error("empty folders stay, or too many went")
	}
	remove("a/b/c/file") // gone already
	remove("a/other")
	remove("top")
	if has("a") || !has(".") {
		t.Error("the folder stays, or the root went")
	}
	if err := os.MkdirAll(filepath.Join(root, "d", "e"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := RemoveOutput(disk.NewBounds(root, nil), filepath.Join(root, "d")); err == nil {
		t.Error("a folder with something in it was removed")
	}
}

// TestFailedWriteIsNoBlob: who writes on after an error gets it again at the end, not a blob with a hole.
func TestFailedWriteIsNoBlob(t *testing.T) {
	s := open(t)
	tmp := filepath.Join(s.dir, "tmp")
	if err := os.Remove(tmp); err != nil {
		t.Fatal(err)
	}
	w := s.Create()
	w.Write([]byte("head"))
	if _, err := w.Write(noise(smallBlob)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no error: %v", err)
	}
	if err := os.Mkdir(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("tail")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second write: %v", err)
	}
	if h, n, err := w.Commit(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("committed %s of %d bytes: %v", h.Short(), n, err)
	}
	wantNoTemp(t, s)
	w = s.Create() // may be the same writer again
	w.Write([]byte("x"))
	if _, _, err := w.Commit(); err != nil {
		t.Error(err)
	}
}

// Whoever only looks finds a damaged blob and leaves it where it is.
func TestReadOnlyLeavesDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Add([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(s.Path(h), 0o666), os.WriteFile(s.Path(h), []byte("damaged"), 0o666)); err != nil {
		t.Fatal(err)
	}
	ro := OpenReadOnly(dir)
	if err := ro.Verify(h); !errors.Is(err, ErrDamaged) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := ro.Read(h); !errors.Is(err, ErrDamaged) {
		t.Errorf("Read: %v", err)
	}
	if data, err := os.ReadFile(s.Path(h)); string(data) != "damaged" {
		t.Errorf("it holds %q, %v", data, err)
	}
	if err := s.Verify(h); !errors.Is(err, ErrDamaged) || has(s, h) {
		t.Errorf("a store that is written to keeps it: %v", err)
	}
}

// TestBlobLinks: a folder of blobs that is a link is not written to, and nothing is removed through it.
func TestBlobLinks(t *testing.T) {
	s, out := open(t), t.TempDir()
	b := []byte("content")
	h := digest.Of(b)
	folder := filepath.Dir(s.Path(h))
	if os.Symlink(out, folder) != nil {
		t.Skip("there are no symbolic links")
	}
	if _, err := s.Add(b); err == nil {
		t.Error("it was written through a link")
	}
	victim := filepath.Join(out, filepath.Base(s.Path(h)))
	if err := os.WriteFile(victim, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(h); err == nil {
		t.Error("it was removed through a link")
	}
	if all, err := os.ReadDir(out); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
