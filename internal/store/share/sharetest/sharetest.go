// Package sharetest checks that a cache does what share.Cache says.
package sharetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// Subject is what is checked.
type Subject struct {
	Empty func() (share.Cache, error) // a cache with nothing in it

	// Again opens a cache once more, as another machine does that shares it.
	Again func(share.Cache) (share.Cache, error)

	// Spoil makes a stored blob hold other bytes, behind the cache's back.
	Spoil func(c share.Cache, b share.Blob, with []byte) error
}

// Test runs all checks, each with a cache of its own, and gives everything that is wrong.
func Test(s Subject) error {
	checks := []struct {
		name string
		run  func(*check)
	}{
		{"nothing there", nothing}, {"entries", entries}, {"blobs", blobs}, {"other bytes", other}, {"spoilt blobs", spoilt},
		{"many at once", atOnce}, {"contexts", contexts}, {"two of them", two},
	}
	var errs []error
	for _, x := range checks {
		cache, err := s.Empty()
		if err != nil {
			return err
		}
		c := &check{Cache: cache, s: s, name: x.name, ctx: context.Background()}
		x.run(c)
		c.must("Close", c.Close())
		errs = append(errs, c.errs...)
	}
	return errors.Join(errs...)
}

type check struct {
	share.Cache
	s    Subject
	name string
	ctx  context.Context

	mu   sync.Mutex
	errs []error
}

func (c *check) errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, fmt.Errorf(c.name+": "+format, args...))
}

func (c *check) must(what string, err error) {
	if err != nil {
		c.errorf("%s: %v", what, err)
	}
}

