package share

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// maxTeed is the size up to which a blob from the far cache is copied into the near one, in bytes; it is in memory
// meanwhile.
const maxTeed = 64 << 20

// tiers combines a near and a far cache. Results from the far one are stored in the near one.
type tiers struct {
	near, far, into Cache
	intact          func(Key, []byte) bool
}

// Tiers reads results from two caches, the near one first. What only the far one has is stored in the near one through
// into, which is the same cache with its own guard. Each cache is written separately. Hints are not copied, because
// they change: a copy would hide what others add. A value in the near one that is not intact does not hide the far one's.
func Tiers(near, far, into Cache, intact func(Key, []byte) bool) Cache {
	return &tiers{near, far, into, intact}
}

func (t *tiers) Get(ctx context.Context, key Key) ([]byte, error) {
	value, err := t.near.Get(ctx, key)
	if err == nil && t.intact(key, value) {
		return value, nil
	}
	if value, err = t.far.Get(ctx, key); err == nil && t.intact(key, value) {
		t.into.Put(ctx, key, value, nil) // if this fails, the next reader asks the far one again
	}
	return value, err
}

func (t *tiers) Put(context.Context, Key, []byte, []Blob) error { return errors.ErrUnsupported }

func (t *tiers) Store(context.Context, Blob, func() (io.ReadCloser, error)) error {
	return errors.ErrUnsupported
}

// Missing returns the blobs that neither cache has.
func (t *tiers) Missing(ctx context.Context, blobs []Blob) ([]Blob, error) {
	if missing, err := t.near.Missing(ctx, blobs); err == nil {
		blobs = missing
	}
	if len(blobs) == 0 {
		return nil, nil
	}
	return t.far.Missing(ctx, blobs)
}

func (t *tiers) Fetch(ctx context.Context, b Blob, to io.Writer) error {
	if missing, err := t.near.Missing(ctx, []Blob{b}); err == nil && len(missing) == 0 {
		w := &begun{to: to}
		if err := t.near.Fetch(ctx, b, w); err == nil || w.begun {
			return err
		}
	}
	if b.Size > maxTeed {
		return t.far.Fetch(ctx, b, to)
	}
	var data bytes.Buffer
	if err := t.far.Fetch(ctx, b, &data); err != nil {
		return err
	}
	t.into.Store(ctx, b, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil })
	_, err := to.Write(data.Bytes())
	return err
}

func (t *tiers) Close() error { return errors.Join(t.near.Close(), t.far.Close()) }

// begun is a writer that knows whether something was written.
type begun struct {
	to    io.Writer
	begun bool
}

func (w *begun) Write(p []byte) (int, error) {
	w.begun = true
	return w.to.Write(p)
}
