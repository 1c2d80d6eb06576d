package ktx2check

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// format has the properties of a vkFormat in the specifications.
type format struct {
	name                           string
	typeSize                       int
	blockWidth, blockHeight, bytes int
	model, transfer                int
	samples                        []sample
}

type sample struct {
	offset, length, channel int
	lower, upper            uint32
}

func (f format) compressed() bool { return f.model >= 128 }

// channels returns the components that KTXswizzle may name (section 5.4): those that the texture has.
func (f format) channels() (letters string) {
	switch f.model {
	case 129, 130, 134, 162: // BC2, BC3, BC7, ASTC
		return "rgba"
	case 133: // BC6H
		return "rgb"
	case 128:
		return "rgba"[:3+f.samples[0].channel] // ALPHAPRESENT is 1
	}
	for _, s := range f.samples {
		switch s.channel & 15 {
		case 0:
			letters += "r"
		case 1:
			letters += "g"
		case 2:
			letters += "b"
			if f.model == 161 { // ETC2's colour
				letters += "rg"
			}
		case 15:
			letters += "a"
		}
	}
	return letters
}

// table has one line per format:
//
//	vkFormat name typeSize colourModel transfer block bytes : samples
//
// A sample is bits first+count, the channel's name, letters of qualifiers (L linear, E exponent, S signed, F float), and the
// values of 0 or -1 and of 1. UNORM of a compressed format is 0 to UINT32_MAX, SNORM INT32_MIN to INT32_MAX; floating point
// has its bounds in floating point (Data Format Specification, chapter 5). Bit lengths are true lengths, not "minus one" as
// in the file.
//
// Sources: Vulkan's table of formats for numbers and names; Data Format Specification 5.6 (compressed models, with an
// example for each) and 5.5 (RGBSDA); KTX specification 3.3 for typeSize and 3.10.1 for transfer functions. RGB9E5's bounds
// are those of Khronos's own writer and validator; see docs/formats/ktx2.md.
const table = `
9   R8_UNORM                 1 RGBSDA linear 1x1 1  : 0+8 R 0 255
15  R8_SRGB                  1 RGBSDA srgb   1x1 1  : 0+8 R 0 255
16  R8G8_UNORM               1 RGBSDA linear 1x1 2  : 0+8 R 0 255; 8+8 G 0 255
22  R8G8_SRGB                1 RGBSDA srgb   1x1 2  : 0+8 R 0 255; 8+8 G 0 255
23  R8G8B8_UNORM             1 RGBSDA linear 1x1 3  : 0+8 R 0 255; 8+8 G 0 255; 16+8 B 0 255
29  R8G8B8_SRGB              1 RGBSDA srgb   1x1 3  : 0+8 R 0 255; 8+8 G 0 255; 16+8 B 0 255
37  R8G8B8A8_UNORM           1 RGBSDA linear 1x1 4  : 0+8 R 0 255; 8+8 G 0 255; 16+8 B 0 255; 24+8 A 0 255
43  R8G8B8A8_SRGB            1 RGBSDA srgb   1x1 4  : 0+8 R 0 255; 8+8 G 0 255; 16+8 B 0 255; 24+8 A/L 0 255
44  B8G8R8A8_UNORM           1 RGBSDA linear 1x1 4  : 0+8 B 0 255; 8+8 G 0 255; 16+8 R 0 255; 24+8 A 0 255
50  B8G8R8A8_SRGB            1 RGBSDA srgb   1x1 4  : 0+8 B 0 255; 8+8 G 0 255; 16+8 R 0 255; 24+8 A/L 0 255
70  R16_UNORM                2 RGBSDA linear 1x1 2  : 0+16 R 0 65535
77  R16G16_UNORM             2 RGBSDA linear 1x1 4  : 0+16 R 0 65535; 16+16 G 0 65535
91  R16G16B16A16_UNORM       2 RGBSDA linear 1x1 8  : 0+16 R 0 65535; 16+16 G 0 65535; 32+16 B 0 65535; 48+16 A 0 65535
97  R16G16B16A16_SFLOAT      2 RGBSDA linear 1x1 8  : 0+16 R/SF -1.0 1.0; 16+16 G/SF -1.0 1.0; 32+16 B/SF -1.0 1.0; 48+16 A/SF -1.0 1.0
109 R32G32B32A32_SFLOAT      4 RGBSDA linear 1x1 16 : 0+32 R/SF -1.0 1.0; 32+32 G/SF -1.0 1.0; 64+32 B/SF -1.0 1.0; 96+32 A/SF -1.0 1.0
123 E5B9G9R9_UFLOAT_PACK32   4 RGBSDA linear 1x1 4  : 0+9 R 0 8448; 27+5 R/E 15 31; 9+9 G 0 8448; 27+5 G/E 15 31; 18+9 B 0 8448; 27+5 B/E 15 31
131 BC1_RGB_UNORM_BLOCK      1 BC1A linear 4x4 8    : 0+64 COLOR 0 UMAX
132 BC1_RGB_SRGB_BLOCK       1 BC1A srgb   4x4 8    : 0+64 COLOR 0 UMAX
133 BC1_RGBA_UNORM_BLOCK     1 BC1A linear 4x4 8    : 0+64 ALPHAPRESENT 0 UMAX
134 BC1_RGBA_SRGB_BLOCK      1 BC1A srgb   4x4 8    : 0+64 ALPHAPRESENT 0 UMAX
135 BC2_UNORM_BLOCK          1 BC2 linear 4x4 16    : 0+64 A 0 UMAX; 64+64 COLOR 0 UMAX
136 BC2_SRGB_BLOCK           1 BC2 srgb   4x4 16    : 0+64 A/L 0 UMAX; 64+64 COLOR 0 UMAX
137 BC3_UNORM_BLOCK          1 BC3 linear 4x4 16    : 0+64 A 0 UMAX; 64+64 COLOR 0 UMAX
138 BC3_SRGB_BLOCK           1 BC3 srgb   4x4 16    : 0+64 A/L 0 UMAX; 64+64 COLOR 0 UMAX
139 BC4_UNORM_BLOCK          1 BC4 linear 4x4 8     : 0+64 DATA 0 UMAX
140 BC4_SNORM_BLOCK          1 BC4 linear 4x4 8     : 0+64 DATA/S IMIN IMAX
141 BC5_UNORM_BLOCK          1 BC5 linear 4x4 16    : 0+64 R 0 UMAX; 64+64 G 0 UMAX
142 BC5_SNORM_BLOCK          1 BC5 linear 4x4 16    : 0+64 R/S IMIN IMAX; 64+64 G/S IMIN IMAX
143 BC6H_UFLOAT_BLOCK        1 BC6H linear 4x4 16   : 0+128 COLOR/F 0.0 1.0
144 BC6H_SFLOAT_BLOCK        1 BC6H linear 4x4 16   : 0+128 COLOR/SF -1.0 1.0
145 BC7_UNORM_BLOCK          1 BC7 linear 4x4 16    : 0+128 COLOR 0 UMAX
146 BC7_SRGB_BLOCK           1 BC7 srgb   4x4 16    : 0+128 COLOR 0 UMAX
147 ETC2_R8G8B8_UNORM_BLOCK  1 ETC2 linear 4x4 8    : 0+64 ETC2COLOR 0 UMAX
148 ETC2_R8G8B8_SRGB_BLOCK   1 ETC2 srgb   4x4 8    : 0+64 ETC2COLOR 0 UMAX
149 ETC2_R8G8B8A1_UNORM_BLOCK 1 ETC2 linear 4x4 8   : 0+64 ETC2COLOR 0 UMAX; 0+64 A 0 UMAX
150 ETC2_R8G8B8A1_SRGB_BLOCK 1 ETC2 srgb   4x4 8    : 0+64 ETC2COLOR 0 UMAX; 0+64 A/L 0 UMAX
151 ETC2_R8G8B8A8_UNORM_BLOCK 1 ETC2 linear 4x4 16  : 0+64 A 0 UMAX; 64+64 ETC2COLOR 0 UMAX
152 ETC2_R8G8B8A8_SRGB_BLOCK 1 ETC2 srgb   4x4 16   : 0+64 A/L 0 UMAX; 64+64 ETC2COLOR 0 UMAX
153 EAC_R11_UNORM_BLOCK      1 ETC2 linear 4x4 8    : 0+64 R 0 UMAX
154 EAC_R11_SNORM_BLOCK      1 ETC2 linear 4x4 8    : 0+64 R/S IMIN IMAX
155 EAC_R11G11_UNORM_BLOCK   1 ETC2 linear 4x4 16   : 0+64 R 0 UMAX; 64+64 G 0 UMAX
156 EAC_R11G11_SNORM_BLOCK   1 ETC2 linear 4x4 16   : 0+64 R/S IMIN IMAX; 64+64 G/S IMIN IMAX
157 ASTC_4x4_UNORM_BLOCK     1 ASTC linear 4x4 16   : 0+128 DATA 0 UMAX
158 ASTC_4x4_SRGB_BLOCK      1 ASTC srgb   4x4 16   : 0+128 DATA 0 UMAX
159 ASTC_5x4_UNORM_BLOCK     1 ASTC linear 5x4 16   : 0+128 DATA 0 UMAX
160 ASTC_5x4_SRGB_BLOCK      1 ASTC srgb   5x4 16   : 0+128 DATA 0 UMAX
161 ASTC_5x5_UNORM_BLOCK     1 ASTC linear 5x5 16   : 0+128 DATA 0 UMAX
162 ASTC_5x5_SRGB_BLOCK      1 ASTC srgb   5x5 16   : 0+128 DATA 0 UMAX
163 ASTC_6x5_UNORM_BLOCK     1 ASTC linear 6x5 16   : 0+128 DATA 0 UMAX
164 ASTC_6x5_SRGB_BLOCK      1 ASTC srgb   6x5 16   : 0+128 DATA 0 UMAX
165 ASTC_6x6_UNORM_BLOCK     1 ASTC linear 6x6 16   : 0+128 DATA 0 UMAX
166 ASTC_6x6_SRGB_BLOCK      1 ASTC srgb   6x6 16   : 0+128 DATA 0 UMAX
167 ASTC_8x5_UNORM_BLOCK     1 ASTC linear 8x5 16   : 0+128 DATA 0 UMAX
168 ASTC_8x5_SRGB_BLOCK      1 ASTC srgb   8x5 16   : 0+128 DATA 0 UMAX
169 ASTC_8x6_UNORM_BLOCK     1 ASTC linear 8x6 16   : 0+128 DATA 0 UMAX
170 ASTC_8x6_SRGB_BLOCK      1 ASTC srgb   8x6 16   : 0+128 DATA 0 UMAX
171 ASTC_8x8_UNORM_BLOCK     1 ASTC linear 8x8 16   : 0+128 DATA 0 UMAX
172 ASTC_8x8_SRGB_BLOCK      1 ASTC srgb   8x8 16   : 0+128 DATA 0 UMAX
173 ASTC_10x5_UNORM_BLOCK    1 ASTC linear 10x5 16  : 0+128 DATA 0 UMAX
174 ASTC_10x5_SRGB_BLOCK     1 ASTC srgb   10x5 16  : 0+128 DATA 0 UMAX
175 ASTC_10x6_UNORM_BLOCK    1 ASTC linear 10x6 16  : 0+128 DATA 0 UMAX
176 ASTC_10x6_SRGB_BLOCK     1 ASTC srgb   10x6 16  : 0+128 DATA 0 UMAX
177 ASTC_10x8_UNORM_BLOCK    1 ASTC linear 10x8 16  : 0+128 DATA 0 UMAX
178 ASTC_10x8_SRGB_BLOCK     1 ASTC srgb   10x8 16  : 0+128 DATA 0 UMAX
179 ASTC_10x10_UNORM_BLOCK   1 ASTC linear 10x10 16 : 0+128 DATA 0 UMAX
180 ASTC_10x10_SRGB_BLOCK    1 ASTC srgb   10x10 16 : 0+128 DATA 0 UMAX
181 ASTC_12x10_UNORM_BLOCK   1 ASTC linear 12x10 16 : 0+128 DATA 0 UMAX
182 ASTC_12x10_SRGB_BLOCK    1 ASTC srgb   12x10 16 : 0+128 DATA 0 UMAX
183 ASTC_12x12_UNORM_BLOCK   1 ASTC linear 12x12 16 : 0+128 DATA 0 UMAX
184 ASTC_12x12_SRGB_BLOCK    1 ASTC srgb   12x12 16 : 0+128 DATA 0 UMAX
`

