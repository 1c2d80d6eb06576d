package sound

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// TestWeightingIsTheStandards compares with the coefficients for 48 kHz printed in BS.1770-4.
func TestWeightingIsTheStandards(t *testing.T) {
	w := newWeighting(48000)
	got := []float64{w.shelf.b0, w.shelf.b1, w.shelf.b2, w.shelf.a1, w.shelf.a2, w.pass.b0, w.pass.b1, w.pass.b2, w.pass.a1, w.pass.a2}
	want := []float64{1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585,
		1, -2, 1, -1.99004745483398, 0.99007225036621}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-11 {
			t.Errorf("coefficient %d: %.14f, want %.14f", i, got[i], want[i])
		}
	}
}

// rates are the sample rates of the EBU's test signals. A lower rate tests windows and gates equally well, in less
// time.
func rates() []int {
	if thorough.Enabled() {
		return []int{48000, 44100}
	}
	return []int{16000}
}

// TestTech3341 uses the test signals of EBU Tech 3341, table 1. The document describes them; they are generated here.
func TestTech3341(t *testing.T) {
	for _, rate := range rates() {
		program := func(name string, want float64, parts ...part) Loudness {
			l := measure(t, tones(rate, parts...))
			within(t, fmt.Sprint(name, " at ", rate), l.LUFS, want, 0.1, 0.1)
			if l.Basis != Integrated {
				t.Error(name, l.Basis)
			}
			return l
		}
		for name, level := range map[string]float64{"1": -23, "2": -33} {
			l := program(name, level, stereo(level, 20))
			within(t, name+" M", l.MomentaryMax, level, 0.1, 0.1)
			within(t, name+" S", l.ShortTermMax, level, 0.1, 0.1)
		}
		program("3", -23, stereo(-36, 10), stereo(-23, 60), stereo(-36, 10))
		program("4", -23, stereo(-72, 10), stereo(-36, 10), stereo(-23, 60), stereo(-36, 10), stereo(-72, 10))
		program("5", -23, stereo(-26, 20), stereo(-20, 20.1), stereo(-26, 20))
		program("6", -23, part{20, []float64{-28, -28, -24, -30, -30}})
		program("6 with a silent LFE", -23, part{20, []float64{-28, -28, -24, quiet, -30, -30}})
	}
}

func TestTech3341Windows(t *testing.T) {
	for _, rate := range rates() {
		steady := func(name string, first int, curve func(*Meter) []float32, parts ...part) {
			m, err := NewMeter(tones(rate, parts...), MeterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := each(m, func([]float32) {}); err != nil {
				t.Fatal(err)
			}
			values := curve(m)[first-1:]
			within(t, name+" lowest", float64(slices.Min(values)), -23, 0.1, 0.1)
			within(t, name+" highest", float64(slices.Max(values)), -23, 0.1, 0.1)
		}
		steady("9", 30, (*Meter).ShortTermCurve, slices.Repeat([]part{stereo(-20, 1.34), stereo(-30, 1.66)}, 5)...)
		steady("12", 10, (*Meter).MomentaryCurve, slices.Repeat([]part{stereo(-20, 0.18), stereo(-30, 0.22)}, 25)...)

		short := func(l Loudness) float64 { return l.ShortTermMax }
		momentary := func(l Loudness) float64 { return l.MomentaryMax }
		for i := range 20 {
			wait := float64(i)
			l := measure(t, tones(rate, stereo(quiet, wait*0.15), stereo(-23, 3), stereo(quiet, 1)))
			within(t, fmt.Sprint("10.", i), l.ShortTermMax, -23, 0.1, 0.1)
			l = measure(t, tones(rate, stereo(quiet, wait*0.02), stereo(-23, 0.4), stereo(quiet, 1)))
			within(t, fmt.Sprint("13.", i), l.MomentaryMax, -23, 0.1, 0.1)
		}
		rising(t, "11", rate, 3, 0.15, short)
		rising(t, "14", rate, 0.4, 0.02, momentary)
	}
}

// rising plays 20 tones, each 1 dB louder than the one before, after pauses of increasing length. The largest loudness
// so far must be that of the last tone.
func rising(t *testing.T, name string, rate int, length, step float64, largest func(Loudness) float64) {
	t.Helper()
	var parts []part
	for i := range 20 {
		wait := step * float64(i)
		parts = append(parts, stereo(quiet, wait), stereo(float64(i-38), length), stereo(quiet, length-wait))
	}
	m, err := NewMeter(tones(rate, parts...), MeterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]float32, int(2*length*float64(rate))*2)
	for i := range 20 {
		for rest := len(buf) / 2; rest > 0; {
			n, err := m.Read(buf[:rest*2])
			if err != nil {
				t.Fatal(err)
			}
			rest -= n
		}
		within(t, fmt.Sprint(name, ".", i), largest(m.Loudness()), float64(i-38), 0.1, 0.1)
	}
}

