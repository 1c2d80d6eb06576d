package sharing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/reapi"
)

// Checked is one cache, and the result of trying it.
type Checked struct {
	Name   string   `json:"name"`
	Writes bool     `json:"writes"`
	OK     bool     `json:"ok"`
	Says   []string `json:"says"` // its description
	Wrong  string   `json:"wrong,omitempty"`
}

// Check tries each cache: it opens it, asks it, and, if it is writable, stores a small blob and fetches it again.
func (p *Place) Check(ctx context.Context) []Checked {
	c, err := p.Open()
	if err != nil {
		c = &Caches{failed: err.(interface{ Unwrap() []error }).Unwrap()} // which Open has joined
	}
	defer c.Close()
	var list []Checked
	for _, err := range c.failed {
		if u := (*unopened)(nil); errors.As(err, &u) {
			list = append(list, Checked{Name: u.name, Wrong: u.err.Error()})
		}
	}
	if c.Folder != nil {
		x := Checked{Name: "the cache folder " + p.Folder, Writes: !p.ReadOnly}
		usage, err := p.Usage(c.Folder)
		if err == nil {
			x.Says = append(x.Says, fmt.Sprintf("%d entries and %d blobs, %s of %s",
				usage.Entries, usage.Blobs, diag.Size(usage.Bytes), diag.Size(c.Folder.Limit())))
		}
		list = append(list, x.trusts(p).try(ctx, share.NewPatient(c.Folder, p.Call), err))
	}
	if c.Remote != nil {
		x := Checked{Name: "the cache server " + p.Remote, Writes: p.WriteRemote}
		offer, err := c.Remote.Offered(ctx)
		if err == nil {
			x.Says = append(x.Says, fmt.Sprintf("protocol %s, SHA-256, zstd: %s, messages of up to %s",
				offer.Version, yesNo(offer.Zstd), diag.Size(offer.Batch)))
			var took time.Duration
			if took, err = c.Remote.Now(ctx); err == nil {
				x.Says = append(x.Says, fmt.Sprintf("an answer takes %.1f ms", took.Seconds()*1000),
					"credentials: "+cmp.Or(p.Credentials.Shown(), "none"))
			}
			if err == nil && p.WriteRemote && !offer.Updates {
				err = fmt.Errorf("it takes no entries: it is for reading only, or wants credentials that may write")
			}
		}
		list = append(list, x.trusts(p).try(ctx, c.Remote, err))
	}
	return list
}

// trusts adds whose results count.
func (x Checked) trusts(p *Place) Checked {
	if p.Signed {
		x.Says = append(x.Says, p.Trust())
	}
	return x
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// try stores a blob and fetches it again.
func (x Checked) try(ctx context.Context, c share.Cache, err error) Checked {
	data := []byte("kiln cache check\n")
	blob := share.Blob{Hash: digest.Of(data), SHA256: sha256.Sum256(data), Size: int64(len(data))}
	if err == nil && x.Writes {
		if err = c.Store(ctx, blob, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }); err == nil {
			err = c.Fetch(ctx, blob, io.Discard)
		}
		if err == nil {
			x.Says = append(x.Says, "a blob was stored and fetched")
		}
	} else if err == nil {
		x.Says = append(x.Says, "it is read, and not written to")
	}
	if x.OK = err == nil; err != nil {
		x.Wrong = reapi.Reason(err)
	}
	return x
}

// Explained is why a cache has the result of a task, or does not have it.
type Explained struct {
	Task         *job.Task
	Hint, Result string // keys; Result is "" if the observations of the task are not known here
	Lists        int    // of observations, by other builds
	There        bool   // the result can be fetched
	Unsigned     bool   // it is there, but only signed ones count

	Differs *engine.Observation // the first observation with another value, of the list that agrees longest; Value is the local one
	Same    int                 // number of observations before that
	Unknown bool                // it is not known whether it differs, because it is of another task whose result is not known here
	needs   []string            // such tasks, in the order in which other builds needed them
}

