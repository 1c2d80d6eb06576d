//go:build unix

package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/processor"
)

// runner is a processor that does with programs what a test says.
type runner struct {
	do func(ctx context.Context, job processor.Job) error
}

func (runner) Info() processor.Info {
	return processor.Info{Name: "runner", Version: 1, Extensions: []string{".r"}, Products: []processor.ProductType{{Type: "text"}}}
}

func (r runner) Process(ctx context.Context, job processor.Job) error {
	return errors.Join(r.do(ctx, job), job.Write(processor.Output{Type: "text", Extension: ".out"}, []byte("done")))
}

func newRunning(t *testing.T, do func(ctx context.Context, job processor.Job) error) *fixture {
	p := newProject(t, "-- assets/a.r --\na\n")
	p.procs = append(p.procs, runner{do})
	p.unchecked = true
	return p
}

// waits is a program that tells by a file that it runs, with a child, and then does nothing more; both would be there long after the test.
func waits(file string) processor.Command {
	return processor.Command{Args: []string{"sh", "-c", "sleep 1000 & cat " + file + " >/dev/null; wait"}, Timeout: time.Hour}
}

// A failure that may pass is the job's, even if its processor does not mind it, and is not kept.
func TestRunPasses(t *testing.T) {
	p := newRunning(t, func(ctx context.Context, job processor.Job) error {
		_, err := job.Run(ctx, processor.Command{Args: []string{"sleep", "1000"}, Timeout: time.Millisecond})
		if err == nil {
			t.Error("it ended")
		}
		return nil
	})
	for range 2 {
		if b := p.build(); b.Failed != 1 || b.ran != "a.r" || !strings.Contains(b.messages, "sleep took longer than 1ms") {
			t.Errorf("%+v\n%s", b.Summary, b.messages)
		}
	}
}

// A failure of the program is the processor's to judge, and kept.
func TestRunFailureKept(t *testing.T) {
	p := newRunning(t, func(ctx context.Context, job processor.Job) error {
		_, err := job.Run(ctx, processor.Command{Args: []string{"sh", "-c", "exit 3"}})
		return err
	})
	if b := p.build(); b.Failed != 1 || !strings.Contains(b.messages, "sh failed with exit code 3") {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	if b := p.build(); b.Failed != 1 || b.ran != "" {
		t.Errorf("ran %q again\n%s", b.ran, b.messages)
	}
}

// A program that a job does not wait for ends with it, and so does one of a build that is stopped; what a program started does, too.
func TestRunEndsWithJob(t *testing.T) {
	pipe := newPipe(t)
	over := make(chan error, 1)
	p := newRunning(t, func(ctx context.Context, job processor.Job) error {
		go func() {
			_, err := job.Run(ctx, waits(pipe.name))
			over <- err
		}()
		pipe.opened()
		return nil
	})
	if b := p.build(); b.Failed != 0 {
		t.Errorf("%+v\n%s", b.Summary, b.messages)
	}
	if err := <-over; err == nil {
		t.Error("the program ended by itself")
	}

	pipe = newPipe(t)
	p.procs[len(p.procs)-1] = runner{func(ctx context.Context, job processor.Job) error {
		_, err := job.Run(ctx, waits(pipe.name))
		return err
	}}
	p.write("assets/a.r", "other\n")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		pipe.opened()
		cancel()
	}()
	b, err := p.try(ctx, Request{})
	if !b.stopped && !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", b.Summary, err)
	}
}

// pipe is a named pipe from which a program reads that runs.
type pipe struct {
	t    *testing.T
	name string
}

func newPipe(t *testing.T) pipe {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return pipe{t, name}
}

// opened waits until the program reads.
func (p pipe) opened() {
	f, err := os.OpenFile(p.name, os.O_WRONLY, 0)
	if err != nil {
		p.t.Error(err)
		return
	}
	f.Close()
}
