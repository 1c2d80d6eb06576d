// Package worker runs a written job, in a folder that contains the job and the contents of its answers, and nothing
// else. The files that it writes are a pure function of these (see package written), so the server may cache the
// result.
//
// If a processor asks something to which the job has no answer, it gets an error or, where that shows what it asks
// next, a made-up answer. Either way the run has no result, and only shows which answers are missing.
package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/processor"
)

// Run runs the job in the working folder of this process, with the processors of this kiln. The error is why there is
// no log.
func Run(ctx context.Context, cfg workspace.Config) error {
	data, err := disk.ReadFile(written.JobFile)
	if err != nil {
		return err
	}
	j, err := written.DecodeJob(data)
	if errors.Is(err, written.ErrOther) {
		return disk.Keep(written.LogFile, (&written.Log{Outcome: written.Other, Reason: cfg.Version}).Encode())
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(written.OutFolder, 0o777); err != nil {
		return err
	}
	own, err := os.MkdirTemp("", "kiln-job-*") // beside the action's folder, whose content is fixed
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	w := &run{
		written: j, program: workspace.NewProgram(cfg), version: cfg.Version, own: own, folder: folder,
		checked: map[written.Content]bool{}, tools: map[string]string{},
	}
	log := w.process(ctx)
	if ctx.Err() != nil {
		return ctx.Err() // it was stopped, so there is no result
	}
	return disk.Keep(written.LogFile, log.Encode())
}

// process runs the processor.
func (w *run) process(ctx context.Context) *written.Log {
	local := func(format string, args ...any) *written.Log {
		return &written.Log{Outcome: written.Local, Reason: fmt.Sprintf(format, args...)}
	}
	if w.program.Kiln != w.written.Kiln {
		return &written.Log{Outcome: written.Other, Reason: w.version}
	}
	if err := w.layProject(); err != nil {
		return local("the project: %v", err)
	}
	p, err := w.program.Processor(w.written, filepath.Join(w.own, "state"), w.kiln)
	if err != nil {
		return local("%v", err)
	}
	if like := p.Info().Settings; like != nil {
		if w.settings, err = settings.Parse(like, []byte(w.written.Settings)); err != nil {
			return local("its settings cannot be read: %v", err)
		}
	}
	err = w.call(ctx, p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	switch {
	case w.local != "":
		return local("%s", w.local)
	case w.needs:
		return &written.Log{Outcome: written.Needs, Calls: w.calls}
	case err != nil:
		return local("it failed: %v", err)
	case w.unfinished > 0:
		return local("it left a product open")
	}
	return &written.Log{Outcome: written.Done, Calls: w.calls}
}

// call calls the processor on a goroutine of its own, because it may end its goroutine.
func (w *run) call(ctx context.Context, p processor.Processor) (err error) {
	err = errors.New("the processor ended its goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		if w.written.Part == "" {
			err = p.Process(ctx, w)
			return
		}
		parter, ok := p.(processor.Parter)
		if !ok {
			err = errors.New("the processor makes no parts")
			return
		}
		err = parter.Part(ctx, w, w.written.Part)
	}()
	<-done
	return err
}
