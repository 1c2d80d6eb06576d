package sound

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

func resampled(t testing.TB, src Source, c Conversion) []float32 {
	t.Helper()
	r, err := Resample(src, c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := All(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sine is a mono sine of half amplitude.
func sine(hz float64, rate, frames int) []float32 {
	out := make([]float32, frames)
	for i := range out {
		out[i] = float32(0.5 * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	return out
}

// split measures the sine of a frequency in samples, under a window that suppresses everything else by 140 dB. It
// returns its amplitude relative to 0.5, its phase, and the RMS amplitude of all else, in dB.
func split(samples []float32, hz float64, rate int) (gain, phase, rest float64) {
	var re, im, sum float64
	window := newKaiser(15)
	weights := make([]float64, len(samples))
	for i, v := range samples {
		w := window.at(2*float64(i)/float64(len(samples)-1) - 1)
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		re += w * float64(v) * s
		im += w * float64(v) * c
		weights[i] = w
		sum += w
	}
	re, im = 2*re/sum, 2*im/sum
	var power float64
	for i, v := range samples {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		d := float64(v) - re*s - im*c
		power += weights[i] * d * d
	}
	return 20 * math.Log10(math.Hypot(re, im)/0.5), math.Atan2(im, re), 10 * math.Log10(2*power/sum/0.25)
}

// TestResampledSines checks that sines keep their amplitude and phase, and that all images, aliases and rounding errors
// together are below -120 dB.
func TestResampledSines(t *testing.T) {
	for _, c := range []struct{ from, to int }{
		{44100, 48000}, {48000, 44100}, {44100, 22050}, {22050, 44100}, {48000, 8000}, {11025, 48000}, {96000, 44100}, {44100, 44101},
		{192000, 11025}, {44101, 16000}, {8000, 192000},
	} {
		low := float64(min(c.from, c.to))
		for i := range thorough.Of(4, 30) {
			hz := low / 2 * passPart * (float64(i) + 0.99) / float64(thorough.Of(4, 30))
			frames := 4000 + c.from/8
			out := resampled(t, Samples(Format{Rate: c.from, Channels: 1}, sine(hz, c.from, frames)), Conversion{Rate: c.to})
			margin := len(out) / 8 // the sine begins and ends there
			part := out[margin : len(out)-margin]
			gain, phase, rest := split(part, hz, c.to)
			want := math.Mod(2*math.Pi*hz*float64(margin)/float64(c.to), 2*math.Pi)
			off := math.Remainder(phase-want, 2*math.Pi)
			if math.Abs(gain) > 0.001 || rest > -120 || math.Abs(off) > 1e-5 {
				t.Errorf("%d to %d, %.0f Hz: gain %.5f dB, phase off by %.2g, rest %.1f dB", c.from, c.to, hz, gain, off, rest)
			}
		}
	}
}

// TestAliases checks that frequencies above the lower rate's range are removed. If both rates are 44.1 kHz or more,
// inaudible traces are allowed.
func TestAliases(t *testing.T) {
	for _, c := range []struct{ from, to int }{{48000, 22050}, {44100, 22050}, {44100, 8000}, {96000, 32000}, {96000, 44100}, {96000, 48000}, {48000, 44100}} {
		for i := range thorough.Of(4, 30) {
			hz := float64(c.to)/2 + (float64(c.from)-float64(c.to))/2*(float64(i)+0.3)/float64(thorough.Of(4, 30))
			out := resampled(t, Samples(Format{Rate: c.from, Channels: 1}, sine(hz, c.from, c.from/2)), Conversion{Rate: c.to})
			out = out[len(out)/8 : len(out)*7/8]
			power := 0.0
			for _, v := range out {
				power += float64(v) * float64(v)
			}
			level := 10 * math.Log10(2*power/float64(len(out))/0.25)
			alias := float64(c.to) - hz
			if min(c.from, c.to) >= openRate && alias > 20000 {
				gain, _, rest := split(out, alias, c.to)
				if image := float64(c.to) - (float64(c.from) - hz); image > 20000 && image < alias { // near half of the rate it has an image too
					of, _, _ := split(out, image, c.to)
					rest = 10 * math.Log10(max(math.Pow(10, rest/10)-math.Pow(10, of/10), 1e-20))
				}
				if gain > -6 || rest > -120 {
					t.Errorf("%d to %d, %.0f Hz: alias %.1f dB at %.0f Hz, rest %.1f dB", c.from, c.to, hz, gain, alias, rest)
				}
				continue
			}
			if level > -120 {
				t.Errorf("%d to %d, %.0f Hz: %.1f dB are left", c.from, c.to, hz, level)
			}
		}
	}
}

// TestImages checks that images of frequencies between 20 and 22.05 kHz stay above 22.05 kHz.
func TestImages(t *testing.T) {
	for _, hz := range []float64{20500, 21000, 21500, 22000} {
		out := resampled(t, Samples(Format{Rate: 44100, Channels: 1}, sine(hz, 44100, 44100)), Conversion{Rate: 48000})
		out = out[6000 : len(out)-6000]
		gain, _, _ := split(out, hz, 48000)
		image, _, _ := split(out, 44100-hz, 48000)
		if gain > 0.001 || gain < -6.1 || image > -6 {
			t.Errorf("%.0f Hz: %.1f dB, image at %.0f Hz %.1f dB", hz, gain, 44100-hz, image)
		}
	}
}

// TestResampledSweep compares a resampled sweep with the same sweep computed at the new rate.
func TestResampledSweep(t *testing.T) {
	const seconds = 1.0
	at := func(x float64) float64 { return 0.5 * math.Sin(2*math.Pi*(20+19000/seconds/2*x)*x) }
	in := make([]float32, 44100)
	for i := range in {
		in[i] = float32(at(float64(i) / 44100))
	}
	out := resampled(t, Samples(Format{Rate: 44100, Channels: 1}, in), Conversion{Rate: 48000})
	for i, v := range out[100 : len(out)-100] {
		if d := math.Abs(float64(v) - at(float64(i+100)/48000)); d > 1e-6 {
			t.Fatalf("frame %d is off by %g", i+100, d)
		}
	}
}

// TestImpulseStaysInPlace checks that frame n is at time n / rate: an impulse at a time that both rates have stays
// there, and is symmetric.
func TestImpulseStaysInPlace(t *testing.T) {
	for _, c := range []struct{ from, to, in, out int }{
		{44100, 48000, 147, 160}, {48000, 44100, 320, 294}, {22050, 44100, 500, 1000}, {44100, 22050, 1000, 500}, {44100, 48000, 0, 0},
	} {
		samples := make([]float32, 2000)
		samples[c.in] = 1
		out := resampled(t, Samples(Format{Rate: c.from, Channels: 1}, samples), Conversion{Rate: c.to})
		for i := range 200 {
			if a, b := c.out-i, c.out+i; out[b] > out[c.out] || a >= 0 && math.Abs(float64(out[a]-out[b])) > 1e-7 {
				t.Errorf("%d to %d: %v at %d, %v at %d, %v at %d", c.from, c.to, out[a], a, out[c.out], c.out, out[b], b)
			}
		}
	}
}

func TestFrameCounts(t *testing.T) {
	for _, c := range []struct {
		from, to, in int
		out          int64
	}{{44100, 48000, 147, 160}, {44100, 48000, 148, 162}, {44100, 48000, 1, 2}, {48000, 44100, 1, 1}, {48000, 8000, 13, 3}, {48000, 8000, 12, 2},
		{44100, 48000, 0, 0}, {1000, 44100, 1, 45}, {44100, 1000, 5, 1}} {
		out := resampled(t, Samples(Format{Rate: c.from, Channels: 3}, make([]float32, 3*c.in)), Conversion{Rate: c.to})
		if got := RatioOf(c.from, c.to).Frames(int64(c.in)); got != c.out || int64(len(out)) != 3*c.out {
			t.Errorf("%d frames from %d to %d: %d, and %d said; want %d", c.in, c.from, c.to, len(out)/3, got, c.out)
		}
	}
	r := RatioOf(44100, 48000)
	for _, c := range [][2]int64{{0, 0}, {147, 160}, {1, 1}, {2, 2}, {10, 11}, {44100 * 3600 * 24 * 365, 48000 * 3600 * 24 * 365}} {
		if got := r.ScaleFrame(c[0]); got != c[1] {
			t.Errorf("frame %d becomes %d, want %d", c[0], got, c[1])
		}
	}
	if got := RatioOf(2, 1).ScaleFrame(3); got != 2 {
		t.Error("frame 3 of 2 becomes", got)
	}
}

// TestResamplerTakesAnyPieces checks that the bytes do not depend on the size of the reads, and that each channel is as
// if it were alone.
func TestResamplerTakesAnyPieces(t *testing.T) {
	for _, to := range []int{48000, 8000, 44101} {
		for _, channels := range []int{1, 2, 5} {
			n := noise(channels)
			f := Format{Rate: 44100, Channels: channels}
			samples := n.fill(channels*9000, 1)
			want := resampled(t, Samples(f, samples), Conversion{Rate: to})
			if got := resampled(t, &crumbs{Source: Samples(f, samples)}, Conversion{Rate: to}); !slices.Equal(got, want) {
				t.Errorf("%d channels to %d: small reads change the result", channels, to)
			}
			r, err := Resample(Samples(f, samples), Conversion{Rate: to})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := All(&crumbs{Source: r}); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d channels to %d: small pieces differ from the whole, %v", channels, to, err)
			}
			for c := range channels {
				var one, wantOne []float32
				for i := c; i < len(samples); i += channels {
					one = append(one, samples[i])
				}
				for i := c; i < len(want); i += channels {
					wantOne = append(wantOne, want[i])
				}
				if got := resampled(t, Samples(Format{Rate: 44100, Channels: 1}, one), Conversion{Rate: to}); !slices.Equal(got, wantOne) {
					t.Errorf("channel %d of %d to %d differs from itself alone", c, channels, to)
				}
			}
		}
	}
	same := []float32{1, -2, float32(math.Inf(1))}
	if got := resampled(t, Samples(Format{Rate: 44100, Channels: 1}, same), Conversion{Rate: 44100}); !slices.Equal(got, same) {
		t.Error("the same rate changes samples:", got)
	}
}

func TestResampleErrors(t *testing.T) {
	f := Format{Rate: 44100, Channels: 1}
	for _, c := range []Conversion{{Rate: 0}, {Rate: -5}, {Rate: MaxRate + 1}, {Rate: 48000, Ratio: Ratio{1, 0}}, {Rate: 48000, Ratio: Ratio{-1, 1}},
		{Rate: 48000, Ratio: Ratio{1 << 41, 1 << 41}}, {Rate: 100}} {
		if _, err := Resample(Samples(f, nil), c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if _, err := Resample(Samples(Format{Rate: 44100}, nil), Conversion{Rate: 48000}); err == nil {
		t.Error("no channels are taken")
	}
	broken := errors.New("broken")
	r, err := Resample(&failing{Samples(f, make([]float32, 5000)), broken}, Conversion{Rate: 48000})
	if err != nil {
		t.Fatal(err)
	}
	out, err := All(r)
	if err != broken || len(out) < 5000 {
		t.Error("an error of the source:", len(out), err)
	}
	if _, err := r.Read(nil); err == nil {
		t.Error("a read of no room has no error")
	}
}

// failing is a source that ends with an error.
type failing struct {
	Source
	err error
}

func (f *failing) Read(dst []float32) (int, error) {
	n, err := f.Source.Read(dst)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}
