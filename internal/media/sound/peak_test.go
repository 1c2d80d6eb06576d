package sound

import (
	"fmt"
	"math"
	"testing"
)

// faded is a sine of one second in both channels, with fades of 0.1 s, so that its begin and end cause no peaks.
// frequency is relative to the sample rate.
func faded(frequency, degrees, amplitude float64, rate int) []float64 {
	out := make([]float64, rate)
	fade := rate / 10
	for i := range out {
		out[i] = amplitude * math.Sin(2*math.Pi*frequency*float64(i)+degrees*math.Pi/180)
		if edge := min(i, len(out)-1-i); edge < fade {
			out[i] *= 0.5 - 0.5*math.Cos(math.Pi*float64(edge)/float64(fade))
		}
	}
	return out
}

func truePeak(t *testing.T, rate int, samples []float64) Loudness {
	t.Helper()
	both := make([]float32, 0, 2*len(samples))
	for _, v := range samples {
		both = append(both, float32(v), float32(v))
	}
	return measure(t, Samples(Format{Rate: rate, Channels: 2}, both))
}

// TestTech3341TruePeak is EBU Tech 3341, table 1, cases 15 to 19.
func TestTech3341TruePeak(t *testing.T) {
	for _, rate := range []int{44100, 48000, 96000, 192000} {
		for i, c := range []struct{ part, degrees, amplitude, want float64 }{
			{4, 0, 0.5, -6}, {4, 45, 0.5, -6}, {6, 60, 0.5, -6}, {8, 67.5, 0.5, -6}, {4, 45, 1.41, 3},
		} {
			f := 1 / c.part
			if rate > 48000 {
				f = f * 48000 / float64(rate) // the same sound at a higher rate
			}
			l := truePeak(t, rate, faded(f, c.degrees, c.amplitude, rate))
			within(t, fmt.Sprint(15+i, " at ", rate), Decibels(l.TruePeak), c.want, 0.4, 0.2)
			if l.TruePeak < l.SamplePeak {
				t.Error("the true peak is below a sample")
			}
		}
	}
}

// TestTech3341TruePeakBetween is cases 20 to 23: a sine with one louder cycle, made at four times the rate and sampled
// at each of the four offsets, so that the peak of 0 dBTP is between samples. A long filter limits the cycle to half
// the rate.
func TestTech3341TruePeakBetween(t *testing.T) {
	const rate, length = 48000, 4 * 4800
	burst := make([]float64, length)
	for i := range burst {
		burst[i] = 0.5 * math.Sin(2*math.Pi*float64(i)/4/6)
		if k := i - length/2; k >= 0 && k < 16 {
			burst[i] = math.Sin(2 * math.Pi * (float64(k) + 0.5) / 4 / 4)
		}
		if edge := min(i, length-1-i); edge < 1000 {
			burst[i] *= float64(edge) / 1000
		}
	}
	const half = 400
	limited := make([]float64, length)
	highest := 0.0
	for i := half; i < length-half; i++ {
		for k := -half; k <= half; k++ {
			limited[i] += burst[i-k] * sinc(float64(k)*0.9/4) * 0.9 / 4 * (0.5 + 0.5*math.Cos(math.Pi*float64(k)/half))
		}
		highest = max(highest, math.Abs(limited[i]))
	}
	for offset := range 4 {
		var samples []float64
		for i := offset; i < length; i += 4 {
			samples = append(samples, limited[i]/highest)
		}
		l := truePeak(t, rate, samples)
		within(t, fmt.Sprint(20+offset), Decibels(l.TruePeak), 0, 0.4, 0.2)
	}
}

// TestPeakFilterIsFlat measures sines of any phase, up to 0.4 of the rate.
func TestPeakFilterIsFlat(t *testing.T) {
	for i := range 40 {
		f := 0.01 * float64(i+1)
		samples := faded(f+1e-5, 0, 0.7, 8000) // passes slowly through all phases
		l := truePeak(t, 8000, samples)
		// Between values at four times the rate, a sine loses the cosine of half the step.
		loss := -20 * math.Log10(math.Cos(math.Pi*f/4))
		within(t, fmt.Sprint(f), Decibels(l.TruePeak), 20*math.Log10(0.7), loss+0.05, 0.05)
	}
}

// TestPeakAtEdgesAndAfterLoud checks that a peak at the begin or end is found, and that a stretch that is skipped has
// none.
func TestPeakAtEdgesAndAfterLoud(t *testing.T) {
	for _, at := range []int{0, 1, 500, 998} {
		samples := make([]float32, 1000)
		samples[at], samples[at+1] = 0.5, 0.5 // half way between them the sinc gives 0.5 * 4/pi
		l := measure(t, Samples(Format{Rate: 48000, Channels: 1}, samples))
		within(t, fmt.Sprint(at), l.TruePeak, 2/math.Pi, 0.02, 0.02)
	}
	n := noise(5)
	for range 20 {
		samples := n.fill(3000, 0.3)
		for i := range samples {
			samples[i] *= float32(1 + math.Sin(float64(i)/500))
		}
		l := measure(t, Samples(Format{Rate: 44100, Channels: 1}, samples))
		filter := newPeakFilter(44100)
		padded := append(append(make([]float32, peakTaps), samples...), make([]float32, peakTaps)...)
		want := max(l.SamplePeak, float64(filter.highest(padded)))
		if l.TruePeak != want {
			t.Errorf("%v, without passing over: %v", l.TruePeak, want)
		}
	}
}
