package sound

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestFitLoop(t *testing.T) {
	for _, c := range []struct {
		begin, end int64
		from, to   int
		want       LoopFit
	}{
		{0, 1000, 44100, 48000, LoopFit{Ratio{136, 125}, 0, 1088, 0.69}},
		{0, 441, 44100, 48000, LoopFit{Ratio{160, 147}, 0, 480, 0}},
		{100, 44200, 44100, 48000, LoopFit{Ratio{160, 147}, 109, 48109, 0}},
		{7, 8, 44100, 11025, LoopFit{Ratio{1, 1}, 7, 8, -2400}},
		{5, 12350, 44100, 48000, LoopFit{Ratio{4479, 4115}, 5, 13442, -0.0345}},
		{0, 50, 44100, 44100, LoopFit{Ratio{1, 1}, 0, 50, 0}},
	} {
		got, err := FitLoop(c.begin, c.end, c.from, c.to)
		if math.Abs(got.Cents-c.want.Cents) < 0.01 {
			got.Cents = c.want.Cents
		}
		if err != nil || got != c.want {
			t.Errorf("%d to %d: %+v, %v; want %+v", c.begin, c.end, got, err, c.want)
		}
	}
	for i := range int64(500) { // a loop of a second or more
		fit, err := FitLoop(i, 44100+i*37, 44100, 48000)
		if err != nil || math.Abs(fit.Cents) > 0.02 {
			t.Errorf("%+v, %v", fit, err)
		}
	}
	for _, c := range [][2]int64{{5, 5}, {6, 5}, {-1, 5}, {0, maxTerm + 1}} {
		if _, err := FitLoop(c[0], c[1], 44100, 48000); err == nil {
			t.Error(c, "is a loop")
		}
	}
}

// TestLoopSeam checks that a sine that fills its loop is an endless sine after resampling too: repeated, it has no
// click, wherever the loop is in the sound.
func TestLoopSeam(t *testing.T) {
	for _, c := range []struct{ begin, frames, periods, to int }{
		{0, 44100, 441, 48000}, {0, 12347, 100, 48000}, {0, 12347, 1000, 22050}, {0, 30, 3, 48000}, {0, 1001, 7, 44056},
		{5000, 12347, 100, 48000}, {3, 12347, 100, 32000},
	} {
		f := Format{Rate: 44100, Channels: 1}
		samples := make([]float32, c.begin+c.frames)
		for i := range samples {
			samples[i] = float32(0.5 * math.Sin(2*math.Pi*float64(i-c.begin)*float64(c.periods)/float64(c.frames)))
		}
		begin, end := int64(c.begin), int64(len(samples))
		fit, err := FitLoop(begin, end, f.Rate, c.to)
		if err != nil {
			t.Fatal(err)
		}
		conversion := Conversion{Rate: c.to, Ratio: fit.Ratio}
		conversion.Before, conversion.After, err = LoopEdges(Samples(f, samples), begin, end, conversion.Reach(f.Rate))
		if err != nil {
			t.Fatal(err)
		}
		out := resampled(t, Samples(f, samples), conversion)
		if int64(len(out)) < fit.End {
			t.Fatalf("%+v: %d frames", fit, len(out))
		}
		loop := out[fit.Begin:fit.End]
		circle := slices.Concat(loop, loop, loop)
		// Compare with an endless sine, also across the seam.
		hz := float64(c.periods) / float64(len(loop))
		shift := float64(fit.Begin)*float64(fit.Ratio.In)/float64(fit.Ratio.Out) - float64(c.begin)
		worst := 0.0
		for i, v := range circle[len(loop)/2 : len(circle)-len(loop)/2] {
			at := float64(i+len(loop)/2) + shift*float64(fit.Ratio.Out)/float64(fit.Ratio.In)
			if c.begin > 0 && c.begin < 200 && i%len(loop) > 0 && (i+len(loop)/2)%len(loop) < 400 {
				continue // the silence before the sound affects these frames
			}
			worst = max(worst, math.Abs(float64(v)-0.5*math.Sin(2*math.Pi*hz*at)))
		}
		if db := 20 * math.Log10(worst/0.5); db > -110 {
			t.Errorf("%+v: the seam is off by %.1f dB", c, db)
		}
	}
}

