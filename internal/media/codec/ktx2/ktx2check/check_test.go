package ktx2check_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2/ktx2check"
)

// The test changes every byte before the key/values of a valid file, one after the other. The checker must report each
// change, except for the few bytes that may have other values.
func TestEveryByteCounts(t *testing.T) {
	for _, f := range []ktx2.Format{ktx2.RGB8, ktx2.RGBA8SRGB, ktx2.RGB9E5, ktx2.BC3SRGB, ktx2.ETC2RGBA1SRGB, ktx2.BC6HSigned, ktx2.ASTC(10, 6, true)} {
		w, h, size := f.Block()
		good, err := ktx2.Encode(&ktx2.Texture{Format: f, Width: 2 * w, Height: h, Levels: [][]byte{make([]byte, 2*size), make([]byte, size)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := ktx2check.Check(good); err != nil {
			t.Fatal(err)
		}
		// 0 or 1 layer; other primaries; premultiplied or not.
		const dfd = 80 + 24*2
		free := []int{32, dfd + 13, dfd + 15}
		for at := range int(binary.LittleEndian.Uint32(good[56:])) {
			for _, bit := range []byte{1, 0x10, 0x80} {
				bad := bytes.Clone(good)
				bad[at] ^= bit
				if ktx2check.Check(bad) == nil && (bit != 1 || !slices.Contains(free, at)) {
					t.Errorf("%v: byte %#x changed by %#x passes", f, at, bit)
				}
			}
		}
		for _, bad := range [][]byte{nil, good[:79], good[:100], good[:len(good)-1], append(bytes.Clone(good), 0)} {
			if ktx2check.Check(bad) == nil {
				t.Errorf("%v: %d of %d bytes pass", f, len(bad), len(good))
			}
		}
	}
}

// Files that the specification calls invalid, and that the writer does not write.
func TestCheckRefuses(t *testing.T) {
	of := func(x *ktx2.Texture) []byte {
		b, err := ktx2.Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cube := &ktx2.Texture{Format: ktx2.R8, Width: 1, Height: 1, Cube: true, Levels: [][]byte{make([]byte, 6)}}
	zstd := &ktx2.Texture{Format: ktx2.R8, Width: 2, Height: 2, Zstd: true, Writer: "W", Levels: [][]byte{{1, 2, 3, 4}}}
	kvd := 80 + 24 + 44 // of an R8 file with one level: KTXorientation, 24 bytes, then KTXwriter
	for name, tt := range map[string]struct {
		data   []byte
		change func([]byte)
		want   string
	}{
		"a cube upside down":   {of(cube), func(b []byte) { b[bytes.Index(b, []byte("rd\x00"))+1] = 'u' }, "KTXorientation"},
		"a frame that is none": {of(zstd), func(b []byte) { b[len(b)-10] ^= 0xff }, "3.8.1"},
		"a wrong checksum":     {of(zstd), func(b []byte) { b[len(b)-1] ^= 1 }, "3.8.1"},
		"a reserved key":       {of(zstd), func(b []byte) { b[bytes.Index(b, []byte("KTXo"))+13] = 'z' }, "reserved"},
		"keys out of order":    {of(zstd), func(b []byte) { b[kvd+4] = 'L' }, "comes after"},
		"no key":               {of(zstd), func(b []byte) { b[kvd+4] = 0 }, "no right key"},
		"a key that is text":   {of(zstd), func(b []byte) { b[kvd+5] = 0xff }, "no right key"},
		"an entry too long":    {of(zstd), func(b []byte) { b[kvd] = 60 }, "keyAndValueByteLength"},
		"an entry too short":   {of(zstd), func(b []byte) { b[kvd] = 1 }, "keyAndValueByteLength"},
		"padding that is not":  {of(zstd), func(b []byte) { b[kvd+23] = 1 }, "valuePadding"},
		"an orientation":       {of(zstd), func(b []byte) { b[kvd+19] = 'x' }, "KTXorientation"},
		"a value without end":  {of(zstd), func(b []byte) { b[kvd+24+15] = 'x' }, "KTXwriter"},
		"a swizzle of green in R8": {of(&ktx2.Texture{Format: ktx2.R8, Width: 1, Height: 1, Swizzle: "rrr1", Levels: [][]byte{{1}}}),
			func(b []byte) { b[bytes.Index(b, []byte("rrr1"))] = 'g' }, "KTXswizzle"},
		"global data": {of(zstd), func(b []byte) { b[72] = 8 }, "sgdByteLength"},
		"an unsized descriptor, right until revision 3": {of(zstd), func(b []byte) { b[80+24+20] = 0 }, "bytesPlane0"},
	} {
		tt.change(tt.data)
		if err := ktx2check.Check(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
