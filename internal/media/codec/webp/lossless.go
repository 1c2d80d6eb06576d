package webp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// A lossless image is a sequence of bits, the lowest of a byte first (RFC 9649, section 3): transforms, each after a 1, then a 0;
// then an image whose pixels are in the colours that the transforms are applied to. Data of transforms are images, too, without
// transforms of their own.

// bitReader reads bits. Beyond the end there are zeros, which ended tells.
type bitReader struct {
	data   []byte
	buffer uint64
	n      uint // bits in buffer
	beyond uint // zeros that were added
}

func (r *bitReader) fill() {
	if len(r.data) >= 8 {
		r.buffer |= binary.LittleEndian.Uint64(r.data) << r.n
		r.data = r.data[(63-r.n)>>3:]
		r.n |= 56
		return
	}
	for ; r.n < 56; r.n += 8 {
		if len(r.data) > 0 {
			r.buffer |= uint64(r.data[0]) << r.n
			r.data = r.data[1:]
		} else {
			r.beyond += 8
		}
	}
}

// bits returns the next n bits, at most 32.
func (r *bitReader) bits(n uint) uint32 {
	if r.n < n {
		r.fill()
	}
	v := uint32(r.buffer & (1<<n - 1))
	r.buffer >>= n
	r.n -= n
	return v
}

// ended returns an error if bits were read that do not exist.
func (r *bitReader) ended() error {
	if r.beyond > r.n {
		return input.ErrTruncated
	}
	return nil
}

// Kinds of transforms.
const (
	predictor = iota
	crossColour
	subtractGreen
	colourIndexing
)

// transform is what pixels are changed by: data are those of its image.
type transform struct {
	kind  uint32
	width int  // of the pixels that it results in
	bits  uint // of the side of a block; for colours, of the pixels in one
	data  []uint32
}

// lossless decodes an image without its head. Pixels are alpha, red, green and blue from the highest byte down.
func lossless(data []byte, width, height int) ([]uint32, error) {
	r := &bitReader{data: data}
	pix, err := r.lossless(width, height)
	if end := r.ended(); end != nil { // which is the cause of any other fault
		return nil, end
	}
	return pix, err
}

