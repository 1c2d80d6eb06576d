package farm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// Dispatcher sends jobs of one build to a farm.
type Dispatcher struct {
	f *Farm
	w *job.World

	mu      sync.Mutex
	trouble error                  // the first problem
	of      map[string]*processed  // by processor
	carried map[string]*attachment // by processor
}

// processed is what this build knows about a processor.
type processed struct {
	local   int // how many jobs in a row had to run here
	runs    int // local runs
	seconds float64
}

// attachment is what is sent along with jobs of a processor.
type attachment struct {
	own        *written.Own
	files      map[string]reapi.Input
	properties map[string]string
	project    *written.Folders
	ok         bool
}

var (
	_ engine.Away = (*Dispatcher)(nil)
	_ job.Away    = (*Dispatcher)(nil)
)

// Work makes the farm run jobs of a world too. It returns nil for a nil farm.
func (f *Farm) Work(w *job.World) *Dispatcher {
	if f == nil {
		return nil
	}
	c := &Dispatcher{f: f, w: w, of: map[string]*processed{}, carried: map[string]*attachment{}}
	w.Away = c
	return c
}

// Engine returns the dispatcher for the engine, or nil.
func (c *Dispatcher) Engine() engine.Away {
	if c == nil {
		return nil
	}
	return c
}

// Slots is how many jobs may run there at once.
func (c *Dispatcher) Slots() int { return c.f.place.Jobs }

// Only reports whether jobs that may run there never run here.
func (c *Dispatcher) Only() bool { return c.f.place.Only }

// May reports whether a job may run on a worker: it took a while.
func (c *Dispatcher) May(et *engine.Task, last *engine.Trace) bool {
	t := et.World.(*job.Task)
	if t.On.Settings == nil && t.Proc.Info.Settings != nil || last != nil && last.Seconds < quick && !c.f.place.Only {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	carried := c.carry(t.Proc.Info.Name)
	return carried.ok && (last != nil || !carried.traced()) // what a program reads shows its first run here
}

// command is the program that the processor is; nil for another processor.
func (b *attachment) command() *written.Program {
	if b.own == nil {
		return nil
	}
	return b.own.Program
}

// traced reports whether the processor is a program that is traced.
func (b *attachment) traced() bool { return b.command() != nil && b.command().Traced }

// carry returns what is sent along with jobs of a processor. c.mu is held.
func (c *Dispatcher) carry(name string) *attachment {
	if b := c.carried[name]; b != nil {
		return b
	}
	b := &attachment{properties: maps.Clone(c.f.place.Properties), files: map[string]reapi.Input{}}
	if carried := c.f.carried(name); carried != nil {
		b.own, b.ok, b.project = carried.Own, true, carried.Project
		for path, data := range carried.Files {
			b.files[written.Code+"/"+path] = inputOf(data)
		}
		maps.Copy(b.properties, carried.Properties)
	}
	c.carried[name] = b
	return b
}

// Takes decides where the next job runs: on a worker if it ends there before it would start here.
func (c *Dispatcher) Takes(et *engine.Task, last *engine.Trace, wait float64) (there, decided bool) {
	t := et.World.(*job.Task)
	c.mu.Lock()
	p := c.processed(t)
	c.mu.Unlock()
	switch {
	case c.f.place.Only && c.f.alone():
		return false, true
	case c.f.place.Only:
		return true, true
	case p.local >= localInRow, last == nil && p.runs >= 3 && p.seconds/float64(p.runs) < quick:
		return false, true
	case c.f.alone():
		return false, false
	}
	there = c.f.overhead(c.size(t)) <= wait
	return there, there
}

// size is how large the source file of a job is.
func (c *Dispatcher) size(t *job.Task) int64 {
	if i, _, ok := c.w.Table.Find(t.Asset.Path); ok {
		return c.w.Table.At(i).Stat.Size
	}
	return 0
}

// processed returns what is known about a task's processor. c.mu is held.
func (c *Dispatcher) processed(t *job.Task) *processed {
	p := c.of[t.Proc.Info.Name]
	if p == nil {
		p = &processed{}
		c.of[t.Proc.Info.Name] = p
	}
	return p
}

// Ended notes how long jobs take here.
func (c *Dispatcher) Ended(r *engine.Result) {
	if r.State != engine.Ran || r.Remote != nil || r.Trace == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processed(r.Task.World.(*job.Task))
	p.runs++
	p.seconds += r.Trace.Seconds
}

// Process has a worker run the processor of a job.
func (c *Dispatcher) Process(ctx context.Context, j *job.Job, t *job.Task) error {
	began := time.Now()
	x, err := c.begin(ctx, j, t)
	if err != nil {
		return c.back(j, t, err)
	}
	for range maxRounds {
		x.moved(func(at *engine.Remote) { at.Stage, at.Rounds = "sending", at.Rounds+1 })
		ran, log, err := x.round(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case reapi.IsNoWorker(err) && !maps.Equal(x.properties, c.f.place.Properties):
			return c.back(j, t, c.noWorkers(t, err))
		case err != nil:
			return c.back(j, t, c.f.failed(err))
		}
		c.f.worked(max(0, time.Since(began)-x.waited-ran.Took))
		x.moved(func(at *engine.Remote) {
			at.Worker, at.Queued, at.Ran, at.Cached = cmp.Or(ran.Worker, x.f.place.Remote), ran.Queued, ran.Took, ran.Cached
			at.Sent += ran.Sent
			at.Fetched += int64(len(ran.Output))
		})
		again, err := x.replay(ctx, log)
		if err == nil && !again {
			x.moved(func(at *engine.Remote) { at.Stage = "" })
			j.RanAway(x.at)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.processed(t).local = 0
			return nil
		}
		if err != nil {
			return c.back(j, t, err)
		}
	}
	return c.back(j, t, errLocal)
}

// noWorkers notes that no worker has what jobs of a processor need. Those of others may have some.
func (c *Dispatcher) noWorkers(t *job.Task, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processed(t).local = localInRow
	return fmt.Errorf("processor %q: %w", t.Proc.Info.Name, err)
}

// errLocal says that a job has to run here, which is no trouble.
var errLocal = errors.New("the job has to run here")

// back records why a job has to run here.
func (c *Dispatcher) back(j *job.Job, t *job.Task, err error) error {
	rival := j.Rival()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case rival: // it runs here anyway; as a rival it may lack what it needs
	case errors.Is(err, errLocal):
		c.processed(t).local++
	case !errors.Is(err, errAlone) && c.trouble == nil:
		c.trouble = err
	}
	return engine.ErrHere
}

