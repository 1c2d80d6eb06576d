package mention

import (
	"fmt"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct{ text, file, name, want string }{
		{`{"a": "art/x.png"}`, "b.json", "art/x.png", "1:8 art/x.png"},
		{"\n ü: x.png\n", "art/b.yaml", "art/x.png", "2:5 x.png"},
		{"./x.png", "art/b.txt", "art/x.png", "1:1 ./x.png"},
		{"../art/x.png, art/x.png", "maps/b.txt", "art/x.png", "1:1 ../art/x.png, 1:15 art/x.png"},
		{"art/x.png.meta part/x.png x.png", "b.txt", "art/x.png", ""},
		{"art/x.png\xff", "b.bin", "art/x.png", "0:0 art/x.png"},
		{"", "b.bin", "x", ""},
		{"x", "b.bin", "", ""},
	} {
		var got []string
		for _, at := range Find([]byte(c.text), c.file, c.name) {
			got = append(got, fmt.Sprintf("%d:%d %s", at.Line, at.Column, at.Written))
			if !strings.HasPrefix(c.text[at.Offset:], at.Written) {
				t.Errorf("%q is not at %d of %q", at.Written, at.Offset, c.text)
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q in %s names %q at %q, not %q", c.text, c.file, c.name, s, c.want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte("a ../b/c.png x"), "d/e.txt", "b/c.png")
	f.Fuzz(func(t *testing.T, text []byte, file, name string) {
		end := 0
		for _, at := range Find(text, file, name) {
			if at.Offset < end || string(text[at.Offset:at.Offset+len(at.Written)]) != at.Written {
				t.Fatalf("%+v", at)
			}
			end = at.Offset + len(at.Written)
		}
	})
}