func (r *bitReader) lossless(width, height int) ([]uint32, error) {
	var list []transform
	narrow := width
	for seen := [4]bool{}; r.bits(1) == 1; {
		t := transform{kind: r.bits(2), width: narrow}
		if seen[t.kind] {
			return nil, fmt.Errorf("transform %d for a second time: %w", t.kind, input.ErrDamaged)
		}
		seen[t.kind] = true
		var err error
		switch t.kind {
		case predictor, crossColour:
			t.bits = uint(2 + r.bits(3))
			t.data, err = r.image(blocks(narrow, t.bits), blocks(height, t.bits), false)
		case colourIndexing:
			if err = t.readColours(r); err == nil {
				narrow = blocks(narrow, t.bits)
			}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	pix, err := r.image(narrow, height, true)
	if err != nil {
		return nil, err
	}
	for _, t := range slices.Backward(list) {
		pix = t.reverse(pix, height)
	}
	return pix, nil
}

// blocks returns how many blocks there are along a side.
func blocks(n int, bits uint) int { return (n + 1<<bits - 1) >> bits }

// readColours reads the palette, whose colours are differences. Few colours are packed, several in a pixel.
func (t *transform) readColours(r *bitReader) (err error) {
	n := int(r.bits(8)) + 1
	switch {
	case n <= 2:
		t.bits = 3
	case n <= 4:
		t.bits = 2
	case n <= 16:
		t.bits = 1
	}
	if t.data, err = r.image(n, 1, false); err != nil {
		return err
	}
	for i := 1; i < n; i++ {
		t.data[i] = add(t.data[i], t.data[i-1])
	}
	return nil
}

// image reads pixels. The main image may have several groups of codes; another image says which a block of it uses.
func (r *bitReader) image(width, height int, main bool) ([]uint32, error) {
	d := pixelDecoder{bitReader: r, width: width}
	cacheSize := 0
	if r.bits(1) == 1 {
		bits := uint(r.bits(4))
		if bits < 1 || bits > 11 {
			return nil, fmt.Errorf("a cache of %d bits: %w", bits, input.ErrDamaged)
		}
		cacheSize = 1 << bits
		d.cache, d.cacheShift = make([]uint32, cacheSize), 32-bits
	}
	count := 1
	if main && r.bits(1) == 1 {
		d.shift = uint(2 + r.bits(3))
		var err error
		if d.blocks, err = r.image(blocks(width, d.shift), blocks(height, d.shift), false); err != nil {
			return nil, err
		}
		d.across = blocks(width, d.shift)
		for i, v := range d.blocks {
			d.blocks[i] = v >> 8 & 0xffff
			count = max(count, int(d.blocks[i])+1)
		}
	}
	for range count {
		var g group
		for i, size := range [5]int{256 + lengths + cacheSize, 256, 256, 256, distances} {
			if err := g[i].read(r, size); err != nil {
				return nil, err
			}
		}
		d.groups = append(d.groups, g)
	}
	pix := make([]uint32, width*height)
	return pix, d.decode(pix)
}

// The numbers of codes for lengths and distances of copies.
const (
	lengths   = 24
	distances = 40
)

// group are the codes of green, lengths and the cache; of red; of blue; of alpha; of distances.
type group [5]prefixCode

type pixelDecoder struct {
	*bitReader
	width, across int
	shift         uint
	blocks        []uint32 // which group a block uses; nil for the first
	groups        []group
	cache         []uint32 // recent pixels by their hash
	cacheShift    uint
}

func (d *pixelDecoder) decode(pix []uint32) error {
	var g *group
	cached, until := 0, 0 // how many of pix are in the cache; where the row of the block ends
	for i := 0; i < len(pix); {
		if i >= until {
			x, y := i%d.width, i/d.width
			if err := d.ended(); err != nil {
				return err
			}
			g = &d.groups[0]
			until = (y + 1) * d.width
			if d.blocks != nil {
				g = &d.groups[d.blocks[y>>d.shift*d.across+x>>d.shift]]
				until = min(until, i-x+(x>>d.shift+1)<<d.shift)
			}
		}
		v := g[0].next(d.bitReader)
		switch {
		case v < 256:
			red := g[1].next(d.bitReader)
			blue := g[2].next(d.bitReader)
			pix[i] = g[3].next(d.bitReader)<<24 | red<<16 | v<<8 | blue
			i++
		case v < 256+lengths:
			n := d.number(v - 256)
			back := d.distance(d.number(g[4].next(d.bitReader)))
			if back > i || n > len(pix)-i {
				return fmt.Errorf("a copy of %d pixels from %d before %d of %d: %w", n, back, i, len(pix), input.ErrDamaged)
			}
			for end := i + n; i < end; i++ {
				pix[i] = pix[i-back]
			}
		default:
			for ; cached < i; cached++ {
				d.cache[pix[cached]*0x1e35a7bd>>d.cacheShift] = pix[cached]
			}
			pix[i] = d.cache[v-256-lengths]
			i++
		}
	}
	return d.ended()
}

// number reads a length or distance: codes of 4 and more are followed by bits.
func (d *pixelDecoder) number(code uint32) int {
	if code < 4 {
		return int(code) + 1
	}
	extra := uint(code-2) >> 1
	return int((2+code&1)<<extra) + int(d.bits(extra)) + 1
}

// distance turns the code of a distance into a number of pixels. Low codes are pixels around the current one.
func (d *pixelDecoder) distance(code int) int {
	if code > len(around) {
		return code - len(around)
	}
	return max(1, around[code-1][0]+around[code-1][1]*d.width)
}

// around are the pixels before the current one by how near they are: how far to the left, which may be below 0, and how far up.
var around = func() (list [][2]int) {
	for y := range 8 {
		for x := -7; x <= 8; x++ {
			if x > 0 || y > 0 {
				list = append(list, [2]int{x, y})
			}
		}
	}
	slices.SortFunc(list, func(a, b [2]int) int {
		square := func(v [2]int) int { return v[0]*v[0] + v[1]*v[1] }
		return cmp.Or(cmp.Compare(square(a), square(b)), cmp.Compare(max(a[0], -a[0]), max(b[0], -b[0])), cmp.Compare(b[0], a[0]))
	})
	return list
}()
