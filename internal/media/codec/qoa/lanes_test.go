package qoa

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// For any state and samples, vector code finds the same results as single scales, or reports that it cannot compute them.
func TestLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(7, 8))
	var out [1188]int16
	refused, taken := 0, 0
	for range 200_000 {
		strength := 1 << r.IntN(17)
		value := func() int32 { return clamp(r.Int32N(int32(strength)) - int32(strength)/2) }
		weight := 1 + r.Int32N(1<<(2+r.IntN(15)))
		p := predictor{value(), value(), value(), value(), r.Int32N(weight), -r.Int32N(weight), r.Int32N(weight), r.Int32N(weight)}
		step := 1 + r.IntN(MaxChannels)
		samples := make([]int16, (sliceSamples-1)*step+1)
		for i := range samples {
			if samples[i] = int16(value()); r.IntN(8) == 0 {
				samples[i] = []int16{-1 << 15, 1<<15 - 1, 0}[r.IntN(3)]
			}
		}
		first, want := r.IntN(16), gather(samples, step, sliceSamples)
		slow, fast := p, p
		bits, scale := slow.slice(want, first)
		bits2, scale2, ok := fast.sliceLanes(samples, step, first, &out)
		if !ok {
			refused++
			continue
		}
		taken++
		if fast != slow || bits != bits2 || scale != scale2 {
			t.Fatalf("%+v, %v from %d:\n%x %d %+v\n%x %d %+v", p, want, first, bits, scale, slow, bits2, scale2, fast)
		}
	}
	if refused == 0 || taken < 100_000 {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
}

// Files have the same bytes with vector code and without.
func TestLanesSameBytes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	r := rand.New(rand.NewPCG(9, 10))
	square := make([]int16, 3*FrameSamples)
	jumps := make([]int16, 3*FrameSamples) // of more than 16 bits, within full scale
	noise := make([]int16, 2*FrameSamples+28)
	for i := range square {
		if square[i] = -1 << 15; i/40%2 == 0 {
			square[i] = 1<<15 - 1
		}
		jumps[i] = square[i] / 8 * 5
	}
	for i := range noise {
		noise[i] = int16(r.Uint32())
	}
	for name, src := range map[string][]int16{
		"music": music(44100, 1), "square": square, "jumps": jumps, "noise": noise, "silence": make([]int16, 6000),
	} {
		for channels := 1; channels <= 4; channels *= 2 {
			lanes = true
			fast := encode(t, src, channels)
			lanes = false
			if slow := encode(t, src, channels); !bytes.Equal(fast, slow) {
				t.Errorf("%s in %d channels: lanes give other bytes", name, channels)
			}
		}
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "qoa") }
