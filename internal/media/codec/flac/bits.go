package flac

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

const bufferSize = 1 << 15

// bitReader reads bits of a file, the highest bit of a byte first. After an error all bits are 0.
type bitReader struct {
	from io.ReaderAt
	size int64

	buf  []byte
	base int64  // position of buf[0] in the file
	pos  int    // first byte of buf that is not yet in acc
	acc  uint64 // bits, from the top; those after the first n are correct or 0
	n    uint
	err  error

	crc   uint16 // of the bytes before crcAt
	crcAt int
}

// seek moves to a byte, and starts a CRC there.
func (r *bitReader) seek(at int64) {
	if at < r.base || at > r.base+int64(len(r.buf)) {
		r.buf, r.base = r.buf[:0], at
	}
	r.pos = int(at - r.base)
	r.acc, r.n, r.err = 0, 0, nil
	r.crc, r.crcAt = 0, r.pos
}

// tell returns the byte of the next bit.
func (r *bitReader) tell() int64 { return r.base + int64(r.done()) }

func (r *bitReader) done() int { return r.pos - int(r.n+7)/8 }

// sum returns the CRC up to the next bit, which must be the first of a byte.
func (r *bitReader) sum() uint16 {
	end := r.done()
	r.crc, r.crcAt = crc16(r.crc, r.buf[r.crcAt:end]), end
	return r.crc
}

// more reads the next part of the file.
func (r *bitReader) more() {
	keep := r.done()
	r.sum()
	r.base += int64(keep)
	left := copy(r.buf[:cap(r.buf)], r.buf[keep:])
	r.pos, r.crcAt = r.pos-keep, 0
	if r.buf == nil {
		r.buf = make([]byte, 0, bufferSize)
	}
	at := r.base + int64(left)
	room := int(min(int64(cap(r.buf)-left), max(r.size-at, 0)))
	n, err := 0, error(nil)
	if room > 0 {
		n, err = r.from.ReadAt(r.buf[left:left+room], at)
	}
	r.buf = r.buf[:left+n]
	if n < room && err != nil && err != io.EOF && r.err == nil {
		r.err = fmt.Errorf("%d bytes at byte %d: %w", room, at, err)
	}
}

// fill reads at least want bits into acc, at most 57, if the file has as many.
func (r *bitReader) fill(want uint) {
	if r.pos+8 > len(r.buf) && r.base+int64(len(r.buf)) < r.size && r.err == nil {
		r.more()
	}
	if r.pos+8 <= len(r.buf) {
		r.acc |= binary.BigEndian.Uint64(r.buf[r.pos:]) >> r.n
		bytes := (63 - r.n) >> 3
		r.pos += int(bytes)
		r.n += bytes * 8
		return
	}
	for r.n <= 56 && r.pos < len(r.buf) {
		r.acc |= uint64(r.buf[r.pos]) << (56 - r.n)
		r.pos++
		r.n += 8
	}
	if r.n < want && r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.base+int64(r.pos), ErrTruncated)
	}
	if r.err != nil {
		r.acc, r.n = 0, 0
	}
}

// read reads up to 57 bits.
func (r *bitReader) read(n uint) uint64 {
	if r.n < n {
		if r.fill(n); r.err != nil {
			return 0
		}
	}
	v := r.acc >> (64 - n)
	r.acc <<= n
	r.n -= n
	return v
}

// signed reads a number in two's complement.
func (r *bitReader) signed(n uint) int64 {
	if n == 0 {
		return 0
	}
	return int64(r.read(n)<<(64-n)) >> (64 - n)
}

// unary counts the 0 bits before a 1 bit. More than limit is an error.
func (r *bitReader) unary(limit uint64) (count uint64) {
	for {
		if r.n == 0 {
			if r.fill(1); r.err != nil {
				return 0
			}
		}
		if zeros := uint(bits.LeadingZeros64(r.acc)); zeros < r.n {
			r.acc <<= zeros + 1
			r.n -= zeros + 1
			return count + uint64(zeros)
		}
		if count += uint64(r.n); count > limit {
			r.err = fmt.Errorf("more than %d bits of 0 before byte %d: %w", limit, r.tell(), ErrDamaged)
			r.acc, r.n = 0, 0
			return 0
		}
		r.acc, r.n = 0, 0
	}
}

// maxUnary limits the 0 bits at the start of a Rice code. No encoder writes so many: a plain sample is shorter.
const maxUnary = 1 << 24

// rice reads Rice codes with a parameter: the codes are for 0, -1, 1, -2 and so on.
func (r *bitReader) rice(dst []int64, k uint) {
	for i := range dst {
		if r.n < 57 {
			if r.pos+8 <= len(r.buf) {
				r.acc |= binary.BigEndian.Uint64(r.buf[r.pos:]) >> (r.n & 63)
				bytes := (63 - r.n) >> 3
				r.pos += int(bytes)
				r.n += bytes * 8
			} else if r.fill(0); r.err != nil {
				return
			}
		}
		var v uint64
		if high := uint(bits.LeadingZeros64(r.acc)); high+1+k <= r.n {
			v = uint64(high)<<(k&63) | r.acc<<((high+1)&63)>>1>>((63-k)&63)
			r.acc = r.acc << (high & 63) << 1 << (k & 63)
			r.n -= high + 1 + k
		} else {
			q := r.unary(maxUnary)
			v = q<<k | r.read(k)
			if r.err != nil {
				return
			}
		}
		dst[i] = int64(v>>1) ^ -int64(v&1)
	}
}

// bitWriter writes bits, the highest bit of a byte first.
type bitWriter struct {
	b   []byte
	acc uint64 // n bits, the lowest
	n   uint   // below 32
}

// write writes up to 33 bits.
func (w *bitWriter) write(v uint64, n uint) {
	w.acc = w.acc<<n | v&(1<<n-1)
	for w.n += n; w.n >= 32; {
		w.n -= 32
		w.b = binary.BigEndian.AppendUint32(w.b, uint32(w.acc>>w.n))
	}
}

// unary writes n bits of 0, and a 1.
func (w *bitWriter) unary(n uint64) {
	for ; n >= 32; n -= 32 {
		w.write(0, 32)
	}
	w.write(1, uint(n)+1)
}

// align writes 0 bits up to the end of a byte, and moves all bits to b.
func (w *bitWriter) align() {
	w.write(0, -w.n&7)
	for ; w.n > 0; w.n -= 8 {
		w.b = append(w.b, byte(w.acc>>(w.n-8)))
	}
}
