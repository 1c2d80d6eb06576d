package wav

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/adpcm"
)

func le(v ...any) (out []byte) {
	for _, n := range v {
		switch n := n.(type) {
		case string:
			out = append(out, n...)
		case []byte:
			out = append(out, n...)
		case int:
			out = binary.LittleEndian.AppendUint32(out, uint32(n))
		case uint16:
			out = binary.LittleEndian.AppendUint16(out, n)
		}
	}
	return out
}

func part(id string, body []byte) []byte {
	return append(le(id, len(body), body), make([]byte, len(body)%2)...)
}

func format(tag, channels, bits, block int, more ...any) []byte {
	return part("fmt ", append(le(uint16(tag), uint16(channels), 48000, 48000*block, uint16(block), uint16(bits)), le(more...)...))
}

func file(parts ...[]byte) []byte {
	body := append([]byte("WAVE"), slices.Concat(parts...)...)
	return append(le("RIFF", len(body)), body...)
}

func open(data []byte) (*Reader, error) { return NewReader(bytes.NewReader(data), int64(len(data))) }

// all reads all samples, in pieces.
func all(t testing.TB, r *Reader) (out []float32) {
	t.Helper()
	buf := make([]float32, 7*r.Channels)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n*r.Channels]...)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSamples compares samples with values worked out from the definition of each format.
func TestSamples(t *testing.T) {
	ima := []byte{100, 0, 0, 0, 0x94, 0, 0, 0}
	decoded := make([]int16, 9)
	if _, err := adpcm.Decode(decoded, ima, 1); err != nil {
		t.Fatal(err)
	}
	var fromIMA []float32
	for _, v := range decoded {
		fromIMA = append(fromIMA, float32(v)/32768)
	}
	guid := []byte(guidRest)
	ext := func(tag, bits, valid, block int, data ...byte) []byte {
		return file(format(tagExtensible, 2, bits, block, uint16(22), uint16(valid), 3, uint16(tag), guid), part("data", data))
	}
	rifx := []byte("RIFX\x00\x00\x00\x00WAVEfmt \x00\x00\x00\x10\x00\x01\x00\x01\x00\x00\xbb\x80\x00\x02\x32\x80\x00\x03\x00\x18" +
		"data\x00\x00\x00\x06\x80\x00\x00\x00\x00\x01")
	big := []byte("RIFX\x00\x00\x00\x00WAVEfmt \x00\x00\x00\x28" +
		"\xff\xfe\x00\x01\x00\x00\xbb\x80\x00\x01\x76\x00\x00\x02\x00\x10\x00\x16\x00\x10\x00\x00\x00\x04")
	extBig := func(id string) []byte { return slices.Concat(big, []byte(id), []byte("data\x00\x00\x00\x02\x40\x00")) }
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name string
		data []byte
		want []float32
		warn string
	}{
		{"8 bits", file(format(1, 1, 8, 1), part("data", []byte{0, 128, 255})), []float32{-1, 0, 127.0 / 128}, ""},
		{"16 bits", file(format(1, 2, 16, 4), part("data", []byte{0, 0x80, 1, 0})), []float32{-1, 1.0 / 32768}, ""},
		{"24 bits", file(format(1, 1, 24, 3), part("data", []byte{0, 0, 0x80, 1, 0, 0})), []float32{-1, 1.0 / (1 << 23)}, ""},
		{"24 bits, big-endian", rifx, []float32{-1, 1.0 / (1 << 23)}, ""},
		{"big-endian, extensible", extBig("\x00\x00\x00\x01" + guidRestBig), []float32{0.5}, ""},
		{"big-endian, id as in RIFF", extBig("\x01\x00" + guidRest), []float32{0.5}, ""},
		{"big-endian, tag alone", extBig("\x00\x01" + guidRest), []float32{0.5}, ""},
		{"two files", slices.Concat(file(format(1, 1, 16, 2), part("data", []byte{0, 0x40})),
			file(format(1, 1, 16, 2), part("data", []byte{0, 1}))),
			[]float32{0.5}, "another WAV file begins at byte 46"},
		{"32 bits", file(format(1, 1, 32, 4), part("data", le(-1<<31, 1<<30))), []float32{-1, 0.5}, ""},
		{"24 in 32", ext(1, 32, 24, 8, 0, 1, 0, 0, 0, 0, 0, 0xc0), []float32{1.0 / (1 << 23), -0.5}, ""},
		{"24 in 32, plain", file(format(1, 1, 24, 4), part("data", []byte{0, 1, 0, 0})), []float32{1.0 / (1 << 23)}, ""},
		{"float", file(format(3, 1, 32, 4), part("data", le(0x40000000, 0x7f800000))), []float32{2, inf}, ""},
		{"float of 64", file(format(3, 1, 64, 8), part("data", le(0, 0x3fe00000))), []float32{0.5}, ""},
		{"A-law", file(format(6, 1, 8, 1), part("data", []byte{0xd5, 0x55, 0xaa})),
			[]float32{8.0 / 32768, -8.0 / 32768, 32256.0 / 32768}, ""},
		{"mu-law", file(format(7, 1, 8, 1), part("data", []byte{0xff, 0x00, 0x80})), []float32{0, -32124.0 / 32768, 32124.0 / 32768}, ""},
		{"IMA ADPCM", file(format(0x11, 1, 4, 8, uint16(2), uint16(9)), part("data", ima)), fromIMA, ""},
		{"IMA ADPCM, fact", file(format(0x11, 1, 4, 8, uint16(2), uint16(9)), part("fact", le(3)), part("data", ima)), fromIMA[:3], ""},
		{"MS ADPCM", file(format(2, 1, 4, 8), part("data", []byte{0, 16, 0, 20, 0, 10, 0, 0x3f})),
			[]float32{10.0 / 32768, 20.0 / 32768, 68.0 / 32768, 52.0 / 32768}, "coefficients"},
		{"stream", file(format(1, 1, 16, 2), le("data", -1, []byte{0, 0x40})), []float32{0.5}, ""},
		{"size 0", file(format(1, 1, 16, 2), le("data", 0, []byte{0, 0x40})), []float32{0.5}, "says 0 bytes"},
		{"cut off", file(format(1, 1, 16, 2), le("data", 100, []byte{0, 0x40, 9})), []float32{0.5}, "cut off"},
		{"part of a frame", file(format(1, 1, 16, 2), part("data", []byte{0, 0x40, 9})), []float32{0.5}, "1 bytes of a frame"},
		{"no padding", file(format(1, 1, 8, 1), le("junk", 1, "x"), part("data", []byte{0})), []float32{-1}, "odd size"},
		{"RF64", slices.Concat([]byte("RF64\xff\xff\xff\xffWAVE"), part("ds64", le(86, 0, 2, 0, 1, 0, 0)), format(1, 1, 16, 2),
			le("data", -1, []byte{0, 0x40}), part("junk", le(1))), []float32{0.5}, ""},
		{"something appended", append(file(format(1, 1, 16, 2), part("data", []byte{0, 0x40})), "TAG a b c d e f"...), []float32{0.5}, ""},
		{"no samples", file(format(1, 1, 16, 2), part("data", nil)), nil, ""},
	} {
		r, err := open(c.data)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := all(t, r); !slices.Equal(got, c.want) || r.Frames != int64(len(c.want)/r.Channels) {
			t.Errorf("%s: %v, %d frames; want %v", c.name, got, r.Frames, c.want)
		}
		if got := strings.Join(r.Warnings, "; "); !strings.Contains(got, c.warn) || c.warn == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", c.name, got, c.warn)
		}
	}
}

