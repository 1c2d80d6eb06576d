//go:build ignore

// Command trial prints what functions make of random and extreme values; see TestInstructions. It is compiled without its first line.
package main

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
)

type function struct {
	name string
	call func(in, out *byte)
}

var extremes = [][]uint32{
	{0, 1, 2, 7, 8, 15, 16, 127, 128, 129, 254, 255},
	{0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 255 * 128},
	{0, 1, 31, 32, 33, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
		0x80008000, 0x7fff7fff},
	{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
		0x3f800000, 0xbf800000, math.Float32bits(0.5), math.Float32bits(-0.5), math.Float32bits(2147483520),
		math.Float32bits(2147483648), math.Float32bits(-2147483648),
		math.Float32bits(-2147483904), math.Float32bits(9.3e18), math.Float32bits(9.2e18), math.Float32bits(-9.3e18), math.Float32bits(1 << 24)},
}

const kinds = 7

// fill has values of a kind: random bits; extreme ones of 8, 16 and 32 bits and of floats; small counts, and all of these.
func fill(r *rand.Rand, b []byte, kind int) {
	for i := 0; i < len(b); i += 8 {
		k := kind
		if k == 6 {
			k = r.IntN(6)
		}
		v := r.Uint64()
		switch k {
		case 1:
			v = 0
			for range 8 {
				v = v<<8 | uint64(extremes[0][r.IntN(len(extremes[0]))])
			}
		case 2:
			v = 0
			for range 4 {
				v = v<<16 | uint64(extremes[1][r.IntN(len(extremes[1]))])
			}
		case 3, 4:
			e := extremes[k-1]
			v = uint64(e[r.IntN(len(e))])<<32 | uint64(e[r.IntN(len(e))])
		case 5:
			v = r.Uint64N(70)
			if r.IntN(2) == 0 {
				v |= r.Uint64N(40) << 32
			}
		}
		binary.LittleEndian.PutUint64(b[i:], v)
	}
}

// arithmetic is what may return another NaN.
func arithmetic(name string) bool {
	name, _, _ = strings.Cut(name, " ")
	switch strings.TrimSuffix(strings.TrimSuffix(name, "PS"), "SS") {
	case "VADD", "VSUB", "VMUL", "VDIV", "VSQRT", "VHADD", "VROUND":
		return true
	}
	return false
}

func main() {
	var in, out [1024]byte
	for _, f := range functions {
		for kind := range kinds {
			r := rand.New(rand.NewPCG(1, uint64(kind)))
			h := fnv.New64a()
			for range 25 {
				fill(r, in[:], kind)
				if r.IntN(8) == 0 {
					copy(in[32:64], in[:32]) // equal operands
				}
				fill(r, out[640:], kind)
				f.call(&in[0], &out[0])
				if arithmetic(f.name) {
					for i := 0; i < 512; i += 4 {
						if v := binary.LittleEndian.Uint32(out[i:]); v&0x7fffffff > 0x7f800000 {
							binary.LittleEndian.PutUint32(out[i:], 0x7fc00000)
						}
					}
				}
				h.Write(out[:])
			}
			fmt.Printf("%s, kind %d: %x\n", f.name, kind, h.Sum64())
		}
	}
}
