package gif

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	stdgif "image/gif"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// red, green, blue and black, by index.
const palette = "\xff\x00\x00\x00\xff\x00\x00\x00\xff\x00\x00\x00"

func u16(n ...int) string {
	var b []byte
	for _, v := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return string(b)
}

// file has a palette of four colours, and blocks.
func file(width, height int, blocks ...string) []byte {
	return []byte("GIF89a" + u16(width, height) + "\x81\x00\x00" + palette + strings.Join(blocks, "") + ";")
}

// packed are indices packed by LZW, in parts.
func packed(bits int, indices ...byte) string {
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, bits)
	_, _ = w.Write(indices)
	_ = w.Close()
	out := string(rune(bits))
	for rest := b.Bytes(); len(rest) > 0; {
		n := min(len(rest), 7)
		out += string(rune(n)) + string(rest[:n])
		rest = rest[n:]
	}
	return out + "\x00"
}

func frame(x, y, width, height int, flags byte, rest string) string {
	return "," + u16(x, y, width, height) + string([]byte{flags}) + rest
}

func control(dispose, delay int, transparent byte) string {
	return "!\xf9\x04" + string([]byte{byte(dispose<<2 | 1)}) + u16(delay) + string([]byte{transparent}) + "\x00"
}

var colours = [][4]byte{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {0, 0, 0, 255}, {}}

// pixels are those of indices; 4 is transparent.
func pixels(indices ...byte) (out []byte) {
	for _, i := range indices {
		out = append(out, colours[i][:]...)
	}
	return out
}

// TestDecode has files by the specification, and with the faults that other readers pass over.
func TestDecode(t *testing.T) {
	rows := []byte{0, 1, 2, 3}
	plain := frame(0, 0, 2, 2, 0, packed(2, rows...))
	down := make([]byte, 0, 10) // ten rows of one pixel: 0, 8, 4, 2, 6, 1, 3, 5, 7, 9
	for _, y := range []byte{0, 8, 4, 2, 6, 1, 3, 5, 7, 9} {
		down = append(down, y%4)
	}
	for _, tt := range []struct {
		name          string
		data          []byte
		width, height int
		want          []byte
		flaw          string
	}{
		{"plain", file(2, 2, plain), 2, 2, pixels(rows...), ""},
		{"transparent", file(2, 2, control(0, 0, 2), plain), 2, 2, pixels(0, 1, 4, 3), ""},
		{"interlaced", file(1, 10, frame(0, 0, 1, 10, interlace, packed(2, down...))), 1, 10, pixels(0, 1, 2, 3, 0, 1, 2, 3, 0, 1), ""},
		{"a palette of its own", file(1, 1, frame(0, 0, 1, 1, hasPalette, palette[6:]+packed(2, 0))), 1, 1, pixels(2), ""},
		{"other extensions", file(2, 2, "!\xfe\x02hi\x00", "!\x42\x01a\x00", "!\xf9\x05\x01\x00\x00\x01\x00\x00", plain), 2, 2,
			pixels(0, 4, 2, 3), ""},
		{"zeros between blocks", file(2, 2, "\x00\x00", plain), 2, 2, pixels(rows...), ""},
		{"too many pixels", file(2, 2, frame(0, 0, 2, 2, 0, packed(2, 0, 1, 2, 3, 0, 0, 0))), 2, 2, pixels(rows...), ""},
		{"no trailer", bytes.TrimSuffix(file(2, 2, plain), []byte(";")), 2, 2, pixels(rows...), ""},
		{"no end of the parts", bytes.TrimSuffix(file(2, 2, plain), []byte("\x00;")), 2, 2, pixels(rows...), ""},
		{"beyond the screen", file(2, 2, frame(1, 1, 2, 2, 0, packed(2, rows...))), 3, 3, pixels(rows...),
			"of 2 x 2 at 1, 1 reaches beyond the screen of 2 x 2, which was enlarged"},
		{"no screen", file(0, 0, plain), 2, 2, pixels(rows...), "which was enlarged"},
		{"a second one beyond the screen", file(2, 2, plain, frame(1, 0, 2, 1, 0, packed(2, 0, 1))), 2, 2, pixels(rows...),
			"frame 2 reaches beyond the screen, and was cut"},
		{"a colour beyond the palette", file(1, 1, frame(0, 0, 1, 1, 0, packed(3, 5))), 1, 1, pixels(3), "strange"},
	} {
		f, err := Parse(tt.data)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, strange, err := f.Frames[0].Decode()
		if err != nil || f.Width != tt.width || f.Height != tt.height || !bytes.Equal(got, tt.want) || f.End != nil {
			t.Errorf("%s: %d x %d, %v, %v, %v; want %v", tt.name, f.Width, f.Height, got, err, f.End, tt.want)
		}
		if strange != (tt.flaw == "strange") || !strange && (f.Flaw == "") != (tt.flaw == "") || !strange && !strings.Contains(f.Flaw, tt.flaw) {
			t.Errorf("%s: flaw %q, strange %v", tt.name, f.Flaw, strange)
		}
	}
}

