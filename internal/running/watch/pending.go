package watch

import (
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// pending are the changes that were not taken yet.
type pending struct {
	quiet, most time.Duration

	paths  map[string]change
	lost   bool
	lostAt time.Time // when events were first lost
	last   time.Time // time of the last change, except of files being written
	notes  diag.List
}

// change is what is known about a path.
type change struct {
	first, last time.Time
	open        bool // a program is writing it
	gone        bool
}

// A batch of up to fewPaths completely written files waits a third of the quiet time: for related files, and for the
// steps of a save after the last write. With more than manyPaths, a program is changing the whole tree, for example by
// switching a branch. Its changes should be one batch, which waits four times as long. From mostPaths on, checking
// everything is cheaper.
const (
	fewPaths  = 8
	manyPaths = 200
	mostPaths = 100_000
)

// openFactor times the quiet time is how long a file that is open but not written to is waited for: a program may keep
// it open for good.
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

// due returns the time until there is a batch, if nothing else changes; 0 or less: there is one.
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
		if settled = true; c.gone { // the next step of a save may put another file there
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

// ready returns the batch. It leaves out files that are being written, unless they were waited for long enough.
func (p *pending) ready(now time.Time) Batch { return p.batch(now, false) }

// all returns all changes, settled or not.
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

// taken removes the changes of a batch.
func (p *pending) taken(b *Batch) {
	p.lost, p.lostAt, p.notes = false, time.Time{}, nil
	for _, path := range b.Paths {
		delete(p.paths, path)
	}
}
