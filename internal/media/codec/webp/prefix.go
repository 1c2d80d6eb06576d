package webp

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

const (
	longestCode = 15
	quickBits   = 8 // codes up to this length are looked up at once
)

// prefixCode is a canonical code: of those of one length, lower ones are for lower symbols. A single symbol takes no bits.
type prefixCode struct {
	quick  []uint16 // by the next bits: symbol<<4 | length, or 0; nil for a single symbol
	count  [longestCode + 1]uint16
	sorted []uint16 // symbols by length
}

// next reads a symbol.
func (c *prefixCode) next(r *bitReader) uint32 {
	if c.quick == nil {
		return uint32(c.sorted[0])
	}
	if r.n < longestCode {
		r.fill()
	}
	if e := c.quick[r.buffer&(1<<quickBits-1)]; e != 0 {
		r.buffer >>= e & 15
		r.n -= uint(e & 15)
		return uint32(e >> 4)
	}
	return c.long(r)
}

// long reads a symbol bit by bit.
func (c *prefixCode) long(r *bitReader) uint32 {
	code, first, at := 0, 0, 0
	for length := 1; length <= longestCode; length++ {
		code |= int(r.bits(1))
		n := int(c.count[length])
		if code-first < n {
			return uint32(c.sorted[at+code-first])
		}
		at += n
		first, code = (first+n)<<1, code<<1
	}
	return 0 // never: codes are complete
}

// build makes a code of the lengths of its symbols.
func (c *prefixCode) build(sizes []uint8) error {
	symbols := 0
	for _, n := range sizes {
		if n > 0 {
			c.count[n]++
			symbols++
		}
	}
	var next [longestCode + 2]int // places in sorted
	open := 1
	for n := 1; n <= longestCode; n++ {
		next[n+1] = next[n] + int(c.count[n])
		open = 2*open - int(c.count[n])
		if open < 0 && symbols > 1 {
			break
		}
	}
	if symbols == 0 || symbols > 1 && open != 0 {
		return fmt.Errorf("%d symbols whose code is not complete: %w", symbols, input.ErrDamaged)
	}
	c.sorted = make([]uint16, symbols)
	for s, n := range sizes {
		if n > 0 {
			c.sorted[next[n]] = uint16(s)
			next[n]++
		}
	}
	if symbols > 1 {
		c.fillQuick()
	}
	return nil
}

func (c *prefixCode) fillQuick() {
	c.quick = make([]uint16, 1<<quickBits)
	code, at := 0, 0
	for n := 1; n <= quickBits; n++ {
		for range c.count[n] {
			low := 0 // the code as it is in the buffer, its first bit lowest
			for i := range n {
				low |= code >> i & 1 << (n - 1 - i)
			}
			for ; low < 1<<quickBits; low += 1 << n {
				c.quick[low] = c.sorted[at]<<4 | uint16(n)
			}
			at++
			code++
		}
		code <<= 1
	}
}

// read reads the code of an alphabet (RFC 9649, 3.7.2.1): one or two symbols, or the lengths of all, which have a code of their
// own.
func (c *prefixCode) read(r *bitReader, alphabet int) error {
	if err := r.ended(); err != nil {
		return err
	}
	sizes := make([]uint8, alphabet)
	if r.bits(1) == 0 {
		if err := readSizes(r, sizes); err != nil {
			return err
		}
		return c.build(sizes)
	}
	two := r.bits(1) == 1
	width := uint(1)
	if r.bits(1) == 1 {
		width = 8
	}
	for symbol := int(r.bits(width)); ; symbol = int(r.bits(8)) {
		if symbol >= alphabet {
			return fmt.Errorf("symbol %d of %d: %w", symbol, alphabet, input.ErrDamaged)
		}
		sizes[symbol] = 1
		if !two {
			return c.build(sizes)
		}
		two = false
	}
}

func readSizes(r *bitReader, sizes []uint8) error {
	order := [19]uint8{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	var own [19]uint8
	for _, i := range order[:4+r.bits(4)] {
		own[i] = uint8(r.bits(3))
	}
	var c prefixCode
	if err := c.build(own[:]); err != nil {
		return err
	}
	left := len(sizes) // how many are read from the file
	if r.bits(1) == 1 {
		bits := uint(2 + 2*r.bits(3))
		if left = 2 + int(r.bits(bits)); left > len(sizes) {
			return fmt.Errorf("lengths of %d of %d symbols: %w", left, len(sizes), input.ErrDamaged)
		}
	}
	last := uint8(8) // that is not 0
	for i := 0; i < len(sizes) && left > 0; left-- {
		again, value := 1, uint8(0)
		switch v := c.next(r); v {
		case 16:
			again, value = 3+int(r.bits(2)), last
		case 17:
			again = 3 + int(r.bits(3))
		case 18:
			again = 11 + int(r.bits(7))
		default:
			if value = uint8(v); v > 0 {
				last = value
			}
		}
		if again > len(sizes)-i {
			return fmt.Errorf("lengths of more than %d symbols: %w", len(sizes), input.ErrDamaged)
		}
		for range again {
			sizes[i] = value
			i++
		}
	}
	return r.ended()
}
