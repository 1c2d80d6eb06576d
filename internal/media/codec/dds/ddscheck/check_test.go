package ddscheck_test

import (
	"bytes"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds/ddscheck"
)

// The test changes every byte in the headers of valid files, one after the other. The checker must report each change,
// except for the few that leave a file valid.
func TestEveryByteCounts(t *testing.T) {
	level := func(n int) []byte { return make([]byte, n) }
	for name, x := range map[string]*dds.Texture{
		"an image": {Format: dds.RGBA8, Width: 5, Height: 3, Levels: [][]byte{level(60), level(8)}},
		"a cube":   {Format: dds.BC7SRGB, Width: 5, Height: 5, Cube: true, Levels: [][]byte{level(6 * 64)}},
		"a volume": {Format: dds.BC4, Width: 4, Height: 8, Depth: 2, Levels: [][]byte{level(32)}},
		"an array": {Format: dds.RGB9E5, Width: 2, Height: 2, Layers: 3, Levels: [][]byte{level(48)}},
	} {
		good, err := dds.Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		if err := ddscheck.Check(good); err != nil {
			t.Fatal(err)
		}
		for at := range 148 {
			for _, bit := range []byte{1, 0x10, 0x80} {
				bad := bytes.Clone(good)
				bad[at] ^= bit
				// The last field is the alpha mode; paired formats, such as 28 and 29, have the same size.
				if ddscheck.Check(bad) == nil && (bit != 1 || at != 128 && at != 144) {
					t.Errorf("%s: byte %#x changed by %#x passes", name, at, bit)
				}
			}
		}
		for _, bad := range [][]byte{nil, good[:127], good[:147], good[:len(good)-1], append(bytes.Clone(good), 0)} {
			if ddscheck.Check(bad) == nil {
				t.Errorf("%s: %d of %d bytes pass", name, len(bad), len(good))
			}
		}
	}
}
