package jpeg

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// zigzag has the place in a block of each coefficient in the order of the file (T.81, figure A.6). Runs that go over the end
// of a block end in its last place, as in libjpeg.
var zigzag = [128]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
}

// codes reads the codes of a scan: in groups if there are several parts, else in blocks.
func (d *decoder) codes(s *scan) error {
	across, down, blocks := d.across, d.down, s.blocks
	d.high = 8 * d.v
	if len(s.parts) == 1 {
		p := s.parts[0]
		across, down, blocks, d.high = over(p.width, 8), over(p.height, 8), 1, 8*d.v/p.v
	}
	d.passes += int64(across * down * blocks)
	if d.passes > maxPasses*d.blocks {
		return fmt.Errorf("scans pass its %d x %d pixels more than %d times%s: %w", d.width, d.height, maxPasses, saveAgain, input.ErrTooLarge)
	}
	d.nextRestart, d.empty = 0, false
	d.begin()
	if d.whole {
		d.startPicture()
	}
	left := d.restart
	for d.row = range down {
		for x := range across {
			if d.restart > 0 {
				if left == 0 {
					d.restartMark()
					left = d.restart
				}
				left--
			}
			if d.empty && !d.whole && (d.restart == 0 || d.mark >= markSOF0 && (d.mark < markRST0 || d.mark > markRST7)) {
				d.endScan(s)
				return nil // no data follows
			}
			d.group(s, x, d.row)
		}
		if d.whole {
			d.paint(d.row)
		}
	}
	d.endScan(s)
	return nil
}

func (d *decoder) endScan(s *scan) {
	d.dropBits()
	for _, p := range s.parts {
		for k := s.first; k <= s.last; k++ {
			p.known[k] = s.low == 0
		}
	}
}

// group reads a group of blocks: as many of each part as it has samples in relation to the others.
func (d *decoder) group(s *scan, x, y int) {
	if d.empty && !d.whole {
		return
	}
	for j, p := range s.parts {
		h, v := p.h, p.v
		if len(s.parts) == 1 {
			h, v = 1, 1
		}
		for by := range v {
			for bx := range h {
				switch {
				case d.whole:
					last := 0
					if !d.empty {
						last = d.block(&d.spare, p, s.dc[j], s.ac[j])
					}
					p.samples(&d.spare, last, x*h+bx, by)
				case !d.progressive:
					d.block(&p.blocks[(y*v+by)*p.across+x*h+bx], p, s.dc[j], s.ac[j])
				default:
					d.detail(&p.blocks[(y*v+by)*p.across+x*h+bx], s, p, j)
				}
			}
		}
	}
	if d.empty {
		return
	}
	if d.beyond() {
		d.fault(d.mark == markEOI)
		d.empty = true
		return
	}
	d.read++
}

// begin resets the state, at the start and after a restart.
func (d *decoder) begin() {
	d.dropBits()
	d.ends = 0
	for _, p := range d.parts {
		p.dc = 0
	}
	d.empty = d.empty && d.mark != 0
}

// restartMark searches the next restart marker. An unexpected marker shows what is missing. One of the two before the
// expected one means that older data follows: the search continues. One of the two after it is kept until its turn, as
// is a marker that is not a restart. Any other is treated as the expected one. (This is jpeg_resync_to_restart in libjpeg.)
func (d *decoder) restartMark() {
	if d.mark == 0 {
		d.nextMark()
	}
	for d.mark != markRST0+byte(d.nextRestart) {
		d.fault(d.mark == markEOI)
		if d.mark >= markSOF0 {
			ahead := (int(d.mark) - markRST0 - d.nextRestart) & 7
			if d.mark < markRST0 || d.mark > markRST7 || ahead == 1 || ahead == 2 {
				d.nextRestart = (d.nextRestart + 1) & 7
				d.begin()
				return
			}
			if ahead != 6 && ahead != 7 {
				break
			}
		}
		d.nextMark()
	}
	d.mark = 0
	d.nextRestart = (d.nextRestart + 1) & 7
	d.begin()
}

