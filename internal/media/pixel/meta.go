package pixel

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"
)

// meta is the metadata of a file that changes how its pixels look.
type meta struct {
	exif    []byte // TIFF data with the orientation
	icc     []byte
	packed  []byte     // the profile as stored in a PNG, deflated
	gamma   float64    // of PNG and QOI: light is a number to this power; 0 if not stated
	primary [8]float64 // x and y of white, red, green and blue; zero if not stated
	srgb    bool       // the file states sRGB
	cicp    []byte     // of PNG: primaries, transfer function, matrix, range; as in ITU-T H.273
}

// metaOf reads the metadata of a file. It skips damaged parts, because the pixels may be intact.
func metaOf(format string, data []byte) (m meta) {
	switch format {
	case "png":
		m.png(data)
	case "jpeg":
		m.jpeg(data)
	case "webp":
		m.webp(data)
	case "qoi":
		if len(data) > 13 && data[13] == 1 {
			m.gamma = 1
		}
	case "tiff":
		m.exif = data
		m.icc = tiffTag(data, 34675)
	}
	return m
}

// png reads the chunks: u32 size, 4 letters, bytes, u32 checksum. A profile is a name, 0, 0, and deflated bytes.
func (m *meta) png(data []byte) {
	for b := data[min(8, len(data)):]; len(b) >= 12; {
		size := uint64(binary.BigEndian.Uint32(b))
		if size > uint64(len(b)-12) {
			return
		}
		body := b[8 : 8+size]
		u32 := func(i int) float64 { return float64(binary.BigEndian.Uint32(body[4*i:])) / 100000 }
		switch string(b[4:8]) {
		case "gAMA":
			if size == 4 {
				m.gamma = u32(0)
			}
		case "cHRM":
			for i := range m.primary[:min(8, size/32*8)] {
				m.primary[i] = u32(i)
			}
		case "sRGB":
			m.srgb = true
		case "cICP":
			if size == 4 {
				m.cicp = body
			}
		case "iCCP":
			if _, packed, ok := bytes.Cut(body, []byte{0, 0}); ok {
				m.packed = packed
			}
		case "eXIf":
			m.exif = body
		}
		b = b[12+size:]
	}
}

// maxProfile is the limit in bytes for profiles, larger than the profiles of printing presses. Larger ones are ignored.
const maxProfile = 4 << 20

func inflate(packed []byte) []byte {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}
	out, err := io.ReadAll(io.LimitReader(r, maxProfile))
	if err != nil {
		return nil
	}
	return out
}

// jpeg reads the segments before the picture: 0xff, a marker, u16 size, bytes. A profile may be split over several
// segments, in order.
func (m *meta) jpeg(data []byte) {
	for b := data[min(2, len(data)):]; len(b) >= 4 && b[0] == 0xff; {
		mark, size := b[1], int(binary.BigEndian.Uint16(b[2:]))
		if mark == 0xff { // padding
			b = b[1:]
			continue
		}
		if mark == 0xda || size < 2 || size > len(b)-2 {
			return
		}
		body := b[4 : 2+size]
		if exif, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00")); ok && mark == 0xe1 && m.exif == nil {
			m.exif = exif
		}
		if icc, ok := bytes.CutPrefix(body, []byte("ICC_PROFILE\x00")); ok && mark == 0xe2 && len(icc) >= 2 && len(m.icc) < maxProfile {
			m.icc = append(m.icc, icc[2:]...)
		}
		b = b[2+size:]
	}
}

// webp reads the chunks: 4 letters, u32 size, bytes, padded to an even size.
func (m *meta) webp(data []byte) {
	for b := data[min(12, len(data)):]; len(b) >= 8; {
		size := uint64(binary.LittleEndian.Uint32(b[4:]))
		if size > uint64(len(b)-8) {
			return
		}
		switch body := b[8 : 8+size]; string(b[:4]) {
		case "ICCP":
			m.icc = body
		case "EXIF":
			m.exif = bytes.TrimPrefix(body, []byte("Exif\x00\x00"))
		}
		b = b[min(8+size+size%2, uint64(len(b))):]
	}
}

