// Package sharing looks up results of other builds for the engine, and stores results of runs here for
// other builds. It converts between tasks and traces of the engine and entries and blobs of package share.
//
// A cache is never required: if something is wrong with it, jobs run. What it returns is checked before it
// counts: entries name their keys, blobs are hashed, and a result counts only when all of its outputs are
// on this disk. Products without a file are not fetched until they are opened (see cas.Store.Promise).
package sharing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/share"
)

const (
	lookups = 64 // concurrent questions
	uploads = 32 // concurrent uploads
)

// Sharing is an engine.Elsewhere for one build. Caches are opened with the first question.
type Sharing struct {
	place   *Place
	w       *job.World
	ctx     context.Context // ends with the build
	whole   bool            // promises are not used
	version string          // of this Kiln; results say which one made them

	open   sync.Once
	caches *Caches // nil: none can be used
	failed error   // why not

	pending sync.WaitGroup
	slots   chan struct{}

	downloaded, uploaded, saved atomic.Int64 // bytes; bytes; milliseconds
	adopted                     atomic.Int64
	others                      sync.Map    // versions of Kiln, other than this one, that adopted results are of
	barred                      atomic.Bool // something was not stored because of Place.barred
	waits                       waiting
	guesses                     guesses
}

var _ engine.Elsewhere = (*Sharing)(nil)

// New shares the results of a world's jobs. Promised blobs then come from the caches. With whole, promises do not
// count: a result counts only when all of its blobs are on this disk. This is for a build after a broken promise.
func New(ctx context.Context, place *Place, w *job.World, whole bool, version string) *Sharing {
	s := &Sharing{place: place, w: w, ctx: ctx, whole: whole, version: version, slots: make(chan struct{}, uploads)}
	if w.Blobs.Fetch = s.fetchPromised; whole {
		w.Blobs.Fetch = nil
	}
	return s
}

// opened returns the caches; nil if none can be used.
func (s *Sharing) opened() *Caches {
	s.open.Do(func() { s.caches, s.failed = s.place.Open() })
	return s.caches
}

// machine is part of the keys of what external programs make.
const machine = runtime.GOOS + "/" + runtime.GOARCH

// hintKey is the first key of a task. A task's key has everything that is known before it runs, except the
// code.
func hintKey(t *engine.Task) share.Key {
	b := digest.Build("shared task").Hash("task", digest.Hash(t.Key)).Hash("fingerprint", t.Fingerprint)
	if t.Outside {
		b.Str("machine", machine)
	}
	return share.HintKey(b.Sum())
}

// resultKey is the key of a task's result after these observations.
func resultKey(t *engine.Task, seen []engine.Observation) share.Key {
	on := ""
	if t.Outside || slices.ContainsFunc(seen, func(o engine.Observation) bool { return o.Kind == job.SawTool }) {
		on = machine
	}
	return share.ResultKey(hintKey(t), seen, on)
}

// each calls f for the numbers below n, several at once.
func each(n, most int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, most) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// Sought returns the task that a subject means, as World does.
func (s *Sharing) Sought(subject string) *engine.Task { return s.w.Sought(subject) }

// Possible reports whether a task can run here.
func (s *Sharing) Possible(t *engine.Task) bool { return s.w.Possible(t) }

// Hints asks what runs of tasks observed.
func (s *Sharing) Hints(ctx context.Context, tasks []*engine.Task, answer func(int, []engine.Hint)) {
	each(len(tasks), lookups, func(i int) { answer(i, s.hints(ctx, tasks[i])) })
}

func (s *Sharing) hints(ctx context.Context, t *engine.Task) (list []engine.Hint) {
	c := s.opened()
	if c == nil {
		return nil
	}
	if list, ok := s.guessed(ctx, c, t); ok {
		return list
	}
	var all share.Hint
	key := hintKey(t)
	for _, cache := range c.hints {
		if hint, err := s.get(ctx, cache, t, key, "what runs of it read"); err == nil {
			s.downloaded.Add(int64(len(hint.value)))
			if h, err := share.DecodeHint(key, hint.value); err == nil {
				all.Merge(h)
			}
		}
	}
	for _, l := range all.Lists {
		list = append(list, engine.Hint{Observations: l.Observations, Seen: l.Seen, Short: share.Short})
	}
	s.guesses.learn(t, list)
	return list
}

// Results asks for the results of runs that made these observations, and fetches their files.
func (s *Sharing) Results(ctx context.Context, asked []engine.Asked, answer func(int, *engine.Trace)) {
	each(len(asked), lookups, func(i int) {
		t, err := s.result(ctx, &asked[i])
		if err != nil {
			t = nil
		}
		answer(i, t)
	})
}

