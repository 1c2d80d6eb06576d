package psd

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// layer is a layer that tests write.
type layer struct {
	name           string
	x, y, w, h     int
	blend          string
	opacity, flags byte
	clipping       byte
	blocks         []byte
	channels       map[int][]byte // by id, written in the order of order: packing and rows
	order          []int
}

func block(key string, body []byte) []byte {
	b := append(u32([]byte("8BIM"+key), len(body)), body...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func unicode(name string) []byte {
	b := u32(nil, len(name))
	for _, c := range name {
		b = u16(b, int(c))
	}
	return block("luni", b)
}

// info returns the records and pixels of layers, preceded by their number.
func info(large bool, count int, layers ...layer) []byte {
	b := u16(nil, count)
	var pixels []byte
	for _, l := range layers {
		b = u16(u32(b, l.y, l.x, l.y+l.h, l.x+l.w), len(l.order))
		for _, id := range l.order {
			b = u16(b, id)
			if large {
				b = u32(b, 0)
			}
			b = u32(b, len(l.channels[id]))
			pixels = append(pixels, l.channels[id]...)
		}
		b = append(append(b, "8BIM"+l.blend...), l.opacity, l.clipping, l.flags, 0)
		name := append([]byte{byte(len(l.name))}, l.name...)
		for len(name)%4 != 0 {
			name = append(name, 0)
		}
		b = append(b, sized(slices.Concat(u32(nil, 0), u32(nil, 0), name, l.blocks), false)...)
	}
	return append(b, pixels...)
}

// packed returns a channel of bytes in one of the four packings.
func packed(way, w int, rows ...byte) []byte {
	b := u16(nil, way)
	switch way {
	case 0:
		return append(b, rows...)
	case 1:
		for range len(rows) / w {
			b = u16(b, w+1)
		}
		for i := 0; i < len(rows); i += w {
			b = append(append(b, byte(w-1)), rows[i:i+w]...)
		}
		return b
	case 3:
		rows = slices.Clone(rows)
		for i := len(rows) - 1; i > 0; i-- {
			if i%w != 0 {
				rows[i] -= rows[i-1]
			}
		}
	}
	var z bytes.Buffer
	w2 := zlib.NewWriter(&z)
	w2.Write(rows)
	w2.Close()
	return append(b, z.Bytes()...)
}

func document(large bool, depth int, layers []byte) []byte {
	f := file{large: large, channels: 3, w: 4, h: 4, depth: depth, mode: rgb, raw: make([]byte, 3*16*depth/8)}
	if depth == 16 {
		f.layers = slices.Concat(sized(nil, large), sized(nil, false), []byte("8BIMLr16"), sized(layers, large))
	} else {
		f.layers = sized(layers, large)
	}
	return f.bytes()
}

// body returns a layer of 2 x 1 pixels, with a different packing for each channel.
func body() layer {
	return layer{name: "body", x: -1, y: 2, w: 2, h: 1, blend: "mul ", opacity: 128, order: []int{-1, 0, 1, 2, -2}, channels: map[int][]byte{
		-1: packed(0, 2, 255, 100), 0: packed(1, 2, 10, 20), 1: packed(2, 2, 30, 40), 2: packed(3, 2, 50, 60), -2: {9, 9, 9}}}
}

func TestLayers(t *testing.T) {
	background := layer{name: "x", w: 1, h: 1, blend: "norm", opacity: 255, order: []int{0, 1, 2},
		blocks: unicode("B\u00e4"), channels: map[int][]byte{
			0: packed(0, 1, 1), 1: packed(0, 1, 2), 2: packed(0, 1, 3)}}
	end := layer{name: "</Layer group>", blend: "norm", blocks: block("lsct", u32(nil, 3))}
	folder := layer{name: "group", blend: "norm", opacity: 255, flags: 2, blocks: block("lsct", append(u32(nil, 1), "8BIMpass"...))}
	clipped := layer{name: "shade", blend: "????", opacity: 7, clipping: 1}
	for _, large := range []bool{false, true} {
		b := body()
		if large { // PackBits lengths have more bytes
			b.channels[0] = packed(0, 2, 10, 20)
		}
		data := document(large, 8, info(large, -5, background, end, b, clipped, folder))
		got, err := Layers(data, 100)
		if err != nil {
			t.Fatal(err)
		}
		want := []Layer{
			{Name: "B\u00e4", Parent: -1, Visible: true, Opacity: 255, Blend: "normal", Width: 1, Height: 1, Pix: []byte{1, 2, 3, 255}},
			{Name: "body", Parent: 3, Visible: true, Opacity: 128, Blend: "multiply", X: -1, Y: 2,
				Width: 2, Height: 1, Pix: []byte{10, 30, 50, 255, 20, 40, 60, 100}},
			{Name: "shade", Parent: 3, Visible: true, Clipped: true, Opacity: 7, Blend: "????"},
			{Name: "group", Parent: -1, Group: true, Opacity: 255, Blend: "pass-through"},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("large %v: %s", large, d)
		}
		if n := CountLayers(data); n != 5 {
			t.Errorf("%d records", n)
		}
		if _, err := Layers(data, 2); !errors.Is(err, input.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		for n := range len(data) - 3*16 - 2 {
			if l, err := Layers(data[:n], 100); err == nil && len(l) > 0 {
				t.Fatalf("%d bytes of %d are read", n, len(data))
			}
		}
		if m, err := Decode(data, 16); err != nil || m.Width != 4 {
			t.Errorf("%v", err)
		}
	}
}

func TestLayersDeep(t *testing.T) {
	l := layer{name: "a", w: 2, h: 1, blend: "norm", opacity: 255, order: []int{0, 1, 2}}
	deep := func(way int) []byte {
		row := []byte{0x80, 0x80, 0xff, 0xff}
		if way == 3 {
			binary.BigEndian.PutUint16(row[2:], 0xffff-0x8080)
			way = 2
			b := packed(way, 4, row...)
			b[1] = 3
			return b
		}
		return packed(way, 4, row...)
	}
	l.channels = map[int][]byte{0: deep(0), 1: deep(2), 2: deep(3)}
	got, err := Layers(document(false, 16, info(false, 1, l)), 100)
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Pix, []byte{128, 128, 128, 255, 255, 255, 255, 255}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLayersRefused(t *testing.T) {
	bomb := body()
	bomb.w, bomb.h = 20000, 20000
	bomb.channels[-1], bomb.order = packed(2, 1, 0), []int{-1}
	twice := body()
	twice.channels[0] = []byte{0, 9, 1}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"more than there is":   {document(false, 8, info(false, 2)), input.ErrTruncated},
		"too many":             {document(false, 8, u16(nil, 20000)), input.ErrTooLarge},
		"a bomb":               {document(false, 8, info(false, 1, bomb)), input.ErrTruncated},
		"an unknown packing":   {document(false, 8, info(false, 1, twice)), input.ErrDamaged},
		"bottom above the top": {document(false, 8, u16(u32(u16(nil, 1), 5, 0, 2, 1), 0)), input.ErrDamaged},
	} {
		if _, err := Layers(c.data, 1<<30); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if l, err := Layers(document(false, 8, nil), 100); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
}

// TestImageMagick reads the output of ImageMagick, if it is installed.
func TestImageMagick(t *testing.T) {
	convert, err := exec.LookPath("convert-im6")
	if err != nil {
		convert, err = exec.LookPath("magick")
	}
	if err != nil {
		t.Skip("ImageMagick is not installed")
	}
	dir := t.TempDir()
	at := image.Rect(0, 0, 5, 4)
	for name, c := range map[string]color.NRGBA{"a": {200, 100, 50, 255}, "b": {1, 2, 250, 128}} {
		m := image.NewNRGBA(at)
		for i := range 20 {
			m.SetNRGBA(i%5, i/5, c)
		}
		var b bytes.Buffer
		png.Encode(&b, m)
		os.WriteFile(filepath.Join(dir, name+".png"), b.Bytes(), 0o666)
	}
	cmd := exec.Command(convert, "a.png", "(", "-label", "ground", "a.png", ")",
		"(", "-label", "glow", "b.png", "-repage", "+2+1", ")", "out.psd")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out.psd"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Layers(data, 1000)
	if err != nil || len(l) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	if l[0].Name != "ground" || l[1].Name != "glow" || l[1].X != 2 || l[1].Y != 1 || l[1].Width != 5 || !l[1].Visible || l[1].Opacity != 255 ||
		!bytes.Equal(l[0].Pix[:4], []byte{200, 100, 50, 255}) || !bytes.Equal(l[1].Pix[:4], []byte{1, 2, 250, 128}) {
		t.Errorf("%+v", l)
	}
}

func FuzzLayers(f *testing.F) {
	f.Add(document(false, 8, info(false, 1, body())))
	f.Add(document(false, 16, info(false, 1, body())))
	f.Add(document(true, 8, info(true, -1, body())))
	f.Fuzz(func(t *testing.T, data []byte) {
		layers, err := Layers(data, 1<<20)
		if err != nil {
			return
		}
		for _, l := range layers {
			if len(l.Pix) != 4*l.Width*l.Height || l.Parent >= len(layers) {
				t.Errorf("%d x %d, %d bytes, in %d", l.Width, l.Height, len(l.Pix), l.Parent)
			}
		}
	})
}
