package build

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// The request of a build, and what it reports.

// Reporter is called for what happens, from several goroutines.
type Reporter = job.Reporter

// Span is something that was under way for a job, beside what jobs do.
type Span = job.Span

// Silent reports nothing.
type Silent = job.Silent

// Request says what to build and how.
type Request struct {
	Patterns  []string // assets; all if empty
	Platforms []string // all if empty
	Workers   int      // 0: as the project says
	Force     bool     // run jobs although nothing changed
	Strict    bool     // run jobs that are held by ignore, too
	Keep      bool     // copies of the folders of commands that fail
	FailFast  bool
	Pull      bool // take results of other builds, and run nothing
	DryRun    bool // report what would be done
	Order     bool // of a dry run: the jobs that would run, each after those that it needs
	Detect    workspace.Detect
	Changed   []string               // with ByList: files and folders, as source.ParseList gives them; else absolute paths, whose jobs go first, and with ByWatch all there are
	Outputs   []string               // with ByWatch: files and folders of the output folder that may not be as they were, absolute
	From      string                 // with ByList: what paths may be relative to besides the project's folder and those that hold it; absolute or ""
	Locked    bool                   // kiln.ids may not change
	Compact   bool                   // leave no waste in parcels
	OnError   results.OnError        // what to ship for assets that fail
	Shuffle   uint64                 // not 0: take the jobs in another order, by this seed
	Outcomes  report.Outcomes        // which to tell
	Control   *control.Control       // lets a watcher reach into the build; may be nil
	Tell      Tell                   // may be nil
	Done      func(report.Outcome)   // called for each job that ran, from several goroutines; may be nil
	Placed    func([]report.Outcome) // called in a build of few tasks once all outputs are in place, before that is recorded; may be nil
	Reporter  Reporter

	again bool // a build just now found products lost
}

// Tell is called for each job that ran, with its messages, as soon as it ends; and, without a job, for
// messages that belong to none, once they are known. It is called from several goroutines. The report of the
// build has all of them again, in order, and those of jobs that did not run.
type Tell func(*report.JobReport, diag.List)
