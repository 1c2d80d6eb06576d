package png

import (
	"encoding/binary"
	"math/bits"
)

// inflater decompresses a stream of Deflate (RFC 1951) that is in memory, in one or several parts. It writes into a window,
// of which the caller takes what it needs after each call of fill. It knows no kinds of errors: whoever gets false has another
// decoder find out what is wrong.
//
// It is faster than the readers of other packages for three reasons: it has no calls for single bytes; it looks up two
// literals at once where their codes are short; and it copies matches by words, beyond their end where there is space.
type inflater struct {
	in   []byte // what is left of the current part
	more [][]byte
	bits uint64 // not yet used, the next bit lowest
	n    uint   // how many; bits above these are 0 outside of fast

	out   []byte // the window
	at    int    // where the next byte goes
	limit int    // fill stops at or after this place; beyond it is space for a match

	state  state
	final  bool // the current block is the last
	stored int  // bytes left in a stored block

	lit  [litSize]entry
	dist [distSize]entry
}

type state uint8

const (
	between   state = iota // blocks
	inStored               // in a stored block
	inSymbols              // in a block of symbols
	ended
)

const (
	history  = 32 << 10 // bytes that a match may reach back
	maxMatch = 258
	slack    = maxMatch + 16 // space after the limit
)

// entry of a table: what some bits mean.
//
//	bits 0-5    how many bits the code takes
//	bit 6       it is a literal, or two
//	bit 7       it is the end of the block, an invalid code, or the number of another table
//	bits 8-12   how many bits follow the code; the size of the other table
//	bit 13      there are two literals
//	bits 16-31  one or two literals; a length or distance; where the other table begins
type entry uint32

const (
	codeBits = 0x3f
	literal  = 1 << 6
	special  = 1 << 7
	two      = 1 << 13
	invalid  = entry(special)
	endBlock = entry(special | 1<<16)
)

func (e entry) extra() uint { return uint(e>>8) & 31 }

// Tables are indexed by the next bits. Longer codes have tables of their own after the first one. The sizes are the
// largest that codes of 15 bits can need: "enough 288 11 15" and "enough 32 8 15" of zlib print 2342 and 402.
const (
	litBits, litSize   = 11, 2342
	distBits, distSize = 8, 402
	lenBits            = 7
	maxCode            = 15
)

// The meanings of symbols, without the length of their codes.
var litMeanings, distMeanings, lenMeanings = func() (lits [288]entry, dists [32]entry, lens [19]entry) {
	for i := range lits {
		lits[i] = invalid
	}
	for i := range 256 {
		lits[i] = literal | entry(i)<<16
	}
	lits[256] = endBlock
	base := 3
	for i := range 28 { // RFC 1951, 3.2.5
		extra := max(0, i/4-1)
		lits[257+i] = entry(extra<<8 | base<<16)
		base += 1 << extra
	}
	lits[285] = maxMatch << 16
	dists[30], dists[31] = invalid, invalid
	base = 1
	for i := range 30 {
		extra := max(0, i/2-1)
		dists[i] = entry(extra<<8 | base<<16)
		base += 1 << extra
	}
	for i := range lens {
		lens[i] = entry(i) << 16
	}
	return lits, dists, lens
}()

// build fills a table for codes of these lengths.
func build(table []entry, first uint, lengths []uint8, meanings []entry) bool {
	var count, next [maxCode + 1]int
	longest := uint(0)
	for _, n := range lengths {
		count[n]++
		longest = max(longest, uint(n))
	}
	count[0] = 0
	left, code := 1, 0
	for n := 1; n <= maxCode; n++ {
		left = 2*left - count[n]
		code = (code + count[n-1]) << 1
		next[n] = code
		if left < 0 {
			return false
		}
	}
	if left > 0 { // incomplete: allowed only with one code or none
		if longest > 1 {
			return false
		}
		for i := range table[:1<<first] {
			table[i] = invalid
		}
	}
	var sorted [288]uint16
	var place [maxCode + 2]int
	for n := 1; n <= maxCode; n++ {
		place[n+1] = place[n] + count[n]
	}
	for s, n := range lengths {
		if n > 0 {
			sorted[place[n]] = uint16(s)
			place[n]++
		}
	}
	used, prefix, subBits, sub := 1<<first, -1, uint(0), 0
	for _, s := range sorted[:place[maxCode]] {
		n := uint(lengths[s])
		code := int(bits.Reverse16(uint16(next[n])) >> (16 - n))
		next[n]++
		e := meanings[s]
		if n <= first {
			for i := code; i < 1<<first; i += 1 << n {
				table[i] = e | entry(n)
			}
			count[n]--
			continue
		}
		if low := code & (1<<first - 1); low != prefix {
			prefix, sub = low, used
			subBits = n - first
			for free := 1<<subBits - count[n]; free > 0 && subBits+first < longest; {
				subBits++
				free = 2*free - count[subBits+first]
			}
			used += 1 << subBits
			if used > len(table) {
				return false
			}
			table[low] = special | entry(first) | entry(subBits)<<8 | entry(sub)<<16
		}
		for i := code >> first; i < 1<<subBits; i += 1 << (n - first) {
			table[sub+i] = e | entry(n-first)
		}
		count[n]-- // what is left has to find space in the tables to come
	}
	return true
}

