package tiff

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Image is a picture of RGBA, straight alpha, rows top down: 4*Width*Height numbers, in one of the slices.
type Image struct {
	Header
	Pix   []uint16  // of whole numbers: 8 bits widened, 32 rounded, so that 65535 is the most
	Light []float32 // of floating point
}

// minBlock is how large a block may be, in bytes, however small the picture; else it is four times the picture.
const minBlock = 16 << 20

// Decode reads the first page. More than maxPixels is [input.ErrTooLarge].
func Decode(data []byte, maxPixels int) (*Image, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return nil, err
	}
	if err := input.CheckPixels(h.Width, h.Height, maxPixels); err != nil {
		return nil, err
	}
	if most := max(minBlock, 4*h.Width*h.Height*h.channels*h.Bits/8); h.blockWidth*h.blockHeight*h.inBlock()*h.Bits/8 > most {
		return nil, fmt.Errorf("blocks of %d x %d in a picture of %d x %d: %w", h.blockWidth, h.blockHeight, h.Width, h.Height, input.ErrTooLarge)
	}
	d := decoder{Image: &Image{Header: h}, file: data}
	across, down := h.grid()
	used, planes := h.colours(), 1
	if h.alpha != noAlpha {
		used++
	}
	if h.planes {
		planes = used
	}
	// All of them are looked at before memory is taken for the picture.
	for i := range across * down * planes {
		if _, err := d.packed(i); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	if h.Float {
		d.Light = make([]float32, 4*h.Width*h.Height)
	} else {
		d.Pix = make([]uint16, 4*h.Width*h.Height)
	}
	if h.photometric == cmyk && h.alpha != noAlpha {
		d.cover = make([]uint16, h.Width*h.Height)
	}
	for i := range across * down * planes {
		in := i % (across * down)
		if err := d.block(i, in%across*h.blockWidth, in/across*h.blockHeight, i/(across*down)); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	d.finish()
	return d.Image, nil
}

type decoder struct {
	*Image
	file  []byte
	buf   []byte
	row   []byte   // without the predictor
	sums  []byte   // of floats, before their bytes are put in order
	cover []uint16 // alpha of CMYK, whose four inks fill Pix
}

// inBlock is the number of channels that lie side by side.
func (h *Header) inBlock() int {
	if h.planes {
		return 1
	}
	return h.channels
}

// rows of block i: the last strip has fewer.
func (h *Header) rows(i int) int {
	across, down := h.grid()
	if y := i / across % down; !h.tiled {
		return min(h.blockHeight, h.Height-y*h.blockHeight)
	}
	return h.blockHeight
}

// packed is block i as it is in the file, which must be enough to unfold to it. Most bytes that one can make: one, 64 by
// PackBits, 1032 by Deflate, and 4096 every 12 bits by LZW.
func (d *decoder) packed(i int) ([]byte, error) {
	from, n := d.offsets[i], d.sizes[i]
	if from > len(d.file) || n > len(d.file)-from {
		return nil, input.ErrTruncated
	}
	most := map[int]int{plain: 1, packBits: 64, lzw: 2731, deflate: 1032, oldDeflate: 1032}[d.compression]
	if size := d.blockWidth * d.rows(i) * d.inBlock() * d.Bits / 8; size/most > n {
		if most == 1 {
			return nil, input.ErrTruncated
		}
		return nil, fmt.Errorf("%d bytes claim to hold %d: %w", n, size, input.ErrDamaged)
	}
	return d.file[from : from+n], nil
}

// block reads block i, whose upper left pixel is at x, y, with the channels from first on.
func (d *decoder) block(i, x, y, first int) error {
	src, err := d.packed(i)
	if err != nil {
		return err
	}
	stride := d.blockWidth * d.inBlock() * d.Bits / 8
	size := stride * d.rows(i)
	if d.compression != plain {
		if cap(d.buf) < size {
			d.buf = make([]byte, size)
		}
		if err := unpack(d.buf[:size], src, d.compression); err != nil {
			return err
		}
		src = d.buf[:size]
	}
	for j := range min(d.rows(i), d.Height-y) {
		row := src[j*stride:][:stride]
		switch d.predictor {
		case 2:
			row = d.differences(row)
		case 3:
			row = d.floats(row)
		}
		for c := range d.inBlock() {
			d.place(row, c, first+c, x, y+j)
		}
	}
	return nil
}

func unpack(dst, src []byte, compression int) error {
	switch compression {
	case lzw:
		return unpackLZW(dst, src)
	case packBits:
		return input.PackBits(dst, src, true)
	}
	r, err := zlib.NewReader(bytes.NewReader(src))
	if err == nil {
		_, err = io.ReadFull(r, dst)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", err, input.ErrDamaged)
	}
	return nil
}

// unpackLZW reads codes of 9 to 12 bits, the highest first. 256 clears the table, 257 is the end, each other one stands for the text of a
// code before it and a byte more. Codes grow one earlier than they would have to.
func unpackLZW(dst, src []byte) error {
	var (
		from, length [4096]int // where the text of a code was written, and how long it is
		next, width  = 258, 9
		last         = -1
		at           = 0 // in dst
		acc, bits    = uint32(0), 0
	)
	for at < len(dst) {
		for bits < width {
			if len(src) == 0 {
				return fmt.Errorf("codes end too early: %w", input.ErrDamaged)
			}
			acc, bits, src = acc<<8|uint32(src[0]), bits+8, src[1:]
		}
		code := int(acc>>(bits-width)) & (1<<width - 1)
		bits -= width
		switch {
		case code == 256:
			next, width, last = 258, 9, -1
			continue
		case code == 257:
			return fmt.Errorf("codes end too early: %w", input.ErrDamaged)
		case code > next || code > 257 && last < 0:
			return fmt.Errorf("code %d of %d: %w", code, next, input.ErrDamaged)
		}
		// The last text ends where this one starts.
		start, before := at, 1
		if last > 257 {
			before = length[last]
		}
		switch f, n := from[code], length[code]; {
		case code < 256:
			dst[at] = byte(code)
			at++
		default:
			if code == next { // not known yet: the last text and its first byte, so it overlaps itself
				f, n = start-before, before+1
			}
			for i := 0; i < n && at < len(dst); i++ {
				dst[at] = dst[f+i]
				at++
			}
		}
		if last >= 0 && next < 4096 {
			from[next], length[next] = start-before, before+1
			next++
		}
		if next >= 1<<width-1 && width < 12 {
			width++
		}
		last = code
	}
	return nil
}

// differences undoes predictor 2: each number is stored as what it is more than the one of its channel before.
func (d *decoder) differences(row []byte) []byte {
	d.row = append(d.row[:0], row...)
	b, n := d.row, d.inBlock()
	switch d.Bits {
	case 8:
		for i := n; i < len(b); i++ {
			b[i] += b[i-n]
		}
	case 16:
		for i := 2 * n; i+1 < len(b); i += 2 {
			d.order.PutUint16(b[i:], d.order.Uint16(b[i:])+d.order.Uint16(b[i-2*n:]))
		}
	case 32:
		for i := 4 * n; i+3 < len(b); i += 4 {
			d.order.PutUint32(b[i:], d.order.Uint32(b[i:])+d.order.Uint32(b[i-4*n:]))
		}
	}
	return b
}

// floats undoes predictor 3 (Technical Note 3): the first bytes of all numbers, then the second ones, from the highest down; each as what
// it is more than the one n before.
func (d *decoder) floats(row []byte) []byte {
	d.sums = append(d.sums[:0], row...)
	src, n, size := d.sums, d.inBlock(), d.Bits/8
	for i := n; i < len(src); i++ {
		src[i] += src[i-n]
	}
	if cap(d.row) < len(row) {
		d.row = make([]byte, len(row))
	}
	out, count := d.row[:len(row)], len(row)/size
	for i := range count {
		for j := range size {
			to := i*size + j
			if d.order.String() == "LittleEndian" {
				to = i*size + size - 1 - j
			}
			out[to] = src[j*count+i]
		}
	}
	return out
}

// place writes channel at of a row of a block, which is the given one of the picture, from x, y on.
func (d *decoder) place(row []byte, at, channel, x, y int) {
	colours := d.colours()
	if channel > colours || channel == colours && d.alpha == noAlpha {
		return
	}
	to, step, dst := 4*(y*d.Width+x)+channel, 4, d.Pix
	if channel == colours {
		to += 3 - channel
		if d.photometric == cmyk {
			to, step, dst = y*d.Width+x, 1, d.cover
		}
	}
	size := d.Bits / 8
	from, next := at*size, d.inBlock()*size
	for range min(d.blockWidth, d.Width-x) {
		s := row[from : from+size]
		switch {
		case d.Float && size == 2:
			d.Light[to] = input.Half(d.order.Uint16(s))
		case d.Float && size == 4:
			d.Light[to] = math.Float32frombits(d.order.Uint32(s))
		case d.Float:
			d.Light[to] = float32(math.Float64frombits(d.order.Uint64(s)))
		case size == 1:
			dst[to] = uint16(s[0]) * 0x101
		case size == 2:
			dst[to] = d.order.Uint16(s)
		default: // 0xffffffff is 0xffff times 0x10001
			dst[to] = uint16((uint64(d.order.Uint32(s)) + 0x8000) / 0x10001)
		}
		to, from = to+step, from+next
	}
}

// finish makes RGBA of the channels.
func (d *decoder) finish() {
	for i := 0; i+3 < len(d.Light); i += 4 {
		p := d.Light[i : i+4 : i+4]
		if d.photometric == blackIsZero {
			p[1], p[2] = p[0], p[0]
		}
		if d.alpha == noAlpha {
			p[3] = 1
		}
		if d.alpha == multiplied && p[3] > 0 && p[3] != 1 {
			p[0], p[1], p[2] = p[0]/p[3], p[1]/p[3], p[2]/p[3]
		}
	}
	for i := 0; i+3 < len(d.Pix); i += 4 {
		p := d.Pix[i : i+4 : i+4]
		switch d.photometric {
		case whiteIsZero:
			p[0] = ^p[0]
			p[1], p[2] = p[0], p[0]
		case blackIsZero:
			p[1], p[2] = p[0], p[0]
		case cmyk: // stored as ink
			k := uint32(^p[3])
			for c := range 3 {
				p[c] = uint16((uint32(^p[c])*k + 0x7fff) / 0xffff)
			}
			if d.cover != nil {
				p[3] = d.cover[i/4]
			}
		}
		a := uint32(p[3])
		if d.alpha == noAlpha {
			p[3] = 0xffff
		} else if d.alpha == multiplied && a > 0 && a < 0xffff {
			for c := range 3 {
				p[c] = uint16((uint32(min(p[c], p[3]))*0xffff + a/2) / a)
			}
		}
	}
}
