package texture

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

func encode(t testing.TB, im Images, o Options, tools Tools) []byte {
	t.Helper()
	p, err := NewPlan(im, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode(tools)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(b...)
}

func open(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Open(data, pixel.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// formatNames returns the formats of 8 bits a channel, or those of light.
func formatNames(float bool) (names []string) {
	for _, f := range formats {
		if f.float == float {
			names = append(names, f.name)
		}
	}
	return names
}

// mistake returns the largest difference and the mean squared one, in the channels that a format keeps.
func mistake(got, want *pixel.Image, channels int) (worst int, mse float64) {
	for i := range got.Pix {
		if i%4 < channels {
			d := int(got.Pix[i]) - int(want.Pix[i])
			worst = max(worst, d, -d)
			mse += float64(d*d) / float64(len(got.Pix)/4*channels)
		}
	}
	return worst, mse
}

// TestAnySize encodes in each format at many sizes, and decodes each level again. The result must be nearly the same;
// channels that the format does not keep have the values that graphics cards use.
func TestAnySize(t *testing.T) {
	for _, name := range formatNames(false) {
		f, _ := formatNamed(name)
		for w := 1; w <= 17; w++ {
			for h := 1; h <= 17; h++ {
				if name != "bc7" && name != "astc6x6" && (w*5+h)%4 != 0 { // a quarter of all sizes for most formats
					continue
				}
				if w%8 > 1 && h%8 > 1 && (w+h)%3 != 0 {
					continue
				}
				m := gradient(w, h, 1)
				o := Options{Format: name, Use: "data", Container: "ktx2", Mips: true, Quality: "fast"}
				file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{Eight: m}}}, o, Tools{}))
				chain := pixel.Filter{}.Mips(m)
				if file.Levels != len(chain) || file.Width != w || file.Height != h {
					t.Fatalf("%s %d x %d: %d levels of %d x %d", name, w, h, file.Levels, file.Width, file.Height)
				}
				for n, want := range chain {
					p, err := file.Picture(n, 0, 0, 0)
					if err != nil {
						t.Fatal(err)
					}
					if p.Eight.Width != want.Width || p.Eight.Height != want.Height {
						t.Fatalf("%s %d x %d level %d: %d x %d", name, w, h, n, p.Eight.Width, p.Eight.Height)
					}
					exact := f.side == 1 && (n == 0 || !f.deep) // smaller levels of 16 bits are rounded twice here
					if worst, mse := mistake(p.Eight, want, f.channels); mse > 40 || worst > 20 || exact && worst > 0 || f.deep && worst > 1 {
						t.Errorf("%s %d x %d level %d: off by %d, mean square %.1f", name, w, h, n, worst, mse)
					}
					if p.Eight.Pix[3] != 255 || f.channels < 3 && p.Eight.Pix[2] != 0 {
						t.Errorf("%s: other channels are %v", name, p.Eight.Pix[:4])
					}
				}
			}
		}
	}
}

// TestShapes encodes all shapes in both containers. Each image must be decoded from its place.
func TestShapes(t *testing.T) {
	for _, container := range []string{"ktx2", "dds"} {
		for _, tt := range []struct {
			shape Shape
			n     int
		}{{Flat, 1}, {Cube, 6}, {Array, 3}, {Array, 1}, {Volume, 4}, {Volume, 3}} {
			for _, format := range []string{"rgba8", "bc7"} {
				im := Images{tt.shape, pictures(tt.n, 8, 8)}
				o := with(func(o *Options) { o.Container, o.Format = container, format })
				file := open(t, encode(t, im, o, Tools{}))
				shape := tt.shape
				if container == "dds" && tt.n == 1 {
					shape = Flat // the file does not record the shape
				}
				if file.Shape != shape || file.Container != container || file.Levels != 4 {
					t.Fatalf("%s of %v: %+v", container, tt, file)
				}
				got, err := file.Images()
				if err != nil || len(got.Pictures) != tt.n {
					t.Fatalf("%s of %v: %d pictures, %v", container, tt, len(got.Pictures), err)
				}
				for i, p := range got.Pictures {
					if worst, _ := mistake(p.Eight, im.Pictures[i].Eight, 4); worst > 6 || format == "rgba8" && worst > 0 {
						t.Errorf("%s of %v: picture %d is off by %d", container, tt, i, worst)
					}
				}
				if tt.shape == Volume {
					if _, err := file.Picture(1, 0, 0, tt.n/2-1); err != nil {
						t.Error(err)
					}
					if _, err := file.Picture(1, 0, 0, tt.n/2); err == nil {
						t.Error("more slices than there are in level 1")
					}
				}
			}
		}
	}
}

