package sound

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestSounding(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		samples   []float32 // of two channels
		threshold float64
		margin    int64
		want      string
	}{
		{[]float32{0, 0, 0, 0.5, 0, 0, -0.5, 0, 0, 0}, -50, 0, "1 4"},
		{[]float32{0, 0, 0, 0.5, 0, 0, -0.5, 0, 0, 0}, -50, 1, "0 5"},
		{[]float32{0, 0, 0, 0.5, 0, 0, -0.5, 0, 0, 0}, -50, math.MaxInt64, "0 5"},
		{[]float32{0, 0, 0, 0.5, 0, 0, -0.5, 0, 0, 0}, -50, -3, "1 4"},
		{[]float32{0.001, 0, 0.1, 0, 0.001, 0}, -50, 0, "1 2"},
		{[]float32{0.001, 0, 0.1, 0, 0.001, 0}, -61, 0, "0 3"},
		{[]float32{nan, 0, 0.1, 0, 0, nan}, -50, 0, "1 2"},
		{make([]float32, 20), -50, 3, "0 0"},
		{nil, -50, 3, "0 0"},
		{[]float32{0, 0, 1e-20, 0}, math.Inf(-1), 0, "1 2"},
	} {
		begin, end, err := Sounding(Samples(Format{Rate: 8000, Channels: 2}, c.samples), c.threshold, c.margin)
		if got := fmt.Sprint(begin, end); err != nil || got != c.want {
			t.Errorf("%v: %s, %v; want %s", c.samples, got, err, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	samples := make([]float32, 20000)
	for i := range samples {
		samples[i] = float32(i)
	}
	for _, channels := range []int{1, 2} {
		f := Format{Rate: 8000, Channels: channels}
		frames := int64(20000 / channels)
		for _, c := range [][2]int64{{0, frames}, {0, 1}, {5000, 9001}, {3, 3}, {7, 2}, {frames - 1, frames + 5}, {frames + 5, frames + 9}, {-4, 3}} {
			want := samples[min(max(0, c[0]), frames)*int64(channels) : min(max(c[0], c[1], 0), frames)*int64(channels)]
			if c[0] > frames {
				want = nil
			}
			got, err := All(Cut(&crumbs{Source: Samples(f, samples)}, c[0], c[1]))
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d channels, %v: %d samples, want %d; %v", channels, c, len(got), len(want), err)
			}
		}
	}
}

func TestGain(t *testing.T) {
	out, err := All(Gain(Samples(Format{Rate: 8000, Channels: 1}, []float32{1, -0.5, 0}), Amplitude(-6)))
	if err != nil || fmt.Sprintf("%.5f", out) != "[0.50119 -0.25059 0.00000]" {
		t.Error(out, err)
	}
}

func TestFade(t *testing.T) {
	ones := slices.Repeat([]float32{1}, 20)
	f := Format{Rate: 8000, Channels: 2}
	for _, c := range []struct {
		fades Fades
		want  string // every second sample
	}{
		{Fades{In: 4}, "[0.00 0.25 0.50 0.75 1.00 1.00 1.00 1.00 1.00 1.00]"},
		{Fades{Out: 4, Frames: 10}, "[1.00 1.00 1.00 1.00 1.00 1.00 0.75 0.50 0.25 0.00]"},
		{Fades{In: 2, Out: 4, Frames: 8, Curve: EqualPower}, "[0.00 0.71 1.00 1.00 0.92 0.71 0.38 0.00 0.00 0.00]"},
		{Fades{In: 10, Out: 10, Frames: 10}, "[0.00 0.08 0.14 0.18 0.20 0.20 0.18 0.14 0.08 0.00]"},
		{Fades{}, "[1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00]"},
		{Fades{Frames: 3}, "[1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00]"},
	} {
		for _, pieces := range []bool{false, true} {
			src, err := Fade(Samples(f, ones), c.fades)
			if err != nil {
				t.Fatal(err)
			}
			if pieces {
				src = &crumbs{Source: src}
			}
			out, err := All(src)
			var half []float32
			for i := range out {
				if out[i] != out[i&^1] {
					t.Error("channels differ")
				}
				if i%2 == 0 {
					half = append(half, out[i])
				}
			}
			if got := fmt.Sprintf("%.2f", half); err != nil || got != c.want {
				t.Errorf("%+v: %s, want %s; %v", c.fades, got, c.want, err)
			}
		}
	}
	for _, bad := range []Fades{{In: -1}, {Out: -1, Frames: 5}, {Out: 5}, {Out: 5, Frames: 4}} {
		if _, err := Fade(Samples(f, ones), bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	// In an equal-power crossfade the sum of the squares is 1.
	for i := range 101 {
		in, out := float64(EqualPower.at(float64(i)/100)), float64(EqualPower.at(1-float64(i)/100))
		if math.Abs(in*in+out*out-1) > 1e-6 {
			t.Error(i, in, out)
		}
	}
}

func TestJoin(t *testing.T) {
	f := Format{Rate: 8000, Channels: 2}
	got, err := All(Join(Samples(f, nil), Samples(f, []float32{1, 2}), Samples(f, nil), Samples(f, []float32{3, 4, 5, 6})))
	if err != nil || !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6}) {
		t.Error(got, err)
	}
}
