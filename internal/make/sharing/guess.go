package sharing

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// Most processors look at the same things for each asset: its own file, and perhaps one beside it. Where many hints in a row were alike,
// the next one is guessed, and the result asked for at once: one question in place of two. Of a result that was found it does not matter
// how what it read was known, for its key has all of that. If nothing is found, the hint is asked for.

// alike is how many hints in a row make the next one worth a guess.
const alike = 16

// guesses is what hints were like.
type guesses struct {
	mu sync.Mutex
	by map[digest.Hash]*pattern // by fingerprint

	found sync.Map // results that were found by a guess, by key, until they are asked for
}

// pattern is what runs of one code observe: in subjects, own stands for the path of the asset.
type pattern struct {
	observations []engine.Observation
	times        int // in a row
}

const own = "\x00own"

// learn notes what a hint was like.
func (g *guesses) learn(t *engine.Task, hints []engine.Hint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[digest.Hash]*pattern{}
	}
	p := g.by[t.Fingerprint]
	if p == nil {
		p = &pattern{}
		g.by[t.Fingerprint] = p
	}
	if len(hints) != 1 || slices.ContainsFunc(hints[0].Observations, func(o engine.Observation) bool { return o.Kind < engine.FirstLeaf }) {
		p.times = 0
		return
	}
	observations := slices.Clone(hints[0].Observations)
	for i := range observations {
		if rest, ok := strings.CutPrefix(observations[i].Subject, pathOf(t)); ok {
			observations[i].Subject = own + rest
		}
	}
	if !slices.Equal(observations, p.observations) {
		p.observations, p.times = observations, 0
	}
	p.times++
}

func pathOf(t *engine.Task) string { return t.World.(*job.Task).Asset.Path }

// guess is what a run of a task would see if it is like the others; nil: that is not known.
func (g *guesses) guess(t *engine.Task, w *job.World) []engine.Observation {
	g.mu.Lock()
	p := g.by[t.Fingerprint]
	if p == nil || p.times < alike {
		g.mu.Unlock()
		return nil
	}
	seen := slices.Clone(p.observations)
	g.mu.Unlock()
	for i := range seen {
		o := &seen[i]
		if rest, ok := strings.CutPrefix(o.Subject, own); ok {
			o.Subject = pathOf(t) + rest
		}
		var err error
		if o.Value, err = w.Observe(o.Kind, o.Subject); err != nil {
			return nil
		}
	}
	return seen
}

// wrong says that nothing was found by a guess.
func (g *guesses) wrong(t *engine.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by[t.Fingerprint].times = 0
}

// guessed is the hint of a task whose result a guess has found.
func (s *Sharing) guessed(ctx context.Context, c *Caches, t *engine.Task) ([]engine.Hint, bool) {
	seen := s.guesses.guess(t, s.w)
	if seen == nil {
		return nil, false
	}
	key := resultKey(t, seen)
	result, err := s.find(ctx, c, t, key, "the result, by a guess")
	if err != nil {
		s.guesses.wrong(t)
		return nil, false
	}
	s.guesses.found.Store(key, result)
	return []engine.Hint{{Observations: seen, Short: share.Short}}, true
}

// resultValue is the value of a result.
func (s *Sharing) resultValue(ctx context.Context, c *Caches, t *engine.Task, key share.Key) (found, error) {
	if value, ok := s.guesses.found.LoadAndDelete(key); ok {
		return value.(found), nil
	}
	return s.find(ctx, c, t, key, "the result")
}

// find asks for a result under each key that it may have, and decodes it.
func (s *Sharing) find(ctx context.Context, c *Caches, t *engine.Task, key share.Key, what string) (found, error) {
	err := fs.ErrNotExist
	for _, k := range s.place.keysOf(key) {
		var entry found
		if entry, err = s.get(ctx, c.results, t, k, what); err != nil {
			continue
		}
		s.downloaded.Add(int64(len(entry.value)))
		if entry.result, entry.run, err = share.DecodeResult(k, t.Fingerprint, entry.value, s.place.verify); err == nil {
			return entry, nil
		}
	}
	return found{}, err
}
