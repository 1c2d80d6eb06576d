package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// maxDifferences is how many resources are listed that a parcel does not have as the last release had them.
const maxDifferences = 200

// release is what a parcel has otherwise than the last release.
type release struct {
	New                     bool // the release has no such parcel
	Added, Changed, Removed int
	Old                     int64 // size of the release's parcel
	List                    []parcel.Difference
	More                    bool
	Problem                 string
}

// sinceRelease compares a parcel with that of the last release, which lies at the same place below another folder. It is nil if there is no such folder.
func (d *Dashboard) sinceRelease(ctx context.Context, k parcelRow) (*release, error) {
	if d.cfg.Release == "" || k.File == "" {
		return nil, nil
	}
	rows, err := d.library.ask(ctx, "SELECT output FROM project", nil, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	older, newer := filepath.Join(d.cfg.Release, filepath.FromSlash(k.File)), filepath.Join(d.cfg.Dir, rows[0].text(0), filepath.FromSlash(k.File))
	r, err := compare(older, newer)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &release{New: true}, nil
	case err != nil:
		return &release{Problem: err.Error()}, nil
	}
	return r, nil
}

func compare(older, newer string) (*release, error) {
	o, err := kilnrt.Open(older)
	if err != nil {
		return nil, fmt.Errorf("the release's parcel: %w", err)
	}
	defer o.Close()
	n, err := kilnrt.Open(newer)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	list, err := parcel.Diff(o, n)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(older)
	if err != nil {
		return nil, err
	}
	r := &release{List: list, Old: info.Size()}
	for _, x := range list {
		switch x.Change {
		case "added":
			r.Added++
		case "removed":
			r.Removed++
		default:
			r.Changed++
		}
	}
	slices.SortStableFunc(r.List, func(a, b parcel.Difference) int { return int(max(b.OldSize, b.NewSize) - max(a.OldSize, a.NewSize)) })
	if len(r.List) > maxDifferences {
		r.List, r.More = r.List[:maxDifferences], true
	}
	return r, nil
}
