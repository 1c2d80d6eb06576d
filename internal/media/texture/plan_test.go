package texture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/role"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestFormats compares the numbers of both containers with the names that the codecs give them.
func TestFormats(t *testing.T) {
	names := map[string]string{
		"rgba8": "RGBA8", "rg8": "RG8", "r8": "R8", "rgba16": "RGBA16", "rg16": "RG16", "r16": "R16", "rgba16f": "RGBA16F", "rgb9e5": "RGB9E5", "bc1": "BC1", "bc1a": "BC1A", "bc3": "BC3",
		"bc4": "BC4", "bc5": "BC5", "bc6h": "BC6H", "bc7": "BC7", "etc2": "ETC2 RGB", "etc2a": "ETC2 RGBA", "eacr11": "EAC R11",
		"eacrg11": "EAC RG11", "astc4x4": "ASTC 4x4", "astc6x6": "ASTC 6x6", "astc8x8": "ASTC 8x8",
	}
	for _, f := range formats {
		want := names[f.name]
		if got := f.ktx2.String(); got != want {
			t.Errorf("%s: KTX2 has %q", f.name, got)
		}
		if f.ktx2SRGB != 0 && f.ktx2SRGB.String() != want+" sRGB" {
			t.Errorf("%s: KTX2 has %q for sRGB", f.name, f.ktx2SRGB)
		}
		if w, h, _ := f.ktx2.Block(); w != f.side || h != f.side {
			t.Errorf("%s: blocks of %d x %d", f.name, w, h)
		}
		want = strings.TrimSuffix(want, "A1")
		if f.name == "bc1a" {
			want = "BC1"
		}
		if f.dds != 0 && f.dds.String() != want || f.ddsSRGB != 0 && f.ddsSRGB.String() != want+" sRGB" {
			t.Errorf("%s: DDS has %q and %q", f.name, f.dds, f.ddsSRGB)
		}
		if (f.dds == 0) != (f.family == "etc2" || f.family == "astc") {
			t.Errorf("%s in DDS: %v", f.name, f.dds)
		}
		delete(names, f.name)
	}
	if len(names) > 0 {
		t.Errorf("missing: %v", names)
	}
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct{ use, families string }{ // families: none, bc, etc2, astc
		{"color", "rgba8 bc7 etc2 astc6x6"},
		{"color alpha", "rgba8 bc7 etc2a astc6x6"},
		{"ui alpha", "rgba8 bc7 etc2a astc4x4"},
		{"normal", "rgba8 bc5 eacrg11 astc4x4"},
		{"mask", "rgba8 bc7 etc2 astc6x6"},
		{"mask grey", "rgba8 bc4 eacr11 astc6x6"},
		{"mask grey alpha", "rgba8 bc7 etc2a astc6x6"},
		{"hdr hdr", "rgba16f bc6h rgb9e5 rgb9e5"},
		{"data alpha", "rgba8 rgba8 rgba8 rgba8"},
		{"data hdr", "rgba16f rgba16f rgba16f rgba16f"},
		{"data deep", "rgba16 rgba16 rgba8 rgba8"},
		{"data deep grey", "r16 r16 rgba8 rgba8"},
		{"data deep grey alpha", "rgba16 rgba16 rgba8 rgba8"},
		{"mask deep grey", "rgba8 bc4 eacr11 astc6x6"},
	} {
		words := strings.Fields(tt.use)
		has := func(w string) bool { return strings.Contains(" "+strings.Join(words[1:], " ")+" ", " "+w+" ") }
		for i, family := range []string{"none", "bc", "etc2", "astc"} {
			want := strings.Fields(tt.families)[i]
			if got := choose(words[0], family, has("alpha"), has("grey"), has("hdr"), has("deep")); got != want {
				t.Errorf("%s of %s is %s, want %s", tt.use, family, got, want)
			}
		}
	}
}

func TestFor(t *testing.T) {
	if o := (Options{Use: "auto", R: "x.png"}).For(role.Of("a.png", nil)); o.Use != "mask" {
		t.Errorf("packed channels are %s", o.Use)
	}
	if o := (Options{Use: "color", R: "x.png"}).For(role.Of("a_normal.png", nil)); o.Use != "color" {
		t.Error("what is said is not kept")
	}
	if o := (Options{A: "x.png"}).For(role.Of("a.png", nil)); o.Use != "color" {
		t.Error("an alpha of its own makes no mask")
	}
}