// TestTech3342 uses EBU Tech 3342, table 1.
func TestTech3342(t *testing.T) {
	rates := rates()
	for i, c := range []struct {
		want   float64
		levels []float64
	}{{10, []float64{-20, -30}}, {5, []float64{-20, -15}}, {20, []float64{-40, -20}}, {15, []float64{-50, -35, -20, -35, -50}}} {
		var parts []part
		for _, level := range c.levels {
			parts = append(parts, stereo(level, 20))
		}
		within(t, fmt.Sprint(i+1), measure(t, tones(rates[0], parts...)).Range, c.want, 1, 1)
	}
}

// TestLoudnessAtAnyRate checks that a sine has the same loudness at every rate that can represent it. By the standard,
// a sine of 997 Hz at full scale in one channel has -3.01 LKFS.
func TestLoudnessAtAnyRate(t *testing.T) {
	for _, rate := range []int{8000, 11025, 22050, 32000, 44056, 44100, 48000, 96000, 192000, 384000} {
		l := measure(t, tones(rate, part{2, []float64{0, quiet}}))
		tolerance := 0.03
		if rate < 16000 {
			tolerance = 0.2 // the shelf differs slightly from the standard's
		}
		within(t, fmt.Sprint(rate), l.LUFS, -3.01, tolerance, tolerance)
	}
	for _, rate := range []int{MinRate, 441, 2000, 3300, 3400, 4000} { // these rates cannot represent it, but the result must stay sensible
		n := noise(1)
		l := measure(t, Samples(Format{Rate: rate, Channels: 1}, n.fill(5*rate, 1)))
		within(t, fmt.Sprint(rate), l.LUFS, -5.5, 7, 1) // most is below the high pass at 100 Hz
	}
}

func TestChannelWeights(t *testing.T) {
	const back, side = BackLeft | BackRight, SideLeft | SideRight
	const front = FrontLeft | FrontRight
	for _, c := range []struct {
		channels int
		mask     ChannelMask
		want     []float64
	}{
		{1, 0, []float64{1}},
		{2, 0, []float64{1, 1}},
		{4, 0, []float64{1, 1, 1.41, 1.41}},
		{6, 0, []float64{1, 1, 1, 0, 1.41, 1.41}},
		{6, front | FrontCentre | LowFrequency | side, []float64{1, 1, 1, 0, 1.41, 1.41}},
		{7, 0, []float64{1, 1, 1, 0, 1, 1.41, 1.41}},
		{8, 0, []float64{1, 1, 1, 0, 1, 1, 1.41, 1.41}},
		{3, front | LowFrequency, []float64{1, 1, 0}},
		{3, front, []float64{1, 1, 1}},
		{2, front | back, []float64{1, 1}},
		{1, LowFrequency, []float64{0}},
		{9, 0, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		if got := channelWeights(Format{Rate: 1000, Channels: c.channels, Mask: c.mask}, true); c.channels > 1 && !slices.Equal(got, c.want) {
			t.Errorf("%d channels, mask %x: %v, want %v", c.channels, c.mask, got, c.want)
		}
		if got := channelWeights(Format{Rate: 1000, Channels: c.channels, Mask: c.mask}, false); !slices.Equal(got, c.want) {
			t.Errorf("%d channels, mask %x: %v, want %v", c.channels, c.mask, got, c.want)
		}
	}
	mono := tones(48000, part{1, []float64{-20}})
	l, err := Measure(mono, MeterOptions{DualMono: true})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "dual mono", l.LUFS, -20, 0.05, 0.05)
	within(t, "mono", measure(t, tones(48000, part{1, []float64{-20}})).LUFS, -23.01, 0.05, 0.05)
}

func TestShortAndSilent(t *testing.T) {
	f := Format{Rate: 48000, Channels: 2}
	for _, c := range []struct {
		name    string
		samples []float32
		basis   Basis
	}{
		{"none", nil, Silent},
		{"silence", make([]float32, 96000), Silent},
		{"a short silence", make([]float32, 100), Silent},
		{"one sample", []float32{0, 1}, Momentary},
		{"one faint sample", []float32{0, 1e-4}, Silent},
	} {
		l := measure(t, Samples(f, c.samples))
		if l.Basis != c.basis || math.IsInf(l.LUFS, -1) != (c.basis == Silent) {
			t.Errorf("%s: %+v", c.name, l)
		}
		if l.Frames != int64(len(c.samples)/2) || l.Invalid != 0 {
			t.Errorf("%s: %+v", c.name, l)
		}
	}

	// A tone of 0.2 s has half the energy of one of 0.4 s.
	l := measure(t, tones(48000, stereo(-20, 0.2)))
	if l.Basis != Momentary {
		t.Error("0.2 s:", l.Basis)
	}
	within(t, "0.2 s", l.LUFS, -23.01, 0.1, 0.1)
	within(t, "0.2 s in 3 s", l.ShortTermMax, -20-11.76, 0.1, 0.1)
	if l := measure(t, tones(48000, stereo(-20, 0.4))); l.Basis != Integrated {
		t.Error("0.4 s:", l.Basis)
	}
	// The loudness has no jump at the length where the basis changes.
	short, long := measure(t, tones(44100, stereo(-20, 0.3999))), measure(t, tones(44100, stereo(-20, 0.4)))
	if short.Basis != Momentary || math.Abs(short.LUFS-long.LUFS) > 0.02 {
		t.Errorf("%v %v, %v %v", short.Basis, short.LUFS, long.Basis, long.LUFS)
	}

	// A constant is inaudible: the step at its begin is heard, then nothing.
	dc := slices.Repeat([]float32{0.5}, 2*48000*5)
	l = measure(t, Samples(f, dc))
	if l.SamplePeak != 0.5 || l.LUFS > -29 {
		t.Errorf("DC: %+v", l)
	}
	if l = measure(t, Samples(f, dc[:24000])); l.Basis != Momentary || l.LUFS > -10 {
		t.Errorf("short DC: %+v", l)
	}
}

