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

// Asset identifies an asset on a platform, by its id, path or UUID.
type Asset struct{ Platform, Name string }

// Control influences the build of one request while it runs. The zero value is ready to use.
type Control struct {
	Prepared func()  // see engine.Control: Prioritise knows the jobs from this call on. May be called again for the same request
	Sooner   []Asset // assets whose jobs go before others, in this order, but after those that Prioritise names

	engine engine.Control
	mu     sync.Mutex
	s      *results.Set // nil: jobs do not run yet, or no longer
}

// Reach connects the control to a set of results; nil disconnects it, when jobs no longer run. It returns the engine's
// control, or nil for a nil control.
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

// sooner returns the subjects of the jobs that go before others. c.mu is held.
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

// Invalidate makes those running jobs run again that have read one of these files (absolute paths). It
// returns their number. Other effects of the change are left to the next build.
func (c *Control) Invalidate(paths []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s == nil {
		return 0
	}
	files := SourcePaths(c.s.W.Table, paths)
	return c.engine.Invalidate(func(kind engine.Kind, subject string) bool { return kind == job.SawFile && files[subject] })
}

// Halt stops starting jobs. Running jobs continue to their end, and finished results are kept.
func (c *Control) Halt() { c.engine.Halt() }

// Halted reports whether the build starts no further jobs.
func (c *Control) Halted() bool { return c.engine.Halted() }

// Left is how many seconds the queued jobs take one after the other, as far as their durations are known.
func (c *Control) Left() float64 { return c.engine.Left() }

// Prioritise moves an asset's jobs on a platform before all others. It returns their number, as far as it is
// known, and the outcomes of those that are done.
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
			c.Ended(s, r, func(o report.Outcome) { done = append(done, o) })
		}
	}
	return done, jobs
}

// Ended calls done with the outcome of a job that has ended, after those of its parts. A part may hold and not run, or have its
// result from another platform, and is not reported otherwise. c may be nil.
func (c *Control) Ended(s *results.Set, r *engine.Result, done func(report.Outcome)) {
	if t := job.TaskOf(r); c != nil && t.Part == "" {
		seen := map[string]bool{}
		var parts func(of *engine.Result)
		parts = func(of *engine.Result) {
			for i := range of.Trace.Observations {
				o := &of.Trace.Observations[i]
				if o.Kind != engine.Outline || seen[o.Subject] || !t.OfSameJob(task.ParseSubject(o.Subject)) {
					continue
				}
				seen[o.Subject] = true
				if p, _ := c.engine.Prioritise(o.Subject); p != nil && p.Trace != nil {
					parts(p)
					done(report.OutcomeOfRun(s, p))
				}
			}
		}
		parts(r)
	}
	done(report.OutcomeOfRun(s, r))
}

// Find returns the id of the asset that a name means (id, path or UUID). It returns "" if there is none, or if no jobs
// run.
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

// SourcePaths converts absolute paths to source paths. Paths that are not below a root are omitted.
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
