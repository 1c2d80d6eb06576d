package adpcm

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestByHand decodes blocks that were worked out by hand from the definition.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name     string
		channels int
		block    []byte
		want     []int16
	}{
		{"a head alone", 1, []byte{0xfe, 0xff, 0, 0}, []int16{-2}},
		// Step 7: code 4 is 7/8+7 = 0+7 and moves on by 2, to step 9: code 8+1 is -(9>>3 + 9>>2) = -3.
		{"lower bits first", 1, []byte{100, 0, 0, 0, 0x94}, []int16{100, 107, 104}},
		// Step 32767: 4095+8191+16383+32767 = 61436, so it stays at the upper limit, and falls to the lower.
		{"limits", 1, []byte{0, 0x7f, 88, 0, 0xf7}, []int16{0x7f00, 32767, 32767 - 61436}},
		{"two channels", 2, []byte{10, 0, 0, 0, 20, 0, 0, 0, 0x04, 0, 0, 0, 0x0c, 0, 0, 0x00},
			// Code 0 at steps 9, 8, 7, 7, ... is 1, 1, and then always 0.
			[]int16{10, 20, 17, 13, 18, 14, 19, 15, 19, 15, 19, 15, 19, 15, 19, 15, 19, 15}},
		{"two channels, cut off in a group", 2, []byte{10, 0, 0, 0, 20, 0, 0, 0, 0x04, 0, 0, 0, 0x0c, 0, 0}, []int16{10, 20}},
	} {
		dst := make([]int16, 100)
		n, err := Decode(dst, c.block, c.channels)
		if err != nil || !slices.Equal(dst[:n*c.channels], c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, dst[:n*c.channels], err, c.want)
		}
		if n != Frames(len(c.block), c.channels) {
			t.Errorf("%s: %d frames", c.name, n)
		}
	}
}

func TestMSByHand(t *testing.T) {
	for _, c := range []struct {
		name     string
		channels int
		block    []byte
		want     []int16
	}{
		// Pair 0 repeats the last sample. 20 + 3*16; the step stays at 230*16>>8 = 14, at least 16. 68 - 1*16.
		{"upper bits first", 1, []byte{0, 16, 0, 20, 0, 10, 0, 0x3f}, []int16{10, 20, 68, 52}},
		// Pair 1 continues a straight line: 2*20-10. Then step 768*100>>8 = 300, for code 8, which is -8.
		{"a line, steps that grow", 1, []byte{1, 100, 0, 20, 0, 10, 0, 0x81}, []int16{10, 20, 30 - 800, 2*-770 - 20 + 300}},
		// Pair 6 rounds towards 0: (392*-3 + -232*5)/256 = -2336/256 = -9.125.
		{"a quotient below 0", 1, []byte{6, 16, 0, 0xfd, 0xff, 5, 0, 0x00}, []int16{5, -3, -9, -11}}, // (392*-9+232*3)/256 = -11.06
		{"two channels", 2, []byte{0, 2, 16, 0, 16, 0, 5, 0, 6, 0, 7, 0, 8, 0, 0x1f}, []int16{7, 8, 5, 6, 5 + 16, -16}},
	} {
		dst := make([]int16, 100)
		n, err := DecodeMS(dst, c.block, c.channels, MSCoefficients())
		if err != nil || !slices.Equal(dst[:n*c.channels], c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, dst[:n*c.channels], err, c.want)
		}
		if n != MSFrames(len(c.block), c.channels) {
			t.Errorf("%s: %d frames", c.name, n)
		}
	}
}

// music returns tones that rise and fade, with a little noise.
func music(frames, channels int) []int16 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]int16, frames*channels)
	for f := range frames {
		for c := range channels {
			x, fade := float64(f)/44100, math.Exp(-4*math.Mod(float64(f)/44100, 0.5))
			v := 9000*fade*math.Sin(2*math.Pi*440*x) + 5000*math.Sin(2*math.Pi*(110+55*float64(c))*x) + 3000*fade*math.Sin(2*math.Pi*2300*x)
			out[f*channels+c] = int16(v + 100*r.NormFloat64())
		}
	}
	return out
}

