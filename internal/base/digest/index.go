package digest

import (
	"encoding/binary"
	"iter"
)

// Index finds values by a hash that each has. Hashes are as good as random, so the first bytes of one say where to look. It takes a word or
// two for each value, where a map takes the hash once more, and room to grow.
type Index[T any] struct {
	of    func(*T) *Hash
	slots []*T // the size is a power of two
	n     int
}

// NewIndex makes an index with room for some values. of is the hash of a value, which does not change.
func NewIndex[T any](of func(*T) *Hash, room int) *Index[T] {
	x := &Index[T]{of: of}
	x.grow(room)
	return x
}

// grow makes room for so many, of which at most three quarters of the slots are taken.
func (x *Index[T]) grow(room int) {
	size := 16
	for size*3/4 < room {
		size *= 2
	}
	old := x.slots
	x.slots = make([]*T, size)
	for _, v := range old {
		if v != nil {
			x.slots[x.slot(x.of(v))] = v
		}
	}
}

// slot is where a hash is, or is to be.
func (x *Index[T]) slot(h *Hash) int {
	mask := len(x.slots) - 1
	at := int(binary.LittleEndian.Uint64(h[:])) & mask
	for x.slots[at] != nil && *x.of(x.slots[at]) != *h {
		at = (at + 1) & mask
	}
	return at
}

// Get is the value with a hash, or nil.
func (x *Index[T]) Get(h Hash) *T { return x.slots[x.slot(&h)] }

// Put adds a value, in place of one with the same hash.
func (x *Index[T]) Put(v *T) {
	at := x.slot(x.of(v))
	if x.slots[at] == nil {
		if x.n++; x.n > len(x.slots)*3/4 {
			x.grow(2 * x.n)
			at = x.slot(x.of(v))
		}
	}
	x.slots[at] = v
}

// Len is how many values there are.
func (x *Index[T]) Len() int { return x.n }

// All are the values, in no order. None may be added meanwhile.
func (x *Index[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, v := range x.slots {
			if v != nil && !yield(v) {
				return
			}
		}
	}
}
