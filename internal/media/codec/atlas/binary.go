package atlas

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
)

// The format. All numbers are little-endian; reserved fields are 0.
//
//	┌──────────────────────────────┐ 0
//	│ header, 36 bytes             │  magic "KATL", version, counts, size of the strings
//	├──────────────────────────────┤ 36
//	│ page 0, 16 bytes             │  product, file, width, height
//	│ page 1 ...                   │
//	├──────────────────────────────┤
//	│ frame 0, 28 bytes            │  name, page, place, offset, size of the image
//	│ frame 1 ...                  │  sorted bytewise by name
//	├──────────────────────────────┤
//	│ patch 0, 20 bytes            │  splits and pads of those frames that are nine-patches,
//	│ patch 1 ...                  │  sorted by frame
//	├──────────────────────────────┤
//	│ animation 0, 12 bytes        │  name, number of frames
//	│ animation 1 ...              │  sorted bytewise by name
//	├──────────────────────────────┤
//	│ step 0, 4 bytes              │  frames of all animations, in their order
//	│ step 1 ...                   │
//	├──────────────────────────────┤
//	│ strings                      │  files of the pages, then names of the frames, then those of
//	└──────────────────────────────┘  animations, in their order, one after the other, UTF-8
//
//	header                     page                        frame
//	 0  u8[4] "KATL"            0  u32 sub id               0  u32 name: offset in strings
//	 4  u16   version           4  u32 file: offset         4  u16 name: bytes
//	 6  u16   reserved          8  u16 file: bytes          6  u16 page
//	 8  u32   pages            10  u16 width                8  u16 x, y, w, h
//	12  u32   frames           12  u16 height              16  u16 offset x, offset y
//	16  u32   bytes of strings 14  u16 reserved            20  u16 source w, source h
//	20  u32   patches                                      24  u16 flags
//	24  u32   animations       patch                       26  u16 number + 1; 0: none
//	28  u32   steps             0  u32 frame
//	32  u32   scale / 1000      4  u16 split l, r, t, b    animation
//	                           12  i16 pad l, r, t, b       0  u32 name: offset
//	                                                        4  u16 name: bytes
//	                                                        6  u16 reserved
//	                                                        8  u32 frames
//
// Flags: bit 0 turned clockwise on the page, bit 1 turned counter-clockwise, bit 2 has a patch, bit 3 the patch has pads.
// Version 1 had a header of 20 bytes, no flags, and no patches, animations and steps; it can still be read.
const (
	// Version of the format.
	Version = 2

	magic         = "KATL"
	headerSize    = 36
	headerSizeV1  = 20
	pageSize      = 16
	frameSize     = 28
	patchSize     = 20
	animationSize = 12
	stepSize      = 4
)

const (
	flagRight = 1 << iota
	flagLeft
	flagPatch
	flagPad
)

var le = binary.LittleEndian

// Write encodes a table. The error is that of [Table.Check].
func Write(t *Table) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	w := writer{
		b:       make([]byte, headerSize, headerSize+pageSize*len(t.Pages)+frameSize*len(t.Frames)),
		strings: make([]byte, 0, 32*(len(t.Pages)+len(t.Frames))),
	}
	for _, p := range t.Pages {
		w.u32(p.SubID)
		w.name(p.File)
		w.u16(p.Width, p.Height, 0)
	}
	for _, f := range t.Frames {
		w.name(f.Name)
		w.u16(f.Page, f.X, f.Y, f.W, f.H, f.OffsetX, f.OffsetY, f.SourceW, f.SourceH, f.flags(), f.Number)
	}
	patches, steps := 0, 0
	for i, f := range t.Frames {
		if f.Patch == nil {
			continue
		}
		pad := Sides{-1, -1, -1, -1}
		if f.Patch.Pad != nil {
			pad = *f.Patch.Pad
		}
		patches++
		w.u32(uint32(i))
		w.u16(f.Patch.Split[:]...)
		w.u16(pad[:]...)
	}
	for _, a := range t.Animations {
		w.name(a.Name)
		w.u16(0)
		w.u32(uint32(len(a.Frames)))
	}
	for _, a := range t.Animations {
		for _, f := range a.Frames {
			steps++
			w.u32(uint32(f))
		}
	}
	if int64(len(w.strings)) > math.MaxUint32 {
		return nil, fmt.Errorf("names have %d bytes in all, more than %d", len(w.strings), uint32(math.MaxUint32))
	}
	copy(w.b, magic)
	le.PutUint16(w.b[4:], Version)
	for i, n := range []int{len(t.Pages), len(t.Frames), len(w.strings), patches, len(t.Animations), steps, cmp.Or(t.Scale, 1000)} {
		le.PutUint32(w.b[8+4*i:], uint32(n))
	}
	return append(w.b, w.strings...), nil
}

