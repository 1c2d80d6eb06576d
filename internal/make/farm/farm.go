// Package farm runs jobs on the workers of a server that speaks the Remote Execution API.
//
// A job is encoded with answers to the questions that its processor will probably ask (package written), and a worker
// runs it with a copy of this kiln (package worker). The questions of the processor are then asked here again, in the
// same order, of the job.Job of a local run. If the worker had a different answer, or none, the job is sent again with
// the right one. So recorded observations and results equal those of a local run, and nothing that a worker says is
// trusted, except the bytes of products.
//
// A farm is never required. What it cannot do, or not in time, is done here: engine.ErrHere.
package farm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// Limits.
const (
	DefaultJobs    = 32              // at once
	DefaultTimeout = 2 * time.Minute // timeout of a job, in addition to ten times its last duration
	leastPatience  = 3 * time.Second // a job that is on a worker for less does not start here as well
	queueTimes     = 5               // a job waits this many timeouts for a worker
	maxRounds      = 8               // of one job
	failuresInRow  = 3               // after this many, the farm is not used for a while
	leftAlone      = time.Minute     // how long
	localInRow     = 3               // after this many jobs of a processor that had to run here, none of its jobs is sent
	quick          = 0.05            // seconds: jobs that took less are not sent
)

// Place is where jobs run besides this machine.
type Place struct {
	Remote      string // address of a server
	Credentials reapi.Credentials
	Jobs        int               // at once
	Timeout     time.Duration     // timeout of a job, in addition to ten times its last duration
	Properties  map[string]string // required of a worker
	Kiln        string            // path of the program that workers run; "": that of this process
	Only        bool              // jobs that can run there do, even quick ones
	Origin      string            // the setting that named the server, for display
}

// Carried is what a worker needs of a processor.
type Carried struct {
	Own        *written.Own      // of one of the project; nil: the kiln has it in it
	Files      map[string][]byte // by path below written.Code
	Properties map[string]string // that the worker has to have besides those of the farm
	Project    *written.Folders  // where traced programs find the project; nil: none can run elsewhere
}

// Farm is an opened Place, used by all builds of a project.
type Farm struct {
	place   *Place
	version string                          // of this kiln
	kiln    digest.Hash                     // see written.Job
	carried func(processor string) *Carried // nil: its jobs cannot run elsewhere

	opening sync.Mutex
	client  *reapi.Client // nil: not opened
	program reapi.Input   // set when it is opened

	mu       sync.Mutex // guards all fields below
	failures int        // number in a row
	until    time.Time
	sums     map[digest.Hash]share.Blob // of contents that were requested
	extra    float64                    // seconds that a job takes longer there than here, as last measured
}

// New makes ready a farm. Nothing is opened yet.
func New(place *Place, version string, kiln digest.Hash, carried func(processor string) *Carried) *Farm {
	return &Farm{place: place, version: version, kiln: kiln, carried: carried, sums: map[digest.Hash]share.Blob{}, extra: 2 * quick}
}

// Place returns where the farm is.
func (f *Farm) Place() *Place { return f.place }

// tryTimeout is how long a worker may take for an almost empty job.
const tryTimeout = time.Minute

// Check asks the server whether it executes actions, and has a worker start the kiln that it would run jobs with. It returns what the farm
// is like. The error is for display, or a message; reached reports whether it is the worker's.
func (f *Farm) Check(ctx context.Context) (says []string, reached bool, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	client, program, err := f.opened(ctx)
	if reached = err == nil; reached {
		x := &exchange{
			f: f, client: client, deadline: tryTimeout, properties: f.place.Properties,
			inputs: map[string]reapi.Input{f.place.program(): program},
		}
		x.job.Version, x.job.Kiln = f.version, f.kiln
		_, _, err = x.round(ctx) // there is no processor without a name, so the worker reports that
	}
	if err != nil {
		if m := (*diag.Message)(nil); errors.As(err, &m) {
			return nil, reached, m
		}
		return nil, reached, errors.New(reapi.Reason(err))
	}
	return []string{
		fmt.Sprintf("a worker started this kiln, after %.1f s", time.Since(began).Seconds()), fmt.Sprintf("up to %d jobs at once", f.place.Jobs),
		"credentials: " + cmp.Or(f.place.Credentials.Shown(), "none"),
	}, true, nil
}

