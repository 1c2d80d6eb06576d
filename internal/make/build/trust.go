package build

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// verifyBlobs looks into the blobs that this build will want and that may not be what they were, all at once: those of outputs that are not as
// they were, which may be the same file as their blob; those that parcels are packed of; and those that a build made of which no snapshot
// tells. A damaged one is removed, before a job that makes the same, or a trace that names it, puts it in place again. What this misses is
// found where a blob is wanted.
func (s *session) verifyBlobs(ctx context.Context) {
	doubts := map[digest.Hash]bool{}
	for _, o := range s.before.outputs {
		platform, _, _ := strings.Cut(o.File, "/")
		if p := s.pres[o.File]; !o.Hash.IsZero() && (p != source.Same || s.w.Packs[platform]) {
			doubts[o.Hash] = true
		}
	}
	if since := s.settled(); s.traces.LastBuild() > since {
		for _, k := range s.traces.Keys() {
			if tr := s.traces.Traces(k)[0]; tr.Build > since {
				for i := range tr.Products {
					doubts[tr.Products[i].Hash] = true
				}
			}
		}
	}
	s.w.Blobs.Has(ctx, slices.Collect(maps.Keys(doubts))) // which removes the damaged ones
}

// sideBySide calls f for each of n numbers, by all workers.
func (s *session) sideBySide(n int, f func(int)) {
	var wg sync.WaitGroup
	workers := s.p.workers(s.req.Workers)
	for first := range min(n, workers) {
		wg.Go(func() {
			for i := first; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}

// unsynced is how long before the last build files may have been written that a computer which lost power did not put on its disk: systems
// do so after half a minute at most, disks when they like. Such a file may have its size and times, and zeros in it.
const unsynced = 5 * time.Minute

// suspect finds out which blobs and outputs are to be looked into whatever they look like: all, if the request does not trust size and
// times; and if the computer was started since the last build, those written shortly before that.
func (s *session) suspect() error {
	if s.p.booted() {
		s.since = math.MinInt64
		if info, err := os.Stat(s.p.snapshotPath()); err == nil {
			s.since = info.ModTime().Add(-unsynced).UnixNano()
		}
	}
	if s.req.Detect == ByHash {
		s.since = math.MinInt64
	}
	if s.since == 0 {
		return nil
	}
	blobs, err := cas.Open(s.p.casDir())
	if err != nil {
		return err
	}
	return blobs.Distrust(s.since)
}

// lookInto hashes the outputs that are suspect although they look as they did, and adds those that are not what they were.
func (s *session) lookInto(pres map[string]source.Presence) {
	if s.since == 0 {
		return
	}
	all, err := s.prev.Outputs.All()
	if err != nil {
		return // who needs them all says so
	}
	all = slices.DeleteFunc(all, func(o state.Output) bool {
		return pres[o.File] != source.Same || o.Hash.IsZero() || max(o.Stat.MTime, o.Stat.CTime) < s.since
	})
	wrong := make([]bool, len(all))
	s.sideBySide(len(all), func(i int) {
		h, err := source.HashFile(filepath.Join(s.p.OutputDir(), filepath.FromSlash(all[i].File)))
		wrong[i] = err != nil || h != all[i].Hash
	})
	for i := range all {
		if wrong[i] {
			pres[all[i].File] = source.Differs
		}
	}
}
