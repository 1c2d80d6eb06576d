// Package ktx2check checks a KTX 2.0 file against the text of the "KTX File Format Specification, Version 2.0" and the
// "Khronos Data Format Specification". It is for tests, and shares no code with the writer that it checks: formats.go has
// its own description of the formats, from the specifications.
//
// It accepts any valid file of any program, not only files that Kiln would write.
package ktx2check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// file is a file that is checked, and its faults so far.
type file struct {
	data   []byte
	faults []error

	format                      uint32
	width, height, depth        int
	layers, faces, levels       int // layers and levels are at least 1
	scheme                      uint32
	dfdAt, dfdSize, kvdAt, kvds int
	spec                        format
}

// Check returns an error that lists all faults of a file, or nil. Unknown formats are an error, too.
func Check(data []byte) error {
	f := &file{data: data}
	if f.head() && f.index() {
		f.descriptor()
		f.keyValues()
		f.levelData()
	}
	return errors.Join(f.faults...)
}

func (f *file) fault(section, text string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf("section %s: %s", section, fmt.Sprintf(text, args...)))
}

// is reports a field that does not have its only valid value.
func (f *file) is(section, field string, got, want int) {
	if got != want {
		f.fault(section, "%s is %d (%#x), want %d (%#x)", field, got, got, want, want)
	}
}

func (f *file) u16(at int) int { return int(binary.LittleEndian.Uint16(f.data[at:])) }
func (f *file) u32(at int) int { return int(binary.LittleEndian.Uint32(f.data[at:])) }
func (f *file) u64(at int) int { return int(binary.LittleEndian.Uint64(f.data[at:])) }

// head checks sections 3.1 to 3.8, and the table of texture types in 4.1.
func (f *file) head() bool {
	id := []byte{0xAB, 0x4B, 0x54, 0x58, 0x20, 0x32, 0x30, 0xBB, 0x0D, 0x0A, 0x1A, 0x0A}
	if len(f.data) < 80 || string(f.data[:12]) != string(id) {
		f.fault("3.1", "no identifier, or only %d bytes", len(f.data))
		return false
	}
	f.format = uint32(f.u32(12))
	spec, ok := formats()[f.format]
	if !ok {
		f.fault("3.2", "vkFormat %d is not known here", f.format)
		return false
	}
	f.spec = spec
	f.is("3.3", "typeSize", f.u32(16), spec.typeSize)
	f.width, f.height, f.depth = f.u32(20), f.u32(24), f.u32(28)
	layerCount, levelCount := f.u32(32), f.u32(40)
	f.faces, f.layers, f.levels = f.u32(36), max(1, layerCount), max(1, levelCount)
	if f.width == 0 {
		f.fault("3.4", "pixelWidth is 0")
	}
	if f.height == 0 && (f.spec.compressed() || f.depth > 0 || f.faces == 6) {
		f.fault("3.4", "pixelHeight is 0")
	}
	if f.faces != 1 && f.faces != 6 {
		f.fault("3.6", "faceCount is %d", f.faces)
	}
	if f.faces == 6 && (f.width != f.height || f.depth != 0) {
		f.fault("3.4", "a cube of %d x %d x %d", f.width, f.height, f.depth)
	}
	if levelCount == 0 && f.spec.compressed() {
		f.fault("3.7", "levelCount is 0 for a compressed format")
	}
	if most := bits.Len(uint(max(f.width, f.height, f.depth))); f.levels > most {
		f.fault("3.7", "%d levels, where there can be %d", f.levels, most)
		return false
	}
	f.scheme = uint32(f.u32(44))
	if f.scheme != 0 && f.scheme != 2 {
		f.fault("3.8", "supercompressionScheme %d is not known here", f.scheme)
		return false
	}
	return len(f.faults) == 0
}

// index checks section 3.9: the positions of the parts.
func (f *file) index() bool {
	end := 80 + 24*f.levels
	if len(f.data) < end {
		f.fault("3.9.7", "the level index ends at %d, the file at %d", end, len(f.data))
		return false
	}
	f.dfdAt, f.dfdSize, f.kvdAt, f.kvds = f.u32(48), f.u32(52), f.u32(56), f.u32(60)
	f.is("3.9.1", "dfdByteOffset", f.dfdAt, end)
	end += f.dfdSize
	if f.kvds == 0 {
		f.is("3.9.3", "kvdByteOffset", f.kvdAt, 0)
	} else {
		f.is("3.9.3", "kvdByteOffset", f.kvdAt, end)
		end += f.kvds
	}
	f.is("3.9.5", "sgdByteOffset", f.u64(64), 0) // neither scheme has global data
	f.is("3.9.6", "sgdByteLength", f.u64(72), 0)
	if len(f.data) < end || f.dfdSize < 4+24 {
		f.fault("3.9", "descriptor and key/values end at %d, the file at %d", end, len(f.data))
		return false
	}
	return len(f.faults) == 0
}

