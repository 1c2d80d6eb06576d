package control

import (
	"path/filepath"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// Asset names an asset on a platform, by its id, its path or its UUID.
type Asset struct{ Platform, Name string }

// Control reaches into the build of one request while it is under way. The zero value is ready.
type Control struct {
	Prepared func()  // see engine.Control: from then on, Prioritise knows the jobs. May be called again for the same request
	Sooner   []Asset // whose jobs go before others, in this order, though after those that Prioritise names

	engine engine.Control
	mu     sync.Mutex
	s      *results.Set // nil: jobs do not run yet, or no more
}

// Reach sets what it reaches into; nil: jobs do not run any more. It returns the engine's part of the control, nil for a nil control.
func (c *Control) Reach(s *results.Set) *engine.Control {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.s, c.engine.Prepared = s, c.Prepared
		c.engine.Sooner = c.sooner()
		return &c.engine
	}
	return nil
}

// sooner are the subjects of the jobs that go before others. c.mu is held.
func (c *Control) sooner() (subjects []string) {
	if c.s == nil {
		return nil
	}
	for _, a := range c.Sooner {
		if found := find(c.s, a.Name); found != nil {
			for _, r := range found.On(a.Platform) {
				subjects = append(subjects, task.Subject{Platform: a.Platform, Asset: found.ID, Processor: r.Processor}.String())
			}
		}
	}
	return subjects
}

// Invalidate has the running jobs that have read one of these files, absolute paths, run again. It returns
// how many there are. What else the change means is for the next build.
func (c *Control) Invalidate(paths []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s == nil {
		return 0
	}
	files := SourcePaths(c.s.W.Table, paths)
	return c.engine.Invalidate(func(kind engine.Kind, subject string) bool { return kind == job.SawFile && files[subject] })
}

// Halt has no more jobs started; those that run go on to their end. What is finished is kept.
func (c *Control) Halt() { c.engine.Halt() }

// Halted reports whether the build starts no further jobs.
func (c *Control) Halted() bool { return c.engine.Halted() }

// Left is how many seconds the jobs that wait for their turn will take, one after the other, as far as is known.
func (c *Control) Left() float64 { return c.engine.Left() }

// Prioritise has an asset's jobs on a platform done before all others. It returns how many there are, as far
// as it is known yet, and the outcomes of those that are done.
func (c *Control) Prioritise(platform, asset string) (done []report.Outcome, jobs int) {
	c.mu.Lock()
	s := c.s
	c.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	for _, i := range s.P.Processors() {
		r, known := c.engine.Prioritise(task.Subject{Platform: platform, Asset: asset, Processor: i.Name}.String())
		if known {
			jobs++
		}
		if r != nil && r.Trace != nil {
			done = append(done, report.OutcomeOfRun(s, r))
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
	if a := find(s, name); a != nil {
		return a.ID
	}
	return ""
}

func find(s *results.Set, name string) *asset.Asset {
	for _, name := range []string{name, processor.ByUUID(name)} {
		if a := s.W.Find(name); a != nil {
			return a
		}
	}
	return nil
}

// SourcePaths turns absolute paths into source paths; those that are below no root are left out.
func SourcePaths(t *source.Table, paths []string) map[string]bool {
	all := map[string]bool{}
	for _, p := range paths {
		for _, r := range t.Roots {
			if rel, err := filepath.Rel(filepath.FromSlash(r), p); err == nil && filepath.IsLocal(rel) {
				all[filepath.ToSlash(rel)] = true
			}
		}
	}
	return all
}
