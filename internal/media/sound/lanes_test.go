package sound

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// wild returns samples of all sizes: few or many are beyond full scale, not finite, or halves of a step of 16 bits.
func wild(r *rand.Rand, n int) []float32 {
	strange := []float32{0, 1, -1, 2, -3e38, 3e38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-42,
		0.5 / 32768, -0.5 / 32768, 32766.5 / 32768, -32766.5 / 32768, 65534.0 / 65536, 32767.5 / 32768, -32767.5 / 32768}
	if r.IntN(2) == 0 {
		strange = strange[10:]
	}
	rare := 1 << r.IntN(12)
	loud := float32(math.Exp2(float64(r.IntN(20) - 18)))
	s := make([]float32, n)
	for i := range s {
		if s[i] = float32(r.Float64()-0.5) * loud; r.IntN(rare) == 0 {
			s[i] = strange[r.IntN(len(strange))]
		}
	}
	return s
}

// The results are the same with vector code and without, to the bit.
func TestLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	r := rand.New(rand.NewPCG(11, 12))
	for range 3000 {
		f := Format{Rate: []int{8000, 44100, 96000, 192000}[r.IntN(4)], Channels: 1 + r.IntN(3)}
		samples := wild(r, f.Channels*(1+r.IntN(1<<(1+r.IntN(13)))))
		piece := f.Channels * (1 + r.IntN(3000))
		var loud [2]Loudness
		var passed [2][]float32
		var whole [2][]int16
		var counts [2]Int16
		for k := range 2 {
			lanes = k == 0
			m, err := NewMeter(Samples(f, slices.Clone(samples)), MeterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]float32, piece)
			for err == nil {
				var n int
				n, err = m.Read(buf)
				passed[k] = append(passed[k], buf[:n*f.Channels]...)
			}
			loud[k] = m.Loudness()
			whole[k] = make([]int16, len(samples)+1)
			counts[k].Convert(whole[k], samples)
		}
		if loud[0] != loud[1] && !(loud[0].LUFS != loud[0].LUFS && loud[1].LUFS != loud[1].LUFS) {
			t.Fatalf("%v, %d samples: %+v, without %+v", f, len(samples), loud[0], loud[1])
		}
		if !slices.Equal(passed[0], passed[1]) {
			t.Fatalf("%v, %d samples: the meter passes on others", f, len(samples))
		}
		if !slices.Equal(whole[0], whole[1]) || counts[0] != counts[1] {
			t.Fatalf("%d samples: 16 bits differ: %+v, without %+v", len(samples), counts[0], counts[1])
		}
	}
}

// All samples of 16 bits, and all halves between, are rounded the same.
func TestLanesRound(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	var samples []float32
	for i := -65540; i <= 65540; i++ {
		v := float32(i) / 65536
		samples = append(samples, math.Nextafter32(v, -2), v, math.Nextafter32(v, 2))
	}
	var whole [2][]int16
	for k := range 2 {
		lanes = k == 0
		whole[k] = make([]int16, len(samples))
		new(Int16).Convert(whole[k], samples)
	}
	if !slices.Equal(whole[0], whole[1]) {
		t.Error("16 bits differ")
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "sound") }
