package texture

import (
	"bytes"
	"encoding/binary"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/texture"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// Finished textures of formats that Kiln does not decode go out as they are, if their structure is right and nothing is asked of them.
func TestForeign(t *testing.T) {
	own := processortest.Run(t, New(), processortest.Case{Files: map[string][]byte{"a.png": plain(t, 8, 8, color.NRGBA{200, 100, 50, 255})}, Asset: "a.png"}).Products[""].Data
	put := func(at int, v uint32, more ...uint32) []byte {
		data := slices.Clone(own)
		binary.LittleEndian.PutUint32(data[at:], v)
		for i := 0; i+1 < len(more); i += 2 {
			binary.LittleEndian.PutUint32(data[more[i]:], more[i+1])
		}
		return data
	}
	const format, width, faces, levels, scheme, descriptor, level0, unpacked0 = 12, 20, 36, 40, 44, 52, 88, 96
	basis := put(format, 0, scheme, 1, 64, 80, 72, 16) // the 16 bytes that all levels share may lie anywhere
	for _, tt := range []struct {
		name   string
		data   []byte
		change func(*texture.Options)
		want   string // code of a warning; with "!" of an error
	}{
		{"ASTC HDR", put(format, 1000066000), nil, ""},
		{"PVRTC", put(format, 1000054000), nil, ""},
		{"16 bits", put(format, 91), nil, ""},
		{"ZLIB", put(scheme, 3), nil, ""},
		{"BasisLZ", basis, nil, ""},
		{"BasisLZ without what it needs", put(format, 0, scheme, 1), nil, "!K1205"},
		{"on a platform of a family", put(format, 91), func(o *texture.Options) { o.Family = "bc" }, "K1231"},
		{"to be made smaller", put(format, 91), func(o *texture.Options) { o.MaxSize = 4 }, "!K1205"},
		{"to be coded", put(format, 91), func(o *texture.Options) { o.Format = "bc7" }, "!K1205"},
		{"as DDS", put(format, 91), func(o *texture.Options) { o.Container = "dds" }, "!K1205"},
		{"cut off", put(format, 91)[:len(own)-1], nil, "!K1205"},
		{"a level out of the file", put(format, 91, level0, 1<<30), nil, "!K1205"},
		{"a level that is none", put(format, 91, level0, 0), nil, "!K1205"},
		{"a level that claims too much", put(format, 0, scheme, 3, unpacked0+4, 1), nil, "!K1205"},
		{"two faces", put(format, 91, faces, 2), nil, "!K1204"},
		{"too many levels", put(format, 91, levels, 30), nil, "!K1205"},
		{"no descriptor", put(format, 91, descriptor, 4), nil, "!K1205"},
		{"too large", put(format, 91, width, 1<<20), nil, "!K1205"},
	} {
		c := processortest.Case{Files: map[string][]byte{"a.ktx2": tt.data}, Asset: "a.ktx2"}
		if tt.change != nil {
			c.Settings = settings(tt.change)
		}
		r := processortest.Run(t, New(), c)
		code, fails := strings.CutPrefix(tt.want, "!")
		switch ps := processortest.Problems(r.Err); {
		case fails && (len(ps) != 1 || ps[0].Code != code):
			t.Errorf("%s: %v", tt.name, r.Err)
		case !fails && (r.Err != nil || !bytes.Equal(r.Products[""].Data, tt.data)):
			t.Errorf("%s: %v, or other bytes", tt.name, r.Err)
		case !fails && (len(r.Warnings) > 0) != (code != "") || len(r.Warnings) > 0 && r.Warnings[0].Code != code:
			t.Errorf("%s: %v", tt.name, r.Warnings)
		}
	}
}
