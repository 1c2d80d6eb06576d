package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/processor"
)

// TestLockOutlivesState: a kiln that is at work keeps others from the project, although somebody removes all of .kiln.
func TestLockOutlivesState(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a file that is held cannot be removed")
	}
	p := newProject(t, "-- assets/a.s --\nhook\n")
	p.procs = testProcessors(&hooks{call: slowly})
	for _, goneOn := range []bool{false, true} {
		p.write("assets/a.s", fmt.Sprintf("hook\ntext %t", goneOn))
		holder := p.another(true)
		holder.says("holds")
		p.remove(".kiln")
		if goneOn { // by whoever looks into the project
			if _, err := p.open().StateDir(); err != nil {
				t.Error(err)
			}
		}
		if err := p.open().Lock(context.Background(), false, nil); !errors.Is(err, workspace.ErrBusy) {
			t.Errorf("two kilns at once: %v", err)
		}
		waiter := p.another(false)
		waiter.says("waits")
		holder.input.Close()
		holder.cmd.Wait() // it says what was done to it
		waiter.ends()
		p.wants("")
		p.nothing()
	}
}

// TestLockReplaced: what is locked is what others will find.
func TestLockReplaced(t *testing.T) {
	t.Parallel()
	p := newProject(t, "-- assets/a.txt --\na\n")
	pr := p.open()
	for range 3 {
		p.must(pr.Lock(context.Background(), false, nil))
		if !pr.LockThere() {
			t.Error("the file that is locked is another one")
		}
		p.must(pr.Unlock())
		p.must(pr.Unlock()) // once more does nothing
		p.remove(".kiln")
	}
}

// TestStateRemoved removes .kiln while jobs run: the build says so, and the next one gives what a clean one gives.
func TestStateRemoved(t *testing.T) {
	t.Parallel()
	requireLinux(t, "removing files that are open")
	p := newProject(t, "-- assets/a.s --\nhook\n-- assets/b.s --\nuse a.s\n-- assets/c.txt --\nc\n")
	var remove sync.Once
	remove.Do(func() {})
	p.procs = testProcessors(&hooks{call: func(_ context.Context, _ string, job processor.Job) error {
		remove.Do(func() {
			for os.RemoveAll(p.path(".kiln")) != nil { // others write into it meanwhile
			}
		})
		return job.Write(processor.Output{Name: "hook", Type: "text"}, []byte("made"))
	}})
	for n, first := range []bool{true, false, false} {
		if first {
			p.remove(".kiln")
		} else {
			p.build()
		}
		p.write("assets/a.s", fmt.Sprintf("hook\ntext %d", n))
		remove = sync.Once{}
		r, err := p.try(context.Background(), Request{Force: n == 2})
		if err == nil || !strings.Contains(err.Error(), "K0260") || r.messages != "" {
			t.Errorf("%v: %+v", err, r)
		}
		remove.Do(func() { t.Error("nobody removed anything") })
		p.build()
		p.nothing()
	}
}
