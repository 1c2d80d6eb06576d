package tiff

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"

	tifflzw "golang.org/x/image/tiff/lzw"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Image is an image of RGBA, straight alpha, rows top down: 4*Width*Height numbers, in one of the slices.
type Image struct {
	Header
	Pix   []uint16  // for integers: scaled to 0..65535, 32 bits rounded
	Light []float32 // for floating point
}

// minBlock is the size in bytes that a block may have in any image; otherwise the limit is four times the size of the image.
const minBlock = 16 << 20

// Decode reads the first page. It returns [input.ErrTooLarge] for more than maxPixels pixels.
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
	// Check all blocks before memory is allocated for the image.
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
	file []byte
	buf  []byte
	row  []byte // before the predictor is reversed
	sums []byte // of floats, before their bytes are reordered
}

// inBlock returns the number of interleaved channels.
func (h *Header) inBlock() int {
	if h.planes {
		return 1
	}
	return h.channels
}

// rows returns the number of rows in block i: the last strip may have fewer.
func (h *Header) rows(i int) int {
	across, down := h.grid()
	if y := i / across % down; !h.tiled {
		return min(h.blockHeight, h.Height-y*h.blockHeight)
	}
	return h.blockHeight
}

// packed returns block i as it is in the file. It checks that the packed bytes can expand to a block. One byte expands to at
// most one byte if unpacked, 64 with PackBits, 1032 with Deflate, and with LZW 12 bits to 4096 bytes.
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

// block decodes block i, whose top left pixel is at x, y, with the channels from first on.
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

func unpack(dst, src []byte, compression int) (err error) {
	var r io.Reader
	switch compression {
	case packBits:
		return input.PackBits(dst, src, true)
	case lzw:
		r = tifflzw.NewReader(bytes.NewReader(src), tifflzw.MSB, 8)
	default:
		r, err = zlib.NewReader(bytes.NewReader(src))
	}
	if err == nil {
		_, err = io.ReadFull(r, dst)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", err, input.ErrDamaged)
	}
	return nil
}

// differences reverses predictor 2: each number is stored as the difference from the previous number of its channel.
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

// floats reverses predictor 3 (Technical Note 3): the first bytes of all numbers, then the second bytes, and so on, from the
// highest down; each byte is stored as the difference from the byte n before.
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

// place writes channel at of a row of a block to the given channel of the image, from x, y on.
func (d *decoder) place(row []byte, at, channel, x, y int) {
	colours := d.colours()
	if channel > colours || channel == colours && d.alpha == noAlpha {
		return
	}
	to := 4*(y*d.Width+x) + channel
	if channel == colours {
		to += 3 - channel
	}
	size := d.Bits / 8
	from, next := at*size, d.inBlock()*size
	for range min(d.blockWidth, d.Width-x) {
		s := row[from : from+size]
		switch {
		case d.Float && size == 2:
			d.Light[to] = input.Half(d.order.Uint16(s))
		case d.Float:
			d.Light[to] = math.Float32frombits(d.order.Uint32(s))
		case size == 1:
			d.Pix[to] = uint16(s[0]) * 0x101
		case size == 2:
			d.Pix[to] = d.order.Uint16(s)
		default: // 0xffffffff is 0xffff times 0x10001
			d.Pix[to] = uint16((uint64(d.order.Uint32(s)) + 0x8000) / 0x10001)
		}
		to, from = to+4, from+next
	}
}

// finish converts the channels to RGBA.
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
