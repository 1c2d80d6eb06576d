package conformance

import (
	"context"

	"github.com/kiln-pipeline/kiln/processor"
)

// This file is compiled twice, like steps_test.go. BenchmarkKinds runs it.

// invert inverts the colours of pixels of four bytes. A rest smaller than a pixel is copied.
type invert struct{}

func (invert) Info() processor.Info {
	return processor.Info{Name: "invert", Version: 1, Extensions: []string{".pix"}, Products: []processor.ProductType{{Type: "pixels"}}}
}

func (invert) Process(_ context.Context, job processor.Job) error {
	pix, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	for i := 0; i+3 < len(pix); i += 4 {
		p := pix[i : i+4]
		p[0], p[1], p[2] = 255-p[0], 255-p[1], 255-p[2]
	}
	return job.Write(processor.Output{Type: "pixels"}, pix)
}
