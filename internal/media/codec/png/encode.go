package png

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zlib"
)

// level of klauspost/compress. On filtered rows of twelve pictures, the eighth of nine gave files of 97 to 103 % of those of
// compress/flate, in a third to three quarters of its time; the seventh took half of that, for up to 110 %.
const level = 8

// EncodeGrey returns a picture of one channel as a PNG file.
func EncodeGrey(pix []byte, width, height int) ([]byte, error) {
	return encode(width, height, grey, 1, func(row []byte, y int) { copy(row, pix[y*width:]) })
}

// Encode returns a picture of straight RGBA as a PNG file, without alpha if all of it is opaque. The same picture gives the
// same bytes on every machine.
func Encode(pix []byte, width, height int) ([]byte, error) {
	for i := 3; i < len(pix); i += 4 {
		if pix[i] != 255 {
			return encode(width, height, rgba, 4, func(row []byte, y int) { copy(row, pix[4*y*width:]) })
		}
	}
	return encode(width, height, rgb, 3, func(row []byte, y int) {
		for src := pix[4*y*width:]; len(row) > 0; row, src = row[3:], src[4:] {
			copy(row[:3], src)
		}
	})
}

// encode writes a file of 8 bits a channel. read copies a row.
func encode(width, height, kind, channels int, read func(row []byte, y int)) ([]byte, error) {
	var b bytes.Buffer
	head := binary.BigEndian.AppendUint32(nil, uint32(width))
	head = append(binary.BigEndian.AppendUint32(head, uint32(height)), 8, byte(kind), 0, 0, 0)
	b.WriteString(signature)
	chunk(&b, "IHDR", head)
	start := b.Len()
	b.WriteString("\x00\x00\x00\x00IDAT")
	z, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	f := newFilters(width*channels, channels)
	for y := range height {
		f.current, f.above = f.above, f.current
		read(f.current[pad:][:f.size], y)
		if _, err := z.Write(f.best()); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	data := b.Bytes()[start:]
	binary.BigEndian.PutUint32(data, uint32(len(data)-8))
	b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data[4:])))
	chunk(&b, "IEND", nil)
	return b.Bytes(), nil
}

func chunk(b *bytes.Buffer, name string, body []byte) {
	c := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	c = append(append(c, name...), body...)
	b.Write(binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:])))
}

// pad is the space before and after a row: for the pixel left of it, which counts as zeros, and for words.
const pad = 8

// filters tries all filters on a row.
type filters struct {
	size, pixel    int // bytes of a row and of a pixel
	current, above []byte
	filtered       []byte // the row with its filter first, and space for a word at the end
	sample         []byte
	step           int             // of the samples
	pairs          [1 << 10]uint64 // which two bytes follow each other
	last           int             // the filter of the row before
}

// Filters are compared by samples of this many bytes. Of a row of many bytes they are a quarter: files were at most 1 %
// larger than with all of it.
const sampleSize, manyBytes = 64, 8192

func newFilters(size, pixel int) *filters {
	f := &filters{size: size, pixel: pixel, current: make([]byte, size+2*pad), above: make([]byte, size+2*pad), step: sampleSize}
	f.filtered = make([]byte, 1+size+pad)
	f.sample = make([]byte, size+pad)
	if size >= manyBytes {
		f.step = 4 * sampleSize
	}
	return f
}

// best returns the row with the filter that presumably packs best.
func (f *filters) best() []byte {
	if bytes.Equal(f.current, f.above) { // zeros
		f.last = up
		return f.write()
	}
	least := int64(math.MaxInt64)
	before := f.last // is tried first: it often is the best one again, and the others end early
	for filter := range paeth + 1 {
		switch filter {
		case 0:
			filter = before
		case before:
			filter = 0
		}
		n := 0
		for at := 0; at < f.size; at += f.step {
			size := min(sampleSize, f.size-at)
			f.apply(filter, f.sample[n:], at, size)
			n += size
		}
		sample := f.sample[:n]
		cost := costOfPair * f.different(sample, least/costOfPair)
		if cost < least {
			cost += information(sample)
		}
		if cost < least {
			f.last, least = filter, cost
		}
		if cost == 0 { // all bytes are equal
			break
		}
	}
	return f.write()
}

// write returns the row with the filter that was chosen.
func (f *filters) write() []byte {
	f.filtered[0] = byte(f.last)
	f.apply(f.last, f.filtered[1:], 0, f.size)
	return f.filtered[:1+f.size]
}

