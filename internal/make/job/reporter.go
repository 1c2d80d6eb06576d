package job

import (
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Reporter is called with the progress of a build, from several goroutines.
type Reporter interface {
	// Planned reports how many jobs will run; more may be added later.
	Planned(jobs int)
	JobStarted(job string)
	JobSuspended(job string, on []string, begins bool)
	// JobMoved is called when a job goes to another machine, and whenever more is known of it there; and with nil when it comes back.
	JobMoved(job string, at *engine.Remote)
	// JobFinished is called for jobs, too, that never started: their results come from a cache.
	JobFinished(job string, failed bool, took time.Duration)
}

// Span is something that was under way for a job, beside what jobs do: a question to a cache, say. A Reporter that wants to know also has
// a method Spanned(Span), which is called at the end of each.
type Span struct {
	Lanes string // what is like it, in words; spans at the same time are in lanes side by side
	Name  string // the job that it was for
	Begin time.Time
	Bytes int64  // that were moved
	Note  string // what it was about, and what came of it
}

// Final reports whether the result of a job that has just run is the last one of this build, and may be reported. It is not if the job, or
// one that it needs, saw what the end of a build may change (resource ids, what parcels hold) or could not read what was lost, because
// then another pass may follow, in which it runs again; if it failed in a way that may pass; and if it is a request, or failed because of
// others: what these say, and the cause, is only complete at the end.
func (w *World) Final(r *engine.Result) bool {
	w.mu.Lock()
	lost := len(w.Lost) > 0
	asked := lost || w.AskedIDs.Load() || len(w.AskedHeld) > 0 || w.Finder != nil // a build of few tasks does not know
	w.mu.Unlock()
	passes := lost || r.Trace.ID == 0 || r.Trace.Outcome == engine.NeedsFailed
	if TaskOf(r).Request() || r.Trace.Outcome != engine.Succeeded && passes {
		return false
	}
	return !asked || !slices.ContainsFunc(r.Trace.Observations, func(o engine.Observation) bool {
		return !slices.Contains(ofThePass, o.Kind)
	})
}

// ofThePass are the kinds of observations that are the same in each pass of a build.
var ofThePass = []engine.Kind{SawFile, SawExists, SawGlob, SawAsset, SawTool, SawEnv, SawRoots, SawNamed, SawSettings}

// Silent reports nothing.
type Silent struct{}

func (Silent) Planned(int)                             {}
func (Silent) JobStarted(string)                       {}
func (Silent) JobSuspended(string, []string, bool)     {}
func (Silent) JobMoved(string, *engine.Remote)         {}
func (Silent) JobFinished(string, bool, time.Duration) {}
