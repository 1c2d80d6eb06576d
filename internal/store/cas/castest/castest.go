// Package castest checks that a store of blobs does what cas.Blobs says, as package testing/fstest does for file systems, and has one in
// memory for tests.
package castest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing/iotest"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// Subject is what is checked.
type Subject struct {
	Empty func() (cas.Blobs, error) // a store with nothing in it

	// Spoil makes a stored blob hold other bytes, behind the store's back. nil if nobody can.
	Spoil func(s cas.Blobs, h digest.Hash, with []byte) error
}

// Test runs all checks, each with a store of its own, and gives everything that is wrong.
func Test(s Subject) error {
	checks := []struct {
		name string
		run  func(*check)
	}{
		{"unknown blobs", unknown}, {"right bytes", right}, {"readers", readers}, {"many hashes", many}, {"other bytes", other},
		{"while it is written", whileWritten}, {"many at once", atOnce}, {"contexts", contexts}, {"spoilt blobs", spoilt},
	}
	var errs []error
	for _, x := range checks {
		store, err := s.Empty()
		if err != nil {
			return err
		}
		c := &check{Blobs: store, spoil: s.Spoil, name: x.name, ctx: context.Background()}
		x.run(c)
		errs = append(errs, c.errs...)
	}
	return errors.Join(errs...)
}

// check is one of a store that was empty before.
type check struct {
	cas.Blobs
	spoil func(s cas.Blobs, h digest.Hash, with []byte) error
	name  string
	ctx   context.Context

	mu   sync.Mutex
	errs []error
}

func (c *check) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, fmt.Errorf(c.name+": "+format, args...))
}

