package cas

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func TestAdopt(t *testing.T) {
	large := bytes.Repeat([]byte("kiln"), smallBlob)
	for _, c := range []struct {
		name  string
		data  []byte
		do    func(t *testing.T, file string) (after func()) // before the file is adopted, and after
		moved bool
	}{
		{"plain", []byte("a"), nil, true},
		{"empty", nil, nil, true},
		{"large", large, nil, true},
		{"open to read", []byte("b"), func(t *testing.T, file string) func() {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		}, true},
		{"open to write", []byte("c"), func(t *testing.T, file string) func() {
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.WriteString("spoilt"); f.Close() }
		}, false},
		{"mapped", large, func(t *testing.T, file string) func() {
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			b, err := unix.Mmap(int(f.Fd()), 0, len(large), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				t.Fatal(err)
			}
			return func() { copy(b, "spoilt"); unix.Munmap(b) }
		}, false},
		{"two names", []byte("d"), func(t *testing.T, file string) func() {
			if err := os.Link(file, file+"2"); err != nil {
				t.Fatal(err)
			}
			return func() { os.WriteFile(file+"2", []byte("spoilt"), 0o666) }
		}, false},
		{"attributes", []byte("e"), func(t *testing.T, file string) func() {
			if err := unix.Setxattr(file, "user.kiln", []byte("x"), 0); err != nil {
				t.Skip(err)
			}
			return func() {}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(filepath.Join(t.TempDir(), "cas"))
			if err != nil {
				t.Fatal(err)
			}
			dir, err := os.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			file := filepath.Join(dir.Name(), "out")
			if err := os.WriteFile(file, c.data, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			was := inode(t, file)
			after := func() {}
			if c.do != nil {
				after = c.do(t, file)
			}
			began := time.Now().Add(-time.Second)
			h, n, err := s.Adopt(dir, "out")
			if err != nil || h != digest.Of(c.data) || n != int64(len(c.data)) {
				t.Fatal(h, n, err)
			}
			after()
			if got, err := s.Read(h); err != nil || !bytes.Equal(got, c.data) {
				t.Errorf("the blob is %.20q, %v", got, err)
			}
			if moved := inode(t, s.Path(h)) == was; moved != c.moved {
				t.Errorf("moved: %v, want %v", moved, c.moved)
			}
			info, err := os.Stat(s.Path(h))
			if err != nil || info.Mode() != 0o444 || info.ModTime().Before(began) {
				t.Error(info.Mode(), info.ModTime(), err)
			}
			if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
				t.Error("the file is still there:", err)
			}
			empty(t, filepath.Join(s.dir, "tmp"))
		})
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

func TestAdoptWhatIsThere(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "cas"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Add([]byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	was := inode(t, s.Path(h))
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := os.WriteFile(filepath.Join(dir.Name(), "out"), []byte("a"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, n, err := s.Adopt(dir, "out"); got != h || n != 1 || err != nil {
		t.Error(got, n, err)
	}
	if inode(t, s.Path(h)) != was {
		t.Error("the blob is another file")
	}
	empty(t, filepath.Join(s.dir, "tmp"))
}

func TestAdoptNoFile(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "cas"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	at := func(name string) string { return filepath.Join(dir.Name(), name) }
	for _, err := range []error{os.Symlink("/etc/passwd", at("link")), os.MkdirAll(at("folder/in"), 0o777), unix.Mkfifo(at("pipe"), 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{"link": ErrOdd, "folder": ErrOdd, "pipe": ErrOdd, "none": os.ErrNotExist} {
		if _, _, err := s.Adopt(dir, name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty(t, filepath.Join(s.dir, "tmp"))
	elsewhere, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	if _, _, err := s.Adopt(elsewhere, "status"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("from another file system: %v", err)
	}
}
