package share_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// frozen is a cache each call of which blocks until the test is over, and then writes.
type frozen struct{ over chan struct{} }

func (f frozen) Get(context.Context, share.Key) ([]byte, error) {
	<-f.over
	return []byte("late"), nil
}
func (f frozen) Put(context.Context, share.Key, []byte, []share.Blob) error { <-f.over; return nil }
func (f frozen) Missing(context.Context, []share.Blob) ([]share.Blob, error) {
	<-f.over
	return nil, nil
}

func (f frozen) Fetch(_ context.Context, _ share.Blob, to io.Writer) error {
	<-f.over
	_, err := to.Write([]byte("late"))
	return err
}

func (f frozen) Store(_ context.Context, _ share.Blob, open func() (io.ReadCloser, error)) error {
	<-f.over
	_, err := open()
	return err
}
func (f frozen) Close() error { <-f.over; return nil }

// TestMoving: what goes on is not given up, however long it takes, and what stands still is.
func TestMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		defer close(over)
		for name, f := range map[string]func(moved func()) error{
			"from the beginning": func(func()) error { <-over; return nil },
			"later":              func(moved func()) error { moved(); <-over; return nil },
		} {
			if err := share.Moving(time.Minute, f); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := share.Moving(time.Minute, func(moved func()) error {
			for range 10 {
				moved()
				time.Sleep(50 * time.Second)
			}
			return io.EOF
		}); err != io.EOF {
			t.Error(err)
		}
	})
}

// TestPatient: calls of a cache that does not answer are given up, and do nothing to the caller later; after some, further calls fail at
// once. A caller that is stopped does not wait.
func TestPatient(t *testing.T) {
	over := make(chan struct{})
	ctx := context.Background()
	var to bytes.Buffer
	opened := false
	open := func() (io.ReadCloser, error) { opened = true; return nil, errors.New("too late") }
	calls := func(c share.Cache) map[string]func() error {
		return map[string]func() error{
			"get":     func() error { _, err := c.Get(ctx, share.Key{}); return err },
			"put":     func() error { return c.Put(ctx, share.Key{}, nil, nil) },
			"missing": func() error { _, err := c.Missing(ctx, nil); return err },
			"fetch":   func() error { return c.Fetch(ctx, share.Blob{}, &to) },
			"store":   func() error { return c.Store(ctx, share.Blob{}, open) },
		}
	}
	p := share.NewPatient(frozen{over}, time.Millisecond)
	for name, call := range calls(p) {
		if err := call(); !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "no answer within") || share.IsMiss(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for range 20 {
		if _, err := p.Get(ctx, share.Key{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := share.NewPatient(frozen{over}, time.Hour).Get(stopped, share.Key{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := share.Within(time.Millisecond, frozen{over}.Close); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	close(over)
	if to.Len() > 0 || opened {
		t.Error("a call that was given up reached the caller")
	}
}
