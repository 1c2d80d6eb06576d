package job

import (
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

// Silent reports nothing.
type Silent struct{}

func (Silent) Planned(int)                             {}
func (Silent) JobStarted(string)                       {}
func (Silent) JobSuspended(string, []string, bool)     {}
func (Silent) JobMoved(string, *engine.Remote)         {}
func (Silent) JobFinished(string, bool, time.Duration) {}