// TestWorkers checks that the bytes do not depend on the number of workers.
func TestWorkers(t *testing.T) {
	m := gradient(67, 45, 2)
	for i := range m.Pix {
		m.Pix[i] += byte(i * i % 23)
	}
	for _, name := range append(formatNames(false), formatNames(true)...) {
		o := with(func(o *Options) { o.Format, o.Filter = name, "kaiser" })
		im := Images{Pictures: []*pixel.Picture{{Eight: m}}}
		one := encode(t, im, o, Tools{Workers: 1})
		for _, n := range []int{2, 7} {
			if !bytes.Equal(one, encode(t, im, o, Tools{Workers: n})) {
				t.Errorf("%s differs with %d workers", name, n)
			}
		}
	}
}

func TestLight(t *testing.T) {
	m := pixel.NewFloat(16, 8)
	for i := range 16 * 8 {
		x, y := float32(i%16), float32(i/16)
		copy(m.Pix[4*i:], []float32{2 + x/16, 3 + x/16, 2.5 + y/16, 1})
	}
	for _, tt := range []struct {
		format string
		error  float64 // relative to the largest channel
	}{{"rgba16f", 1.0 / 2048}, {"rgb9e5", 1.0 / 511}, {"bc6h", 0.2}} {
		o := Options{Use: "hdr", Format: tt.format, Container: "ktx2", Mips: true}
		file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{HDR: true, Float: m}}}, o, Tools{}))
		for n, want := range (pixel.Filter{Weighted: true}).MipsFloat(m) {
			p, err := file.Picture(n, 0, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(want.Pix); i += 4 {
				most := max(want.Pix[i], want.Pix[i+1], want.Pix[i+2])
				for c := range 3 {
					if d := math.Abs(float64(p.Float.Pix[i+c] - want.Pix[i+c])); d > tt.error*float64(most)+1e-6 {
						t.Fatalf("%s level %d value %d: %v, want %v", tt.format, n, i+c, p.Float.Pix[i+c], want.Pix[i+c])
					}
				}
			}
		}
	}
	// 8-bit colours are decoded to light: 188 is half of white.
	grey := &pixel.Image{Width: 1, Height: 1, Pix: []byte{188, 0, 255, 255}}
	file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{Eight: grey}}}, with(func(o *Options) { o.Format = "rgba16f" }), Tools{}))
	p, err := file.Picture(0, 0, 0, 0)
	if err != nil || math.Abs(float64(p.Float.Pix[0])-0.5029) > 0.001 || p.Float.Pix[2] != 1 || file.Format != "RGBA16F" {
		t.Errorf("%v %v", p.Float.Pix, err)
	}
	// Light becomes a colour texture with 8 bits by clamping and encoding.
	hdr := &pixel.Float{Width: 1, Height: 1, Pix: []float32{7, 0.5029, 0, 1}}
	file = open(t, encode(t, Images{Pictures: []*pixel.Picture{{HDR: true, Float: hdr}}}, with(func(o *Options) { o.Format, o.Use = "rgba8", "hdr" }), Tools{}))
	if p, err := file.Picture(0, 0, 0, 0); err != nil || [4]byte(p.Eight.Pix) != [4]byte{255, 188, 0, 255} || !strings.HasSuffix(file.Format, "sRGB") {
		t.Errorf("%v %v %s", p.Eight.Pix, err, file.Format)
	}
}

// TestPictureIsStraight checks that a preview shows what a game samples: swizzled, with straight alpha, the right way
// up.
func TestPictureIsStraight(t *testing.T) {
	m := &pixel.Image{Width: 2, Height: 2, Pix: []byte{255, 0, 0, 128, 0, 255, 0, 255, 10, 200, 30, 255, 90, 80, 70, 200}}
	for _, srgb := range []bool{false, true} {
		o := with(func(o *Options) { o.Premultiply, o.Flip, o.SRGB = true, true, srgb })
		file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{Eight: m}}}, o, Tools{}))
		p, err := file.Picture(0, 0, 0, 0)
		if err != nil || !file.Premultiplied {
			t.Fatal(err)
		}
		if worst, _ := mistake(p.Eight, m, 4); worst > 1 {
			t.Errorf("sRGB %t: %v, want %v", srgb, p.Eight.Pix, m.Pix)
		}
	}
	grey := &pixel.Image{Width: 1, Height: 1, Pix: []byte{100, 100, 100, 255}}
	for family, format := range map[string]string{"bc": "BC4", "etc2": "EAC R11"} {
		file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{Eight: grey}}}, with(func(o *Options) { o.Use, o.Family = "mask", family }), Tools{}))
		if p, err := file.Picture(0, 0, 0, 0); err != nil || file.Format != format || [4]byte(p.Eight.Pix) != [4]byte{100, 100, 100, 255} {
			t.Errorf("%s: %v %v", file.Format, p.Eight.Pix, err)
		}
	}
}

