package pixel

import (
	"fmt"
	"math"
	"sync"
)

// Filter makes images smaller. Every new pixel is the mean of exactly the area that it covers, in the light that the
// pixels stand for.
//
// Where the ratio is not whole, the edge pixels count by the part of them that is covered. For an odd side
// 2n+1 that gives the three-tap polyphase box of "Non-Power-of-Two Mipmapping" (Guthe and Heckbert, NVIDIA, 2005); for an
// even one, the mean of two. All sums are whole numbers, without rounding until the last step, so that no
// machine's floating-point unit can make a difference.
type Filter struct {
	// SRGB: red, green and blue are sRGB-encoded and are averaged as light. Alpha never is.
	SRGB bool

	// Weighted: a pixel's colour counts by its alpha, so that what lies unseen under transparent
	// pixels does not bleed into visible ones. Leave it off where alpha is another channel of data.
	Weighted bool
}

// maxFilterSide keeps the sums of [plane.shrink] below 2^64: 32 bits a value, 16 for the weights of each direction.
const maxFilterSide = 1<<16 - 1

// Resize scales an image down to width x height, neither larger than it is.
func (f Filter) Resize(img *Image, width, height int) *Image {
	if width > img.Width || height > img.Height || width < 1 || height < 1 || max(img.Width, img.Height) > maxFilterSide {
		panic(fmt.Sprintf("pixel: resize of %d x %d to %d x %d", img.Width, img.Height, width, height))
	}
	if width == img.Width && height == img.Height {
		return img
	}
	return f.image(shrink(f.source(img), width, height))
}

// Mips is the image and its mip levels, each half as wide and high as the one before, rounded down, to 1 x 1. Levels
// are made of unrounded ones, so that errors do not add up.
func (f Filter) Mips(img *Image) []*Image {
	levels := []*Image{img}
	for src := f.source(img); src.width > 1 || src.height > 1; {
		p := shrink(src, max(1, src.width/2), max(1, src.height/2))
		levels = append(levels, f.image(p))
		src = p.source()
	}
	return levels
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

// The weight of a pixel is 256*alpha + 1. The one is there for areas that are wholly transparent: they
// keep their colour, where without it they would turn black and show as a dark rim when the texture is
// magnified. Beside an opaque pixel it counts for a twentieth of a level of 8 bits at most.
const (
	alphaWeight = 256
	maxWeight   = 255*alphaWeight + 1
)

// rows is a plane that is made as it is read: an image of a gigabyte need not be there a second time as one of four.
type rows struct {
	width, height int
	row           func(y int) []uint32 // valid until the next call
}

func (p plane) source() rows {
	return rows{p.width, p.height, func(y int) []uint32 { return p.v[4*p.width*y:][:4*p.width] }}
}

func (f Filter) source(img *Image) rows {
	buf := make([]uint32, 4*img.Width)
	light := &tables().linear
	if f.SRGB {
		light = &tables().light
	}
	have := -1 // uneven areas share the row between them
	return rows{img.Width, img.Height, func(y int) []uint32 {
		if y == have {
			return buf
		}
		have = y
		src := img.Pix[4*img.Width*y:][:len(buf)]
		for i := 0; i < len(buf); i += 4 {
			s, d := src[i:i+4:i+4], buf[i:i+4:i+4]
			w, alpha := uint32(maxWeight), uint32(s[3])*0x101*maxWeight
			if f.Weighted {
				w = uint32(s[3])*alphaWeight + 1
				alpha = w * 0xffff
			}
			d[0], d[1], d[2], d[3] = uint32(light[s[0]])*w, uint32(light[s[1]])*w, uint32(light[s[2]])*w, alpha
		}
		return buf
	}}
}

// shrink averages areas. Row j of the source covers [j*height, (j+1)*height) of a scale on which row y of the result covers
// [y*src.height, (y+1)*src.height); columns alike.
func shrink(src rows, width, height int) plane {
	out := plane{width, height, make([]uint32, 4*width*height)}
	if src.width == 2*width && src.height == 2*height {
		halve(out, src)
		return out
	}
	sum := make([]uint64, 4*src.width)
	area := uint64(src.width) * uint64(src.height)
	for y := range height {
		clear(sum)
		from, to := y*src.height, (y+1)*src.height
		for j := from / height; j*height < to; j++ {
			weight := uint64(min(to, (j+1)*height) - max(from, j*height))
			for i, v := range src.row(j) {
				sum[i] += weight * uint64(v)
			}
		}
		dst := out.v[4*y*width:][:4*width]
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
	return out
}

// halve is shrink for the usual case, in half the time: means of four pixels.
func halve(out plane, src rows) {
	sum := make([]uint64, 4*src.width)
	for y := range out.height {
		for i, v := range src.row(2 * y) {
			sum[i] = uint64(v)
		}
		low := src.row(2*y + 1)
		dst := out.v[4*out.width*y:][:4*out.width]
		for i := 0; i < len(dst); i += 4 {
			d, s, l := dst[i:i+4:i+4], sum[2*i:2*i+8:2*i+8], low[2*i:2*i+8:2*i+8]
			d[0] = uint32((s[0] + s[4] + uint64(l[0]) + uint64(l[4]) + 2) / 4)
			d[1] = uint32((s[1] + s[5] + uint64(l[1]) + uint64(l[5]) + 2) / 4)
			d[2] = uint32((s[2] + s[6] + uint64(l[2]) + uint64(l[6]) + 2) / 4)
			d[3] = uint32((s[3] + s[7] + uint64(l[3]) + uint64(l[7]) + 2) / 4)
		}
	}
}

// image rounds a plane to 8 bits.
func (f Filter) image(p plane) *Image {
	out := New(p.width, p.height)
	code := &tables().code
	for i := 0; i < len(out.Pix); i += 4 {
		d, s := out.Pix[i:i+4:i+4], p.v[i:i+4:i+4]
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
	return out
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
