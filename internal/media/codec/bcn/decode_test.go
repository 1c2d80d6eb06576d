package bcn

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Blocks made by hand. The first four pixels have the indices 0, 1, 2, 3; their values follow from the formulas of the
// Khronos Data Format Specification, rounded down.
func TestDecodeBlock(t *testing.T) {
	const (
		red, blue, ramp = "00f8", "1f00", "e4000000" // 0xf800, 0x001f; indices 3 2 1 0 in the lowest byte
		opaque          = "ffffffffffffffff"         // BC2's alpha
	)
	tests := []struct {
		name string
		f    Format
		hex  string
		want []byte // of the first pixels, RGBA
	}{
		{"four places", BC1, red + blue + ramp, []byte{255, 0, 0, 255, 0, 0, 255, 255, 170, 0, 85, 255, 85, 0, 170, 255}},
		{"three places and black", BC1, blue + red + ramp, []byte{0, 0, 255, 255, 255, 0, 0, 255, 127, 0, 127, 255, 0, 0, 0, 255}},
		{"three places and transparent black", BC1A, blue + red + ramp, []byte{0, 0, 255, 255, 255, 0, 0, 255, 127, 0, 127, 255, 0, 0, 0, 0}},
		{"equal endpoints have three places", BC1A, red + red + ramp, []byte{255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255, 0, 0, 0, 0}},
		{"bits are repeated", BC1, "ce39" + "0000" + "00000000", []byte{57, 56, 115, 255}}, // 00111 001110 01110
		{"BC2 has no order of endpoints", BC2, "10f5" + opaque[4:] + blue + red + ramp,
			[]byte{0, 0, 255, 0, 255, 0, 0, 17, 85, 0, 170, 85, 170, 0, 85, 255}},
		{"BC3", BC3, "ff00" + "880a00000000" + blue + red + ramp, // indices 0 1 2 3 ... in 3 bits each: 000 001 010 101
			[]byte{0, 0, 255, 255, 255, 0, 0, 0, 85, 0, 170, 218, 170, 0, 85, 109}},
		{"eight places", BC4, "e610" + "88c6fa000000", // 230, 16; 0 1 2 3 4 5 6 7
			[]byte{230, 0, 0, 255, 16, 0, 0, 255, 199, 0, 0, 255, 168, 0, 0, 255, 138, 0, 0, 255, 107, 0, 0, 255, 77, 0, 0, 255, 46, 0, 0, 255}},
		{"six places", BC4, "10e6" + "88c6fa000000",
			[]byte{16, 0, 0, 255, 230, 0, 0, 255, 58, 0, 0, 255, 101, 0, 0, 255, 144, 0, 0, 255, 187, 0, 0, 255, 0, 0, 0, 255, 255, 0, 0, 255}},
		{"two channels", BC5, "e610" + "000000000000" + "07e6" + "000000000000", []byte{230, 7, 0, 255, 230, 7, 0, 255}},
		{"signed, eight places", BC4S, "7f81" + "88c6fa000000", // 127, -127: 90, 54, 18, -18, -54, -90 between
			[]byte{255, 0, 0, 255, 0, 0, 0, 255, 218, 0, 0, 255, 182, 0, 0, 255, 146, 0, 0, 255, 109, 0, 0, 255, 73, 0, 0, 255, 37, 0, 0, 255}},
		{"signed, six places", BC4S, "817f" + "88c6fa000000", // -76, -25, 25, 76 between
			[]byte{0, 0, 0, 255, 255, 0, 0, 255, 51, 0, 0, 255, 102, 0, 0, 255, 153, 0, 0, 255, 204, 0, 0, 255, 0, 0, 0, 255, 255, 0, 0, 255}},
		{"-128 is -127, but less", BC4S, "8180" + "ffffffffffff", []byte{0, 0, 0, 255}}, // index 7 of eight places, not of six
		{"signed zero", BC5S, "0000" + "000000000000" + "0000" + "000000000000", []byte{128, 128, 0, 255}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := hex.DecodeString(tt.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(tt.f, data, 4, 4)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[:len(tt.want)], tt.want) {
				t.Errorf("got  %v\nwant %v", got[:len(tt.want)], tt.want)
			}
		})
	}
}

// Random blocks decode to the same pixels as by the tables of the specification.
func TestDecodeAgainstTables(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for f := range formats {
		for range 2000 {
			data := make([]byte, f.BlockBytes())
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 { // equal and near endpoints
				copy(data[len(data)-6:], data[len(data)-8:len(data)-6])
				data[1] = data[0] + byte(r.IntN(3)) - 1
			}
			got, err := Decode(f, data, 4, 4)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 16 {
				if want := pixelByTables(f, data, i); !bytes.Equal(got[4*i:4*i+4], want[:]) {
					t.Fatalf("%v %x: pixel %d is %v, want %v", f, data, i, got[4*i:4*i+4], want)
				}
			}
		}
	}
}

func pixelByTables(f Format, b []byte, i int) [4]byte {
	switch f {
	case BC1, BC1A:
		return colorByTables(b, i, false, f == BC1A)
	case BC2:
		p := colorByTables(b[8:], i, true, false)
		p[3] = b[i/2] >> (4 * (i % 2)) & 15 * 17
		return p
	case BC3:
		p := colorByTables(b[8:], i, true, false)
		p[3] = channelByTables(b, i)
		return p
	case BC4:
		return [4]byte{channelByTables(b, i), 0, 0, 255}
	case BC5:
		return [4]byte{channelByTables(b, i), channelByTables(b[8:], i), 0, 255}
	case BC4S:
		return [4]byte{signedByTables(b, i), 0, 0, 255}
	}
	return [4]byte{signedByTables(b, i), signedByTables(b[8:], i), 0, 255}
}