func TestRefused(t *testing.T) {
	data := part("data", make([]byte, 8))
	for name, c := range map[string]struct {
		data []byte
		want error
		text string
	}{
		"nothing":       {nil, ErrTruncated, ""},
		"something":     {make([]byte, 100), ErrDamaged, "RIFF"},
		"no fmt":        {file(data), ErrDamaged, "fmt"},
		"no data":       {file(format(1, 1, 16, 2)), ErrDamaged, "data"},
		"MP3":           {file(format(0x55, 1, 16, 2), data), ErrUnsupported, "MP3"},
		"65 channels":   {file(format(1, 65, 16, 130), data), ErrUnsupported, "byte 12: 65 channels"},
		"64-bit PCM":    {file(format(1, 1, 64, 8), data), ErrUnsupported, "PCM of 64 bits"},
		"16-bit float":  {file(format(3, 1, 16, 2), data), ErrUnsupported, "float of 16"},
		"IMA, no block": {file(format(0x11, 1, 4, 3), data), ErrDamaged, "blocks of 3 bytes"},
	} {
		if _, err := open(c.data); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.text)
		}
	}
}

var sung = Metadata{
	UnityNote: 64,
	Loops:     []Loop{{Begin: 1, End: 5, Count: 3, Name: "the loop"}, {Begin: 0, End: 1, Type: Backward}},
	Markers:   []Marker{{Name: "hit", Frame: 2, Note: "änd"}, {Name: "part", Frame: 2, Length: 3}, {Frame: 5}},
	Info:      []Text{{"INAM", "A Sound"}, {"ICMT", "x"}},
}