// Explain compares what a task sees here with what runs in other builds saw. If that depends on parts of its job that have no result
// here, the list goes on with the first of these that is not in the caches either, which is why the task is not. traces returns
// those of a key, the last used first.
func (s *Sharing) Explain(ctx context.Context, t *job.Task, traces func(engine.Key) []*engine.Trace) ([]*Explained, error) {
	done := map[*job.Task]bool{}
	var list []*Explained
	var explain func(t *job.Task) error
	explain = func(t *job.Task) error {
		done[t] = true
		x, err := s.explain(ctx, &t.Task, current(t, traces))
		if err != nil || x.There && len(list) > 0 {
			return err
		}
		x.Task, list = t, append(list, x)
		for before := len(list); x.Unknown && len(list) == before && len(x.needs) > 0; x.needs = x.needs[1:] {
			on := task.ParseSubject(x.needs[0])
			if on.Part == "" || !t.OfSameJob(on) {
				continue
			}
			if part := s.w.Task(t.Asset, t.On, on.Part); part != nil && !done[part] {
				if err := explain(part); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := explain(t)
	return list, err
}

// current returns the trace of a task that describes what is there now, even if its products were lost; nil if there is none.
func current(t *job.Task, traces func(engine.Key) []*engine.Trace) *engine.Trace {
	r := t.Result
	switch {
	case r == nil || len(r.Ignored) > 0:
		return nil
	case r.Trace == nil && r.Why.Cause == engine.ProductLost:
		if all := traces(t.Key); len(all) > 0 {
			return all[0]
		}
	}
	return r.Trace
}

// explain compares what a task sees here, by its trace, which may be nil, with what runs in other builds saw.
func (s *Sharing) explain(ctx context.Context, t *engine.Task, tr *engine.Trace) (*Explained, error) {
	x := &Explained{Hint: hintKey(t).String()}
	seen := map[string]digest.Hash{}
	if tr != nil {
		for _, o := range tr.Observations {
			seen[lookName(&o)] = o.Value
		}
	}
	c := s.opened()
	if c == nil {
		return nil, s.failed
	}
	look := func(all []engine.Observation) {
		plain := resultKey(t, all)
		x.Result, x.There = s.place.ownKey(plain).String(), false
		for _, key := range s.place.keysOf(plain) {
			if s.holds(ctx, c, t, key, s.place.verify) {
				x.Result, x.There = key.String(), true
				return
			}
		}
		x.Unsigned = s.place.Signed && s.holds(ctx, c, t, plain, nil)
	}
	if tr != nil {
		look(tr.Observations)
	}
	best := -1
	for _, h := range s.hints(ctx, t) {
		x.Lists++
		for i := range h.Observations {
			o := &h.Observations[i]
			if _, known := seen[lookName(o)]; !known && o.Kind < engine.FirstLeaf && !slices.Contains(x.needs, o.Subject) {
				x.needs = append(x.needs, o.Subject)
			}
		}
		for _, values := range h.Seen {
			all, whole := slices.Clone(h.Observations), true
			for i := range h.Observations {
				o := h.Observations[i]
				now, known := seen[lookName(&o)]
				if !known && o.Kind >= engine.FirstLeaf {
					var err error
					now, err = s.w.Observe(o.Kind, o.Subject)
					known = err == nil
				}
				if all[i].Value = now; known && share.Short(now) == values[i] {
					continue
				}
				whole = false
				if i > best {
					best, o.Value = i, now
					x.Differs, x.Same, x.Unknown = &o, i, !known
				}
				break
			}
			if whole && tr == nil {
				look(all)
			}
		}
	}
	if x.There {
		x.Differs = nil
	}
	return x, errorsOf(c)
}

// holds reports whether the caches have a task's result under a key.
func (s *Sharing) holds(ctx context.Context, c *Caches, t *engine.Task, key share.Key, verify func(signed, signature []byte) bool) bool {
	value, err := c.results.Get(ctx, key)
	if err == nil {
		_, _, err = share.DecodeResult(key, t.Fingerprint, value, verify)
	}
	return err == nil
}

func errorsOf(c *Caches) error {
	if list := c.Troubles(); len(list) > 0 {
		return list[0]
	}
	return nil
}

func lookName(o *engine.Observation) string {
	return fmt.Sprintf("%d %d %s", o.Kind, o.SubID, o.Subject)
}
