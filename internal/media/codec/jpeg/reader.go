package jpeg

import "encoding/binary"

// reader reads bytes, markers and bits. At the end of the data it returns end markers without limit.
type reader struct {
	data    []byte
	at      int
	segment int    // where the current segment begins
	mark    byte   // a marker that was read and not yet handled; 0 for none
	bits    uint64 // the next n bits, from the top; below them is nothing, or already some of the next byte
	n       int
	padding int  // bits of n that are not in the data: zeros in front of a marker
	extra   bool // bytes were found that belong to nothing
}

func (r *reader) next() byte {
	r.at++
	if r.at <= len(r.data) {
		return r.data[r.at-1]
	}
	if (r.at-len(r.data))%2 == 1 {
		return 0xff
	}
	return markEOI
}

func (r *reader) word() int { return int(r.next())<<8 | int(r.next()) }

// ended reports whether more was read than there is.
func (r *reader) ended() bool { return r.at > len(r.data) }

// nextMark searches the next marker. It may be preceded by any number of 0xff.
func (r *reader) nextMark() {
	for r.mark = 0; r.mark == 0; {
		b := r.next()
		for ; b != 0xff; b = r.next() {
			r.extra = true
		}
		for b == 0xff {
			b = r.next()
		}
		r.extra = r.extra || b == 0
		r.mark = b
	}
}

// enough is the number of bits that fill leaves at least: a code of 17 bits (which is invalid) or of 16, and 15 bits.
const enough = 32

// fill reads bits, so that n is at least 56. n must be below [enough].
func (r *reader) fill() {
	if r.mark == 0 && r.at+8 <= len(r.data) {
		const ones = 0x0101010101010101
		w := binary.BigEndian.Uint64(r.data[r.at:])
		if (^w-ones)&w&(ones<<7) == 0 { // no byte is 0xff
			r.bits |= w >> (r.n & 63)
			r.at += (63 - r.n) >> 3
			r.n |= 56
			return
		}
	}
	r.fillSlowly()
}

// fillSlowly reads bytes one by one. In front of a 0, 0xff is a byte of data; in front of anything else a marker.
func (r *reader) fillSlowly() {
	r.bits &^= ^uint64(0) >> (r.n & 63)
	for ; r.n <= 56; r.n += 8 {
		var b byte
		if r.mark == 0 {
			if b = r.next(); b == 0xff {
				c := r.next()
				for c == 0xff {
					c = r.next()
				}
				r.mark = c
			}
		}
		if r.mark != 0 {
			r.padding += 8
			continue
		}
		r.bits |= uint64(b) << (56 - r.n)
	}
}

// dropBits ends the codes. The bits of the last byte that are not used are nothing.
func (r *reader) dropBits() {
	r.extra = r.extra || r.n-r.padding >= 8
	r.bits, r.n, r.padding = 0, 0, 0
}

// beyond reports whether bits were taken that are not in the data.
func (r *reader) beyond() bool { return r.n < r.padding }

// take reads up to 16 bits.
func (r *reader) take(n int) int {
	if n == 0 {
		return 0
	}
	if r.n < enough {
		r.fill()
	}
	v := r.bits >> ((64 - n) & 63)
	r.bits <<= n & 63
	r.n -= n
	return int(v)
}

// look is the number of bits by which codes are found in a table.
const look = 9

// table is a Huffman table. Entries of quick are for the next [look] bits:
//
//	bits  0-3   length of the code; 0 if it is longer
//	bits  4-7   the same with the coefficient after it, if there is one and it is within look
//	bits  8-15  the symbol: number of zeros, number of bits of the coefficient
//	bits 16-31  the coefficient, or 0 if it is not within look
type table struct {
	quick  [1 << look]uint32
	most   [18]int // the last code of each length
	first  [17]int // index in values of code 0 of each length
	values [256]byte
	dc     bool // usable for DC coefficients
}