// seeker is a file in memory.
type seeker struct {
	b  []byte
	at int64
}

func (s *seeker) Write(p []byte) (int, error) {
	if grow := s.at + int64(len(p)) - int64(len(s.b)); grow > 0 {
		s.b = append(s.b, make([]byte, grow)...)
	}
	copy(s.b[s.at:], p)
	s.at += int64(len(p))
	return len(p), nil
}

func (s *seeker) Seek(to int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		s.at = to
	}
	return s.at, nil
}

func TestWriter(t *testing.T) {
	for _, f := range []Format{
		{Rate: 44100, Channels: 1, Bits: 16}, {Rate: 48000, Channels: 1, Bits: 24}, {Rate: 8000, Channels: 2, Coding: Float, Bits: 32},
		{Rate: 96000, Channels: 6, Bits: 24, Mask: 0x3f}, {Rate: 96000, Channels: 2, Bits: 16, Mask: 0xc},
		{Rate: 1, Channels: 3, Coding: Float, Bits: 32},
	} {
		src := make([]float32, 5*f.Channels)
		for i := range src {
			src[i] = float32(i*i%61-30) / 32
		}
		var known bytes.Buffer
		var unknown seeker
		for to, frames := range map[io.Writer]int64{&known: 5, &unknown: -1} {
			w, err := NewWriter(to, f, sung, frames)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Write(src[:f.Channels]), w.Write(src[f.Channels:]), w.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(known.Bytes(), unknown.b) || unknown.at != int64(len(unknown.b)) {
			t.Errorf("%+v: %d bytes if the number of frames is known, and %d", f, known.Len(), len(unknown.b))
		}
		r, err := open(unknown.b)
		if err != nil {
			t.Fatal(err)
		}
		f.Block = f.Channels * f.Bits / 8
		if r.Format != f || r.Warnings != nil || !reflect.DeepEqual(r.Metadata, sung) {
			t.Errorf("%+v comes back as %+v\n%+v\n%q", f, r.Format, r.Metadata, r.Warnings)
		}
		if got := all(t, r); !slices.Equal(got, src) {
			t.Errorf("%+v: %v comes back as %v", f, src, got)
		}
	}
	for v, want := range map[float32]int32{2: 32767, -2: -32768, float32(math.NaN()): 0, 1.5 / 32768: 2, 0.5 / 32768: 0, 1: 32767} {
		if got := integer(v, 1<<15); got != want {
			t.Errorf("%v is written as %d, want %d", v, got, want)
		}
	}
}

// small returns a file with chunks of all kinds.
func small(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, Format{Rate: 44100, Channels: 1, Bits: 24}, sung, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write([]float32{0, 1, 0, -1, 0.25}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file that is cut off anywhere, or has any byte changed, is read or gives an error.
func TestHostile(t *testing.T) {
	good := small(t)
	for n := range good {
		r := try(t, good[:n])
		if r == nil {
			continue
		}
		if len(r.Warnings) == 0 && n < len(good)-8 {
			t.Errorf("cut to %d of %d bytes, and no warning", n, len(good))
		}
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := slices.Clone(good)
			changed[n] = b
			try(t, changed)
		}
	}
}

func try(t testing.TB, data []byte) *Reader {
	r, err := open(data)
	if err != nil {
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("error of no kind: %v", err)
		}
		return nil
	}
	if r.Frames > int64(2*len(data)) {
		t.Fatalf("%d frames in %d bytes", r.Frames, len(data))
	}
	got := all(t, r)
	if int64(len(got)) != r.Frames*int64(r.Channels) {
		t.Fatalf("%d samples, %d frames of %d channels", len(got), r.Frames, r.Channels)
	}
	if half := r.Frames / 2; r.SeekFrame(half) != nil || len(all(t, r)) != int(r.Frames-half)*r.Channels {
		t.Fatalf("not as many frames from %d on", half)
	}
	for _, l := range r.Loops {
		if l.Begin < 0 || l.Begin >= l.End || l.End > r.Frames {
			t.Fatalf("loop %+v of %d frames", l, r.Frames)
		}
	}
	return r
}

func FuzzReader(f *testing.F) {
	f.Add(small(f))
	f.Add(file(format(0x11, 2, 4, 16, uint16(2), uint16(9)), part("fact", le(8)), part("data", make([]byte, 40))))
	f.Add(file(format(2, 2, 4, 22), part("data", make([]byte, 40))))
	f.Fuzz(func(t *testing.T, data []byte) { try(t, data) })
}
