package texture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

var update = flag.Bool("update", false, "write the goldens")

// picture is a small picture with what goes wrong in filters: a hard edge, a soft one, and colour below transparency.
func picture() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, 7, 5))
	for y := range 5 {
		for x := range 7 {
			c := color.NRGBA{uint8(40 * x), uint8(60 * y), 200, 255}
			switch {
			case x == 6:
				c = color.NRGBA{0, 255, 0, 0}
			case y == 4:
				c.A = uint8(40 * x)
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func pngFile(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func settings(change func(*texture.Options)) *texture.Options {
	o := texture.Defaults()
	change(&o)
	return &o
}

func TestGoldens(t *testing.T) {
	for _, tt := range []struct {
		golden   string
		settings *texture.Options
	}{
		{"default.ktx2", nil},
		{"premultiplied.dds", settings(func(o *texture.Options) { o.Container, o.Premultiply = "dds", true })},
		{"small-flipped.ktx2", settings(func(o *texture.Options) { o.MaxSize, o.Flip = 4, true })},
		{"normal.ktx2", settings(func(o *texture.Options) { o.SRGB, o.Format, o.Mips = false, "rg8", false })},
	} {
		c := processortest.Case{Files: map[string][]byte{"ui/flag.png": pngFile(t, picture())}, Asset: "ui/flag.png"}
		if tt.settings != nil {
			c.Settings = tt.settings
		}
		r := processortest.Run(t, New(), c)
		if r.Err != nil || len(r.Warnings) > 0 || len(r.Products) != 1 {
			t.Fatalf("%s: %v, %v, %d products", tt.golden, r.Err, r.Warnings, len(r.Products))
		}
		if !slices.Equal(r.Observations, []string{"file ui/flag.png"}) {
			t.Errorf("%s: saw %v", tt.golden, r.Observations)
		}
		p := r.Products[""]
		if p.Type != "texture" || !strings.HasSuffix(tt.golden, p.Extension) || len(p.References) > 0 {
			t.Errorf("%s: %+v", tt.golden, p.Output)
		}
		processortest.Golden(t, "testdata/"+tt.golden, p.Data, *update)
	}
}

func TestProblems(t *testing.T) {
	good := pngFile(t, picture())
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[16:], 60000)
	binary.BigEndian.PutUint32(huge[20:], 60000)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	damaged := bytes.Clone(good)
	damaged[len(damaged)-20] ^= 0xff
	oddTGA := make([]byte, 40)
	oddTGA[2], oddTGA[12], oddTGA[14], oddTGA[16] = 32, 1, 1, 24
	for _, tt := range []struct {
		asset string
		data  []byte
		code  string
		text  string
	}{
		{"a.png", nil, "K1201", "the file is empty"},
		{"a.png", []byte("not a picture at all"), "K1202", "not an image of a known format"},
		{"a.png", good[:len(good)/2], "K1203", "PNG image ends too early"},
		{"a.png", damaged, "K1204", "PNG image is damaged: "},
		{"a.jpg", []byte("\xff\xd8\xff\xc1\x00\x0b\x0c\x00\x01\x00\x01\x01\x01\x11\x00\xff\xd9"), "K1205",
			"JPEG image cannot be read: 12 bits a channel; save it with 8 bits, or as PNG"},
		{"a.tga", oddTGA, "K1205", "TGA image cannot be read: image type 32 with 24 bits per pixel"},
		{"a.png", huge, "K1206", "PNG image claims 60000 x 60000 pixels, over the limit of 16384 a side and 1024 MiB in memory"},
	} {
		r := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{tt.asset: tt.data}, Asset: tt.asset})
		ps := processortest.Problems(r.Err)
		if len(ps) != 1 || ps[0].Code != tt.code || !strings.Contains(ps[0].Text, tt.text) || ps[0].Hint == "" {
			t.Errorf("%s: %v", tt.code, r.Err)
		}
		if len(r.Products) != 0 {
			t.Errorf("%s: a product was written", tt.code)
		}
	}
}

func TestWarnings(t *testing.T) {
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, picture(), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		data     []byte
		settings *texture.Options
		code     string
		text     string
	}{
		{"a JPEG named .png", jpg.Bytes(), nil, "K1207", "named .png, but it is a JPEG image"},
		{"nothing to multiply", pngFile(t, picture()), settings(func(o *texture.Options) { o.Format, o.Premultiply = "r8", true }), "K1208", `premultiply does nothing with format "r8"`},
	} {
		c := processortest.Case{Files: map[string][]byte{"a.png": tt.data}, Asset: "a.png"}
		if tt.settings != nil {
			c.Settings = tt.settings
		}
		r := processortest.Run(t, New(), c)
		if r.Err != nil || len(r.Products) != 1 {
			t.Fatalf("%s: %v", tt.name, r.Err)
		}
		if len(r.Warnings) != 1 || r.Warnings[0].Code != tt.code || !strings.Contains(r.Warnings[0].Text, tt.text) || r.Warnings[0].Hint == "" {
			t.Errorf("%s: %+v", tt.name, r.Warnings)
		}
	}
}