// levelSize follows the loop of section 2, "levelImages structure".
func (f *file) levelSize(p int) int {
	blocks := func(pixels, block int) int { return max(1, (pixels>>p+block-1)/block) }
	return f.layers * f.faces * blocks(f.depth, 1) * blocks(f.height, f.spec.blockHeight) * blocks(f.width, f.spec.blockWidth) * f.spec.bytes
}

// levelData checks sections 3.9.7 and 3.13: levels are stored smallest first, up to the end of the file, with only padding
// of zeros between them.
func (f *file) levelData() {
	alignment := 1
	if f.scheme == 0 {
		for alignment = f.spec.bytes; alignment%4 != 0; {
			alignment += f.spec.bytes
		}
	}
	end := max(f.dfdAt+f.dfdSize, f.kvdAt+f.kvds)
	for p := f.levels - 1; p >= 0; p-- {
		entry := 80 + 24*p
		offset, length, inflated := f.u64(entry), f.u64(entry+8), f.u64(entry+16)
		start := (end + alignment - 1) / alignment * alignment
		name := fmt.Sprintf("levels[%d]", p)
		f.is("3.9.7", name+".byteOffset", offset, start)
		f.is("3.9.7", name+".uncompressedByteLength", inflated, f.levelSize(p))
		if f.scheme == 0 {
			f.is("3.9.7", name+".byteLength", length, f.levelSize(p))
		}
		if offset < end || length < 0 || offset > len(f.data) || length > len(f.data)-offset {
			f.fault("3.9.7", "%s is %d bytes at %d of %d", name, length, offset, len(f.data))
			return
		}
		f.zeros("3.13.2", "mipPadding", end, offset)
		if f.scheme == 2 && len(f.faults) == 0 {
			f.inflate(name, f.data[offset:offset+length], f.levelSize(p))
		}
		end = offset + length
	}
	f.is("3.9.7", "the file's size", len(f.data), end)
}

// inflate checks section 3.8.1: a level consists of one or more Zstandard frames.
func (f *file) inflate(name string, level []byte, size int) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		f.faults = append(f.faults, err)
		return
	}
	defer dec.Close()
	if size < 0 || size > 256<<20 || size/(32<<10) > len(level) {
		f.fault("3.8.1", "%s: %d bytes cannot, or should not, become %d", name, len(level), size)
		return
	}
	b, err := dec.DecodeAll(level, make([]byte, 0, size))
	if err != nil {
		f.fault("3.8.1", "%s: %v", name, err)
		return
	}
	f.is("3.8.1", name+" inflated", len(b), size)
}

func (f *file) zeros(section, what string, from, to int) {
	for _, b := range f.data[from:to] {
		if b != 0 {
			f.fault(section, "%s at %d is not zero", what, from)
			return
		}
	}
}

// keyValues checks section 3.11 and, for the keys of Khronos, section 5.
func (f *file) keyValues() {
	last := ""
	for at, end := f.kvdAt, f.kvdAt+f.kvds; at < end; {
		if end-at < 4 || f.u32(at) < 2 || f.u32(at) > end-at-4 {
			f.fault("3.11.1", "keyAndValueByteLength at %d does not fit", at)
			return
		}
		size := f.u32(at)
		entry := string(f.data[at+4 : at+4+size])
		key, value, ok := strings.Cut(entry, "\x00")
		if !ok || key == "" || !utf8.ValidString(key) || strings.HasPrefix(key, "\ufeff") {
			f.fault("3.11.2", "entry %q has no right key", entry)
		}
		if key <= last { // the order of UTF-8 bytes is that of code points
			f.fault("3.11", "key %q comes after %q", key, last)
		}
		last = key
		f.known(key, value)
		at += 4 + size
		pad := min(end, (at+3)/4*4)
		f.zeros("3.11.3", "valuePadding", at, pad)
		at = pad
	}
	f.is("3.11", "kvdByteLength modulo 4", f.kvds%4, 0)
}

// known checks values of the predefined keys that Kiln may write against their patterns. Other keys that begin with KTX are
// reserved.
func (f *file) known(key, value string) {
	pattern := ""
	switch key {
	case "KTXorientation":
		switch {
		case f.faces == 6:
			pattern = "^rd\x00$" // section 3.6
		case f.depth > 0:
			pattern = "^[rl][du][oi]\x00$"
		case f.height > 0:
			pattern = "^[rl][du]\x00$"
		default:
			pattern = "^[rl]\x00$"
		}
	case "KTXswizzle":
		pattern = "^[" + f.spec.channels() + "01]{4}\x00$"
	case "KTXwriter", "KTXwriterScParams":
		pattern = "^[^\x00]*\x00$"
		if !utf8.ValidString(value) {
			f.fault("5", "%s is not UTF-8", key)
		}
	case "KTXastcDecodeMode":
		pattern = "^(rgb9e5|unorm8)\x00$"
	case "KTXcubemapIncomplete", "KTXanimData", "KTXmapRange":
		return
	default:
		if strings.HasPrefix(key, "KTX") || strings.HasPrefix(key, "ktx") {
			f.fault("3.11.2", "key %q is reserved", key)
		}
		return
	}
	if !regexp.MustCompile(pattern).MatchString(value) {
		f.fault("5", "%s is %q", key, value)
	}
}
