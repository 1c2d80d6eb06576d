package script

import (
	"fmt"
	"strings"
	"testing"
)

// TestPictures: expected pixels are worked out by hand.
func TestPictures(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"m = image.new(2, 1, (1, 2, 3))\njob.write(m.pixels())", "01 02 03 ff 01 02 03 ff"},
		{"m = image.of(2, 1, b\"\\x01\\x02\\x03\\x04\\x05\\x06\", \"bgr\")\njob.write(m.pixels())", "03 02 01 ff 06 05 04 ff"},
		{"m = image.of(2, 2, b\"\\x01\\x02\\x03\\x04\", \"r\")\njob.write(m.crop(1, 0, 1, 2).pixels(\"r\") + m.flipped().pixels(\"r\"))", "02 04 03 04 01 02"},
		{"m = image.of(2, 1, b\"\\x01\\x02\", \"r\")\njob.write(m.map(r = lambda v: 255 - v).pixels(\"r\") + m.map(rgb = [7] * 256).pixels(\"gb\"))", "fe fd 07 07 07 07"},
		{"m = image.of(2, 1, b\"\\x01\\x02\", \"r\")\njob.write(m.resize(4, 2, filter = \"nearest\").pixels(\"r\"))", "01 01 02 02 01 01 02 02"},
		{"m = image.new(3, 1)\nm.blit(image.new(2, 2, (9, 9, 9)), 2, -1)\nm.blit(image.new(2, 1, (5, 5, 5)), -1, 0)\njob.write(m.pixels(\"r\"))", "05 00 09"},
		// Half of white over opaque black: (255*128 + 0*127) / 255 = 128. Over nothing it stays as it is.
		{"m = image.new(1, 1, (0, 0, 0))\nm.compose(image.new(1, 1, (255, 255, 255, 128)), 0, 0)\njob.write(m.pixels())", "80 80 80 ff"},
		{"m = image.new(1, 1)\nm.compose(image.new(1, 1, (10, 20, 30, 128)), 0, 0)\njob.write(m.pixels())", "0a 14 1e 80"},
		{"m = image.new(1, 1)\nm.put(0, 0, (1, 2, 3, 4))\nr, g, b, a = m.get(0, 0)\njob.write(image.open(m.png()).pixels() + m.swizzle(\"ab01\").pixels())", "01 02 03 04 04 03 00 ff"},
	} {
		if got, _ := text(t, c.lines, nil); fmt.Sprintf("% x", got) != c.want {
			t.Errorf("%s\ngot  % x (%s)\nwant %s", c.lines, got, got, c.want)
		}
	}
}

func TestWriter(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"w.u8(1, [2, 3])\nw.u16(0x0102)\nw.u32(1)", "01 02 03 02 01 01 00 00 00"},
		{"w = writer(endian = \"big\")\nw.u16(0x0102)\nw.i16(-2)\nw.u64(1 << 63)", "01 02 ff fe 80 00 00 00 00 00 00 00"},
		{"w.i8(-128)\nw.i64(-1)\nw.i32(-2)", "80 ff ff ff ff ff ff ff ff fe ff ff ff"},
		{"w.f32(1)\nw.f64(-2.0)", "00 00 80 3f 00 00 00 00 00 00 00 c0"},
		{"w.str(\"ab\", size = 4)\nw.str(\"c\", zero = True)\nw.bytes(b\"\\xff\")", "61 62 00 00 63 00 ff"},
		{"w.u8(1)\nw.align(4, 9)\nat = w.pos\nw.u32(0)\nw.patch_u16(at, 0x0304)\nw.patch_u8(3, 7)", "01 09 09 07 04 03 00 00"},
	} {
		if got, _ := text(t, "w = writer()\n"+c.lines+"\njob.write(w)", nil); fmt.Sprintf("% x", got) != c.want {
			t.Errorf("%s\ngot  % x (%s)\nwant %s", c.lines, got, got, c.want)
		}
	}
	for _, lines := range []string{"w.u8(-1)", "w.i8(128)", "w.u64(1 << 64)", "w.u16(1.5)", "w.f32(\"a\")", "w.str(\"abc\", size = 2)", "w.patch_u32(0, 1)"} {
		if _, r := text(t, "w = writer()\n"+lines, nil); r.Err == nil {
			t.Errorf("%s went well", lines)
		}
	}
}

// TestObservations: what a script asks its job is recorded, and no more.
func TestObservations(t *testing.T) {
	_, r := text(t, "job.exists(\"x\")\njob.glob(\"*.p\")\njob.read_text()\njob.warn(\"careful\", line = 3)\nprint(job)\njob.write(\"a\", name = \"more\", ext = \".m\")", nil)
	if got := strings.Join(r.Observations, ", "); got != "exists x: false, glob *.p, file a.p" {
		t.Errorf("observed %s", got)
	}
	if len(r.Warnings) != 2 || r.Warnings[0].Line != 3 || !strings.Contains(r.Warnings[1].Text, "p.star:7:10: job a.p") {
		t.Errorf("warned %v", r.Warnings)
	}
	if p := r.Products["more"]; p.Extension != ".m" || p.Type != "p" || string(p.Data) != "a" {
		t.Errorf("wrote %+v", p)
	}
}