// TestFormatsAreDocumented compares the table of formats in the documentation with the code.
func TestFormatsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/textures.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range formats {
		if f.name != "bc1a" && !strings.Contains(string(page), "| `"+f.name+"` |") {
			t.Errorf("docs/textures.md has no row for %s", f.name)
		}
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		in   [2]int
		want [2]int
	}{
		{Options{}, [2]int{100, 50}, [2]int{100, 50}},
		{Options{Scale: 0.5}, [2]int{101, 1}, [2]int{51, 1}},
		{Options{Scale: 2}, [2]int{10, 7}, [2]int{20, 14}},
		{Options{Scale: 16}, [2]int{16384, 1}, [2]int{16384, 16}},
		{Options{Scale: 2, MaxSize: 30}, [2]int{20, 10}, [2]int{30, 15}},
		{Options{PowerOfTwo: "down"}, [2]int{100, 64}, [2]int{64, 64}},
		{Options{PowerOfTwo: "up"}, [2]int{100, 1}, [2]int{128, 1}},
		{Options{PowerOfTwo: "up", MaxSize: 100}, [2]int{100, 10}, [2]int{64, 16}},
		{Options{PowerOfTwo: "nearest"}, [2]int{90, 91}, [2]int{64, 128}}, // 64·√2 is 90.5
		{Options{PowerOfTwo: "nearest"}, [2]int{16384, 3}, [2]int{16384, 4}},
		{Options{MultipleOf: 4}, [2]int{101, 1}, [2]int{100, 4}},
		{Options{MultipleOf: 4, MaxSize: 63}, [2]int{63, 63}, [2]int{60, 60}},
		{Options{MultipleOf: 3, PowerOfTwo: "down"}, [2]int{17, 17}, [2]int{15, 15}},
	} {
		w, h := tt.o.Size(tt.in[0], tt.in[1])
		if [2]int{w, h} != tt.want {
			t.Errorf("%+v of %v: %d x %d, want %v", tt.o, tt.in, w, h, tt.want)
		}
	}
	// With any options, sides stay within the limits of textures.
	for _, pot := range []string{"none", "up", "down", "nearest"} {
		for _, m := range []int{0, 3, 4, 256} {
			for _, side := range []int{1, 2, 3, 255, 256, 16383, 16384} {
				w, h := Options{PowerOfTwo: pot, MultipleOf: m}.Size(side, 1)
				if w < 1 || w > max(16384, m) || h < 1 || m > 1 && (w%m != 0 || h%m != 0) {
					t.Errorf("%s, %d: %d x 1 becomes %d x %d", pot, m, side, w, h)
				}
			}
		}
	}
}

// TestNeedGrows: a texture that is larger than its picture needs memory for all of its own pixels.
func TestNeedGrows(t *testing.T) {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewNRGBA(image.Rect(0, 0, 100, 60))); err != nil {
		t.Fatal(err)
	}
	whole := Options{Flip: true}.Need("a.png", data.Bytes()).Made
	for _, tt := range []struct {
		o    Options
		more float64
	}{
		{Options{Scale: 2}, 4}, {Options{Scale: 0.5}, 1}, {Options{PowerOfTwo: "up"}, 128. * 64 / 6000}, {Options{Scale: 2, MaxSize: 100}, 1},
	} {
		tt.o.Flip = true
		if got := float64(tt.o.Need("a.png", data.Bytes()).Made) / float64(whole); math.Abs(got-tt.more) > 0.01 {
			t.Errorf("%+v: %.2f times, want %.2f", tt.o, got, tt.more)
		}
	}
}

func codeOf(err error) string {
	var p *processor.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return fmt.Sprint(err)
}

func pictures(n, w, h int) []*pixel.Picture {
	list := make([]*pixel.Picture, n)
	for i := range list {
		list[i] = &pixel.Picture{Eight: gradient(w, h, i)}
	}
	return list
}

// gradient is an opaque image with smooth colours that differ for each seed.
func gradient(w, h, seed int) *pixel.Image {
	m := pixel.New(w, h)
	for y := range h {
		for x := range w {
			p := m.Pix[4*(y*w+x):]
			p[0], p[1], p[2], p[3] = byte(40+2*x+20*seed), byte(60+2*x+y), byte(200-x-2*y), 255
		}
	}
	return m
}