// Lanes of what is asked of caches, for display.
const (
	lookingUp   = "cache look-ups"
	downloading = "cache downloads"
	uploading   = "cache uploads"
)

// spanned reports what was under way for a task.
func (s *Sharing) spanned(lanes, name string, begin time.Time, bytes int64, what string, err error) {
	r, ok := s.w.Reporter.(interface{ Spanned(job.Span) })
	switch {
	case !ok:
		return
	case share.IsMiss(err):
		what += ": not there"
	case err != nil:
		what += ": " + err.Error()
	}
	r.Spanned(job.Span{Lanes: lanes, Name: name, Begin: begin, Bytes: bytes, Note: what})
}

// get asks a cache for an entry of a task, unless caches are too slow.
func (s *Sharing) get(ctx context.Context, from share.Cache, t *engine.Task, key share.Key, what string) (entry found, err error) {
	saved := time.Duration(s.saved.Load()) * time.Millisecond
	if s.waits.tooLong(saved, cmp.Or(s.place.Patience, patience)) {
		return found{}, share.ErrLeftAlone
	}
	begin := time.Now()
	ctx, name := noting(ctx)
	s.waits.ask(func() { entry.value, err = from.Get(ctx, key) })
	entry.from = *name
	s.spanned(lookingUp, t.Name, begin, int64(len(entry.value)), fromText(what, entry.from), err)
	return entry, err
}

// fromText is what was asked for, and the cache that had it, if one had.
func fromText(what, from string) string {
	if from == "" {
		return what
	}
	return what + ", from the cache " + from
}

// errForeign says that a result is not one that this task can come to.
var errForeign = errors.New("sharing: the result of another task")

func (s *Sharing) result(ctx context.Context, asked *engine.Asked) (*engine.Trace, error) {
	c := s.opened()
	if c == nil {
		return nil, s.failed
	}
	key := resultKey(asked.Task, asked.Observations)
	entry, err := s.resultValue(ctx, c, asked.Task, key)
	if err != nil {
		return nil, err
	}
	r, run := entry.result, entry.run
	t := &engine.Trace{
		Outcome: r.Outcome, Shareable: r.Shareable && r.Outcome == engine.Succeeded, Messages: r.Messages, Root: r.Root, Cycle: r.Cycle,
		Seconds: run.Seconds, Memory: run.Memory, Origin: entry.from,
	}
	platform := asked.Task.World.(*job.Task).Platform + "/"
	var now, later []share.Blob
	for i := range r.Products {
		p := r.Products[i].Product
		p.Hash, p.Size = r.Products[i].Blob.Hash, r.Products[i].Blob.Size
		t.Products = append(t.Products, p)
		switch {
		case p.File == "":
			later = append(later, r.Products[i].Blob)
		case !strings.HasPrefix(p.File, platform):
			return nil, errForeign
		default:
			now = append(now, r.Products[i].Blob)
		}
	}
	later = append(later, r.Brought...)
	if s.whole {
		now, later = append(now, later...), nil
	}
	if err := s.bring(ctx, c.results, asked.Task, now, later); err != nil {
		return nil, err
	}
	if c.near != nil && len(c.hints) > 1 { // if the server cannot be reached, the folder is enough
		seen := slices.Clone(asked.Observations)
		s.pending.Go(func() { s.noteHint(c.near, asked.Task, seen) })
	}
	s.adopted.Add(1)
	s.saved.Add(int64(run.Seconds * 1000))
	if run.Version != "" && run.Version != s.version {
		s.others.Store(run.Version, true)
	}
	return t, nil
}

// bring fetches some blobs, and has others promised that can be fetched.
func (s *Sharing) bring(ctx context.Context, c share.Cache, t *engine.Task, now, later []share.Blob) error {
	now, err := s.absent(ctx, now)
	if err != nil {
		return err
	}
	if later, err = s.absent(ctx, later); err != nil {
		return err
	}
	if len(later) > 0 {
		if missing, err := c.Missing(ctx, later); err != nil || len(missing) > 0 {
			return errors.Join(err, cas.ErrDamaged)
		}
	}
	for _, b := range now {
		begin := time.Now()
		ctx, from := noting(ctx)
		err := s.fetch(ctx, c, b)
		if s.spanned(downloading, t.Name, begin, b.Size, fromText("a product", *from), err); err != nil {
			return err
		}
	}
	for _, b := range later {
		s.w.Blobs.Promise(b.Hash, b.SHA256, b.Size)
	}
	return nil
}