// TestJPEG builds JPEGs of several samplings. Their pixels are those of djpeg, of which the decoder's tests have a copy.
func TestJPEG(t *testing.T) {
	for _, name := range []string{"420", "441", "chroma-odd", "progressive"} {
		golden := "../../media/codec/jpeg/testdata/golden/" + name
		data, err := os.ReadFile(golden + ".jpg")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(golden + ".ppm")
		if err != nil {
			t.Fatal(err)
		}
		r := processortest.Run(t, New(), processortest.Case{
			Files: map[string][]byte{"a.jpg": data}, Asset: "a.jpg", Settings: settings(func(o *texture.Options) { o.Container = "png" }),
		})
		if r.Err != nil || len(r.Warnings) != 0 {
			t.Fatalf("%s: %v, %v", name, r.Err, r.Warnings)
		}
		m, err := pixel.Decode("a.png", r.Products[""].Data, pixel.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Appendf(nil, "P6\n%d %d\n255\n", m.Width, m.Height)
		for i := 0; i < len(m.Pix); i += 4 {
			got = append(got, m.Pix[i:i+3]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other pixels than djpeg's", name)
		}
	}
}

func TestMissingAndCancelled(t *testing.T) {
	c := processortest.Case{Files: map[string][]byte{}, Asset: "a.png"}
	if r := processortest.Run(t, New(), c); !errors.Is(r.Err, fs.ErrNotExist) {
		t.Errorf("missing: %v", r.Err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Files["a.png"] = pngFile(t, picture())
	if r := processortest.RunContext(t, ctx, New(), c); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("cancelled: %v", r.Err)
	}
}

// Every extension is of a format that can be read.
func TestInfo(t *testing.T) {
	info := New().Info()
	for _, ext := range info.Extensions {
		if pixel.FormatOf("x"+ext) == "" && ext != ".dds" && ext != ".ktx2" {
			t.Errorf("%s is of no known format", ext)
		}
	}
	if info.Name != "texture" || !reflect.DeepEqual(*info.Settings.(*texture.Options), texture.Defaults()) {
		t.Errorf("%+v", info)
	}
}

// A picture from file to texture: decode, mips, container.
func BenchmarkProcess(b *testing.B) {
	m := image.NewNRGBA(image.Rect(0, 0, 1024, 1024))
	for i := range m.Pix { // smooth with a little noise, like a painting
		m.Pix[i] = byte(i/4%1024/8 + i/4096/8 + i*i%7)
	}
	c := processortest.Case{Files: map[string][]byte{"a.png": pngFile(b, m)}, Asset: "a.png"}
	b.SetBytes(1024 * 1024) // so that MB/s reads as megapixels a second
	for range b.N {
		r := processortest.Run(b, New(), c)
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		if x, err := ktx2.Decode(r.Products[""].Data); err != nil || len(x.Levels) != 11 {
			b.Fatal(err)
		}
	}
}