// Noise are bytes that nothing else has.
func Noise(seed uint8, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// BlobOf is what is known of some bytes.
func BlobOf(b []byte) share.Blob {
	return share.Blob{Hash: digest.Of(b), SHA256: sha256.Sum256(b), Size: int64(len(b))}
}

// KeyOf is a key that nothing else has.
func KeyOf(name string) share.Key { return sha256.Sum256([]byte("key " + name)) }

// Opener gives bytes to Store.
func Opener(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func (c *check) store(b []byte) share.Blob {
	blob := BlobOf(b)
	c.must(fmt.Sprintf("a blob of %d bytes is not stored", len(b)), c.Store(c.ctx, blob, Opener(b)))
	return blob
}

func (c *check) wants(from share.Cache, what string, b []byte) {
	var got bytes.Buffer
	if err := from.Fetch(c.ctx, BlobOf(b), &got); err != nil || !bytes.Equal(got.Bytes(), b) {
		c.errorf("%s: a blob of %d bytes is fetched as %d, right ones: %t, %v", what, len(b), got.Len(), bytes.Equal(got.Bytes(), b), err)
	}
	if missing, err := from.Missing(c.ctx, []share.Blob{BlobOf(b)}); err != nil || len(missing) > 0 {
		c.errorf("%s: a blob of %d bytes is missing, %v", what, len(b), err)
	}
}

func (c *check) lacks(what string, b share.Blob) {
	if err := c.Fetch(c.ctx, b, io.Discard); !share.IsMiss(err) {
		c.errorf("%s: fetching gives %v", what, err)
	}
	if missing, err := c.Missing(c.ctx, []share.Blob{b}); err != nil || !slices.Equal(missing, []share.Blob{b}) {
		c.errorf("%s: %d are missing, %v", what, len(missing), err)
	}
}

func nothing(c *check) {
	if v, err := c.Get(c.ctx, KeyOf("nothing")); !share.IsMiss(err) {
		c.errorf("an entry of %d bytes, %v", len(v), err)
	}
	c.lacks("never stored", BlobOf([]byte("never stored")))
	if missing, err := c.Missing(c.ctx, nil); err != nil || len(missing) > 0 {
		c.errorf("of no blobs %d are missing, %v", len(missing), err)
	}
}

func entries(c *check) {
	for i, n := range []int{1, 100, 70_000, share.MaxValue} {
		key, value, blob := KeyOf(fmt.Sprint(n)), Noise(uint8(i), n), c.store(Noise(uint8(100+i), 1000))
		c.must("Put", c.Put(c.ctx, key, value, []share.Blob{blob}))
		if got, err := c.Get(c.ctx, key); err != nil || !bytes.Equal(got, value) {
			c.errorf("an entry of %d bytes is read as %d, %v", n, len(got), err)
		}
		c.must("Put once more", c.Put(c.ctx, key, []byte("other"), nil))
		if got, err := c.Get(c.ctx, key); err != nil || string(got) != "other" {
			c.errorf("an entry in place of another is read as %d bytes, %v", len(got), err)
		}
	}
}

func blobs(c *check) {
	var all []share.Blob
	var datas [][]byte
	for i, n := range []int{0, 1, 4096, 1 << 20, 2<<20 + 1, 4 << 20, 5<<20 + 3} {
		b := Noise(uint8(i), n)
		if n > 0 { // servers have the empty blob always
			c.lacks("before", BlobOf(b))
		}
		all, datas = append(all, c.store(b)), append(datas, b)
		c.wants(c, "after", b)
		c.store(b)
		c.wants(c, "stored twice", b)
	}
	b := bytes.Repeat([]byte("as like as two peas "), 200_000) // which compresses well
	c.store(b)
	c.wants(c, "compressible", b)
	lacking := BlobOf([]byte("not there"))
	if missing, err := c.Missing(c.ctx, append(all, lacking, all[1])); err != nil || !slices.Equal(missing, []share.Blob{lacking}) {
		c.errorf("of many, %d are missing, %v", len(missing), err)
	}
	var wg sync.WaitGroup
	for _, b := range datas {
		wg.Go(func() { c.wants(c, "side by side", b) })
	}
	wg.Wait()
}

// other bytes than those of the blob are refused.
func other(c *check) {
	for i, n := range []int{1000, 5 << 20} {
		b := Noise(uint8(i), n)
		blob := BlobOf(b)
		for what, with := range map[string][]byte{"cut": b[:n-1], "longer": append(slices.Clone(b), 0), "flipped": flip(b), "nothing": nil} {
			if err := c.Store(c.ctx, blob, Opener(with)); err == nil {
				c.errorf("%s: %d bytes are stored as a blob of %d", what, len(with), n)
			}
			c.lacks(what, blob)
		}
		boom := errors.New("boom")
		if err := c.Store(c.ctx, blob, func() (io.ReadCloser, error) { return nil, boom }); !errors.Is(err, boom) {
			c.errorf("bytes that cannot be opened: %v", err)
		}
		c.lacks("not opened", blob)
		c.store(b)
		c.wants(c, "in the end", b)
	}
}

func flip(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

// spoilt blobs are never given.
func spoilt(c *check) {
	if c.s.Spoil == nil {
		return
	}
	for i, n := range []int{1000, 5 << 20} {
		b := Noise(uint8(i), n)
		for what, with := range map[string][]byte{"cut": b[:n-1], "longer": append(slices.Clone(b), 0), "flipped": flip(b), "nothing": nil} {
			blob := c.store(b)
			if err := c.s.Spoil(c, blob, with); err != nil {
				c.errorf("%s: %v", what, err)
				continue
			}
			if err := c.Fetch(c.ctx, blob, io.Discard); err == nil {
				c.errorf("%s: a spoilt blob of %d bytes is fetched", what, n)
			}
			c.store(b)
			c.wants(c, what+", stored again", b)
		}
	}
}

func atOnce(c *check) {
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			b := Noise(uint8(i%4), 50_000+i%4)
			blob := BlobOf(b)
			c.must("Store", c.Store(c.ctx, blob, Opener(b)))
			c.wants(c, "at once", b)
			key := KeyOf(fmt.Sprint(i % 4))
			c.must("Put", c.Put(c.ctx, key, b, []share.Blob{blob}))
			if v, err := c.Get(c.ctx, key); err != nil || !bytes.Equal(v, b) {
				c.errorf("an entry that several write: %d bytes, %v", len(v), err)
			}
		})
	}
	wg.Wait()
}

func contexts(c *check) {
	b := Noise(1, 5<<20)
	blob := c.store(b)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	_, err := c.Get(ctx, KeyOf("x"))
	_, merr := c.Missing(ctx, []share.Blob{blob})
	for what, err := range map[string]error{
		"Get": err, "Missing": merr, "Put": c.Put(ctx, KeyOf("x"), []byte("x"), nil), "Fetch": c.Fetch(ctx, blob, io.Discard),
		"Store": c.Store(ctx, BlobOf([]byte("new")), Opener([]byte("new"))),
	} {
		if err == nil {
			c.errorf("%s continues although its context is done", what)
		}
	}
	c.lacks("a context that is done", BlobOf([]byte("new")))
}

// two that share one place see what the other stores.
func two(c *check) {
	if c.s.Again == nil {
		return
	}
	again, err := c.s.Again(c.Cache)
	if err != nil {
		c.errorf("opened again: %v", err)
		return
	}
	b := Noise(7, 10_000)
	blob := c.store(b)
	c.must("Put", c.Put(c.ctx, KeyOf("shared"), b, []share.Blob{blob}))
	c.wants(again, "through the other", b)
	if v, err := again.Get(c.ctx, KeyOf("shared")); err != nil || !bytes.Equal(v, b) {
		c.errorf("through the other: %d bytes, %v", len(v), err)
	}
	c.must("Close", again.Close())
	c.wants(c, "after the other is closed", b)
}
