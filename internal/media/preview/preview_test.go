package preview

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"math"
	"path"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
)

// gradient returns an image where each pixel encodes its position: red is x, green is y, blue is 7, alpha is 255 minus
// x.
func gradient(side int) *pixel.Image {
	img := pixel.New(side, side)
	for i := range side * side {
		x, y := i%side, i/side
		copy(img.Pix[4*i:], []byte{byte(x), byte(y), 7, byte(255 - x)})
	}
	return img
}

func encode(t *testing.T, img *pixel.Image, change func(*texture.Options)) []byte {
	t.Helper()
	o := texture.Defaults()
	o.Format = "rgba8"
	change(&o)
	data, err := texture.Encode(img, o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestImage(t *testing.T) {
	data := encode(t, gradient(64), func(o *texture.Options) { o.Mips = true })
	f, err := FactsOf(data)
	if err != nil || f.Width != 64 || f.Levels != 7 || f.Container != "ktx2" || f.Faces != 1 || f.Depth != 1 || f.Layers != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, tt := range []struct {
		look Look
		side int
		at   [4]byte // the pixel at 10, 20
	}{
		{Look{}, 64, [4]byte{10, 20, 7, 245}},
		{Look{Channels: RGBA}, 64, [4]byte{10, 20, 7, 245}},
		{Look{Channels: RGB}, 64, [4]byte{10, 20, 7, 255}},
		{Look{Channels: Red}, 64, [4]byte{10, 10, 10, 255}},
		{Look{Channels: Green}, 64, [4]byte{20, 20, 20, 255}},
		{Look{Channels: Blue}, 64, [4]byte{7, 7, 7, 255}},
		{Look{Channels: Alpha}, 64, [4]byte{245, 245, 245, 255}},
		{Look{Level: 1, Channels: Blue}, 32, [4]byte{7, 7, 7, 255}},
		{Look{Fit: 32, Channels: Blue}, 32, [4]byte{7, 7, 7, 255}},
		{Look{Fit: 40, Channels: Blue}, 40, [4]byte{7, 7, 7, 255}},
		{Look{Fit: 100, Channels: Blue}, 64, [4]byte{7, 7, 7, 255}},
	} {
		img, err := Image("a.ktx2", data, tt.look)
		if err != nil {
			t.Fatalf("%+v: %v", tt.look, err)
		}
		if got := [4]byte(img.Pix[4*(20*img.Width+10):]); img.Width != tt.side || got != tt.at {
			t.Errorf("%+v: %d pixels wide, %v; want %d, %v", tt.look, img.Width, got, tt.side, tt.at)
		}
	}
	for _, l := range []Look{{Level: 7}, {Layer: 1}, {Face: 1}, {Slice: 1}, {Channels: "rg"}, {Channels: "x"}} {
		if _, err := Image("a.ktx2", data, l); err == nil {
			t.Errorf("%+v is shown", l)
		}
	}
}

// TestFile shows an image file that is not a texture, and encodes it as PNG.
func TestFile(t *testing.T) {
	file, err := PNG(gradient(9))
	if err != nil {
		t.Fatal(err)
	}
	img, err := Image("a.png", file, Look{Channels: Green})
	if err != nil {
		t.Fatal(err)
	}
	again, err := PNG(img)
	if err != nil {
		t.Fatal(err)
	}
	p, err := png.Decode(bytes.NewReader(again))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, _, a := p.At(2, 5).RGBA(); r != 5*0x101 || g != r || a != 0xffff {
		t.Errorf("%d %d %d", r, g, a)
	}
	for _, bad := range [][]byte{nil, []byte("no picture"), file[:len(file)/2]} {
		if _, err := Image("a.png", bad, Look{}); err == nil {
			t.Errorf("%d bytes are shown", len(bad))
		}
	}
}

// flatten formats a tree as text.
func flatten(n Node) string {
	s := n.Key + ":" + n.Type
	if n.Type == "object" || n.Type == "array" {
		s += fmt.Sprint(n.Count) + "("
		for _, c := range n.Inner {
			s += flatten(c) + " "
		}
		return s + ")"
	}
	return s + "=" + n.Text
}

// tree reads data with the reader that the list of kinds names for it.
func tree(file string, data []byte) (n Node, more bool, err error) {
	parse := map[string]func([]byte) (document.Value, error){".json": document.JSON, ".yaml": document.YAML, ".skin": document.RelaxedJSON,
		".csv": document.CommaCSV, ".msgpack": MessagePack}[path.Ext(file)]
	if parse == nil {
		return n, false, errors.New("no data")
	}
	v, err := parse(data)
	if err == nil {
		n, more = Tree(v)
	}
	return n, more, err
}

// TestTree reads the same data in every format.
func TestTree(t *testing.T) {
	const want = `:object3(a:array3(0:number=1 1:number=-2.5 2:null=null ) b:object1(c:string=é ) d:bool=true )`
	value, err := document.JSON([]byte(`{"a": [1, -2.5, null], "b": {"c": "é"}, "d": true}`))
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string]string{
		"a.json": `{"a": [1, -2.5, null], "b": {"c": "é"}, "d": true}`, "a.yaml": "a: [1, -2.5, null]\nb: {c: é}\nd: true\n",
		"a.skin": "{a: [1, -2.5, null], b: {c: é}, d: true}", "a.msgpack": string(document.AppendMessagePack(nil, &value)),
	} {
		n, more, err := tree(file, []byte(data))
		if got := flatten(n); err != nil || more || got != want {
			t.Errorf("%s: %v, %v\n%s\n%s", file, err, more, got, want)
		}
	}
	n, more, err := tree("a.json", []byte("["+strings.Repeat("1,", 3*MaxNodes)+"1]"))
	if err != nil || !more || len(n.Inner) > MaxNodes || n.Count != 3*MaxNodes+1 {
		t.Errorf("%v, %v, %d of %d", err, more, len(n.Inner), n.Count)
	}
	if n, _, err := tree("a.csv", []byte("id,price\nsword,120\n")); err != nil || flatten(n) != ":array1(0:object2(id:string=sword price:number=120 ) )" {
		t.Errorf("%v, %s", err, flatten(n))
	}
}

// TestMessagePack reads each kind of value in the encoding of the specification.
func TestMessagePack(t *testing.T) {
	for _, tt := range []struct {
		data string
		want any
	}{
		{"\x7f", int64(127)}, {"\xff", int64(-1)}, {"\xe0", int64(-32)}, {"\xcc\xff", uint64(255)}, {"\xcd\x01\x00", uint64(256)}, {"\xce\x00\x01\x00\x00", uint64(65536)},
		{"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", uint64(math.MaxUint64)}, {"\xd0\x80", int64(-128)}, {"\xd1\xff\x00", int64(-256)}, {"\xd2\x80\x00\x00\x00", int64(math.MinInt32)},
		{"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", int64(math.MinInt64)}, {"\xca\x3f\xc0\x00\x00", 1.5}, {"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5}, {"\xc0", nil}, {"\xc2", false}, {"\xc3", true},
		{"\xa2hi", "hi"}, {"\xd9\x02hi", "hi"}, {"\xda\x00\x02hi", "hi"}, {"\xdb\x00\x00\x00\x02hi", "hi"}, {"\xc4\x02hi", "[104 105]"}, {"\xc5\x00\x02hi", "[104 105]"}, {"\xc6\x00\x00\x00\x02hi", "[104 105]"},
	} {
		v, err := MessagePack([]byte(tt.data))
		got := v.V
		if b, ok := got.([]byte); ok {
			got = fmt.Sprint(b)
		}
		if err != nil || got != tt.want {
			t.Errorf("%x: %v (%T), %v; want %v", tt.data, got, got, err, tt.want)
		}
	}
	for data, want := range map[string]string{
		"\x92\x01\xc0": "2(", "\xdc\x00\x02\x01\xc0": "2(", "\xdd\x00\x00\x00\x02\x01\xc0": "2(",
		"\x81\xa1a\x01": "1(a", "\xde\x00\x01\xa1a\x01": "1(a", "\xdf\x00\x00\x00\x01\xa1a\x01": "1(a", "\x81\x05\x01": "1(5",
	} {
		n, _, err := tree("a.msgpack", []byte(data))
		if err != nil || !strings.Contains(flatten(n), want) {
			t.Errorf("%x: %s, %v", data, flatten(n), err)
		}
	}
	for _, bad := range []string{"", "\x92\x01", "\xa2h", "\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff\x01", "\xdb\xff\xff\xff\xffa", "\xc1", "\xc7\x01\x01a", "\x01\x01", strings.Repeat("\x91", 300) + "\x01"} {
		if v, err := MessagePack([]byte(bad)); err == nil {
			t.Errorf("%x is %v", bad, v.V)
		}
	}
}

func TestLines(t *testing.T) {
	lines, more, ok := Lines([]byte("one\r\ntwo\n\nfour"), 10)
	if strings.Join(lines, "|") != "one|two||four" || more || !ok {
		t.Errorf("%q %v %v", lines, more, ok)
	}
	if lines, more, ok = Lines([]byte(strings.Repeat("x\n", 50)), 10); len(lines) != 10 || !more || !ok {
		t.Errorf("%d %v %v", len(lines), more, ok)
	}
	if lines, _, ok = Lines([]byte(strings.Repeat("é", 100_000)), 3); !ok || len(lines) != 1 || len(lines[0]) > maxText+4 {
		t.Errorf("%d %v", len(lines), ok)
	}
	for _, bad := range []string{"a\x00b", "\xff\xfe"} {
		if _, _, ok := Lines([]byte(bad), 10); ok {
			t.Errorf("%q is a text", bad)
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add("a.msgpack", []byte("\x82\xa1a\x93\x01\xc0\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xa1b\xc4\x01x"))
	f.Add("a.json", []byte(`{"a": [1, {"b": null}]}`))
	f.Add("a.msgpack", []byte("\xdd\x00\x0f\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, file string, data []byte) {
		n, _, err := tree(file, data)
		if nodes := countNodes(n); err == nil && (nodes < 1 || nodes > MaxNodes) {
			t.Errorf("%d nodes", nodes)
		}
	})
}

func countNodes(n Node) int {
	all := 1
	for _, c := range n.Inner {
		all += countNodes(c)
	}
	return all
}