// pair makes entries of two literals where both codes fit. It goes down, so that what it combines is still single.
func pair(table []entry) {
	for i := len(table) - 1; i >= 0; i-- {
		e := table[i]
		n := e & codeBits
		if e&literal == 0 || n == litBits {
			continue
		}
		if f := table[i>>n]; f&literal != 0 && n+f&codeBits <= litBits {
			table[i] = literal | two | (n + f&codeBits) | e&0xff0000 | f&0xff0000<<8
		}
	}
}

// need has at least this many bits ready, at most 48. After the end of the input there are none.
func (f *inflater) need(n uint) bool {
	for f.n < n {
		for len(f.in) == 0 {
			if len(f.more) == 0 {
				return false
			}
			f.in, f.more = f.more[0], f.more[1:]
		}
		f.bits |= uint64(f.in[0]) << f.n
		f.in = f.in[1:]
		f.n += 8
	}
	return true
}

// take returns the next bits.
func (f *inflater) take(n uint) (v int, ok bool) {
	if !f.need(n) {
		return 0, false
	}
	v = int(f.bits & (1<<n - 1))
	f.bits >>= n
	f.n -= n
	return v, true
}

// look returns the next entry of a table, bit by bit at the end of the input. It takes its code.
func (f *inflater) look(table []entry, first uint) (entry, bool) {
	f.need(maxCode) // or as many as there are
	e := table[f.bits&(1<<first-1)]
	size := uint(e & codeBits)
	if e&special != 0 && e.extra() > 0 {
		e = table[uint64(e>>16)+f.bits>>first&(1<<e.extra()-1)]
		size += uint(e & codeBits)
	}
	if size > f.n || e&^codeBits == invalid || size == 0 {
		return 0, false
	}
	f.bits >>= size
	f.n -= size
	return e, true
}

// fill writes to the window up to the limit, or the end of the stream.
func (f *inflater) fill() bool {
	for f.at < f.limit {
		ok := true
		switch f.state {
		case between:
			ok = f.block()
		case inStored:
			ok = f.copyStored()
		case inSymbols:
			if ok = f.fast(); ok && f.at < f.limit && f.state == inSymbols {
				ok = f.one()
			}
		case ended:
			return true
		}
		if !ok {
			return false
		}
	}
	return true
}

// block reads the head of a block.
func (f *inflater) block() bool {
	if f.final {
		f.state = ended
		return true
	}
	v, ok := f.take(3)
	if !ok {
		return false
	}
	f.final = v&1 != 0
	switch v >> 1 {
	case 0:
		f.bits >>= f.n % 8
		f.n -= f.n % 8
		size, ok := f.take(32)
		f.stored, f.state = size&0xffff, inStored
		return ok && size>>16 == ^size&0xffff
	case 1:
		f.state = inSymbols
		return f.fixed()
	case 2:
		f.state = inSymbols
		return f.dynamic()
	}
	return false
}

// fixed makes the tables of RFC 1951, 3.2.6.
func (f *inflater) fixed() bool {
	var lengths [288]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	var dists [32]uint8
	for i := range dists {
		dists[i] = 5
	}
	return f.tables(lengths[:], dists[:])
}

func (f *inflater) tables(lits, dists []uint8) bool {
	if !build(f.lit[:], litBits, lits, litMeanings[:]) || !build(f.dist[:], distBits, dists, distMeanings[:]) {
		return false
	}
	pair(f.lit[:1<<litBits])
	return true
}

// dynamic reads the tables of a block: RFC 1951, 3.2.7.
func (f *inflater) dynamic() bool {
	v, ok := f.take(14)
	lits, dists, lens := v&31+257, v>>5&31+1, v>>10+4
	if !ok || lits > 286 || dists > 30 {
		return false
	}
	var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	var lengths [288 + 32]uint8
	for _, i := range order[:lens] {
		v, ok := f.take(3)
		if !ok {
			return false
		}
		lengths[i] = uint8(v)
	}
	var table [1 << lenBits]entry
	if !build(table[:], lenBits, lengths[:19], lenMeanings[:]) {
		return false
	}
	clear(lengths[:19])
	for i := 0; i < lits+dists; {
		e, ok := f.look(table[:], lenBits)
		if !ok {
			return false
		}
		symbol, again, value := e>>16, 1, uint8(e>>16)
		switch symbol {
		case 16:
			if i == 0 {
				return false
			}
			again, ok = f.take(2)
			again, value = again+3, lengths[i-1]
		case 17:
			again, ok = f.take(3)
			again, value = again+3, 0
		case 18:
			again, ok = f.take(7)
			again, value = again+11, 0
		}
		if !ok || i+again > lits+dists {
			return false
		}
		for range again {
			lengths[i] = value
			i++
		}
	}
	return f.tables(lengths[:lits], lengths[lits:][:dists])
}

