package script

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// goCopy does in Go what the script of BenchmarkJob does.
type goCopy struct{}

func (goCopy) Info() processor.Info { return processor.Info{Name: "copy", Version: 1} }
func (goCopy) Process(_ context.Context, job processor.Job) error {
	data, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	return job.Write(processor.Output{Type: "copy"}, data)
}

// BenchmarkJob measures what a script costs a job: more than the same job in Go, in microseconds.
func BenchmarkJob(b *testing.B) {
	s := load(b, body("job.write(job.read())"))
	c := processortest.Case{Files: map[string][]byte{"a.p": []byte("a tiny asset")}, Asset: "a.p"}
	run := func(p processor.Processor) time.Duration {
		start := time.Now()
		for range b.N {
			if r := processortest.Run(b, p, c); r.Err != nil {
				b.Fatal(r.Err)
			}
		}
		return time.Since(start)
	}
	floor := run(goCopy{})
	b.ResetTimer()
	took := run(s)
	b.ReportMetric(float64((took-floor).Nanoseconds())/float64(b.N)/1000, "µs-over-go/op")
}

// BenchmarkLoad is what a script costs the start of kiln: one of a few lines, and one of 16 KiB, which is kept compiled.
func BenchmarkLoad(b *testing.B) {
	few, many := body("job.write(job.read())"), ""
	for i := range 160 {
		many += fmt.Sprintf("def f%d(a, b):\n    x = [a * b + c for c in range(a)]\n    if len(x) > 3:\n        x[0] += 2\n    return x\n", i)
	}
	for _, c := range []struct{ name, text, cache string }{{"few lines", few, ""}, {"16 KiB", few + many, ""}, {"16 KiB kept", few + many, b.TempDir()}} {
		dir := project(b, map[string]string{"p.star": c.text})
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Load(dir, "p.star", c.cache); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPixels measures operations over a picture of a million pixels, and the ratio to the same loop in Go.
func BenchmarkPixels(b *testing.B) {
	m := pixel.New(1024, 1024)
	for i := range m.Pix {
		m.Pix[i] = byte(i * 7)
	}
	start := time.Now()
	for range 10 {
		out := m.Crop(0, 0, 1024, 1024)
		for i := 0; i < len(out.Pix); i += 4 {
			out.Pix[i], out.Pix[i+1], out.Pix[i+2] = 255-out.Pix[i], 255-out.Pix[i+1], 255-out.Pix[i+2]
		}
	}
	floor := time.Since(start) / 10
	for _, c := range []struct{ name, line string }{
		{"map", "m.map(rgb = lambda v: 255 - v)"}, {"compose", "m.compose(n, 1, 1)"}, {"blit", "m.blit(n, 1, 1)"}, {"resize", "m.resize(512, 512)"},
		{"pixels", `m.pixels("bgr")`}, {"of", `image.of(1024, 1024, n.pixels())`},
		{"loop", "for v in m.pixels(\"r\").elems():\n    x = (v * 3 + 7) % 256"},
		{"writer", "writer().u8(m.pixels(\"r\").elems())"},
	} {
		s := load(b, body("m = image.new(1024, 1024, (1, 2, 3, 128))\nn = m.copy()\n"+"for _ in range(int(job.read_text())):\n    "+indent(c.line)))
		run := func(n int) time.Duration {
			start := time.Now()
			r := processortest.Run(b, s, processortest.Case{Files: map[string][]byte{"a.p": fmt.Append(nil, n)}, Asset: "a.p"})
			if r.Err != nil {
				b.Fatal(r.Err)
			}
			return time.Since(start)
		}
		b.Run(c.name, func(b *testing.B) {
			took := run(b.N) - run(0)
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/1e6, "ms/Mpix")
			b.ReportMetric(float64(took)/float64(b.N)/float64(floor), "x-Go")
		})
	}
}

func indent(s string) string {
	out := ""
	for _, c := range s {
		if out += string(c); c == '\n' {
			out += "    "
		}
	}
	return out
}
