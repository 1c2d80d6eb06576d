package jpeg

import (
	"fmt"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// Markers (T.81, table B.1). SOF0 to SOF15 are frames, except DHT, JPG and DAC.
const (
	markTEM  = 0x01
	markSOF0 = 0xc0
	markSOF1 = 0xc1
	markSOF2 = 0xc2
	markDHT  = 0xc4
	markJPG  = 0xc8
	markDAC  = 0xcc
	markRST0 = 0xd0
	markRST7 = 0xd7
	markEOI  = 0xd9
	markSOS  = 0xda
	markDQT  = 0xdb
	markDNL  = 0xdc
	markDRI  = 0xdd
	markDHP  = 0xde
	markAPP0 = 0xe0
	markLS   = 0xf7 // the frame of JPEG-LS, ITU-T T.87
	markCOM  = 0xfe
)

const saveAgain = "; save it as baseline or progressive JPEG, or as PNG"

// kind names frames that are not read.
func kind(mark byte) string {
	switch {
	case mark == 0xc3:
		return "lossless JPEG"
	case mark == markLS:
		return "JPEG-LS"
	case mark == 0xc9 || mark == 0xca:
		return "arithmetic coding"
	case mark == 0xcb:
		return "lossless JPEG with arithmetic coding"
	case mark == markDHP || mark >= 0xc5 && mark <= 0xcf && mark != markJPG && mark != markDAC:
		return "hierarchical JPEG"
	}
	return ""
}

// damaged returns an error with the place of the current segment.
func (d *decoder) damaged(format string, args ...any) error {
	return fmt.Errorf("segment at byte %d: %s: %w", min(d.segment, len(d.data)), fmt.Sprintf(format, args...), input.ErrDamaged)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), input.ErrUnsupported)
}

// segments reads the file: 0xff, a marker, u16 size, bytes. The codes of a scan follow its segment.
func (d *decoder) segments() error {
	if len(d.data) >= 2 && string(d.data[:2]) != "\xff\xd8" {
		return d.damaged("not the start of a JPEG")
	}
	d.at = 2
	for {
		if d.mark == 0 {
			d.nextMark()
		}
		mark, start := d.mark, d.at
		d.mark, d.segment = 0, start-2
		if mark == markEOI {
			return nil
		}
		if mark == markTEM || mark >= markRST0 && mark <= markRST7 {
			continue // a marker without data
		}
		if what := kind(mark); what != "" {
			return unsupported("%s%s", what, saveAgain)
		}
		err := d.body(mark, start, d.word())
		if err != nil && d.ended() && d.read > 0 {
			return nil // in the middle of a header, after complete scans
		}
		if err != nil {
			return err
		}
	}
}

// body reads a segment after its size.
func (d *decoder) body(mark byte, start, size int) error {
	switch {
	case mark == markSOF0 || mark == markSOF1 || mark == markSOF2:
		return d.frame(size, mark == markSOF2)
	case mark == markDHT:
		return d.tables(size)
	case mark == markSOS:
		return d.scan(size)
	case mark == markDQT:
		return d.quants(size)
	case mark == markDRI:
		if d.restart = d.word(); size != 4 {
			return d.damaged("a restart interval of %d bytes", size)
		}
	case mark == markDAC || mark == markDNL || mark == markCOM || mark >= markAPP0 && mark < markAPP0+16:
		d.at = start + max(size, 2)
		if d.at <= len(d.data) && size >= 2 {
			d.application(mark, d.data[start+2:d.at])
		}
	default:
		return d.damaged("unknown marker %#x", mark)
	}
	return nil
}

// application reads the segments that describe colours: "JFIF" and at least 9 more bytes, of which nothing is used; "Adobe"
// and u16 version, u16 flags, u16 flags, u8 transform.
func (d *decoder) application(mark byte, body []byte) {
	switch {
	case mark == markAPP0 && len(body) >= 14 && string(body[:5]) == "JFIF\x00":
		d.jfif = true
	case mark == markAPP0+14 && len(body) >= 12 && string(body[:5]) == "Adobe":
		d.adobe, d.adobeColour = true, body[11]
	}
}

// frame reads u8 bits, u16 height, u16 width, u8 number of parts, and for each part its id, sampling and quantization
// table.
func (d *decoder) frame(size int, progressive bool) error {
	depth := d.next()
	d.height, d.width = d.word(), d.word()
	n := int(d.next())
	switch {
	case d.parts != nil:
		return d.damaged("a second frame")
	case depth == 12:
		return unsupported("12 bits a channel; save it with 8 bits, or as PNG")
	case depth != 8 || d.width == 0 || n == 0 || size != 8+3*n:
		return d.damaged("a frame of %d bits, %d x %d pixels, %d parts", depth, d.width, d.height, n)
	case d.height == 0:
		return unsupported("a height that follows the picture%s", saveAgain)
	case n != 1 && n != 3 && n != 4:
		return unsupported("%d channels; save it as grey or RGB", n)
	}
	if err := input.CheckPixels(d.width, d.height, d.maxPixels); err != nil {
		return err
	}
	d.progressive, d.h, d.v = progressive, 1, 1
	parts := make([]*part, n)
	for i := range parts {
		p := &part{id: int(d.next())}
		sampling := int(d.next())
		p.h, p.v, p.quantIndex = sampling>>4, sampling&15, int(d.next())
		if p.h < 1 || p.h > 4 || p.v < 1 || p.v > 4 {
			return d.damaged("a sampling of %d x %d", p.h, p.v)
		}
		if n == 1 {
			p.h, p.v = 1, 1
		}
		d.h, d.v = max(d.h, p.h), max(d.v, p.v)
		parts[i] = p
	}
	if d.ended() {
		return input.ErrTruncated
	}
	d.parts = parts
	d.across, d.down = over(d.width, 8*d.h), over(d.height, 8*d.v)
	d.blocks = fewBlocks
	for _, p := range parts {
		d.blocks += int64(d.across*p.h) * int64(d.down*p.v)
		p.width, p.height, p.across = over(d.width*p.h, d.h), over(d.height*p.v, d.v), d.across*p.h
	}
	return nil
}

