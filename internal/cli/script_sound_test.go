package cli_test

import (
	"math"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
)

// wav FILE RATE FRAMES [BEGIN END]: writes a sine of 16 bits, with a loop.
func writeWAV(ts *testscript.TestScript, _ bool, args []string) {
	n := make([]int64, len(args))
	for i, a := range args[1:] {
		v, err := strconv.ParseInt(a, 10, 64)
		ts.Check(err)
		n[i+1] = v
	}
	var m wav.Metadata
	if len(args) > 4 {
		m.Loops = []wav.Loop{{Begin: n[3], End: n[4]}}
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	w, err := wav.NewWriter(f, wav.Format{Rate: int(n[1]), Channels: 1, Coding: wav.PCM, Bits: 16}, m, n[2])
	ts.Check(err)
	samples := make([]float32, n[2])
	for i := range samples {
		samples[i] = float32(0.25 * math.Sin(2*math.Pi*1000*float64(i)/float64(n[1])))
	}
	ts.Check(w.Write(samples))
	ts.Check(w.Close())
	ts.Check(f.Close())
}
