package gltf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// container returns a .glb with the given fields; a size of -1 becomes the correct one.
func container(version uint32, total int, chunks ...string) []byte {
	b := []byte("glTF")
	b = binary.LittleEndian.AppendUint32(b, version)
	b = append(b, 0, 0, 0, 0)
	for _, c := range chunks {
		kind, data, _ := strings.Cut(c, ":")
		b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
		b = append(b, kind...)
		b = append(b, data...)
	}
	if total < 0 {
		total = len(b)
	}
	binary.LittleEndian.PutUint32(b[8:], uint32(total))
	return b
}

func TestContainer(t *testing.T) {
	b := container(2, -1, "JSON:{}  ", "BIN\x00:1234", "ACME:5678", "ACME:")
	json, bin, err := splitGLB(b)
	if string(json) != "{}  " || string(bin) != "1234" || err != nil {
		t.Errorf("%q %q %v", json, bin, err)
	}
	if _, bin, err = splitGLB(container(2, -1, "JSON:{}  ", "ACME:5678")); bin != nil || err != nil {
		t.Errorf("%q %v", bin, err)
	}
	wrongChunk := container(2, -1, "JSON:{}  ")
	wrongChunk[12] = 8
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte("glTF\x02\x00\x00\x00"), "the file is cut off: 8 bytes are too few for a .glb"},
		{container(1, -1, "JSON:{}  "), "this is binary glTF 1.0 (KHR_binary_glTF, a .glb of version 1); only glTF 2.0 can be read"},
		{container(3, -1, "JSON:{}  "), "the container has version 3, not 2"},
		{b[:30], "the file is cut off: its header says 56 bytes, there are 30"},
		{append(container(2, -1, "JSON:{}  "), 0), "the file's header says 24 bytes, there are 25"},
		{container(2, 25, "JSON:{}  ", "")[:25], "1 bytes after the last chunk are not a chunk"},
		{wrongChunk, "chunk 0 says 8 bytes, but only 4 are left in the file"},
		{container(2, -1, "JSON:{} "), "chunk 0 has 3 bytes, which is not a multiple of 4"},
		{container(2, -1, "BIN\x00:1234", "JSON:{}  "), `chunk 0 has the type "BIN\x00"; the first chunk, and no other, holds the JSON`},
		{container(2, -1, "JSON:{}  ", "JSON:{}  "), `chunk 1 has the type "JSON"; the first chunk, and no other, holds the JSON`},
		{container(2, -1, "JSON:{}  ", "ACME:", "BIN\x00:1234"), "chunk 2 holds binary data, which only chunk 1 may"},
		{container(2, -1, "JSON:{},,"), `the JSON at 1:3: "," stands where the end of the file should be`},
	} {
		_, err := Read(c.data, DefaultLimits())
		var f *Finding
		if !errors.As(err, &f) || f.Text != c.want || f.Line != 0 {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestAppendGLB(t *testing.T) {
	for n := range 20 {
		root := NewObject()
		root.Set("extras", NewString(strings.Repeat("x", n)))
		for _, bin := range []string{"", "12345"} {
			b, err := AppendGLB([]byte("before"), root, []byte(bin))
			if err != nil {
				t.Fatal(err)
			}
			d, err := Read(b[len("before"):], DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(d.Root.AppendJSON(nil)), string(root.AppendJSON(nil)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if bin == "" {
				if d.BIN != nil {
					t.Errorf("there is a binary chunk of %d bytes", len(d.BIN))
				}
				continue
			}
			if fmt.Sprintf("%q", d.BIN) != `"12345\x00\x00\x00"` {
				t.Errorf("%q", d.BIN)
			}
			if at := strings.Index(string(b), bin) - len("before"); at%Alignment != 0 {
				t.Errorf("the data begin at byte %d", at)
			}
		}
	}
}