// End closes the connection, and returns warnings. c may be nil.
func (c *Dispatcher) End() (warnings diag.List) {
	if c == nil {
		return nil
	}
	c.f.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble == nil {
		return warnings
	}
	var m *diag.Message
	if !errors.As(c.trouble, &m) {
		m = diag.Warningf(diag.FarmFails, diag.Pos{}, "the farm %s: %s", c.f.place.Remote, reapi.Reason(c.trouble)).
			WithHint("jobs run here in its place; `kiln doctor` tries it, KILN_EXECUTION=off leaves it alone")
	}
	c.trouble = nil
	return append(warnings, m)
}

// deadline is how long a job may take on a worker.
func (c *Dispatcher) deadline(last *engine.Trace) time.Duration {
	d := c.f.place.Timeout
	if last != nil {
		d += time.Duration(10 * last.Seconds * float64(time.Second))
	}
	return d
}

// patience is how long a job may be on a worker before it starts here as well, if a core has nothing else to do: twice what is expected.
func (c *Dispatcher) patience(t *job.Task, last *engine.Trace) time.Duration {
	seconds := c.f.overhead(c.size(t))
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.processed(t); last != nil {
		seconds += last.Seconds
	} else if p.runs > 0 {
		seconds += p.seconds / float64(p.runs)
	}
	least := leastPatience
	if c.f.place.Only {
		least = c.f.place.Timeout / 4
	}
	return max(least, time.Duration(2*seconds*float64(time.Second)))
}

// fetch writes a content that a worker made to a writer.
func (x *exchange) fetch(ctx context.Context, content written.Content, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, x.deadline)
	defer cancel()
	err := x.client.Fetch(ctx, share.Blob{SHA256: content.SHA256, Size: content.Size}, to)
	if err != nil {
		return fmt.Errorf("what a worker made cannot be fetched: %w", err)
	}
	x.at.Fetched += content.Size
	return nil
}
