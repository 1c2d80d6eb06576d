package pixel

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Filter changes the size of images. It works on light, as the colour encoding defines it.
//
// With the kernel [Box], each pixel of a smaller image is the mean of exactly the area that it covers. If the ratio is
// not whole, an edge pixel is weighted by the part of it that is covered. For an odd side 2n+1 this is the three-tap
// polyphase box of "Non-Power-of-Two Mipmapping" (Guthe and Heckbert, NVIDIA, 2005); for an even side it is the mean of
// two. All sums are integers and are rounded only at the end, so the result does not depend on the floating-point unit.
// Larger images are interpolated linearly.
type Filter struct {
	// SRGB means that red, green and blue are sRGB-encoded and are averaged as linear light. Alpha is always linear.
	SRGB bool

	// Weighted means that the colour of a pixel is weighted by its alpha. Hidden colours of transparent pixels then do
	// not bleed into visible ones. Leave it off if alpha is a data channel.
	Weighted bool

	// Normal means that red, green and blue are a direction, where 0 to 255 stand for -1 to 1. Each new direction is
	// scaled to length 1. It cannot be combined with SRGB or Weighted.
	Normal bool

	Kernel  Kernel
	Workers int // number of goroutines; less than 1 means 1; does not affect the result
}

// maxFilterSide keeps sums below 2^64: 32 bits for a value, 16 for the weights of each direction.
const maxFilterSide = 1<<16 - 1

// Resize scales an image to width x height.
func (f Filter) Resize(img *Image, width, height int) *Image {
	if width < 1 || height < 1 || max(img.Width, img.Height, width, height) > maxFilterSide {
		panic(fmt.Sprintf("pixel: resize of %d x %d to %d x %d", img.Width, img.Height, width, height))
	}
	if width == img.Width && height == img.Height {
		return img
	}
	return f.image(f.resize(f.source(img), width, height))
}

// manyPixels of a level, from which on the level is not kept as a plane, which takes four times the memory of its image.
const manyPixels = 1 << 18

// Mips returns the image and its mip levels, down to 1 x 1. Each level has half the width and height of the one before,
// rounded down. Levels are made from unrounded ones, so that errors do not accumulate.
func (f Filter) Mips(img *Image) []*Image {
	levels := []*Image{img}
	for src := f.source(img); src.width > 1 || src.height > 1; {
		width, height := max(1, src.width/2), max(1, src.height/2)
		if f.Kernel == Box && width*height > manyPixels {
			level := New(width, height)
			src, levels = f.rounding(shrunk(src, width, height), level), append(levels, level)
			continue
		}
		p := f.resize(src, width, height)
		levels = append(levels, f.image(p))
		src = p.source()
	}
	return levels
}

// VolumeMips is like Mips for a volume, given as slices from front to back. Each level also has half as many slices,
// averaged by the part of each that is covered.
func (f Filter) VolumeMips(slices []*Image) [][]*Image {
	levels := [][]*Image{slices}
	src := make([]rows, len(slices))
	for i, img := range slices {
		src[i] = f.source(img)
	}
	for len(src) > 1 || src[0].width > 1 || src[0].height > 1 {
		planes := make([]plane, len(src))
		for i, s := range src {
			planes[i] = f.resize(s, max(1, s.width/2), max(1, s.height/2))
		}
		planes = deepen(planes, max(1, len(planes)/2))
		src = src[:len(planes)]
		level := make([]*Image, len(planes))
		for i, p := range planes {
			level[i], src[i] = f.image(p), p.source()
		}
		levels = append(levels, level)
	}
	return levels
}

// deepen averages planes along the depth.
func deepen(planes []plane, depth int) []plane {
	n := len(planes)
	if n == depth {
		return planes
	}
	a, out := areaAxis(n, depth), make([]plane, depth)
	for z := range out {
		out[z] = newPlane(planes[0].width, planes[0].height)
		sum := make([]uint64, len(out[z].v))
		for k, w := range a.weights[z*a.taps:][:a.taps] {
			for i, v := range planes[a.first[z]+k].v {
				sum[i] += uint64(w) * uint64(v)
			}
		}
		divide(out[z].v, sum, uint64(a.one))
	}
	return out
}

// Fit returns the largest size with the same proportions and no side over maxSide. It returns the size unchanged if it
// fits or if maxSide is 0.
func Fit(width, height, maxSide int) (int, int) {
	long := max(width, height)
	if maxSide <= 0 || long <= maxSide {
		return width, height
	}
	scale := func(n int) int { return max(1, (n*maxSide+long/2)/long) }
	return scale(width), scale(height)
}

