package wav

import (
	"encoding/binary"
	"math"
	"slices"
)

// laws has the values of the bytes of A-law and mu-law, from ITU-T G.711.
var laws = func() (t [2][256]float32) {
	for i := range 256 {
		a := i ^ 0x55
		v, segment := a&15<<4+8, a>>4&7
		if segment > 0 {
			v = (v + 256) << (segment - 1)
		}
		if a&128 == 0 {
			v = -v
		}
		t[0][i] = float32(v) / (1 << 15)

		u := i ^ 0xff
		v = (u&15<<3+0x84)<<(u>>4&7) - 0x84
		if u&128 != 0 {
			v = -v
		}
		t[1][i] = float32(v) / (1 << 15)
	}
	return t
}()

// convert converts samples to floats. PCM with fewer bits than its bytes has the bits at the top, so it is read as whole
// bytes.
func (r *Reader) convert(dst []float32, b []byte) {
	if r.order == binary.BigEndian {
		for at := 0; at < len(b); at += r.sample {
			slices.Reverse(b[at : at+r.sample])
		}
	}
	dst = dst[:len(b)/r.sample]
	o := binary.LittleEndian
	switch {
	case r.Coding == ALaw || r.Coding == MuLaw:
		t := &laws[r.Coding-ALaw]
		for i := range dst {
			dst[i] = t[b[i]]
		}
	case r.Coding == Float && r.sample == 4:
		for i := range dst {
			dst[i] = math.Float32frombits(o.Uint32(b[4*i:]))
		}
	case r.Coding == Float:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(o.Uint64(b[8*i:])))
		}
	case r.sample == 1:
		for i := range dst {
			dst[i] = float32(int(b[i])-1<<7) * (1.0 / (1 << 7))
		}
	case r.sample == 2:
		b = b[:2*len(dst)]
		if n := len(dst) / 16 * 16; lanes && n > 0 {
			fromInt16(&dst[0], &b[0], n)
			dst, b = dst[n:], b[2*n:]
		}
		for i := range dst {
			dst[i] = float32(int16(o.Uint16(b[2*i:]))) * (1.0 / (1 << 15))
		}
	case r.sample == 3:
		for i := range dst {
			s := b[3*i : 3*i+3]
			dst[i] = float32(int32(int8(s[2]))<<16|int32(s[1])<<8|int32(s[0])) * (1.0 / (1 << 23))
		}
	default:
		for i := range dst {
			dst[i] = float32(int32(o.Uint32(b[4*i:]))) * (1.0 / (1 << 31))
		}
	}
}
