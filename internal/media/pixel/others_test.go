package pixel

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tool returns the first of the programs that is installed. If there is none, it skips the test.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %v is installed", names)
	return ""
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// scene writes a picture of 37 x 23 with 16 bits a channel: ramps, a checkerboard (for runs), alpha of a few values.
func scene(t *testing.T, dir string) {
	t.Helper()
	m := image.NewNRGBA64(image.Rect(0, 0, 37, 23))
	for y := range 23 {
		for x := range 37 {
			c := color.NRGBA64{uint16(x * 1771), uint16(y * 2849), uint16(x*y*77 + 5), 0xffff}
			if (x/9+y/5)%2 == 0 {
				c.R, c.G, c.B = 0x4000, 0xffff, 0
			}
			if x > 30 {
				c.A = uint16(y * 2900)
			}
			m.SetNRGBA64(x, y, c)
		}
	}
	f, err := os.Create(filepath.Join(dir, "scene.png"))
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, m); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAgainstImageMagick has ImageMagick write a file, and compares how both read it.
func TestAgainstImageMagick(t *testing.T) {
	magick := tool(t, "magick", "convert-im6.q16")
	for _, tt := range []struct {
		file string
		deep bool // has 16 bits
		off  int  // largest difference, of 255 or 65535
		args []string
	}{
		{"rgba.psd", false, 0, []string{"-depth", "8"}},
		{"rgb.psd", false, 0, []string{"-alpha", "off", "-depth", "8"}},
		{"raw.psd", false, 0, []string{"-alpha", "off", "-depth", "8", "-compress", "none"}},
		{"rle.psd", false, 0, []string{"-alpha", "off", "-depth", "8", "-compress", "rle"}},
		{"rle.psb", false, 0, []string{"-alpha", "off", "-depth", "8", "-compress", "rle"}},
		{"rgba.psb", false, 0, []string{"-depth", "8"}},
		{"deep.psd", true, 0, nil},
		{"deep.psb", true, 0, []string{"-alpha", "off"}},
		{"grey.psd", false, 0, []string{"-alpha", "off", "-depth", "8", "-colorspace", "Gray"}},
		{"cmyk.psd", false, 1, []string{"-alpha", "off", "-depth", "8", "-colorspace", "CMYK"}},
		{"rgba.tga", false, 0, []string{"-depth", "8", "-compress", "rle"}},
		{"rgb.bmp", false, 0, []string{"-alpha", "off", "-depth", "8"}},
		{"rgba.bmp", false, 0, []string{"-depth", "8"}},
		{"palette.bmp", false, 0, []string{"-alpha", "off", "-depth", "8", "-colors", "30", "-type", "Palette", "-compress", "none"}},
		{"rle8.bmp", false, 0, []string{"-alpha", "off", "-depth", "8", "-colors", "30", "-type", "Palette", "-compress", "rle"}},
		{"565.bmp", false, 1, []string{"-alpha", "off", "-define", "bmp:subtype=RGB565"}},
		{"os2.bmp", false, 0, []string{"-alpha", "off", "-depth", "8", "-define", "bmp:format=bmp2"}},
		{"bit.bmp", false, 0, []string{"-alpha", "off", "-monochrome"}},
		{"rgba.tif", false, 0, []string{"-depth", "8", "-compress", "lzw"}},
		{"deep.tif", true, 0, []string{"-alpha", "off", "-compress", "zip"}},
		{"planes.tif", false, 0, []string{"-depth", "8", "-interlace", "plane", "-compress", "lzw"}},
		{"planes16.tif", true, 0, []string{"-interlace", "plane", "-compress", "zip", "-define", "tiff:predictor=2"}},
		{"int32.tif", true, 0, []string{"-depth", "32", "-compress", "lzw", "-define", "tiff:predictor=2"}},
		{"int32tiles.tif", true, 0, []string{"-alpha", "off", "-depth", "32", "-compress", "rle", "-define", "tiff:tile-geometry=16x16"}},
		{"rgba.webp", false, 0, []string{"-depth", "8", "-define", "webp:lossless=true", "-define", "webp:exact=true"}},
		{"deep.png", true, 0, []string{"-interlace", "PNG"}},
		{"palette.png", false, 0, []string{"-alpha", "off", "-colors", "7", "-type", "Palette"}},
		{"grey4.png", false, 0, []string{"-alpha", "off", "-colorspace", "Gray", "-depth", "4"}},
		{"cmyk.jpg", false, 3, []string{"-alpha", "off", "-colorspace", "CMYK", "-quality", "100"}},
		{"rgb.jpg", false, 3, []string{"-alpha", "off", "-quality", "100", "-sampling-factor", "1x1"}},
		{"rgb.gif", false, 0, []string{"-alpha", "off", "-depth", "8"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			dir := t.TempDir()
			scene(t, dir)
			run(t, dir, magick, append(append([]string{"scene.png"}, tt.args...), tt.file)...)
			// These options stop ImageMagick from blending PSDs with white, and make it turn TGAs upright.
			args := []string{"-define", "psd:alpha-unblend=off", tt.file + "[0]", "-auto-orient"}
			if filepath.Base(tt.file)[:4] == "cmyk" {
				args = append(args, "-colorspace", "sRGB")
			}
			run(t, dir, magick, append(args, "-depth", "16", "-endian", "LSB", "rgba:reference")...)
			data, err := os.ReadFile(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			p, err := DecodePicture(tt.file, data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if (p.Float != nil) != tt.deep {
				t.Errorf("float is %v", p.Float != nil)
			}
			want, err := os.ReadFile(filepath.Join(dir, "reference"))
			if err != nil || len(want) != 8*37*23 || len(p.Eight.Pix) != 4*37*23 {
				t.Fatalf("%d bytes, %v, %d pixels", len(want), err, len(p.Eight.Pix))
			}
			for i, v := range p.Eight.Pix {
				sixteen := int(binary.LittleEndian.Uint16(want[2*i:]))
				if p.Float != nil {
					if got := int(math.Round(float64(p.Float.Pix[i]) * 65535)); got-sixteen > tt.off || sixteen-got > tt.off {
						t.Fatalf("pixel %d, %d: channel %d is %d, not %d", i/4%37, i/4/37, i%4, got, sixteen)
					}
					sixteen = (sixteen + 128) / 257 * 257
				}
				if got, want := int(v), (sixteen+128)/257; got-want > tt.off || want-got > tt.off {
					t.Fatalf("pixel %d, %d: channel %d is %d, not %d", i/4%37, i/4/37, i%4, got, want)
				}
			}
		})
	}
}

// TestAgainstFFmpeg has FFmpeg write an OpenEXR image, and compares how both read it.
func TestAgainstFFmpeg(t *testing.T) {
	ffmpeg := tool(t, "ffmpeg")
	for _, packing := range []string{"none", "rle", "zip1", "zip16"} {
		for _, format := range []string{"half", "float"} {
			t.Run(packing+" "+format, func(t *testing.T) {
				dir := t.TempDir()
				scene(t, dir)
				run(t, dir, ffmpeg, "-loglevel", "error", "-i", "scene.png", "-vf", "format=gbrapf32le", "-compression", packing, "-format", format, "x.exr")
				run(t, dir, ffmpeg, "-loglevel", "error", "-i", "x.exr", "-pix_fmt", "gbrapf32le", "-f", "rawvideo", "reference")
				data, err := os.ReadFile(filepath.Join(dir, "x.exr"))
				if err != nil {
					t.Fatal(err)
				}
				p, err := DecodePicture("x.exr", data, DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(filepath.Join(dir, "reference"))
				if n := 37 * 23; err != nil || len(want) != 16*n || len(p.Float.Pix) != 4*n {
					t.Fatalf("%d bytes, %v, %d numbers", len(want), err, len(p.Float.Pix))
				}
				planes := [4]int{2, 0, 1, 3} // the planes of red, green, blue, alpha
				for i := 0; i < len(p.Float.Pix); i += 4 {
					at := func(c int) float64 {
						return float64(math.Float32frombits(binary.LittleEndian.Uint32(want[4*(planes[c]*37*23+i/4):])))
					}
					for c := range 4 {
						got := float64(p.Float.Pix[i+c])
						if c < 3 && at(3) > 0 { // FFmpeg returns premultiplied colours
							got *= at(3)
						}
						if math.Abs(got-at(c)) > 1e-6 {
							t.Fatalf("pixel %d, %d: channel %d is %v, not %v", i/4%37, i/4/37, c, got, at(c))
						}
					}
				}
			})
		}
	}
}

// TestRadianceAgainstImageMagick has ImageMagick write a Radiance picture, and compares how both read it. ImageMagick
// keeps 16 bits.
func TestRadianceAgainstImageMagick(t *testing.T) {
	magick := tool(t, "magick", "convert-im6.q16")
	dir := t.TempDir()
	scene(t, dir)
	run(t, dir, magick, "scene.png", "-alpha", "off", "-set", "colorspace", "RGB", "x.hdr")
	run(t, dir, magick, "x.hdr", "-set", "colorspace", "sRGB", "-depth", "16", "-endian", "LSB", "rgb:reference")
	data, err := os.ReadFile(filepath.Join(dir, "x.hdr"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodePicture("x.hdr", data, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "reference"))
	if err != nil || len(want) != 6*37*23 || len(p.Float.Pix) != 4*37*23 {
		t.Fatalf("%d bytes, %v, %d numbers", len(want), err, len(p.Float.Pix))
	}
	for i := range 37 * 23 {
		for c := range 3 {
			got, want := 65535*float64(p.Float.Pix[4*i+c]), float64(binary.LittleEndian.Uint16(want[2*(3*i+c):]))
			if math.Abs(got-want) > 1 {
				t.Fatalf("pixel %d, %d: channel %d is %v, not %v", i%37, i/37, c, got, want)
			}
		}
	}
}

// TestFloatTIFFAgainstImageMagick has ImageMagick write a TIFF in floating point. It keeps 16 bits.
func TestFloatTIFFAgainstImageMagick(t *testing.T) {
	magick := tool(t, "magick", "convert-im6.q16")
	for name, args := range map[string][]string{
		"raw":         {"-depth", "32"},
		"big-endian":  {"-depth", "32", "-endian", "MSB", "-compress", "lzw"},
		"half":        {"-depth", "16", "-compress", "zip"},
		"predictor":   {"-depth", "32", "-compress", "zip", "-define", "tiff:predictor=3"},
		"predictor 2": {"-depth", "32", "-compress", "lzw", "-define", "tiff:predictor=3", "-endian", "MSB"},
		"tiles":       {"-depth", "32", "-define", "tiff:tile-geometry=16x16", "-compress", "zip"},
		"planes":      {"-depth", "32", "-interlace", "plane", "-compress", "zip"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			scene(t, dir)
			args := append(append([]string{"scene.png", "-alpha", "off", "-define", "quantum:format=floating-point"}, args...), "x.tif")
			run(t, dir, magick, args...)
			run(t, dir, magick, "scene.png", "-alpha", "off", "-depth", "16", "-endian", "LSB", "rgb:reference")
			data, err := os.ReadFile(filepath.Join(dir, "x.tif"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := DecodePicture("x.tif", data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(dir, "reference"))
			if err != nil || len(want) != 6*37*23 || !p.HDR || len(p.Float.Pix) != 4*37*23 {
				t.Fatalf("%d bytes, %v, %+v", len(want), err, p)
			}
			for i := range 37 * 23 {
				for c := range 3 {
					got, want := 65535*float64(p.Float.Pix[4*i+c]), float64(binary.LittleEndian.Uint16(want[2*(3*i+c):]))
					if off := 1.0; math.Abs(got-want) > off+want/2048 { // a 16-bit float has 11 significant bits
						t.Fatalf("pixel %d, %d: channel %d is %v, not %v", i%37, i/37, c, got, want)
					}
				}
			}
		})
	}
}

// TestQOIAgainstFFmpeg has FFmpeg convert a PNG to QOI.
func TestQOIAgainstFFmpeg(t *testing.T) {
	ffmpeg := tool(t, "ffmpeg")
	for _, format := range []string{"rgb24", "rgba"} {
		dir := t.TempDir()
		scene(t, dir)
		run(t, dir, ffmpeg, "-loglevel", "error", "-i", "scene.png", "-pix_fmt", format, "x.qoi")
		run(t, dir, ffmpeg, "-loglevel", "error", "-i", "scene.png", "-pix_fmt", format, "x.png")
		var got [2]*Image
		for i, name := range []string{"x.qoi", "x.png"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got[i], err = Decode(name, data, DefaultLimits()); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got[0].Pix, got[1].Pix) {
			t.Errorf("%s: another picture", format)
		}
	}
}
