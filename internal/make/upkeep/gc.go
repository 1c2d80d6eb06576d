package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// GCRequest says which of the unneeded traces are deleted.
type GCRequest struct {
	Unused   time.Duration // those not used for longer than this
	MaxBytes int64         // then the least recently used ones, until all blobs together have at most this size; 0: no limit
	DryRun   bool          // report what would be deleted, write nothing
	Now      time.Time     // zero: now
}

// Freed is what was deleted, and what was kept.
type Freed struct {
	Traces, Files         int
	Bytes                 int64 // sum of the files
	KeptTraces, KeptFiles int   // files: blobs
	KeptBytes             int64
	// No trace was deleted, because only traces show which files in the output folder are Kiln's; the next build
	// changes that.
	Unsettled bool
	Messages  diag.List
}

// Found is a project with what the build before left.
type Found struct {
	*results.Set
	Prev    *state.Snapshot // nil: there was no build before
	Before  *plan.Before
	Tree    *outputs.Tree
	Shipped []string // files that earlier builds made from products
	Settled uint64   // number of the build up to which the snapshot knows all outputs
	Said    diag.List
	Wrong   []ship.Wrong // what the last build made of products that is not what it should be
}

// GC deletes traces that have not been used recently, blobs that no trace names, and files that killed
// builds left behind. The caller holds the lock, unless it is a dry run.
//
// Traces are deleted first, in one step, and then blobs: after an interruption there are blobs that no
// trace names. The other order would be safe too, since a trace whose blob is lost does not hold, but jobs
// with good traces would run again.
func (s *Found) GC(ctx context.Context, req GCRequest) (*Freed, error) {
	log, _, err := state.OpenTraces(s.P.TracesPath(), req.DryRun) // s.Traces has the traces first that would hold now
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if req.Now.IsZero() {
		req.Now = time.Now()
	}
	g := &garbage{keep: s.needed(log), sources: s.requestSources()}
	if err := g.findBlobs(ctx, s.W.Blobs); err != nil {
		return nil, err
	}
	f := &Freed{Messages: s.Said, Unsettled: log.LastBuild() > s.Settled}
	g.choose(req, s.unneeded(log, g.keep), f)
	f.removeLeftOvers(s.P, req.DryRun)
	if !req.DryRun {
		if err := log.Retain(func(k engine.Key, tr *engine.Trace) bool { return g.keep[traceID{k, tr.ID}] != nil }); err != nil {
			return nil, err
		}
		s.W.Blobs.LetRemove()
	}
	return f, errors.Join(g.sweep(ctx, s.W.Blobs, f, req.DryRun), s.W.Blobs.Flush())
}

// traceID identifies a trace.
type traceID struct {
	key engine.Key
	id  uint64
}

// needed returns the traces that stay whatever their age: for each task of the project the last used one, by
// the log and by the snapshot; if it is a failure, also the last good one; the one that would hold now; and
// those that a build needs to know which outputs are Kiln's.
func (s *Found) needed(log *state.Traces) map[traceID]*engine.Trace {
	ids := map[traceID]bool{}
	for _, r := range s.Results {
		if r.Trace != nil {
			ids[traceID{r.Task.Key, r.Trace.ID}] = true
		}
	}
	if s.Prev != nil {
		for _, was := range s.Before.Tasks {
			ids[traceID{was.Key, was.Trace}] = true
		}
	}
	needed := make(map[traceID]*engine.Trace, len(s.Live))
	for _, t := range s.Live {
		for i, tr := range log.Traces(t.Key) {
			if id := (traceID{t.Key, tr.ID}); i == 0 || ids[id] {
				needed[id] = tr
			}
			if i > 0 || tr.Outcome == engine.Succeeded {
				continue
			}
			for p, good := range s.LastGood(t, log) {
				needed[traceID{p.Key, good.ID}] = good
			}
		}
	}
	if settled := s.Settled; log.LastBuild() > settled {
		log.Each(func(k engine.Key, tr *engine.Trace, _ time.Time) {
			if tr.Build > settled {
				needed[traceID{k, tr.ID}] = tr
			}
		})
	}
	return needed
}

// agedTrace is a trace that the project does not need now.
type agedTrace struct {
	traceID
	trace *engine.Trace
	used  time.Time
}

