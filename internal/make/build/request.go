package build

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// The request for a build, and its callbacks.

// Reporter is called with the progress of a build, from several goroutines.
type Reporter = job.Reporter

// Span is something that was under way for a job, beside what jobs do.
type Span = job.Span

// Silent reports nothing.
type Silent = job.Silent

// Request says what to build and how.
type Request struct {
	Patterns  []string // assets; all if empty
	Platforms []string // all if empty
	Workers   int      // 0: as in the project file
	Force     bool     // run jobs although nothing changed
	Strict    bool     // run jobs that are held by ignore, too
	Keep      bool     // copies of the folders of commands that fail
	FailFast  bool
	Pull      bool // take results of other builds, and run nothing
	DryRun    bool // report what would be done
	Order     bool // of a dry run: the jobs that would run, each after those that it needs
	Detect    workspace.Detect
	Changed   []string               // see workspace.Changes; otherwise, absolute paths whose jobs go first
	Outputs   []string               // with ByWatch: files and folders of the output folder that may have changed, absolute
	From      string                 // see workspace.Changes
	Locked    bool                   // fail if kiln.ids would change
	Compact   bool                   // leave no waste in parcels
	OnError   results.OnError        // what to ship for assets that fail
	Shuffle   uint64                 // not 0: run the jobs in another order, by this seed
	Outcomes  report.Outcomes        // which outcomes to report
	Control   *control.Control       // with it a watcher influences the build; may be nil
	Tell      Tell                   // may be nil
	Done      func(report.Outcome)   // called like Tell, for each job that ran; may be nil
	Placed    func([]report.Outcome) // called in a build of few tasks when all outputs are in place, before the state is written; may be nil
	Reporter  Reporter

	done again                // why builds just before this one were not enough
	lost map[digest.Hash]bool // contents that they could not read
}

// Tell is called for each job that ran, with its messages, as soon as it ends, if its result is final for this
// request (see [job.World.Final]); and, without a job, for messages that belong to none, as soon as they are known.
// It is called from several goroutines. The report of the build contains all of them again, in order, with all that are
// final only at its end, and those of jobs that did not run.
type Tell func(*report.JobReport, diag.List)
