package share

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// maxTeed is how large a blob is at most that is copied into the nearer cache when the other one gives it, in bytes: it is in memory then.
const maxTeed = 64 << 20

// tiers are a cache that is near and one that is far. What the far one gives is put into the near one.
type tiers struct{ near, far, into Cache }

// Tiers reads results from two caches, the near one first. What only the far one has is put into the near one by way of into, the same
// with a guard of its own. Writing is for each by itself; and so are hints, which change: one that was copied would hide what others add
// to it.
func Tiers(near, far, into Cache) Cache { return &tiers{near, far, into} }

func (t *tiers) Get(ctx context.Context, key Key) ([]byte, error) {
	value, err := t.near.Get(ctx, key)
	if err == nil {
		return value, nil
	}
	if value, err = t.far.Get(ctx, key); err == nil {
		t.into.Put(ctx, key, value, nil) // or the next one asks the far one, too
	}
	return value, err
}

func (t *tiers) Put(context.Context, Key, []byte, []Blob) error { return errors.ErrUnsupported }

func (t *tiers) Store(context.Context, Blob, func() (io.ReadCloser, error)) error {
	return errors.ErrUnsupported
}

// Missing are the blobs that neither has.
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

// begun knows whether something was written.
type begun struct {
	to    io.Writer
	begun bool
}

func (w *begun) Write(p []byte) (int, error) {
	w.begun = true
	return w.to.Write(p)
}
