package exr

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// The size limit of a block of lines is four images of four channels, or minBlock, with any number of channels, and at most
// maxBlock.
const (
	minBlock = 16 << 20
	maxBlock = 256 << 20
)

// Decode decodes the display window of an image as RGBA in linear light, straight alpha, rows top down, 4*Width*Height
// numbers. It returns [input.ErrTooLarge] for more than maxPixels pixels in the display window or in the data window.
// Numbers are as in the file, including NaN and infinities.
func Decode(data []byte, maxPixels int) (Header, []float32, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return h, nil, err
	}
	for _, b := range []box{h.display, h.data} {
		if err := input.CheckPixels(b.width(), b.height(), maxPixels); err != nil {
			return h, nil, err
		}
	}
	if size := min(h.compression.lines(), h.data.height()) * h.lineSize; size > max(minBlock, 4*16*h.data.width()*h.data.height()) || size > maxBlock {
		return h, nil, fmt.Errorf("blocks of %d bytes: %w", size, input.ErrTooLarge)
	}
	blocks := (h.data.height() + h.compression.lines() - 1) / h.compression.lines()
	if (len(data)-h.offsets)/16 < blocks { // 8 bytes in the table, 8 before the packed bytes of the block
		return h, nil, input.ErrTruncated
	}
	d := decoder{Header: h, file: data, targets: h.targets()}
	if err := d.enough(blocks); err != nil {
		return h, nil, err
	}
	d.pix = make([]float32, 4*h.Width*h.Height)
	for i := range blocks {
		if err := d.block(i); err != nil {
			return h, nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	d.straighten()
	return h, d.pix, nil
}

type decoder struct {
	Header
	file    []byte
	targets [][]int // for each channel, its components in RGBA
	pix     []float32

	inflate io.ReadCloser // reused, since its window has 32 KiB
	packed  []byte        // unpacked bytes before they are reordered
	out     []byte
	piz     *pizDecoder
}

// targets returns the components of each channel: R, G, B and A have their own; Y has all colours, unless there is R, G or
// B.
func (h *Header) targets() [][]int {
	places := map[string][]int{"R": {0}, "G": {1}, "B": {2}, "A": {3}, "Y": {0, 1, 2}}
	for _, c := range h.channels {
		if c.name == "R" || c.name == "G" || c.name == "B" {
			delete(places, "Y")
		}
	}
	list := make([][]int, len(h.channels))
	for i, c := range h.channels {
		list[i] = places[c.name]
		delete(places, c.name) // a second channel with the same name is ignored
	}
	return list
}

// hasAlpha reports whether there is an alpha channel. If not, pixels of the data window are opaque.
func (d *decoder) hasAlpha() bool {
	for _, t := range d.targets {
		if len(t) == 1 && t[0] == 3 {
			return true
		}
	}
	return false
}

// mostPacked is the largest number of bytes for one packed byte: Deflate has at most 1032, and PXR24 omits one byte of four
// before that.
const mostPacked = 1376

// enough checks the sizes of the packed blocks before memory is allocated, so a header alone cannot claim memory for an
// image.
func (d *decoder) enough(blocks int) error {
	all := 0
	for i := range blocks {
		packed, _, lines, err := d.packedBlock(i)
		if err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		if all += len(packed); all > len(d.file) { // several blocks are the same bytes
			return fmt.Errorf("block %d: %w", i, input.ErrDamaged)
		}
		if size := lines * d.lineSize; len(packed) < size/mostPacked {
			return fmt.Errorf("block %d: %d bytes claim to hold %d: %w", i, len(packed), size, input.ErrDamaged)
		}
	}
	return nil
}

// packedBlock returns the bytes and the lines of block i, counted from the top.
func (d *decoder) packedBlock(i int) (packed []byte, y, lines int, err error) {
	at := binary.LittleEndian.Uint64(d.file[d.offsets+8*i:])
	if at > uint64(len(d.file)) || len(d.file)-int(at) < 8 {
		return nil, 0, 0, input.ErrTruncated
	}
	head := d.file[at:]
	y = d.data.minY + i*d.compression.lines()
	if got := int(int32(binary.LittleEndian.Uint32(head))); got != y {
		return nil, 0, 0, fmt.Errorf("line %d instead of %d: %w", got, y, input.ErrDamaged)
	}
	size := uint64(binary.LittleEndian.Uint32(head[4:]))
	if uint64(len(head)-8) < size {
		return nil, 0, 0, input.ErrTruncated
	}
	return head[8 : 8+size], y, min(d.compression.lines(), d.data.maxY+1-y), nil
}

// block decodes block i.
func (d *decoder) block(i int) error {
	packed, y, lines, err := d.packedBlock(i)
	if err != nil {
		return err
	}
	raw, err := d.unpack(packed, lines)
	if err != nil {
		return err
	}
	for j := range lines {
		if row := y + j - d.display.minY; row >= 0 && row < d.Height {
			d.line(raw[j*d.lineSize:][:d.lineSize], row)
		}
	}
	return nil
}

// line copies a line of the data window to a row of the display window.
func (d *decoder) line(raw []byte, row int) {
	from := max(d.data.minX, d.display.minX)
	n := min(d.data.maxX, d.display.maxX) + 1 - from // less than 1 if the windows do not overlap
	if n < 1 {
		return
	}
	dst := d.pix[4*(row*d.Width+from-d.display.minX):][:4*n]
	if !d.hasAlpha() {
		for i := 3; i < len(dst); i += 4 {
			dst[i] = 1
		}
	}
	for i, c := range d.channels {
		size := c.kind.size()
		src := raw[size*(from-d.data.minX):][:size*n]
		for _, place := range d.targets[i] {
			read(dst[place:], src, c.kind)
		}
		raw = raw[size*d.data.width():]
	}
}

// read converts the numbers of src and writes them to every fourth number of dst.
func read(dst []float32, src []byte, k kind) {
	switch k {
	case kindHalf:
		for i := 0; i+1 < len(src); i += 2 {
			dst[2*i] = input.Half(binary.LittleEndian.Uint16(src[i:]))
		}
	case kindFloat:
		for i := 0; i+3 < len(src); i += 4 {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[i:]))
		}
	case kindUint:
		for i := 0; i+3 < len(src); i += 4 {
			dst[i] = float32(binary.LittleEndian.Uint32(src[i:]))
		}
	}
}

