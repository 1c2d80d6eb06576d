package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/extend/seal"
)

// drainTime is how long output is still read after the program and its group have ended. Only a
// process that left the group can then keep a pipe open.
const drainTime = time.Second

// errTimeout is the cause of a context that ended by the timeout.
var errTimeout = errors.New("timeout")

// ended is the result of running a program.
type ended struct {
	// err is *exec.ExitError, the context's cause, *startError, or an error of the trace.
	err error

	peak int64         // peak memory, in bytes, if the system reports it: see group.peak
	seen []seal.Access // accesses, if it was traced

	alone bool // no process of the program's group was left
}

// run runs a program in a sandbox to its end and collects its output. When the context ends, the program and all
// processes that it started are killed; so are processes that it leaves behind.
//
// The goroutine in the sandbox only waits: if it communicated with other goroutines, each wait would wake two threads,
// because it is locked to a thread.
func run(ctx context.Context, cmd *exec.Cmd, out *capture, box seal.Box) ended {
	p, err := openPipes(cmd)
	if err != nil {
		return ended{err: &startError{err}}
	}
	var e ended
	done := make(chan struct{})
	go func() { // the sandbox belongs to a thread, which ends with this goroutine
		defer close(done)
		defer p.end()
		runtime.LockOSThread()
		tracer, err := box.Enter()
		if err != nil {
			e.err = &startError{err}
			return
		}
		e = inBox(ctx, cmd, p.given)
		if e.seen, err = tracer.Stop(); err != nil && e.err == nil {
			e.err = moment(err)
		}
	}()
	p.collect(out)
	<-done
	p.close()
	return e
}

// inBox runs a program on this thread, and calls given when the program has its streams. The kernel ends the program
// with the thread that started it (see dieWithParent), so the goroutine is locked to it.
func inBox(ctx context.Context, cmd *exec.Cmd, given func()) (e ended) {
	if cmd.Stdin == nil {
		if cmd.Stdin, e.err = nothing(); e.err != nil {
			return ended{err: &startError{e.err}}
		}
	}
	var g group
	defer g.close()
	g.prepare(cmd)
	oneMore()
	if err := cmd.Start(); err != nil {
		return ended{err: &startError{err}}
	}
	if err := g.started(cmd); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return ended{err: &startError{err}}
	}
	given()
	alive := context.AfterFunc(ctx, func() { g.kill() })
	e.err = cmd.Wait()
	e.peak = g.peak(cmd)
	stopped := !alive()
	e.alone = g.kill() // processes that it left behind
	if stopped {
		e.err = context.Cause(ctx)
	}
	return e
}

// nothing is an empty standard input for programs; os/exec would open it again for each.
var nothing = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })

// oneMore gives Go one processor more than there are. A thread that starts a program keeps its processor until the kernel has loaded the
// program, 0.3 ms in which no other goroutine could use the core. 2,000 `cp`s on two cores took 2.7 s, and 2.3 with it.
var oneMore = sync.OnceFunc(func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) })

// startError means that a program did not start.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// pipes carry a program's output. os/exec has pipes of its own, but its Wait waits for their end
// before the group that keeps them open can be killed.
type pipes struct {
	read, write [2]*os.File // standard output, standard error
	late        *time.Timer
}

func openPipes(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	for i := range p.read {
		var err error
		if p.read[i], p.write[i], err = pipe(); err != nil {
			p.given()
			p.close()
			return nil, err
		}
	}
	cmd.Stdout, cmd.Stderr = p.write[0], p.write[1]
	return p, nil
}

// given is called when the program has its ends.
func (p *pipes) given() {
	for _, f := range p.write {
		f.Close()
	}
}

// end is called when the program has ended: its remaining output is read, for a limited time.
func (p *pipes) end() {
	p.given()
	p.late = time.AfterFunc(drainTime, p.closeRead)
}

// collect reads to the end of both.
func (p *pipes) collect(out *capture) {
	var both sync.WaitGroup
	both.Go(func() { copyOutput(out.errout(), p.read[1]) })
	copyOutput(out.stdout(), p.read[0])
	both.Wait()
}

// copyOutput is io.Copy with a buffer of 4 KB: most programs write nothing, and one of 32 KB would be three quarters of a job's heap.
func copyOutput(to io.Writer, from io.Reader) {
	io.CopyBuffer(to, struct{ io.Reader }{from}, make([]byte, 4<<10))
}

// close is called after end and collect.
func (p *pipes) close() {
	if p.late != nil {
		p.late.Stop()
	}
	p.closeRead()
}

func (p *pipes) closeRead() {
	for _, f := range p.read {
		f.Close()
	}
}

// environment is the whole environment of a program: it does not depend on the machine, the user or
// the day, except for the declared variables, which come last and have precedence.
func environment(tool string, v *view, names []string, lookup func(string) (string, bool)) []string {
	folders := append([]string{filepath.Dir(tool)}, systemPath(lookup)...)
	home, temp := v.path(homeFolder), v.path(tempFolder)
	env := append(systemEnv(lookup),
		"PATH="+strings.Join(folders, string(filepath.ListSeparator)),
		"HOME="+home, "USERPROFILE="+home, "APPDATA="+home, "LOCALAPPDATA="+home,
		"TMPDIR="+temp, "TMP="+temp, "TEMP="+temp,
		"LC_ALL=C", "TZ=UTC", "SOURCE_DATE_EPOCH=0",
	)
	for _, name := range names {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// exitText describes how a program ended: "failed with exit code 1", "was ended by signal: killed".
func exitText(err *exec.ExitError) string {
	if signalled(err) {
		return "was ended by " + strings.TrimSpace(err.ProcessState.String())
	}
	return fmt.Sprintf("failed with exit code %d", err.ExitCode())
}
