// Package placeholder has small files that replace source files which cannot be read: a checkerboard for an image,
// silence for a sound, a cube for a model. The processor of the source makes products of the placeholder, with the same
// settings. The products therefore have the type and format that the game expects.
//
// The bytes are the same on every machine. The checkerboard is magenta and black, because artists do not use these
// colours and it is easy to see.
package placeholder

import (
	"bytes"
	_ "embed" // the silent sounds below
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
)

// The checkerboard has 8 by 8 fields of 8 by 8 pixels. For all block formats up to 8 by 8, a field is then made of
// blocks of one colour.
const (
	side  = 64
	field = 8
)

// Picture returns the checkerboard as a PNG. It replaces an image of any format, because readers of images detect the
// format from the bytes.
func Picture() []byte {
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.NoCompression} // the output of other levels depends on Go's version
	enc.Encode(&b, checkerboard())                          // writing to memory cannot fail
	return b.Bytes()
}

// KTX2 returns the checkerboard as a KTX 2.0 texture.
func KTX2() []byte {
	data, _ := ktx2.Encode(&ktx2.Texture{Format: ktx2.RGBA8SRGB, Width: side, Height: side, Levels: [][]byte{checkerboard().Pix}}) // no error
	return data
}

// DDS returns the checkerboard as a DirectDraw Surface.
func DDS() []byte {
	data, _ := dds.Encode(&dds.Texture{Format: dds.RGBA8SRGB, Width: side, Height: side, Levels: [][]byte{checkerboard().Pix}}) // no error
	return data
}

func checkerboard() *image.NRGBA {
	im := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			c := color.NRGBA{A: 255}
			if (x/field+y/field)%2 == 0 {
				c.R, c.B = 255, 255
			}
			im.SetNRGBA(x, y, c)
		}
	}
	return im
}

// A tenth of a second of silence, mono, at 48,000 Hz. They are files made by oggenc, opusenc and lame, because Kiln has
// no encoder for these formats, and a game that plays Ogg cannot use WAV.
var (
	//go:embed silence.ogg
	silentVorbis []byte
	//go:embed silence.opus
	silentOpus []byte
	//go:embed silence.mp3
	silentMP3 []byte
)

// Vorbis returns silence as Ogg Vorbis.
func Vorbis() []byte { return slices.Clone(silentVorbis) }

// Opus returns silence as Ogg Opus.
func Opus() []byte { return slices.Clone(silentOpus) }

// MP3 returns silence as MP3.
func MP3() []byte { return slices.Clone(silentMP3) }

// WAV returns a tenth of a second of silence as WAV: 16 bits, mono, at 48,000 Hz. It also replaces FLAC and QOA,
// because readers of sounds detect the format from the bytes.
func WAV() []byte {
	const rate, samples, width = 48_000, 4800, 2
	le := binary.LittleEndian
	b := []byte("RIFF")
	b = le.AppendUint32(b, 36+samples*width)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // PCM
	b = le.AppendUint16(b, 1) // one channel
	b = le.AppendUint32(b, rate)
	b = le.AppendUint32(b, rate*width)
	b = le.AppendUint16(b, width)
	b = le.AppendUint16(b, 8*width)
	b = append(b, "data"...)
	b = le.AppendUint32(b, samples*width)
	return append(b, make([]byte, samples*width)...)
}

// Each side of the cube has four corners of its own, so that its normals are flat: 24 positions and normals, 36
// indices.
const corners, indices = 24, 36

// mesh returns the positions and normals as 32-bit floats, then the indices as 16-bit integers, without gaps.
func mesh() []byte {
	le := binary.LittleEndian
	var positions, normals []float32
	var index []uint16
	for axis := range 3 {
		for _, out := range []float32{-0.5, 0.5} {
			first := uint16(len(positions) / 3)
			for _, corner := range [4][2]float32{{-0.5, -0.5}, {0.5, -0.5}, {0.5, 0.5}, {-0.5, 0.5}} {
				var p, n [3]float32
				p[axis], n[axis] = out, 2*out
				p[(axis+1)%3], p[(axis+2)%3] = corner[0], corner[1]
				positions, normals = append(positions, p[:]...), append(normals, n[:]...)
			}
			turn := [6]uint16{0, 1, 2, 0, 2, 3} // counter-clockwise, seen from outside
			if out < 0 {
				turn = [6]uint16{0, 2, 1, 0, 3, 2}
			}
			for _, k := range turn {
				index = append(index, first+k)
			}
		}
	}
	var b []byte
	b, _ = binary.Append(b, le, positions) // fixed size: cannot fail
	b, _ = binary.Append(b, le, normals)
	b, _ = binary.Append(b, le, index)
	return b
}

// document returns the glTF of the cube with the given buffer.
func document(buffer string, size int) []byte {
	const floats = corners * 3 * 4
	return fmt.Appendf(nil, `{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"name":"placeholder","mesh":0}],`+
		`"meshes":[{"name":"placeholder","primitives":[{"attributes":{"POSITION":0,"NORMAL":1},"indices":2,"material":0}]}],`+
		`"materials":[{"name":"placeholder","pbrMetallicRoughness":{"baseColorFactor":[1,0,1,1],"metallicFactor":0}}],`+
		`"accessors":[{"bufferView":0,"componentType":5126,"count":%d,"type":"VEC3","min":[-0.5,-0.5,-0.5],"max":[0.5,0.5,0.5]},`+
		`{"bufferView":1,"componentType":5126,"count":%d,"type":"VEC3"},{"bufferView":2,"componentType":5123,"count":%d,"type":"SCALAR"}],`+
		`"bufferViews":[{"buffer":0,"byteLength":%d,"target":34962},{"buffer":0,"byteOffset":%d,"byteLength":%d,"target":34962},{"buffer":0,"byteOffset":%d,"byteLength":%d,"target":34963}],`+
		`"buffers":[{%s"byteLength":%d}]}`, corners, corners, indices, floats, floats, floats, 2*floats, 2*indices, buffer, size)
}

// GLTF returns a cube as a glTF file with an embedded buffer.
func GLTF() []byte {
	m := mesh()
	return document(`"uri":"data:application/octet-stream;base64,`+base64.StdEncoding.EncodeToString(m)+`",`, len(m))
}

// GLB returns the same cube as a GLB file: a header and two chunks, whose sizes are multiples of four.
func GLB() []byte {
	le := binary.LittleEndian
	m := mesh()
	for len(m)%4 != 0 {
		m = append(m, 0)
	}
	text := document("", len(m))
	for len(text)%4 != 0 {
		text = append(text, ' ')
	}
	b := []byte("glTF")
	b = le.AppendUint32(b, 2)
	b = le.AppendUint32(b, uint32(12+8+len(text)+8+len(m)))
	b = le.AppendUint32(b, uint32(len(text)))
	b = append(append(b, "JSON"...), text...)
	b = le.AppendUint32(b, uint32(len(m)))
	return append(append(b, "BIN\x00"...), m...)
}