// plane holds four numbers a pixel. If weighted, they are red, green and blue times the weight, and the weight.
// Otherwise they are the four channels times the largest weight. All are on a scale of 0 to 65535*maxWeight, which just
// fits into 32 bits.
type plane struct {
	width, height int
	v             []uint32
}

func newPlane(width, height int) plane { return plane{width, height, make([]uint32, 4*width*height)} }

// The weight of a pixel is 256*alpha + 1. The 1 is for areas that are fully transparent: it keeps their colour. Without
// it they would become black, and show as a dark rim when the texture is magnified. Next to an opaque pixel it changes
// the result by at most a twentieth of an 8-bit level.
const (
	alphaWeight = 256
	maxWeight   = 255*alphaWeight + 1
	maxValue    = 0xffff * maxWeight
)

// rows is a plane that is computed while it is read. An image of a gigabyte would otherwise also need a plane of four.
type rows struct {
	width, height int

	// reader returns a function for one goroutine. That function returns row y, which is valid until the next call.
	reader func() func(y int) []uint32
}

func (p plane) source() rows {
	row := func(y int) []uint32 { return p.v[4*p.width*y:][:4*p.width] }
	return rows{p.width, p.height, func() func(int) []uint32 { return row }}
}

func (f Filter) source(img *Image) rows {
	light := &tables().linear
	if f.SRGB {
		light = &tables().light
	}
	return rows{img.Width, img.Height, func() func(int) []uint32 {
		row := make([]uint32, 4*img.Width)
		return func(y int) []uint32 {
			f.weigh(row, img.Pix[4*img.Width*y:], light)
			return row
		}
	}}
}

// weigh converts a row of an image to a row of a plane.
func (f Filter) weigh(dst []uint32, src []byte, light *[256]uint16) {
	src = src[:len(dst)]
	for i := 0; i < len(dst); i += 4 {
		s, d := src[i:i+4:i+4], dst[i:i+4:i+4]
		w, alpha := uint32(maxWeight), uint32(s[3])*0x101*maxWeight
		if f.Weighted {
			w = uint32(s[3])*alphaWeight + 1
			alpha = w * 0xffff
		}
		d[0], d[1], d[2], d[3] = uint32(light[s[0]])*w, uint32(light[s[1]])*w, uint32(light[s[2]])*w, alpha
	}
}

// resize returns a plane of any size.
func (f Filter) resize(src rows, width, height int) plane {
	if f.Kernel == Kaiser {
		return f.plane(resampled(src, kaiserAxis(src.width, width), kaiserAxis(src.height, height)))
	}
	p := f.plane(shrunk(src, min(width, src.width), min(height, src.height)))
	if width > src.width || height > src.height {
		p = f.plane(resampled(p.source(), linearAxis(p.width, width), linearAxis(p.height, height)))
	}
	return p
}

// band is the number of rows that a worker makes at once. It needs the source rows below them, and a few more that its
// neighbours need too.
const band = 16

// plane reads all rows.
func (f Filter) plane(src rows) plane {
	out := newPlane(src.width, src.height)
	block.Rows((src.height+band-1)/band, f.workers(src.width, src.height), func(next func() int) {
		row := src.reader()
		for b := next(); b >= 0; b = next() {
			for y := b * band; y < min((b+1)*band, src.height); y++ {
				copy(out.v[4*y*src.width:][:4*src.width], row(y))
			}
		}
	})
	return out
}

// shrunk averages areas while it is read.
func shrunk(src rows, width, height int) rows {
	if src.width != 2*width || src.height != 2*height {
		return resampled(src, areaAxis(src.width, width), areaAxis(src.height, height))
	}
	return rows{width, height, func() func(int) []uint32 {
		row, above, dst := src.reader(), make([]uint32, 4*src.width), make([]uint32, 4*width)
		return func(y int) []uint32 {
			copy(above, row(2*y))
			halveRow(dst, above, row(2*y+1))
			return dst
		}
	}}
}

// rounding writes each row to an image when it is first read. Whoever shrinks the rows reads all of them.
func (f Filter) rounding(p rows, out *Image) rows {
	written := make([]atomic.Bool, p.height)
	return rows{p.width, p.height, func() func(int) []uint32 {
		row := p.reader()
		return func(y int) []uint32 {
			v := row(y)
			if written[y].CompareAndSwap(false, true) {
				f.roundRow(out, y, v)
			}
			return v
		}
	}}
}

