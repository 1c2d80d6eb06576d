package bptc

import (
	"math"
	"strings"
	"sync"
)

// mode6 is a mode of BC6H.
type mode6 struct {
	number      uint8 // stored in the low two bits of the block if below 2, else in the low five
	transformed bool  // all endpoints but the first are stored as offsets from it
	subsets     uint8
	bits        uint8    // per channel of the first endpoint
	deltaBits   [3]uint8 // per channel of the other endpoints
	layout      string
}

// modes6 are as in the specification. A layout lists the bits after the mode's number from the lowest bit up: r1[4:0] are
// bits 0 to 4 of the red of the second endpoint; r0[10:15] are bits 15 down to 10.
var modes6 = [14]mode6{
	{0, true, 2, 10, [3]uint8{5, 5, 5}, "g2[4] b2[4] b3[4] r0[9:0] g0[9:0] b0[9:0] r1[4:0] g3[4] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
	{1, true, 2, 7, [3]uint8{6, 6, 6}, "g2[5] g3[4] g3[5] r0[6:0] b3[0] b3[1] b2[4] g0[6:0] b2[5] b3[2] g2[4] b0[6:0] b3[3] b3[5] b3[4] r1[5:0] g2[3:0] g1[5:0] g3[3:0] b1[5:0] b2[3:0] r2[5:0] r3[5:0]"},
	{2, true, 2, 11, [3]uint8{5, 4, 4}, "r0[9:0] g0[9:0] b0[9:0] r1[4:0] r0[10] g2[3:0] g1[3:0] g0[10] b3[0] g3[3:0] b1[3:0] b0[10] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
	{6, true, 2, 11, [3]uint8{4, 5, 4}, "r0[9:0] g0[9:0] b0[9:0] r1[3:0] r0[10] g3[4] g2[3:0] g1[4:0] g0[10] g3[3:0] b1[3:0] b0[10] b3[1] b2[3:0] r2[3:0] b3[0] b3[2] r3[3:0] g2[4] b3[3]"},
	{10, true, 2, 11, [3]uint8{4, 4, 5}, "r0[9:0] g0[9:0] b0[9:0] r1[3:0] r0[10] b2[4] g2[3:0] g1[3:0] g0[10] b3[0] g3[3:0] b1[4:0] b0[10] b2[3:0] r2[3:0] b3[1] b3[2] r3[3:0] b3[4] b3[3]"},
	{14, true, 2, 9, [3]uint8{5, 5, 5}, "r0[8:0] b2[4] g0[8:0] g2[4] b0[8:0] b3[4] r1[4:0] g3[4] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
	{18, true, 2, 8, [3]uint8{6, 5, 5}, "r0[7:0] g3[4] b2[4] g0[7:0] b3[2] g2[4] b0[7:0] b3[3] b3[4] r1[5:0] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[5:0] r3[5:0]"},
	{22, true, 2, 8, [3]uint8{5, 6, 5}, "r0[7:0] b3[0] b2[4] g0[7:0] g2[5] g2[4] b0[7:0] g3[5] b3[4] r1[4:0] g3[4] g2[3:0] g1[5:0] g3[3:0] b1[4:0] b3[1] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
	{26, true, 2, 8, [3]uint8{5, 5, 6}, "r0[7:0] b3[1] b2[4] g0[7:0] b2[5] g2[4] b0[7:0] b3[5] b3[4] r1[4:0] g3[4] g2[3:0] g1[4:0] b3[0] g3[3:0] b1[5:0] b2[3:0] r2[4:0] b3[2] r3[4:0] b3[3]"},
	{30, false, 2, 6, [3]uint8{6, 6, 6}, "r0[5:0] g3[4] b3[0] b3[1] b2[4] g0[5:0] g2[5] b2[5] b3[2] g2[4] b0[5:0] g3[5] b3[3] b3[5] b3[4] r1[5:0] g2[3:0] g1[5:0] g3[3:0] b1[5:0] b2[3:0] r2[5:0] r3[5:0]"},
	{3, false, 1, 10, [3]uint8{10, 10, 10}, "r0[9:0] g0[9:0] b0[9:0] r1[9:0] g1[9:0] b1[9:0]"},
	{7, true, 1, 11, [3]uint8{9, 9, 9}, "r0[9:0] g0[9:0] b0[9:0] r1[8:0] r0[10] g1[8:0] g0[10] b1[8:0] b0[10]"},
	{11, true, 1, 12, [3]uint8{8, 8, 8}, "r0[9:0] g0[9:0] b0[9:0] r1[7:0] r0[10:11] g1[7:0] g0[10:11] b1[7:0] b0[10:11]"},
	{15, true, 1, 16, [3]uint8{4, 4, 4}, "r0[9:0] g0[9:0] b0[9:0] r1[3:0] r0[10:15] g1[3:0] g0[10:15] b1[3:0] b0[10:15]"},
}

// reaches6 are distances between 16-bit endpoints that cannot be stored as offsets, by mode and channel.
var reaches6 = sync.OnceValue(func() *[14][3]int32 {
	var of [14][3]int32
	for i := range modes6 {
		for c := range 3 {
			of[i][c] = math.MaxInt32
			if m := &modes6[i]; m.transformed {
				of[i][c] = (1<<(m.deltaBits[c]-1) + 1) << (16 - m.bits)
			}
		}
	}
	return &of
})

// modeBits returns the number of bits of the mode's number.
func (m *mode6) modeBits() uint {
	if m.number < 2 {
		return 2
	}
	return 5
}

func (m *mode6) partitionBits() uint {
	if m.subsets == 2 {
		return 5
	}
	return 0
}

func (m *mode6) indexBits() uint8 {
	if m.subsets == 2 {
		return 3
	}
	return 4
}

// channelBits returns the number of bits of channel c of endpoint i.
func (m *mode6) channelBits(i, c int) uint {
	if i == 0 {
		return uint(m.bits)
	}
	return uint(m.deltaBits[c])
}

// numbered maps a mode's number to its index in modes6, or 255.
var numbered = sync.OnceValue(func() (of [32]uint8) {
	for n := range of {
		of[n] = 255
		for i := range modes6 {
			if m := &modes6[i]; n&(1<<m.modeBits()-1) == int(m.number) {
				of[n] = uint8(i)
			}
		}
	}
	return of
})

// run is consecutive bits of a block: count bits of a channel of an endpoint, upwards or downwards from a bit.
type run struct {
	end, channel uint8
	from, count  uint8
	down         bool
}

// runs6 are the parsed layouts of modes6.
var runs6 = sync.OnceValue(func() *[14][]run {
	var of [14][]run
	for i := range modes6 {
		for _, word := range strings.Fields(modes6[i].layout) {
			of[i] = append(of[i], parseRun(word))
		}
	}
	return &of
})

func parseRun(word string) run {
	r := run{channel: uint8(strings.IndexByte("rgb", word[0])), end: word[1] - '0'}
	first, last, both := strings.Cut(strings.Trim(word[2:], "[]"), ":")
	if !both {
		last = first
	}
	high, low := number(first), number(last)
	if r.down = high < low; r.down {
		r.from, r.count = low, low-high+1
	} else {
		r.from, r.count = low, high-low+1
	}
	return r
}

func number(s string) (n uint8) {
	for _, c := range []byte(s) {
		n = 10*n + c - '0'
	}
	return n
}
