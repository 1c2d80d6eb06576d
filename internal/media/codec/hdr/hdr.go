// Package hdr reads Radiance images: linear light in four bytes per pixel, three mantissas with a shared exponent.
//
// It follows "Radiance File Formats" (G. Ward, 1997; refer/filefmts.pdf) and the scan lines of its color.c. It reads all
// packings (flat, the run lengths of release 1.4 and those of 2.0, scan line by scan line) and all eight orientations. Where
// the specification leaves a choice:
//
//   - A mantissa m with exponent e is m * 2^(e-136). Ward's programs add a half to m, most others do not. Without the half,
//     1.0 remains 1.0, and a dark channel beside a bright one remains 0.
//   - Every EXPOSURE and COLORCORR of the header is divided out, so the result is the original light.
//   - PRIMARIES, PIXASPECT and GAMMA are ignored.
//
// XYZ colours are not supported. Memory is allocated only after the number of pixels was compared with the caller's limit,
// and the number of lines with the length of the data.
package hdr

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// maxHeader is the largest size of a header in bytes, far more than any program writes.
const maxHeader = 1 << 16

// Header is the text at the start of a file.
//
//	#?RADIANCE                    or #?RGBE
//	FORMAT=32-bit_rle_rgbe        names and values, comments, the commands that made the image
//	EXPOSURE=0.5
//	                              an empty line
//	-Y 512 +X 768                 the slow axis first; Y counts from the bottom up
type Header struct {
	Width, Height int
	Scale         [3]float32 // factors for red, green and blue of the file

	columns            bool // lines of the file are columns of the image
	fromRight, fromEnd bool // x runs from the right, y from the bottom
	pixels             int  // offset of the first line
}

// ParseHeader reads the header. It returns an error for files that [Decode] cannot read.
func ParseHeader(data []byte) (Header, error) {
	h := Header{Scale: [3]float32{1, 1, 1}}
	text := data[:min(len(data), maxHeader)]
	first, rest, ok := cutLine(text)
	if !ok || !strings.HasPrefix(first, "#?") {
		return h, h.cut(data, ok)
	}
	exposure := [3]float64{1, 1, 1}
	for {
		var line string
		if line, rest, ok = cutLine(rest); !ok {
			return h, h.cut(data, false)
		}
		if line == "" {
			break
		}
		if err := h.field(line, &exposure); err != nil {
			return h, err
		}
	}
	size, rest, ok := cutLine(rest)
	if !ok {
		return h, h.cut(data, false)
	}
	h.pixels = len(text) - len(rest)
	for i, e := range exposure {
		h.Scale[i] = float32(1 / e)
		if !(h.Scale[i] > 0) || math.IsInf(float64(h.Scale[i]), 0) {
			return h, fmt.Errorf("exposure of %g: %w", e, input.ErrDamaged)
		}
	}
	return h, h.resolution(size)
}

// cut returns the error for a header without an end or a start.
func (h *Header) cut(data []byte, begun bool) error {
	if begun || len(data) >= maxHeader {
		return fmt.Errorf("no header: %w", input.ErrDamaged)
	}
	return input.ErrTruncated
}

func cutLine(b []byte) (line string, rest []byte, ok bool) {
	before, rest, ok := bytes.Cut(b, []byte("\n"))
	return strings.TrimSuffix(string(before), "\r"), rest, ok
}

// field reads one line of the header.
func (h *Header) field(line string, exposure *[3]float64) error {
	name, value, _ := strings.Cut(line, "=")
	value = strings.TrimSpace(value)
	switch name {
	case "FORMAT":
		if value != "32-bit_rle_rgbe" {
			return fmt.Errorf("format %.40q: %w", value, input.ErrUnsupported)
		}
	case "EXPOSURE":
		e, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("exposure of %.40q: %w", value, input.ErrDamaged)
		}
		for i := range exposure {
			exposure[i] *= e
		}
	case "COLORCORR":
		parts := strings.Fields(value)
		for i := range exposure {
			if len(parts) != 3 {
				return fmt.Errorf("colour correction of %.40q: %w", value, input.ErrDamaged)
			}
			e, err := strconv.ParseFloat(parts[i], 64)
			if err != nil {
				return fmt.Errorf("colour correction of %.40q: %w", value, input.ErrDamaged)
			}
			exposure[i] *= e
		}
	}
	return nil
}

// resolution reads a line such as "-Y 512 +X 768": lines from the top, pixels from the left.
func (h *Header) resolution(line string) error {
	f := strings.Fields(line)
	if len(f) != 4 {
		return fmt.Errorf("resolution %.40q: %w", line, input.ErrDamaged)
	}
	var n [2]int
	for i := range n {
		v, err := strconv.ParseUint(f[2*i+1], 10, 32)
		if err != nil || v == 0 {
			return fmt.Errorf("resolution %.40q: %w", line, input.ErrDamaged)
		}
		if v > input.MaxSide {
			return fmt.Errorf("%d pixels a side: %w", v, input.ErrTooLarge)
		}
		n[i] = int(v)
	}
	switch f[0] + f[2] {
	case "-Y+X", "-Y-X", "+Y+X", "+Y-X":
		h.Width, h.Height = n[1], n[0]
	case "+X-Y", "-X-Y", "+X+Y", "-X+Y":
		h.Width, h.Height, h.columns = n[0], n[1], true
	default:
		return fmt.Errorf("resolution %.40q: %w", line, input.ErrDamaged)
	}
	h.fromRight = f[0] == "-X" || f[2] == "-X"
	h.fromEnd = f[0] == "+Y" || f[2] == "+Y"
	return nil
}

