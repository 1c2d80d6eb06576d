package session

import (
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// Event is one of Began, Planned, JobStarted, JobSuspended, JobMoved, JobFinished, Drafted, Placed, Ended, Noted.
type Event interface{ event() }

// Began tells that a build begins.
type Began struct {
	Number int       // of the build in this session, from 1
	Paths  []string  // what changed, below the project folder where it is there, sorted, at most mostPaths; none: everything was looked at
	Seen   time.Time // when the first of these changes was seen; zero for a build that nothing changed for
}

// Planned tells how many jobs are known to run in this build; more may come.
type Planned struct{ Jobs int }

// JobStarted tells that a job runs: "sprites/tank.png [pc]".
type JobStarted struct{ Job string }

// JobSuspended tells that a job begins, or ends, to wait for others.
type JobSuspended struct {
	Job    string
	On     []string
	Begins bool
}

// JobMoved tells that a job goes to another machine, or what is known of it there; At is nil when it comes back.
type JobMoved struct {
	Job string
	At  *engine.Remote
}

// JobFinished tells that a job has run. Its products are in place.
type JobFinished struct {
	Job    string
	Failed bool
	Took   time.Duration
}

// Drafted tells of a quick first version of a product, which is good until the build has ended: for those who cannot wait. Its bytes are to
// be had like those of any product.
type Drafted struct{ Product Product }

// Placed tells of all products that a build changed, as soon as they are in place, for those who cannot wait until that is written down,
// too: 30 ms for an atlas of 2,000 images. Ended tells of them again. It is left out where there is more to tell than new contents:
// failures, what is mended, what is gone.
type Placed struct{ Products []Product }

// Ended tells what came of a build.
type Ended struct {
	Began
	Report   *report.Report // nil if Err says that there was no build
	Err      error          // what stopped the build as a whole: kiln.toml is wrong, the disk is full; [diag.Messages] takes it apart
	Products []Product      // that are new, other than they were, or gone; sorted by platform, asset and sub id
	Failed   []Failure      // jobs that failed, and did not before, or in another way
	Mended   []Failure      // jobs that failed before this build, and do not now
	Total    int            // jobs that fail now
}

// Noted tells something that is no matter of one build: changes are looked for in another way than before.
type Noted struct{ Message *diag.Message }

func (Began) event()        {}
func (Planned) event()      {}
func (JobStarted) event()   {}
func (JobSuspended) event() {}
func (JobMoved) event()     {}
func (JobFinished) event()  {}
func (Drafted) event()      {}
func (Placed) event()       {}
func (Ended) event()        {}
func (Noted) event()        {}

// Product is a product of an asset on a platform as it is now. Its bytes are to be had by its Hash with [Session.Blob].
type Product struct {
	Platform string
	Asset    string // id
	UUID     string // of the asset
	engine.Product
	Gone bool // in Ended: it is no more
}

// Failure is a job that fails. With it the last good products stay in place.
type Failure struct {
	Platform string
	Asset    string // id
	UUID     string
	Messages diag.List // why; none if all is said of an asset that it needs
}