type writer struct{ b, strings []byte }

func (w *writer) u32(n uint32) { w.b = le.AppendUint32(w.b, n) }

func (w *writer) u16(ns ...int) {
	for _, n := range ns {
		w.b = le.AppendUint16(w.b, uint16(n))
	}
}

// name writes the offset and length of a string.
func (w *writer) name(s string) {
	w.u32(uint32(len(w.strings)))
	w.u16(len(s))
	w.strings = append(w.strings, s...)
}

func (f *Frame) flags() (flags int) {
	switch f.Turn {
	case Right:
		flags = flagRight
	case Left:
		flags = flagLeft
	}
	if f.Patch != nil {
		flags |= flagPatch
		if f.Patch.Pad != nil {
			flags |= flagPad
		}
	}
	return flags
}

// Read decodes a table. It allocates memory only for data that is present, and accepts only tables in the encoding of
// [Write].
func Read(data []byte) (*Table, error) {
	if len(data) < headerSizeV1 || string(data[:4]) != magic {
		return nil, fmt.Errorf("not a frame table: it does not begin with %q", magic)
	}
	version := le.Uint16(data[4:])
	size := headerSize
	switch {
	case version == 1:
		size = headerSizeV1
	case version != Version:
		return nil, fmt.Errorf("frame table of version %d, this reader knows %d", version, Version)
	case len(data) < headerSize:
		return nil, fmt.Errorf("not a frame table: %d bytes are less than its header", len(data))
	}
	var head [headerSize]byte
	copy(head[:], data[:size])
	count := func(i int) int64 { return int64(le.Uint32(head[8+4*i:])) }
	pages, frames, text, patches, animations, steps := count(0), count(1), count(2), count(3), count(4), count(5)
	if pages > MaxPages || frames > MaxFrames || max(patches, animations, steps) > frames {
		return nil, fmt.Errorf("%d pages and %d frames, more than %d and %d, or more patches, animations or steps than frames", pages, frames, MaxPages, MaxFrames)
	}
	if want := int64(size) + pageSize*pages + frameSize*frames + patchSize*patches + animationSize*animations + stepSize*steps + text; want != int64(len(data)) {
		return nil, fmt.Errorf("%d bytes, its header says %d", len(data), want)
	}
	if le.Uint16(head[6:]) != 0 {
		return nil, fmt.Errorf("reserved bytes of the header are not 0")
	}
	if version == Version && count(6) == 0 {
		return nil, fmt.Errorf("scale is 0")
	}
	r := reader{
		table:   &Table{Scale: cmp.Or(int(count(6)), 1000), Pages: make([]Page, pages), Frames: make([]Frame, frames)},
		strings: data[int64(len(data))-text:],
		data:    data[size:],
	}
	if animations > 0 {
		r.table.Animations = make([]Animation, animations)
	}
	if err := r.read(int(patches), version); err != nil {
		return nil, err
	}
	if r.used != len(r.strings) {
		return nil, fmt.Errorf("strings have %d unused bytes", len(r.strings)-r.used)
	}
	if err := r.table.Check(); err != nil {
		return nil, err
	}
	return r.table, nil
}

// reader reads records and strings one after the other, in their stored order.
type reader struct {
	table   *Table
	data    []byte // the remaining records
	strings []byte
	used    int
	counts  []int // numbers of frames of the animations
}

