package session

import (
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// Event is one of Began, Planned, JobStarted, JobSuspended, JobMoved, JobFinished, Drafted, Placed, Ended, Noted.
type Event interface{ event() }

// Began reports that a build begins.
type Began struct {
	Number int       // of the build in this session, from 1
	Paths  []string  // changed paths, below the project folder if they are there, sorted, at most mostPaths; none: everything is checked
	Seen   time.Time // when the first of these changes was noticed; zero if the build has another reason
}

// Planned reports how many jobs will run in this build; more may be added.
type Planned struct{ Jobs int }

// JobStarted reports that a job runs: "sprites/tank.png [pc]".
type JobStarted struct{ Job string }

// JobSuspended reports that a job begins or stops waiting for others.
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

// Drafted reports a quick first version of a product, valid until the build ends. Its bytes are read like those of any
// product.
type Drafted struct{ Product Product }

// Placed reports all products that a build changed as soon as they are in place, before the state is written, which
// takes 30 ms for an atlas of 2,000 images. Ended reports them again. It is omitted if the build changed more than
// contents: failures, fixed or removed products.
type Placed struct{ Products []Product }

// Ended reports the result of a build.
type Ended struct {
	Began
	Report   *report.Report // nil if Err is the reason why there was no build
	Err      error          // what stopped the build as a whole: kiln.toml is wrong, the disk is full; [diag.Messages] returns its messages
	Products []Product      // new, changed and removed ones; sorted by platform, asset and sub id
	Failed   []Failure      // jobs that failed, and did not fail in this way before
	Mended   []Failure      // jobs that failed before this build and do not now
	Total    int            // number of jobs that fail now
}

// Noted reports something that is not about one build: changes are now found in another way.
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

// Product is a product of an asset on a platform. [Session.Blob] reads its bytes by its Hash.
type Product struct {
	Platform string
	Asset    string // id
	UUID     string // of the asset
	engine.Product
	Gone bool // in Ended: it was removed
}

// Failure is a failed job. Its last good products stay in place.
type Failure struct {
	Platform string
	Asset    string // id
	UUID     string
	Messages diag.List // the reasons; none if the messages are those of an asset that it needs
}