// over divides and rounds up.
func over(a, b int) int { return (a + b - 1) / b }

// tables reads Huffman tables: u8 class and index, 16 u8 with the number of codes of each length, the symbols.
func (d *decoder) tables(size int) error {
	for size -= 2; size > 16; {
		index := d.next()
		var counts [17]int
		n := 0
		for i := 1; i <= 16; i++ {
			counts[i] = int(d.next())
			n += counts[i]
		}
		if size -= 17 + n; n > 256 || size < 0 || index&^0x13 != 0 {
			return d.damaged("Huffman table %#x of %d codes", index, n)
		}
		var values [256]byte
		for i := range n {
			values[i] = d.next()
		}
		if t := newTable(&counts, &values); index&0x10 != 0 {
			d.ac[index&3] = t
		} else {
			d.dc[index&3] = t
		}
	}
	if size != 0 {
		return d.damaged("Huffman tables with %d bytes left over", size)
	}
	return nil
}

// quants reads quantization tables: u8 size and index, 64 u8 or u16.
func (d *decoder) quants(size int) error {
	for size -= 2; size > 0; {
		index := d.next()
		q := &[64]uint16{}
		for i := range q {
			if q[i] = uint16(d.next()); index>>4 != 0 {
				q[i] = q[i]<<8 | uint16(d.next())
				size--
			}
		}
		size -= 65
		if index&15 > 3 {
			return d.damaged("quantization table %d", index&15)
		}
		d.quant[index&3] = q
	}
	if size != 0 {
		return d.damaged("quantization tables with %d bytes too few", -size)
	}
	return nil
}

// scan reads u8 number of parts, and for each its id and tables; then u8 first and u8 last coefficient, u8 high and low bit;
// then the codes.
func (d *decoder) scan(size int) error {
	n := int(d.next())
	if d.parts == nil || n < 1 || n > len(d.parts) || size != 6+2*n {
		return d.damaged("a scan of %d parts", n)
	}
	if d.whole {
		return d.damaged("another scan after all parts")
	}
	d.whole = n == len(d.parts) && !d.progressive
	if d.headerOnly {
		return errScan
	}
	d.startScan()
	var s scan
	for i := range n {
		id, tables := int(d.next()), d.next()
		at := slices.IndexFunc(d.parts, func(p *part) bool { return p.id == id && !slices.Contains(s.parts, p) })
		if at < 0 || tables&^0x33 != 0 {
			return d.damaged("a scan of part %d", id)
		}
		p := d.parts[at]
		if err := d.prepare(p); err != nil {
			return err
		}
		s.parts, s.dc[i], s.ac[i] = append(s.parts, p), d.dc[tables>>4], d.ac[tables&3]
		s.blocks += p.h * p.v
	}
	s.first, s.last = int(d.next()), int(d.next())
	bits := int(d.next())
	s.low, s.more = bits&15, bits>>4 != 0
	if !d.progressive {
		s.first, s.last, s.low, s.more = 0, 63, 0, false
	}
	if n > 1 && s.blocks > 10 || d.progressive && (s.last > 63 || s.first > s.last || s.first == 0 && s.last > 0 || s.first > 0 && n > 1 ||
		s.low > 13 || s.more && s.low != bits>>4-1) {
		return d.damaged("a scan of coefficients %d to %d, bits %#x, with %d blocks a group", s.first, s.last, bits, s.blocks)
	}
	for i := range n {
		if s.first == 0 && !s.more && (s.dc[i] == nil || !s.dc[i].dc) || s.last > 0 && s.ac[i] == nil {
			return d.damaged("a Huffman table of the scan is missing or wrong")
		}
	}
	if d.ended() {
		return input.ErrTruncated
	}
	return d.codes(&s)
}

// startScan decides what applies from the first scan on. Baseline files without Huffman tables, as in Motion JPEG, have those
// of T.81.
func (d *decoder) startScan() {
	if d.colour != unknown {
		return
	}
	d.colour = d.colours()
	if d.progressive {
		return
	}
	for i := range 2 {
		if d.dc[i] == nil {
			d.dc[i] = standardTable(standardDC[i])
		}
		if d.ac[i] == nil {
			d.ac[i] = standardTable(standardAC[i])
		}
	}
}

// prepare keeps the quantization table of a part at its first scan, and allocates its memory.
func (d *decoder) prepare(p *part) error {
	if p.quant != nil {
		return nil
	}
	if p.quantIndex > 3 || d.quant[p.quantIndex] == nil {
		return d.damaged("quantization table %d of part %d is missing", p.quantIndex, p.id)
	}
	p.quant = d.quant[p.quantIndex]
	for k, q := range p.quant {
		p.scale[zigzag[k]] = int32(q)
	}
	if !d.whole {
		p.blocks = make([]block, p.across*d.down*p.v)
	}
	return nil
}