// tiffTag returns the bytes of a tag in the first directory of a TIFF file or of Exif data, which has the same form:
// "II" or "MM", 42, u32 offset. At that offset are u16 number of entries, and entries of u16 tag, u16 type, u32 count,
// and the bytes, or their offset if there are more than four.
func tiffTag(b []byte, tag uint16) []byte {
	if len(b) < 8 {
		return nil
	}
	order := tiffOrder(b)
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return nil
	}
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			return nil
		}
		if order.Uint16(entries) == tag {
			size := uint64(order.Uint32(entries[4:]))
			if order.Uint16(entries[2:]) == 3 {
				size *= 2
			}
			if size <= 4 {
				return entries[8 : 8+size]
			}
			if from := uint64(order.Uint32(entries[8:])); from+size <= uint64(len(b)) {
				return b[from : from+size]
			}
			return nil
		}
		entries = entries[12:]
	}
	return nil
}

func tiffOrder(b []byte) binary.ByteOrder {
	if b[0] == 'M' {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// orientation returns the orientation of Exif and TIFF (TIFF 6.0, page 36), 1 to 8: where the first row and column of
// the file are displayed.
func (m *meta) orientation() int {
	if v := tiffTag(m.exif, 274); len(v) == 2 {
		if o := int(tiffOrder(m.exif).Uint16(v)); o >= 1 && o <= 8 {
			return o
		}
	}
	return 1
}

// colours returns what the file states about its numbers if they are not sRGB: the name of another colour space, or the
// gamma of a PNG or QOI. As in the PNG specification, cICP has precedence over a profile, a profile over sRGB, and sRGB
// over gAMA and cHRM.
func (m *meta) colours() (space string, gamma float64) {
	switch {
	case m.cicp != nil:
		return cicpName(m.cicp), 0
	case m.icc != nil:
		return profileName(m.icc), 0
	case m.packed != nil:
		return profileName(inflate(m.packed)), 0
	case m.srgb:
		return "", 0
	}
	rec709 := [8]float64{0.3127, 0.3290, 0.64, 0.33, 0.30, 0.60, 0.15, 0.06}
	for i, v := range m.primary {
		if m.primary != [8]float64{} && math.Abs(v-rec709[i]) > 0.01 {
			space = "primaries of its own"
		}
	}
	// libpng also accepts 5 percent around sRGB's 1/2.2.
	if m.gamma > 0.01 && m.gamma < 10 && math.Abs(m.gamma*2.2-1) > 0.05 {
		gamma = m.gamma
	}
	return space, gamma
}

// GammaOf returns [Picture.Gamma] of a file without decoding it.
func GammaOf(name string, data []byte) float64 {
	m := metaOf(Sniff(name, data), data)
	_, gamma := m.colours()
	return gamma
}

// cicpName returns the name of a colour space of ITU-T H.273, or "" for sRGB.
func cicpName(c []byte) string {
	primaries := map[byte]string{1: "Rec. 709", 9: "Rec. 2020", 11: "DCI P3", 12: "Display P3"}
	transfer := map[byte]string{1: "Rec. 709", 8: "linear", 13: "sRGB", 14: "Rec. 2020", 16: "PQ", 18: "HLG"}
	if c[0] == 1 && c[1] == 13 && c[3] == 1 {
		return ""
	}
	name := func(names map[byte]string, v byte) string {
		if s := names[v]; s != "" {
			return s
		}
		return fmt.Sprintf("number %d", v)
	}
	s := name(primaries, c[0]) + " with " + name(transfer, c[1]) + " transfer"
	if c[3] != 1 {
		s += ", narrow range"
	}
	return s
}

// profileName returns the description of an ICC profile, or "" if its numbers are those of sRGB.
func profileName(icc []byte) string {
	if likeSRGB(icc) {
		return ""
	}
	desc := iccTag(icc, "desc")
	name := ""
	switch {
	case len(desc) >= 12 && string(desc[:4]) == "desc": // u32 count of ASCII
		n := uint64(binary.BigEndian.Uint32(desc[8:]))
		name = string(desc[12:min(12+n, uint64(len(desc)))])
	case len(desc) >= 28 && string(desc[:4]) == "mluc": // the first language: u32 size and offset of UTF-16
		size, at := uint64(binary.BigEndian.Uint32(desc[20:])), uint64(binary.BigEndian.Uint32(desc[24:]))
		if at+size <= uint64(len(desc)) {
			var text []uint16
			for ; size >= 2; at, size = at+2, size-2 {
				text = append(text, binary.BigEndian.Uint16(desc[at:]))
			}
			name = string(utf16.Decode(text))
		}
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffd {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "a profile without a name"
	}
	return strings.ToValidUTF8(name[:min(len(name), 80)], "")
}

// iccTag returns the data of a tag in a profile. At offset 128 is the number of tags, then name, offset and size of
// each, all u32.
func iccTag(icc []byte, tag string) []byte {
	if len(icc) < 132 {
		return nil
	}
	list := icc[132:]
	for range min(binary.BigEndian.Uint32(icc[128:]), 100) {
		if len(list) < 12 {
			return nil
		}
		if string(list[:4]) == tag {
			at, size := uint64(binary.BigEndian.Uint32(list[4:])), uint64(binary.BigEndian.Uint32(list[8:]))
			if at+size > uint64(len(icc)) {
				return nil
			}
			return icc[at : at+size]
		}
		list = list[12:]
	}
	return nil
}

// likeSRGB reports whether the primaries of a profile are those of sRGB under D50, and its curves are close to sRGB; a
// gamma of 2.2 is. A grey profile has only one curve. Names are not reliable: many contain sRGB, and some of these mean
// a linear space.
func likeSRGB(icc []byte) bool {
	if grey := iccTag(icc, "kTRC"); grey != nil {
		return curveOfSRGB(grey)
	}
	for tag, want := range map[string][3]float64{"rXYZ": {0.436, 0.222, 0.014}, "gXYZ": {0.385, 0.717, 0.097}, "bXYZ": {0.143, 0.061, 0.714}} {
		xyz := iccTag(icc, tag)
		if len(xyz) < 20 {
			return false
		}
		for i, v := range want {
			if math.Abs(fixed(xyz[8+4*i:])-v) > 0.01 {
				return false
			}
		}
	}
	green := iccTag(icc, "gTRC")
	for _, tag := range []string{"rTRC", "bTRC"} {
		if curve := iccTag(icc, tag); curve != nil && !bytes.Equal(curve, green) && !curveOfSRGB(curve) {
			return false
		}
	}
	return curveOfSRGB(green)
}

// curveOfSRGB reports whether a curve is within a hundredth of sRGB's light at a quarter, a half and three quarters.
func curveOfSRGB(curve []byte) bool {
	for x, want := range map[float64]float64{0.25: 0.0509, 0.5: 0.2140, 0.75: 0.5225} {
		if !(math.Abs(lightBy(curve, x)-want) < 0.01) {
			return false
		}
	}
	return true
}

// fixed reads a signed fixed-point number with 16 bits before and 16 bits after the point.
func fixed(b []byte) float64 { return float64(int32(binary.BigEndian.Uint32(b))) / 65536 }

// lightBy returns the light of x by a curve of ICC.1, 10.6 and 10.18. It returns -1 if the data is not a curve.
func lightBy(curve []byte, x float64) float64 {
	if len(curve) < 12 {
		return -1
	}
	switch string(curve[:4]) {
	case "curv": // a table, or a gamma with 8 bits after the point, or nothing
		n := uint64(binary.BigEndian.Uint32(curve[8:]))
		if uint64(len(curve)-12) < 2*n || n > 1<<16 {
			return -1
		}
		at := func(i uint64) float64 { return float64(binary.BigEndian.Uint16(curve[12+2*i:])) }
		switch n {
		case 0:
			return x
		case 1:
			return math.Pow(x, at(0)/256)
		}
		place := x * float64(n-1)
		i := min(uint64(place), n-2)
		return (at(i) + float64((place-float64(i))*(at(i+1)-at(i)))) / 65535
	case "para":
		return parametric(binary.BigEndian.Uint16(curve[8:]), curve[12:], x)
	}
	return -1
}

// parametric evaluates a formula with the numbers g a b c d e f, as many as its type has: (a*x+b)^g, another formula
// for small x, and an offset.
func parametric(kind uint16, b []byte, x float64) float64 {
	count := [...]int{1, 3, 4, 5, 7}
	if int(kind) >= len(count) || len(b) < 4*count[kind] {
		return -1
	}
	var p [7]float64
	for i := range count[kind] {
		p[i] = fixed(b[4*i:])
	}
	g, a, add, c, d, e, f := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	switch kind {
	case 0:
		return math.Pow(x, g)
	case 1, 2: // the offset is c; it is the whole value where the base is below 0
		if base := float64(a*x) + add; base >= 0 {
			return math.Pow(base, g) + c
		}
		return c
	}
	if x < d {
		return float64(c*x) + f
	}
	return math.Pow(float64(a*x)+add, g) + e
}