// workers returns 1 for small images, where starting goroutines takes longer than the work.
func (f Filter) workers(width, height int) int {
	if width*height < 1<<13 {
		return 1
	}
	return f.Workers
}

// halveRow is [resampled] for the usual case, the mean of four pixels of two rows.
func halveRow(dst, above, below []uint32) {
	i := 0
	if even := len(dst) &^ 7; lanes && even > 0 {
		halve(&dst[0], &above[0], &below[0], even/4)
		i = even
	}
	for ; i < len(dst); i += 4 {
		d, a, b := dst[i:i+4:i+4], above[2*i:2*i+8:2*i+8], below[2*i:2*i+8:2*i+8]
		for c := range 4 {
			d[c] = uint32((uint64(a[c]) + uint64(a[c+4]) + uint64(b[c]) + uint64(b[c+4]) + 2) / 4)
		}
	}
}

// image rounds a plane to 8 bits.
func (f Filter) image(p plane) *Image {
	out := New(p.width, p.height)
	block.Rows(p.height, f.workers(p.width, p.height), func(next func() int) {
		for y := next(); y >= 0; y = next() {
			f.roundRow(out, y, p.v[4*y*p.width:][:4*p.width])
		}
	})
	return out
}

func (f Filter) roundRow(out *Image, y int, src []uint32) {
	dst := out.Pix[4*y*out.Width:][:4*out.Width]
	if f.Normal {
		directions(dst, src)
	} else {
		f.round(dst, src)
	}
}

func (f Filter) round(dst []byte, src []uint32) {
	code := &tables().code
	for i := 0; i < len(dst); i += 4 {
		d, s := dst[i:i+4:i+4], src[i:i+4:i+4]
		w := uint32(maxWeight)
		if f.Weighted {
			w = max(1, (s[3]+0x7fff)/0xffff)
			d[3] = byte((w - 1 + alphaWeight/2) / alphaWeight)
		} else {
			d[3] = byte(((s[3]+maxWeight/2)/maxWeight + 0x80) / 0x101)
		}
		for c := range 3 {
			v := min(0xffff, (s[c]+w/2)/w) // maxValue + maxWeight/2 fits into 32 bits
			if f.SRGB {
				d[c] = code[v]
			} else {
				d[c] = byte((v + 0x80) / 0x101)
			}
		}
	}
}

// noDirection is a length of 1/256. A shorter vector is only the rounding error of directions that cancelled out.
const noDirection = 256

// directions scales vectors to length 1 and rounds them. A vector without a length becomes the direction straight up.
func directions(dst []byte, src []uint32) {
	for i := 0; i < len(dst); i += 4 {
		d, s := dst[i:i+4:i+4], src[i:i+4:i+4]
		var v [3]int64 // each -65535 to 65535
		for c := range v {
			v[c] = 2*int64((uint64(s[c])+maxWeight/2)/maxWeight) - 0xffff
		}
		// The operations are on integers below 2^53, a square root and a quotient: all are exact, or rounded the same
		// on every machine.
		length := math.Sqrt(float64(v[0]*v[0] + v[1]*v[1] + v[2]*v[2]))
		if length < noDirection {
			v, length = [3]int64{2: 1}, 1
		}
		for c := range v {
			d[c] = byte(float64(127.5*float64(float64(v[c])/length)) + 128) // the scale is 127.5; another half rounds
		}
		d[3] = byte(((s[3]+maxWeight/2)/maxWeight + 0x80) / 0x101)
	}
}

// tables convert between 8-bit codes and 16-bit light.
var tables = sync.OnceValue(func() *tableSet {
	t := &tableSet{}
	for i := range 256 {
		t.linear[i] = uint16(i * 0x101)
		t.light[i] = uint16(math.Round(65535 * decodeSRGB(float64(i)/255)))
	}
	// The code for a light value is the one with the nearest encoding: the boundary between two codes is halfway
	// between them, as encoded.
	v := 0
	for i := range 256 {
		end := 65536
		if i < 255 {
			end = int(math.Ceil(65535 * decodeSRGB((float64(i)+0.5)/255)))
		}
		for ; v < end; v++ {
			t.code[v] = byte(i)
		}
	}
	return t
})

type tableSet struct {
	linear, light [256]uint16
	code          [65536]byte
}

// decodeSRGB is the transfer function of IEC 61966-2-1, from 0..1 to 0..1. The last bit of math.Pow may differ between
// machines. A test checks that no table entry is so close to a rounding boundary that this matters.
func decodeSRGB(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}