// absent returns the blobs that are not on this disk.
func (s *Sharing) absent(ctx context.Context, blobs []share.Blob) (list []share.Blob, err error) {
	hashes := make([]digest.Hash, len(blobs))
	for i := range blobs {
		hashes[i] = blobs[i].Hash
	}
	has, err := s.w.Blobs.Has(ctx, hashes)
	for i := range has {
		if !has[i] {
			list = append(list, blobs[i])
		}
	}
	return list, err
}

func (s *Sharing) fetch(ctx context.Context, c share.Cache, b share.Blob) error {
	w := s.w.Blobs.Create()
	if err := c.Fetch(ctx, b, w); err != nil {
		w.Abort()
		return err
	}
	s.downloaded.Add(b.Size)
	return w.CommitAs(b.Hash)
}

// fetchPromised fetches a promised blob for a store.
func (s *Sharing) fetchPromised(_ context.Context, h digest.Hash, sum [sha256.Size]byte, size int64, to io.Writer) error {
	c := s.opened()
	if c == nil {
		return s.failed
	}
	begin := time.Now()
	ctx, from := noting(s.ctx)
	err := c.results.Fetch(ctx, share.Blob{Hash: h, SHA256: sum, Size: size}, to)
	if err == nil {
		s.downloaded.Add(size)
	}
	s.spanned(downloading, h.Short(), begin, size, fromText("a product that a job opens", *from), err)
	return err
}

// Unasked is the source of promised blobs for a store that is only asked whether they exist.
func Unasked(context.Context, digest.Hash, [sha256.Size]byte, int64, io.Writer) error {
	return errors.ErrUnsupported
}

// Ran stores the result of a run, in parallel to the build. What another platform took from a cache may be there for this one as well.
func (s *Sharing) Ran(t *engine.Task, tr *engine.Trace) {
	if s.place.Signed && tr.Adopted { // perhaps at a time when unsigned results counted, so it may not be signed
		return
	}
	if !s.place.Writes() {
		s.barred.Store(s.place.barred != "")
		return
	}
	s.pending.Go(func() {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		if c := s.opened(); c != nil && s.ctx.Err() == nil {
			for _, cache := range c.writers {
				s.upload(cache, t, tr, tr.Adopted) // what is wrong is in the guard
			}
		}
	})
}

// Push stores the results that hold. It counts them, those with lost blobs, the tasks that would run now and so
// have none, and what came from a cache and is not signed here.
func (s *Sharing) Push(results []*engine.Result) (stored, lost, stale, foreign int) {
	c := s.opened()
	if c == nil {
		return 0, 0, 0, 0
	}
	if s.place.Signed {
		all := len(results)
		results = slices.DeleteFunc(results, func(r *engine.Result) bool { return r.State == engine.Held && r.Trace.Adopted })
		foreign = all - len(results)
	}
	var ok, bad, none atomic.Int64
	each(len(results), uploads, func(i int) {
		r := results[i]
		if r.State != engine.Held {
			none.Add(1)
		}
		if r.State != engine.Held || s.ctx.Err() != nil {
			return
		}
		for _, cache := range c.writers {
			switch err := s.upload(cache, r.Task, r.Trace, true); {
			case err == nil:
				ok.Add(1)
			case cas.Lost(err):
				bad.Add(1)
			}
		}
	})
	n := max(1, len(c.writers))
	return int(ok.Load()) / n, int(bad.Load()) / n, int(none.Load()), foreign
}

// upload stores a result in a cache, with its blobs, and adds to the hint what its run observed. A result that may be there is stored again
// only if it is not.
func (s *Sharing) upload(cache share.Cache, t *engine.Task, tr *engine.Trace, mayBe bool) error {
	begin := time.Now()
	n, err := s.store(cache, t, tr, mayBe)
	s.uploaded.Add(n)
	s.spanned(uploading, t.Name, begin, n, "the result and its products", err)
	return err
}

// store is upload; n is how many bytes were sent.
func (s *Sharing) store(cache share.Cache, t *engine.Task, tr *engine.Trace, mayBe bool) (n int64, err error) {
	r, err := s.resultOf(t, tr)
	if err != nil {
		return 0, err
	}
	key := s.place.ownKey(resultKey(t, tr.Observations))
	value := r.Encode(key, share.Run{Seconds: tr.Seconds, Memory: tr.Memory, Version: s.version}, s.place.sign)
	if value == nil {
		return 0, nil // too large
	}
	blobs := r.Blobs()
	missing, err := cache.Missing(s.ctx, blobs)
	if err != nil {
		return 0, err
	}
	stored := false
	if mayBe && len(missing) == 0 {
		if there, err := cache.Get(s.ctx, key); err == nil {
			there, _, err := share.DecodeResult(key, t.Fingerprint, there, s.place.verify)
			stored = err == nil && there.ID() == r.ID()
		}
	}
	for _, b := range missing {
		if err := cache.Store(s.ctx, b, func() (io.ReadCloser, error) { return s.w.Open(b.Hash) }); err != nil {
			return n, err
		}
		n += b.Size
	}
	if !stored {
		if err := cache.Put(s.ctx, key, value, blobs); err != nil {
			return n, err
		}
		n += int64(len(value))
	}
	hint, err := s.noteHint(cache, t, tr.Observations)
	return n + int64(hint), err
}