// newTable makes a table of the number of codes of each length and their symbols (T.81, annex C). It returns nil if there
// are more codes than a length has; that is an error only if the table is used.
func newTable(counts *[17]int, values *[256]byte) *table {
	t := &table{values: *values, dc: true}
	code, at := 0, 0
	for n := 1; n <= 16; n++ {
		t.first[n], t.most[n] = at-code, -1
		for range counts[n] {
			t.dc = t.dc && values[at] < 16
			if n <= look {
				t.set(code, n, values[at])
			}
			code++
			at++
		}
		if counts[n] > 0 {
			if code >= 1<<n { // a code of ones only is not allowed either
				return nil
			}
			t.most[n] = code - 1
		}
		code <<= 1
	}
	t.most[17] = 1 << 20
	return t
}

// set enters a code of n bits for all bits that may follow it.
func (t *table) set(code, n int, symbol byte) {
	size := int(symbol & 15)
	for i := range 1 << (look - n) {
		e := uint32(symbol)<<8 | uint32(n)
		if size > 0 && n+size <= look {
			v := i >> (look - n - size)
			e |= uint32(n+size)<<4 | uint32(signed(v, size))<<16
		}
		if at := code<<(look-n) | i; at < len(t.quick) {
			t.quick[at] = e
		}
	}
}

// signed converts a coefficient of n bits. The upper half of the values is positive (T.81, table F.1).
func signed(v, n int) int {
	if n > 0 && v < 1<<(n-1) {
		v += 1 - 1<<n
	}
	return v
}

// find returns the symbol of a code of more than [look] bits, and the bits that it takes: 17 if it is invalid.
func (t *table) find(bits uint64) (symbol byte, n int) {
	next := int(bits >> (64 - 17))
	for n = look + 1; next>>(17-n) > t.most[n]; n++ {
	}
	if n > 16 {
		return 0, 17
	}
	return t.values[(t.first[n]+next>>(17-n))&255], n
}

// symbol reads a code. It returns 0 for an invalid code.
func (d *decoder) symbol(t *table) int {
	if d.n < enough {
		d.fill()
	}
	e := t.quick[d.bits>>(64-look)]
	symbol, n := byte(e>>8), int(e&15)
	if n == 0 {
		if symbol, n = t.find(d.bits); n == 17 {
			d.n -= n
			d.fault(d.mark == markEOI && d.beyond())
			d.n += n
		}
	}
	d.bits <<= n & 63
	d.n -= n
	return int(symbol)
}

// number reads a coefficient of n bits.
func (d *decoder) number(n int) int { return signed(d.take(n), n) }

// The tables of T.81, annex K.3, for brightness and colour: 16 u8 with the number of codes of each length, the symbols.
var (
	standardDC = [2]string{
		"\x00\x01\x05\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b",
		"\x00\x03\x01\x01\x01\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b",
	}
	standardAC = [2]string{
		"\x00\x02\x01\x03\x03\x02\x04\x03\x05\x05\x04\x04\x00\x00\x01\x7d" +
			"\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07\x22\x71\x14\x32\x81\x91\xa1\x08\x23\x42\xb1\xc1\x15\x52\xd1\xf0" +
			"\x24\x33\x62\x72\x82\x09\x0a\x16\x17\x18\x19\x1a\x25\x26\x27\x28\x29\x2a\x34\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48\x49" +
			"\x4a\x53\x54\x55\x56\x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x83\x84\x85\x86\x87\x88\x89" +
			"\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5" +
			"\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8" +
			"\xf9\xfa",
		"\x00\x02\x01\x02\x04\x04\x03\x04\x07\x05\x04\x04\x00\x01\x02\x77" +
			"\x00\x01\x02\x03\x11\x04\x05\x21\x31\x06\x12\x41\x51\x07\x61\x71\x13\x22\x32\x81\x08\x14\x42\x91\xa1\xb1\xc1\x09\x23\x33\x52\xf0" +
			"\x15\x62\x72\xd1\x0a\x16\x24\x34\xe1\x25\xf1\x17\x18\x19\x1a\x26\x27\x28\x29\x2a\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48" +
			"\x49\x4a\x53\x54\x55\x56\x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x82\x83\x84\x85\x86\x87" +
			"\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3" +
			"\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf2\xf3\xf4\xf5\xf6\xf7\xf8" +
			"\xf9\xfa",
	}
)

func standardTable(s string) *table {
	var counts [17]int
	var values [256]byte
	for i := range 16 {
		counts[i+1] = int(s[i])
	}
	copy(values[:], s[16:])
	return newTable(&counts, &values)
}
