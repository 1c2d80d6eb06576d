package sound

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"testing"
)

// TestSameOnEveryMachine compares what the package makes of noise with what it made once, to the last bit. A change of a filter changes
// these digests; another processor must not.
func TestSameOnEveryMachine(t *testing.T) {
	stereo := func() Source {
		n := noise(42)
		return Samples(Format{Rate: 44100, Channels: 2}, n.fill(2*50000, 0.9))
	}
	surround := func() Source {
		n := noise(43)
		return Samples(Format{Rate: 48000, Channels: 6}, n.fill(6*50000, 0.9))
	}
	source := func(make func() (Source, error)) func(h hash.Hash) {
		return func(h hash.Hash) {
			src, err := make()
			if err != nil {
				t.Fatal(err)
			}
			out, err := All(src)
			if err != nil {
				t.Fatal(err)
			}
			write(t, h, out)
		}
	}
	resample := func(src func() Source, c Conversion) func(h hash.Hash) {
		return source(func() (Source, error) { return Resample(src(), c) })
	}
	meter := func(src func() Source) func(h hash.Hash) {
		return func(h hash.Hash) {
			m, err := NewMeter(src(), MeterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := each(m, func([]float32) {}); err != nil {
				t.Fatal(err)
			}
			l := m.Loudness()
			write(t, h, []float64{l.LUFS, l.MomentaryMax, l.ShortTermMax, l.Range, l.SamplePeak, l.TruePeak, Decibels(l.TruePeak)})
			write(t, h, m.MomentaryCurve())
			write(t, h, m.ShortTermCurve())
		}
	}
	for _, c := range []struct {
		name, want string
		make       func(h hash.Hash)
	}{
		{"up", "", resample(stereo, Conversion{Rate: 48000})},
		{"down", "", resample(stereo, Conversion{Rate: 11025})},
		{"between", "", resample(stereo, Conversion{Rate: 48000, Ratio: Ratio{1088437, 1000003}})},
		{"six channels", "", resample(surround, Conversion{Rate: 44100})},
		{"loudness", "", meter(stereo)},
		{"loudness of six channels", "", meter(surround)},
		{"mono", "", source(func() (Source, error) { return Mono(surround()), nil })},
		{"stereo", "", source(func() (Source, error) { return Gain(Stereo(surround()), Amplitude(-3.3)), nil })},
		{"fade", "", source(func() (Source, error) {
			return Fade(stereo(), Fades{In: 777, Out: 20000, Curve: EqualPower, Frames: 50000})
		})},
		{"dither", "", func(h hash.Hash) {
			samples, err := All(stereo())
			if err != nil {
				t.Fatal(err)
			}
			out := make([]int16, len(samples))
			c := Int16{Dither: true}
			c.Convert(out, samples)
			write(t, h, out)
		}},
		{"functions", "", func(h hash.Hash) {
			for i := range 1000 {
				x := float64(i) / 37
				write(t, h, []float64{exp(x), exp(-x), ln(x + 0.01), sinPi(x), tanPi(x / 60), bessel0(x), math.Sqrt(x)})
			}
		}},
	} {
		h := sha256.New()
		c.make(h)
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func write(t *testing.T, h hash.Hash, values any) {
	t.Helper()
	if err := binary.Write(h, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
}