// Words of the table, with the numbers of the specification.
var (
	models = map[string]int{"RGBSDA": 1, "BC1A": 128, "BC2": 129, "BC3": 130, "BC4": 131, "BC5": 132, "BC6H": 133, "BC7": 134, "ETC2": 161, "ASTC": 162}

	transfers = map[string]int{"linear": 1, "srgb": 2}
	channels  = map[string]int{"R": 0, "G": 1, "B": 2, "A": 15, "COLOR": 0, "ALPHAPRESENT": 1, "DATA": 0, "ETC2COLOR": 2}

	qualifiers = map[rune]int{'L': 0x10, 'E': 0x20, 'S': 0x40, 'F': 0x80}
	bounds     = map[string]uint32{"UMAX": math.MaxUint32, "IMIN": 1 << 31, "IMAX": math.MaxInt32,
		"0.0": 0, "1.0": math.Float32bits(1), "-1.0": math.Float32bits(-1)}
)

// formats is the parsed table.
var formats = sync.OnceValue(func() map[uint32]format {
	all := map[uint32]format{}
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		head, tail, _ := strings.Cut(line, ":")
		var number uint32
		var f format
		var model, transfer string
		if _, err := fmt.Sscanf(head, "%d %s %d %s %s %dx%d %d", &number, &f.name, &f.typeSize, &model, &transfer,
			&f.blockWidth, &f.blockHeight, &f.bytes); err != nil {
			panic(line)
		}
		f.model, f.transfer = word(models, model), word(transfers, transfer)
		for part := range strings.SplitSeq(tail, ";") {
			w := strings.Fields(part)
			var s sample
			if _, err := fmt.Sscanf(w[0], "%d+%d", &s.offset, &s.length); err != nil {
				panic(part)
			}
			name, letters, _ := strings.Cut(w[1], "/")
			s.channel = word(channels, name)
			for _, r := range letters {
				s.channel |= word(qualifiers, r)
			}
			s.lower, s.upper = bound(w[2]), bound(w[3])
			f.samples = append(f.samples, s)
		}
		all[number] = f
	}
	return all
})

