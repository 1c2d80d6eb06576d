package bmfont

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = `info face="My Font" size=16 bold=0 italic=0 charset="" unicode=1 stretchH=100 smooth=1 aa=1 padding=0,0,0,0 spacing=0,0 outline=0
common lineHeight=18 base=14 scaleW=64 scaleH=32 pages=2 packed=0
page id=0 file="a b.png"
page id=1 file="b.png"
chars count=2
char id=65 x=1 y=2 width=9 height=10 xoffset=-1 yoffset=3 xadvance=8 page=1 chnl=15
char id=-1 x=0 y=0 width=0 height=0 xoffset=0 yoffset=0 xadvance=4 page=0 chnl=15
kernings count=1
kerning first=65 second=86 amount=-2
`

func font() *Font {
	return &Font{
		Face: "My Font", Size: 16, LineHeight: 18, Base: 14, ScaleW: 64, ScaleH: 32, Pages: []string{"a b.png", "b.png"},
		Chars:    []Char{{65, 1, 2, 9, 10, -1, 3, 8, 1}, {ID: -1, XAdvance: 4}},
		Kernings: []Kerning{{65, 86, -2}},
	}
}

func TestBothWays(t *testing.T) {
	b, err := Write(font())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, string(b)); d != "" {
		t.Error(d)
	}
	for _, s := range []string{text, "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"), strings.Replace(text, "size=16", "size=16   odd=x new=\"\" letter=\"\"\"", 1)} {
		f, err := Read([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(font(), f); d != "" {
			t.Error(d)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "not the text form"}, {"BMF\x03", "not the text form"}, {"<?xml?>", "not the text form"},
		{"info face=\"x", "line 1: a quote is not closed"}, {"info size=1\nchar id", `line 2: "id" has no value`},
		{"info size=big", "size=big is not a number"}, {"info size=1\npage id=1 file=x", "page 1, want 0"},
		{"info size=1\nchar id=99999999999", "is not a number"},
	} {
		if f, err := Read([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %v", c.text, f, err)
		}
	}
	f := font()
	f.Pages[0] = `a"b`
	if _, err := Write(f); err == nil {
		t.Error("a name with a quote was written")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte("info size=-1\nkerning first=1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		font, err := Read(data)
		if err != nil {
			return
		}
		b, err := Write(font)
		if err != nil {
			return // a name that cannot be written
		}
		again, err := Read(b)
		if err != nil || !cmp.Equal(font, again) {
			t.Fatalf("%v: %s", err, cmp.Diff(font, again))
		}
	})
}

// TestCorpus reads the fonts of real games.
func TestCorpus(t *testing.T) {
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS is not set: no real fonts to read")
	}
	files, err := filepath.Glob(filepath.Join(corpus, "gdx-skins", "*", "raw", "*.fnt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fonts: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(f.Chars) < 50 || f.LineHeight < 1 || len(f.Pages) != 1 {
			t.Errorf("%s: %v, %d characters", file, err, len(f.Chars))
		}
	}
}