func TestSamplesThatAreNoNumbers(t *testing.T) {
	n := noise(3)
	clean := n.fill(48000, 0.5)
	dirty := slices.Clone(clean)
	inf := float32(math.Inf(1))
	for i, bad := range []float32{float32(math.NaN()), inf, -inf, math.Float32frombits(0xff800001)} {
		clean[i*5000+77], dirty[i*5000+77] = 0, bad
	}
	f := Format{Rate: 48000, Channels: 1}
	m, err := NewMeter(Samples(f, dirty), MeterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := All(m)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out, clean) {
		t.Error("what comes out of a meter is not what it measured")
	}
	want := measure(t, Samples(f, clean))
	want.Invalid = 4
	if got := m.Loudness(); got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}

	for i := range clean { // finite, but extremely large
		clean[i] = float32(math.Copysign(math.MaxFloat32, n.next()))
	}
	l := measure(t, Samples(f, clean))
	for _, v := range []float64{l.LUFS, l.MomentaryMax, l.ShortTermMax, l.Range, l.TruePeak, l.SamplePeak} {
		if math.IsInf(v, 0) || v != v {
			t.Errorf("the largest samples: %+v", l)
		}
	}
}

func TestMeterTakesAnyPieces(t *testing.T) {
	for _, channels := range []int{1, 2, 6, 64} {
		for _, rate := range []int{11025, 44100, 96000} {
			n := noise(channels)
			f := Format{Rate: rate, Channels: channels}
			samples := n.fill(channels*rate/2+channels*13, 0.3)
			for i := range len(samples) / 3 {
				samples[i] = 0
			}
			a, b := measure(t, Samples(f, samples)), measure(t, &crumbs{Source: Samples(f, samples)})
			if a != b {
				t.Errorf("%d channels at %d:\n%+v\n%+v", channels, rate, a, b)
			}
		}
	}
	for _, f := range []Format{{48000, 0, 0}, {48000, 65, 0}, {0, 1, 0}, {-1, 1, 0}, {MaxRate + 1, 1, 0}, {48000, -1, 0}} {
		if _, err := Measure(Samples(f, nil), MeterOptions{}); err == nil {
			t.Errorf("%+v is taken", f)
		}
	}
}

// TestMeterMemory checks that an hour takes less than 300 KB, and that silence after a sound costs no more time than
// sound.
func TestMeterMemory(t *testing.T) {
	m, err := NewMeter(tones(1000, part{3600, []float64{-20}}), MeterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := each(m, func([]float32) {}); err != nil {
		t.Fatal(err)
	}
	if len(m.segments) != 36000 {
		t.Error(len(m.segments), "segments in an hour")
	}
}

// TestMatchedShelf checks that the shelf for low rates has the gain of the standard's at 48 kHz, over its whole range.
func TestMatchedShelf(t *testing.T) {
	loud := func(f biquad, w float64) float64 {
		c, c2, s, s2 := math.Cos(w), math.Cos(2*w), math.Sin(w), math.Sin(2*w)
		top := math.Hypot(f.b0+f.b1*c+f.b2*c2, f.b1*s+f.b2*s2)
		return 20 * math.Log10(top/math.Hypot(1+f.a1*c+f.a2*c2, f.a1*s+f.a2*s2))
	}
	standard := biquad{1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585}
	for rate, most := range map[int]float64{8000: 0.04, 11025: 0.013, 16000: 0.003, 22050: 0.001, 24000: 0.001, 32000: 0.011} {
		f := newWeighting(rate).shelf
		for hz := 20; hz < rate/2; hz += 20 {
			off := loud(f, 2*math.Pi*float64(hz)/float64(rate)) - loud(standard, 2*math.Pi*float64(hz)/48000)
			if math.Abs(off) > most {
				t.Errorf("%d Hz at a rate of %d: off by %.4f dB", hz, rate, off)
				break
			}
		}
	}
}