// straighten divides colours by alpha.
func (d *decoder) straighten() {
	if !d.hasAlpha() {
		return
	}
	for i := 0; i+3 < len(d.pix); i += 4 {
		if p := d.pix[i : i+4 : i+4]; p[3] > 0 && p[3] != 1 {
			p[0], p[1], p[2] = p[0]/p[3], p[1]/p[3], p[2]/p[3]
		}
	}
}

// unpack unpacks the lines of a block. A block that would not have become smaller is stored unpacked.
func (d *decoder) unpack(src []byte, lines int) ([]byte, error) {
	size := lines * d.lineSize
	if len(src) == size {
		return src, nil
	}
	if d.compression == none || len(src) > size {
		return nil, fmt.Errorf("%d bytes instead of %d: %w", len(src), size, input.ErrDamaged)
	}
	if cap(d.out) < size {
		d.packed, d.out = make([]byte, size), make([]byte, size)
	}
	d.packed, d.out = d.packed[:size], d.out[:size]
	var err error
	switch d.compression {
	case rle:
		err = unpackRuns(d.packed, src)
		straightenBytes(d.out, d.packed)
	case zips, zip:
		err = d.unpackZIP(d.packed, src)
		straightenBytes(d.out, d.packed)
	case piz:
		err = d.unpackPIZ(d.out, src, lines)
	case pxr24:
		err = d.unpackPXR24(d.out, src, lines)
	case b44, b44a:
		err = d.unpackB44(d.out, src, lines)
	}
	return d.out, err
}

// straightenBytes reverses the reordering for better compression: bytes are stored as differences plus 128, the even bytes
// of the block before the odd ones.
func straightenBytes(dst, src []byte) {
	even, v := (len(src)+1)/2, byte(128)
	for i, b := range src[:even] {
		v += b - 128
		dst[2*i] = v
	}
	for i, b := range src[even:] {
		v += b - 128
		dst[2*i+1] = v
	}
}

func (d *decoder) unpackZIP(dst, src []byte) (err error) {
	if d.inflate == nil {
		d.inflate, err = zlib.NewReader(bytes.NewReader(src))
	} else {
		err = d.inflate.(zlib.Resetter).Reset(bytes.NewReader(src), nil)
	}
	if err != nil {
		d.inflate = nil
		return fmt.Errorf("%v: %w", err, input.ErrDamaged)
	}
	if _, err := io.ReadFull(d.inflate, dst); err != nil {
		return fmt.Errorf("%v: %w", err, input.ErrDamaged)
	}
	// Reading to the end checks the checksum.
	if n, err := d.inflate.Read(make([]byte, 1)); n != 0 {
		return fmt.Errorf("more than %d bytes: %w", len(dst), input.ErrDamaged)
	} else if err != io.EOF {
		return fmt.Errorf("%v: %w", err, input.ErrDamaged)
	}
	return nil
}

// unpackRuns unpacks runs: a count below 0 is followed by -count bytes, any other count by a byte that is repeated count+1
// times.
func unpackRuns(dst, src []byte) error {
	for len(dst) > 0 {
		if len(src) < 2 {
			return fmt.Errorf("runs end too early: %w", input.ErrDamaged)
		}
		n := int(int8(src[0]))
		if n < 0 {
			n = -n
			if n > len(src)-1 || n > len(dst) {
				return fmt.Errorf("packet of %d bytes: %w", n, input.ErrDamaged)
			}
			copy(dst, src[1:1+n])
			src = src[1+n:]
		} else {
			n++
			if n > len(dst) {
				return fmt.Errorf("run of %d bytes: %w", n, input.ErrDamaged)
			}
			for i := range dst[:n] {
				dst[i] = src[1]
			}
			src = src[2:]
		}
		dst = dst[n:]
	}
	if len(src) > 0 {
		return fmt.Errorf("%d bytes after the last run: %w", len(src), input.ErrDamaged)
	}
	return nil
}
