package texture

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	_ "embed"

	"github.com/chromedp/chromedp"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/media/codec/astc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/etc2"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// The textures that Kiln encodes are decoded by other programs: astcenc, libsquish, and the WebGL 2 of a headless
// Chromium. The error of each must be within 0.01 dB of that of Kiln's own decoder.

// judged is a picture that is difficult for block formats: edges, two colours in a block, gradients, noise, and an
// alpha that is independent of the colours. The sides are multiples of 4, which WebGL requires for BC, but not of 6 or
// 8.
func judged() *pixel.Image {
	m := pixel.New(124, 92)
	seed := uint32(1)
	for y := range m.Height {
		for x := range m.Width {
			seed = seed*1664525 + 1013904223
			grain := int(seed >> 29)
			r, g, b, a := 2*x+grain, 2*y+grain, 255-x-y+grain, 255
			if (x/11+y/7)%3 == 0 {
				r, g = 255-r/2, 40+g/3
			}
			if d := (x-60)*(x-60) + (y-40)*(y-40); d < 900 {
				r, b = b, r
			} else if d < 1600 {
				a = d / 8
			}
			copy(m.Pix[4*(y*m.Width+x):], []byte{clamped(r), clamped(g), clamped(b), clamped(a)})
		}
	}
	return m
}

func clamped(v int) byte { return byte(max(0, min(255, v))) }

// judgedOpaque is judged for formats without alpha.
func judgedOpaque() *pixel.Image {
	m := judged()
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	return m
}

// judgedCutout is judged with transparent pixels, which are black, as BC1 decodes them.
func judgedCutout() *pixel.Image {
	m := judgedOpaque()
	for i := 0; i < len(m.Pix); i += 4 {
		if m.Pix[i] > 200 {
			copy(m.Pix[i:], []byte{0, 0, 0, 0})
		}
	}
	return m
}

var qualities = []string{"fast", "normal", "best"}

