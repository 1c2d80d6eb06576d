package texture

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/astc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bcn"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bptc"
	"github.com/kiln-pipeline/kiln/internal/media/codec/etc2"
	"github.com/kiln-pipeline/kiln/internal/media/codec/hdrpack"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// unpack decodes one image of a texture file. Channels that the format does not have are 0; alpha is 1.
func unpack(f ktx2.Format, data []byte, width, height int) (*pixel.Picture, error) {
	if pix, err := unpackLight(f, data, width, height); pix != nil || err != nil {
		return &pixel.Picture{HDR: true, Float: &pixel.Float{Width: width, Height: height, Pix: pix}}, err
	}
	if n := map[ktx2.Format]int{ktx2.R16: 1, ktx2.RG16: 2, ktx2.RGBA16: 4}[f]; n > 0 {
		return pixel.OfSixteens(data, n, width, height), nil
	}
	pix, err := unpackBytes(f, data, width, height)
	return &pixel.Picture{Eight: &pixel.Image{Width: width, Height: height, Pix: pix}}, err
}

func unpackBytes(f ktx2.Format, data []byte, width, height int) ([]byte, error) {
	switch f {
	case ktx2.R8, ktx2.R8SRGB:
		return widened(data, 1), nil
	case ktx2.RG8, ktx2.RG8SRGB:
		return widened(data, 2), nil
	case ktx2.RGB8, ktx2.RGB8SRGB:
		return widened(data, 3), nil
	case ktx2.RGBA8, ktx2.RGBA8SRGB:
		return widened(data, 4), nil
	case ktx2.BGRA8, ktx2.BGRA8SRGB:
		pix := widened(data, 4)
		for i := 0; i < len(pix); i += 4 {
			pix[i], pix[i+2] = pix[i+2], pix[i]
		}
		return pix, nil
	case ktx2.BC7, ktx2.BC7SRGB:
		return bptc.DecodeBC7(data, width, height)
	}
	if format, ok := bcnOf[f]; ok {
		return bcn.Decode(format, data, width, height)
	}
	if format, ok := etc2Of[f]; ok {
		return etc2.Decode(format, data, width, height)
	}
	if w, h, _ := f.Block(); f == ktx2.ASTC(w, h, f.SRGB()) {
		return astc.Decode(astc.Footprint{Width: w, Height: h}, data, width, height, f.SRGB())
	}
	return nil, fmt.Errorf("%v cannot be decoded: %w", f, ktx2.ErrUnsupported)
}

// widened converts one to four channels to RGBA.
func widened(data []byte, channels int) []byte {
	pix := make([]byte, len(data)/channels*4)
	for i, j := 0, 0; i < len(pix); i, j = i+4, j+channels {
		pix[i+3] = 255
		copy(pix[i:i+4], data[j:j+channels])
	}
	return pix
}

var bcnOf = map[ktx2.Format]bcn.Format{
	ktx2.BC1: bcn.BC1, ktx2.BC1SRGB: bcn.BC1, ktx2.BC1A: bcn.BC1A, ktx2.BC1ASRGB: bcn.BC1A, ktx2.BC2: bcn.BC2, ktx2.BC2SRGB: bcn.BC2,
	ktx2.BC3: bcn.BC3, ktx2.BC3SRGB: bcn.BC3, ktx2.BC4: bcn.BC4, ktx2.BC4Signed: bcn.BC4S, ktx2.BC5: bcn.BC5, ktx2.BC5Signed: bcn.BC5S,
}

var etc2Of = map[ktx2.Format]etc2.Format{
	ktx2.ETC2RGB: etc2.RGB8, ktx2.ETC2RGBSRGB: etc2.RGB8, ktx2.ETC2RGBA1: etc2.RGB8A1, ktx2.ETC2RGBA1SRGB: etc2.RGB8A1,
	ktx2.ETC2RGBA: etc2.RGBA8, ktx2.ETC2RGBASRGB: etc2.RGBA8,
	ktx2.EACR: etc2.R11, ktx2.EACRSigned: etc2.R11S, ktx2.EACRG: etc2.RG11, ktx2.EACRGSigned: etc2.RG11S,
}

// unpackLight decodes floating point formats. It returns nil for other formats.
func unpackLight(f ktx2.Format, data []byte, width, height int) ([]float32, error) {
	switch f {
	case ktx2.RGBA16F:
		return hdrpack.DecodeRGBA16F(data), nil
	case ktx2.RGB9E5:
		return hdrpack.DecodeRGB9E5(data), nil
	case ktx2.BC6H, ktx2.BC6HSigned:
		return bptc.DecodeBC6H(data, width, height, f == ktx2.BC6HSigned)
	case ktx2.RGBA32F:
		pix := make([]float32, 4*width*height)
		for i := range pix {
			pix[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return pix, nil
	}
	return nil, nil
}
