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

// drainTime is how long the output is still read once the program and its group are gone. Only a
// process that left the group can hold a pipe open then, and nobody waits for that one.
const drainTime = time.Second

// errTimeout is the cause of a context that the timeout ended.
var errTimeout = errors.New("timeout")

// ended is what became of a program.
type ended struct {
	// err is *exec.ExitError, the context's cause, *startError, or an error of the watch.
	err error

	peak int64         // the most memory that it had, in bytes, as far as the system can tell: see group.peak
	seen []seal.Access // what it looked at, if it was traced

	alone bool // nothing of the program's group was left behind
}

// run runs a program in a box to its end and collects its output. When the context ends, the program and all that it
// started are killed; the same happens to what it leaves behind.
//
// The goroutine in the box does nothing but wait: each time that one which is locked to a thread waits for another goroutine, two threads
// have to be woken.
func run(ctx context.Context, cmd *exec.Cmd, out *capture, box seal.Box) ended {
	p, err := openPipes(cmd)
	if err != nil {
		return ended{err: &startError{err}}
	}
	var e ended
	done := make(chan struct{})
	go func() { // the box is around a thread, and that ends with this goroutine
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

// inBox runs a program on this thread, and says when it has what it was given. The kernel ends the program when the thread that started it
// ends (see dieWithParent), so the goroutine is locked to it.
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
	e.alone = g.kill() // what it left behind
	if stopped {
		e.err = context.Cause(ctx)
	}
	return e
}

// nothing is what programs read from standard input; os/exec would open it anew for each.
var nothing = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })

// oneMore gives Go a processor more than there are. A thread that starts a program keeps its processor until the kernel has loaded that,
// 0.3 ms in which the program has the core: who else could prepare or store had none. 2,000 `cp`s on two cores took 2.7 s, and 2.3 with it.
var oneMore = sync.OnceFunc(func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) })

// startError says that a program did not run at all.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// pipes carry a program's output. os/exec has pipes of its own, but its Wait waits for their
// end before the group can be killed that holds them open.
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

// given says that the program has its ends.
func (p *pipes) given() {
	for _, f := range p.write {
		f.Close()
	}
}

// end says that the program has ended: what it wrote is still read, but not for ever.
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

// copyOutput is io.Copy with a buffer of 4 KB: most programs write nothing, and one of 32 KB would be three quarters of what a job takes of
// the heap.
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

// environment is all that a program gets: nothing of the machine's, the user's or the
// day's but the declared variables. These come last, so that they win.
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

// exitText says how a program ended: "failed with exit code 1", "was ended by signal: killed".
func exitText(err *exec.ExitError) string {
	if signalled(err) {
		return "was ended by " + strings.TrimSpace(err.ProcessState.String())
	}
	return fmt.Sprintf("failed with exit code %d", err.ExitCode())
}
