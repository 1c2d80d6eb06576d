package psd

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// rows reads the image: u16 packing, then all rows of the first channel, all of the second, and so on. Packed rows are
// preceded by their lengths in u16, or u32 in a PSB.
func (d *decoder) rows(b []byte) error {
	if len(b) < 2 {
		return input.ErrTruncated
	}
	packing := binary.BigEndian.Uint16(b)
	b = b[2:]
	size := (d.Width*d.Depth + 7) / 8
	used := min(d.Channels, d.Mode.colours()+1)
	length := func(int) int { return size }
	switch packing {
	case 0:
		if len(b) < used*d.Height*size {
			return input.ErrTruncated
		}
	case 1:
		var err error
		if length, b, err = d.lengths(b, used, size); err != nil {
			return err
		}
	case 2, 3:
		return fmt.Errorf("a picture packed with ZIP: %w", input.ErrUnsupported)
	default:
		return fmt.Errorf("packing %d: %w", packing, input.ErrDamaged)
	}
	if d.Depth == 32 {
		d.Light = make([]float32, 4*d.Width*d.Height)
	} else {
		d.Pix = make([]uint16, 4*d.Width*d.Height)
	}
	if d.Mode == cmyk && d.alpha() {
		d.cover = make([]uint16, d.Width*d.Height)
	}
	buf := make([]byte, size)
	for i := range used * d.Height {
		row := b[:length(i)]
		b = b[len(row):]
		if packing == 1 {
			if err := input.PackBits(buf, row, false); err != nil {
				return fmt.Errorf("channel %d, row %d: %w", i/d.Height, i%d.Height, err)
			}
			row = buf
		}
		d.place(row, i/d.Height, i%d.Height)
	}
	return nil
}

// lengths reads the table of packed rows. Before memory is allocated, it checks that the rows are present and long enough:
// two bytes expand to at most 128.
func (d *decoder) lengths(b []byte, used, size int) (length func(i int) int, rest []byte, err error) {
	wide := 2
	if d.large {
		wide = 4
	}
	if len(b)/wide < d.Channels*d.Height {
		return nil, nil, input.ErrTruncated
	}
	table, rest := b[:wide*d.Channels*d.Height], b[wide*d.Channels*d.Height:]
	length = func(i int) int {
		if d.large {
			return int(binary.BigEndian.Uint32(table[4*i:]))
		}
		return int(binary.BigEndian.Uint16(table[2*i:]))
	}
	total := 0
	for i := range used * d.Height {
		n := length(i)
		if total += n; total > len(rest) {
			return nil, nil, input.ErrTruncated
		}
		if n < size/64 {
			return nil, nil, fmt.Errorf("%d bytes claim to hold %d: %w", n, size, input.ErrDamaged)
		}
	}
	return length, rest, nil
}

// place writes a row of a channel: grey to red, and CMYK temporarily as RGBA.
func (d *decoder) place(row []byte, channel, y int) {
	at, step := 4*y*d.Width+channel, 4
	dst := d.Pix
	if channel == d.Mode.colours() { // alpha
		at += 3 - channel
		if d.Mode == cmyk {
			dst, at, step = d.cover, y*d.Width, 1
		}
	}
	for x := range d.Width {
		switch d.Depth {
		case 1:
			dst[at] = uint16(row[x/8]>>(7-x%8)&1) * 0xffff
		case 8:
			dst[at] = uint16(row[x]) * 0x101
		case 16:
			dst[at] = binary.BigEndian.Uint16(row[2*x:])
		case 32:
			d.Light[at] = math.Float32frombits(binary.BigEndian.Uint32(row[4*x:]))
		}
		at += step
	}
}

// finish converts the channels to RGBA.
func (d *decoder) finish() {
	for i := 0; i+3 < len(d.Light); i += 4 {
		p := d.Light[i : i+4 : i+4]
		if d.Mode == grey {
			p[1], p[2] = p[0], p[0]
		}
		if !d.alpha() {
			p[3] = 1
		}
	}
	for i := 0; i+3 < len(d.Pix); i += 4 {
		p := d.Pix[i : i+4 : i+4]
		switch d.Mode {
		case bitmap: // 1 is black
			p[0] = ^p[0]
			p[1], p[2] = p[0], p[0]
		case grey, duotone:
			p[1], p[2] = p[0], p[0]
		case indexed:
			c := int(p[0] >> 8)
			p[0], p[1], p[2] = uint16(d.palette[c])*0x101, uint16(d.palette[256+c])*0x101, uint16(d.palette[512+c])*0x101
			if c == d.transparent {
				p[3] = 0
				continue
			}
		case cmyk: // stored as the white that remains beside the ink
			k := uint32(p[3])
			for c := range 3 {
				p[c] = uint16((uint32(p[c])*k + 0x7fff) / 0xffff)
			}
			if d.cover != nil {
				p[3] = d.cover[i/4]
			}
		}
		if !d.alpha() {
			p[3] = 0xffff
		}
	}
	if d.blended {
		d.unblend()
	}
}

// unblend removes the white that Photoshop blends with transparent pixels, if it is there.
func (d *decoder) unblend() {
	// Colour and alpha of 8 bits each have an error of up to half a step.
	for i := 0; i+3 < len(d.Pix); i += 4 {
		for _, c := range d.Pix[i : i+3] {
			if uint32(c)+uint32(d.Pix[i+3])+0x101 < 0xffff {
				return
			}
		}
	}
	for i := 0; i+3 < len(d.Light); i += 4 {
		for _, c := range d.Light[i : i+3] {
			if !(c+d.Light[i+3] > 0.999) {
				return
			}
		}
	}
	for i := 0; i+3 < len(d.Pix); i += 4 {
		p := d.Pix[i : i+4 : i+4]
		if a := uint32(p[3]); a != 0 && a != 0xffff {
			for c := range 3 {
				p[c] = uint16(0xffff - min(0xffff, (uint32(0xffff-p[c])*0xffff+a/2)/a))
			}
		}
	}
	for i := 0; i+3 < len(d.Light); i += 4 {
		p := d.Light[i : i+4 : i+4]
		if a := p[3]; a > 0 && a < 1 {
			for c := range 3 {
				p[c] = max(0, 1-(1-p[c])/a)
			}
		}
	}
}
