package qoa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// music returns tones that rise and fade, with a little noise.
func music(samples, channels int) []int16 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]int16, samples*channels)
	for i := range samples {
		for c := range channels {
			x, fade := float64(i)/44100, math.Exp(-4*math.Mod(float64(i)/44100, 0.5))
			v := 9000*fade*math.Sin(2*math.Pi*440*x) + 5000*math.Sin(2*math.Pi*(110+55*float64(c))*x) + 3000*fade*math.Sin(2*math.Pi*2300*x)
			out[i*channels+c] = int16(v + 100*r.NormFloat64())
		}
	}
	return out
}

func encode(t testing.TB, src []int16, channels int) []byte {
	t.Helper()
	var b bytes.Buffer
	e, err := NewEncoder(&b, 44100, channels, int64(len(src)/channels))
	if err != nil {
		t.Fatal(err)
	}
	// In pieces of odd lengths, one of them longer than a frame.
	for k, rest := 1, src; len(rest) > 0; k = k*3 + 1 {
		n := min(k*channels, len(rest))
		if err := e.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(data []byte) (*Decoder, error) { return NewDecoder(bytes.NewReader(data), int64(len(data))) }

func all(t testing.TB, d *Decoder, piece int) (out []int16) {
	t.Helper()
	buf := make([]int16, piece*d.Channels+d.Channels-1)
	for {
		n, err := d.Read(buf)
		out = append(out, buf[:n*d.Channels]...)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// plain decodes by the text of the specification, without the code above and without regard to speed.
func plain(data []byte) (out []int16) {
	dequant := []float64{0.75, -0.75, 2.5, -2.5, 4.5, -4.5, 7, -7}
	data = data[8:]
	for len(data) > 0 {
		channels, samples := int(data[0]), int(binary.BigEndian.Uint16(data[4:]))
		slices := data[8+16*channels:]
		history, weights := make([][4]int, channels), make([][4]int, channels)
		for c := range channels {
			for i := range 4 {
				history[c][i] = int(int16(binary.BigEndian.Uint16(data[8+16*c+2*i:])))
				weights[c][i] = int(int16(binary.BigEndian.Uint16(data[16+16*c+2*i:])))
			}
		}
		pcm := make([]int16, channels*samples)
		for first := 0; first < samples; first += 20 {
			for c := range channels {
				slice := binary.BigEndian.Uint64(slices)
				slices = slices[8:]
				scale := math.Round(math.Pow(float64(slice>>60)+1, 2.75))
				for i := range 20 {
					r := int(math.Round(scale * dequant[slice>>(57-3*i)&7]))
					p := 0
					for k := range 4 {
						p += history[c][k] * weights[c][k]
					}
					s := max(-32768, min(32767, p>>13+r))
					for k := range 4 {
						if history[c][k] < 0 {
							weights[c][k] -= r >> 4
						} else {
							weights[c][k] += r >> 4
						}
					}
					history[c] = [4]int{history[c][1], history[c][2], history[c][3], s}
					if first+i < samples {
						pcm[(first+i)*channels+c] = int16(s)
					}
				}
			}
		}
		out, data = append(out, pcm...), slices
	}
	return out
}

func decibels(want, got []int16) float64 {
	var signal, noise float64
	for i, w := range want {
		d := float64(w) - float64(got[i])
		signal += float64(w) * float64(w)
		noise += d * d
	}
	return 10 * math.Log10(signal/noise)
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct{ samples, channels int }{
		{1, 1}, {19, 2}, {20, 1}, {21, 3}, {FrameSamples, 2}, {FrameSamples + 1, 1}, {20000, 1}, {20000, 2}, {12000, 8},
	} {
		src := music(c.samples, c.channels)
		data := encode(t, src, c.channels)
		d, err := open(data)
		if err != nil || d.Samples != int64(c.samples) || d.Channels != c.channels || d.Rate != 44100 || d.Warnings != nil {
			t.Fatalf("%v: %+v, %v", c, d, err)
		}
		got := all(t, d, 777)
		if !slices.Equal(got, plain(data)) {
			t.Errorf("%v: not what the specification makes of it", c)
		}
		if db := decibels(src, got); c.samples > 1000 && db < 38 {
			t.Errorf("%v: %.1f dB", c, db)
		}
		if !bytes.Equal(data, encode(t, src, c.channels)) {
			t.Errorf("%v: other bytes the second time", c)
		}
		for _, at := range []int64{0, 1, int64(c.samples) / 2, int64(c.samples) - 1, int64(c.samples)} {
			if err := d.SeekSample(at); err != nil {
				t.Fatal(err)
			}
			if rest := all(t, d, 6000); !slices.Equal(rest, got[at*int64(c.channels):]) {
				t.Errorf("%v: from sample %d on it is not the same", c, at)
			}
		}
	}
}

// Sounds that make the predictor unstable still decode as the specification defines, and remain recognisable.
func TestLoud(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, next := range map[string]func(i int) int16{
		"square":  func(i int) int16 { return int16(i/50%2*65535 - 32768) },
		"fastest": func(i int) int16 { return int16(i%2*65535 - 32768) },
		"noise":   func(int) int16 { return int16(r.Uint32()) },
		"silence": func(int) int16 { return 0 },
		"limit":   func(int) int16 { return 32767 },
		"clicks":  func(i int) int16 { return int16(max(0, i%997-995) * 32767) },
	} {
		src := make([]int16, 3*FrameSamples)
		for i := range src {
			src[i] = next(i)
		}
		data := encode(t, src, 1)
		d, err := open(data)
		if err != nil {
			t.Fatal(err)
		}
		got := all(t, d, 5000)
		if !slices.Equal(got, plain(data)) {
			t.Errorf("%s: not what the specification makes of it", name)
		}
		if db := decibels(src, got); name != "silence" && db < 4 { // noise and clicks exceed the largest residual
			t.Errorf("%s: %.1f dB", name, db)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range [][3]int64{{0, 1, 1}, {1 << 24, 1, 1}, {44100, 0, 1}, {44100, 9, 1}, {44100, 1, 0}, {44100, 1, 1 << 32}} {
		if _, err := NewEncoder(io.Discard, int(c[0]), int(c[1]), c[2]); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: %v", c, err)
		}
	}
	e, err := NewEncoder(io.Discard, 44100, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(make([]int16, 3)); err == nil {
		t.Error("half a sample is written")
	}
	if err := e.Close(); !errors.Is(err, ErrTruncated) {
		t.Errorf("too few: %v", err)
	}
	if err := e.Write(make([]int16, 8)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many: %v", err)
	}
	if _, err := open([]byte("qoag\x00\x00\x00\x01........")); !errors.Is(err, ErrDamaged) {
		t.Errorf("no QOA: %v", err)
	}
}

// A writer that does not know the number of samples writes 0.
func TestStream(t *testing.T) {
	src := music(6000, 1)
	data := encode(t, src, 1)
	copy(data[4:], "\x00\x00\x00\x00")
	d, err := open(data)
	if err != nil || d.Samples != 6000 || d.Warnings != nil || !slices.Equal(all(t, d, 9000), plain(data)) {
		t.Errorf("%+v, %v", d, err)
	}
}

// Cut off anywhere, the complete frames are read; with any byte changed, the worst result is an error.
func TestHostile(t *testing.T) {
	good := encode(t, music(FrameSamples+30, 1), 1)
	frame := frameSize(1, FrameSamples)
	for n := range good {
		d, err := open(good[:n])
		if n < 8+frame {
			if !errors.Is(err, ErrTruncated) {
				t.Fatalf("cut to %d bytes: %v", n, err)
			}
		} else if err != nil || d.Samples != FrameSamples || len(d.Warnings) != 1 {
			t.Fatalf("cut to %d bytes: %+v, %v", n, d, err)
		}
	}
	for n := range 32 {
		for _, at := range []int{n, 8 + frame + n} {
			for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				changed := bytes.Clone(good)
				changed[at] = b
				try(t, changed)
			}
		}
	}
}

func try(t *testing.T, data []byte) {
	d, err := open(data)
	if err != nil {
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("error of no kind: %v", err)
		}
		return
	}
	if got := all(t, d, 1000); int64(len(got)) != d.Samples*int64(d.Channels) || len(got) > 20*len(data) {
		t.Fatalf("%d samples, %d of %d channels in %d bytes", len(got), d.Samples, d.Channels, len(data))
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(encode(f, music(50, 2), 2))
	f.Add(encode(f, music(1, 1), 1))
	f.Fuzz(try)
}

func BenchmarkEncode(b *testing.B) {
	src := music(88200, 2)
	for b.Loop() {
		encode(b, src, 2)
	}
	b.SetBytes(int64(2 * len(src)))
}

func BenchmarkDecode(b *testing.B) {
	data := encode(b, music(88200, 2), 2)
	for b.Loop() {
		d, err := open(data)
		if err != nil {
			b.Fatal(err)
		}
		all(b, d, 5120)
	}
	b.SetBytes(88200 * 4)
}
