package session

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// Want has an asset (an id or a UUID) built for a platform, before everything else if a build is under way, and waits
// until its products are there. Files saved before the call are included. The error is fs.ErrNotExist if there is no
// such asset, a *FailedError if its job failed.
func (s *Session) Want(ctx context.Context, platform, asset string) ([]Product, error) {
	for {
		s.mu.Lock()
		id := s.content.find(platform, asset)
		s.mu.Unlock()
		id.asset = s.wants.named(id.asset)
		j, over, ok := s.wants.prioritise(id)
		if !ok {
			s.mu.Lock()
			all := slices.Clone(s.content.jobs[id])
			s.mu.Unlock()
			if all != nil || !s.more(ctx, over) {
				return all.answer(id)
			}
			continue
		}
		select {
		case <-over: // the build ended
		case <-s.over:
			return nil, context.Canceled
		case <-ctx.Done():
			return nil, ctx.Err()
		case o := <-j:
			s.mu.Lock()
			all := slices.Clone(s.content.jobs[id])
			s.mu.Unlock()
			for _, o := range o {
				all = all.with(o)
			}
			return all.answer(id)
		}
	}
}

// more reports whether a build has begun, or whether there are changes to build that were saved before the call, or
// left by the last build. If there are, their build counts as begun.
func (s *Session) more(ctx context.Context, begun <-chan struct{}) (due bool) {
	idle, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-begun:
			cancel() // the turn would only start after that build
		case <-idle.Done():
		}
	}()
	s.Turn(idle, func(t *Turn) {
		if due = t.r.builds(); due {
			s.wants.begin()
		}
	})
	select {
	case <-begun:
		due = true
	default:
	}
	return due && ctx.Err() == nil
}

// answer returns what Want returns for the asset.
func (j job) answer(id jobID) ([]Product, error) {
	products := j.sorted(id)
	if f := j.failure(id); f != nil && len(products) == 0 {
		return nil, &FailedError{*f}
	}
	if j == nil {
		return nil, &fs.PathError{Op: "want", Path: id.asset, Err: fs.ErrNotExist}
	}
	return products, nil
}

// FailedError means that the requested asset failed.
type FailedError struct{ Failure Failure }

func (e *FailedError) Error() string {
	if len(e.Failure.Messages) > 0 {
		return e.Failure.Messages[0].Text
	}
	return e.Failure.Asset + " failed"
}

// wants records which assets are waited for in the current build.
type wants struct {
	mu      sync.Mutex
	over    chan struct{}    // closed when the build ends; nil: there is none
	next    chan struct{}    // closed when a build begins; nil: one is under way, or nobody waits
	control *control.Control // of that build; nil: its jobs are not known yet
	jobs    map[jobID]job    // that have run in it
	waiting map[jobID][]chan job
	expect  map[jobID]int // number of jobs of each asset that is waited for, as far as known
	unknown chan struct{} // has a value if somebody waits for an asset that the build does not know: its file may be newer than the build
}

// begin records that a build is under way, or is the next thing that the session does.
func (w *wants) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return // recorded already
	}
	w.over, w.jobs, w.waiting = make(chan struct{}), map[jobID]job{}, map[jobID][]chan job{}
	w.expect, w.unknown = map[jobID]int{}, make(chan struct{}, 1)
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
}

// missing has a value if somebody waits for an asset that the current build does not know.
func (w *wants) missing() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown
}

// reach returns the function to call when the jobs of the current build are known.
func (w *wants) reach(c *control.Control) (prepared func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over := w.over
	return func() {
		w.mu.Lock()
		if w.over != over {
			w.mu.Unlock()
			return // the build has ended
		}
		w.control = c
		ids := slices.Collect(maps.Keys(w.waiting))
		w.mu.Unlock()
		for _, id := range ids {
			w.ask(c, id)
		}
	}
}

// ask moves the jobs of an asset to the front.
func (w *wants) ask(c *control.Control, id jobID) {
	done, jobs := c.Prioritise(id.platform, id.asset)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		return
	}
	w.expect[id] = jobs
	if jobs == 0 {
		select {
		case w.unknown <- struct{}{}:
		default:
		}
	}
	for _, o := range done {
		w.take(id, o)
	}
	w.answer(id)
}

// building reports whether a build is under way.
func (w *wants) building() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over != nil
}

func (w *wants) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		return
	}
	close(w.over)
	w.over, w.control, w.jobs, w.waiting, w.unknown = nil, nil, nil, nil, nil
}

// prioritise waits for a job in the current build. It returns a channel that receives the job when it has run, and one
// that is closed when the build ends. Without a build ok is false, and the second channel is closed when one begins.
func (w *wants) prioritise(id jobID) (done <-chan job, over <-chan struct{}, ok bool) {
	w.mu.Lock()
	if w.over == nil {
		defer w.mu.Unlock()
		if w.next == nil {
			w.next = make(chan struct{})
		}
		return nil, w.next, false
	}
	c := make(chan job, 1)
	control, over := w.control, w.over
	w.waiting[id] = append(w.waiting[id], c)
	w.mu.Unlock()
	if control != nil {
		w.ask(control, id)
	}
	return c, over, true
}

// named returns the id of the asset that a name means in the current build, or the name.
func (w *wants) named(name string) string {
	w.mu.Lock()
	control := w.control
	w.mu.Unlock()
	if control == nil {
		return name
	}
	return cmp.Or(control.Find(name), name)
}

// done records the outcome of a job, and wakes its waiters.
func (w *wants) done(o report.Outcome) {
	id := jobID{o.Platform, o.Asset}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		w.take(id, o)
		w.answer(id)
	}
}

func (w *wants) take(id jobID, o report.Outcome) {
	w.jobs[id] = w.jobs[id].with(o)
}

// answer wakes the waiters of an asset if all its jobs are done.
func (w *wants) answer(id jobID) {
	own := 0
	for _, o := range w.jobs[id] {
		if o.Part == "" {
			own++
		}
	}
	if own == 0 || own < w.expect[id] || w.expect[id] == 0 {
		return
	}
	for _, c := range w.waiting[id] {
		c <- slices.Clone(w.jobs[id])
	}
	delete(w.waiting, id)
}
