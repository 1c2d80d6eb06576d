package webp

import (
	"image"
	"slices"
	"strings"
	"testing"
)

// TestReports has what others have reported about golang.org/x/image/webp, vp8 and vp8l, of which this package uses vp8, and about
// other readers.
func TestReports(t *testing.T) {
	// Without a transform, a cache and groups: green is 100 or 200, red and blue are 0, alpha is 255.
	greens := func(first, second int, bits string) string {
		return losslessOf(len(bits), 1, "0 0 0"+two(first, second)+one(0)+one(0)+one(255)+one(0)+bits)
	}
	plain, pixels := greens(100, 200, "01"), []byte{0, 100, 0, 255, 0, 200, 0, 255}
	lossy := part("VP8 ", "\x10\x00\x00\x9d\x01\x2a\x02\x00\x01\x00")
	// A single code of green, 256 plus the number of a length, copies pixels: as many, from a code of distances.
	copies := func(green, distance int) string {
		sizes := strings.Repeat("0", 4*green) + "0001" + strings.Repeat("0", 4*(256+lengths-1-green))
		lengthCodes := " 0 1111 000 000 001 001 001 001 001 001 000" + strings.Repeat(" 001", 10) + " 0 "
		return losslessOf(4, 1, "0 0 0"+lengthCodes+sizes+one(0)+one(0)+one(0)+one(distance)+"00000000")
	}
	for _, tt := range []struct {
		name   string
		data   []byte
		want   []byte // of the first frame
		frames int
		err    string
	}{
		{"golang/go#81660", riff(greens(200, 100, "01")), pixels, 1, ""},
		{"golang/go#81660, twice the same", riff(losslessOf(2, 1, "0 0 0"+two(9, 9)+one(0)+one(0)+two(255, 7)+one(0)+"1 0")), []byte{0, 9,
			0, 255, 0, 9, 0, 7}, 1, ""},
		{"golang/go#25738", riff(canvas(0, 2, 1) + plain), pixels, 1, ""},
		{"golang/go#38341", riff(canvas(0x04, 2, 1) + plain + part("XMP ", "x")), pixels, 1, ""},
		{"golang/go#60437", riff(canvas(0x20|0x10, 2, 1) + part("ICCP", "odd") + plain), pixels, 1, ""},
		{"golang/go#26001", riff(losslessOf(1, 1, "0 0 0"+one(2)+one(1)+one(3)+one(0)+one(0))), []byte{1, 2, 3, 0}, 1, ""},
		{"golang/go#53364", riff(canvas(animation, 2, 1) + frame(0, 0, 2, 1, 10, 0, plain) + frame(0, 0, 2, 1, 10, 0, plain)), pixels, 2, ""},
		{"golang/go#81661", riff(canvas(0x10, 2, 1) + plain), pixels, 1, ""},
		{"golang/go#10383", riff(copies(256, 0)), nil, 1, "a copy of 1 pixels from 4 before 0 of 4: damaged"},
		{"golang/go#10383, too many", riff(copies(256+8, 0)), nil, 1, "a copy of 17 pixels"},
		{"golang/go#10790", []byte("RIFF\xff\xff\xff\x7fWEBPVP8 \x78\x56\x34\x12\x10\xff\xff\x9d\x01\x2a\x02\x00\x01\x00"), nil, 1,
			"ends too early"},
		{"golang/go#79869", riff(canvas(0x10, 4, 1) + part("ALPH", "\x00\x01\x02\x03\x04") + lossy), nil, 0,
			"an image of 2 x 1 on a canvas of 4 x 1: damaged"},
		{"golang/go#80063", riff(canvas(0, 2, 1) + losslessOf(16384, 16384, "0")), nil, 0,
			"an image of 16384 x 16384 on a canvas of 2 x 1: damaged"},
		{"golang/go#30712", []byte("\x00\x00\x00\x00" + string(riff(plain)[4:])), nil, 0, "no signature: damaged"},
		{"MikuAuahDark/simplewebp#9", riff(losslessOf(1, 1, "0 0 0  0 0000 100 100 100 001")), nil, 1, "4 symbols whose code is not complete"},
		{"image-rs/image-webp#38", riff(losslessOf(11024, 13994, "0 0 0"+two(1, 2)+one(0)+one(0)+one(0)+one(0))), nil, 1, "ends too early"},
		{"SixLabors/ImageSharp#3010", riff(canvas(0x08, 2, 1) + plain + "EXIF\xff\xff\xff\x7fII*\x00"), pixels, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse(tt.data)
			var got []byte
			if err == nil {
				got, err = f.Frames[0].Decode()
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, not %q", err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) || len(f.Frames) != tt.frames {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	t.Run("golang/go#40173", func(t *testing.T) { // luma from 16 to 235 is black to white
		m := image.NewYCbCr(image.Rect(0, 0, 2, 1), image.YCbCrSubsampleRatio420)
		m.Y[0], m.Y[1], m.Cb[0], m.Cr[0] = 16, 235, 128, 128
		if got := rgba(m); !slices.Equal(got, []byte{0, 0, 0, 255, 255, 255, 255, 255}) {
			t.Errorf("%v", got)
		}
	})
}
