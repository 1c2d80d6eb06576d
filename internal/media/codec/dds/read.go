package dds

import (
	"encoding/binary"
	"fmt"
)

// Decode reads a file. Pixels in a format that the package does not have, such as BGRA8, 565 or grey, are converted to
// RGBA8, or to RGBA16 if they have channels of more than 8 bits. For other files with one image and its mip levels, Levels are slices of data, without a copy. The levels of arrays
// and cubes are copied.
func Decode(data []byte) (*Texture, error) {
	if len(data) < 4 || string(data[:4]) != "DDS " {
		return nil, fmt.Errorf("no signature: %w", ErrDamaged)
	}
	if len(data) < oldHeadSize {
		return nil, ErrTruncated
	}
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	if u32(4) != 124 || u32(76) != 32 {
		return nil, fmt.Errorf("header sizes %d and %d: %w", u32(4), u32(76), ErrDamaged)
	}
	// Compare the values as stored, since an int may have 32 bits. The mip level count is used regardless of the flags, as
	// Microsoft recommends.
	levels := max(1, u32(28))
	if max(u32(12), u32(16), u32(24)) > maxSide || levels > 32 {
		return nil, fmt.Errorf("%d levels of %d x %d x %d: %w", levels, u32(16), u32(12), u32(24), ErrUnsupported)
	}
	t := &Texture{Width: int(u32(16)), Height: int(u32(12))}
	var m *masks
	var err error
	rest := data[oldHeadSize:]
	if u32(80)&pixelFourCC != 0 && string(data[84:88]) == "DX10" {
		m, err = t.readNewHead(data)
		rest = data[min(len(data), headSize):]
	} else {
		m, err = t.readOldHead(data)
	}
	if err == nil {
		err = t.check(int(levels))
	}
	if err != nil {
		return nil, err
	}
	if m != nil {
		t.Levels, err = t.expand(rest, int(levels), m)
	} else {
		t.Levels, err = t.cut(rest, int(levels), t.Format.Block)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// readNewHead reads the DX10 header, which is complete. The same information in older fields is ignored.
func (t *Texture) readNewHead(data []byte) (*masks, error) {
	if len(data) < headSize {
		return nil, ErrTruncated
	}
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	dimension, misc, array := u32(132), u32(136), u32(140)
	if array > maxLayers {
		return nil, fmt.Errorf("array of %d: %w", array, ErrUnsupported)
	}
	if array > 1 { // some programs write 0 for 1
		t.Layers = int(array)
	}
	switch dimension {
	case oneD:
		return nil, fmt.Errorf("one dimension: %w", ErrUnsupported)
	case twoD:
		t.Cube = misc&miscCube != 0
	case threeD:
		if array > 1 {
			return nil, fmt.Errorf("array of %d volumes: %w", array, ErrDamaged)
		}
		t.Depth = max(1, int(u32(24)))
	default:
		return nil, fmt.Errorf("dimension %d: %w", dimension, ErrDamaged)
	}
	t.Alpha = AlphaMode(u32(144) & 7)
	t.Format = Format(u32(128)).typed()
	return t.newMasks(), nil
}

// readOldHead reads the header of a file in the form before Direct3D 10.
func (t *Texture) readOldHead(data []byte) (*masks, error) {
	caps2 := binary.LittleEndian.Uint32(data[112:])
	switch {
	case caps2&caps2Volume != 0:
		t.Depth = max(1, int(binary.LittleEndian.Uint32(data[24:])))
	case caps2&caps2Cube != 0:
		if caps2&caps2Faces != caps2Faces {
			return nil, fmt.Errorf("a cube without some of its faces: %w", ErrUnsupported)
		}
		t.Cube = true
	}
	return t.oldFormat(data[76:108])
}

// cut collects levels from data that is ordered by image. It checks the length of the data before it allocates memory.
func (t *Texture) cut(data []byte, levels int, block func() (width, height, bytes int)) ([][]byte, error) {
	sizes := make([]int, levels)
	for n, left := 0, len(data); n < levels; n++ {
		sizes[n] = t.sizeIn(n, block)
		all := times(sizes[n], t.images())
		if all > left {
			return nil, fmt.Errorf("level %d: %w", n, ErrTruncated)
		}
		left -= all
	}
	out := make([][]byte, levels)
	for i := range t.images() {
		for n, size := range sizes {
			one := data[:size:size]
			data = data[size:]
			switch {
			case t.images() == 1:
				out[n] = one
			case i == 0:
				out[n] = append(make([]byte, 0, size*t.images()), one...)
			default:
				out[n] = append(out[n], one...)
			}
		}
	}
	return out, nil
}
