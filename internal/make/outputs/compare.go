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

// Compare finds the outputs that have changed since the build before. Those written after a time, in nanoseconds since
// 1970, are hashed even if their stat is unchanged; 0: none are.
func Compare(p *workspace.Workspace, prev *state.Snapshot, since int64, workers int) map[string]source.Presence {
	o := prev.Outputs
	pres := source.Compare(p.OutputDir(), o.Folders(), o.Folder, p.Workers(workers))
	if since != 0 {
		lookInto(p, prev, since, workers, pres)
	}
	return pres
}

// Any reports whether an output is where an earlier build put it: by the snapshot, or, if that is lost or of another
// version, by the traces.
func (s *Tree) Any() bool {
	if s.Prev != nil {
		total := 0
		s.Prev.Outputs.Paths(func(_, _ string) { total++ })
		if len(Compare(s.P, s.Prev, 0, 0)) < total {
			return true
		}
	}
	if s.Traces == nil {
		return false
	}
	for _, k := range s.Traces.Keys() {
		for _, tr := range s.Traces.Traces(k) {
			for i := range tr.Products {
				p := &tr.Products[i]
				if p.File == "" {
					continue
				}
				if h, err := source.HashFile(filepath.Join(s.P.OutputDir(), filepath.FromSlash(p.File))); err == nil && h == p.Hash {
					return true
				}
			}
		}
	}
	return false
}

// lookInto hashes suspect outputs whose stat is unchanged, and adds those whose content has changed.
func lookInto(p *workspace.Workspace, prev *state.Snapshot, since int64, workers int, pres map[string]source.Presence) {
	all, err := prev.Outputs.All()
	if err != nil {
		return // the caller reports it if all are needed
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

// sideBySide calls f for each number below n, with this number of goroutines.
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

// VerifyBlobs hashes, all at once, the blobs that this build needs and that may have changed: those of
// changed outputs, which may be hard links to their blob; those that parcels are packed from; and those of a
// build that no snapshot records. A damaged blob is removed, before a job that makes the same content, or a
// trace that names it, puts it in place again. Other damage is found when a blob is opened.
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
	s.W.Blobs.Has(ctx, slices.Collect(maps.Keys(doubts))) // it removes the damaged ones
}
