package wasm

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// run is one call into a module: a job, or the start of its first instance. It has everything that a guest holds in the
// host, so nothing of it outlives the run. One goroutine uses it.
type run struct {
	p   *proc
	job processor.Job // nil while the module starts

	ctx    context.Context // contains the run, and ends at the timeout
	cancel context.CancelCauseFunc
	timer  *time.Timer
	left   time.Duration // remaining time when since was set
	since  time.Time     // the timer runs since then

	calling string     // the host function that is running
	memory  api.Memory // the guest's

	objects  map[int32]*object
	last     int32 // handle
	told     map[[2]string]processor.Product
	err      error // the last error, for the function error
	fails    []error
	problems int
	written  int64

	about   []byte // argument of describe
	printed printed
	clock   int64
	random  *rand.ChaCha8
}

var errTimeout = errors.New("the time is over")

func newRun(ctx context.Context, job processor.Job, p *proc, limit time.Duration) *run {
	r := &run{
		p: p, job: job, objects: map[int32]*object{}, told: map[[2]string]processor.Product{},
		clock: clockStart, random: rand.NewChaCha8([32]byte([]byte("kiln's numbers are all the same."))),
		left: limit, since: time.Now(),
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.ctx = context.WithValue(ctx, runKey{}, r)
	r.timer = time.AfterFunc(limit, func() { r.cancel(errTimeout) })
	return r
}

// pause stops the run's timer until resume is called.
func (r *run) pause() (resume func()) {
	r.timer.Stop()
	r.left -= time.Since(r.since)
	return func() {
		r.since = time.Now()
		r.timer.Reset(max(r.left, 0))
	}
}

// end closes what the guest left open. Open products belong to a failed job.
func (r *run) end() {
	r.timer.Stop()
	r.cancel(nil)
	for _, h := range slices.Sorted(maps.Keys(r.objects)) {
		switch o := r.objects[h]; {
		case o.data != nil:
			o.data.Close()
		case o.out != nil:
			o.out.Close()
		}
	}
}

// maxPrinted is how much of a guest's output is kept, in bytes: half from its beginning and half from its end. C's
// libraries print the reason of a failure last, Go's runtime first.
const maxPrinted = 4 << 10

type printed struct {
	head, tail []byte
	cut        bool // something between them is not kept
}

func (p *printed) add(b []byte) {
	n := min(len(b), maxPrinted/2-len(p.head))
	p.head = append(p.head, b[:n]...)
	b = b[n:]
	more := max(0, len(b)-maxPrinted/2)
	p.tail = append(p.tail, b[more:]...)
	before := max(0, len(p.tail)-maxPrinted/2)
	p.tail = p.tail[before:]
	p.cut = p.cut || more+before > 0
}

// text is the printed text for display. Go's runtime prints all goroutines, the one that crashed first: the others are
// left out.
func (p *printed) text() string {
	said := string(p.head)
	if p.cut {
		said += "\n...\n"
	}
	said += string(p.tail)
	const goroutine = "\n\ngoroutine "
	if first := strings.Index(said, goroutine); first >= 0 {
		if second := strings.Index(said[first+1:], goroutine); second >= 0 {
			said = said[:first+1+second]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(said, "?"))
}

// outcome is the error of a job whose module returned a code.
func (r *run) outcome(code int32) error {
	if len(r.fails) > 0 {
		return errors.Join(r.fails...)
	}
	if code != 0 {
		if r.err != nil {
			return r.err
		}
		return r.tell(diag.WasmFailed, "a processor calls fail to say what is wrong", "the module says that the job failed, with code %d and without a reason", code)
	}
	for _, h := range slices.Sorted(maps.Keys(r.objects)) {
		if o := r.objects[h]; o.out != nil {
			return r.tell(diag.WasmAbuse, "close each product once it is written", "the module ended and did not close the product %q", o.name)
		}
	}
	return nil
}

// explain explains why a module did not return.
func (r *run) explain(limit int64, err error, when string) error {
	var a *abuse
	var x *exit
	switch cause := context.Cause(r.ctx); {
	case errors.As(err, &a):
		return r.tell(diag.WasmAbuse, "docs/formats/wasm-abi.md says what each function takes", "the module broke the rules%s: %s", when, a.text)
	case errors.Is(cause, errTimeout):
		p := r.tell(diag.WasmTimeout, "raise `timeout` if it needs that long; is there a loop without an end?", "the module took too long%s and was ended", when)
		p.Err = diag.ErrMoment // another machine, or this one at another time, may be faster
		return p
	case cause != nil:
		return cause
	}
	what := "crashed"
	if errors.As(err, &x) {
		what = "ended itself"
	}
	if r.outOfMemory(limit) {
		return r.tell(diag.WasmMemory, "raise `memory` if it needs more", "the module %s%s, out of memory: it has %d of the %d MiB that it may have", what, when, r.size()>>20, limit>>20)
	}
	if x != nil {
		return r.tell(diag.WasmTrap, "", "the module %s%s with exit code %d", what, when, x.code)
	}
	return r.tell(diag.WasmTrap, "", "the module %s%s: %s", what, when, firstLines(err.Error()))
}

func (r *run) size() int64 {
	if r.memory == nil {
		return 0
	}
	return int64(r.memory.Size())
}

// outOfMemory guesses whether a module ended because it got no more memory. Most then use nearly all of it; Go's
// runtime says it.
func (r *run) outOfMemory(limit int64) bool {
	return r.size() >= limit/8*7 || strings.Contains(r.printed.text(), "out of memory")
}

// tell is a problem of the run, with the module's output.
func (r *run) tell(code diag.Code, hint, format string, args ...any) *processor.Problem {
	p := r.p.problem(code, hint, format, args...)
	if r.job != nil {
		p.Path = "" // the default is the asset's
	}
	if said := r.printed.text(); said != "" {
		p.Text += "\nit printed:\n  " + strings.ReplaceAll(said, "\n", "\n  ")
	}
	return p
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