func TestProcessing(t *testing.T) {
	red := &pixel.Image{Width: 2, Height: 1, Pix: []byte{255, 0, 255, 255, 200, 10, 20, 255}}
	for _, tt := range []struct {
		o    Options
		want []byte
	}{
		{with(func(o *Options) { o.ColorKey = "#ff00FF" }), []byte{0, 0, 0, 0, 200, 10, 20, 255}},
		{with(func(o *Options) { o.ColorKey, o.Bleed = "#ff00ff", 1 }), []byte{200, 10, 20, 0, 200, 10, 20, 255}},
		{with(func(o *Options) { o.Use, o.GreenUp = "normal", true }), []byte{255, 255, 255, 255, 200, 245, 20, 255}},
		{with(func(o *Options) { o.GreenUp = true }), red.Pix},
	} {
		tt.o.Mips = false
		file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{Eight: red}}}, tt.o, Tools{}))
		if p, err := file.Picture(0, 0, 0, 0); err != nil || !bytes.Equal(p.Eight.Pix, tt.want) {
			t.Errorf("%+v: %v, %v", tt.o, p.Eight.Pix, err)
		}
	}
	if !bytes.Equal(red.Pix, []byte{255, 0, 255, 255, 200, 10, 20, 255}) {
		t.Error("the picture was changed")
	}
	// Coverage: if one of four pixels of a fence is opaque, the same share passes the test at each level.
	fence := pixel.New(16, 16)
	for i := 3; i < len(fence.Pix); i += 16 {
		fence.Pix[i] = 255
	}
	file := open(t, encode(t, Images{Pictures: []*pixel.Picture{{Eight: fence}}}, with(func(o *Options) { o.AlphaCutoff = 0.5 }), Tools{}))
	p, err := file.Picture(1, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	pass := 0
	for i := 3; i < len(p.Eight.Pix); i += 4 {
		if p.Eight.Pix[i] >= 128 {
			pass++
		}
	}
	if pass != 32 { // of 64: in level 1, the pixels of one of two columns are half covered, the others empty
		t.Errorf("%d of 64 pixels pass", pass)
	}
}