// apply writes a part of the row with a filter, eight bytes at a time.
func (f *filters) apply(filter int, to []byte, at, size int) {
	le := binary.LittleEndian
	now, over := f.current[pad+at:], f.above[pad+at:]
	left, corner := f.current[pad+at-f.pixel:], f.above[pad+at-f.pixel:]
	switch filter {
	case none:
		copy(to[:size], now)
	case sub:
		for i := 0; i < size; i += 8 {
			le.PutUint64(to[i:], sub8(le.Uint64(now[i:]), le.Uint64(left[i:])))
		}
	case up:
		for i := 0; i < size; i += 8 {
			le.PutUint64(to[i:], sub8(le.Uint64(now[i:]), le.Uint64(over[i:])))
		}
	case average:
		for i := 0; i < size; i += 8 {
			a, b := le.Uint64(left[i:]), le.Uint64(over[i:])
			le.PutUint64(to[i:], sub8(le.Uint64(now[i:]), a&b+(a^b)>>1&0x7f7f7f7f7f7f7f7f))
		}
	case paeth:
		for i := 0; i < size; i += 8 {
			a, b, c := le.Uint64(left[i:]), le.Uint64(over[i:]), le.Uint64(corner[i:])
			p := predict4(a&evenBytes, b&evenBytes, c&evenBytes) | predict4(a>>8&evenBytes, b>>8&evenBytes, c>>8&evenBytes)<<8
			le.PutUint64(to[i:], sub8(le.Uint64(now[i:]), p))
		}
	}
}

// sub8 subtracts eight bytes.
func sub8(a, b uint64) uint64 {
	return (a | 0x8080808080808080 - b&0x7f7f7f7f7f7f7f7f) ^ (a^^b)&0x8080808080808080
}

// Four numbers of 16 bits in a word.
const (
	evenBytes = 0x00ff00ff00ff00ff
	ones      = 0x0001000100010001
)

// predict4 is predict for four numbers of 0 to 255.
func predict4(left, above, corner uint64) uint64 {
	a, b, c := distance4(above, corner), distance4(left, corner), distance4(left+above, 2*corner)
	isLeft := atLeast4(b, a) & atLeast4(c, a) * 0xff
	isAbove := atLeast4(c, b) * 0xff &^ isLeft
	return left&isLeft | above&isAbove | corner&^(isLeft|isAbove)
}

// atLeast4 is 1 where a >= b, for numbers below 512.
func atLeast4(a, b uint64) uint64 { return (a | 512*ones - b) >> 9 & ones }

// distance4 returns the absolute differences of numbers below 512.
func distance4(a, b uint64) uint64 {
	less := ones - atLeast4(a, b)
	d := a | 512*ones - b
	return (d & (511 * ones)) ^ (511 * less) + less
}

// costOfPair is what two bytes that were not yet in the sample cost, beside the information of single bytes: 24 bits, in units
// of [information]. Drawn pictures have few pairs, and repeat them, which packing finds; photographs have so many that the
// information decides. Of twelve pictures, files were 8 % smaller to 2 % larger than with the sum of absolute values, the
// usual measure, and pages of atlases 1 to 5 % smaller.
const costOfPair = 24 << 8

// different counts the pairs of bytes that occur, from 0 to most.
func (f *filters) different(row []byte, most int64) (n int64) {
	clear(f.pairs[:])
	pair := int(row[0])
	for _, v := range row[1:] {
		pair = pair<<8&0xff00 | int(v)
		if w := &f.pairs[pair>>6]; *w>>(pair&63)&1 == 0 {
			if *w |= 1 << (pair & 63); n == most {
				break
			}
			n++
		}
	}
	return n
}

// information returns how many bits bytes with these frequencies need, in 1/256 bits.
func information(row []byte) int64 {
	var count [4][256]uint32 // several, because equal bytes often follow each other
	i := 0
	for ; i+4 <= len(row); i += 4 {
		r := row[i : i+4 : i+4]
		count[0][r[0]]++
		count[1][r[1]]++
		count[2][r[2]]++
		count[3][r[3]]++
	}
	for ; i < len(row); i++ {
		count[0][row[i]]++
	}
	total := timesLog(uint64(len(row)))
	for v := range 256 {
		total -= timesLog(uint64(count[0][v] + count[1][v] + count[2][v] + count[3][v]))
	}
	return total
}

// timesLog returns n times its logarithm to base 2, in 1/256.
func timesLog(n uint64) int64 {
	if n < 2 {
		return 0
	}
	e := bits.Len64(n) - 1
	return int64(n) * int64(e<<8+int(logs[n<<8>>e&255]))
}

// logs are the logarithms of 1 to 2, in 1/256. A test checks that none is so close to a rounding boundary that it could
// differ between machines.
var logs = func() (t [256]uint16) {
	for i := range t {
		t[i] = uint16(math.Round(256 * math.Log2(1+float64(i)/256)))
	}
	return t
}()
