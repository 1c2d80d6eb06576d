package tiff

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// fax reads rows by ITU-T T.4 and T.6. White is 0 and black is 1, as libtiff has it: what that means is left to the
// photometric interpretation.
//
// A row is stored as its runs of white and black, or (two-dimensional) as the places where its colour changes, relative to
// those of the row above. Rows of compressions 2 and 32771 begin at a byte or at a word. Those of compression 3 may begin
// with an end-of-line code, after any number of zeros; several such codes end the image, and after an error in a row, reading
// continues at the next one. In compression 4 two of them end the image.
type fax struct {
	src   []byte
	at    int // in bits
	width int
	align int // in bits, of the start of a row; 0 for none
	kind  int // compression
	both  bool

	above, row []int // places of changes: to black, to white, to black ...
	flaw       string
}

// Bits of the tag of options.
const twoDimensional = 1

// peek returns the next 24 bits; beyond the end they are 0.
func (f *fax) peek() uint32 {
	var v uint32
	for i := range 4 {
		v <<= 8
		if at := f.at/8 + i; at < len(f.src) {
			v |= uint32(f.src[at])
		}
	}
	return v << (f.at % 8) >> 8
}

func (f *fax) ended() bool { return f.at >= 8*len(f.src) }

// unpackFax decodes rows of width pixels into dst, each of whole bytes. flaw describes what was wrong and could be passed
// over, or is empty.
func unpackFax(dst, src []byte, width, compression, options int) (flaw string, err error) {
	f := &fax{src: src, width: width, kind: compression, both: compression == group4 || compression == group3 && options&twoDimensional != 0}
	f.align = map[int]int{fax2: 8, fax2Word: 16}[compression]
	stride := (width + 7) / 8
	clear(dst)
	for y := 0; len(dst) > 0; y++ {
		lines := 0
		if f.kind == group3 {
			lines = f.endOfLines()
		}
		if f.kind == group4 && f.peek() == endOfBlock || lines > 1 && y > 0 {
			f.note("the fax ends before row %d", y)
			return f.flaw, nil
		}
		if f.ended() {
			return "", input.ErrTruncated
		}
		if err := f.decode(); err != nil {
			if f.kind != group3 || !f.toEndOfLine() {
				return "", fmt.Errorf("row %d: %w", y, err)
			}
			f.note("row %d of the fax is damaged", y)
			f.row = f.row[:len(f.row)/2*2] // the rest is white
		}
		f.fill(dst[:stride])
		f.above, f.row = f.row, f.above
		dst = dst[stride:]
	}
	return f.flaw, nil
}

// note keeps the first flaw.
func (f *fax) note(text string, args ...any) {
	if f.flaw == "" {
		f.flaw = fmt.Sprintf(text, args...)
	}
}

// endOfBlock is two codes of an end of line.
const endOfBlock = 0x001001

// endOfLines skips the codes of an end of line that come next, each after any number of zeros, and returns how many there
// were. In a two-dimensional image a bit follows each, of which the last one is left.
func (f *fax) endOfLines() (n int) {
	for f.peek()>>13 == 0 {
		for f.peek() == 0 && !f.ended() {
			f.at += 24
		}
		if f.ended() {
			return n
		}
		f.at += bits.LeadingZeros32(f.peek()<<8) + 1
		n++
		if f.both {
			if f.peek()&0x7ff000 != 0 { // no end of line comes after the bit
				return n
			}
			f.at++
		}
	}
	return n
}

// toEndOfLine goes to the next code of an end of line.
func (f *fax) toEndOfLine() bool {
	for ; !f.ended(); f.at++ {
		if f.peek()>>13 == 0 {
			return true
		}
	}
	return false
}