// noise are bytes that nothing else has.
func noise(seed uint8, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func (c *check) put(b []byte) digest.Hash {
	h := digest.Of(b)
	if err := c.Put(c.ctx, h, bytes.NewReader(b)); err != nil {
		c.errorf("%d bytes are not stored: %v", len(b), err)
	}
	return h
}

func (c *check) has(h digest.Hash) bool {
	has, err := c.Has(c.ctx, []digest.Hash{h})
	if err != nil || len(has) != 1 {
		c.errorf("Has of one hash: %d answers, %v", len(has), err)
		return false
	}
	return has[0]
}

func (c *check) read(h digest.Hash) ([]byte, error) {
	r, err := c.Open(c.ctx, h)
	if err != nil {
		if r != nil {
			c.errorf("Open gives an error and a reader")
		}
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// wants checks that a blob is there.
func (c *check) wants(what string, b []byte) {
	h := digest.Of(b)
	if !c.has(h) {
		c.errorf("%s: Has denies a blob of %d bytes", what, len(b))
	}
	if got, err := c.read(h); err != nil || !bytes.Equal(got, b) {
		c.errorf("%s: a blob of %d bytes is read as %d, right ones: %t, %v", what, len(b), len(got), bytes.Equal(got, b), err)
	}
}

// lacks checks that a blob cannot be had.
func (c *check) lacks(what string, h digest.Hash) {
	if c.has(h) {
		c.errorf("%s: Has claims a blob that is not there", what)
	}
	if b, err := c.read(h); !cas.Lost(err) {
		c.errorf("%s: %d bytes of a blob that is not there, %v", what, len(b), err)
	}
}

func unknown(c *check) {
	c.lacks("never stored", digest.Of([]byte("never stored")))
	c.lacks("no hash", digest.Hash{})
	c.lacks("empty", digest.Of(nil))
	if has, err := c.Has(c.ctx, nil); err != nil || len(has) != 0 {
		c.errorf("Has of no hashes: %v, %v", has, err)
	}
}

func right(c *check) {
	for i, n := range []int{0, 1, 4096, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1<<20 + 3} {
		b := noise(uint8(i), n)
		c.lacks("before", digest.Of(b))
		c.put(b)
		c.wants("after", b)
		c.put(b)
		c.wants("stored twice", b)
	}
	b := []byte("byte by byte")
	if err := c.Put(c.ctx, digest.Of(b), iotest.OneByteReader(iotest.DataErrReader(bytes.NewReader(b)))); err != nil {
		c.errorf("read byte by byte: %v", err)
	}
	c.wants("byte by byte", b)
}

// readers seek, and do not disturb each other.
func readers(c *check) {
	b := noise(1, 300<<10)
	h := c.put(b)
	one, err := c.Open(c.ctx, h)
	two, err2 := c.Open(c.ctx, h)
	if err != nil || err2 != nil {
		c.errorf("two readers: %v, %v", err, err2)
		return
	}
	half := make([]byte, len(b)/2)
	if _, err := io.ReadFull(one, half); err != nil || !bytes.Equal(half, b[:len(half)]) {
		c.errorf("the first half: %v", err)
	}
	if n, err := two.Seek(0, io.SeekEnd); err != nil || n != int64(len(b)) {
		c.errorf("the end is at %d of %d, %v", n, len(b), err)
	}
	if n, err := two.Seek(5, io.SeekStart); err != nil || n != 5 {
		c.errorf("seek to 5: %d, %v", n, err)
	}
	if got, err := io.ReadAll(two); err != nil || !bytes.Equal(got, b[5:]) {
		c.errorf("from 5 on: %d bytes, %v", len(got), err)
	}
	if err := two.Close(); err != nil {
		c.errorf("close: %v", err)
	}
	if got, err := io.ReadAll(one); err != nil || !bytes.Equal(got, b[len(half):]) {
		c.errorf("the second half, after another reader was closed: %d bytes, %v", len(got), err)
	}
	if err := one.Close(); err != nil {
		c.errorf("close: %v", err)
	}
}

func many(c *check) {
	var hashes []digest.Hash
	for i := range 300 {
		b := fmt.Append(nil, i)
		if i%3 == 0 {
			c.put(b)
		}
		hashes = append(hashes, digest.Of(b))
	}
	hashes = append(hashes, hashes...)
	has, err := c.Has(c.ctx, hashes)
	if err != nil || len(has) != len(hashes) {
		c.errorf("%d answers for %d hashes, %v", len(has), len(hashes), err)
		return
	}
	for i := range has {
		if want := i%300%3 == 0; has[i] != want {
			c.errorf("hash %d of %d: %t", i, len(hashes), has[i])
		}
	}
}

// other bytes than those of the hash, or too few, or a reader that fails, leave nothing behind.
func other(c *check) {
	fails := errors.New("this reader fails")
	for i, n := range []int{10, 300 << 10} {
		b := noise(uint8(i), n)
		flipped := bytes.Clone(b)
		flipped[n/2] ^= 1
		for _, x := range []struct {
			what string
			h    digest.Hash
			from []byte
			end  error
			want error
		}{
			{"wrong", digest.Of(b), flipped, nil, cas.ErrDamaged},
			{"truncated", digest.Of(b), b[:n-1], nil, cas.ErrDamaged},
			{"longer", digest.Of(b), append(bytes.Clone(b), 0), nil, cas.ErrDamaged},
			{"none", digest.Of(b), nil, nil, cas.ErrDamaged},
			{"some for the empty blob", digest.Of(nil), b, nil, cas.ErrDamaged},
			{"no hash", digest.Hash{}, b, nil, cas.ErrDamaged},
			{"failing", digest.Of(b), b[:n/2], fails, fails},
			{"failing at the end", digest.Of(b), b, fails, fails},
		} {
			from := io.Reader(bytes.NewReader(x.from))
			if x.end != nil {
				from = io.MultiReader(from, iotest.ErrReader(x.end))
			}
			if err := c.Put(c.ctx, x.h, from); !errors.Is(err, x.want) {
				c.errorf("%s: error %v, not %v", x.what, err, x.want)
			}
			c.lacks(x.what, x.h)
			c.lacks(x.what+", by its own hash", digest.Of(x.from))
		}
		c.put(b)
		c.wants("the right ones after all", b)
	}
}

// whileWritten: a blob is not there before it is whole, and one that somebody else was faster with stays.
func whileWritten(c *check) {
	for i, n := range []int{10, 600 << 10} {
		b := noise(uint8(i), n)
		h := digest.Of(b)
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := c.Put(c.ctx, h, r)
			r.CloseWithError(errors.New("nobody reads on"))
			done <- err
		}()
		if _, err := w.Write(b[:n/2]); err != nil {
			c.errorf("the first half: %v", err)
		}
		c.lacks("half of it", h)
		c.put(b)
		c.wants("stored by another", b)
		w.Write(b[n/2:]) // which may be wanted no more
		w.Close()
		if err := <-done; err != nil {
			c.errorf("the slower one: %v", err)
		}
		c.wants("stored by both", b)
	}
}

// atOnce: many store the same and read it.
func atOnce(c *check) {
	blobs := [][]byte{nil, []byte("small"), noise(1, 300<<10)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for round := range len(blobs) {
				b := blobs[(i+round)%len(blobs)]
				got, err := c.read(digest.Of(b))
				if err == nil && !bytes.Equal(got, b) || err != nil && !cas.Lost(err) {
					c.errorf("read while others write: %d of %d bytes, %v", len(got), len(b), err)
				}
				c.put(b)
				c.wants("stored", b)
			}
		})
	}
	wg.Wait()
}

