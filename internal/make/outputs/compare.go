package outputs

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// compareOutputs finds the outputs that are not as the build before left them. Those written since a time, in nanoseconds since 1970,
// are hashed although they look as they did; 0: none are.
func Compare(p *workspace.Workspace, prev *state.Snapshot, since int64, workers int) map[string]source.Presence {
	o := prev.Outputs
	pres := source.Compare(p.OutputDir(), o.Folders(), o.Folder, p.Workers(workers))
	if since != 0 {
		lookInto(p, prev, since, workers, pres)
	}
	return pres
}

// lookInto hashes the outputs that are suspect although they look as they did, and adds those that are not what they were.
func lookInto(p *workspace.Workspace, prev *state.Snapshot, since int64, workers int, pres map[string]source.Presence) {
	all, err := prev.Outputs.All()
	if err != nil {
		return // if all are needed, the caller reports it
	}
	all = slices.DeleteFunc(all, func(o state.Output) bool {
		return pres[o.File] != source.Same || o.Hash.IsZero() || max(o.Stat.MTime, o.Stat.CTime) < since
	})
	wrong := make([]bool, len(all))
	sideBySide(p.Workers(workers), len(all), func(i int) {
		h, err := source.HashFile(filepath.Join(p.OutputDir(), filepath.FromSlash(all[i].File)))
		wrong[i] = err != nil || h != all[i].Hash
	})
	for i := range all {
		if wrong[i] {
			pres[all[i].File] = source.Differs
		}
	}
}

// sideBySide calls f for each of the numbers below n, with this number of workers.
func sideBySide(workers, n int, f func(int)) {
	var wg sync.WaitGroup
	for first := range min(n, workers) {
		wg.Go(func() {
			for i := first; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}

// VerifyBlobs checks the bytes of the blobs that this build needs and that may have changed, all at once:
// those of outputs that are not as they were, which may be the same file as their blob; those that parcels
// are packed of; and those of a build that no snapshot records. A damaged one is removed, before a job that
// makes the same, or a trace that names it, puts it in place again. What this misses is found when a blob is
// opened.
func VerifyBlobs(ctx context.Context, s *Tree, pres map[string]source.Presence) {
	doubts := map[digest.Hash]bool{}
	for _, o := range s.Before {
		platform, _, _ := strings.Cut(o.File, "/")
		if p := pres[o.File]; !o.Hash.IsZero() && (p != source.Same || s.W.Packs[platform]) {
			doubts[o.Hash] = true
		}
	}
	if since := s.Settled; s.Traces.LastBuild() > since {
		for _, k := range s.Traces.Keys() {
			if tr := s.Traces.Traces(k)[0]; tr.Build > since {
				for i := range tr.Products {
					doubts[tr.Products[i].Hash] = true
				}
			}
		}
	}
	s.W.Blobs.Has(ctx, slices.Collect(maps.Keys(doubts))) // which removes the damaged ones
}