// TestKeeps checks for each pair of container and format whether the options keep a file.
func TestKeeps(t *testing.T) {
	im := Images{Flat, pictures(1, 8, 8)}
	make := func(change func(*Options)) []byte { return encode(t, im, with(change), Tools{}) }
	bc7 := make(func(o *Options) { o.Format = "bc7" })
	bc1 := make(func(o *Options) { o.Format, o.Container = "bc1", "dds" })
	etc := make(func(o *Options) { o.Format = "etc2" })
	flipped := make(func(o *Options) { o.Flip = true })
	for _, tt := range []struct {
		name string
		data []byte
		o    Options
		want bool
	}{
		{"nothing asked", bc7, Defaults(), true},
		{"its family", bc7, with(func(o *Options) { o.Family = "bc" }), true},
		{"another family", bc7, with(func(o *Options) { o.Family = "etc2" }), false},
		{"its format", bc7, with(func(o *Options) { o.Format = "bc7" }), true},
		{"bc1 from Direct3D", bc1, with(func(o *Options) { o.Format = "bc1" }), true},
		{"another format", bc7, with(func(o *Options) { o.Format = "rgba8" }), false},
		{"smaller", bc7, with(func(o *Options) { o.MaxSize = 4 }), false},
		{"to dds", bc7, with(func(o *Options) { o.Container = "dds" }), true},
		{"to a dds that cannot hold it", etc, with(func(o *Options) { o.Container = "dds" }), false},
		{"premultiplied", bc7, with(func(o *Options) { o.Premultiply = true }), false},
		{"flipped", bc7, with(func(o *Options) { o.Flip = true }), false},
		{"flipped already", flipped, with(func(o *Options) { o.Flip = true }), true},
		{"key", bc7, with(func(o *Options) { o.ColorKey = "#000000" }), false},
	} {
		if got := open(t, tt.data).Keeps(tt.o); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	for _, tt := range []struct {
		name string
		data []byte
		o    Options
		want string
	}{
		{"as it is", bc7, Defaults(), "the same"},
		{"dds as it is", bc1, with(func(o *Options) { o.Container = "dds" }), "the same"},
		{"without mips", bc7, with(func(o *Options) { o.Mips = false }), "ktx2 BC7 sRGB 1 levels"},
		{"to dds", bc7, with(func(o *Options) { o.Container = "dds" }), "dds BC7 sRGB 4 levels"},
		{"to ktx2", bc1, Defaults(), "ktx2 BC1A sRGB 4 levels"},
		{"packed", bc7, with(func(o *Options) { o.Compress = "zstd" }), "ktx2 BC7 sRGB 4 levels"},
	} {
		f := open(t, tt.data)
		b, err := f.Repack(tt.o)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := "the same"
		if !bytes.Equal(b, tt.data) {
			g := open(t, b)
			got = fmt.Sprintf("%s %s %d levels", g.Container, g.Format, g.Levels)
			for n := range g.Levels {
				a, err1 := f.Picture(n, 0, 0, 0)
				b, err2 := g.Picture(n, 0, 0, 0)
				if err1 != nil || err2 != nil || !bytes.Equal(a.Eight.Pix, b.Eight.Pix) {
					t.Errorf("%s: level %d differs, %v, %v", tt.name, n, err1, err2)
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := encode(t, Images{Flat, pictures(1, 8, 8)}, Defaults(), Tools{})
	other := bytes.Clone(good)
	other[12] = 200 // a vkFormat that is never used
	for _, tt := range []struct {
		name string
		data []byte
		lim  pixel.Limits
		code string
	}{
		{"text", []byte("text"), pixel.DefaultLimits(), "K1202"},
		{"half", good[:len(good)/2], pixel.DefaultLimits(), "K1203"},
		{"unknown format", other, pixel.DefaultLimits(), "K1205"},
		{"side", good, pixel.Limits{MaxSide: 4, MaxBytes: 1 << 20}, "K1206"},
		{"pixels", good, pixel.Limits{MaxSide: 100, MaxBytes: 4 * 63}, "K1206"},
	} {
		if _, err := Open(tt.data, tt.lim); codeOf(err) != tt.code {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	f := open(t, good)
	for _, at := range [][4]int{{-1, 0, 0, 0}, {4, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}} {
		if _, err := f.Picture(at[0], at[1], at[2], at[3]); err == nil {
			t.Errorf("picture %v", at)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range append(formatNames(false), formatNames(true)...) {
		f.Add(encode(f, Images{Flat, pictures(1, 5, 3)}, Options{Format: name, Container: "ktx2", Use: "data"}, Tools{}))
	}
	f.Add(encode(f, Images{Cube, pictures(6, 4, 4)}, Options{Format: "bc7", Container: "dds", Use: "data", Mips: true}, Tools{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(data, pixel.Limits{MaxSide: 64, MaxBytes: 1 << 16})
		if err != nil {
			return
		}
		for n := range file.Levels {
			p, err := file.Picture(n, file.Layers-1, file.Faces-1, max(1, file.Depth>>n)-1)
			if err != nil {
				continue
			}
			if w, h := p.Size(); w != max(1, file.Width>>n) || h != max(1, file.Height>>n) {
				t.Fatalf("level %d is %d x %d", n, w, h)
			}
		}
		if file.Keeps(Defaults()) {
			if _, err := file.Repack(Defaults()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestContainerMessages checks that errors about a container describe the file, and do not name the package that reads
// it.
func TestContainerMessages(t *testing.T) {
	for code, err := range map[string]error{"K1204": ktx2.ErrDamaged, "K1203": dds.ErrTruncated, "K1205": dds.ErrUnsupported} {
		var p *processor.Problem
		if !errors.As(refused(fmt.Errorf("level 0: %w", err)), &p) {
			t.Fatalf("%v is no problem", err)
		}
		if p.Code != code || p.Hint == "" || strings.Contains(p.Text, "ktx2: ") || strings.Contains(p.Text, "dds: ") || !strings.Contains(p.Text, " file") {
			t.Errorf("%s: %+v", code, p)
		}
	}
}
