package webp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// TestColours has the corners of the range of video, which libwebp and BT.601 agree on, and what lies beyond them.
func TestColours(t *testing.T) {
	for _, tt := range []struct {
		y, u, v byte
		want    [3]byte
	}{
		{16, 128, 128, [3]byte{0, 0, 0}}, {235, 128, 128, [3]byte{255, 255, 255}}, {126, 128, 128, [3]byte{128, 128, 128}},
		{0, 128, 128, [3]byte{0, 0, 0}}, {255, 128, 128, [3]byte{255, 255, 255}},
		{81, 90, 240, [3]byte{254, 0, 0}}, {145, 54, 34, [3]byte{0, 255, 1}}, {41, 240, 110, [3]byte{0, 0, 255}},
	} {
		m := image.NewYCbCr(image.Rect(0, 0, 1, 1), image.YCbCrSubsampleRatio420)
		m.Y[0], m.Cb[0], m.Cr[0] = tt.y, tt.u, tt.v
		got := rgba(m)
		for c, want := range tt.want {
			if d := int(got[c]) - int(want); d < -1 || d > 1 || got[3] != 255 {
				t.Errorf("%d, %d, %d is %v, not %v", tt.y, tt.u, tt.v, got, tt.want)
			}
		}
	}
}

// TestChroma has two samples of chroma side by side, and one above the other: they blend in quarters.
func TestChroma(t *testing.T) {
	for _, size := range []image.Point{{4, 1}, {1, 4}} {
		m := image.NewYCbCr(image.Rectangle{Max: size}, image.YCbCrSubsampleRatio420)
		for i := range m.Y {
			m.Y[i] = 126
		}
		for i := range m.Cr {
			m.Cb[i], m.Cr[i] = 128, 128
		}
		m.Cr[len(m.Cr)-1] = 160 // 32 steps of red, 51 of 255
		got := rgba(m)
		for i, want := range []int{128, 128 + 13, 128 + 38, 128 + 51} {
			if d := int(got[4*i]) - want; d < -1 || d > 1 {
				t.Errorf("%v: pixel %d has a red of %d, not %d", size, i, got[4*i], want)
			}
		}
	}
}

func TestUnfilter(t *testing.T) {
	for filter, want := range [][]byte{{10, 1, 2, 5, 3, 250}, {10, 11, 13, 15, 18, 12}, {10, 11, 13, 15, 14, 7}, {10, 11, 13, 15, 19, 15}} {
		alpha := []byte{10, 1, 2, 5, 3, 250}
		unfilter(alpha, 3, byte(filter))
		if !bytes.Equal(alpha, want) {
			t.Errorf("filter %d: %v, want %v", filter, alpha, want)
		}
	}
}

// oneColour is a lossless image of transparent black: its five codes have one symbol each, 0, and take no bits.
func oneColour(w, h int) string {
	v := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(w-1)|uint32(h-1)<<14)
	return part("VP8L", string(v)+"\x88\x88\x08\x00\x00\x00\x00\x00\x00\x00\x00")
}

func part(name, body string) string {
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	return name + string(size) + body + "\x00"[:len(body)%2]
}

func riff(chunks string) []byte { return []byte(part("RIFF", "WEBP"+chunks)) }

func three(v int) string { return string([]byte{byte(v), byte(v >> 8), byte(v >> 16)}) }

func canvas(flags byte, w, h int) string {
	return part("VP8X", string(flags)+"\x00\x00\x00"+three(w-1)+three(h-1))
}

func frame(x, y, w, h, delay int, flags byte, image string) string {
	return part("ANMF", three(x/2)+three(y/2)+three(w-1)+three(h-1)+three(delay)+string(flags)+image)
}