// decode reads a row.
func (f *fax) decode() error {
	if f.align > 0 {
		f.at = (f.at + f.align - 1) / f.align * f.align
	}
	f.row = f.row[:0]
	if f.kind == group3 && f.both {
		f.at++
		if f.src[(f.at-1)/8]>>(7-(f.at-1)%8)&1 == 0 {
			return f.byAbove()
		}
		return f.byRuns()
	}
	if f.both {
		return f.byAbove()
	}
	return f.byRuns()
}

// change adds a place where the colour changes. Two at one place are none.
func (f *fax) change(x int) {
	if n := len(f.row); n > 0 && f.row[n-1] == x {
		f.row = f.row[:n-1]
		return
	}
	f.row = append(f.row, x)
}

// byRuns reads runs of white and black in turn. A row that is too long is cut.
func (f *fax) byRuns() error {
	for x, black := 0, false; x < f.width; black = !black {
		n, err := f.run(black)
		if err != nil {
			return err
		}
		if x += n; x > f.width {
			f.note("a row of the fax is too long")
		}
		if x < f.width {
			f.change(x)
		}
	}
	return nil
}

// run reads a run: codes of multiples of 64, then one of less than 64.
func (f *fax) run(black bool) (int, error) {
	table := &faxTables().white
	if black {
		table = &faxTables().black
	}
	for n := 0; ; {
		c := table[f.peek()>>(24-longestRun)]
		if c.bits == 0 || f.at+int(c.bits) > 8*len(f.src) {
			return 0, f.noCode()
		}
		f.at += int(c.bits)
		n += int(c.run)
		if n > f.width+2560 {
			return 0, fmt.Errorf("a run of %d in a row of %d: %w", n, f.width, input.ErrDamaged)
		}
		if c.run < 64 {
			return n, nil
		}
	}
}

func (f *fax) noCode() error {
	if f.at+longestRun > 8*len(f.src) {
		return input.ErrTruncated
	}
	return fmt.Errorf("no code of a fax: %w", input.ErrDamaged)
}

// byAbove reads the codes of T.4, 4.2: where a0 is the place that was reached, b1 is the next change above it to the other
// colour, and b2 the one after b1.
//
//	0001     pass: goes on at b2
//	001      two runs follow, of this colour and of the other
//	1        the colour changes at b1
//	011 010, 000011 000010, 0000011 0000010
//	         it changes one, two or three pixels after (before) b1
func (f *fax) byAbove() error {
	a0, black, next := -1, false, 0
	place := func(i int) int {
		if i < len(f.above) {
			return f.above[i]
		}
		return f.width
	}
	for a0 < f.width {
		for next > 0 && place(next-1) > a0 { // the change may be before the last one by up to three pixels
			next--
		}
		for place(next) <= a0 && next < len(f.above) {
			next++
		}
		b := next
		if (b%2 == 1) != black {
			b++
		}
		v := f.peek()
		zeros := bits.LeadingZeros32(v << 8)
		off, size := 0, zeros+2
		switch {
		case zeros == 0:
			size = 1
		case zeros == 3:
			a0, f.at = place(b+1), f.at+4
			continue
		case zeros == 2:
			f.at += 3
			if err := f.twoRuns(&a0, black); err != nil {
				return err
			}
			continue
		case zeros == 1:
			off = 1
		case zeros == 4, zeros == 5:
			off = zeros - 2
		case zeros == 6:
			return fmt.Errorf("a fax with rows that are not packed: %w", input.ErrUnsupported)
		default:
			return f.noCode()
		}
		if f.at+size > 8*len(f.src) {
			return input.ErrTruncated
		}
		if off > 0 && v>>(23-zeros-1)&1 == 0 {
			off = -off
		}
		f.at += size
		a1 := place(b) + off
		if a1 < max(a0, 0) || a1 > f.width {
			return fmt.Errorf("a change at %d after %d in a row of %d: %w", a1, a0, f.width, input.ErrDamaged)
		}
		if a0 = a1; a0 < f.width {
			f.change(a0)
		}
		black = !black
	}
	return nil
}

