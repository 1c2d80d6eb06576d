package ktx2

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// MaxInflated is the limit of Decode for the total size of all levels, in the file or decompressed.
const MaxInflated = 1 << 30

// Decode reads a file. Levels are slices of data, without a copy, unless they are compressed.
func Decode(data []byte) (*Texture, error) { return DecodeLimit(data, MaxInflated) }

// DecodeLimit is Decode with the caller's limit for the total size of all levels.
func DecodeLimit(data []byte, maxBytes int) (*Texture, error) {
	t, levels, err := parse(data)
	if err != nil {
		return nil, err
	}
	if t.Size(len(levels)) > int64(maxBytes) {
		return nil, fmt.Errorf("%v of %s: %w", t.Format, t.size(), ErrTooLarge)
	}
	if !t.Zstd {
		t.Levels = levels
		return t, nil
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	for n, l := range levels {
		b, err := inflate(dec, l, t.levelSize(n))
		if err != nil {
			return nil, fmt.Errorf("level %d: %w", n, err)
		}
		t.Levels = append(t.Levels, b)
	}
	return t, nil
}

// Size returns the total size of the given number of uncompressed levels, the largest first, in bytes.
func (t *Texture) Size(levels int) int64 {
	sum := int64(0)
	for n := range levels {
		sum += int64(t.levelSize(n))
	}
	return sum
}

// DecodeConfig reads everything except the levels, and returns their number.
func DecodeConfig(data []byte) (t *Texture, levels int, err error) {
	t, parts, err := parse(data)
	return t, len(parts), err
}

// inflate decompresses a level to size bytes. It allocates memory only after a check that the level can have that size.
func inflate(dec *zstd.Decoder, level []byte, size int) ([]byte, error) {
	// The densest form in Zstandard is a block of 4 bytes for 128 KiB of one value (RFC 8878, section 3.1.1.2).
	const densest = 128 << 10 / 4
	if size/densest > len(level) {
		return nil, fmt.Errorf("%d bytes cannot hold %d: %w", len(level), size, ErrTruncated)
	}
	var head zstd.Header
	if err := head.Decode(level); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if head.HasFCS && head.FrameContentSize > uint64(size) {
		return nil, fmt.Errorf("%d bytes, not %d: %w", head.FrameContentSize, size, ErrDamaged)
	}
	if size/dense > len(level) { // dense levels are counted first
		n, err := count(level, size)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if n != size {
			return nil, fmt.Errorf("%d bytes, not %d: %w", n, size, ErrDamaged)
		}
	}
	b, err := dec.DecodeAll(level, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(b) != size {
		return nil, fmt.Errorf("%d bytes, not %d: %w", len(b), size, ErrDamaged)
	}
	return b, nil
}

// dense is the number of bytes per compressed byte up to which a level is decompressed without being counted.
const dense = 64

// count returns the number of bytes that a level decompresses to, at most most+1, without storing them.
func count(level []byte, most int) (int, error) {
	dec, err := zstd.NewReader(bytes.NewReader(level), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return 0, err
	}
	defer dec.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(dec, int64(most)+1))
	return int(n), err
}

// parse reads everything except the levels, and returns these as slices of data.
func parse(data []byte) (*Texture, [][]byte, error) {
	if len(data) < len(identifier) || string(data[:len(identifier)]) != identifier {
		return nil, nil, fmt.Errorf("no identifier: %w", ErrDamaged)
	}
	if len(data) < levelsAt {
		return nil, nil, ErrTruncated
	}
	t, count, err := parseHead(data)
	if err != nil {
		return nil, nil, err
	}
	levels, err := t.cut(data, count)
	if err != nil {
		return nil, nil, err
	}
	u32 := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(data[i:])) }
	dfd, err := part(data, u32(indexAt), u32(indexAt+4))
	if err == nil {
		err = t.readDescriptor(dfd)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("data format descriptor: %w", err)
	}
	kvd, err := part(data, u32(indexAt+8), u32(indexAt+12))
	if err == nil {
		err = t.readKeyValues(kvd)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("key/value data: %w", err)
	}
	if err := t.check(count); err != nil { // again, with the key/values
		return nil, nil, err
	}
	return t, levels, nil
}