// copyStored copies bytes of a stored block.
func (f *inflater) copyStored() bool {
	for f.stored > 0 && f.at < f.limit {
		if f.n > 0 || len(f.in) == 0 { // the bits are whole bytes here
			v, ok := f.take(8)
			if !ok {
				return false
			}
			f.out[f.at] = byte(v)
			f.at++
			f.stored--
			continue
		}
		n := copy(f.out[f.at:f.limit], f.in[:min(len(f.in), f.stored)])
		f.in = f.in[n:]
		f.at += n
		f.stored -= n
	}
	if f.stored == 0 {
		f.state = between
	}
	return true
}

// one reads a symbol and what belongs to it, near the end of a part.
func (f *inflater) one() bool {
	e, ok := f.look(f.lit[:], litBits)
	switch {
	case !ok:
		return false
	case e == endBlock|e&codeBits:
		f.state = between
		return true
	case e&literal != 0:
		f.out[f.at] = byte(e >> 16)
		f.out[f.at+1] = byte(e >> 24)
		f.at += 1 + int(e>>13&1)
		return true
	}
	length, ok := f.take(e.extra())
	if !ok {
		return false
	}
	length += int(e >> 16)
	if e, ok = f.look(f.dist[:], distBits); !ok {
		return false
	}
	back, ok := f.take(e.extra())
	back += int(e >> 16)
	if !ok || back > f.at {
		return false
	}
	for range length {
		f.out[f.at] = f.out[f.at-back]
		f.at++
	}
	return true
}

// fast reads symbols while at least 16 bytes of the part are left: it needs no checks for its end.
func (f *inflater) fast() bool {
	in, out, at, limit := f.in, f.out, f.at, f.limit
	b, n, pos, ok := f.bits, f.n, 0, true
	for at < limit && pos+16 <= len(in) {
		b |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63) // at least 56 bits: up to 3 literals of 11, or 2 and a length of 20
		pos += int((63 - n) >> 3)
		n |= 56
		e := f.lit[b&(1<<litBits-1)]
		if e&literal != 0 {
			binary.LittleEndian.PutUint16(out[at:], uint16(e>>16))
			at, b, n = at+1+int(e>>13&1), b>>(e&codeBits), n-uint(e&codeBits)
			if e = f.lit[b&(1<<litBits-1)]; e&literal != 0 {
				binary.LittleEndian.PutUint16(out[at:], uint16(e>>16))
				at, b, n = at+1+int(e>>13&1), b>>(e&codeBits), n-uint(e&codeBits)
				if e = f.lit[b&(1<<litBits-1)]; e&literal != 0 {
					binary.LittleEndian.PutUint16(out[at:], uint16(e>>16))
					at, b, n = at+1+int(e>>13&1), b>>(e&codeBits), n-uint(e&codeBits)
					continue
				}
			}
		}
		if e&special != 0 {
			if e.extra() > 0 {
				b, n = b>>litBits, n-litBits
				e = f.lit[uint64(e>>16)+b&(1<<e.extra()-1)]
			}
			b, n = b>>(e&codeBits), n-uint(e&codeBits)
			if e&literal != 0 {
				out[at] = byte(e >> 16)
				at++
				continue
			}
			if e&special != 0 {
				f.state, ok = between, e&^codeBits == endBlock
				break
			}
		} else {
			b, n = b>>(e&codeBits), n-uint(e&codeBits)
		}
		length := int(e>>16) + int(b&(1<<e.extra()-1))
		b, n = b>>e.extra(), n-e.extra()
		if n < maxCode+13 {
			b |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
			pos += int((63 - n) >> 3)
			n |= 56
		}
		if e = f.dist[b&(1<<distBits-1)]; e&special != 0 && e.extra() > 0 {
			b, n = b>>distBits, n-distBits
			e = f.dist[uint64(e>>16)+b&(1<<e.extra()-1)]
		}
		b, n = b>>(e&codeBits), n-uint(e&codeBits)
		back := int(e>>16) + int(b&(1<<e.extra()-1))
		b, n = b>>e.extra(), n-e.extra()
		if back > at || e&special != 0 {
			ok = false
			break
		}
		if back >= 8 && length <= 16 { // most matches, without a call
			binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[at-back:]))
			binary.LittleEndian.PutUint64(out[at+8:], binary.LittleEndian.Uint64(out[at-back+8:]))
		} else {
			repeat(out, at, back, length)
		}
		at += length
	}
	f.in, f.at = in[pos:], at
	f.bits, f.n = b&(1<<n-1), n
	return ok
}

// repeat copies a match. It writes up to 7 bytes more.
func repeat(out []byte, at, back, length int) {
	end := at + length
	switch {
	case back >= length && length >= 64:
		copy(out[at:end], out[at-back:])
		return
	case back == 1:
		v := uint64(out[at-1]) * 0x0101010101010101
		for ; at < end; at += 8 {
			binary.LittleEndian.PutUint64(out[at:], v)
		}
		return
	case back < 8: // after 8 bytes, the same bytes are also some multiple further back
		for i := at; i < at+8; i++ {
			out[i] = out[i-back]
		}
		at += 8
		back *= (7 + back) / back
	}
	for ; at < end; at += 8 {
		binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[at-back:]))
	}
}
