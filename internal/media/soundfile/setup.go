package soundfile

import "math/bits"

// setupBits reads the setup header of Vorbis, whose bits begin with the lowest of each byte.
type setupBits struct {
	data    []byte
	at      int // in bits
	entries int // of all codebooks
	wrong   bool
}

// maxEntries is the number of entries of all codebooks together. Encoders have 10,000; each takes memory and time in the library.
const maxEntries = 1 << 18

func (b *setupBits) read(n int) (v int) {
	for i := range n {
		if at := b.at + i; at>>3 < len(b.data) && b.data[at>>3]>>(at&7)&1 == 1 {
			v |= 1 << i
		}
	}
	b.at += n
	return v
}

// over reports whether the header has ended.
func (b *setupBits) over() bool { return b.at > 8*len(b.data) }

// withClasses returns a setup header in the form that the library reads. A floor of type 1 without partitions, as encoders use for the
// channel of low frequencies in 5.1, has no classes (Vorbis I, 7.2.2); the library reads one. So it gets one that nothing uses: 13 bits,
// 3 its dimensions, 2 its subclasses, 8 its book, all zero. ok is false if the codebooks are too large or their codes are not unique.
func withClasses(header []byte) (changed []byte, ok bool) {
	b := &setupBits{data: header, at: 7 * 8}
	for range b.read(8) + 1 {
		b.book()
	}
	b.at += 16 * (b.read(6) + 1)
	var places []int
	for range b.read(6) + 1 {
		if at := b.floor(); at > 0 {
			places = append(places, at)
		}
	}
	if b.wrong {
		return nil, false
	}
	if b.over() || len(places) == 0 {
		return header, true
	}
	var out []byte
	n := 0
	put := func(bit int) {
		if n%8 == 0 {
			out = append(out, 0)
		}
		out[n/8] |= byte(bit << (n % 8))
		n++
	}
	b.at = 0
	for b.at < 8*len(header) {
		if len(places) > 0 && b.at == places[0] {
			places = places[1:]
			for range 13 {
				put(0)
			}
		}
		put(b.read(1))
	}
	return out, true
}

// book passes over a codebook (3.2.1).
func (b *setupBits) book() {
	b.at += 24
	dimensions, entries := b.read(16), b.read(24)
	b.entries += entries
	if b.over() || b.entries > maxEntries {
		b.wrong = true
		return
	}
	codes := uint64(0)  // what part of all codes is used, in units of 2^-32
	if b.read(1) == 1 { // ordered
		size := b.read(5) + 1
		for n := 0; n < entries && !b.over() && size <= 32; size++ {
			more := b.read(bits.Len(uint(entries - n)))
			n += more
			codes += uint64(more) << (32 - size)
		}
	} else {
		sparse := b.read(1) == 1
		for n := 0; n < entries && !b.over(); n++ {
			if !sparse || b.read(1) == 1 {
				codes += 1 << (31 - b.read(5))
			}
		}
	}
	b.wrong = b.wrong || codes > 1<<32
	kind := b.read(4)
	if kind == 0 {
		return
	}
	b.at += 64
	size := b.read(4) + 1
	b.at++
	values := entries * dimensions
	if kind == 1 {
		for values = 1; fits(values+1, dimensions, entries) && values < 8*len(b.data); values++ {
		}
	}
	b.at += values * size
}

// fits reports whether a power is at most so much.
func fits(base, exponent, most int) bool {
	power := 1
	for range exponent {
		if power *= base; power > most {
			return false
		}
	}
	return exponent > 0
}

// floor passes over a floor (6.2.1, 7.2.2), and returns where the library would have a class, or 0.
func (b *setupBits) floor() (place int) {
	if b.read(16) == 0 {
		b.at += 8 + 16 + 16 + 6 + 8
		b.at += 8 * (b.read(4) + 1)
		return 0
	}
	classes := make([]int, b.read(5))
	most := -1
	for i := range classes {
		classes[i] = b.read(4)
		most = max(most, classes[i])
	}
	if most < 0 {
		place = b.at
	}
	dimensions := make([]int, most+1)
	for i := range dimensions {
		dimensions[i] = b.read(3) + 1
		subclasses := b.read(2)
		if subclasses > 0 {
			b.at += 8
		}
		b.at += 8 << subclasses
	}
	b.at += 2
	size := b.read(4)
	for _, class := range classes {
		b.at += size * dimensions[class]
	}
	return place
}
