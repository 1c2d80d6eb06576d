package gltf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// file returns a .glb with the given fields; a size of -1 becomes the correct one.
func file(version uint32, total int, chunks ...string) []byte {
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
	b := file(2, -1, "JSON:{}  ", "BIN\x00:1234", "ACME:5678", "ACME:")
	c, err := splitGLB(b)
	if string(c.json) != "{}  " || string(c.bin) != "1234" || c.wrong != nil || err != nil {
		t.Errorf("%q %q %q %v", c.json, c.bin, c.wrong, err)
	}
	if c, err = splitGLB(file(2, -1, "JSON:{}  ", "ACME:5678")); c.bin != nil || c.wrong != nil || err != nil {
		t.Errorf("%q %q %v", c.bin, c.wrong, err)
	}
	wrongChunk := file(2, -1, "JSON:{}  ")
	wrongChunk[12] = 8
	for _, c := range []struct {
		data []byte
		want string
	}{
		{[]byte("glTF\x02\x00\x00\x00"), "the file is cut off: 8 bytes are too few for a .glb"},
		{file(1, -1, "JSON:{}  "), "this is binary glTF 1.0 (KHR_binary_glTF, a .glb of version 1); only glTF 2.0 can be read"},
		{file(3, -1, "JSON:{}  "), "the container has version 3, not 2"},
		{b[:30], "the file is cut off: its header says 56 bytes, there are 30"},
		{file(2, 13, "JSON:{}  "), "the file's header says 13 bytes, there are 24"},
		{wrongChunk, "chunk 0 says 8 bytes, but only 4 are left in the file"},
		{file(2, -1, "BIN\x00:1234", "JSON:{}  "), `chunk 0 has the type "BIN\x00"; the first chunk holds the JSON`},
		{file(2, -1, "JSON:{},,"), `the JSON at 1:3: "," stands where the end of the file should be`},
	} {
		_, err := Read(c.data, DefaultLimits())
		var f *Finding
		if !errors.As(err, &f) || f.Text != c.want || f.Line != 0 {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestLenientContainer: what is wrong after the chunks that are needed is a warning, as loaders do not look there.
func TestLenientContainer(t *testing.T) {
	cut := file(2, -1, "JSON:{}  ", "BIN\x00:1234", "ACME:5678")
	cut = cut[:len(cut)-1]
	cut[8]--
	for _, c := range []struct {
		name, bin string
		data      []byte
		want      string
	}{
		{"a byte after the end", "1234", append(file(2, -1, "JSON:{}  ", "BIN\x00:1234"), 0),
			"the file's header says 36 bytes, there are 37; the rest is ignored"},
		{"a chunk after the end", "", file(2, 24, "JSON:{}  ", "BIN\x00:1234"),
			"the file's header says 24 bytes, there are 36; the rest is ignored"},
		{"half a chunk's header", "", file(2, 25, "JSON:{}  ", "x")[:25], "1 bytes after the last chunk are not a chunk; they are ignored"},
		{"half a chunk that nobody needs", "1234", cut, "chunk 2 says 4 bytes, but only 3 are left in the file; it is ignored"},
		{"odd JSON", "1234", file(2, -1, "JSON:{} ", "BIN\x00:1234"), "chunk 0 has 3 bytes, which is not a multiple of 4"},
		{"odd binary chunk", "12345", file(2, -1, "JSON:{}  ", "BIN\x00:12345"), "chunk 1 has 5 bytes, which is not a multiple of 4"},
		{"JSON again", "", file(2, -1, "JSON:{}  ", "JSON:[]  "),
			`chunk 1 has the type "JSON", which only an earlier chunk may have; it is ignored`},
		{"late binary chunk", "", file(2, -1, "JSON:{}  ", "ACME:", "BIN\x00:1234"),
			`chunk 2 has the type "BIN\x00", which only an earlier chunk may have; it is ignored`},
	} {
		d, err := Read(c.data, DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if strings.Join(d.wrong, "; ") != c.want || string(d.BIN) != c.bin || d.Root.Kind != Object {
			t.Errorf("%s: %q %q, want %q", c.name, d.wrong, d.BIN, c.want)
		}
	}
	text := []byte(`{"asset":{"version":"2.0"}} `)
	d, err := Read(append(file(2, -1, "JSON:"+string(text)), 1, 2), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	r := Validate(d, nil, DefaultLimits())
	if r.Broken || len(r.Findings) != 1 || r.Findings[0].Level != Loadable || r.Findings[0].Problem != Container {
		t.Errorf("%+v", r)
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

// TestPlaceholderBuffers: a buffer without bytes is valid if nothing needs them; an application has them.
func TestPlaceholderBuffers(t *testing.T) {
	const text = `{"asset":{"version":"2.0"},"buffers":[{"byteLength":4},{"byteLength":7}]VIEWS}`
	for views, want := range map[string]string{
		"": "[]",
		`,"bufferViews":[{"buffer":1,"byteLength":4}]`: `[/buffers/1: the buffer has no "uri"]`,
	} {
		text := strings.Replace(text, "VIEWS", views, 1)
		for _, data := range [][]byte{[]byte(text), file(2, -1, "JSON:"+padded(text))} {
			d, err := Read(data, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			r := Validate(d, make([][]byte, 2), DefaultLimits())
			if got := fmt.Sprint(texts(r)); !strings.HasPrefix(got, strings.TrimSuffix(want, "]")) || r.Broken != (want != "[]") {
				t.Errorf("%s: %s", data, got)
			}
			if r.Broken {
				continue
			}
			out, err := WriteGLB(d, make([][]byte, 2), nil)
			if err != nil || strings.Contains(string(out), "buffers") {
				t.Errorf("%q %v", out, err)
			}
		}
	}
}

func padded(s string) string { return s + strings.Repeat(" ", -len(s)&3) }
