package texture

import (
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// Bytes that making a texture takes at its peak for each pixel of its pictures, as measured (TestNeedIsEnough of package texture in
// internal/processors): their pixels, what is made of them at a time, and the levels. zstd takes more besides, whatever the size.
const (
	plainBytes = 18 // of 8 bits, which are only encoded
	otherBytes = 30 // of 8 bits, with all that can be done to them
	deepBytes  = 42 // of 16 bits or light, made into one of 8 bits
	lightBytes = 82 // of any, made in floating point
	zstdBytes  = 22 << 20
)

// Need is the memory that a source takes, in bytes.
type Need struct {
	Decoded int64 // until its pixels are there
	Made    int64 // until a texture is made of them, as well
}

// Need tells by the head of a picture or texture file, whose name serves only to know a TGA, how much memory it takes. This is the one
// place that knows: who decodes asks for as much before, where a job can. What options refuse takes nothing, as nothing is decoded.
func (o Options) Need(name string, data []byte) Need {
	lim := o.Limits()
	if IsFile(data) {
		return o.needOfFile(data, lim)
	}
	c := pixel.CostOf(name, data, lim)
	if c.Pixels == 0 { // it cannot be decoded
		return Need{}
	}
	made := o.made(c.Width, c.Height, c.HDR || c.Deep, c.HDR)
	if o.Frames == "array" { // all are decoded at once
		n := int64(pixel.Frames(name, data))
		c.Pixels, c.Decode = n*c.Pixels, n*c.Decode
	}
	return o.zstd(Need{Decoded: c.Decode, Made: max(made*o.grown(c.Pixels, c.Width, c.Height), c.Decode)})
}

// made is the bytes for each pixel of a picture. A deep one has more than 8 bits; light is brighter than white.
func (o Options) made(width, height int, deep, light bool) int64 {
	f, err := formatNamed(o.Format)
	switch {
	case o.Cube == "equirect", f.linear(), err != nil && (light || deep && o.Use == "data"):
		return lightBytes
	case deep:
		return deepBytes
	case o.untouched(width, height):
		return plainBytes
	}
	return otherBytes
}

// untouched reports whether a picture is encoded as it is.
func (o Options) untouched(width, height int) bool {
	w, h := o.Size(width, height)
	return w == width && h == height && !o.Premultiply && o.AlphaCutoff == 0 && o.ColorKey == "" && o.Bleed == 0 && !o.GreenUp && !o.Flip &&
		o.R+o.G+o.B+o.A == "" && (o.Cube == "" || o.Cube == "none") && o.SliceCount == 0
}

// grown is the number of pixels of pictures of one size, or of their texture if that has more.
func (o Options) grown(pixels int64, width, height int) int64 {
	if pixels == 0 || o.Cube != "none" && o.Cube != "" {
		return pixels
	}
	w, h := o.Size(width, height)
	size := int64(width) * int64(height)
	return pixels / size * max(size, int64(w)*int64(h))
}

func (o Options) zstd(n Need) Need {
	if o.Compress == "zstd" {
		n.Made += zstdBytes
	}
	return n
}

// needOfFile is of a KTX2 file, which may be packed, or a DDS file, which is as large as its content.
func (o Options) needOfFile(data []byte, lim pixel.Limits) Need {
	f, err := peek(data, lim)
	if err != nil {
		return Need{}
	}
	levels := int64(len(data))
	if f.Container == "ktx2" {
		levels = f.t.Size(f.Levels)
	}
	if f.Keeps(o) {
		return o.zstd(Need{Decoded: levels, Made: 3 * levels}) // themselves, and the file, which may grow as it is packed
	}
	made := o.made(f.Width, f.Height, f.perPixel() > 4, f.float())
	pixels := int64(f.Width) * int64(f.Height) * int64(f.Depth) * int64(f.Faces) * int64(f.Layers)
	if f.affordable(f.Layers*f.Faces*f.Depth) != nil {
		pixels = 0
	}
	return o.zstd(Need{Decoded: levels + 2*f.perPixel()*pixels, Made: levels + made*o.grown(pixels, f.Width, f.Height)})
}
