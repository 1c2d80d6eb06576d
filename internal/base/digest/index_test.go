package digest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestIndex: it answers as a map does, also for hashes that begin alike.
func TestIndex(t *testing.T) {
	type thing struct {
		hash  Hash
		value int
	}
	rng := rand.New(rand.NewPCG(1, 2))
	x, m := NewIndex(func(v *thing) *Hash { return &v.hash }, 0), map[Hash]int{}
	for i := range 20000 {
		var h Hash
		binary.LittleEndian.PutUint64(h[:], uint64(rng.IntN(3000)))
		h[31] = byte(rng.IntN(3))
		if got := x.Get(h); (got == nil) != (m[h] == 0) || got != nil && got.value != m[h] {
			t.Fatalf("step %d: %v, not %d", i, got, m[h])
		}
		if rng.IntN(2) == 0 {
			m[h] = i + 1
			x.Put(&thing{h, i + 1})
		}
	}
	n := 0
	for v := range x.All() {
		if n++; m[v.hash] != v.value {
			t.Errorf("%x: %d, not %d", v.hash, v.value, m[v.hash])
		}
	}
	if n != len(m) || x.Len() != n {
		t.Errorf("%d of %d, %d", n, len(m), x.Len())
	}
}
