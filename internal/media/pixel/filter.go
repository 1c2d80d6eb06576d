package pixel

import (
	"fmt"
	"math"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Filter changes the size of images, in the light that their pixels stand for.
//
// With the kernel [Box] every new pixel of a smaller image is the mean of exactly the area that it covers. Where the ratio
// is not whole, the edge pixels count by the part of them that is covered. For an odd side
// 2n+1 that gives the three-tap polyphase box of "Non-Power-of-Two Mipmapping" (Guthe and Heckbert, NVIDIA, 2005); for an
// even one, the mean of two. All sums are whole numbers, without rounding until the last step, so that no
// machine's floating-point unit can make a difference. Larger images are interpolated linearly between pixels.
type Filter struct {
	// SRGB: red, green and blue are sRGB-encoded and are averaged as light. Alpha never is.
	SRGB bool

	// Weighted: a pixel's colour counts by its alpha, so that what lies unseen under transparent
	// pixels does not bleed into visible ones. Leave it off where alpha is another channel of data.
	Weighted bool

	// Normal: red, green and blue are a direction, 0 to 255 for -1 to 1, and every new one is brought to length 1.
	// It goes with neither of the above.
	Normal bool

	Kernel  Kernel
	Workers int // goroutines; less than 1 is 1. The result is the same.
}

// maxFilterSide keeps the sums of [shrinkRow] below 2^64: 32 bits a value, 16 for the weights of each direction.
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

// Mips is the image and its mip levels, each half as wide and high as the one before, rounded down, to 1 x 1. Levels
// are made of unrounded ones, so that errors do not add up.
func (f Filter) Mips(img *Image) []*Image {
	levels := []*Image{img}
	for src := f.source(img); src.width > 1 || src.height > 1; {
		p := f.resize(src, max(1, src.width/2), max(1, src.height/2))
		levels = append(levels, f.image(p))
		src = p.source()
	}
	return levels
}

// VolumeMips is Mips of the slices of a volume, front to back: every level has half as many slices, too, averaged by
// the part of them that is covered.
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

// deepen averages planes along the depth, as shrinkRow does along the other directions.
func deepen(planes []plane, depth int) []plane {
	n := len(planes)
	if n == depth {
		return planes
	}
	out := make([]plane, depth)
	for z := range out {
		sum := make([]uint64, len(planes[0].v))
		from, to := z*n, (z+1)*n
		for k := from / depth; k*depth < to; k++ {
			weight := uint64(min(to, (k+1)*depth) - max(from, k*depth))
			for i, v := range planes[k].v {
				sum[i] += weight * uint64(v)
			}
		}
		out[z] = newPlane(planes[0].width, planes[0].height)
		for i, s := range sum {
			out[z].v[i] = uint32((s + uint64(n)/2) / uint64(n))
		}
	}
	return out
}

// Fit is the largest size of the same proportions with no side over maxSide; the size itself if it fits, or if maxSide is 0.
func Fit(width, height, maxSide int) (int, int) {
	long := max(width, height)
	if maxSide <= 0 || long <= maxSide {
		return width, height
	}
	scale := func(n int) int { return max(1, (n*maxSide+long/2)/long) }
	return scale(width), scale(height)
}

// A plane holds four numbers a pixel. If weighted, they are red, green and blue times weight, and
// weight; else the four channels times the largest weight. All are on a scale of 0 to 65535*maxWeight, which just fits 32 bits.
type plane struct {
	width, height int
	v             []uint32
}

func newPlane(width, height int) plane { return plane{width, height, make([]uint32, 4*width*height)} }

// The weight of a pixel is 256*alpha + 1. The one is there for areas that are wholly transparent: they
// keep their colour, where without it they would turn black and show as a dark rim when the texture is
// magnified. Beside an opaque pixel it counts for a twentieth of a level of 8 bits at most.
const (
	alphaWeight = 256
	maxWeight   = 255*alphaWeight + 1
	maxValue    = 0xffff * maxWeight
)

// rows is a plane that is made as it is read: an image of a gigabyte need not be there a second time as one of four.
type rows struct {
	width, height int

	// reader makes a function for one goroutine that gives row y, valid until the next call.
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
		buf, have := make([]uint32, 4*img.Width), -1
		return func(y int) []uint32 {
			if y != have { // uneven areas share the row between them
				f.weigh(buf, img.Pix[4*img.Width*y:], light)
				have = y
			}
			return buf
		}
	}}
}

// weigh makes a row of a plane of one of an image.
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

// resize makes a plane of any size.
func (f Filter) resize(src rows, width, height int) plane {
	if f.Kernel == Kaiser {
		return f.resample(src, kaiserAxis(src.width, width), kaiserAxis(src.height, height))
	}
	if width > src.width || height > src.height {
		p := f.shrink(src, min(width, src.width), min(height, src.height))
		return f.resample(p.source(), linearAxis(p.width, width), linearAxis(p.height, height))
	}
	return f.shrink(src, width, height)
}

