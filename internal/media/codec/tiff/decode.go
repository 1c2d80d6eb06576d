package tiff

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Image is an image of RGBA, straight alpha, rows top down: 4*Width*Height numbers, in one of the slices.
type Image struct {
	Header
	Pix   []uint16  // for integers: scaled to 0..65535, more bits rounded
	Light []float32 // for floating point

	Damage string // what was wrong with a file that could still be read, or ""
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
	if most := max(minBlock, 4*h.stride(h.Width)*h.Height); h.stride(h.blockWidth)*h.blockHeight > most {
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

	alphas []uint16 // of CMYK
}

// stride returns the size of a row of pixels in a block in bytes.
func (h *Header) stride(width int) int { return (width*h.inBlock()*h.Bits + 7) / 8 }

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
// most one byte if unpacked, 64 with PackBits, 1032 with Deflate, and with LZW 12 bits to 4096 bytes. A row of a fax may take
// one bit.
func (d *decoder) packed(i int) ([]byte, error) {
	from, n := d.offsets[i], d.sizes[i]
	if from > len(d.file) || n > len(d.file)-from {
		return nil, input.ErrTruncated
	}
	stride := d.stride(d.blockWidth)
	most := map[int]int{plain: 1, packBits: 64, lzw: 2731, deflate: 1032, oldDeflate: 1032}[d.compression]
	if most == 0 {
		most = 8 * stride
	}
	if size := stride * d.rows(i); size/most > n {
		if most == 1 {
			return nil, input.ErrTruncated
		}
		return nil, fmt.Errorf("%d bytes claim to hold %d: %w", n, size, input.ErrDamaged)
	}
	src := d.file[from : from+n]
	if d.reversed {
		src = bytes.Clone(src)
		for i, v := range src {
			src[i] = bits.Reverse8(v)
		}
	}
	return src, nil
}

// block decodes block i, whose top left pixel is at x, y, with the channels from first on.
func (d *decoder) block(i, x, y, first int) error {
	src, err := d.packed(i)
	if err != nil {
		return err
	}
	stride := d.stride(d.blockWidth)
	size := stride * d.rows(i)
	if d.compression != plain {
		if cap(d.buf) < size {
			d.buf = make([]byte, size)
		}
		if err := d.unpack(d.buf[:size], src); err != nil {
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

func (d *decoder) unpack(dst, src []byte) error {
	if !d.isFax() {
		return unpack(dst, src, d.compression)
	}
	flaw, err := unpackFax(dst, src, d.blockWidth, d.compression, d.faxOptions)
	if d.Damage == "" {
		d.Damage = flaw
	}
	return err
}

func unpack(dst, src []byte, compression int) (err error) {
	switch compression {
	case packBits:
		return input.PackBits(dst, src, true)
	case lzw:
		// Programs of before TIFF 6.0 put the first bit of a code lowest. The first code is 256 in both.
		early := len(src) < 2 || src[0] != 0 || src[1]&1 == 0
		err = input.LZW(dst, src, 8, early)
	default:
		var r io.Reader
		if r, err = zlib.NewReader(bytes.NewReader(src)); err == nil {
			_, err = io.ReadFull(r, dst)
		}
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
	case 64:
		for i := 8 * n; i+7 < len(b); i += 8 {
			d.order.PutUint64(b[i:], d.order.Uint64(b[i:])+d.order.Uint64(b[i-8*n:]))
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
		if d.photometric == cmyk {
			d.alphaOfCMYK(row, at, x, y)
			return
		}
		to += 3 - channel
	}
	count := min(d.blockWidth, d.Width-x)
	switch {
	case d.Float:
		d.placeLight(row, at, to, count)
	case d.Bits == 8 && d.photometric != indexed:
		for from, next := at, d.inBlock(); count > 0; count-- {
			d.Pix[to] = uint16(row[from]) * 0x101
			to, from = to+4, from+next
		}
	default:
		most := uint64(1)<<d.Bits - 1
		for i := range count {
			v := d.number(row, i*d.inBlock()+at)
			if d.photometric == indexed && channel == 0 {
				d.Pix[to] = uint16(v)
			} else {
				d.Pix[to] = uint16((v*0xffff + most/2) / most)
			}
			to += 4
		}
	}
}

// number returns the ith number of a row. Those of less than 8 bits, and those that are no whole bytes, are in the order of
// their bits.
func (d *decoder) number(row []byte, i int) uint64 {
	switch d.Bits {
	case 8:
		return uint64(row[i])
	case 16:
		return uint64(d.order.Uint16(row[2*i:]))
	case 24:
		b := row[3*i : 3*i+3]
		if d.order.String() == "LittleEndian" {
			return uint64(b[2])<<16 | uint64(b[1])<<8 | uint64(b[0])
		}
		return uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2])
	case 32:
		return uint64(d.order.Uint32(row[4*i:]))
	}
	var v uint64
	for at := i * d.Bits; at < (i+1)*d.Bits; at++ {
		v = v<<1 | uint64(row[at/8]>>(7-at%8)&1)
	}
	return v
}

func (d *decoder) placeLight(row []byte, at, to, count int) {
	size := d.Bits / 8
	for from, next := at*size, d.inBlock()*size; count > 0; count-- {
		switch s := row[from : from+size]; size {
		case 2:
			d.Light[to] = input.Half(d.order.Uint16(s))
		case 4:
			d.Light[to] = math.Float32frombits(d.order.Uint32(s))
		case 8:
			d.Light[to] = float32(math.Float64frombits(d.order.Uint64(s)))
		}
		to, from = to+4, from+next
	}
}

// alphaOfCMYK keeps alpha until the four inks are converted.
func (d *decoder) alphaOfCMYK(row []byte, at, x, y int) {
	if d.alphas == nil {
		d.alphas = make([]uint16, d.Width*d.Height)
	}
	most := uint64(1)<<d.Bits - 1
	for i := range min(d.blockWidth, d.Width-x) {
		d.alphas[y*d.Width+x+i] = uint16((d.number(row, i*d.inBlock()+at)*0xffff + most/2) / most)
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
	colours := d.paletteOf()
	for i := 0; i+3 < len(d.Pix); i += 4 {
		p := d.Pix[i : i+4 : i+4]
		switch d.photometric {
		case whiteIsZero:
			p[0] = ^p[0]
			p[1], p[2] = p[0], p[0]
		case blackIsZero:
			p[1], p[2] = p[0], p[0]
		case indexed:
			copy(p, colours[p[0]&0xff][:])
		case cmyk:
			light := uint32(^p[3])
			for c := range 3 {
				p[c] = uint16((uint32(^p[c])*light + 0x7fff) / 0xffff)
			}
			if d.alphas != nil {
				p[3] = d.alphas[i/4]
			}
		}
		switch d.alpha {
		case noAlpha:
			p[3] = 0xffff
		case multiplied:
			d.divide(p)
		}
	}
}

// divide divides colours by alpha, with as many bits as the file has.
func (d *decoder) divide(p []uint16) {
	step, most := uint32(1), uint32(0xffff)
	if d.Bits <= 8 {
		step, most = 0x101, 0xff
	}
	a := uint32(p[3]) / step
	if a == most {
		return
	}
	for c := range 3 {
		v := min(uint32(p[c])/step, a)
		if a > 0 {
			v = (v*most + a/2) / a
		}
		p[c] = uint16(v * step)
	}
}

// paletteOf returns the colours of the palette. They have 16 bits, of which the upper 8 count: some programs multiply 8 bits
// by 256 to make 16, others by 257. A palette that has no number above 255 has 8 bits, as in libtiff.
func (d *decoder) paletteOf() (list [256][3]uint16) {
	if d.photometric != indexed {
		return list
	}
	n := 1 << d.Bits
	shift := 0
	if slices.Max(d.palette[:3*n]) > 255 {
		shift = 8
	}
	for i := range n {
		for c := range 3 {
			list[i][c] = uint16(d.palette[c*n+i]>>shift) * 0x101
		}
	}
	return list
}
