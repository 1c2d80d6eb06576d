package atlas

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The format. All numbers are little-endian; what is reserved is 0.
//
//	┌──────────────────────────────┐ 0
//	│ header, 20 bytes             │  magic "KATL", version, counts, size of the strings
//	├──────────────────────────────┤ 20
//	│ page 0, 16 bytes             │  product, file, width, height
//	│ page 1 ...                   │
//	├──────────────────────────────┤ 20 + 16·pages
//	│ frame 0, 28 bytes            │  name, page, place, offset, size of the image
//	│ frame 1 ...                  │  sorted bytewise by name
//	├──────────────────────────────┤ 20 + 16·pages + 28·frames
//	│ strings                      │  files of the pages, then names of the frames, in
//	└──────────────────────────────┘  their order, one after the other, UTF-8
//
//	header                     page                        frame
//	 0  u8[4] "KATL"            0  u32 sub id               0  u32 name: offset in strings
//	 4  u16   version           4  u32 file: offset         4  u16 name: bytes
//	 6  u16   reserved          8  u16 file: bytes          6  u16 page
//	 8  u32   pages            10  u16 width                8  u16 x, y, w, h
//	12  u32   frames           12  u16 height              16  u16 offset x, offset y
//	16  u32   bytes of strings 14  u16 reserved            20  u16 source w, source h
//	                                                       24  u16 flags: reserved (bit 0: rotated)
//	                                                       26  u16 reserved
const (
	// Version of the format.
	Version = 1

	magic      = "KATL"
	headerSize = 20
	pageSize   = 16
	frameSize  = 28
)

var le = binary.LittleEndian

// Write encodes a table. The error is that of [Table.Check].
func Write(t *Table) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	strings := make([]byte, 0, 32*(len(t.Pages)+len(t.Frames)))
	add := func(s string) (offset uint32) {
		offset = uint32(len(strings))
		strings = append(strings, s...)
		return offset
	}
	b := make([]byte, headerSize, headerSize+pageSize*len(t.Pages)+frameSize*len(t.Frames))
	u16 := func(ns ...int) {
		for _, n := range ns {
			b = le.AppendUint16(b, uint16(n))
		}
	}
	for _, p := range t.Pages {
		b = le.AppendUint32(b, p.SubID)
		b = le.AppendUint32(b, add(p.File))
		u16(len(p.File), p.Width, p.Height, 0)
	}
	for _, f := range t.Frames {
		b = le.AppendUint32(b, add(f.Name))
		u16(len(f.Name), f.Page, f.X, f.Y, f.W, f.H, f.OffsetX, f.OffsetY, f.SourceW, f.SourceH, 0, 0)
	}
	if int64(len(strings)) > math.MaxUint32 {
		return nil, fmt.Errorf("names have %d bytes in all, more than %d", len(strings), uint32(math.MaxUint32))
	}
	copy(b, magic)
	le.PutUint16(b[4:], Version)
	le.PutUint32(b[8:], uint32(len(t.Pages)))
	le.PutUint32(b[12:], uint32(len(t.Frames)))
	le.PutUint32(b[16:], uint32(len(strings)))
	return append(b, strings...), nil
}

// Read decodes a table. It takes memory only for what data really holds, and accepts nothing
// that [Write] would have written otherwise.
func Read(data []byte) (*Table, error) {
	if len(data) < headerSize || string(data[:4]) != magic {
		return nil, fmt.Errorf("not a frame table: it does not begin with %q", magic)
	}
	if v := le.Uint16(data[4:]); v != Version {
		return nil, fmt.Errorf("frame table of version %d, this reader knows %d", v, Version)
	}
	pages, frames, size := int64(le.Uint32(data[8:])), int64(le.Uint32(data[12:])), int64(le.Uint32(data[16:]))
	if pages > MaxPages || frames > MaxFrames {
		return nil, fmt.Errorf("%d pages and %d frames, more than %d and %d", pages, frames, MaxPages, MaxFrames)
	}
	if want := headerSize + pageSize*pages + frameSize*frames + size; want != int64(len(data)) {
		return nil, fmt.Errorf("%d bytes, its header says %d", len(data), want)
	}
	if le.Uint16(data[6:]) != 0 {
		return nil, fmt.Errorf("reserved bytes of the header are not 0")
	}
	r := reader{
		table:   &Table{Pages: make([]Page, pages), Frames: make([]Frame, frames)},
		strings: data[int64(len(data))-size:],
	}
	data = data[headerSize:]
	if err := r.read(data[:pageSize*pages], data[pageSize*pages:]); err != nil {
		return nil, err
	}
	if r.used != len(r.strings) {
		return nil, fmt.Errorf("strings have %d bytes that nothing names", len(r.strings)-r.used)
	}
	if err := r.table.Check(); err != nil {
		return nil, err
	}
	return r.table, nil
}

// reader takes strings one after the other, as they were written.
type reader struct {
	table   *Table
	strings []byte
	used    int
}

func (r *reader) read(pages, frames []byte) error {
	for i := range r.table.Pages {
		b := pages[pageSize*i:][:pageSize]
		file, err := r.string(le.Uint32(b[4:]), le.Uint16(b[8:]))
		if err != nil || le.Uint16(b[14:]) != 0 {
			return cause(err, "page", i)
		}
		r.table.Pages[i] = Page{File: file, SubID: le.Uint32(b), Width: int(le.Uint16(b[10:])), Height: int(le.Uint16(b[12:]))}
	}
	for i := range r.table.Frames {
		b := frames[frameSize*i:][:frameSize]
		name, err := r.string(le.Uint32(b), le.Uint16(b[4:]))
		if err != nil || le.Uint32(b[24:]) != 0 {
			return cause(err, "frame", i)
		}
		u16 := func(at int) int { return int(le.Uint16(b[at:])) }
		r.table.Frames[i] = Frame{
			Name: name, Page: u16(6), X: u16(8), Y: u16(10), W: u16(12), H: u16(14),
			OffsetX: u16(16), OffsetY: u16(18), SourceW: u16(20), SourceH: u16(22),
		}
	}
	return nil
}

func cause(err error, what string, i int) error {
	if err == nil {
		err = fmt.Errorf("flags or reserved bytes are not 0")
	}
	return fmt.Errorf("%s %d: %w", what, i, err)
}

func (r *reader) string(offset uint32, n uint16) (string, error) {
	if int64(offset) != int64(r.used) || int(n) > len(r.strings)-r.used {
		return "", fmt.Errorf("name of %d bytes at %d is not the next of the %d bytes of strings", n, offset, len(r.strings))
	}
	s := string(r.strings[r.used:][:n])
	r.used += int(n)
	return s, nil
}
