package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// hooked is a project with one job, which calls f and has done nothing else.
func hooked(t *testing.T, f func(ctx context.Context, job processor.Job) error) *fixture {
	p := newProject(t, "-- assets/hook.s --\nhook x\n-- assets/a.txt --\nalpha\n-- assets/user.s --\nuse hook.s\n")
	p.write("assets/big.txt", strings.Repeat("big", job.WholeFile))
	p.procs = testProcessors(&hooks{call: func(ctx context.Context, _ string, job processor.Job) error { return f(ctx, job) }})
	return p
}

// TestJobIsOver has a processor leave a goroutine behind that goes on asking: it is refused, and changes nothing of what was made.
func TestJobIsOver(t *testing.T) {
	var left processor.Job
	var open processor.File
	var half interface{ Write([]byte) (int, error) }
	p := hooked(t, func(_ context.Context, job processor.Job) error {
		left = job
		var err, werr error
		open, err = job.Open("big.txt")
		half, werr = job.Create(processor.Output{Name: "half", Type: "text"})
		return errors.Join(err, werr)
	})
	p.build()
	was := p.database()["observations"]
	_, err := left.Open("a.txt")
	_, err2 := left.ReadFile("a.txt")
	_, err3 := left.Exists("a.txt")
	_, err4 := left.Glob("**")
	_, err5 := left.Tool("go")
	_, err6 := left.Find("a.txt")
	_, err7 := left.Products("a.txt")
	_, err8 := left.OpenProduct(processor.Product{AssetID: "a.txt"})
	_, err9 := left.Create(processor.Output{Name: "late", Type: "text"})
	_, err10 := left.Scratch()
	_, err11 := left.Reference("a.txt", "", true)
	_, err12 := left.Parts("a.txt")
	for i, err := range []error{err, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, left.Write(processor.Output{Name: "late", Type: "text"}, nil)} {
		if !errors.Is(err, job.ErrOver) {
			t.Errorf("%d: %v", i, err)
		}
	}
	left.Warn(processor.Problem{Text: "late"})
	if _, ok := left.Env("PATH"); ok {
		t.Error("it is told of variables")
	}
	if _, err := open.Read(make([]byte, 10)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a file reads on: %v", err)
	}
	if _, err := half.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a product is written on: %v", err)
	}
	if now := p.database()["observations"]; strings.Join(now, "\n") != strings.Join(was, "\n") {
		t.Errorf("it saw %q", now)
	}
	p.nothing()
}

// TestLateGoroutines has many goroutines ask while their processor returns. What they are told may be either; what is kept is of one
// moment, and no goroutine gets into what another job makes.
func TestLateGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	p := hooked(t, func(_ context.Context, job processor.Job) error {
		for k := range 8 {
			wg.Go(func() {
				for i := range 20 {
					job.Exists("a.txt")
					job.ReadFile(fmt.Sprintf("late%d.raw", 20*k+i))
					if f, err := job.Open("big.txt"); err == nil {
						f.Read(make([]byte, 100))
					}
					if w, err := job.Create(processor.Output{Name: "half", Type: "text"}); err == nil {
						w.Write([]byte{byte(i)})
					}
					job.Products("a.txt")
					job.Warn(processor.Problem{Text: "late"})
				}
			})
		}
		return nil
	})
	for i := range 160 {
		p.write(fmt.Sprintf("assets/late%d.raw", i), "late")
	}
	p.build0()
	wg.Wait()
	if got := p.read("build/pc/a.txt"); got != "alpha\n" {
		t.Errorf("another job made %q", got)
	}
	p.build0()
}

// TestProcessorExits: a processor that panics, or ends its goroutine, has failed, and nobody waits for it.
func TestProcessorExits(t *testing.T) {
	for name, exit := range map[string]func(){"panic": func() { panic("x") }, "nil": func() { panic(error(nil)) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			p := hooked(t, func(context.Context, processor.Job) error { exit(); return nil })
			if b := p.build(); b.Failed != 2 { // and who needs it
				t.Errorf("failed %d: %s", b.Failed, b.messages)
			}
		})
	}
}

// TestZeroBytes: nothing has a name with a zero byte in it, whoever asks.
func TestZeroBytes(t *testing.T) {
	const bad = "a.txt\x00b"
	for name, ask := range map[string]func(job processor.Job) error{
		"file":      func(job processor.Job) error { _, err := job.ReadFile(bad); return err },
		"exists":    func(job processor.Job) error { _, err := job.Exists(bad); return err },
		"glob":      func(job processor.Job) error { _, err := job.Glob(bad); return err },
		"tool":      func(job processor.Job) error { _, err := job.Tool(bad); return err },
		"asset":     func(job processor.Job) error { _, err := job.Find(bad); return err },
		"products":  func(job processor.Job) error { _, err := job.Products("a.txt", bad); return err },
		"reference": func(job processor.Job) error { _, err := job.Reference("a.txt", bad, true); return err },
		"part":      func(job processor.Job) error { _, err := job.Parts(bad); return err },
		"product":   func(job processor.Job) error { return job.Write(processor.Output{Name: bad, Type: "text"}, nil) },
		"hidden": func(job processor.Job) error {
			return job.Write(processor.Output{Name: bad, Type: "text", Hidden: true}, nil)
		},
		"type": func(job processor.Job) error { return job.Write(processor.Output{Type: "te\x00xt", Name: "n"}, nil) },
		"opened": func(job processor.Job) error {
			_, err := job.OpenProduct(processor.Product{AssetID: "a.txt", Part: "x\x00y"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := hooked(t, func(_ context.Context, job processor.Job) error { return ask(job) })
			if b := p.build(); b.Failed != 2 || !strings.Contains(b.messages, string(diag.NameRefused)) || strings.Contains(b.messages, "\x00") {
				t.Errorf("failed %d: %q", b.Failed, b.messages)
			}
			p.nothing()
		})
	}
}

// TestTraceTooLarge: a job of which more would have to be kept than can be fails by itself, and runs again once it looks at less.
func TestTraceTooLarge(t *testing.T) {
	defer func(was int) { state.MaxRecord = was }(state.MaxRecord)
	state.MaxRecord = 4000
	names := 500
	p := hooked(t, func(_ context.Context, job processor.Job) error {
		for i := range names {
			job.Exists(strings.Repeat("x", 1+i))
		}
		return nil
	})
	if b := p.build(); b.Failed != 2 || !strings.Contains(b.messages, string(diag.TraceTooLarge)) || p.read("build/pc/a.txt") != "alpha\n" {
		t.Errorf("failed %d: %s", b.Failed, b.messages)
	}
	names = 5
	if b := p.build(); b.Failed != 0 || b.ran != "hook.s user.s" {
		t.Errorf("failed %d, ran %s: %s", b.Failed, b.ran, b.messages)
	}
	p.nothing()
}
