package sound

import (
	"encoding/binary"
	"math"
)

// decode decodes a block, and returns the number of its frames.
func (s *Sound) decode(ints []int16, reals []float32, no int64) int64 {
	b := s.data[min(no*s.size, int64(len(s.data))):]
	b = b[:min(int64(len(b)), s.size)]
	n := min(s.block, s.Frames-no*s.block)
	le := binary.LittleEndian
	switch s.coding {
	case qoa:
		s.decodeQOA(ints, b, n)
	case pcm:
		for i := range b[:len(b)/2] {
			ints[i] = int16(le.Uint16(b[2*i:]))
		}
	case float:
		for i := range b[:len(b)/4] {
			reals[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
	case adpcm:
		s.decodeADPCM(ints, b)
	}
	return n
}

// residuals are the values of the 3-bit codes for each of 16 scales (qoaformat.org). A scale is round((s+1)^2.75); the
// values are 0.75, 2.5, 4.5 and 7 times that, halves away from zero.
var residuals = func() (t [16][8]int32) {
	scales := [16]int32{1, 7, 21, 45, 84, 138, 211, 304, 421, 562, 731, 928, 1157, 1419, 1715, 2048}
	for s, scale := range scales {
		for k, quarters := range [4]int32{3, 10, 18, 28} {
			v := (scale*quarters + 2) / 4
			t[s][2*k], t[s][2*k+1] = v, -v
		}
	}
	return t
}()

// decodeQOA decodes a frame: an 8-byte header, for each channel four i16 of history and four of weights, then slices of
// 20 samples.
func (s *Sound) decodeQOA(dst []int16, b []byte, n int64) {
	be := binary.BigEndian
	ch := s.Channels
	if len(b) < 8+16*ch {
		clear(dst)
		return
	}
	var history, weights [8][4]int32
	b = b[8:]
	for c := range ch {
		for i := range 4 {
			history[c][i], weights[c][i] = int32(int16(be.Uint16(b[2*i:]))), int32(int16(be.Uint16(b[8+2*i:])))
		}
		b = b[16:]
	}
	for at := 0; at < int(n); at += 20 {
		for c := range ch {
			if len(b) < 8 {
				return
			}
			slice := be.Uint64(b)
			b = b[8:]
			table := &residuals[slice>>60]
			h, w := &history[c], &weights[c]
			for i := at; i < min(at+20, int(n)); i++ {
				r := table[slice>>57&7]
				slice <<= 3
				v := (h[0]*w[0]+h[1]*w[1]+h[2]*w[2]+h[3]*w[3])>>13 + r
				v = min(max(v, -32768), 32767)
				dst[i*ch+c] = int16(v)
				d := r >> 4
				for k, past := range h {
					if past < 0 {
						w[k] -= d
					} else {
						w[k] += d
					}
				}
				h[0], h[1], h[2], h[3] = h[1], h[2], h[3], v
			}
		}
	}
}

// Tables of IMA ADPCM ("Recommended Practices for Enhancing Digital Audio Compatibility in Multimedia Systems", 1992).
var (
	imaIndex = [8]int32{-1, -1, -1, -1, 2, 4, 6, 8}
	imaSteps = [89]int32{
		7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37,
		41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209,
		230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166,
		1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484,
		7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
	}
)

// decodeADPCM decodes a block: for each channel i16 first sample, u8 index in the step table, u8 0; then 4 bytes, which
// are 8 samples, of each channel in turn.
func (s *Sound) decodeADPCM(dst []int16, b []byte) {
	ch := s.Channels
	var last, index [maxChannels]int32
	for c := range ch {
		if len(b) < 4 {
			return
		}
		last[c], index[c] = int32(int16(binary.LittleEndian.Uint16(b))), min(int32(b[2]), 88)
		dst[c] = int16(last[c])
		b = b[4:]
	}
	for at := 1; len(b) >= 4*ch; at += 8 {
		for c := range ch {
			bits := binary.LittleEndian.Uint32(b)
			b = b[4:]
			for i := range 8 {
				code := int32(bits & 15)
				bits >>= 4
				step := imaSteps[index[c]]
				d := step >> 3
				if code&4 != 0 {
					d += step
				}
				if code&2 != 0 {
					d += step >> 1
				}
				if code&1 != 0 {
					d += step >> 2
				}
				if code&8 != 0 {
					d = -d
				}
				last[c] = min(max(last[c]+d, -32768), 32767)
				index[c] = min(max(index[c]+imaIndex[code&7], 0), 88)
				dst[(at+i)*ch+c] = int16(last[c])
			}
		}
	}
}
