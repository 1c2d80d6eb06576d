package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/build"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// BenchmarkJobs builds 1,000 tiny assets from nothing: what a job costs more than one of copy, in milliseconds of one worker.
func BenchmarkJobs(b *testing.B) {
	const assets = 1000
	once := func(toml string, files map[string]string) time.Duration {
		dir := b.TempDir()
		write := func(name, text string) {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				b.Fatal(err)
			}
		}
		write("kiln.toml", "[project]\nname = \"bench\"\n"+toml)
		for name, text := range files {
			write(name, text)
		}
		for i := range assets {
			write(fmt.Sprintf("assets/%d.tiny", i), fmt.Sprintf("asset %d", i))
		}
		start := time.Now()
		p, err := build.Open(build.Config{Dir: dir, Version: "bench", Processors: processors.All()})
		if err != nil {
			b.Fatal(err)
		}
		r, err := p.Build(context.Background(), build.Request{Workers: 1, Reporter: &reporter{}})
		if err != nil || r.Summary.Built != assets || r.Summary.Failed > 0 {
			b.Fatal(err, r)
		}
		return time.Since(start)
	}
	var floor, script time.Duration
	for range b.N {
		floor += once("", nil)
		script += once("[[processors]]\nscript = \"tiny.star\"\n", map[string]string{
			"tiny.star": "processor(\"tiny\", extensions = [\".tiny\"])\ndef process(job):\n    job.write(job.read())\n",
		})
	}
	b.ReportMetric(float64(script-floor)/float64(b.N)/assets/1e6, "ms-over-copy/job")
	b.ReportMetric(float64(floor)/float64(b.N)/assets/1e6, "ms-copy/job")
}
