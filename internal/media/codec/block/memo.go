package block

import (
	"bytes"
	"encoding/binary"
)

// Memo caches the codes of recent blocks of RGBA pixels of one worker, since drawn images repeat blocks. Each block is coded
// from its own pixels alone, so the cache does not change the output.
type Memo struct {
	slots  []slot
	pix    []byte // of each slot
	stored int    // how many blocks were stored since there are so many slots
}

// The number of slots starts small, because most pictures are, and grows as blocks are stored: the more there are, the further apart
// equal ones may be.
const (
	fewestSlots = 256
	mostSlots   = 4096
)

// grow makes more slots, which are empty.
func (m *Memo) grow(size int) {
	n := max(fewestSlots, 4*len(m.slots))
	m.slots, m.pix, m.stored = make([]slot, n), make([]byte, n*size), 0
}

type slot struct {
	used bool
	code [16]byte
}

// Of returns the slot for the code of a block of 4x4 pixels, and reports whether it already has the code. If not, the caller
// writes the code there.
func (m *Memo) Of(pix *[64]byte) (code *[16]byte, known bool) { return m.OfAny(pix[:]) }

// OfAny is Of for blocks of any size. All blocks of a Memo have the same size.
func (m *Memo) OfAny(pix []byte) (code *[16]byte, known bool) {
	if m.stored >= 2*len(m.slots) && len(m.slots) < mostSlots {
		m.grow(len(pix))
	}
	h, rest := uint64(0), pix
	for ; len(rest) >= 8; rest = rest[8:] {
		h = (h ^ binary.LittleEndian.Uint64(rest)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	if len(rest) >= 4 {
		h = (h ^ uint64(binary.LittleEndian.Uint32(rest))) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	i := int(h>>8) & (len(m.slots) - 1)
	s, kept := &m.slots[i], m.pix[i*len(pix):][:len(pix)]
	if s.used && bytes.Equal(kept, pix) {
		return &s.code, true
	}
	s.used = true
	m.stored++
	copy(kept, pix)
	return &s.code, false
}