// unneeded returns the other traces, the least recently used first. Those of assets that were removed since
// the last build count as used until then.
func (s *Found) unneeded(log *state.Traces, needed map[traceID]*engine.Trace) []agedTrace {
	atLast := map[traceID]bool{}
	var last time.Time
	if info, err := os.Stat(s.P.SnapshotPath()); err == nil && s.Prev != nil {
		last = info.ModTime()
		for _, was := range s.Before.Tasks {
			atLast[traceID{was.Key, was.Trace}] = true
		}
	}
	var all []agedTrace
	log.Each(func(k engine.Key, tr *engine.Trace, used time.Time) {
		id := traceID{k, tr.ID}
		if needed[id] != nil {
			return
		}
		if atLast[id] && used.Before(last) {
			used = last
		}
		all = append(all, agedTrace{id, tr, used})
	})
	slices.SortFunc(all, func(a, b agedTrace) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.trace.Build, b.trace.Build), bytes.Compare(a.key[:], b.key[:]), cmp.Compare(a.id, b.id))
	})
	return all
}

// garbage sorts traces and blobs into those that stay and those that are deleted.
type garbage struct {
	keep    map[traceID]*engine.Trace
	sources []digest.Hash         // sources of requests that are bytes
	blobs   map[digest.Hash]*blob // all that exist
	kept    int64                 // bytes of the blobs that traces name
}

type blob struct {
	size   int64
	names  int  // number of remaining traces that name it
	needed bool // named by a trace that always stays
}

func (g *garbage) findBlobs(ctx context.Context, store *cas.Store) error {
	g.blobs = map[digest.Hash]*blob{}
	err := store.Walk(func(h digest.Hash, info fs.FileInfo) error {
		g.blobs[h] = &blob{size: info.Size()}
		return ctx.Err()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever built
	}
	return err
}

// name adds times to the counts of the blobs that a trace names.
func (g *garbage) name(tr *engine.Trace, times int) {
	for i := range tr.Products {
		g.nameBlob(tr.Products[i].Hash, times)
	}
}

func (g *garbage) nameBlob(h digest.Hash, times int) {
	b := g.blobs[h]
	if b == nil {
		return
	}
	was := b.names
	b.names += times
	switch {
	case was == 0:
		g.kept += b.size
	case b.names == 0:
		g.kept -= b.size
	}
}

// requestSources returns the bytes that are sources of live requests.
func (s *Found) requestSources() (list []digest.Hash) {
	for _, t := range s.Live {
		if h := task.SourceBlob(t.Asset.ID); !h.IsZero() {
			list = append(list, h)
		}
	}
	return list
}

// choose decides which of the aged traces stay too. A trace is not deleted for the size limit if that would
// free nothing.
func (g *garbage) choose(req GCRequest, aged []agedTrace, f *Freed) {
	all := len(g.keep) + len(aged)
	for _, tr := range g.keep {
		g.name(tr, 1)
	}
	for _, h := range g.sources {
		g.nameBlob(h, 1)
	}
	for _, b := range g.blobs {
		b.needed = b.names > 0
	}
	aged = slices.DeleteFunc(aged, func(a agedTrace) bool { return req.Now.Sub(a.used) > req.Unused })
	for _, a := range aged {
		g.keep[a.traceID] = a.trace
		g.name(a.trace, 1)
	}
	frees := func(p engine.Product) bool { b := g.blobs[p.Hash]; return b != nil && !b.needed }
	for _, a := range aged {
		if req.MaxBytes > 0 && g.kept > req.MaxBytes && slices.ContainsFunc(a.trace.Products, frees) {
			delete(g.keep, a.traceID)
			g.name(a.trace, -1)
		}
	}
	f.KeptTraces, f.Traces = len(g.keep), all-len(g.keep)
}

// sweep removes the blobs that no trace names.
func (g *garbage) sweep(ctx context.Context, store *cas.Store, f *Freed, dryRun bool) error {
	for h, b := range g.blobs {
		if b.names > 0 {
			f.KeptFiles++
			f.KeptBytes += b.size
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !dryRun {
			if err := store.Remove(h); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		f.Files++
		f.Bytes += b.size
	}
	return nil
}

// removeLeftOvers removes files that killed builds left behind, and a damaged content database. Files that
// cannot be removed stay; they do no harm.
func (f *Freed) removeLeftOvers(p *workspace.Workspace, dryRun bool) {
	left := []string{p.ScratchDir(), filepath.Join(p.CasDir(), "tmp"), p.DatabasePath() + contentdb.Aside}
	entries, _ := os.ReadDir(p.StatePlace())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), disk.TempPrefix) {
			left = append(left, filepath.Join(p.StatePlace(), e.Name()))
		}
	}
	for _, dir := range left {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil
			}
			info, err := e.Info()
			if err == nil && !dryRun {
				err = os.Remove(path)
			}
			if err == nil {
				f.Files++
				f.Bytes += info.Size()
			}
			return nil
		})
		if !dryRun {
			os.RemoveAll(dir)
		}
	}
}
