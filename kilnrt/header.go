package kilnrt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

var le = binary.LittleEndian

// Section is the position of a part of the index.
type Section struct {
	Offset, Size int64
	CRC          uint32
}

// Header is one slot of a parcel, in the order of the format.
type Header struct {
	Slot       int // 0 or 1
	Flags      uint32
	Generation uint64
	End        int64 // size of the used part of the file, in bytes
	Waste      int64
	Count      int
	Bits       int
	Types      int
	Sections   [Sections]Section
	Digest     [32]byte
	Order      [32]byte // hash of the list of payloads that come first; zeros if there is none
}

// Encode returns the SlotSize bytes of the slot, which ParseHeader reads.
func (h *Header) Encode() []byte {
	b := make([]byte, SlotSize)
	copy(b, Magic)
	le.PutUint32(b[8:], Version)
	le.PutUint32(b[12:], h.Flags)
	le.PutUint64(b[16:], h.Generation)
	le.PutUint64(b[24:], uint64(h.End))
	le.PutUint64(b[32:], uint64(h.Waste))
	le.PutUint32(b[40:], uint32(h.Count))
	le.PutUint32(b[44:], uint32(h.Bits))
	le.PutUint32(b[48:], uint32(h.Types))
	for i, s := range h.Sections {
		at := b[64+24*i:]
		le.PutUint64(at, uint64(s.Offset))
		le.PutUint64(at[8:], uint64(s.Size))
		le.PutUint32(at[16:], s.CRC)
	}
	copy(b[280:], h.Digest[:])
	copy(b[312:], h.Order[:])
	le.PutUint32(b[508:], crc32.ChecksumIEEE(b[:508]))
	return b
}

// ReadHeader selects the current slot in a file of the given size, and checks it as the format requires.
func ReadHeader(r io.ReaderAt, size int64) (*Header, error) {
	h, err := readSlots(r)
	if err != nil {
		return nil, err
	}
	return h, h.check(size)
}

func readSlots(r io.ReaderAt) (*Header, error) {
	var slots [2][SlotSize]byte
	best := -1
	for i := range slots {
		if n, err := r.ReadAt(slots[i][:], int64(i)*SlotPitch); n < SlotSize {
			return nil, fmt.Errorf("kilnrt: reading the header: %w", err)
		}
		b := slots[i][:]
		good := string(b[:8]) == Magic && crc32.ChecksumIEEE(b[:508]) == le.Uint32(b[508:])
		if good && (best < 0 || le.Uint64(b[16:]) > le.Uint64(slots[best][16:])) {
			best = i
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("%w: it has no whole header", ErrDamaged)
	}
	h, err := parseSlot(slots[best][:])
	if err != nil {
		return nil, err
	}
	h.Slot = best
	return h, nil
}

func parseSlot(b []byte) (*Header, error) {
	if v := le.Uint32(b[8:]); v != Version {
		return nil, fmt.Errorf("kilnrt: the parcel has version %d, this reader knows %d", v, Version)
	}
	h := &Header{Flags: le.Uint32(b[12:]), Generation: le.Uint64(b[16:])}
	if h.Flags&0xffff != 0 {
		return nil, fmt.Errorf("kilnrt: the parcel has flags %#x, which this reader does not know", h.Flags)
	}
	// Offsets above 2^62 are outside of any file. With this limit, the sum of two cannot overflow.
	const far = 1 << 62
	h.End = int64(min(le.Uint64(b[24:]), far))
	h.Waste = int64(min(le.Uint64(b[32:]), far))
	h.Count = int(min(le.Uint32(b[40:]), MaxResources+1))
	h.Bits = int(min(le.Uint32(b[44:]), 64))
	h.Types = int(min(le.Uint32(b[48:]), MaxTypes+1))
	for i := range h.Sections {
		at := b[64+24*i:]
		h.Sections[i] = Section{int64(min(le.Uint64(at), far)), int64(min(le.Uint64(at[8:]), far)), le.Uint32(at[16:])}
	}
	copy(h.Digest[:], b[280:])
	copy(h.Order[:], b[312:])
	return h, nil
}

// pages is the number of pages for n records.
func pages(count int) int { return (count + PageSize - 1) / PageSize }

// check checks the header against the size of the file.
func (h *Header) check(size int64) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	switch {
	case h.End < DataStart || h.End > size:
		return wrong("it should have %d bytes and has %d", h.End, size)
	case h.Count > MaxResources || int64(h.Count)*RecordSize > h.End:
		return wrong("%d resources cannot be in %d bytes", h.Count, h.End)
	case h.Bits < 1 || h.Bits > 26 || 1<<h.Bits < h.Count+1:
		return wrong("tables of 2^%d entries cannot hold %d resources", h.Bits, h.Count)
	case h.Types > MaxTypes:
		return wrong("%d types are too many", h.Types)
	}
	table := int64(8) << h.Bits
	exact := [Sections]int64{SectionDirectory: 16 * int64(pages(h.Count)), SectionIDs: table, SectionUUIDs: table, SectionNames: table}
	most := [Sections]int64{SectionDictionary: MaxDictionary, SectionSignature: MaxSignature}
	for i, s := range h.Sections {
		limit := int64(1<<32 - 1)
		if most[i] > 0 {
			limit = most[i]
		}
		switch {
		case i <= SectionNames && s.Size != exact[i], s.Size > limit, i == SectionNeeds && s.Size%4 != 0:
			return wrong("section %d cannot have %d bytes", i, s.Size)
		case s.Size > 0 && (s.Offset < DataStart || s.Offset+s.Size > h.End || s.Offset%16 != 0):
			return wrong("section %d cannot lie at %d", i, s.Offset)
		case s.Size == 0 && (s.Offset != 0 || s.CRC != 0):
			return wrong("section %d is empty and lies somewhere", i)
		}
	}
	return nil
}
