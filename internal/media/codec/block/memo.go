package block

import "encoding/binary"

// Memo remembers some of the blocks of 4x4 RGBA pixels that a worker coded last, and what became of them: drawn pictures repeat
// themselves. As each block is coded from its own pixels alone, it changes no byte.
type Memo struct {
	slots [256]slot
}

type slot struct {
	used bool
	pix  [64]byte
	code [16]byte
}

// Of gives the place for the code of a block, and whether it is there already; who finds it is not writes it.
func (m *Memo) Of(pix *[64]byte) (code *[16]byte, known bool) {
	h := uint64(0)
	for i := 0; i < 64; i += 8 {
		h = (h ^ binary.LittleEndian.Uint64(pix[i:])) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	s := &m.slots[h>>8&255]
	if s.used && s.pix == *pix {
		return &s.code, true
	}
	s.used, s.pix = true, *pix
	return &s.code, false
}