func colorByTables(b []byte, i int, four, alpha bool) [4]byte {
	c0, c1 := int(b[0])+int(b[1])*256, int(b[2])+int(b[3])*256
	index := b[4+i/4] >> (2 * (i % 4)) & 3
	weights := [4][3]int{{1, 0, 1}, {0, 1, 1}, {2, 1, 3}, {1, 2, 3}}[index] // factors of c0 and c1, divisor
	if !four && c0 <= c1 {
		weights = [4][3]int{{1, 0, 1}, {0, 1, 1}, {1, 1, 2}, {0, 0, 1}}[index]
		if index == 3 && alpha {
			return [4]byte{}
		}
	}
	channel := func(shift, bits int) byte {
		wide := func(c int) int {
			v := c >> shift & (1<<bits - 1) << (8 - bits)
			return v | v>>bits
		}
		return byte((weights[0]*wide(c0) + weights[1]*wide(c1)) / weights[2])
	}
	return [4]byte{channel(11, 5), channel(5, 6), channel(0, 5), 255}
}

func indexByTables(b []byte, i int) int {
	bits := 0
	for k := range 3 {
		at := 3*i + k
		bits |= int(b[2+at/8]>>(at%8)&1) << k
	}
	return bits
}

func channelByTables(b []byte, i int) byte {
	r0, r1 := int(b[0]), int(b[1])
	if r0 > r1 {
		return byte([]int{r0, r1, (6*r0 + r1) / 7, (5*r0 + 2*r1) / 7, (4*r0 + 3*r1) / 7, (3*r0 + 4*r1) / 7, (2*r0 + 5*r1) / 7, (r0 + 6*r1) / 7}[indexByTables(b, i)])
	}
	return byte([]int{r0, r1, (4*r0 + r1) / 5, (3*r0 + 2*r1) / 5, (2*r0 + 3*r1) / 5, (r0 + 4*r1) / 5, 0, 255}[indexByTables(b, i)])
}

func signedByTables(b []byte, i int) byte {
	r0, r1 := max(float64(int8(b[0])), -127), max(float64(int8(b[1])), -127)
	var v float64
	if int8(b[0]) > int8(b[1]) {
		v = []float64{r0, r1, (6*r0 + r1) / 7, (5*r0 + 2*r1) / 7, (4*r0 + 3*r1) / 7, (3*r0 + 4*r1) / 7, (2*r0 + 5*r1) / 7, (r0 + 6*r1) / 7}[indexByTables(b, i)]
	} else {
		v = []float64{r0, r1, (4*r0 + r1) / 5, (3*r0 + 2*r1) / 5, (2*r0 + 3*r1) / 5, (r0 + 4*r1) / 5, -127, 127}[indexByTables(b, i)]
	}
	return byte((math.Trunc(v)/127+1)/2*255 + 0.5 + 1e-9)
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name          string
		f             Format
		n             int
		width, height int
		want          error
	}{
		{"no format", formats, 8, 4, 4, ErrFormat},
		{"no width", BC1, 0, 0, 4, ErrSize},
		{"negative height", BC1, 8, 4, -4, ErrSize},
		{"too wide", BC1, 8, MaxSide + 1, 1, ErrSize},
		{"truncated", BC1, 7, 4, 4, ErrLength},
		{"too long", BC3, 17, 4, 4, ErrLength},
		{"partial blocks missing", BC5, 16, 5, 4, ErrLength},
		{"far too short for a large image", BC1, 8, MaxSide, MaxSide, ErrLength},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode(tt.f, make([]byte, tt.n), tt.width, tt.height); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestFormatString(t *testing.T) {
	var got []string
	for f := range formats + 1 {
		got = append(got, f.String())
	}
	if s := strings.Join(got, " "); s != "BC1 BC1A BC2 BC3 BC4 BC5 BC4S BC5S Format(8)" {
		t.Error(s)
	}
}

// FuzzDecode passes any bytes to Decode; those of the right length must decode as by the tables.
func FuzzDecode(f *testing.F) {
	for k := range formats {
		f.Add(uint8(k), uint16(4), uint16(4), make([]byte, k.BlockBytes()))
		f.Add(uint8(k), uint16(5), uint16(1), binary.LittleEndian.AppendUint64(make([]byte, 2*k.BlockBytes()-8), 0x123456789abcdef0))
	}
	f.Add(uint8(200), uint16(0), uint16(65535), []byte{1})
	f.Fuzz(func(t *testing.T, format uint8, width, height uint16, data []byte) {
		k, w, h := Format(format), int(width), int(height)
		pix, err := Decode(k, data, w, h)
		if err != nil {
			if pix != nil {
				t.Fatal("pixels beside an error")
			}
			return
		}
		if len(pix) != 4*w*h {
			t.Fatalf("%d bytes for %d x %d", len(pix), w, h)
		}
		x, y := w-1, h-1
		at := ((y/4)*((w+3)/4) + x/4) * k.BlockBytes()
		want := pixelByTables(k, data[at:at+k.BlockBytes()], y%4*4+x%4)
		if got := pix[len(pix)-4:]; !bytes.Equal(got, want[:]) {
			t.Fatalf("the last pixel is %v, want %v", got, want)
		}
	})
}
