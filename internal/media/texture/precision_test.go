package texture

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
)

// sixteens is a picture of a row of grey, or of four channels of each pixel.
func sixteens(channels int, v ...uint16) *pixel.Picture {
	var b []byte
	for _, n := range v {
		if channels == 1 {
			b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, n), n)
			b = append(binary.LittleEndian.AppendUint16(b, n), 255, 255)
		} else {
			b = binary.LittleEndian.AppendUint16(b, n)
		}
	}
	return pixel.OfSixteens(b, 4, len(b)/8, 1)
}

// TestSixteenBits has numbers that 8 bits and half floats cannot tell apart, in all formats that hold them, in both containers.
func TestSixteenBits(t *testing.T) {
	grey, colour := sixteens(1, 0x1234, 0x1235, 0x1236, 0xffff), sixteens(4, 1, 2, 0xfffe, 0x8000, 0x8001, 256, 257, 0xffff)
	for _, tt := range []struct {
		picture *pixel.Picture
		format  string
		want    string
		kept    int // channels
		numbers []uint16
	}{
		{grey, "auto", "r16", 3, []uint16{0x1234, 0x1235, 0x1236, 0xffff}},
		{grey, "rg16", "rg16", 2, []uint16{0x1234, 0x1234, 0x1235, 0x1235, 0x1236, 0x1236, 0xffff, 0xffff}},
		{colour, "auto", "rgba16", 4, []uint16{1, 2, 0xfffe, 0x8000, 0x8001, 256, 257, 0xffff}},
		{colour, "r16", "r16", 1, []uint16{1, 0x8001}},
	} {
		for _, container := range []string{"ktx2", "dds"} {
			o := with(func(o *Options) {
				o.Use, o.Format, o.Container, o.Mips = "data", tt.format, container, false
			})
			plan, err := NewPlan(Images{Pictures: []*pixel.Picture{tt.picture}}, o)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Format != tt.want || plan.SRGB || len(plan.Warnings()) > 0 {
				t.Errorf("%s: %s, sRGB %v, %v", tt.format, plan.Format, plan.SRGB, plan.Warnings())
			}
			pieces, err := plan.Encode(Tools{})
			if err != nil {
				t.Fatal(err)
			}
			data := slices.Concat(pieces...)
			var want []byte
			for _, n := range tt.numbers {
				want = binary.LittleEndian.AppendUint16(want, n)
			}
			if got := data[len(data)-len(want):]; string(got) != string(want) {
				t.Errorf("%s in %s: %x, want %x", tt.want, container, got, want)
			}
			f, err := Open(data, o.Limits())
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.Picture(0, 0, 0, 0)
			if err != nil || p.HDR || SpaceOf(data) != SpaceLight {
				t.Fatalf("%+v, %v, %s", p, err, SpaceOf(data))
			}
			for i, v := range p.Float.Pix {
				kept := tt.kept
				if container == "dds" && tt.format == "auto" && tt.want == "r16" {
					kept = 1 // it has no swizzle
				}
				if i%4 < kept && v != tt.picture.Float.Pix[i] {
					t.Errorf("%s in %s: number %d is %v, want %v", tt.want, container, i, v, tt.picture.Float.Pix[i])
				}
			}
		}
	}
}

func TestSixteenBitMips(t *testing.T) {
	data := encode(t, Images{Pictures: []*pixel.Picture{sixteens(1, 1000, 1002, 1001, 1003)}},
		with(func(o *Options) { o.Use = "data" }), Tools{})
	k, err := ktx2.Decode(data)
	if err != nil || k.Format != ktx2.R16 || k.Swizzle != "rrr1" || len(k.Levels) != 3 {
		t.Fatalf("%+v, %v", k, err)
	}
	le := binary.LittleEndian
	if a, b, c := le.Uint16(k.Levels[1]), le.Uint16(k.Levels[1][2:]), le.Uint16(k.Levels[2]); a != 1001 || b != 1002 || c != 1002 { // 1001.5
		t.Errorf("%d %d, %d", a, b, c)
	}
}

func TestPrecisionIsLostAloud(t *testing.T) {
	fine, coarse := sixteens(1, 0x1234, 0x1235, 0x1236, 0xffff), sixteens(1, 0, 0x101, 0x8080, 0xffff)
	halves := sixteens(1, 0, 0xffff, 0xffff, 0)
	light := &pixel.Picture{HDR: true, Float: &pixel.Float{Width: 1, Height: 1, Pix: []float32{0.1, 2, 3, 1}}}
	for _, tt := range []struct {
		name    string
		picture *pixel.Picture
		change  func(o *Options)
		warns   bool
	}{
		{"kept", fine, func(o *Options) {}, false},
		{"kept for PCs", fine, func(o *Options) { o.Family = "bc" }, false},
		{"of phones", fine, func(o *Options) { o.Family = "astc" }, true},
		{"of older phones", fine, func(o *Options) { o.Family = "etc2" }, true},
		{"of phones, 8 bits of 16", coarse, func(o *Options) { o.Family = "astc" }, false},
		{"8 bits", fine, func(o *Options) { o.Format = "r8" }, true},
		{"half floats", fine, func(o *Options) { o.Format = "rgba16f" }, true},
		{"half floats of 0 and 1", halves, func(o *Options) { o.Format = "rgba16f" }, false},
		{"a PNG", fine, func(o *Options) { o.Container = "png" }, true},
		{"bled", fine, func(o *Options) { o.Bleed = 1 }, true},
		{"a colour", fine, func(o *Options) { o.Use = "color" }, false},
		{"light", light, func(o *Options) {}, true},
		{"light over 1", light, func(o *Options) { o.Format = "rgba16" }, true},
	} {
		p, err := NewPlan(Images{Pictures: []*pixel.Picture{tt.picture}}, with(func(o *Options) {
			o.Use = "data"
			tt.change(o)
		}))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		warned := false
		for _, w := range p.Warnings() {
			warned = warned || w.Code == "K1217" && strings.Contains(w.Text, "lose precision") && strings.Contains(w.Hint, "rgba16")
		}
		if warned != tt.warns {
			t.Errorf("%s: warned is %v in %s", tt.name, warned, p.Format)
		}
	}
}
