package build

import (
	"path/filepath"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/processor"
)

// Control reaches into the build of one request while it is under way. The zero value is ready.
type Control struct {
	Prepared func() // see engine.Control: from then on, Prioritise knows the jobs. May be called again for the same request

	engine engine.Control
	mu     sync.Mutex
	s      *session // nil: jobs do not run yet, or no more
}

func (c *Control) reach(s *session) {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.s, c.engine.Prepared = s, c.Prepared
	}
}

// Invalidate has the running jobs that have read one of these files, absolute paths, run again. It tells how many there are. What else the change means is
// for the next build.
func (c *Control) Invalidate(paths []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s == nil {
		return 0
	}
	files := c.s.sourcePaths(paths)
	return c.engine.Invalidate(func(kind engine.Kind, subject string) bool { return kind == job.SawFile && files[subject] })
}

// sourcePaths turns absolute paths into source paths; those that are below no root are left out.
func (s *session) sourcePaths(paths []string) map[string]bool {
	all := map[string]bool{}
	for _, p := range paths {
		for _, r := range s.w.Table.Roots {
			if rel, err := filepath.Rel(filepath.FromSlash(r), p); err == nil && filepath.IsLocal(rel) {
				all[filepath.ToSlash(rel)] = true
			}
		}
	}
	return all
}

// Halt has no more jobs started; those that run go on to their end. What is finished is kept.
func (c *Control) Halt() { c.engine.Halt() }

// Halted tells whether no more jobs are started.
func (c *Control) Halted() bool { return c.engine.Halted() }

// Left is how many seconds the jobs that wait for their turn will take, one after the other, as far as is known.
func (c *Control) Left() float64 { return c.engine.Left() }

// Prioritise has an asset's jobs on a platform done before all others. It tells how many there are, as far as it is known yet, and what came of those that
// are done.
func (c *Control) Prioritise(platform, asset string) (done []Outcome, jobs int) {
	c.mu.Lock()
	s := c.s
	c.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	for _, i := range s.p.Processors() {
		r, known := c.engine.Prioritise(task.Subject{Platform: platform, Asset: asset, Processor: i.Name}.String())
		if known {
			jobs++
		}
		if r != nil && r.Trace != nil {
			done = append(done, s.outcomeOf(r))
		}
	}
	return done, jobs
}

// Find is the id of the asset that a name means, its id, its path or its UUID; "" if there is none, or jobs do not run.
func (c *Control) Find(name string) string {
	c.mu.Lock()
	s := c.s
	c.mu.Unlock()
	if s == nil {
		return ""
	}
	for _, name := range []string{name, processor.ByUUID(name)} {
		if a := s.w.Find(name); a != nil {
			return a.ID
		}
	}
	return ""
}

// outcomeOf is that of a job that was just done, without what its parts made.
func (s *session) outcomeOf(r *engine.Result) Outcome {
	t := r.Task.World.(*job.Task)
	return s.outcome(t, r.Trace, r.Trace.Products)
}

// first tells which tasks go before others: those that saw what changed.
func (s *session) first() func(*engine.Task, *engine.Reason) bool {
	if len(s.req.Changed) == 0 {
		return nil
	}
	changed := s.sourcePaths(s.req.Changed)
	return func(t *engine.Task, why *engine.Reason) bool {
		return why.Cause == engine.InputDiffers && changed[why.Observation.Subject] || changed[t.World.(*job.Task).Asset.Path]
	}
}