// TestLoopSeam16 checks the numbers of docs/sounds.md: how well 16 bits can continue a sine. It is the rounding to 16 bits
// that decides, at the seam of a loop as everywhere else.
func TestLoopSeam16(t *testing.T) {
	const frames, periods, step, amplitude = 12347, 100, 1.0 / 32768, 0.5
	f := Format{Rate: 44100, Channels: 1}
	samples := make([]float32, frames)
	for i := range samples {
		samples[i] = float32(amplitude * math.Sin(2*math.Pi*float64(i)*periods/frames))
	}
	fit, err := FitLoop(0, frames, f.Rate, 48000)
	if err != nil {
		t.Fatal(err)
	}
	conversion := Conversion{Rate: 48000, Ratio: fit.Ratio}
	conversion.Before, conversion.After, err = LoopEdges(Samples(f, samples), 0, frames, conversion.Reach(f.Rate))
	if err != nil {
		t.Fatal(err)
	}
	loop := resampled(t, Samples(f, samples), conversion)[:fit.End]
	w := 2 * math.Pi * periods / float64(len(loop))
	next := func(last, before float64) float64 { return 2*math.Cos(w)*last - before } // how a sine continues
	rounded := func(dither bool) []float64 {
		convert, out := Int16{Dither: dither}, make([]int16, len(loop))
		convert.Convert(out, loop)
		var all []float64
		for _, v := range out {
			all = append(all, float64(v))
		}
		return all
	}
	shaped := func(feedback float64) (all []float64) { // of the error of the frame before
		off := 0.0
		for _, v := range loop {
			want := float64(v)/step - feedback*off
			all = append(all, math.Round(want))
			off = math.Round(want) - want
		}
		return all
	}
	least := rounded(false)[:2]
	for i := range len(loop) - 2 {
		least = append(least, math.Round(next(least[i+1], least[i])))
	}
	for _, c := range []struct {
		how                string
		out                []float64
		frame, mean, worst float64 // in dB, as in docs/sounds.md
	}{
		{"rounded", rounded(false), -90.3, -87.3, -78.6},
		{"dithered", rounded(true), -81, -82.5, -71.5},
		{"shaped to low frequencies", shaped(-1), -84.4, -89, -79.2},
		{"shaped to high frequencies", shaped(1), -84.3, -82.1, -73.1},
		{"the least step", least, -18, -95, -90.3},
	} {
		at := func(i int) float64 { return c.out[(i+len(loop))%len(loop)] }
		var frame, sum, worst float64
		first, small := 0, 0
		if c.how == "the least step" { // it does not meet its begin
			first = 2
		}
		for i := range c.out {
			frame = max(frame, math.Abs(at(i)-amplitude/step*math.Sin(w*float64(i))))
			if i < first {
				continue
			}
			off := math.Abs(next(at(i-1), at(i-2)) - at(i)) // for the first two frames, across the seam
			sum, worst = sum+off*off, max(worst, off)
			if Decibels(off*step/amplitude) < -90 {
				small++
			}
		}
		db := func(steps float64) float64 { return Decibels(steps * step / amplitude) }
		mean := db(math.Sqrt(sum / float64(len(loop))))
		t.Logf("%s: a frame is off by %.1f dB at most; a step by %.1f in the mean, %.1f at most, at the seam %.1f and %.1f; %d of %d below -90",
			c.how, db(frame), mean, db(worst), db(math.Abs(next(at(-1), at(-2))-at(0))), db(math.Abs(next(at(0), at(-1))-at(1))), small, len(loop))
		if math.Abs(db(frame)-c.frame) > 0.7 || math.Abs(mean-c.mean) > 0.4 || math.Abs(db(worst)-c.worst) > 0.7 {
			t.Errorf("%s: %.1f, %.1f and %.1f dB, want %.1f, %.1f and %.1f", c.how, db(frame), mean, db(worst), c.frame, c.mean, c.worst)
		}
	}
}

func TestLoopEdges(t *testing.T) {
	samples := make([]float32, 10000)
	for i := range samples {
		samples[i] = float32(i)
	}
	mono := Format{Rate: 1000, Channels: 1}
	for _, c := range []struct {
		begin, end    int64
		n             int
		before, after string
	}{
		{0, 10000, 3, "[9997 9998 9999]", "[0 1 2]"},
		{0, 6000, 2, "[5998 5999]", "[0 1]"},
		{0, 2, 5, "[1 0 1 0 1]", "[0 1 0 1 0]"},
		{5000, 10000, 2, "[]", "[5000 5001]"},
		{2047, 2050, 4, "[]", "[2047 2048 2049 2047]"},
	} {
		before, after, err := LoopEdges(&crumbs{Source: Samples(mono, samples)}, c.begin, c.end, c.n)
		if got, got2 := fmt.Sprint(before), fmt.Sprint(after); err != nil || got != c.before || got2 != c.after {
			t.Errorf("%d to %d: %s %s %v", c.begin, c.end, got, got2, err)
		}
	}
	before, after, err := LoopEdges(Samples(Format{Rate: 1000, Channels: 2}, samples), 0, 5000, 2)
	if fmt.Sprint(before, after, err) != "[9996 9997 9998 9999] [0 1 2 3] <nil>" {
		t.Error(before, after, err)
	}
	if _, _, err := LoopEdges(Samples(mono, samples), 0, 10001, 2); err == nil {
		t.Error("a loop beyond the end is taken")
	}
	if _, _, err := LoopEdges(Samples(mono, samples), 5, 5, 2); err == nil {
		t.Error("a loop of no frames is taken")
	}
}
