package texture

import (
	"fmt"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds/ddscheck"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2/ktx2check"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// checked makes a texture and checks the file against its specification.
func checked(t *testing.T, im Images, o Options) {
	t.Helper()
	data := encode(t, im, o, Tools{Workers: 1})
	check := ktx2check.Check
	if o.Container == "dds" {
		check = ddscheck.Check
	}
	if err := check(data); err != nil {
		w, h := im.Pictures[0].Size()
		t.Errorf("%s %s, %d x %d, %d pictures, %+v:\n%v", o.Container, o.Format, w, h, len(im.Pictures), o, err)
	}
}

// variants are options besides the format that change the file.
var variants = []func(*Options){
	func(*Options) {},
	func(o *Options) { o.Compress = "zstd" },
	func(o *Options) { o.SRGB = false },
	func(o *Options) { o.Premultiply = true },
	func(o *Options) { o.Flip, o.Mips = true, false },
	func(o *Options) { o.Premultiply, o.SRGB, o.Compress = true, false, "zstd" },
	func(o *Options) { o.Use, o.Flip = "normal", true },
	func(o *Options) { o.PowerOfTwo = "up" },
	func(o *Options) { o.MultipleOf, o.Filter = 4, "kaiser" },
	func(o *Options) { o.Use, o.Compress = "data", "zstd" },
	func(o *Options) { o.Use = "mask" },
}

func containerFormats(container string) (names []string) {
	for _, f := range formats {
		if container == "ktx2" || f.dds != 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// TestFilesObeyTheirSpecification makes each format at each size from 1 x 1 to 17 x 17 with all its mips. The variants
// take turns: each is used with each format at 26 sizes.
func TestFilesObeyTheirSpecification(t *testing.T) {
	for _, container := range []string{"ktx2", "dds"} {
		for n, name := range containerFormats(container) {
			for w := 1; w <= 17; w++ {
				for h := 1; h <= 17; h++ {
					if !thorough.Enabled() && (w+h)%4 != 0 {
						continue
					}
					o := with(func(o *Options) { o.Container, o.Format, o.Quality = container, name, "fast" })
					variants[(17*w+h+n)%len(variants)](&o)
					checked(t, Images{Pictures: []*pixel.Picture{{Eight: gradient(w, h, n)}}}, o)
				}
			}
		}
	}
}

// TestShapesObeyTheirSpecification makes each shape in each format with each variant, and with the formats that "auto"
// chooses.
func TestShapesObeyTheirSpecification(t *testing.T) {
	for _, container := range []string{"ktx2", "dds"} {
		for _, shape := range []struct {
			Shape
			n, width, height int
		}{{Flat, 1, 12, 8}, {Cube, 6, 12, 12}, {Array, 1, 5, 3}, {Array, 3, 5, 3}, {Volume, 1, 4, 4}, {Volume, 5, 9, 4}} {
			im := Images{shape.Shape, pictures(shape.n, shape.width, shape.height)}
			for _, change := range variants {
				o := with(func(o *Options) { o.Container, o.Quality = container, "fast" })
				change(&o)
				for _, o.Format = range containerFormats(container) {
					if _, err := NewPlan(im, o); err != nil {
						if codeOf(err) != "K1211" { // such as ETC2 in 3D
							t.Errorf("%s %s %v: %v", container, o.Format, shape, err)
						}
						continue
					}
					checked(t, im, o)
				}
				o.Format = "auto"
				for _, family := range []string{"none", "bc", "etc2", "astc"} {
					if o.Family = family; container == "ktx2" || family == "none" || family == "bc" {
						if _, err := NewPlan(im, o); err == nil {
							checked(t, im, o)
						} else if codeOf(err) != "K1211" {
							t.Error(fmt.Errorf("%s %s %v: %w", container, family, shape, err))
						}
					}
				}
			}
		}
	}
}
