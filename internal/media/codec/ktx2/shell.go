package ktx2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Shell describes a file whose levels Kiln does not decode.
type Shell struct {
	Format Format // 0 for Basis Universal and other formats without a Vulkan number
	Scheme string // supercompression: "", "BasisLZ", "Zstandard", "ZLIB", "number 9"

	Width, Height, Depth, Layers, Faces, Levels int
}

func (s *Shell) String() string {
	name := fmt.Sprintf("format %d of Vulkan", s.Format)
	if s.Format == 0 {
		name = "a format without a number in Vulkan"
	}
	if s.Scheme != "" {
		name += ", packed by " + s.Scheme
	}
	return name
}

// ReadShell checks the structure of a file of any format: its head, the positions of its levels, its descriptor and its
// key/values. It does not check the content of the levels. maxBytes limits the total size that they claim to have when
// unpacked.
func ReadShell(data []byte, maxSide int, maxBytes int64) (*Shell, error) {
	if len(data) < levelsAt {
		return nil, ErrTruncated
	}
	if string(data[:len(identifier)]) != identifier {
		return nil, fmt.Errorf("no identifier: %w", ErrDamaged)
	}
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	width, height, depth, layers, faces, count, scheme := u32(20), u32(24), u32(28), u32(32), u32(36), u32(40), u32(44)
	side := max(width, height, depth)
	switch {
	case width == 0 || depth > 0 && height == 0 || faces != 1 && faces != 6 || faces == 6 && (width != height || depth > 0):
		return nil, fmt.Errorf("%d x %d x %d with %d faces: %w", width, height, depth, faces, ErrDamaged)
	case uint64(side) > uint64(maxSide) || layers > 1<<16:
		return nil, fmt.Errorf("%d x %d x %d, %d layers: %w", width, height, depth, layers, ErrTooLarge)
	case int(count) > bits.Len32(side):
		return nil, fmt.Errorf("%d levels of %d x %d x %d: %w", count, width, height, depth, ErrDamaged)
	}
	s := &Shell{Format: Format(u32(12)), Width: int(width), Height: int(height), Depth: int(depth), Layers: int(layers), Faces: int(faces), Levels: max(1, int(count))}
	if names := []string{"", "BasisLZ", "Zstandard", "ZLIB"}; int64(scheme) < int64(len(names)) {
		s.Scheme = names[scheme]
	} else {
		s.Scheme = fmt.Sprintf("number %d", scheme)
	}
	return s, errors.Join(checkLevels(data, s.Levels, scheme, maxBytes), checkParts(data, scheme))
}

// checkLevels checks the index of levels: u64 offset, bytes and unpacked bytes of each.
func checkLevels(data []byte, count int, scheme uint32, maxBytes int64) error {
	if len(data) < levelsAt+count*levelEntry {
		return ErrTruncated
	}
	for n := range count {
		u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(data[levelsAt+n*levelEntry+i:]) }
		if _, err := part(data, u64(0), u64(8)); err != nil {
			return fmt.Errorf("level %d: %w", n, err)
		}
		size := u64(16)
		switch {
		case u64(0) < uint64(levelsAt+count*levelEntry) || u64(8) == 0, scheme == schemeNone && size != u64(8):
			return fmt.Errorf("level %d of %d bytes at %d, unpacked %d: %w", n, u64(8), u64(0), size, ErrDamaged)
		case size > uint64(maxBytes):
			return fmt.Errorf("level %d claims %d bytes: %w", n, size, ErrTooLarge)
		}
		maxBytes -= int64(size)
	}
	return nil
}

// checkParts checks the other parts: descriptor, key/values, and the data that all levels share in BasisLZ.
func checkParts(data []byte, scheme uint32) error {
	u32 := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(data[i:])) }
	dfd, err := part(data, u32(indexAt), u32(indexAt+4))
	if err != nil {
		return fmt.Errorf("data format descriptor: %w", err)
	}
	if len(dfd) < 28 || uint64(binary.LittleEndian.Uint32(dfd)) != uint64(len(dfd)) {
		return fmt.Errorf("data format descriptor of %d bytes: %w", len(dfd), ErrDamaged)
	}
	kvd, err := part(data, u32(indexAt+8), u32(indexAt+12))
	if err == nil {
		err = (&Texture{}).readKeyValues(kvd)
	}
	if err != nil && !errors.Is(err, ErrUnsupported) { // an unsupported orientation, which does not matter here
		return fmt.Errorf("key/value data: %w", err)
	}
	shared, err := part(data, binary.LittleEndian.Uint64(data[indexAt+16:]), binary.LittleEndian.Uint64(data[indexAt+24:]))
	if err == nil && scheme == 1 && len(shared) == 0 {
		err = ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("data that the levels share: %w", err)
	}
	return nil
}
