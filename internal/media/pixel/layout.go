package pixel

import (
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// Crop copies a rectangle out of the image.
func (m *Image) Crop(x, y, width, height int) *Image {
	return &Image{width, height, crop(m.Pix, m.Width, x, y, width, height)}
}

// Crop copies a rectangle out of the image.
func (m *Float) Crop(x, y, width, height int) *Float {
	return &Float{width, height, crop(m.Pix, m.Width, x, y, width, height)}
}

// Crop copies a rectangle out of the picture.
func (p *Picture) Crop(x, y, width, height int) *Picture {
	out := &Picture{Format: p.Format, HDR: p.HDR}
	if p.Eight != nil {
		out.Eight = p.Eight.Crop(x, y, width, height)
	}
	if p.Float != nil {
		out.Float = p.Float.Crop(x, y, width, height)
	}
	return out
}

func crop[T any](pix []T, stride, x, y, width, height int) []T {
	out := make([]T, 4*width*height)
	for j := range height {
		copy(out[4*width*j:][:4*width], pix[4*((y+j)*stride+x):])
	}
	return out
}

// turned returns the pixels rotated by 180 degrees.
func turned[T any](pix []T) []T {
	out := make([]T, len(pix))
	for i := 0; i < len(pix); i += 4 {
		copy(out[len(pix)-4-i:][:4], pix[i:i+4])
	}
	return out
}

func (p *Picture) turned() *Picture {
	out := &Picture{Format: p.Format, HDR: p.HDR}
	if p.Eight != nil {
		out.Eight = &Image{p.Eight.Width, p.Eight.Height, turned(p.Eight.Pix)}
	}
	if p.Float != nil {
		out.Float = &Float{p.Float.Width, p.Float.Height, turned(p.Float.Pix)}
	}
	return out
}

// Cut cuts a strip into n pictures of the same size. They are side by side, or one below the other if the strip is
// higher than wide. It returns nil if the size is not divisible by n.
func (p *Picture) Cut(n int) []*Picture {
	width, height := p.Size()
	dx, dy := 0, 0
	switch {
	case width >= height && width%n == 0:
		width /= n
		dx = width
	case width < height && height%n == 0:
		height /= n
		dy = height
	default:
		return nil
	}
	parts := make([]*Picture, n)
	for i := range parts {
		parts[i] = p.Crop(i*dx, i*dy, width, height)
	}
	return parts
}

// crosses are the positions of the six faces, +x -x +y -y +z -z, in a cross, in squares from the upper left. The last
// face of an upright cross is rotated by 180 degrees.
var crosses = [2][6][2]int{
	{{2, 1}, {0, 1}, {1, 0}, {1, 2}, {1, 1}, {3, 1}}, // 4 by 3
	{{2, 1}, {0, 1}, {1, 0}, {1, 2}, {1, 1}, {1, 3}}, // 3 by 4
}

// Cross cuts the six faces of a cube from a picture of its unfolded sides, in landscape (4 by 3) or upright form (3 by
// 4):
//
//	.  +y .  .         .  +y .
//	-x +z +x -z        -x +z +x
//	.  -y .  .         .  -y .
//	                   .  -z .
//
// It returns nil if the picture does not have these proportions.
func (p *Picture) Cross() []*Picture {
	width, height := p.Size()
	kind, side := 0, width/4
	if height > width {
		kind, side = 1, width/3
	}
	across, down := 4-kind, 3+kind
	if side < 1 || width != across*side || height != down*side {
		return nil
	}
	faces := make([]*Picture, 6)
	for i, at := range crosses[kind] {
		faces[i] = p.Crop(at[0]*side, at[1]*side, side, side)
	}
	if kind == 1 {
		faces[5] = faces[5].turned()
	}
	return faces
}

// faceAxes has three directions for each face +x -x +y -y +z -z: of its centre, of its columns to the right, and of its
// rows downwards. They are from the table "Cube Map Face Selection" of the Vulkan and OpenGL specifications.
var faceAxes = [6][3][3]float64{
	{{1, 0, 0}, {0, 0, -1}, {0, -1, 0}},
	{{-1, 0, 0}, {0, 0, 1}, {0, -1, 0}},
	{{0, 1, 0}, {1, 0, 0}, {0, 0, 1}},
	{{0, -1, 0}, {1, 0, 0}, {0, 0, -1}},
	{{0, 0, 1}, {1, 0, 0}, {0, -1, 0}},
	{{0, 0, -1}, {-1, 0, 0}, {0, -1, 0}},
}

// Cube projects a picture of all directions on the six faces of a cube. The picture has the longitude across and the
// latitude down: its middle is the middle of +z, a quarter to the right is +x, its upper edge is +y. Light is
// interpolated between the four nearest pixels, and averaged over four points of each new pixel.
func (m *Float) Cube(side, workers int) []*Float {
	faces := make([]*Float, 6)
	for i := range faces {
		faces[i] = NewFloat(side, side)
	}
	block.Rows(6*side, workers, func(next func() int) {
		for row := next(); row >= 0; row = next() {
			face, y := row/side, row%side
			for x := range side {
				out := faces[face].Pix[4*(y*side+x):][:4]
				for _, at := range [4][2]float64{{0.25, 0.25}, {0.75, 0.25}, {0.25, 0.75}, {0.75, 0.75}} {
					s, t := 2*(float64(x)+at[0])/float64(side)-1, 2*(float64(y)+at[1])/float64(side)-1
					m.look(out, &faceAxes[face], s, t)
				}
			}
		}
	})
	return faces
}

// look adds a quarter of the light at position s, t of a face. s and t are between -1 and 1.
func (m *Float) look(out []float32, axes *[3][3]float64, s, t float64) {
	var d [3]float64
	for k := range d {
		d[k] = axes[0][k] + float64(s*axes[1][k]) + float64(t*axes[2][k])
	}
	flat := math.Sqrt(float64(d[0]*d[0]) + float64(d[2]*d[2]))
	u := turn(d[0], d[2]) + 0.5 // 0 to 1, left to right
	v := 0.5 - 2*turn(d[1], flat)
	x, y := float64(u*float64(m.Width))-0.5, float64(v*float64(m.Height))-0.5
	left, top := math.Floor(x), math.Floor(y)
	fx, fy := float32(x-left), float32(y-top)
	for j, wy := range [2]float32{1 - fy, fy} {
		row := max(0, min(int(top)+j, m.Height-1))
		for i, wx := range [2]float32{1 - fx, fx} {
			column := (int(left) + i + m.Width) % m.Width
			w := float32(wx*wy) / 4
			for c, v := range m.Pix[4*(row*m.Width+column):][:4] {
				out[c] += float32(w * v)
			}
		}
	}
}

// turn is atan2(y, x) in turns, -1/2 to 1/2. It uses only sums, products and quotients, because an arc tangent may
// differ between machines.
func turn(y, x float64) float64 {
	ay, ax := math.Abs(y), math.Abs(x)
	if ay == 0 && ax == 0 {
		return 0
	}
	t := min(ay, ax) / max(ay, ax)
	a := arctan(t) / (2 * math.Pi)
	if ay > ax {
		a = 0.25 - a
	}
	if x < 0 {
		a = 0.5 - a
	}
	if y < 0 {
		a = -a
	}
	return a
}

// arctan is for 0 to 1. It halves the angle twice, by atan(t) = 2 atan(t / (1 + sqrt(1+t²))), which leaves at most 0.2,
// where the series is short.
func arctan(t float64) float64 {
	for range 2 {
		t /= 1 + math.Sqrt(1+float64(t*t))
	}
	sq := float64(t * t)
	power, sum := t, t
	for _, n := range oddParts {
		power = -float64(power * sq)
		sum += float64(power * n)
	}
	return 4 * sum
}

// oddParts are 1/3, 1/5 and so on, because multiplication is faster than division.
var oddParts = [...]float64{1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19}

// Flipped returns the image upside down.
func (m *Float) Flipped() *Float {
	out := NewFloat(m.Width, m.Height)
	stride := 4 * m.Width
	for y := range m.Height {
		copy(out.Pix[y*stride:(y+1)*stride], m.Pix[(m.Height-1-y)*stride:])
	}
	return out
}

// Pick replaces channel to of the image by a channel of another image of the same size. Channels are 0 to 3.
func (m *Image) Pick(to int, from *Image, channel int) {
	for i := 0; i < len(m.Pix); i += 4 {
		m.Pix[i+to] = from.Pix[i+channel]
	}
}

// InvertGreen inverts the second direction of a normal map.
func (m *Image) InvertGreen() *Image {
	out := New(m.Width, m.Height)
	copy(out.Pix, m.Pix)
	for i := 1; i < len(out.Pix); i += 4 {
		out.Pix[i] = 255 - out.Pix[i]
	}
	return out
}
