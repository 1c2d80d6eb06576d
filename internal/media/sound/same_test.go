package sound

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"testing"
)

// TestSameOnEveryMachine compares the output for noise with stored digests, to the last bit. A change of a filter
// changes the digests; another processor must not.
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
		{"up", "4af61dbed6c62dd0", resample(stereo, Conversion{Rate: 48000})},
		{"down", "b993d048864ef9f0", resample(stereo, Conversion{Rate: 11025})},
		{"between", "3f1c965315c3a93f", resample(stereo, Conversion{Rate: 48000, Ratio: Ratio{1088437, 1000003}})},
		{"six channels", "617aa630c4b69e38", resample(surround, Conversion{Rate: 44100})},
		{"loudness", "dd812d423bf08fad", meter(stereo)},
		{"loudness of six channels", "fb7b30c7a2f981e6", meter(surround)},
		{"mono", "aa28a548371a6dea", source(func() (Source, error) { return Mono(surround()), nil })},
		{"stereo", "c466865031fa5e06", source(func() (Source, error) { return Gain(Stereo(surround()), Amplitude(-3.3)), nil })},
		{"fade", "36faaa61730c2b7d", source(func() (Source, error) {
			return Fade(stereo(), Fades{In: 777, Out: 20000, Curve: EqualPower, Frames: 50000})
		})},
		{"dither", "42eb1d8be7d8c18e", func(h hash.Hash) {
			samples, err := All(stereo())
			if err != nil {
				t.Fatal(err)
			}
			out := make([]int16, len(samples))
			c := Int16{Dither: true}
			c.Convert(out, samples)
			write(t, h, out)
		}},
		{"functions", "c556b834294c82ff", func(h hash.Hash) {
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
