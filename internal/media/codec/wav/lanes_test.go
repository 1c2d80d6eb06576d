package wav

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// All samples of 16 bits are the same with vector code and without, in pieces of all sizes.
func TestLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	b := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(i*40503))
	}
	r := &Reader{Format: Format{Coding: PCM}, riff: riff{order: binary.LittleEndian}, sample: 2}
	for n := range 100 {
		for _, size := range []int{n, 1<<16 - n} {
			var out [2][]float32
			for k := range 2 {
				lanes = k == 0
				out[k] = make([]float32, size+1)
				r.convert(out[k][:size], b[2*n:2*(n+size)])
			}
			if !slices.Equal(out[0], out[1]) {
				t.Fatalf("%d samples from %d differ", size, n)
			}
		}
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "wav") }