func TestAnimation(t *testing.T) {
	f, err := Parse(riff(canvas(animation, 8, 6) + part("ANIM", "\xff\xff\xff\xff\x03\x00") +
		frame(0, 0, 8, 6, 70, 0, oneColour(8, 6)) + part("what", "odd") + frame(2, 4, 3, 2, 1000, replace|dispose, oneColour(3, 2))))
	if err != nil {
		t.Fatal(err)
	}
	if f.Width != 8 || f.Height != 6 || f.Plays != 3 || len(f.Frames) != 2 {
		t.Fatalf("%+v", f)
	}
	a, b := f.Frames[0], f.Frames[1]
	if !a.Over || a.Clear || a.Delay != 70*time.Millisecond || a.Lossy {
		t.Errorf("first: %+v", a)
	}
	if b.X != 2 || b.Y != 4 || b.Width != 3 || b.Height != 2 || b.Over || !b.Clear || b.Delay != time.Second {
		t.Errorf("second: %+v", b)
	}
	if pix, err := b.Decode(); err != nil || !bytes.Equal(pix, make([]byte, 4*3*2)) {
		t.Errorf("%v, %v", pix, err)
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, input.ErrTruncated},
		{"another form", []byte("RIFF\x04\x00\x00\x00WAVE"), input.ErrDamaged},
		{"no chunk", riff(""), input.ErrTruncated},
		{"half a canvas", []byte("RIFF\x20\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00"), input.ErrTruncated},
		{"another size than the canvas", riff(canvas(0, 8, 6) + oneColour(8, 5)), input.ErrDamaged},
		{"lossy, no head", riff(part("VP8 ", "\x00\x00")), input.ErrTruncated},
		{"lossy, not a key frame", riff(part("VP8 ", "\x01\x00\x00\x9d\x01\x2a\x01\x00\x01\x00")), input.ErrDamaged},
		{"lossy, no width", riff(part("VP8 ", "\x00\x00\x00\x9d\x01\x2a\x00\x00\x01\x00")), input.ErrDamaged},
		{"lossless, another version", riff(part("VP8L", "\x2f\x00\x00\x00\x20")), input.ErrDamaged},
		{"a frame beyond the canvas", riff(canvas(animation, 8, 6) + frame(2, 0, 8, 6, 0, 0, oneColour(8, 6))), input.ErrDamaged},
		{"a frame of another size", riff(canvas(animation, 8, 6) + frame(0, 0, 7, 6, 0, 0, oneColour(8, 6))), input.ErrDamaged},
		{"a frame without an image", riff(canvas(animation, 8, 6) + frame(0, 0, 8, 6, 0, 0, "")), input.ErrTruncated},
	} {
		if _, err := Parse(tt.data); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// picture writes a PNG with edges, ramps, noise and alpha, and returns its name.
func picture(t *testing.T, dir string, w, h int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{byte(7 * x), byte(5*y + x), 30, byte(x * y)}
			if r.IntN(5) == 0 {
				c.R = byte(r.IntN(256))
			}
			if (x/8+y/8)%2 > 0 {
				c.B = byte(r.IntN(256))
			}
			m.SetNRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%dx%d.png", w, h)
	if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestAgainstLibwebp has cwebp make files, and compares each pixel with dwebp's.
func TestAgainstLibwebp(t *testing.T) {
	for _, name := range []string{"cwebp", "dwebp"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	for _, size := range []image.Point{{1, 1}, {1, 7}, {2, 2}, {17, 33}, {64, 48}, {101, 77}} {
		dir := t.TempDir()
		from := picture(t, dir, size.X, size.Y)
		for _, args := range [][]string{
			{"-q", "80", "-noalpha"}, {"-q", "20", "-m", "6"}, {"-q", "95", "-sharp_yuv"}, {"-q", "50", "-segments", "4", "-f", "60", "-strong"},
			{"-q", "40", "-f", "30", "-nostrong"}, {"-q", "60", "-alpha_q", "50", "-alpha_filter", "best"}, {"-q", "60", "-alpha_method", "0"},
			{"-lossless", "-exact"}, {"-near_lossless", "40"},
		} {
			run(t, dir, "cwebp", append(append([]string{"-quiet"}, args...), from, "-o", "a.webp")...)
			run(t, dir, "dwebp", "-quiet", "a.webp", "-pam", "-o", "a.pam")
			data, want := read(t, dir, "a.webp"), read(t, dir, "a.pam")
			f, err := Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Frames[0].Decode()
			if err != nil {
				t.Fatal(err)
			}
			if want = want[max(0, len(want)-4*size.X*size.Y):]; !bytes.Equal(got, want) {
				t.Errorf("%v, %v: other pixels", size, args)
			}
		}
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func read(t testing.TB, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"lossy.webp", "lossyrgb.webp", "lossless.webp"} {
		f.Add(read(f, "../../pixel/testdata", name))
	}
	f.Add(riff(canvas(animation, 8, 6) + part("ANIM", "\xff\xff\xff\xff\x03\x00") + frame(2, 2, 3, 2, 70, 3, part("ALPH",
		"\x0d\x00")+oneColour(3, 2))))
	f.Fuzz(func(t *testing.T, data []byte) {
		kinds := func(err error) {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) && !errors.Is(err, input.ErrTooLarge) {
				t.Fatalf("error of no kind: %v", err)
			}
		}
		w, err := Parse(data)
		if err != nil {
			kinds(err)
			return
		}
		for i := range w.Frames[:min(len(w.Frames), 3)] {
			frame := &w.Frames[i]
			if frame.Width*frame.Height > 1<<14 {
				continue
			}
			if pix, err := frame.Decode(); err != nil {
				kinds(err)
			} else if len(pix) != 4*frame.Width*frame.Height {
				t.Fatalf("%d bytes for %d x %d", len(pix), frame.Width, frame.Height)
			}
		}
	})
}