// blocks returns the first level as Kiln encodes it, its own decoder's picture of it, and the format in the file.
func blocks(t *testing.T, m *pixel.Image, format, quality string, srgb bool) ([]byte, *pixel.Picture, ktx2.Format) {
	t.Helper()
	o := Options{Format: format, Quality: quality, Container: "ktx2", Use: "data"}
	if srgb {
		o.Use, o.SRGB = "color", true
	}
	data := encode(t, Images{Pictures: []*pixel.Picture{{Eight: m}}}, o, Tools{})
	file, err := ktx2.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	own, err := open(t, data).Picture(0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file.Levels[0], own, file.Format
}

// decibels returns the PSNR of the first channels, and the largest difference. White is 1.
func decibels(got, want *pixel.Float, channels int) (db, worst float64) {
	mse := 0.0
	for i := range want.Pix {
		if i%4 < channels {
			d := float64(got.Pix[i]) - float64(want.Pix[i])
			worst = max(worst, d, -d)
			mse += d * d / float64(len(want.Pix)/4*channels)
		}
	}
	return -10 * math.Log10(mse), worst
}

// agree compares the picture of another decoder with Kiln's.
func agree(t *testing.T, name string, theirs, ours, source *pixel.Float, channels int) {
	t.Helper()
	if theirs.Width != ours.Width || theirs.Height != ours.Height || len(theirs.Pix) != len(ours.Pix) {
		t.Fatalf("%s: %d x %d, %d values", name, theirs.Width, theirs.Height, len(theirs.Pix))
	}
	mine, _ := decibels(ours, source, channels)
	other, _ := decibels(theirs, source, channels)
	_, worst := decibels(theirs, ours, channels)
	t.Logf("%s: %.3f dB, by our decoder %.3f; values differ by %.6f at most", name, other, mine, worst)
	if math.Abs(mine-other) > 0.01 {
		t.Errorf("%s: %.3f dB, by our decoder %.3f", name, other, mine)
	}
	if other < 32 { // the worst format, ASTC 8x8 fast, has 32.1
		t.Errorf("%s: only %.3f dB", name, other)
	}
}

func outside(t *testing.T, why string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if file, err := exec.LookPath(name); err == nil {
			return file
		}
	}
	t.Skipf("%s is not installed and does not judge %s", names[0], why)
	return ""
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestJudgedByAstcenc(t *testing.T) {
	tool := outside(t, "ASTC", "astcenc")
	ctx, dir, m := bounded(t), t.TempDir(), judged()
	for _, side := range []int{4, 6, 8} {
		for _, srgb := range []bool{false, true} {
			for _, quality := range qualities {
				name := fmt.Sprintf("ASTC %dx%d %s, sRGB %t", side, side, quality, srgb)
				data, own, _ := blocks(t, m, fmt.Sprintf("astc%dx%d", side, side), quality, srgb)
				in, out := filepath.Join(dir, "in.astc"), filepath.Join(dir, "out.png")
				file := astc.Write(astc.Image{Footprint: astc.Footprint{Width: side, Height: side}, Width: m.Width, Height: m.Height, Blocks: data})
				if err := os.WriteFile(in, file, 0o600); err != nil {
					t.Fatal(err)
				}
				mode := map[bool]string{false: "-dl", true: "-ds"}[srgb]
				if said, err := exec.CommandContext(ctx, tool, mode, in, out, "-silent").CombinedOutput(); err != nil {
					t.Fatalf("%s: %v %s", name, err, said)
				}
				png, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := pixel.Decode("out.png", png, pixel.DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				agree(t, name, theirs.Light(false), own.Eight.Light(false), m.Light(false), 4)
			}
		}
	}
}

// TestJudgedBySquish decodes BC1 and BC3 with libsquish. Its version 1.15 does not read the BC4 and BC5 that it writes.
// Its driver is part of the benchmark.
func TestJudgedBySquish(t *testing.T) {
	compiler := outside(t, "BC1 and BC3", "g++")
	ctx, dir := bounded(t), t.TempDir()
	tool := filepath.Join(dir, "squish")
	driver := filepath.Join("..", "..", "..", "bench", "textures", "peers", "squish.cpp")
	if said, err := exec.CommandContext(ctx, compiler, "-O1", "-o", tool, driver, "-lsquish").CombinedOutput(); err != nil {
		t.Skipf("libsquish is not installed and does not judge BC1 and BC3: %v %.300s", err, said)
	}
	for _, tt := range []struct {
		format   string
		m        *pixel.Image
		channels int
	}{{"bc1", judgedOpaque(), 3}, {"bc1", judgedCutout(), 4}, {"bc3", judged(), 4}} {
		for _, quality := range qualities {
			data, own, format := blocks(t, tt.m, tt.format, quality, false)
			cmd := exec.CommandContext(ctx, tool, "decode", tt.format, strconv.Itoa(tt.m.Width), strconv.Itoa(tt.m.Height))
			cmd.Stdin = bytes.NewReader(data)
			rgba, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			theirs := &pixel.Image{Width: tt.m.Width, Height: tt.m.Height, Pix: rgba}
			agree(t, fmt.Sprintf("%v %s", format, quality), theirs.Light(false), own.Eight.Light(false), tt.m.Light(false), tt.channels)
		}
	}
}

//go:embed testdata/judge.js
var judgeJS string

// webGL has the formats with their names and numbers in WebGL's extensions.
var webGL = []struct {
	format    string
	extension string
	number    int
	channels  int
	picture   func() *pixel.Image
}{
	{"bc1", "WEBGL_compressed_texture_s3tc", 0x83f0, 3, judgedOpaque},
	{"bc1", "WEBGL_compressed_texture_s3tc", 0x83f1, 4, judgedCutout},
	{"bc3", "WEBGL_compressed_texture_s3tc", 0x83f3, 4, judged},
	{"bc4", "EXT_texture_compression_rgtc", 0x8dbb, 1, judgedOpaque},
	{"bc5", "EXT_texture_compression_rgtc", 0x8dbd, 2, judgedOpaque},
	{"bc6h", "EXT_texture_compression_bptc", 0x8e8f, 3, judgedOpaque},
	{"bc7", "EXT_texture_compression_bptc", 0x8e8c, 4, judged},
	{"eacr11", "WEBGL_compressed_texture_etc", 0x9270, 1, judgedOpaque},
	{"eacrg11", "WEBGL_compressed_texture_etc", 0x9272, 2, judgedOpaque},
	{"etc2", "WEBGL_compressed_texture_etc", 0x9274, 3, judgedOpaque},
	{"etc2a", "WEBGL_compressed_texture_etc", 0x9278, 4, judged},
	{"astc4x4", "WEBGL_compressed_texture_astc", 0x93b0, 4, judged},
	{"astc6x6", "WEBGL_compressed_texture_astc", 0x93b4, 4, judged},
	{"astc8x8", "WEBGL_compressed_texture_astc", 0x93b7, 4, judged},
}

func TestJudgedByWebGL(t *testing.T) {
	thorough.Only(t, "a browser takes seconds to start")
	tool := outside(t, "every compressed format", "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(tool), chromedp.NoSandbox, // our own page
		chromedp.Flag("use-angle", "swiftshader"), chromedp.Flag("enable-unsafe-swiftshader", true))
	ctx, stop := chromedp.NewExecAllocator(bounded(t), options...)
	defer stop()
	ctx, leave := chromedp.NewContext(ctx)
	defer leave()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](judgeJS+"; true")); err != nil {
		t.Skipf("%s does not run here and judges nothing: %v", tool, err)
	}
	for _, tt := range webGL {
		for _, quality := range qualities {
			m := tt.picture()
			data, own, format := blocks(t, m, tt.format, quality, false)
			call := fmt.Sprintf("judge(%q, %d, %d, %d, %q)", tt.extension, tt.number, m.Width, m.Height, base64.StdEncoding.EncodeToString(data))
			answer, err := chromedp.Run(ctx, chromedp.Evaluate[string](call))
			if err != nil {
				t.Fatalf("%v: %v", format, err)
			}
			raw, err := base64.StdEncoding.DecodeString(answer)
			if err != nil || len(raw) != 16*m.Width*m.Height {
				t.Fatalf("%v: %.100s", format, answer) // a text with what is missing
			}
			theirs := pixel.NewFloat(m.Width, m.Height)
			for i := range theirs.Pix {
				theirs.Pix[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
			if tt.extension == "WEBGL_compressed_texture_etc" && tt.channels < 3 {
				widenEAC(theirs)
			}
			agree(t, fmt.Sprintf("%v %s", format, quality), theirs, precise(t, data, format, own), m.Light(false), tt.channels)
		}
	}
}

// precise returns the picture of Kiln's decoder with all bits of the format.
func precise(t *testing.T, data []byte, format ktx2.Format, p *pixel.Picture) *pixel.Float {
	t.Helper()
	channels := map[ktx2.Format]int{ktx2.EACR: 1, ktx2.EACRG: 2}[format]
	switch {
	case p.HDR:
		return p.Float
	case channels == 0:
		return p.Eight.Light(false)
	}
	values, err := etc2.Decode16(etc2Of[format], data, p.Eight.Width, p.Eight.Height)
	if err != nil {
		t.Fatal(err)
	}
	m := pixel.NewFloat(p.Eight.Width, p.Eight.Height)
	for i, v := range values {
		m.Pix[i/channels*4+i%channels] = float32(v) / 65535
	}
	return m
}

// widenEAC corrects SwiftShader, which widens 11 bits to 16 by five zeros where the specification repeats the upper
// bits; that is too dark by up to 31/65535. Pixels that already have the bits do not change.
func widenEAC(m *pixel.Float) {
	for i, v := range m.Pix {
		if n := int(math.Round(float64(v) * 65535)); n%32 == 0 {
			m.Pix[i] = float32(n|n>>11) / 65535
		}
	}
}
