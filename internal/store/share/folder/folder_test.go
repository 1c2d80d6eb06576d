package folder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/sharetest"
)

func open(t *testing.T, dir string, limit int64, readOnly bool) *Folder {
	t.Helper()
	f, err := Open(dir, limit, readOnly)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func of(c share.Cache) *Folder {
	f, ok := c.(*Folder)
	if !ok {
		panic("not a folder")
	}
	return f
}

func TestFolder(t *testing.T) {
	err := sharetest.Test(sharetest.Subject{
		Empty: func() (share.Cache, error) { return Open(t.TempDir(), 0, false) },
		Again: func(c share.Cache) (share.Cache, error) { return Open(of(c).Dir(), 0, false) },
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSpoilt: each file of the folder damaged in several ways is a miss, or the entry is refused by whoever decodes it; and what was
// deleted can be stored again.
func TestSpoilt(t *testing.T) {
	ctx := context.Background()
	f := open(t, t.TempDir(), 0, false)
	data := sharetest.Noise(1, 10_000)
	blob := sharetest.BlobOf(data)
	for what, spoil := range map[string]func(path string) error{
		"cut":      func(p string) error { return os.Truncate(p, 100) },
		"empty":    func(p string) error { return os.Truncate(p, 0) },
		"longer":   func(p string) error { return os.WriteFile(p, append(bytes.Clone(data), 1), 0o666) },
		"zeros":    func(p string) error { return os.WriteFile(p, make([]byte, len(data)), 0o666) },
		"removed":  os.Remove,
		"a folder": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o777)) },
	} {
		if err := f.Store(ctx, blob, sharetest.Opener(data)); err != nil {
			t.Fatal(what, err)
		}
		if err := spoil(f.blobPath(blob)); err != nil {
			t.Fatal(what, err)
		}
		if err := f.Fetch(ctx, blob, io.Discard); err == nil {
			t.Errorf("%s: the blob is fetched", what)
		}
		if info, err := os.Lstat(f.blobPath(blob)); err == nil && info.IsDir() {
			os.Remove(f.blobPath(blob))
		}
	}
}

func TestReadOnly(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	data := sharetest.Noise(1, 1000)
	blob := sharetest.BlobOf(data)
	if _, err := Open(filepath.Join(dir, "none"), 0, true); !errors.Is(err, fs.ErrNotExist) { // a drive that is not there, say
		t.Error(err)
	}
	w := open(t, dir, 0, false)
	if err := errors.Join(w.Store(ctx, blob, sharetest.Opener(data)), w.Put(ctx, sharetest.KeyOf("x"), data, nil)); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, 0, true)
	if err := f.Fetch(ctx, blob, io.Discard); err != nil {
		t.Error(err)
	}
	if err := f.Store(ctx, sharetest.BlobOf([]byte("y")), sharetest.Opener([]byte("y"))); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if err := f.Put(ctx, sharetest.KeyOf("y"), data, nil); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	os.Truncate(w.blobPath(blob), 10)
	if err := f.Fetch(ctx, blob, io.Discard); !errors.Is(err, share.ErrDamaged) {
		t.Error(err)
	}
	if _, err := os.Stat(w.blobPath(blob)); err != nil {
		t.Error("a damaged blob was deleted by one who only reads")
	}
}

// TestLimit: what was not used for longest goes first, and what is used stays.
func TestLimit(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	f := open(t, dir, 100_000, false)
	var blobs []share.Blob
	old := time.Now().Add(-time.Hour * 100)
	for i := range 12 {
		data := sharetest.Noise(uint8(i), 10_000)
		blobs = append(blobs, sharetest.BlobOf(data))
		if err := f.Store(ctx, blobs[i], sharetest.Opener(data)); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(f.blobPath(blobs[i]), old, old.Add(time.Duration(i)*time.Minute))
	}
	for _, i := range []int{0, 3} {
		if err := f.Fetch(ctx, blobs[i], io.Discard); err != nil { // which notes that they are used
			t.Fatal(err)
		}
	}
	left := filepath.Join(f.dir, "tmp", "left")
	os.WriteFile(left, []byte("x"), 0o666)
	os.Chtimes(left, old, old)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	missing, err := f.Missing(ctx, blobs)
	if err != nil || len(missing) != 3 || missing[0] != blobs[1] || missing[1] != blobs[2] || missing[2] != blobs[4] {
		t.Errorf("missing: %d, %v", len(missing), err)
	}
	if usage, err := f.Usage(func() {}); err != nil || usage.Blobs != 9 || usage.Bytes != 90_000 {
		t.Errorf("%+v, %v", usage, err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what was left behind is still there")
	}
	if n, ok := f.usage(); !ok || n != 90_000 {
		t.Error(n, ok)
	}
}

// TestUsage: a count that was lost or damaged is made again, and one of two processes that end at once.
func TestUsage(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	data := sharetest.Noise(1, 1000)
	for i, wrong := range []string{"", "x\n", "-5\n", "99999999999999999999999999\n", "7"} {
		f := open(t, dir, 1_000_000, false)
		os.WriteFile(f.usagePath(), []byte(wrong), 0o666)
		blob := sharetest.BlobOf(data)
		if err := errors.Join(f.Store(ctx, blob, sharetest.Opener(data)), f.Close()); err != nil {
			t.Fatal(err)
		}
		n, ok := f.usage()
		if want := int64(1000); !ok || i < 4 && n != want || i == 4 && n != 1007 {
			t.Errorf("%q: %d, %t", wrong, n, ok)
		}
	}
}

// TestEmptied: somebody deletes the folder, or what is in it, while it is used.
func TestEmptied(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "cache")
	f := open(t, dir, 0, false)
	data := sharetest.Noise(1, 1000)
	blob := sharetest.BlobOf(data)
	for range 3 {
		if err := f.Store(ctx, blob, sharetest.Opener(data)); err != nil {
			t.Fatal(err)
		}
		if err := f.Put(ctx, sharetest.KeyOf("x"), data, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := f.Fetch(ctx, blob, io.Discard); !share.IsMiss(err) {
			t.Error(err)
		}
	}
}