// parseHead reads the first 48 bytes.
func parseHead(data []byte) (t *Texture, levels int, err error) {
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(data[i:]) }
	scheme, typeSize, faces, count := u32(44), u32(16), u32(36), u32(40)
	switch scheme {
	case schemeNone, schemeZstandard:
	case 1:
		return nil, 0, fmt.Errorf("BasisLZ supercompression: %w", ErrUnsupported)
	case 3:
		return nil, 0, fmt.Errorf("ZLIB supercompression: %w", ErrUnsupported)
	default:
		return nil, 0, fmt.Errorf("supercompression scheme %d: %w", scheme, ErrUnsupported)
	}
	if faces != 1 && faces != 6 {
		return nil, 0, fmt.Errorf("%d faces: %w", faces, ErrDamaged)
	}
	// Compare the values as stored, since an int may have 32 bits.
	if max(u32(20), u32(24), u32(28), u32(32)) > maxSide || count > 32 {
		return nil, 0, fmt.Errorf("size %d x %d x %d, %d layers, %d levels: %w", u32(20), u32(24), u32(28), u32(32), count, ErrUnsupported)
	}
	t = &Texture{Format: Format(u32(12)), Width: int(u32(20)), Height: int(u32(24)), Depth: int(u32(28)), Layers: int(u32(32)),
		Cube: faces == 6, Zstd: scheme == schemeZstandard}
	levels = max(1, int(count)) // 0: the game generates the other levels
	if err := t.check(levels); err != nil {
		return nil, 0, err
	}
	if form, _ := t.Format.info(); typeSize != uint32(form.typeSize) {
		return nil, 0, fmt.Errorf("typeSize %d in %v: %w", typeSize, t.Format, ErrDamaged)
	}
	return t, levels, nil
}

// cut returns the levels as they are in the file.
func (t *Texture) cut(data []byte, count int) ([][]byte, error) {
	if len(data) < levelsAt+count*levelEntry {
		return nil, ErrTruncated
	}
	levels := make([][]byte, count)
	for n := range levels {
		u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(data[levelsAt+n*levelEntry+i:]) }
		l, err := part(data, u64(0), u64(8))
		if err != nil {
			return nil, fmt.Errorf("level %d: %w", n, err)
		}
		if want := uint64(t.levelSize(n)); u64(16) != want || !t.Zstd && uint64(len(l)) != want {
			return nil, fmt.Errorf("level %d has %d bytes, not %d: %w", n, u64(16), want, ErrDamaged)
		}
		levels[n] = l
	}
	return levels, nil
}

// part returns data[at:at+size], or an error if data is too short.
func part(data []byte, at, size uint64) ([]byte, error) {
	if n := uint64(len(data)); at > n || size > n-at {
		return nil, ErrTruncated
	}
	return data[at : at+size : at+size], nil
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
		value, _, _ = strings.Cut(value, "\x00")
		switch key {
		case keyOrientation:
			err = t.readOrientation(value)
		case keySwizzle:
			t.Swizzle = t.readSwizzle(value)
		case keyWriter:
			t.Writer = strings.ToValidUTF8(value, "\ufffd")
		}
		if err != nil {
			return err
		}
		kvd = kvd[min(len(kvd), align(4+int(size))):]
	}
	return nil
}

// readSwizzle replaces channels that the format does not have by the value that sampling returns: 0, and 1 for alpha. Some
// programs write "rgba" for every format. check finds other errors.
func (t *Texture) readSwizzle(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case !strings.ContainsRune("rgba", r), strings.ContainsRune(t.Format.channels(), r):
			return r
		case r == 'a':
			return '1'
		}
		return '0'
	}, s)
}

// readOrientation supports only columns from left to right. It ignores the direction of slices.
func (t *Texture) readOrientation(s string) error {
	if t.Depth > 0 {
		s = strings.TrimRight(s, "io")
	}
	if s != "rd" && s != "ru" {
		return fmt.Errorf("orientation %q: %w", s, ErrUnsupported)
	}
	t.BottomUp = s == "ru"
	return nil
}
