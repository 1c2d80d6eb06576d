package gltf

import (
	"testing"

	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	textures "github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// FuzzProcess runs the processor on anything: it never panics, reads nothing out of the source roots (the runner
// fails such reads), says what is wrong in words for people, and makes only what can be read again.
func FuzzProcess(f *testing.F) {
	f.Add([]byte(triangle))
	f.Add(embedded(f))
	p := proc{limits: codec.Limits{JSON: 1 << 20, Depth: 20, Values: 10_000, Data: 1 << 20}}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := triangleCase("")
		c.Files["models/triangle.gltf"] = data
		c.Processors = []processor.Processor{textures.New()}
		r := processortest.Run(t, p, c)
		if r.Err == nil {
			if _, err := codec.Read(r.Products[""].Data, codec.DefaultLimits()); err != nil {
				t.Fatal(err)
			}
			return
		}
		problems := processortest.Problems(r.Err)
		if len(problems) == 0 {
			t.Fatalf("no problem in %v", r.Err)
		}
		for _, problem := range problems {
			if problem.Code == "" || problem.Text == "" || problem.Hint == "" {
				t.Errorf("%#v", problem)
			}
		}
	})
}