// decibels returns the ratio of signal to error in dB.
func decibels(want, got []int16) float64 {
	var signal, noise float64
	for i, w := range want {
		d := float64(w) - float64(got[i])
		signal += float64(w) * float64(w)
		noise += d * d
	}
	return 10 * math.Log10(signal/noise)
}

func encode(t testing.TB, src []int16, channels, size int) (blocks [][]byte) {
	e, err := NewEncoder(channels, size)
	if err != nil {
		t.Fatal(err)
	}
	for len(src) > 0 {
		n := min(len(src), e.Frames()*channels)
		b, err := e.Encode(nil, src[:n])
		if err != nil || len(b) != size {
			t.Fatalf("block of %d bytes, %v", len(b), err)
		}
		blocks, src = append(blocks, b), src[n:]
	}
	return blocks
}

func TestRoundTrip(t *testing.T) {
	for channels := 1; channels <= 6; channels++ {
		for _, size := range []int{8, 36, 1024} {
			src := music(5000, channels)
			var got []int16
			for _, b := range encode(t, src, channels, size*channels) {
				dst := make([]int16, channels*Frames(len(b), channels))
				if n, err := Decode(dst, b, channels); err != nil || n*channels != len(dst) {
					t.Fatalf("%d frames, %v", n, err)
				}
				got = append(got, dst...)
			}
			if len(got) < len(src) {
				t.Fatalf("%d of %d samples", len(got), len(src))
			}
			for i := len(src); i < len(got); i++ {
				if d := int(got[i]) - int(got[i-channels]); d > 2000 || d < -2000 {
					t.Fatalf("after the end it goes from %d to %d", got[i-channels], got[i])
				}
			}
			if db := decibels(src, got); db < 33 {
				t.Errorf("%d channels, blocks of %d: %.1f dB", channels, size, db)
			}
		}
	}
}

// TestNearest compares the chosen code with all codes, by the definition: none comes nearer.
func TestNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		s := channel{int32(int16(r.Uint32())), r.IntN(len(steps))}
		want := int32(int16(r.Uint32()))
		if r.IntN(2) == 0 {
			want = min(max(s.sample+int32(r.NormFloat64()*float64(steps[s.index])), -32768), 32767)
		}
		off := func(code byte) int {
			c := s
			return int(abs(want - int32(c.next(code))))
		}
		got := off(s.nearest(want))
		for code := range byte(16) {
			if off(code) < got {
				t.Fatalf("from %+v to %d: code %d is %d off, and %d was taken, %d off", s, want, code, off(code), s.nearest(want), got)
			}
		}
	}
}

// A sound that starts at a high amplitude is exact from its first samples.
func TestFirstStep(t *testing.T) {
	src := make([]int16, 25)
	for i := range src {
		src[i] = int16(20000 * math.Sin(float64(i)))
	}
	b := encode(t, src, 1, 16)[0]
	got := make([]int16, len(src))
	if _, err := Decode(got, b, 1); err != nil || decibels(src, got) < 20 {
		t.Errorf("%v for %v, %v", got, src, err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range [][2]int{{0, 1024}, {65, 65 * 8}, {1, 4}, {1, 1023}, {2, 1020}, {1, 65536}, {-1, 1024}} {
		if _, err := NewEncoder(c[0], c[1]); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%d channels, %d bytes: %v", c[0], c[1], err)
		}
	}
	e, err := NewEncoder(2, 16)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 3, 20} {
		if b, err := e.Encode([]byte{1}, make([]int16, n)); err == nil || len(b) != 1 {
			t.Errorf("%d samples make %d bytes", n, len(b))
		}
	}
	if n, err := Decode(make([]int16, 9), []byte{1, 0, 89, 0, 0x07}, 1); n != 3 || !errors.Is(err, ErrDamaged) {
		t.Errorf("step 89: %d frames, %v", n, err)
	}
	for _, c := range []int{0, -1, 65} {
		if _, err := Decode(nil, make([]byte, 1000), c); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%d channels: %v", c, err)
		}
	}
	ms := []byte{7, 16, 0, 20, 0, 10, 0, 0x3f}
	if n, err := DecodeMS(make([]int16, 9), ms, 1, MSCoefficients()); n != 4 || !errors.Is(err, ErrDamaged) {
		t.Errorf("coefficients 7: %d frames, %v", n, err)
	}
	if _, err := DecodeMS(nil, ms, 1, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("no coefficients: %v", err)
	}
	if _, err := DecodeMS(nil, make([]byte, 100), 3, MSCoefficients()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("three channels: %v", err)
	}
}

