package exr

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// unpackPXR24 reads deflated differences between consecutive numbers. Each line of a channel is stored by bytes, the highest
// bytes of all numbers first. The lowest byte of a float is not stored.
func (d *decoder) unpackPXR24(dst, src []byte, lines int) error {
	size := 0
	for _, c := range d.channels {
		size += pxr24Size(c.kind) * d.data.width() * lines
	}
	packed := d.packed[:size]
	if err := d.unpackZIP(packed, src); err != nil {
		return err
	}
	n := d.data.width()
	for range lines {
		for _, c := range d.channels {
			size, v := pxr24Size(c.kind), uint32(0)
			for i := range n {
				diff := uint32(0)
				for j := range size {
					diff = diff<<8 | uint32(packed[j*n+i])
				}
				switch c.kind {
				case kindHalf:
					v += diff
					binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
				case kindFloat:
					v += diff << 8
					binary.LittleEndian.PutUint32(dst[4*i:], v)
				case kindUint:
					v += diff
					binary.LittleEndian.PutUint32(dst[4*i:], v)
				}
			}
			packed, dst = packed[size*n:], dst[c.kind.size()*n:]
		}
	}
	return nil
}

// pxr24Size returns the number of stored bytes of a number.
func pxr24Size(k kind) int {
	if k == kindFloat {
		return 3
	}
	return k.size()
}

// unpackB44 reads halfs in blocks of 4 x 4, with 14 bytes, or 3 if all are the same. All lines of a channel precede the next
// channel. Floats and uints are stored unpacked.
func (d *decoder) unpackB44(dst, src []byte, lines int) error {
	at, width := 0, d.data.width()
	for _, c := range d.channels {
		n := c.kind.size() * width
		if c.kind != kindHalf {
			if len(src) < n*lines {
				return input.ErrTruncated
			}
			for y := range lines {
				copy(dst[y*d.lineSize+at:], src[y*n:][:n])
			}
			src = src[n*lines:]
		}
		for y := 0; y < lines && c.kind == kindHalf; y += 4 {
			for x := 0; x < width; x += 4 {
				v, size := b44Block(src)
				if size == 0 {
					return input.ErrTruncated
				}
				src = src[size:]
				for i, v := range v {
					if x, y := x+i%4, y+i/4; x < width && y < lines {
						if c.perceptual {
							v = b44Log()[v]
						}
						binary.LittleEndian.PutUint16(dst[y*d.lineSize+at+2*x:], v)
					}
				}
			}
		}
		at += n
	}
	if len(src) > 0 {
		return fmt.Errorf("%d bytes after the last block: %w", len(src), input.ErrDamaged)
	}
	return nil
}

// b44Block reads a block: u16, the corner, then 16 numbers of 6 bits. The first is a shift, the others are 15 differences,
// plus 32, shifted: down the left column, then for every column those from the column beside it. A shift of 13 or more marks
// a flat block, which has no differences. size is 0 if src is too short.
func b44Block(src []byte) (v [16]uint16, size int) {
	if len(src) < 3 {
		return v, 0
	}
	v[0] = binary.BigEndian.Uint16(src)
	shift := src[2] >> 2
	if shift >= 13 {
		flat := fromOrdered(v[0])
		for i := range v {
			v[i] = flat
		}
		return v, 3
	}
	if len(src) < 14 {
		return v, 0
	}
	for i := 1; i < 16; i++ {
		at := 2 + i*6/8
		bits := uint16(src[at])<<8 | uint16(src[min(at+1, 13)])
		diff := bits >> (10 - i*6%8) & 63
		x, y := i/4, i%4
		before := 4*y + x - 1
		if x == 0 {
			before = 4*y - 4
		}
		v[4*y+x] = v[before] + (diff-32)<<shift
	}
	for i := range v {
		v[i] = fromOrdered(v[i])
	}
	return v, 14
}

// fromOrdered returns the half for a number in the order of halfs: negative ones first, from the largest on.
func fromOrdered(v uint16) uint16 {
	if v&0x8000 != 0 {
		return v & 0x7fff
	}
	return ^v
}

// b44Log maps a half to eight times its logarithm. Blocks of a perceptual channel store exponentials, which this table
// reverses. Halfs without a logarithm become 0, and 0 becomes minus infinity.
var b44Log = sync.OnceValue(func() *[1 << 16]uint16 {
	var table [1 << 16]uint16
	table[0], table[0x8000] = 0xfc00, 0xfc00
	for i := 1; i < 0x7c00; i++ {
		table[i] = toHalf(8 * math.Log(float64(input.Half(uint16(i)))))
	}
	return &table
})

// toHalf rounds a number in the range of a half to nearest, ties to even.
func toHalf(v float64) uint16 {
	sign := uint16(0)
	if v < 0 {
		v, sign = -v, 0x8000
	}
	exp := max(math.Ilogb(v), -14)
	return sign | uint16((exp+14)<<10) + uint16(math.RoundToEven(math.Ldexp(v, 10-exp)))
}