func TestPlanRefuses(t *testing.T) {
	odd := pictures(3, 8, 8)
	odd[2] = &pixel.Picture{Eight: gradient(8, 4, 0)}
	for _, tt := range []struct {
		name string
		im   Images
		o    Options
		code string
	}{
		{"sizes", Images{Array, odd}, Defaults(), "K1210"},
		{"five faces", Images{Cube, pictures(5, 8, 8)}, Defaults(), "K1210"},
		{"no square", Images{Cube, pictures(6, 8, 4)}, Defaults(), "K1210"},
		{"nothing", Images{Array, nil}, Defaults(), "K1210"},
		{"too many", Images{Array, pictures(2049, 1, 1)}, Defaults(), "K1210"},
		{"etc2 in DDS", Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Family, o.Container = "etc2", "dds" }), "K1211"},
		{"no colour", Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.ColorKey = "pink" }), "K1211"},
		{"no colour", Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.ColorKey = "#12345" }), "K1211"},
	} {
		_, err := NewPlan(tt.im, tt.o)
		var p *processor.Problem
		if codeOf(err) != tt.code || errors.As(err, &p) && p.Hint == "" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	glass := pictures(1, 8, 8)
	glass[0].Eight.Pix[3] = 100
	for _, tt := range []struct {
		im   Images
		o    Options
		want string
	}{
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Family, o.Premultiply = "bc", true }), ""},
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Format, o.Premultiply = "rg8", true }), `K1208 premultiply does nothing with format "rg8", which has no colour and no alpha`},
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Format, o.Premultiply = "bc1", true }), `K1208 premultiply does nothing with format "bc1", which has no alpha`},
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Format, o.AlphaCutoff = "etc2", 0.5 }), `K1208 alpha_cutoff does nothing with format "etc2"`},
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Use, o.Premultiply, o.AlphaCutoff, o.GreenUp = "mask", true, 0.5, true }), ""},
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Use, o.Format, o.Premultiply = "normal", "rg8", true }), ""},
		{Images{Flat, pictures(1, 8, 8)}, with(func(o *Options) { o.Compress, o.Container = "zstd", "dds" }), "K1208 compress"},
		{Images{Flat, glass}, with(func(o *Options) { o.Format = "etc2" }), "K1213 format \"etc2\" drops"},
		{Images{Flat, glass}, with(func(o *Options) { o.Family = "etc2" }), ""},
		{Images{Flat, pictures(1, 8, 6)}, with(func(o *Options) { o.Family = "bc" }), "K1212 8 x 6 is not a multiple of 4"},
		{Images{Flat, pictures(1, 8, 6)}, with(func(o *Options) { o.Family, o.MultipleOf = "bc", 4 }), ""},
		{Images{Flat, pictures(1, 7, 6)}, with(func(o *Options) { o.Family = "astc" }), ""},
	} {
		p, err := NewPlan(tt.im, tt.o)
		if err != nil {
			t.Errorf("%+v: %v", tt.o, err)
			continue
		}
		got := ""
		for _, w := range p.Warnings() {
			got += w.Code + " " + w.Text
			if w.Hint == "" {
				t.Errorf("%s has no hint", w.Text)
			}
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestDoubt(t *testing.T) {
	for _, tt := range []struct {
		name, beside string
		px           [3]byte
		want, use    string
	}{
		{"a_n.png", "a.png", [3]byte{128, 128, 255}, "", ""}, {"a_n.png", "a.png", [3]byte{218, 128, 218}, "", ""},
		{"a_n.png", "a.png", [3]byte{200, 100, 0}, "", ""},
		{"a_n.png", "a.png", [3]byte{128, 128, 128}, `named "_n" like a normal map, but most of its pixels are not directions`, "color"},
		{"a_n.png", "a.png", [3]byte{255, 255, 255}, `named "_n"`, "color"}, {"a_n.png", "a.png", [3]byte{0, 0, 0}, `named "_n"`, "color"},
		{"a_normal.png", "", [3]byte{90, 140, 60}, `named "_normal"`, "color"},
		{"a_n.png", "", [3]byte{128, 128, 255}, `named "_n" like a normal map, which its pixels confirm, but it is built as colours`, "normal"},
		{"a_n.png", "", [3]byte{90, 140, 60}, "", ""}, {"a_n.png", "", [3]byte{200, 100, 0}, "", ""}, {"a_n.png", "", [3]byte{218, 128, 218}, "", ""},
		{"a_arm.png", "", [3]byte{128, 128, 255}, "", ""},
		{"a_height.png", "", [3]byte{90, 92, 85}, "", ""},
		{"a_height.png", "", [3]byte{90, 140, 60}, `named "_height" like a mask, but it has colours`, "color"},
		{"a_orm.png", "", [3]byte{90, 140, 60}, "", ""},
		{"a_roughnessMetallic.png", "", [3]byte{0, 140, 60}, "", ""}, {"a.png", "", [3]byte{90, 140, 60}, "", ""},
	} {
		m := pixel.New(4, 4)
		for i := 0; i < len(m.Pix); i += 4 {
			copy(m.Pix[i:], tt.px[:])
		}
		named := role.Of(tt.name, []string{tt.beside})
		p, err := NewPlan(Images{Pictures: []*pixel.Picture{{Eight: m}}}, Defaults().For(named))
		if err != nil {
			t.Fatal(err)
		}
		if got, use := p.Doubt(named); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || use != tt.use {
			t.Errorf("%s of %v: %q, %q", tt.name, tt.px, got, use)
		}
	}
}