// shrink averages areas. Row j of the source covers [j*height, (j+1)*height) of a scale on which row y of the result covers
// [y*src.height, (y+1)*src.height); columns alike.
func (f Filter) shrink(src rows, width, height int) plane {
	out := newPlane(width, height)
	half := src.width == 2*width && src.height == 2*height
	block.Rows(height, f.workers(width, height), func(next func() int) {
		row, sum := src.reader(), make([]uint64, 4*src.width)
		for y := next(); y >= 0; y = next() {
			dst := out.v[4*y*width:][:4*width]
			if half {
				halveRow(dst, sum, row, y)
			} else {
				shrinkRow(dst, sum, row, y, src, height)
			}
		}
	})
	return out
}

// workers is 1 for what is done sooner than told to others.
func (f Filter) workers(width, height int) int {
	if width*height < 1<<13 {
		return 1
	}
	return f.Workers
}

func shrinkRow(dst []uint32, sum []uint64, row func(int) []uint32, y int, src rows, height int) {
	clear(sum)
	width, area := len(dst)/4, uint64(src.width)*uint64(src.height)
	from, to := y*src.height, (y+1)*src.height
	for j := from / height; j*height < to; j++ {
		weight := uint64(min(to, (j+1)*height) - max(from, j*height))
		for i, v := range row(j) {
			sum[i] += weight * uint64(v)
		}
	}
	for x := range width {
		var r, g, b, a uint64
		from, to := x*src.width, (x+1)*src.width
		for i := from / width; i*width < to; i++ {
			weight := uint64(min(to, (i+1)*width) - max(from, i*width))
			s := sum[4*i : 4*i+4 : 4*i+4]
			r, g, b, a = r+weight*s[0], g+weight*s[1], b+weight*s[2], a+weight*s[3]
		}
		d := dst[4*x : 4*x+4 : 4*x+4]
		d[0], d[1] = uint32((r+area/2)/area), uint32((g+area/2)/area)
		d[2], d[3] = uint32((b+area/2)/area), uint32((a+area/2)/area)
	}
}

// halveRow is shrinkRow for the usual case, in half the time: means of four pixels.
func halveRow(dst []uint32, sum []uint64, row func(int) []uint32, y int) {
	for i, v := range row(2 * y) {
		sum[i] = uint64(v)
	}
	low := row(2*y + 1)
	for i := 0; i < len(dst); i += 4 {
		d, s, l := dst[i:i+4:i+4], sum[2*i:2*i+8:2*i+8], low[2*i:2*i+8:2*i+8]
		d[0] = uint32((s[0] + s[4] + uint64(l[0]) + uint64(l[4]) + 2) / 4)
		d[1] = uint32((s[1] + s[5] + uint64(l[1]) + uint64(l[5]) + 2) / 4)
		d[2] = uint32((s[2] + s[6] + uint64(l[2]) + uint64(l[6]) + 2) / 4)
		d[3] = uint32((s[3] + s[7] + uint64(l[3]) + uint64(l[7]) + 2) / 4)
	}
}

// image rounds a plane to 8 bits.
func (f Filter) image(p plane) *Image {
	out := New(p.width, p.height)
	block.Rows(p.height, f.workers(p.width, p.height), func(next func() int) {
		for y := next(); y >= 0; y = next() {
			dst, src := out.Pix[4*y*p.width:][:4*p.width], p.v[4*y*p.width:][:4*p.width]
			if f.Normal {
				directions(dst, src)
			} else {
				f.round(dst, src)
			}
		}
	})
	return out
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
			v := min(0xffff, (uint64(s[c])+uint64(w)/2)/uint64(w))
			if f.SRGB {
				d[c] = code[v]
			} else {
				d[c] = byte((v + 0x80) / 0x101)
			}
		}
	}
}

// noDirection is a length of 1/256: what is shorter is what rounding left of directions that cancelled out.
const noDirection = 256

// directions rounds vectors that are brought to length 1. What has no length points straight up.
func directions(dst []byte, src []uint32) {
	for i := 0; i < len(dst); i += 4 {
		d, s := dst[i:i+4:i+4], src[i:i+4:i+4]
		var v [3]int64 // -65535 to 65535
		for c := range v {
			v[c] = 2*int64((uint64(s[c])+maxWeight/2)/maxWeight) - 0xffff
		}
		// Whole numbers below 2^53, a square root and a quotient: all are exact or rounded the same everywhere.
		length := math.Sqrt(float64(v[0]*v[0] + v[1]*v[1] + v[2]*v[2]))
		if length < noDirection {
			v, length = [3]int64{2: 1}, 1
		}
		for c := range v {
			d[c] = byte(float64(127.5*float64(float64(v[c])/length)) + 128) // 127.5, and a half to round
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
	// The code of a light is the one whose encoding is nearest, so codes meet halfway between them, as encoded.
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

// decodeSRGB is the transfer function of IEC 61966-2-1, from 0..1 to 0..1. math.Pow may differ in the last
// bit between machines; a test makes sure that no entry of the tables is near enough to a rounding
// boundary to feel it.
func decodeSRGB(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}