// twoRuns reads the runs of the mode with their codes.
func (f *fax) twoRuns(a0 *int, black bool) error {
	*a0 = max(0, *a0)
	for i := range 2 {
		n, err := f.run(black != (i == 1))
		if err != nil {
			return err
		}
		if *a0 += n; *a0 > f.width {
			f.note("a row of the fax is too long")
		}
		*a0 = min(*a0, f.width)
		if *a0 < f.width {
			f.change(*a0)
		}
	}
	return nil
}

// fill writes the black runs of the row.
func (f *fax) fill(dst []byte) {
	for i := 0; i < len(f.row); i += 2 {
		end := f.width
		if i+1 < len(f.row) {
			end = f.row[i+1]
		}
		for x := f.row[i]; x < end; {
			if x%8 == 0 && end-x >= 8 {
				dst[x/8] = 0xff
				x += 8
				continue
			}
			dst[x/8] |= 0x80 >> (x % 8)
			x++
		}
	}
}

// longestRun is the number of bits of the longest code of a run.
const longestRun = 13

type faxCode struct {
	run  int16
	bits uint8
}

type tablesOfFax struct{ white, black [1 << longestRun]faxCode }

var faxTables = sync.OnceValue(func() *tablesOfFax {
	t := &tablesOfFax{}
	for list, table := range map[string]*[1 << longestRun]faxCode{whiteRuns: &t.white, blackRuns: &t.black} {
		for i, code := range strings.Fields(list) {
			run := i
			if i > 63 {
				run = 64 * (i - 63)
			}
			from, rest := 0, longestRun-len(code)
			for _, bit := range code {
				from = from<<1 | int(bit-'0')
			}
			for j := range 1 << rest {
				table[from<<rest|j] = faxCode{int16(run), uint8(len(code))}
			}
		}
	}
	return t
})

// The codes of runs in T.4, tables 2 and 3: first for 0 to 63 pixels, then for 64, 128 ... 2560.
const (
	whiteRuns = `
00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100 110101 101010 101011 0100111
0001100 0001000 0010111 0000011 0000100 0101000 0101011 0010011 0100100 0011000 00000010 00000011 00011010 00011011
00010010 00010011 00010100 00010101 00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101 00000100
00000101 00001010 00001011 01010010 01010011 01010100 01010101 00100100 00100101 01011000 01011001 01011010 01011011
01001010 01001011 00110010 00110011 00110100 11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000
01100111 011001100 011001101 011010010 011010011 011010100 011010101 011010110 011010111 011011000 011011001 011011010
011011011 010011000 010011001 010011010 011000 010011011 00000001000 00000001100 00000001101 000000010010 000000010011
000000010100 000000010101 000000010110 000000010111 000000011100 000000011101 000000011110 000000011111
`
	blackRuns = `
0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100 00000111 000011000 0000010111
0000011000 0000001000 00001100111 00001101000 00001101100 00000110111 00000101000 00000010111 00000011000 000011001010
000011001011 000011001100 000011001101 000001101000 000001101001 000001101010 000001101011 000011010010 000011010011
000011010100 000011010101 000011010110 000011010111 000001101100 000001101101 000011011010 000011011011 000001010100
000001010101 000001010110 000001010111 000001100100 000001100101 000001010010 000001010011 000000100100 000000110111
000000111000 000000100111 000000101000 000001011000 000001011001 000000101011 000000101100 000001011010 000001100110
000001100111 0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101 0000001101100
0000001101101 0000001001010 0000001001011 0000001001100 0000001001101 0000001110010 0000001110011 0000001110100
0000001110101 0000001110110 0000001110111 0000001010010 0000001010011 0000001010100 0000001010101 0000001011010
0000001011011 0000001100100 0000001100101 00000001000 00000001100 00000001101 000000010010 000000010011 000000010100
000000010101 000000010110 000000010111 000000011100 000000011101 000000011110 000000011111
`
)