// noteHint adds the observations of a run to a hint, and returns the size of what was written.
func (s *Sharing) noteHint(cache share.Cache, t *engine.Task, seen []engine.Observation) (int, error) {
	key, hint := hintKey(t), &share.Hint{}
	value, err := cache.Get(s.ctx, key)
	if err == nil {
		if h, err := share.DecodeHint(key, value); err == nil {
			hint = h
		}
	} else if !share.IsMiss(err) {
		return 0, err
	}
	if !hint.Add(seen) {
		return 0, nil
	}
	if value = hint.Encode(key); value == nil {
		return 0, nil // too large
	}
	return len(value), cache.Put(s.ctx, key, value, nil)
}

// resultOf converts a trace to a result for caches.
func (s *Sharing) resultOf(t *engine.Task, tr *engine.Trace) (*share.Result, error) {
	r := &share.Result{
		Fingerprint: t.Fingerprint, Outcome: tr.Outcome, Shareable: tr.Shareable, Messages: tr.Messages, Root: tr.Root, Cycle: tr.Cycle,
	}
	for i := range tr.Products {
		p := tr.Products[i]
		sum, err := s.w.Blobs.SHA256(p.Hash)
		if cas.Lost(err) {
			if f, oerr := s.w.Open(p.Hash); oerr == nil { // this makes it from an output
				f.Close()
				sum, err = s.w.Blobs.SHA256(p.Hash)
			}
		}
		if err != nil {
			return nil, err
		}
		blob := share.Blob{Hash: p.Hash, SHA256: sum, Size: p.Size}
		p.Hash, p.Size = digest.Hash{}, 0
		r.Products = append(r.Products, share.Product{Product: p, Blob: blob})
	}
	seen := map[digest.Hash]bool{}
	for i := range tr.Observations {
		o := &tr.Observations[i]
		if o.Kind != engine.Outline || !task.AsksFor(o.Subject) {
			continue
		}
		h := task.SourceBlob(task.ParseSubject(o.Subject).Asset)
		if h.IsZero() || seen[h] {
			continue
		}
		seen[h] = true
		blob, err := s.blob(h)
		if err != nil {
			return nil, err
		}
		r.Brought = append(r.Brought, blob)
	}
	return r, nil
}

// blob returns what caches need to know about a blob on this disk.
func (s *Sharing) blob(h digest.Hash) (b share.Blob, err error) {
	b.Hash = h
	if b.SHA256, err = s.w.Blobs.SHA256(h); err != nil {
		return b, err
	}
	f, err := s.w.Blobs.OpenFile(h)
	if err != nil {
		return b, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		b.Size = info.Size()
	}
	return b, err
}

// Settle waits until all results of runs are stored.
func (s *Sharing) Settle() { s.pending.Wait() }

// Close ends the sharing. Promised blobs cannot be fetched afterwards.
func (s *Sharing) Close() {
	s.Settle()
	s.open.Do(func() { s.failed = context.Canceled })
	if s.caches != nil {
		s.place.noteHidden(s.caches)
		s.caches.Close() // what it cannot delete, the next one will
	}
}

// Traffic is how much a build exchanged with caches.
type Traffic struct {
	Downloaded, Uploaded int64   // bytes
	Saved                float64 // seconds that the adopted results took where they ran
}

// Traffic returns the sums.
func (s *Sharing) Traffic() Traffic {
	return Traffic{s.downloaded.Load(), s.uploaded.Load(), float64(s.saved.Load()) / 1000}
}

// Troubles returns the problems with caches, one error each.
func (s *Sharing) Troubles() []error {
	if s.failed != nil {
		return []error{s.failed}
	}
	if s.caches == nil {
		return nil
	}
	list := s.caches.Troubles()
	if err := s.waits.trouble(); err != nil {
		list = append(list, err)
	}
	return list
}

// Barred is why nothing that ran is stored, though it should be. It is reported once by a process.
func (s *Sharing) Barred() string {
	if s.barred.Load() && s.place.wished && s.place.warned.CompareAndSwap(false, true) {
		return s.place.barred
	}
	return ""
}
