package dds

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Encode encodes a file with a DX10 header.
func Encode(t *Texture) ([]byte, error) {
	pieces, err := Pieces(t)
	return slices.Concat(pieces...), err
}

// Pieces returns what Encode does, in pieces, which share the memory of the levels.
func Pieces(t *Texture) ([][]byte, error) {
	if err := t.check(len(t.Levels)); err != nil {
		return nil, err
	}
	for n, l := range t.Levels {
		if want := t.levelSize(n); len(l) != want {
			return nil, fmt.Errorf("level %d has %d bytes, not %d: %w", n, len(l), want, ErrDamaged)
		}
	}
	pieces := [][]byte{t.head()}
	for i := range t.images() {
		for n, l := range t.Levels {
			one := t.imageSize(n)
			pieces = append(pieces, l[i*one:(i+1)*one])
		}
	}
	return pieces, nil
}

// head returns everything before the levels. Flags, caps and the pitch repeat other fields; Microsoft asks writers to set
// them, and readers not to trust them.
func (t *Texture) head() []byte {
	flags, caps, caps2, misc, dimension := flagsBase, capsTexture, 0, 0, twoD
	w, _, size := t.Format.Block()
	pitch := t.Width * size
	if t.Format.compressed() {
		flags |= flagLinearSize
		pitch = (t.Width + w - 1) / w * ((t.Height + w - 1) / w) * size // one slice of level 0; blocks are square
	} else {
		flags |= flagPitch
	}
	if len(t.Levels) > 1 {
		flags |= flagMips
		caps |= capsComplex | capsMips
	}
	if t.images() > 1 {
		caps |= capsComplex
	}
	if t.Cube {
		caps2, misc = caps2Cube|caps2Faces, miscCube
	}
	if t.Depth > 0 {
		flags |= flagDepth
		caps2, dimension = caps2Volume, threeD
	}
	b := make([]byte, headSize)
	put := func(at, v int) { binary.LittleEndian.PutUint32(b[at:], uint32(v)) }
	copy(b, "DDS ")
	put(4, 124)
	put(8, flags)
	put(12, t.Height)
	put(16, t.Width)
	put(20, pitch)
	put(24, t.Depth)
	put(28, len(t.Levels))
	put(76, 32)
	put(80, pixelFourCC)
	copy(b[84:], "DX10")
	put(108, caps)
	put(112, caps2)
	put(128, int(t.Format))
	put(132, dimension)
	put(136, misc)
	put(140, max(1, t.Layers)) // for a cube map: number of cubes
	put(144, int(t.Alpha))
	return b
}