func word[K comparable, V any](words map[K]V, w K) V {
	v, ok := words[w]
	if !ok {
		panic(w)
	}
	return v
}

func bound(w string) uint32 {
	if n, err := strconv.ParseUint(w, 10, 32); err == nil {
		return uint32(n)
	}
	return word(bounds, w)
}

// descriptor checks section 3.10, and chapters 3 to 5 of the Data Format Specification, for files with one basic block.
func (f *file) descriptor() {
	at, spec := f.dfdAt, f.spec
	block := 24 + 16*len(spec.samples)
	f.is("3.10", "dfdTotalSize", f.u32(at), f.dfdSize)
	f.is("3.10", "dfdByteLength", f.dfdSize, 4+block)
	f.is("KDF 5", "vendorId", f.u32(at+4)&0x1ffff, 0)
	f.is("KDF 5", "descriptorType", f.u32(at+4)>>17, 0)
	f.is("KDF 5", "versionNumber", f.u16(at+8), 2)
	f.is("KDF 5", "descriptorBlockSize", f.u16(at+10), block)
	if len(f.faults) > 0 {
		return // samples are not where they should be
	}
	f.is("KDF 5", "colorModel of "+spec.name, int(f.data[at+12]), spec.model)
	if p := f.data[at+13]; p > 10 {
		f.fault("KDF 5", "colorPrimaries %d", p)
	}
	f.is("3.10.1", "transferFunction", int(f.data[at+14]), spec.transfer)
	if flags := f.data[at+15]; flags > 1 {
		f.fault("KDF 5", "flags %#x", flags)
	}
	for i, want := range []int{spec.blockWidth - 1, spec.blockHeight - 1, 0, 0} {
		f.is("KDF 5", fmt.Sprintf("texelBlockDimension%d", i), int(f.data[at+16+i]), want)
	}
	for i := range 8 {
		want := 0
		if i == 0 {
			want = spec.bytes // also for supercompressed data since revision 4; 0 before
		}
		f.is("KDF 5", fmt.Sprintf("bytesPlane%d", i), int(f.data[at+20+i]), want)
	}
	for i, s := range spec.samples {
		at := at + 28 + 16*i
		name := fmt.Sprintf("sample %d of %s: ", i, spec.name)
		f.is("KDF 5", name+"bitOffset", f.u16(at), s.offset)
		f.is("KDF 5", name+"bitLength", int(f.data[at+2]), s.length-1)
		f.is("KDF 5", name+"channelType and qualifiers", int(f.data[at+3]), s.channel)
		f.is("KDF 5", name+"samplePosition", f.u32(at+4), 0)
		f.is("KDF 5", name+"sampleLower", f.u32(at+8), int(s.lower))
		f.is("KDF 5", name+"sampleUpper", f.u32(at+12), int(s.upper))
	}
}
