package png

import (
	"bytes"
	"image"
	std "image/png"
	"math"
	"math/rand"
	"testing"
)

// TestEncode reads what was written with image/png.
func TestEncode(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for _, size := range [][2]int{{1, 1}, {2, 3}, {7, 9}, {33, 70}, {64, 64}, {5000, 3}, {3, 5000}} {
		w, h := size[0], size[1]
		for noise := 1; noise < 256; noise *= 3 {
			pix := make([]byte, 4*w*h)
			for i := range pix {
				pix[i] = byte(i/40 + r.Intn(noise))
			}
			check := func(data []byte, err error, want []byte) image.Image {
				t.Helper()
				m, err2 := std.Decode(bytes.NewReader(data))
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				if m.Bounds() != image.Rect(0, 0, w, h) || !bytes.Equal(straight(m), want) {
					t.Fatalf("%d x %d pixels with noise of %d are others after reading", w, h, noise)
				}
				if !same(t, data) {
					t.Fatal("decode does not read it")
				}
				return m
			}
			data, err := Encode(pix, w, h)
			check(data, err, pix)
			for i := 3; i < len(pix); i += 4 {
				pix[i] = 255
			}
			data, err = Encode(pix, w, h)
			if _, ok := check(data, err, pix).(*image.RGBA); !ok {
				t.Error("an opaque picture has alpha")
			}
			grey := make([]byte, w*h)
			for i := range grey {
				grey[i] = pix[4*i]
				pix[4*i+1], pix[4*i+2] = pix[4*i], pix[4*i]
			}
			data, err = EncodeGrey(grey, w, h)
			if _, ok := check(data, err, pix).(*image.Gray); !ok {
				t.Error("a grey picture is not grey")
			}
		}
	}
}

// TestFilters compares words with single bytes.
func TestFilters(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for _, pixel := range []int{1, 3, 4} {
		for range 2000 {
			size := pixel * (1 + r.Intn(30))
			f := newFilters(size, pixel)
			for i := range size {
				f.current[pad+i], f.above[pad+i] = byte(r.Intn(256)), byte(r.Intn(256)*r.Intn(2))
			}
			for filter := range paeth + 1 {
				to := make([]byte, size+pad)
				f.apply(filter, to, 0, size)
				got := make([]byte, size)
				unfilter(byte(filter), got, to[:size], f.above[pad:][:size], pixel)
				if !bytes.Equal(got, f.current[pad:][:size]) {
					t.Fatalf("filter %d of %d bytes a pixel cannot be reversed", filter, pixel)
				}
			}
		}
	}
}

// TestLogs checks that the table is the same whatever the last bits of a logarithm are.
func TestLogs(t *testing.T) {
	for i := 1; i < len(logs); i++ {
		v := 256 * math.Log2(1+float64(i)/256)
		if math.Abs(v-math.Floor(v)-0.5) < 1e-6 {
			t.Errorf("entry %d is %v", i, v)
		}
	}
}
