package texture

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/codec/png"
)

// write writes the levels as a file of the container's format.
func (p *Plan) write(levels [][]byte) ([][]byte, error) {
	layers, depth := 0, 0
	switch p.images.Shape {
	case Array:
		layers = len(p.images.Pictures)
	case Volume:
		depth = len(p.images.Pictures)
	}
	switch p.o.Container {
	case "ktx2":
		t := &ktx2.Texture{
			Format: p.format.ktx2, Width: p.Width, Height: p.Height, Depth: depth, Layers: layers, Cube: p.images.Shape == Cube,
			Levels: levels, Premultiplied: p.premultiplies(), BottomUp: p.flips(), Zstd: p.o.Compress == "zstd", Writer: writer,
		}
		if p.SRGB {
			t.Format = p.format.ktx2SRGB
		}
		if p.spread {
			t.Swizzle = "rrr1"
		}
		return ktx2.Pieces(t)
	case "dds":
		t := &dds.Texture{
			Format: p.format.dds, Width: p.Width, Height: p.Height, Depth: depth, Layers: layers, Cube: p.images.Shape == Cube,
			Levels: levels, Alpha: p.alphaMode(),
		}
		if p.SRGB {
			t.Format = p.format.ddsSRGB
		}
		return dds.Pieces(t)
	}
	if p.o.Container == "png" {
		file, err := p.writePNG(levels[0])
		return [][]byte{file}, err
	}
	return nil, fmt.Errorf("texture container %q is unknown", p.o.Container)
}

// writePNG writes the first level as a PNG. Premultiplied colours stay premultiplied: engines that load PNG blend them
// as they are.
func (p *Plan) writePNG(level []byte) ([]byte, error) {
	if p.format.channels == 1 {
		return png.EncodeGrey(level, p.Width, p.Height)
	}
	return png.Encode(level, p.Width, p.Height)
}

func (p *Plan) alphaMode() dds.AlphaMode {
	switch {
	case p.premultiplies():
		return dds.AlphaPremultiplied
	case p.format.channels < 4:
		return dds.AlphaUnknown
	case p.color:
		return dds.AlphaStraight
	}
	return dds.AlphaCustom
}