func contexts(c *check) {
	there := []byte("there already")
	h := c.put(there)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	if _, err := c.Has(ctx, []digest.Hash{h}); !errors.Is(err, context.Canceled) {
		c.errorf("Has: %v", err)
	}
	if r, err := c.Open(ctx, h); !errors.Is(err, context.Canceled) || r != nil {
		c.errorf("Open: %v", err)
	}
	b := []byte("too late")
	if err := c.Put(ctx, digest.Of(b), bytes.NewReader(b)); !errors.Is(err, context.Canceled) {
		c.errorf("Put: %v", err)
	}
	c.lacks("after the end", digest.Of(b))
	c.wants("from before", there)

	ctx, cancel = context.WithCancel(c.ctx)
	defer cancel()
	b = noise(1, 300<<10)
	from := io.MultiReader(bytes.NewReader(b[:len(b)/2]), readFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF }), bytes.NewReader(b[len(b)/2:]))
	if err := c.Put(ctx, digest.Of(b), from); !errors.Is(err, context.Canceled) {
		c.errorf("Put that is stopped half way: %v", err)
	}
	c.lacks("stopped half way", digest.Of(b))
	c.put(b)
	c.wants("stored after all", b)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// spoilt blobs are never given to anybody, and can be stored anew.
func spoilt(c *check) {
	if c.spoil == nil {
		return
	}
	for i, n := range []int{10, 300 << 10} {
		b := noise(uint8(i), n)
		flipped := bytes.Clone(b)
		flipped[n/2] ^= 1
		for what, with := range map[string][]byte{
			"wrong": flipped, "truncated": b[:n-1], "longer": append(bytes.Clone(b), 0), "empty": nil, "zeros": make([]byte, n),
		} {
			for _, hasFirst := range []bool{false, true} {
				h := c.put(b)
				if err := c.spoil(c.Blobs, h, with); err != nil {
					c.errorf("%s: %v", what, err)
					return
				}
				if hasFirst && c.has(h) {
					c.errorf("%s: Has claims a spoilt blob", what)
				}
				if got, err := c.read(h); !cas.Lost(err) {
					c.errorf("%s: Open gives %d bytes of a spoilt blob, %v", what, len(got), err)
				}
				c.lacks(what, h)
				c.put(b)
				c.wants(what+", stored again", b)
				if err := c.spoil(c.Blobs, h, with); err != nil {
					c.errorf("%s: %v", what, err)
				}
				c.put(b)
				c.wants(what+", stored again before anybody looked", b)
			}
		}
	}
}
