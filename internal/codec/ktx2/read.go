package ktx2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Decode reads a file. Levels are slices of data: nothing is copied, and nothing of a size that
// the file claims is allocated.
func Decode(data []byte) (*Texture, error) {
	if len(data) < len(identifier) || string(data[:len(identifier)]) != identifier {
		return nil, fmt.Errorf("no identifier: %w", ErrDamaged)
	}
	if len(data) < levelsAt {
		return nil, ErrTruncated
	}
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	width, height, levels := u32(20), u32(24), u32(40)
	if width > maxSide || height > maxSide {
		return nil, fmt.Errorf("size %d x %d: %w", width, height, ErrUnsupported)
	}
	t := &Texture{Format: Format(u32(12)), Width: int(width), Height: int(height)}
	for _, f := range []struct {
		name string
		at   int
		want uint32
	}{
		{"typeSize", 16, 1}, {"pixelDepth", 28, 0}, {"layerCount", 32, 0}, {"faceCount", 36, 1}, {"supercompressionScheme", 44, 0},
	} {
		if v := u32(f.at); v != f.want {
			return nil, fmt.Errorf("%s %d: %w", f.name, v, ErrUnsupported)
		}
	}
	if levels < 1 || levels > 32 {
		return nil, fmt.Errorf("%d levels: %w", levels, ErrUnsupported)
	}
	if len(data) < levelsAt+int(levels)*levelEntry {
		return nil, ErrTruncated
	}
	for n := range int(levels) {
		at := levelsAt + n*levelEntry
		l, err := part(data, binary.LittleEndian.Uint64(data[at:]), binary.LittleEndian.Uint64(data[at+8:]))
		if err != nil {
			return nil, fmt.Errorf("level %d: %w", n, err)
		}
		t.Levels = append(t.Levels, l)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	dfd, err := part(data, uint64(u32(48)), uint64(u32(52)))
	if err == nil {
		err = t.readDescriptor(dfd)
	}
	if err != nil {
		return nil, fmt.Errorf("data format descriptor: %w", err)
	}
	kvd, err := part(data, uint64(u32(56)), uint64(u32(60)))
	if err == nil {
		err = t.readKeyValues(kvd)
	}
	if err != nil {
		return nil, fmt.Errorf("key/value data: %w", err)
	}
	return t, nil
}

// part is data[at:at+size], if it is there.
func part(data []byte, at, size uint64) ([]byte, error) {
	if n := uint64(len(data)); at > n || size > n-at {
		return nil, ErrTruncated
	}
	return data[at : at+size : at+size], nil
}

// readDescriptor wants the very descriptor that belongs to the format; only premultiplication is up to the file.
func (t *Texture) readDescriptor(dfd []byte) error {
	const flagsAt = 15
	if len(dfd) <= flagsAt {
		return ErrTruncated
	}
	t.Premultiplied = dfd[flagsAt]&flagPremultiplied != 0
	if !bytes.Equal(dfd, t.descriptor()) {
		return fmt.Errorf("not that of vkFormat %d: %w", t.Format, ErrUnsupported)
	}
	return nil
}

func (t *Texture) readKeyValues(kvd []byte) error {
	for len(kvd) > 0 {
		if len(kvd) < 4 {
			return ErrTruncated
		}
		size := binary.LittleEndian.Uint32(kvd)
		entry, err := part(kvd, 4, uint64(size))
		if err != nil {
			return err
		}
		key, value, ok := strings.Cut(string(entry), "\x00")
		if !ok || key == "" {
			return fmt.Errorf("entry without a key: %w", ErrDamaged)
		}
		value = strings.TrimSuffix(value, "\x00")
		switch key {
		case keyOrientation:
			if value != "rd" && value != "ru" {
				return fmt.Errorf("orientation %q: %w", value, ErrUnsupported)
			}
			t.BottomUp = value == "ru"
		case keyWriter:
			t.Writer = value
		}
		kvd = kvd[min(len(kvd), align(4+int(size))):]
	}
	return nil
}
