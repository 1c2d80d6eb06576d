package job

import (
	"context"
	"errors"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// Run runs a program, which ends with the job and with the build.
func (j *Job) Run(ctx context.Context, c processor.Command) (processor.Result, error) {
	names := append(append(append([]string{}, c.Args...), c.Tools...), c.Env...)
	if err := j.may(append(names, c.Inputs...)...); err != nil {
		return processor.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(j.run.Context(), func() { cancel(context.Cause(j.run.Context())) })()
	r := &running{end: func() { cancel(ErrOver) }}
	r.done.Add(1)
	defer r.done.Done()
	j.closeAtEnd(r)
	res, err := j.w.programs.Run(ctx, measured{j}, j.t.Proc.Info.Name, c)
	if errors.Is(err, diag.ErrMoment) {
		return res, j.mayPass(err)
	}
	return res, err
}

// running is a program that the job did not wait for.
type running struct {
	end  func()
	done sync.WaitGroup
}

func (r *running) Close() error {
	r.end()
	r.done.Wait()
	return nil
}

// measured is a job that runs programs and also does work of its own: it needs memory for both.
type measured struct{ *Job }

func (j measured) UsedMemory(bytes int64) {
	own := j.t.Proc.Info.Memory
	if own == 0 {
		own = defaultJobMemory
	}
	j.Job.UsedMemory(own + bytes)
}
