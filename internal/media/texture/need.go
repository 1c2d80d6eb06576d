package texture

import (
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// Bytes that making a texture takes, as measured (go test -bench Memory ./internal/processors/texture): for each pixel of its pictures,
// of 8 bits with all that can be done to them, and of more, with their decoding; and what zstd takes besides, whatever the size.
const (
	bytesAPixel      = 37
	floatBytesAPixel = 115
	zstdBytes        = 22 << 20
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
	made := int64(bytesAPixel)
	if c.HDR || c.Deep || o.Cube == "equirect" { // which is made in floating point
		made = floatBytesAPixel
	}
	if o.Frames == "array" { // all are decoded at once
		n := int64(pixel.Frames(name, data))
		c.Pixels, c.Decode = n*c.Pixels, n*c.Decode
	}
	pixels := o.grown(c)
	return o.zstd(Need{Decoded: c.Decode, Made: max(made*pixels, c.Decode+(made-12)*pixels)})
}

// grown is the number of pixels of a picture, or of its texture if that has more.
func (o Options) grown(c pixel.Cost) int64 {
	if c.Pixels == 0 || o.Cube != "none" && o.Cube != "" {
		return c.Pixels
	}
	w, h := o.Size(c.Width, c.Height)
	size := int64(c.Width) * int64(c.Height)
	return c.Pixels / size * max(size, int64(w)*int64(h))
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
	each, made := int64(4), int64(bytesAPixel)
	if f.float() {
		each, made = 16, floatBytesAPixel
	}
	pixels := int64(f.Width) * int64(f.Height) * int64(f.Depth) * int64(f.Faces) * int64(f.Layers)
	if f.affordable(f.Layers*f.Faces*f.Depth) != nil {
		pixels = 0
	}
	return o.zstd(Need{Decoded: levels + 2*each*pixels, Made: levels + made*pixels})
}