// dense is the number of pixels per byte of data up to which memory is allocated without a check of the lines: a pixel has
// four bytes, packed by run lengths.
const dense = 4

// Decode decodes an image as RGBA in linear light, alpha 1, rows top down, 4*Width*Height numbers. It returns
// [input.ErrTooLarge] for more than maxPixels pixels.
func Decode(data []byte, maxPixels int) (Header, []float32, error) {
	h, err := ParseHeader(data)
	if err != nil {
		return h, nil, err
	}
	if err := input.CheckPixels(h.Width, h.Height, maxPixels); err != nil {
		return h, nil, err
	}
	length, lines := h.Width, h.Height
	if h.columns {
		length, lines = lines, length
	}
	data = data[h.pixels:]
	if len(data) < 4*lines { // each line has at least one pixel
		return h, nil, input.ErrTruncated
	}
	line := make([]byte, 4*length)
	if h.Width*h.Height > dense*len(data) { // reads all lines before it allocates memory for them
		rest := data
		for i := range lines {
			if rest, err = readLine(line, rest); err != nil {
				return h, nil, fmt.Errorf("line %d: %w", i, err)
			}
		}
	}
	pix := make([]float32, 4*h.Width*h.Height)
	for i := range lines {
		if data, err = readLine(line, data); err != nil {
			return h, nil, fmt.Errorf("line %d: %w", i, err)
		}
		h.place(pix, line, i)
	}
	return h, pix, nil
}

// place writes line i of the file to its place in the image.
func (h *Header) place(pix []float32, line []byte, i int) {
	at, step := i*h.Width, 1 // of the first pixel, with x from the left and y from the top
	if h.columns {
		at, step = i, h.Width
	}
	if h.fromEnd && h.columns {
		at, step = (h.Height-1)*h.Width+i, -step
	} else if h.fromEnd {
		at = (h.Height - 1 - i) * h.Width
	}
	if h.fromRight && h.columns {
		at += h.Width - 1 - 2*i
	} else if h.fromRight {
		at, step = at+h.Width-1, -1
	}
	for j := 0; j < len(line); j += 4 {
		p, d := line[j:j+4:j+4], pix[4*at:][:4:4]
		unit := exponents[p[3]]
		d[0], d[1], d[2], d[3] = float32(p[0])*unit*h.Scale[0], float32(p[1])*unit*h.Scale[1], float32(p[2])*unit*h.Scale[2], 1
		at += step
	}
}

// exponents are the exact factors 2^(e-136); 0 is black.
var exponents = func() (t [256]float32) {
	for e := 1; e < len(t); e++ {
		t[e] = float32(math.Ldexp(1, e-136))
	}
	return t
}()

// readLine reads one scan line as RGBE pixels and returns the data after it. The first four bytes show the packing.
func readLine(line, data []byte) ([]byte, error) {
	length := len(line) / 4
	if len(data) < 4 {
		return nil, input.ErrTruncated
	}
	// color.c packs lines of 8 to 32767 pixels in this way. No pixel can look like this mark: the largest mantissa of a
	// pixel that is not black is at least 128.
	if length >= 8 && length <= 32767 && data[0] == 2 && data[1] == 2 && data[2] < 128 {
		if n := int(data[2])<<8 | int(data[3]); n != length {
			return nil, fmt.Errorf("%d pixels instead of %d: %w", n, length, input.ErrDamaged)
		}
		return newRuns(line, data[4:])
	}
	return oldRuns(line, data)
}

// newRuns reads a line of release 2.0: all red mantissas, then green, blue, exponents, each in packets. A count above 128
// repeats a byte count-128 times; any other count is followed by that many bytes.
func newRuns(line, data []byte) ([]byte, error) {
	length := len(line) / 4
	for c := range 4 {
		for x := 0; x < length; {
			if len(data) < 2 {
				return nil, input.ErrTruncated
			}
			n := int(data[0])
			if n > 128 {
				n -= 128
				if n > length-x {
					return nil, fmt.Errorf("run over its end: %w", input.ErrDamaged)
				}
				for i := range n {
					line[4*(x+i)+c] = data[1]
				}
				data = data[2:]
			} else {
				if n == 0 || n > length-x {
					return nil, fmt.Errorf("packet of %d bytes: %w", n, input.ErrDamaged)
				}
				if len(data) < 1+n {
					return nil, input.ErrTruncated
				}
				for i, v := range data[1 : 1+n] {
					line[4*(x+i)+c] = v
				}
				data = data[1+n:]
			}
			x += n
		}
	}
	return data, nil
}

// oldRuns reads a line of flat pixels. In release 1.4, a pixel 1 1 1 n repeats the previous pixel n times. Further such
// pixels in sequence have the higher bytes of the count.
func oldRuns(line, data []byte) ([]byte, error) {
	shift := 0
	for at := 0; at < len(line); {
		if len(data) < 4 {
			return nil, input.ErrTruncated
		}
		p := data[:4]
		data = data[4:]
		if p[0] != 1 || p[1] != 1 || p[2] != 1 {
			at += copy(line[at:], p)
			shift = 0
			continue
		}
		n := int(p[3]) << shift
		if at == 0 || shift > 16 || n > (len(line)-at)/4 {
			return nil, fmt.Errorf("run of %d pixels at %d: %w", n, at/4, input.ErrDamaged)
		}
		for range n {
			at += copy(line[at:], line[at-4:at])
		}
		shift += 8
	}
	return data, nil
}
