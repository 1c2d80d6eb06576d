package wasm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// BenchmarkJob is what one of many small jobs takes: all of it is Kiln's own, for the work is nothing.
func BenchmarkJob(b *testing.B) {
	c := processortest.Case{Files: map[string][]byte{"a.heights": []byte(heights)}, Asset: "a.heights"}
	for name, make := range map[string]func(testing.TB) processor.Processor{
		"go": goExample,
		"c": func(t testing.TB) processor.Processor {
			file := cModule(t)
			return load(t, Config{Dir: filepath.Dir(file), Path: filepath.Base(file), Name: "voxel"})
		},
	} {
		b.Run(name, func(b *testing.B) {
			p := make(b)
			processortest.Run(b, p, c)
			for b.Loop() {
				if r := processortest.Run(b, p, c); r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}

// BenchmarkParts is where a job's time goes in a Go guest.
func BenchmarkParts(b *testing.B) {
	p := goExample(b).(*proc)
	processortest.Run(b, p, processortest.Case{Files: map[string][]byte{"a.heights": []byte(heights)}, Asset: "a.heights"})
	e := p.engine
	b.Run("reset", func(b *testing.B) {
		in, err := e.instance(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer e.done(in)
		b.SetBytes(int64(len(e.memory)))
		for b.Loop() {
			if !e.reset(in) {
				b.Fatal("memory has grown")
			}
		}
	})
	b.Run("instantiate", func(b *testing.B) {
		for b.Loop() {
			r := newRun(b.Context(), nil, p, time.Minute)
			in, err := e.instantiate(r.ctx)
			if err != nil {
				b.Fatal(err)
			}
			in.Close(r.ctx)
			r.end()
		}
	})
}

// BenchmarkPixels is work on each of a million pixels in a Go guest, beside the same code in Go.
func BenchmarkPixels(b *testing.B) {
	in, out := make([]byte, 4<<20), make([]byte, 1<<20)
	bare := time.Duration(1 << 62)
	b.Run("go", func(b *testing.B) {
		for b.Loop() {
			start := time.Now()
			for i := range out {
				p := in[4*i : 4*i+4]
				out[i] = byte((int(p[0])*54 + int(p[1])*183 + int(p[2])*19 + (i & 255)) >> 8)
			}
			bare = min(bare, time.Since(start))
		}
	})
	b.Run("wasm", func(b *testing.B) {
		p := goGuest(b)
		best := time.Duration(1 << 62)
		for b.Loop() {
			start := time.Now()
			if r := runOn(b, p, "a.guest", "filter"); r.Err != nil {
				b.Fatal(r.Err)
			}
			best = min(best, time.Since(start))
		}
		b.ReportMetric(float64(best)/float64(bare), "x-go")
		b.ReportMetric(float64(best)/1e6, "best-ms")
	})
}

// BenchmarkLoad is what each start of Kiln pays for a processor that was compiled before.
func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"module", "go"} {
		b.Run(name, func(b *testing.B) {
			goExample(b)
			c := Config{Dir: repository(b), Go: "processor/wasmguest/example", Name: "voxel", Cache: sharedCache()}
			if name == "module" {
				code := goExample(b).(*proc).code
				c = Config{Dir: b.TempDir(), Path: "voxel.wasm", Name: "voxel", Cache: sharedCache()}
				if err := os.WriteFile(filepath.Join(c.Dir, c.Path), code, 0o666); err != nil {
					b.Fatal(err)
				}
			}
			load(b, c)
			for b.Loop() {
				if p := load(b, c).(*proc); p.engine != nil {
					b.Fatalf("%s was compiled", name)
				}
			}
		})
	}
}
