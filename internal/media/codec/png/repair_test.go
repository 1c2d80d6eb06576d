package png

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image/png"
	"strings"
	"testing"
)

// parts makes a file of chunks: a name, then its bytes, and so on. A name with a ! has a wrong checksum.
func parts(list ...string) []byte {
	b := []byte(signature)
	for i := 0; i < len(list); i += 2 {
		name, wrong := strings.CutSuffix(list[i], "!")
		b = appendChunk(b, name, []byte(list[i+1]))
		if wrong {
			b[len(b)-1] ^= 1
		}
	}
	return b
}

func ihdr(width, height, depth, kind, interlace int) string {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(width)), uint32(height))
	return string(append(b, byte(depth), byte(kind), 0, 0, byte(interlace)))
}

func packedRows(rows string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(rows))
	_ = w.Close()
	return b.String()
}

// TestRepair has faults that libpng passes over with a warning. What is left must be what image/png reads.
func TestRepair(t *testing.T) {
	colours := "\x01\x02\x03\x04\x05\x06"
	three, four, one, two := packedRows("\x00abc"), packedRows("\x00abcd"), packedRows("\x00a"), packedRows("\x00ab")
	bit := packedRows("\x00\x80")
	h := func(depth, kind int) string { return ihdr(1, 1, depth, kind, 0) }
	for _, tt := range []struct {
		name      string
		data      []byte
		flaw      string
		unchanged []byte // a file of the same pixels without the fault
	}{
		{"a wrong checksum", parts("IHDR", h(8, rgb), "tEXt!", "a", "tEXt!", "b", "IDAT", three, "IEND", ""),
			"the checksum of the part tEXt is wrong; it was left out",
			parts("IHDR", h(8, rgb), "IDAT", three, "IEND", "")},
		{"a transparent colour beside alpha", parts("IHDR", h(8, rgba), "tRNS", colours, "IDAT", four, "IEND", ""),
			"a transparent colour beside alpha",
			parts("IHDR", h(8, rgba), "IDAT", four, "IEND", "")},
		{"the same of grey", parts("IHDR", h(8, greyAlpha), "tRNS", "ab", "IDAT", two, "IEND", ""), "a transparent colour beside alpha",
			parts("IHDR", h(8, greyAlpha), "IDAT", two, "IEND", "")},
		{"a transparent grey of another size", parts("IHDR", h(8, grey), "tRNS", "abc", "IDAT", one, "IEND", ""), "of another size",
			parts("IHDR", h(8, grey), "IDAT", one, "IEND", "")},
		{"transparency before the palette", parts("IHDR", h(1, indexed), "tRNS", "a", "PLTE", colours, "IDAT", bit, "IEND", ""),
			"at a wrong place",
			parts("IHDR", h(1, indexed), "PLTE", colours, "IDAT", bit, "IEND", "")},
		{"transparency twice", parts("IHDR", h(1, indexed), "PLTE", colours, "tRNS", "ab", "tRNS", "cd", "IDAT", bit, "IEND", ""),
			"at a wrong place",
			parts("IHDR", h(1, indexed), "PLTE", colours, "tRNS", "ab", "IDAT", bit, "IEND", "")},
		{"a palette that is too long", parts("IHDR", h(1, indexed), "PLTE", colours+"789", "IDAT", bit, "IEND", ""), "that no pixel can have",
			parts("IHDR", h(1, indexed), "PLTE", colours, "IDAT", bit, "IEND", "")},
		{"a palette of grey", parts("IHDR", h(8, grey), "PLTE", colours, "IDAT", one, "IEND", ""), "a palette of grey",
			parts("IHDR", h(8, grey), "IDAT", one, "IEND", "")},
		{"half a palette of RGB", parts("IHDR", h(8, rgb), "PLTE", "abcd", "IDAT", three, "IEND", ""), "a palette of another size",
			parts("IHDR", h(8, rgb), "IDAT", three, "IEND", "")},
		{"a long end", parts("IHDR", h(8, rgb), "IDAT", three, "IEND", "abc"), "last part", parts("IHDR", h(8, rgb), "IDAT", three, "IEND", "")},
	} {
		fixed, flaw := Repair(tt.data)
		if !strings.Contains(flaw, tt.flaw) || !bytes.Equal(fixed, tt.unchanged) {
			t.Errorf("%s: %q, %q", tt.name, flaw, fixed)
		}
		if _, err := png.Decode(bytes.NewReader(fixed)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if again, flaw := Repair(fixed); flaw != "" || !bytes.Equal(again, fixed) {
			t.Errorf("%s: again %q", tt.name, flaw)
		}
	}
	for name, data := range map[string][]byte{"critical": parts("IHDR", h(8, rgb), "IDAT!", three, "IEND", ""), "cut off": parts("IHDR", h(8, rgb))[:40], "nothing": nil} {
		if fixed, flaw := Repair(data); flaw != "" || !bytes.Equal(fixed, data) {
			t.Errorf("%s: %q", name, flaw)
		}
	}
}

// TestTrim has more rows than the head says, of all kinds of pixels, interlaced and not.
func TestTrim(t *testing.T) {
	const width, height = 5, 3
	// Interlaced, 5 x 3 are passes of 1 x 1, 1 x 1, none, 1 x 1, 3 x 1, 2 x 2 and 5 x 1.
	widths := map[int][]int{0: {5, 5, 5}, 1: {1, 1, 1, 3, 2, 2, 5}}
	for kind, channels := range map[int]int{grey: 1, rgb: 3, greyAlpha: 2, rgba: 4} {
		for _, depth := range []int{1, 2, 4, 8, 16} {
			for interlace := range 2 {
				if depth < 8 && kind != grey {
					continue
				}
				rows := ""
				for i, w := range widths[interlace] {
					rows += "\x00" + strings.Repeat(string(rune('a'+i)), (w*depth*channels+7)/8)
				}
				file := func(extra string) []byte {
					return parts("IHDR", ihdr(width, height, depth, kind, interlace), "IDAT", packedRows(rows+extra), "IEND", "")
				}
				want, err := png.Decode(bytes.NewReader(file("")))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := png.Decode(bytes.NewReader(file("more"))); err == nil || !strings.Contains(err.Error(), "too much pixel data") {
					t.Errorf("without Trim: %v", err)
				}
				got, err := Decode(Trim(file("more")))
				if err != nil {
					t.Errorf("kind %d of %d bits, interlace %d: %v", kind, depth, interlace, err)
					continue
				}
				for y := range height {
					for x := range width {
						if r, g, b, a := got.At(x, y).RGBA(); [4]uint32{r, g, b, a} != rgbaOf(want.At(x, y).RGBA()) {
							t.Fatalf("kind %d of %d bits, interlace %d: pixel %d, %d differs", kind, depth, interlace, x, y)
						}
					}
				}
				if Trim(file("")) != nil || Trim(parts("IHDR", ihdr(width, height+1, depth, kind, interlace), "IDAT", packedRows(rows), "IEND", "")) != nil {
					t.Errorf("kind %d of %d bits, interlace %d: trimmed without need", kind, depth, interlace)
				}
			}
		}
	}
}

func rgbaOf(r, g, b, a uint32) [4]uint32 { return [4]uint32{r, g, b, a} }

func FuzzRepair(f *testing.F) {
	f.Add(parts("IHDR", ihdr(1, 1, 8, rgba, 0), "tRNS", "abcdef", "IDAT", packedRows("\x00abcdefgh"), "IEND", "x"))
	f.Add(parts("IHDR", ihdr(2, 1, 1, indexed, 1), "PLTE", "abcdefghi", "tRNS!", "a", "IDAT", packedRows("\x00a\x00b"), "IEND", ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		fixed, flaw := Repair(data)
		if (flaw == "") != bytes.Equal(fixed, data) {
			t.Fatalf("%q, but the file is the same", flaw)
		}
		if again, flaw := Repair(fixed); flaw != "" || !bytes.Equal(again, fixed) {
			t.Fatalf("again: %q", flaw)
		}
		if c, err := png.DecodeConfig(bytes.NewReader(fixed)); err == nil && c.Width*c.Height < 1<<16 {
			if trimmed := Trim(fixed); trimmed != nil && Trim(trimmed) != nil {
				t.Fatal("trimmed again")
			}
		}
	})
}
