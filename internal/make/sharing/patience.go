package sharing

import (
	"fmt"
	"sync"
	"time"
)

// A cache that answers slowly must not cost more than it saves. A server that is asked much answers late, too, and is worth it: so one is
// given up for a build only if an answer takes long, and all of them took longer than what they saved, and some time besides.
const (
	patience   = 10 * time.Second
	longAnswer = time.Second // on average
	fewAnswers = 16          // say nothing yet
)

// waiting is how long a build has waited for answers.
type waiting struct {
	mu      sync.Mutex
	now     int           // questions in flight
	since   time.Time     // that there are any
	wall    time.Duration // with questions in flight, before that
	answers int
	each    time.Duration // all answers together
	up      error         // why they were given up; nil: they were not
}

// ask asks a question for a small answer.
func (w *waiting) ask(question func()) {
	start := time.Now()
	w.mu.Lock()
	if w.now++; w.now == 1 {
		w.since = start
	}
	w.mu.Unlock()
	question()
	end := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	w.each += end.Sub(start)
	if w.now--; w.now == 0 {
		w.wall += end.Sub(w.since)
	}
}

// tooLong reports whether answers are not worth waiting for any more, which then stays so.
func (w *waiting) tooLong(saved, most time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.up != nil || w.answers < fewAnswers || w.each < time.Duration(w.answers)*longAnswer {
		return w.up != nil
	}
	wall := w.wall
	if w.now > 0 {
		wall += time.Since(w.since)
	}
	if wall > saved+most {
		w.up = fmt.Errorf("the cache: its answers take %.1f s each, and save less; the rest of this build does without it",
			w.each.Seconds()/float64(w.answers))
	}
	return w.up != nil
}

// trouble says that the caches were given up; nil: they were not.
func (w *waiting) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.up
}
