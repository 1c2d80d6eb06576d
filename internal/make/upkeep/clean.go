package upkeep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/parcels"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// Clean deletes the outputs that Kiln made, and with state also Kiln's state. The caller holds the lock, unless it is a
// dry run, which only counts. It returns the number of deleted files, and messages about files that look like Kiln's
// but stay.
func (s *Found) Clean(state, dryRun bool) (int, diag.List, error) {
	if err := s.P.CheckClaim(s.Tree.Any); err != nil && !dryRun {
		return 0, nil, err
	}
	n, err := s.clean(state, dryRun)
	if err != nil || dryRun {
		return n, nil, err
	}
	found := s.Tree.Strangers(s.Shipped).Products
	if len(found) == 0 {
		return n, nil, nil
	}
	m := diag.Warningf(diag.OutputStranger, diag.Pos{File: s.P.Output + "/" + found[0]}, "Kiln does not know this file%s, and leaves what it does not know", outputs.More(len(found)-1))
	return n, diag.List{m.WithHint("what was in .kiln is lost; remove %s/ if nothing in it is your own", s.P.Output)}, nil
}

func (s *Found) clean(state, dryRun bool) (int, error) {
	n, err := s.Tree.RemoveOutputs(dryRun)
	more, serr := parcels.Remove(s.P, s.Prev, dryRun)
	n, err = n+more, errors.Join(err, serr)
	if dryRun {
		return n, err
	}
	if err != nil || !state {
		return n, errors.Join(err, workspace.RemoveAll(s.P.SnapshotPath()))
	}
	entries, err := os.ReadDir(s.P.StatePlace())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	for _, e := range entries {
		if e.Name() != "lock" { // the caller holds it
			err = errors.Join(err, workspace.RemoveAll(filepath.Join(s.P.StatePlace(), e.Name())))
		}
	}
	return n, err
}
