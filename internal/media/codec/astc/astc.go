// Package astc writes and reads textures compressed with ASTC, low dynamic range, two-dimensional blocks.
//
// It follows the ASTC chapter of the Khronos Data Format Specification 1.3. A block is 128 bits for any footprint: a mode in
// the lowest bits, colour endpoints above it, and from the top downwards the weights that mix the endpoints.
//
//	mode.go       the eleven bits that give the layout of the weights
//	sequence.go   integers of a range that is not a power of two, packed ("integer sequence encoding")
//	range.go      those ranges, and the colours and weights of their values
//	grid.go       a grid of weights spread over the texels of a block ("infill")
//	partition.go  the pattern that assigns texels to pairs of endpoints
//	endpoint.go   values to pairs of colours
//	decode.go     a block to texels
//	encode.go     texels to a block: the candidates and their order
//	plan.go       tables for the encoder alone
//	line.go       lines through colours, which make up the layouts of a block
//	split.go      partitions that suit a block
//	way.go        endpoint modes that suit a block
//	solve.go      grids that approximate positions on lines
//	weights.go    positions on lines to weights of a grid
//	fit.go        weights to endpoints
//	pack.go       the chosen values to bits
//	file.go       the .astc container
//
// An invalid block decodes to magenta, as the specification requires; it is not an error. Arithmetic that decides bits is
// never fused, so a texture is the same on every machine.
package astc

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
)

// BlockSize is the size of a block of any footprint in bytes.
const BlockSize = 16

// Footprint is the size of a block in texels.
type Footprint struct{ Width, Height int }

// The footprints in common use, from 8 down to 0.89 bits per texel.
var (
	Block4x4   = Footprint{4, 4}
	Block5x5   = Footprint{5, 5}
	Block6x6   = Footprint{6, 6}
	Block8x8   = Footprint{8, 8}
	Block10x10 = Footprint{10, 10}
	Block12x12 = Footprint{12, 12}
)

// footprints are the two-dimensional ones of the specification, section "Block Determination and Bit Rates".
var footprints = [...]Footprint{
	{4, 4}, {5, 4}, {5, 5}, {6, 5}, {6, 6}, {8, 5}, {8, 6}, {10, 5}, {10, 6}, {8, 8}, {10, 8}, {10, 10}, {12, 10}, {12, 12},
}

const (
	maxTexels  = 12 * 12
	maxWeights = 64 // in both planes together
	maxImage   = math.MaxInt32 / 4
)

// Footprints lists all footprints that can be encoded and decoded, best quality and largest size first.
func Footprints() []Footprint { return append([]Footprint(nil), footprints[:]...) }

// Valid reports whether f is one of the specification's two-dimensional footprints.
func (f Footprint) Valid() bool { return f.index() >= 0 }

func (f Footprint) String() string { return fmt.Sprintf("%dx%d", f.Width, f.Height) }

func (f Footprint) index() int {
	for i, g := range footprints {
		if f == g {
			return i
		}
	}
	return -1
}

// Size returns the size in bytes of an image of width by height texels.
func (f Footprint) Size(width, height int) int {
	columns, rows := block.Size(width, height, f.Width, f.Height)
	return BlockSize * columns * rows
}

// check returns an error for invalid footprints, and for images whose number of RGBA values does not fit an int32.
func (f Footprint) check(width, height int) error {
	switch {
	case !f.Valid():
		return fmt.Errorf("astc: %v is not a footprint", f)
	case width < 1 || height < 1:
		return fmt.Errorf("astc: an image of %d by %d", width, height)
	case width > maxImage/height:
		return fmt.Errorf("astc: %d by %d is too large", width, height)
	}
	return nil
}

// Decode decodes the blocks in data, an image of width by height texels, to straight RGBA values, rows top down.
//
// Values are rounded to 8 bits as GPUs and astcenc do: for srgb the upper 8 of 16 bits, else to nearest by way of half
// floats. Invalid blocks and blocks of high dynamic range become opaque magenta. Decode returns an error if the length of
// data does not match the size of the image.
func Decode(f Footprint, data []byte, width, height int, srgb bool) ([]byte, error) {
	if err := f.check(width, height); err != nil {
		return nil, err
	}
	if len(data) != f.Size(width, height) {
		return nil, fmt.Errorf("astc: %d bytes of blocks, but %dx%d texels at %v are %d", len(data), width, height, f, f.Size(width, height))
	}
	columns, rows := block.Size(width, height, f.Width, f.Height)
	pix := make([]byte, 4*width*height)
	d := decoder{table: f.table(), srgb: srgb}
	var texels [4 * maxTexels]byte
	for r := range rows {
		for c := range columns {
			d.block(&texels, (*[BlockSize]byte)(data[BlockSize*(r*columns+c):]))
			block.Scatter(pix, texels[:4*f.Width*f.Height], width, height, f.Width, f.Height, c, r)
		}
	}
	return pix, nil
}

// Encode compresses the straight RGBA values of an image, rows top down, to blocks in the same order. All channels have the
// same weight. The bytes depend only on the image, f and o.Quality. The encoder ignores whether the texture will be sampled
// as sRGB: the two decoders differ by less than half a step.
func Encode(f Footprint, rgba []byte, width, height int, _ bool, o block.Options) ([]byte, error) {
	if err := f.check(width, height); err != nil {
		return nil, err
	}
	if len(rgba) != 4*width*height {
		return nil, errors.New("astc: the values are not those of an RGBA image of this size")
	}
	columns, rows := block.Size(width, height, f.Width, f.Height)
	out := make([]byte, f.Size(width, height))
	o.Rows(rows, func(next func() int) {
		e := newEncoder(f, o.Quality)
		var memo block.Memo
		var texels [4 * maxTexels]byte
		for r := next(); r >= 0; r = next() {
			for c := range columns {
				block.Gather(texels[:4*f.Width*f.Height], rgba, width, height, f.Width, f.Height, c, r)
				code, known := memo.OfAny(texels[:4*f.Width*f.Height])
				if !known {
					e.block(code, &texels)
				}
				copy(out[BlockSize*(r*columns+c):], code[:])
			}
		}
	})
	return out, nil
}

// table has the decoding tables of one footprint.
type table struct {
	Footprint
	texels int
	grids  [13][13]*grid // by width and height, at most the footprint's; nil for sizes that no block has
}

var tables = func() (t [len(footprints)]func() *table) {
	for i, f := range footprints {
		t[i] = sync.OnceValue(func() *table { return newTable(f) })
	}
	return t
}()

func (f Footprint) table() *table { return tables[f.index()]() }

func newTable(f Footprint) *table {
	t := &table{Footprint: f, texels: f.Width * f.Height}
	for w := 2; w <= f.Width; w++ {
		for h := 2; h <= f.Height && w*h <= maxWeights; h++ {
			t.grids[w][h] = newGrid(f, w, h)
		}
	}
	return t
}