func TestAnimation(t *testing.T) {
	one := frame(0, 0, 1, 1, 0, packed(2, 0))
	f, err := Parse(file(1, 1, "!\xff\x0bNETSCAPE2.0\x03\x01"+u16(2)+"\x00", control(Previous, 7, 9), one, control(Background,
		0, 0), one, one))
	if err != nil || len(f.Frames) != 3 || f.Plays != 3 {
		t.Fatalf("%+v, %v", f, err)
	}
	a, b, c := f.Frames[0], f.Frames[1], f.Frames[2]
	if a.Dispose != Previous || a.Delay != 70*time.Millisecond || b.Dispose != Background || b.Delay != 0 || c.Dispose != 0 || c.transparent != -1 {
		t.Errorf("%+v", f.Frames)
	}
	f, err = Parse(file(1, 1, one, "#"))
	if err != nil || len(f.Frames) != 1 || !errors.Is(f.End, input.ErrDamaged) || f.Plays != 1 {
		t.Errorf("a block of no kind after the first frame: %+v, %v", f, err)
	}
}

func TestRefused(t *testing.T) {
	plain := frame(0, 0, 2, 2, 0, packed(2, 0, 1, 2, 3))
	whole := file(2, 2, plain)
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, input.ErrTruncated},
		{"another version", []byte("GIF88a" + string(whole[6:])), input.ErrDamaged},
		{"half a palette", whole[:20], input.ErrTruncated},
		{"no frame", file(2, 2), input.ErrDamaged},
		{"half a frame", whole[:30], input.ErrTruncated},
		{"a block of no kind", file(2, 2, "#"), input.ErrDamaged},
		{"no palette", []byte("GIF89a" + u16(2, 2) + "\x00\x00\x00" + plain), input.ErrDamaged},
		{"no width", file(2, 2, frame(0, 0, 0, 2, 0, packed(2))), input.ErrDamaged},
		{"codes of no bits", file(2, 2, frame(0, 0, 2, 2, 0, "\x00\x01\x00\x00")), input.ErrDamaged},
		{"codes of 9 bits", file(2, 2, frame(0, 0, 2, 2, 0, "\x09\x01\x00\x00")), input.ErrDamaged},
		{"too few pixels", file(2, 2, frame(0, 0, 2, 2, 0, packed(2, 0, 1, 2))), input.ErrTruncated},
		{"a code that is none", file(2, 2, frame(0, 0, 2, 2, 0, "\x02\x02\xfc\xff\x00")), input.ErrDamaged},
	} {
		f, err := Parse(tt.data)
		if err == nil {
			_, _, err = f.Frames[0].Decode()
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestAgainstStandard compares with image/gif, which writes interlaced and plain files with transparent colours.
func TestAgainstStandard(t *testing.T) {
	data := many(t)
	want, err := stdgif.DecodeAll(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil || len(f.Frames) != len(want.Image) || f.End != nil {
		t.Fatalf("%+v, %v", f, err)
	}
	for i, m := range want.Image {
		got, _, err := f.Frames[i].Decode()
		if err != nil {
			t.Fatal(err)
		}
		for p, index := range m.Pix {
			c := color.NRGBAModel.Convert(m.Palette[index]).(color.NRGBA)
			if !slices.Equal(got[4*p:4*p+4], []byte{c.R, c.G, c.B, c.A}) {
				t.Fatalf("frame %d: pixel %d is %v, not %v", i, p, got[4*p:4*p+4], c)
			}
		}
	}
}

func many(t testing.TB) []byte {
	t.Helper()
	all := &stdgif.GIF{}
	for i := range 3 {
		p := make(color.Palette, 2<<(3*i))
		for c := range p {
			p[c] = color.NRGBA{byte(c), byte(c * 7), byte(255 - c), 255}
		}
		if i > 0 {
			p[1] = color.NRGBA{}
		}
		m := image.NewPaletted(image.Rect(0, 0, 61, 47), p)
		for j := range m.Pix {
			m.Pix[j] = byte(j*j/7) % byte(min(len(p), 255))
		}
		all.Image, all.Delay = append(all.Image, m), append(all.Delay, 5)
	}
	var b bytes.Buffer
	if err := stdgif.EncodeAll(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAgainstFFmpeg compares the first frame with what ffmpeg reads, of a GIF that it interlaces and dithers itself.
func TestAgainstFFmpeg(t *testing.T) {
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed")
	}
	dir := t.TempDir()
	at := filepath.Join(dir, "a.gif")
	run := func(args ...string) []byte {
		out, err := exec.Command("ffmpeg", append([]string{"-loglevel", "error", "-y"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("-f", "lavfi", "-i", "testsrc2=size=61x47:rate=5:duration=1", at)
	want := run("-i", at, "-frames:v", "1", "-pix_fmt", "rgba", "-f", "rawvideo", "-")
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil || len(f.Frames) != 5 {
		t.Fatalf("%+v, %v", f, err)
	}
	if got, _, err := f.Frames[0].Decode(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other pixels, %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file(2, 2, control(Previous, 7, 1), frame(1, 1, 2, 2, interlace, packed(2, 0, 1, 2, 3)), "!\xff\x0bNETSCAPE2.0\x03\x01\x02\x00\x00"))
	f.Add(many(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		kinds := func(err error) {
			if !errors.Is(err, input.ErrTruncated) && !errors.Is(err, input.ErrDamaged) {
				t.Fatalf("error of no kind: %v", err)
			}
		}
		g, err := Parse(data)
		if err != nil {
			kinds(err)
			return
		}
		for i := range g.Frames[:min(len(g.Frames), 4)] {
			frame := &g.Frames[i]
			if frame.Width*frame.Height > 1<<14 {
				continue
			}
			if pix, _, err := frame.Decode(); err != nil {
				kinds(err)
			} else if len(pix) != 4*frame.Width*frame.Height {
				t.Fatalf("%d bytes for %d x %d", len(pix), frame.Width, frame.Height)
			}
		}
	})
}