func (r *reader) take(n int) []byte {
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) read(patches int, version uint16) error {
	for i := range r.table.Pages {
		b := r.take(pageSize)
		file, err := r.string(le.Uint32(b[4:]), le.Uint16(b[8:]))
		if err != nil || le.Uint16(b[14:]) != 0 {
			return cause(err, "page", i)
		}
		r.table.Pages[i] = Page{File: file, SubID: le.Uint32(b), Width: int(le.Uint16(b[10:])), Height: int(le.Uint16(b[12:]))}
	}
	var patched []int // flags of those frames
	for i := range r.table.Frames {
		b := r.take(frameSize)
		name, err := r.string(le.Uint32(b), le.Uint16(b[4:]))
		u16 := func(at int) int { return int(le.Uint16(b[at:])) }
		flags := u16(24)
		turn, ok := turnOf(flags)
		if err != nil || !ok || version == 1 && le.Uint32(b[24:]) != 0 {
			return cause(err, "frame", i)
		}
		r.table.Frames[i] = Frame{
			Name: name, Page: u16(6), X: u16(8), Y: u16(10), W: u16(12), H: u16(14),
			OffsetX: u16(16), OffsetY: u16(18), SourceW: u16(20), SourceH: u16(22), Turn: turn, Number: u16(26),
		}
		if flags&flagPatch != 0 {
			patched = append(patched, i)
			r.table.Frames[i].Patch = &Patch{}
			if flags&flagPad != 0 {
				r.table.Frames[i].Patch.Pad = &Sides{}
			}
		}
	}
	if len(patched) != patches {
		return fmt.Errorf("%d frames have patches, the header says %d", len(patched), patches)
	}
	for i, f := range patched {
		if err := r.patch(f); err != nil {
			return fmt.Errorf("patch %d: %w", i, err)
		}
	}
	return r.animations()
}

func turnOf(flags int) (Turn, bool) {
	if flags >= 1<<4 || flags&(flagPatch|flagPad) == flagPad {
		return 0, false
	}
	switch flags & (flagRight | flagLeft) {
	case 0:
		return Upright, true
	case flagRight:
		return Right, true
	case flagLeft:
		return Left, true
	}
	return 0, false
}

func (r *reader) patch(frame int) error {
	b := r.take(patchSize)
	if n := le.Uint32(b); int64(n) != int64(frame) {
		return fmt.Errorf("of frame %d, want %d", n, frame)
	}
	p := r.table.Frames[frame].Patch
	pad := Sides{}
	for k := range 4 {
		p.Split[k], pad[k] = int(le.Uint16(b[4+2*k:])), int(int16(le.Uint16(b[12+2*k:])))
	}
	if p.Pad != nil {
		*p.Pad = pad
	} else if pad != (Sides{-1, -1, -1, -1}) {
		return fmt.Errorf("it has pads, its frame says none")
	}
	return nil
}

func (r *reader) animations() error {
	for i := range r.table.Animations {
		b := r.take(animationSize)
		name, err := r.string(le.Uint32(b), le.Uint16(b[4:]))
		if err != nil || le.Uint16(b[6:]) != 0 {
			return cause(err, "animation", i)
		}
		n := int64(le.Uint32(b[8:]))
		if n > int64(len(r.table.Frames)) {
			return fmt.Errorf("animation %d: %d frames of %d", i, n, len(r.table.Frames))
		}
		r.table.Animations[i].Name = name
		r.counts = append(r.counts, int(n))
	}
	steps := len(r.data) - len(r.strings)
	for i, n := range r.counts {
		if n*stepSize > steps {
			return fmt.Errorf("animation %d: %d frames, and steps for %d", i, n, steps/stepSize)
		}
		steps -= n * stepSize
		frames := make([]int, n)
		for k := range frames {
			frames[k] = int(le.Uint32(r.take(stepSize)))
		}
		r.table.Animations[i].Frames = frames
	}
	if steps != 0 {
		return fmt.Errorf("%d steps belong to no animation", steps/stepSize)
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
