package castest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/cas/castest"
)

func TestMemory(t *testing.T) {
	if err := castest.Test(castest.Subject{Empty: func() (cas.Blobs, error) { return &castest.Memory{}, nil }}); err != nil {
		t.Error(err)
	}
}

// TestStore: the store on disk, and one that looks at all blobs in turn.
func TestStore(t *testing.T) {
	for _, workers := range []int{0, 1} {
		err := castest.Test(castest.Subject{
			Empty: func() (cas.Blobs, error) {
				s, err := cas.Open(filepath.Join(t.TempDir(), "cas"))
				s.Workers = workers
				return s, err
			},
			Spoil: func(s cas.Blobs, h digest.Hash, with []byte) error {
				file := s.(*cas.Store).Path(h)
				return errors.Join(os.Chmod(file, 0o666), os.WriteFile(file, with, 0o666))
			},
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFaults: a store with one fault does not pass, for the reason that it has.
func TestFaults(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		fault faulty
		want  string
	}{
		{faulty{has: func(m *castest.Memory, _ context.Context, hs []digest.Hash) ([]bool, error) {
			has, err := m.Has(ctx, hs)
			for i := range has {
				has[i] = true
			}
			return has, err
		}}, "unknown blobs: never stored: Has claims"},
		{faulty{has: func(m *castest.Memory, c context.Context, hs []digest.Hash) ([]bool, error) {
			return m.Has(c, hs[:min(len(hs), 100)])
		}}, "many hashes: 100 answers for 600"},
		{faulty{has: func(m *castest.Memory, _ context.Context, hs []digest.Hash) ([]bool, error) { return m.Has(ctx, hs) }}, "contexts: Has:"},
		{faulty{open: func(m *castest.Memory, _ context.Context, h digest.Hash) (io.ReadSeekCloser, error) {
			return m.Open(ctx, h)
		}}, "contexts: Open:"},
		{faulty{put: func(m *castest.Memory, _ context.Context, h digest.Hash, from io.Reader) error {
			return m.Put(ctx, h, from)
		}}, "contexts: Put that is stopped half way: <nil>"},
		{faulty{put: func(m *castest.Memory, _ context.Context, _ digest.Hash, from io.Reader) error {
			b, err := io.ReadAll(from)
			m.Add(b)
			return err
		}}, "other bytes: wrong: error <nil>, not blob is damaged"},
		{faulty{put: func(m *castest.Memory, c context.Context, h digest.Hash, from io.Reader) error {
			b, err := io.ReadAll(from)
			m.Add(b)
			return errors.Join(err, m.Put(c, h, bytes.NewReader(b)))
		}}, "other bytes: truncated, by its own hash: Has claims"},
		{faulty{put: func(m *castest.Memory, c context.Context, h digest.Hash, from io.Reader) error {
			b, _ := io.ReadAll(from)
			return m.Put(c, h, bytes.NewReader(b))
		}}, "other bytes: failing at the end: error <nil>"},
		{faulty{put: func(m *castest.Memory, c context.Context, h digest.Hash, from io.Reader) error {
			return m.Put(c, h, io.LimitReader(from, 1<<20))
		}}, "right bytes: 1048579 bytes are not stored"},
		{faulty{open: func(m *castest.Memory, c context.Context, h digest.Hash) (io.ReadSeekCloser, error) {
			r, err := m.Open(c, h)
			if err == nil {
				r.Read(make([]byte, 1))
			}
			return r, err
		}}, "right bytes: after: a blob of 1 bytes is read as 0"},
	} {
		err := castest.Test(castest.Subject{Empty: func() (cas.Blobs, error) { f := c.fault; f.Memory = &castest.Memory{}; return f, nil }})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %.2000v", c.want, err)
		}
	}
}

// faulty is a store of which one method is another one.
type faulty struct {
	*castest.Memory
	has  func(*castest.Memory, context.Context, []digest.Hash) ([]bool, error)
	open func(*castest.Memory, context.Context, digest.Hash) (io.ReadSeekCloser, error)
	put  func(*castest.Memory, context.Context, digest.Hash, io.Reader) error
}

func (f faulty) Has(ctx context.Context, hashes []digest.Hash) ([]bool, error) {
	if f.has != nil {
		return f.has(f.Memory, ctx, hashes)
	}
	return f.Memory.Has(ctx, hashes)
}

func (f faulty) Open(ctx context.Context, h digest.Hash) (io.ReadSeekCloser, error) {
	if f.open != nil {
		return f.open(f.Memory, ctx, h)
	}
	return f.Memory.Open(ctx, h)
}

func (f faulty) Put(ctx context.Context, h digest.Hash, from io.Reader) error {
	if f.put != nil {
		return f.put(f.Memory, ctx, h, from)
	}
	return f.Memory.Put(ctx, h, from)
}