// block reads the coefficients of a block (T.81, F.2.2). It returns the place of the last one in the order of the file.
func (d *decoder) block(b *block, p *part, dc, ac *table) int {
	p.dc += d.number(d.symbol(dc))
	b[0] = int16(p.dc)
	last, _ := d.coefficients(b, ac, 1, 63, 0)
	return last
}

// coefficients reads the coefficients from k to most, whose lowest low bits are not there. It returns the place of the last
// one that is not 0, or a place after the end, and the number of zeros in the symbol that ended the block, or -1.
func (d *decoder) coefficients(b *block, ac *table, k, most, low int) (last, run int) {
	bits, n := d.bits, d.n
	for ; k <= most; k++ {
		if n < enough {
			d.bits, d.n = bits, n
			d.fill()
			bits, n = d.bits, d.n
		}
		e := ac.quick[bits>>(64-look)]
		if v := int16(e >> 16); v != 0 {
			used := int(e >> 4 & 15)
			bits <<= used
			n -= used
			k += int(e >> 12 & 15)
			b[zigzag[k&127]&63] = v << (low & 15)
			last = k
			continue
		}
		if e == 0 {
			d.bits, d.n = bits, n
			e = uint32(d.symbol(ac)) << 8
			bits, n = d.bits, d.n
		} else {
			used := int(e & 15)
			bits <<= used
			n -= used
		}
		run, size := int(e>>12&15), int(e>>8&15)
		if size == 0 {
			if k += 15; run == 15 {
				continue
			}
			d.bits, d.n = bits, n
			return last, run
		}
		// The upper half of the values is positive, as in signed.
		v := int(bits>>((64-size)&63)) + (1-1<<size)&^(int(bits)>>63)
		bits <<= size
		n -= size
		k += run
		b[zigzag[k&127]&63] = int16(v << (low & 15))
		last = k
	}
	d.bits, d.n = bits, n
	return last, -1
}

// detail reads what a scan of a progressive picture has of a block (T.81, G.1.2 and G.2).
func (d *decoder) detail(b *block, s *scan, p *part, i int) {
	switch {
	case s.first == 0 && s.more:
		b[0] |= int16(d.take(1) << s.low)
	case s.first == 0:
		p.dc += d.number(d.symbol(s.dc[i]))
		b[0] = int16(p.dc << s.low)
	case s.more:
		d.refine(b, s)
	case d.ends > 0:
		d.ends--
	default:
		if _, run := d.coefficients(b, s.ac[0], s.first, s.last, s.low); run >= 0 {
			d.ends = 1<<run + d.take(run) - 1
		}
	}
}

// refine reads one more bit of each coefficient.
func (d *decoder) refine(b *block, s *scan) {
	bit := int16(1) << s.low
	k := s.first
	for ; d.ends == 0 && k <= s.last; k++ {
		symbol := d.symbol(s.ac[0])
		run, n, v := symbol>>4, symbol&15, -bit
		if n == 0 && run < 15 {
			d.ends = 1<<run + d.take(run)
			break
		}
		if n > 1 {
			d.fault(false)
		}
		if n > 0 && d.take(1) != 0 {
			v = bit
		}
		if k = d.refineUpTo(b, k, s.last, run, bit); n > 0 {
			b[zigzag[k&127]&63] = v
		}
	}
	if d.ends > 0 {
		d.refineUpTo(b, k, s.last, 64, bit)
		d.ends--
	}
}

// refineUpTo refines coefficients that are not 0. It returns the place after skip coefficients that are 0.
func (d *decoder) refineUpTo(b *block, k, last, skip int, bit int16) int {
	bits, n := d.bits, d.n
	for ; k <= last; k++ {
		c := &b[zigzag[k&127]&63]
		if *c == 0 {
			if skip--; skip < 0 {
				break
			}
			continue
		}
		if n == 0 {
			d.bits, d.n = bits, n
			d.fill()
			bits, n = d.bits, d.n
		}
		one := int64(bits) < 0
		bits <<= 1
		n--
		switch {
		case !one || *c&bit != 0:
		case *c > 0:
			*c += bit
		default:
			*c -= bit
		}
	}
	d.bits, d.n = bits, n
	return k
}
