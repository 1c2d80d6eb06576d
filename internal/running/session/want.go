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

// Want has an asset, which is named by its id or its UUID, built for a platform, before all else if a build is under way, and waits until
// its products are there. What was saved before is known then. The error says why they are not: fs.ErrNotExist if there is no such asset, a
// *FailedError if its job failed.
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

// more tells whether a build has begun, or there is something to build that was saved before the call, or left by the last build. If there
// is, the build of it counts as begun.
func (s *Session) more(ctx context.Context, begun <-chan struct{}) (due bool) {
	idle, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-begun:
			cancel() // a turn would come only when that build has ended
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

// answer is what a game gets that wants an asset.
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

// FailedError says that the asset that was wanted failed.
type FailedError struct{ Failure Failure }

func (e *FailedError) Error() string {
	if len(e.Failure.Messages) > 0 {
		return e.Failure.Messages[0].Text
	}
	return e.Failure.Asset + " failed"
}

// wants is who waits for which asset in the build under way.
type wants struct {
	mu      sync.Mutex
	over    chan struct{}    // closed when the build ends; nil: none is under way
	next    chan struct{}    // closed when a build begins; nil: one is under way, or nobody waits for it
	control *control.Control // of that build; nil: it does not know its jobs yet
	jobs    map[jobID]job    // that ran in it
	waiting map[jobID][]chan job
	expect  map[jobID]int // how many jobs an asset has that somebody waits for, as far as known
	unknown chan struct{} // has a value if somebody waits for an asset that the build does not know; it may have been saved since
}

// begin says that a build is under way, or is the next thing that the session does.
func (w *wants) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return // that is known
	}
	w.over, w.jobs, w.waiting = make(chan struct{}), map[jobID]job{}, map[jobID][]chan job{}
	w.expect, w.unknown = map[jobID]int{}, make(chan struct{}, 1)
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
}

// missing has a value if somebody waits for an asset that the build under way does not know.
func (w *wants) missing() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknown
}

// reach gives what is to be called once jobs can be asked for in the build that has begun.
func (w *wants) reach(c *control.Control) (prepared func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over := w.over
	return func() {
		w.mu.Lock()
		if w.over != over {
			w.mu.Unlock()
			return // it has ended
		}
		w.control = c
		ids := slices.Collect(maps.Keys(w.waiting))
		w.mu.Unlock()
		for _, id := range ids {
			w.ask(c, id)
		}
	}
}

// ask has the jobs of an asset done first.
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

// building tells whether a build is under way.
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

// prioritise waits for a job of the build under way: it gives a channel on which the job comes when it has run, and one that is closed when the
// build ends. Without a build ok is false, and the second is closed when one begins.
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

// named is the id of the asset that a name means in the build under way, or else the name.
func (w *wants) named(name string) string {
	w.mu.Lock()
	control := w.control
	w.mu.Unlock()
	if control == nil {
		return name
	}
	return cmp.Or(control.Find(name), name)
}

// done takes in what came of a job that ran, and lets those go on who wait for it.
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

// answer lets those go on who wait for an asset all of whose jobs are done.
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
