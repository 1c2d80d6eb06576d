package watch

import (
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// pending is what changed and was not taken yet.
type pending struct {
	quiet, most time.Duration

	paths  map[string]change
	lost   bool
	lostAt time.Time // when events were lost first
	last   time.Time // when something changed last that is not being written
	notes  diag.List
}

// change is what is known of a path.
type change struct {
	first, last time.Time
	open        bool // some program is writing it
	gone        bool
}

// A batch of up to fewPaths files that are all written waits a third of the quiet time: for its neighbours, and for what a save dance does
// after the last write. Beyond manyPaths some program is at work on the whole tree, as when a branch is switched: its changes should come
// as one batch, which waits four times as long. With mostPaths it is cheaper to look at everything.
const (
	fewPaths  = 8
	manyPaths = 200
	mostPaths = 100_000
)

// openFactor is how many times the quiet time a file waits that stays open without being written to: a program may keep it open for good.
const openFactor = 4

func (p *pending) any() bool { return p.lost || len(p.paths) > 0 || len(p.notes) > 0 }

func (p *pending) note(m *diag.Message) { p.notes = append(p.notes, m) }

func (p *pending) lose(now time.Time) {
	if !p.lost {
		p.lost, p.lostAt = true, now
		for _, c := range p.paths {
			if c.first.Before(p.lostAt) {
				p.lostAt = c.first
			}
		}
	}
	p.last, p.paths = now, nil
}

func (p *pending) add(e event, now time.Time) {
	if e.kind != opened {
		p.last = now
	}
	if p.lost {
		p.last = now
		return
	}
	if p.paths == nil {
		p.paths = map[string]change{}
	}
	c, known := p.paths[e.path]
	if !known {
		c.first = now
	}
	c.last, c.open, c.gone = now, e.kind == opened, e.kind == removed || e.kind == changed && !e.dir
	p.paths[e.path] = c
	if len(p.paths) > mostPaths {
		p.lose(now)
	}
}

// due is how long it takes until there is a batch, if nothing else changes; 0 or less: there is one.
func (p *pending) due(now time.Time) time.Duration {
	if !p.lost && len(p.paths) == 0 {
		return 0
	}
	most, wait := p.most, p.quiet/3
	switch n := len(p.paths); {
	case n > manyPaths || p.lost:
		wait, most = 4*p.quiet, 4*p.most
	case n > fewPaths:
		wait = p.quiet
	}
	if p.lost {
		return earlier(p.last.Add(wait), p.lostAt.Add(most)).Sub(now)
	}
	settled := false
	end := now.Add(time.Hour)
	for _, c := range p.paths {
		end = earlier(end, c.first.Add(most))
		if c.open {
			end = earlier(end, c.last.Add(openFactor*p.quiet))
			continue
		}
		if settled = true; c.gone { // the next step of a save dance may put another file there
			wait = max(wait, p.quiet)
		}
	}
	if settled {
		end = earlier(end, p.last.Add(wait))
	}
	return end.Sub(now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ready is the batch. Files that are being written are left for later, unless they have been waited for long enough.
func (p *pending) ready(now time.Time) Batch { return p.batch(now, false) }

// all is all there is, settled or not.
func (p *pending) all() Batch { return p.batch(time.Time{}, true) }

func (p *pending) batch(now time.Time, all bool) Batch {
	b := Batch{Lost: p.lost, Notes: p.notes, Seen: p.lostAt}
	for path, c := range p.paths {
		if c.open && !all && now.Before(earlier(c.last.Add(openFactor*p.quiet), c.first.Add(p.most))) {
			continue
		}
		b.Paths = append(b.Paths, path)
		if b.Seen.IsZero() || c.first.Before(b.Seen) {
			b.Seen = c.first
		}
	}
	slices.Sort(b.Paths)
	return b
}

// taken says that a batch was taken.
func (p *pending) taken(b *Batch) {
	p.lost, p.lostAt, p.notes = false, time.Time{}, nil
	for _, path := range b.Paths {
		delete(p.paths, path)
	}
}
