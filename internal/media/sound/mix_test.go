package sound

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestMixes(t *testing.T) {
	const front = FrontLeft | FrontRight
	ninths := slices.Repeat([]float32{1. / 9}, 9)
	for _, c := range []struct {
		name     string
		channels int
		mask     ChannelMask
		mono     string
		left     string
		right    string
	}{
		{"mono", 1, 0, "[1.0000]", "[1.0000]", "[1.0000]"},
		{"stereo", 2, 0, "[0.5000 0.5000]", "[1.0000 0.0000]", "[0.0000 1.0000]"},
		{"5.1", 6, 0, "[0.2071 0.2071 0.2929 0.0000 0.1464 0.1464]", "[0.4142 0.0000 0.2929 0.0000 0.2929 0.0000]",
			"[0.0000 0.4142 0.2929 0.0000 0.0000 0.2929]"},
		{"5.1 with sides", 6, front | FrontCentre | LowFrequency | SideLeft | SideRight, "[0.2071 0.2071 0.2929 0.0000 0.1464 0.1464]",
			"[0.4142 0.0000 0.2929 0.0000 0.2929 0.0000]", "[0.0000 0.4142 0.2929 0.0000 0.0000 0.2929]"},
		{"7.1", 8, 0, "[0.1602 0.1602 0.2265 0.0000 0.1133 0.1133 0.1133 0.1133]",
			"[0.3204 0.0000 0.2265 0.0000 0.2265 0.0000 0.2265 0.0000]", "[0.0000 0.3204 0.2265 0.0000 0.0000 0.2265 0.0000 0.2265]"},
		{"2.1", 3, front | LowFrequency, "[0.5000 0.5000 0.0000]", "[1.0000 0.0000 0.0000]", "[0.0000 1.0000 0.0000]"},
		{"with one behind", 3, front | BackCentre, "[0.3333 0.3333 0.3333]", "[0.6667 0.0000 0.3333]", "[0.0000 0.6667 0.3333]"},
		{"no speakers", 9, 0, fmt.Sprintf("%.4f", ninths), fmt.Sprintf("%.4f", ninths), fmt.Sprintf("%.4f", ninths)},
	} {
		// One frame for each channel, in which only that channel is at full scale.
		f := Format{Rate: 8000, Channels: c.channels, Mask: c.mask}
		samples := make([]float32, c.channels*c.channels)
		for i := range c.channels {
			samples[i*c.channels+i] = 1
		}
		mono := Mono(&crumbs{Source: Samples(f, samples)})
		out, err := All(mono)
		if got := fmt.Sprintf("%.4f", out); err != nil || got != c.mono || mono.Format().Channels != 1 {
			t.Errorf("%s to mono: %s, %v", c.name, got, err)
		}
		stereo := Stereo(&crumbs{Source: Samples(f, samples)})
		out, err = All(stereo)
		if err != nil || stereo.Format().Channels != 2 {
			t.Fatal(c.name, stereo.Format(), err)
		}
		var sides [2][]float32
		for i, v := range out {
			sides[i%2] = append(sides[i%2], v)
		}
		if l, r := fmt.Sprintf("%.4f", sides[0]), fmt.Sprintf("%.4f", sides[1]); l != c.left || r != c.right {
			t.Errorf("%s to stereo: %s %s", c.name, l, r)
		}
	}
}

// TestMixesDoNotClip checks that full scale in all channels stays full scale, up to rounding. If there are only low
// frequencies, the result is silence.
func TestMixesDoNotClip(t *testing.T) {
	for channels := 1; channels <= MaxChannels; channels++ {
		samples := make([]float32, channels)
		for i := range samples {
			samples[i] = 1
		}
		for _, src := range []Source{Mono(Samples(Format{Rate: 8000, Channels: channels}, samples)),
			Stereo(Samples(Format{Rate: 8000, Channels: channels}, samples))} {
			out, err := All(src)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range out {
				if math.Abs(float64(v)-1) > 1e-6 {
					t.Errorf("%d channels of 1 to %v", channels, out)
				}
			}
		}
	}
	low := Format{Rate: 8000, Channels: 3, Mask: LowFrequency}
	if out, err := All(Mono(Samples(low, []float32{0.5, 0, 0}))); err != nil || out[0] != 0 {
		t.Error("low frequencies:", out, err)
	}
	alone := Format{Rate: 8000, Channels: 1, Mask: LowFrequency}
	if out, err := All(Stereo(Samples(alone, []float32{0.5}))); err != nil || len(out) != 2 {
		t.Error("low frequencies alone:", out, err)
	}
}
