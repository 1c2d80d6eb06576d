package atlas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kiln-pipeline/kiln/processor"
)

// inProcess does the parts of a job that has none: one after the other, in memory, as one piece of work.
type inProcess struct {
	processor.Job
	ctx  context.Context
	p    proc
	part string
	made map[string][]made // by part
	errs map[string]error
}

type made struct {
	processor.Product
	data []byte
}

// withParts is the job itself, if it can do parts.
func withParts(ctx context.Context, p proc, job processor.Job) processor.Job {
	if _, err := job.Parts(); !errors.Is(err, errors.ErrUnsupported) {
		return job
	}
	return &inProcess{Job: job, ctx: ctx, p: p, made: map[string][]made{}, errs: map[string]error{}}
}

func (j *inProcess) Parts(names ...string) ([][]processor.Product, error) {
	all := make([][]processor.Product, len(names))
	var errs []error
	for i, name := range names {
		if _, done := j.made[name]; !done {
			j.made[name] = nil
			part := *j
			part.part = name
			j.errs[name] = j.p.Part(j.ctx, &part, name)
		}
		if err := j.errs[name]; err != nil && !slices.Contains(errs, err) {
			errs = append(errs, err)
		}
		for _, m := range j.made[name] {
			all[i] = append(all[i], m.Product)
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return all, errors.Join(errs...)
}

func (j *inProcess) Write(out processor.Output, data []byte) error {
	j.made[j.part] = append(j.made[j.part], made{processor.Product{Name: out.Name, Part: j.part}, bytes.Clone(data)})
	if out.Hidden {
		return nil
	}
	return j.Job.Write(out, data)
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func (j *inProcess) OpenProduct(p processor.Product) (processor.File, error) {
	for _, m := range j.made[p.Part] {
		if m.Name == p.Name {
			return memory{bytes.NewReader(m.data)}, nil
		}
	}
	return nil, fmt.Errorf("product %q of part %q: %w", p.Name, p.Part, fs.ErrNotExist)
}