// opened connects, once. It tries again after a failure.
func (f *Farm) opened(ctx context.Context) (*reapi.Client, reapi.Input, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.client != nil {
		return f.client, f.program, nil
	}
	if f.alone() {
		return nil, reapi.Input{}, errAlone
	}
	program, err := programOf(f.place.Kiln)
	if err != nil {
		return nil, reapi.Input{}, f.failed(err)
	}
	client, err := reapi.Dial(f.place.Remote, f.place.Credentials)
	if err == nil {
		if err = client.Executes(ctx); err != nil {
			client.Close()
		}
	}
	if err != nil {
		f.giveUp()
		return nil, program, err
	}
	f.client, f.program = client, program
	return client, program, nil
}

// Close closes the connection. The farm can be used again.
func (f *Farm) Close() error {
	f.opening.Lock()
	defer f.opening.Unlock()
	client := f.client
	if f.client = nil; client == nil {
		return nil
	}
	return client.Close()
}

var errAlone = errors.New("the server failed several times in a row, and is left alone for a minute")

// alone reports whether the farm is not used for a while.
func (f *Farm) alone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures >= failuresInRow && time.Now().Before(f.until)
}

// failed counts a failure of the server.
func (f *Farm) failed(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures++; f.failures >= failuresInRow {
		f.until = time.Now().Add(leftAlone)
	}
	return err
}

// giveUp stops using the farm for a while.
func (f *Farm) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures, f.until = failuresInRow, time.Now().Add(leftAlone)
}

// worked resets the count of failures, and records how much longer a job took than its processor.
func (f *Farm) worked(extra time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = 0
	f.extra = f.extra*7/8 + extra.Seconds()/8
}

// perSecond is how many bytes of a source file are expected to reach a worker per second.
const perSecond = 50 << 20

// overhead is how many seconds longer a job with a source of this size takes there than here.
func (f *Farm) overhead(size int64) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.extra + float64(size)/perSecond
}

// sum returns the SHA-256 of a content with a known hash.
func (f *Farm) sum(h digest.Hash, open func() (io.ReadCloser, error)) (share.Blob, error) {
	f.mu.Lock()
	b, ok := f.sums[h]
	f.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := hashAll(open)
	if err != nil {
		return b, err
	}
	if b.Hash != h {
		return b, fmt.Errorf("the content changed: %w", share.ErrDamaged)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums[h] = b
	return b, nil
}

// hashAll reads a content and computes both hashes.
func hashAll(open func() (io.ReadCloser, error)) (b share.Blob, err error) {
	r, err := open()
	if err != nil {
		return b, err
	}
	defer r.Close()
	both, sum := digest.New(), sha256.New()
	b.Size, err = io.CopyBuffer(io.MultiWriter(both, sum), struct{ io.Reader }{r}, make([]byte, 256<<10))
	b.Hash, b.SHA256 = both.Sum(), [sha256.Size]byte(sum.Sum(nil))
	return b, err
}

var (
	programsMu sync.Mutex
	programs   = map[string]reapi.Input{} // by path: the program of this process does not change
)

// programOf is the program that workers run.
func programOf(path string) (reapi.Input, error) {
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return reapi.Input{}, fmt.Errorf("this kiln cannot find its own program: %w", err)
		}
	}
	programsMu.Lock()
	defer programsMu.Unlock()
	if in, ok := programs[path]; ok {
		return in, nil
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	b, err := hashAll(open)
	if err != nil {
		return reapi.Input{}, fmt.Errorf("the kiln that workers are to run: %w", err)
	}
	programs[path] = reapi.Input{Blob: b, Executable: true, Open: open}
	return programs[path], nil
}
