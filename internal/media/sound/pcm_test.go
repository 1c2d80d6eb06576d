package sound

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestInt16(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	const step = 1.0 / 32768
	src := []float32{0, 1, -1, step, -step, 0.49 * step, 0.5 * step, -0.5 * step, 1 - step, 1.0001, -1.0001, inf, -inf, nan, 3e38}
	var c Int16
	out := make([]int16, len(src)+3)
	n := c.Convert(out, src)
	want := "[0 32767 -32768 1 -1 0 1 -1 32767 32767 -32768 32767 -32768 0 32767]"
	if got := fmt.Sprint(out[:n]); got != want || c.Clipped != 5 || c.Invalid != 1 {
		t.Errorf("%s, %d clipped, %d invalid; want %s", got, c.Clipped, c.Invalid, want)
	}
	if n := c.Convert(out[:2], src); n != 2 {
		t.Error("room for 2:", n)
	}

	// Samples that came from 16 bits are converted to the same 16 bits.
	var all []float32
	for i := math.MinInt16; i <= math.MaxInt16; i++ {
		all = append(all, float32(i)/32768)
	}
	back := make([]int16, len(all))
	c = Int16{}
	c.Convert(back, all)
	for i, v := range back {
		if int(v) != i+math.MinInt16 {
			t.Fatalf("%d becomes %d", i+math.MinInt16, v)
		}
	}
	if c.Clipped != 0 {
		t.Error(c.Clipped, "clipped")
	}
}

// TestDither checks that dithering keeps the mean of a signal below one step, and that the noise has the same level
// everywhere. The result does not depend on the size of the reads.
func TestDither(t *testing.T) {
	for _, part := range []float64{0, 0.1, 0.25, 0.5, -0.3} {
		src := slices.Repeat([]float32{float32(part / 32768)}, 200_000)
		out := make([]int16, len(src))
		c := Int16{Dither: true}
		c.Convert(out, src)
		var sum, squares float64
		for _, v := range out {
			if v < -2 || v > 2 {
				t.Fatal("noise of", v)
			}
			sum += float64(v)
			squares += (float64(v) - part) * (float64(v) - part)
		}
		n := float64(len(out))
		if mean, noise := sum/n, squares/n; math.Abs(mean-part) > 0.01 || math.Abs(noise-0.25) > 0.01 {
			t.Errorf("%.2f of a step: mean %.3f, noise %.3f", part, mean, noise)
		}
		pieces := make([]int16, 0, len(out))
		c = Int16{Dither: true}
		for rest := src; len(rest) > 0; {
			k := min(777, len(rest))
			c.Convert(pieces[len(pieces):len(pieces)+k], rest)
			pieces, rest = pieces[:len(pieces)+k], rest[k:]
		}
		if !slices.Equal(pieces, out) {
			t.Error("pieces change the noise")
		}
	}
}

// Near every half step, near full scale and beyond, 16 bits are what rounding in the usual way gives: halves away from
// zero, limited to the range, and counted.
func TestInt16Everywhere(t *testing.T) {
	var all []float32
	add := func(v float32) {
		inf := float32(math.Inf(1))
		for _, x := range [3]float32{math.Nextafter32(v, -inf), v, math.Nextafter32(v, inf)} {
			all = append(all, x, -x)
		}
	}
	for half := range 1<<16 + 5 {
		add(float32(half) / 65536)
	}
	for _, v := range []float32{0, 1e-45, 1e-30, 2, 32767, 32768, 65536, 1e10, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())} {
		add(v)
	}
	var c Int16
	got := make([]int16, len(all))
	c.Convert(got, all)
	var clipped, invalid int64
	for i, v := range all {
		want := min(max(math.Round(float64(v)*32768), -32768), 32767)
		switch {
		case v != v:
			want = 0
			invalid++
		case v > 1 || v < -1:
			clipped++
		}
		if float64(got[i]) != want {
			t.Fatalf("%v is %d, want %v", v, got[i], want)
		}
	}
	if c.Clipped != clipped || c.Invalid != invalid {
		t.Errorf("%d clipped, %d invalid; want %d, %d", c.Clipped, c.Invalid, clipped, invalid)
	}
}
