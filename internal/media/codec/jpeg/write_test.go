package jpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// random is a JPEG with random coefficients, for all that encoders do not write.
type random struct {
	width, height int
	sampling      [][2]int // of each part
	ids           string   // of the parts; 1, 2, 3 without
	adobe         int      // transform of Adobe's segment; -1 for none
	apart         bool     // a scan for each part
	restart       int
	deepQuants    bool // quantization tables of 16 bits
	noTables      bool // no Huffman tables: those of T.81
}

func (r random) String() string {
	return fmt.Sprintf("%d x %d, sampling %v %q adobe %d, apart %v, restart %d, deep %v", r.width, r.height, r.sampling, r.ids, r.adobe,
		r.apart, r.restart, r.deepQuants)
}

// file writes a JPEG with its Huffman codes as simple as possible: symbol i is code i of 5 or 8 bits, except 255, because a code of
// ones is not allowed. Coefficients are so small that no sum leaves 16 bits, beyond which libjpeg differs between processors.
func (r random) file(rng *rand.Rand) []byte {
	out := []byte("\xff\xd8")
	segment := func(mark byte, body ...byte) {
		out = append(binary.BigEndian.AppendUint16(append(out, 0xff, mark), uint16(2+len(body))), body...)
	}
	if r.adobe >= 0 {
		segment(0xee, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), byte(r.adobe))...)
	}
	quants := []byte{0}
	for k := range 64 {
		q := byte(1 + rng.IntN(k/4+8))
		if r.deepQuants {
			quants = append(quants, 0)
			quants[0] = 0x10
		}
		quants = append(quants, q)
	}
	segment(0xdb, quants...)
	n := len(r.sampling)
	most := [2]int{1, 1}
	frame := []byte{8, byte(r.height >> 8), byte(r.height), byte(r.width >> 8), byte(r.width), byte(n)}
	ids := append([]byte(r.ids), 1, 2, 3, 4)
	for i, s := range r.sampling {
		frame = append(frame, ids[i], byte(s[0]<<4|s[1]), 0)
		most = [2]int{max(most[0], s[0]), max(most[1], s[1])}
	}
	segment(0xc1, frame...)
	dcTable := "\x00\x00\x00\x00\x10" + strings.Repeat("\x00", 11) + "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
	acTable := strings.Repeat("\x00", 7) + "\xff\x01" + strings.Repeat("\x00", 7)
	for i := range 256 {
		acTable += string([]byte{byte(i)})
	}
	if r.noTables {
		dcTable, acTable = standardDC[0], standardAC[0]
	} else {
		segment(0xc4, append([]byte{0x00}, dcTable...)...)
		segment(0xc4, append([]byte{0x10}, acTable...)...)
	}
	dc, ac := codesOf(dcTable), codesOf(acTable)
	if r.restart > 0 {
		segment(0xdd, byte(r.restart>>8), byte(r.restart))
	}
	for i := range r.sampling {
		parts := []int{i}
		if !r.apart {
			if i > 0 {
				break
			}
			parts = nil
			for j := range r.sampling {
				parts = append(parts, j)
			}
		}
		scan := []byte{byte(len(parts))}
		for _, j := range parts {
			scan = append(scan, ids[j], 0)
		}
		segment(0xda, append(scan, 0, 63, 0)...)
		out = append(out, r.scan(rng, parts, most, dc, ac)...)
	}
	return append(out, 0xff, 0xd9)
}

func (r random) scan(rng *rand.Rand, parts []int, most [2]int, dc, ac codes) []byte {
	across, down := over(r.width, 8*most[0]), over(r.height, 8*most[1])
	if len(parts) == 1 {
		s := r.sampling[parts[0]]
		across, down = over(over(r.width*s[0], most[0]), 8), over(over(r.height*s[1], most[1]), 8)
	}
	w := writer{dc: dc, ac: ac}
	last := make([]int, 4)
	for i := range across * down {
		if r.restart > 0 && i > 0 && i%r.restart == 0 {
			w.flush()
			w.out = append(w.out, 0xff, byte(0xd0+(i/r.restart-1)%8))
			last = make([]int, 4)
		}
		for _, j := range parts {
			n := r.sampling[j][0] * r.sampling[j][1]
			if len(parts) == 1 {
				n = 1
			}
			for range n {
				level := rng.IntN(160) - 80
				w.block(rng, level-last[j])
				last[j] = level
			}
		}
	}
	w.flush()
	return w.out
}

// codes has the code and the length of each symbol.
type codes map[int][2]int

func codesOf(table string) codes {
	c, code, at := codes{}, 0, 16
	for n := range 16 {
		for range table[n] {
			c[int(table[at])] = [2]int{code, n + 1}
			code++
			at++
		}
		code <<= 1
	}
	return c
}

type writer struct {
	out    []byte
	bits   uint64
	n      int
	dc, ac codes
}

func (w *writer) put(v, n int) {
	w.bits = w.bits<<n | uint64(v)
	for w.n += n; w.n >= 8; {
		w.n -= 8
		b := byte(w.bits >> w.n)
		if w.out = append(w.out, b); b == 0xff {
			w.out = append(w.out, 0)
		}
	}
}

func (w *writer) flush() {
	w.put(0x7f, 7)
	w.n = 0
}

// number writes a run of zeros and a coefficient.
func (w *writer) number(c codes, run, v int) {
	n, low := 0, v
	if v < 0 {
		low = v - 1
	}
	for u := max(v, -v); u > 0; u >>= 1 {
		n++
	}
	code := c[run<<4|n]
	w.put(code[0], code[1])
	w.put(low&(1<<n-1), n)
}

// block writes a block with random coefficients, sometimes few and sometimes many.
func (w *writer) block(rng *rand.Rand, dc int) {
	w.number(w.dc, 0, dc)
	chance := []float64{0, 0.05, 0.3, 0.9}[rng.IntN(4)]
	end := 1 + rng.IntN(64)
	run := 0
	for k := 1; k < 64; k++ {
		v := 0
		if k < end && rng.Float64() < chance {
			size := 1 + 40/(k+1)
			v = rng.IntN(2*size+1) - size
		}
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			w.put(w.ac[0xf0][0], w.ac[0xf0][1])
		}
		w.number(w.ac, run, v)
		run = 0
	}
	if run > 0 {
		w.put(w.ac[0][0], w.ac[0][1])
	}
}

// scene returns a PPM with edges and gradients.
func scene(width, height int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "P6\n%d %d\n255\n", width, height)
	for i := range width * height {
		x, y := i%width, i/width
		r, g, v := x*255/width, y*255/height, (x+y)*7
		if (x-width/2)*(x-width/2)+(y-height/2)*(y-height/2) < width*height/12 {
			r, g, v = 255, 30, 20
		}
		if x%9 == 4 {
			g = 255 - g
		}
		b.Write([]byte{byte(r), byte(g), byte(v)})
	}
	return b.Bytes()
}