// A block cut off at any byte gives its complete frames, equal to those of the whole block.
func TestCutOff(t *testing.T) {
	for channels := 1; channels <= 3; channels++ {
		block := encode(t, music(33, channels), channels, 20*channels)[0]
		for name, decode := range map[string]func(dst []int16, block []byte) (int, error){
			"IMA": func(dst []int16, b []byte) (int, error) { return Decode(dst, b, channels) },
			"MS": func(dst []int16, b []byte) (int, error) {
				return DecodeMS(dst, b, channels, slices.Repeat(MSCoefficients(), 40))
			},
		} {
			if name == "MS" && channels > 2 {
				continue
			}
			whole := make([]int16, 1000)
			if _, err := decode(whole, block); err != nil {
				t.Fatal(err)
			}
			for n := range block {
				dst := make([]int16, 1000)
				frames, err := decode(dst, block[:n])
				if frames == 0 && !errors.Is(err, ErrTruncated) || frames > 0 && err != nil {
					t.Fatalf("%s of %d channels, %d bytes: %d frames, %v", name, channels, n, frames, err)
				}
				if !slices.Equal(dst[:frames*channels], whole[:frames*channels]) {
					t.Fatalf("%s of %d channels, %d bytes: not as in the whole block", name, channels, n)
				}
				short := make([]int16, 2*channels+1)
				got, _ := decode(short, block[:n])
				if got != min(frames, len(short)/channels) || !slices.Equal(short[:got*channels], whole[:got*channels]) {
					t.Fatalf("%s of %d channels, %d bytes: %d frames in a slice of %d", name, channels, n, got, len(short))
				}
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{10, 0, 0, 0, 20, 0, 0, 0, 0x04, 0, 0, 0, 0x0c, 0, 0, 0x00}, byte(2))
	f.Add([]byte{0, 0x7f, 88, 0, 0xf7, 0xff, 0x77}, byte(1))
	f.Fuzz(func(t *testing.T, block []byte, channels byte) {
		dst := make([]int16, 2*len(block)+2)
		n, err := Decode(dst, block, int(channels))
		if n > Frames(len(block), int(channels)) || err == nil && n == 0 {
			t.Fatalf("%d frames, %v", n, err)
		}
		n, err = DecodeMS(dst, block, int(channels), MSCoefficients())
		if n > MSFrames(len(block), int(channels)) || err == nil && n == 0 {
			t.Fatalf("MS: %d frames, %v", n, err)
		}
	})
}

// FuzzEncode checks that encoded blocks can be decoded, and that their start is as near as the steps allow.
func FuzzEncode(f *testing.F) {
	f.Add([]byte{0, 0, 255, 127, 0, 128, 255, 127}, byte(1))
	f.Fuzz(func(t *testing.T, data []byte, channels byte) {
		c := int(channels)%4 + 1
		src := make([]int16, len(data)/2/c*c)
		for i := range src {
			src[i] = int16(data[2*i]) | int16(data[2*i+1])<<8
		}
		for _, b := range encode(t, src, c, 16*c) {
			dst := make([]int16, 25*c)
			if n, err := Decode(dst, b, c); n != 25 || err != nil || !slices.Equal(dst[:c], src[:c]) {
				t.Fatalf("%d frames, %v: %v for %v", n, err, dst, src)
			}
			src = src[min(len(src), 25*c):]
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	src := music(44100, 2)
	for b.Loop() {
		encode(b, src, 2, 2048)
	}
	b.SetBytes(int64(2 * len(src)))
}

func BenchmarkDecode(b *testing.B) {
	src := music(44100, 2)
	blocks := encode(b, src, 2, 2048)
	dst := make([]int16, 2*Frames(2048, 2))
	for b.Loop() {
		for _, block := range blocks {
			if _, err := Decode(dst, block, 2); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(int64(2 * len(src)))
}
