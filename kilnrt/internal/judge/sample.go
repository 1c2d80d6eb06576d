package judge

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
)

// Resource returns a resource with the given content. Its UUID is made from its id.
func Resource(id uint32, name, productType, content string, required, optional []uint32) parcel.Resource {
	r := parcel.Resource{ID: id, Name: name, Type: productType, Required: required, Optional: optional, Size: int64(len(content)), Hash: digest.Of([]byte(content))}
	for i := range r.UUID {
		r.UUID[i] = byte(id>>(i%4*8)) + byte(i)
	}
	r.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(content))), nil }
	return r
}

// Write writes samples to a folder and returns their paths: an empty parcel, one with a resource of each kind, and one
// with several pages of records.
func Write(dir string) ([]string, error) {
	rs := []parcel.Resource{
		Resource(0, "levels/one", "level", "level one", []uint32{7, 3}, []uint32{900}),
		Resource(3, "textures/größe.png", "texture", strings.Repeat("texel", 999), nil, nil),
		Resource(7, "models/knight.glb", "model", "knight", []uint32{3}, []uint32{0, 12}),
		Resource(12, "", "sound", "", nil, nil),
		Resource(13, "again", "texture", strings.Repeat("texel", 999), nil, []uint32{3}),
		Resource(70000, "packed", "data", strings.Repeat("over and over ", 500), nil, nil),
		Resource(1<<32-2, "last", "data", "last", []uint32{70000}, nil),
	}
	rs[1].Align, rs[5].Compress, rs[6].SubID = 4096, true, 0xdeadbeef
	var many []parcel.Resource
	for i := range uint32(150) {
		r := Resource(2*i, fmt.Sprintf("r/%d", i), "data", strings.Repeat("x", int(i)), nil, nil)
		if i > 0 {
			r.Required = []uint32{2*i - 2}
		}
		many = append(many, r)
	}
	packed := []parcel.Resource{rs[5], rs[1]}
	packed[0].Required, packed[1].Compress = nil, true
	samples := []struct {
		name string
		rs   []parcel.Resource
		o    parcel.Options
	}{
		{"empty", nil, parcel.Options{}}, {"all", rs, parcel.Options{}}, {"many", many, parcel.Options{}},
		{"dictionary", packed, parcel.Options{Dictionary: []byte("raw content: over and over texeltexel")}},
	}
	var paths []string
	for _, s := range samples {
		path := dir + "/" + s.name + ".parcel"
		if err := parcel.Write(path, s.rs, s.o); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
