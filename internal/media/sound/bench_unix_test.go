//go:build unix

package sound

import (
	"syscall"
	"testing"
	"time"
)

// processorTime returns the processor time of this process. On a busy machine it is more reliable than a clock.
func processorTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// spend runs a benchmark and reports its processor time.
func spend(b *testing.B, f func()) {
	start := processorTime()
	for b.Loop() {
		f()
	}
	b.ReportMetric((processorTime()-start).Seconds()/float64(b.N), "cpu-s/op")
}

func BenchmarkMeter(b *testing.B) {
	n := noise(1)
	sounds := map[string]Source{
		"80s-noise": Samples(Format{Rate: 48000, Channels: 2}, n.fill(2*48000*80, 0.5)),
		"80s-sine":  tones(48000, stereo(-6, 80)),
	}
	for name, src := range sounds {
		all, err := All(src)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			spend(b, func() { measure(b, Samples(Format{Rate: 48000, Channels: 2}, all)) })
		})
	}
}

func BenchmarkResample(b *testing.B) {
	n := noise(1)
	for _, c := range []struct {
		name     string
		from, to int
		ratio    Ratio
	}{
		{"60s-44100-48000", 44100, 48000, Ratio{}},
		{"60s-48000-44100", 48000, 44100, Ratio{}},
		{"60s-44100-22050", 44100, 22050, Ratio{}},
		{"60s-44100-48000-loop", 44100, 48000, Ratio{2880011, 2646011}},
	} {
		samples := n.fill(2*c.from*60, 0.5)
		b.Run(c.name, func(b *testing.B) {
			buf := make([]float32, 2*pieceFrames)
			spend(b, func() {
				r, err := Resample(Samples(Format{Rate: c.from, Channels: 2}, samples), Conversion{Rate: c.to, Ratio: c.ratio})
				for err == nil {
					_, err = r.Read(buf)
				}
			})
		})
	}
}
