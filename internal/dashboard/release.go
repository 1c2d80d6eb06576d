package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/parcel"
	written "github.com/kiln-pipeline/kiln/internal/release"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// maxDifferences is how many resources are listed that a parcel does not have as the last release had them.
const maxDifferences = 200

// maxPatched is how many bytes of parcels are compared byte for byte for one page, to know how large patches are. It takes 0.3 to
// 0.5 s; of what goes beyond it, only the resources are compared.
const maxPatched = 128 << 20

// release is what a parcel has otherwise than the last release.
type release struct {
	New                     bool // the release has no such parcel
	Added, Changed, Removed int
	Old                     int64 // size of the release's parcel
	Patch                   int64 // bytes that make the parcel of the release's, as kiln parcel patch writes them
	AtMost                  bool  // Patch is what changed, not packed: the patch will be smaller
	List                    []difference
	More                    bool
	Problem                 string
}

// difference is a resource that the parcel has otherwise.
type difference struct {
	parcel.Difference
	Asset string // that it is made of; empty: there is none now
}

// Same tells that the parcel is as it was.
func (r *release) Same() bool { return r.Problem == "" && !r.New && r.Added+r.Changed+r.Removed == 0 }

// releaseTotal is what all parcels have otherwise.
type releaseTotal struct {
	Folder                             string
	Same, New, Added, Changed, Removed int
	Patch                              int64 // of those that the release has
	NewBytes                           int64 // of those that it has not
	AtMost                             bool
}

// sinceReleases compares all parcels with the last release, and adds up. It is nil if no release is known.
func (d *Dashboard) sinceReleases(ctx context.Context, all []parcelRow) (*releaseTotal, error) {
	if d.cfg.Release == "" {
		return nil, nil
	}
	sum, budget := &releaseTotal{Folder: d.cfg.Release}, int64(maxPatched)
	for i := range all {
		r, err := d.sinceRelease(ctx, all[i], &budget)
		if err != nil {
			return nil, err
		}
		if all[i].Since = r; r == nil {
			continue
		}
		switch {
		case r.Same():
			sum.Same++
		case r.New:
			sum.New, sum.NewBytes = sum.New+1, sum.NewBytes+all[i].Size
		}
		sum.Added, sum.Changed, sum.Removed = sum.Added+r.Added, sum.Changed+r.Changed, sum.Removed+r.Removed
		sum.Patch, sum.AtMost = sum.Patch+r.Patch, sum.AtMost || r.AtMost
	}
	return sum, nil
}

// sinceRelease compares a parcel with that of the last release, which lies at the same place below another folder, or is written down in a file. It is nil if no
// release is known. The budget is how many bytes may still be compared for the page.
func (d *Dashboard) sinceRelease(ctx context.Context, k parcelRow, budget *int64) (*release, error) {
	if d.cfg.Release == "" || k.File == "" {
		return nil, nil
	}
	rows, err := d.library.ask(ctx, "SELECT output FROM project", nil, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if info, err := os.Stat(d.cfg.Release); err == nil && info.Mode().IsRegular() {
		return d.sinceWritten(ctx, k, info, filepath.Join(d.cfg.Dir, rows[0].text(0), filepath.FromSlash(k.File)))
	}
	older, newer := filepath.Join(d.cfg.Release, filepath.FromSlash(k.File)), filepath.Join(d.cfg.Dir, rows[0].text(0), filepath.FromSlash(k.File))
	info, err := os.Stat(older)
	if errors.Is(err, fs.ErrNotExist) {
		return &release{New: true}, nil
	}
	if err != nil {
		return &release{Problem: err.Error()}, nil
	}
	exact := info.Size()+k.Size <= *budget
	name := fmt.Sprint(k.File, " ", info.Size(), " ", info.ModTime().UnixNano(), " ", exact)
	return d.shelf.releases.of(ctx, d.version, name, func() (*release, error) {
		if exact {
			*budget -= info.Size() + k.Size
		}
		r, err := compare(older, newer, exact)
		if err != nil {
			return &release{Problem: err.Error()}, nil
		}
		return r, d.assetsOf(ctx, r.List)
	})
}

// sinceWritten compares a parcel with what a file says of a release.
func (d *Dashboard) sinceWritten(ctx context.Context, k parcelRow, info fs.FileInfo, newer string) (*release, error) {
	file := fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
	return d.shelf.releases.of(ctx, d.version, k.File+" "+file, func() (*release, error) {
		m, err := d.shelf.written.of(ctx, d.version, file, func() (*written.Manifest, error) {
			text, err := os.ReadFile(d.cfg.Release)
			if err != nil {
				return nil, err
			}
			return written.Parse(d.cfg.Release, text)
		})
		if err != nil {
			return &release{Problem: err.Error()}, nil
		}
		r, err := compareWritten(m, k.Platform, k.Name, newer)
		if err != nil {
			return &release{Problem: err.Error()}, nil
		}
		return r, d.assetsOf(ctx, r.List)
	})
}

// compareWritten compares one parcel of a manifest with one that is there.
func compareWritten(m *written.Manifest, platform, name, newer string) (*release, error) {
	i := slices.IndexFunc(m.Parcels, func(x written.Parcel) bool { return x.Platform == platform && x.Name == name })
	if i < 0 {
		return &release{New: true}, nil
	}
	p, err := kilnrt.Open(newer)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	now, err := written.Read(platform, name, p)
	if err != nil {
		return nil, err
	}
	since := written.Since(&written.Manifest{Parcels: m.Parcels[i : i+1]}, &written.Manifest{Parcels: []written.Parcel{now}})
	sum := written.Sum(since)
	r := &release{Added: sum.Added, Removed: sum.Removed, Changed: sum.Changed + sum.Renamed, Old: since[0].OldSize, Patch: sum.Patch, AtMost: sum.Patch > 0}
	for _, c := range since[0].Changes {
		r.List = append(r.List, difference{parcel.Difference{Change: c.Change, Name: c.Name, OldSize: c.OldSize, NewSize: c.NewSize}, ""})
	}
	r.sort()
	return r, nil
}

// sort puts the largest first, and leaves out those beyond a limit.
func (r *release) sort() {
	slices.SortStableFunc(r.List, func(a, b difference) int {
		return cmp.Compare(max(b.OldSize, b.NewSize), max(a.OldSize, a.NewSize))
	})
	if len(r.List) > maxDifferences {
		r.List, r.More = r.List[:maxDifferences], true
	}
}

// compare compares two parcels; exact is to make the patch, to know how large it is.
func compare(older, newer string, exact bool) (*release, error) {
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
	r := &release{Old: info.Size(), AtMost: !exact}
	for _, x := range list {
		switch x.Change {
		case "added":
			r.Added++
		case "removed":
			r.Removed++
		default:
			r.Changed++
		}
		r.Patch += x.NewSize
		r.List = append(r.List, difference{x, ""})
	}
	if r.Patch == 0 {
		r.AtMost = false
	} else if exact {
		if r.Patch, err = patchSize(older, newer); err != nil {
			return nil, err
		}
	}
	r.sort()
	return r, nil
}

// assetsOf finds the assets that resources are made of: these have the asset's name, or that with # and the product's name.
func (d *Dashboard) assetsOf(ctx context.Context, list []difference) error {
	var names []string
	for _, x := range list {
		names = append(names, x.Name)
		if i := strings.LastIndexByte(x.Name, '#'); i >= 0 {
			names = append(names, x.Name[:i])
		}
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	rows, err := d.library.ask(ctx, "SELECT id FROM asset WHERE id IN (SELECT value FROM json_each(:names))", params{":names": string(text)}, 0)
	there := map[string]bool{}
	for _, r := range rows {
		there[r.text(0)] = true
	}
	for i := range list {
		name := list[i].Name
		if k := strings.LastIndexByte(name, '#'); !there[name] && k >= 0 {
			name = name[:k]
		}
		if there[name] {
			list[i].Asset = name
		}
	}
	return err
}

// patchSize is how many bytes make one file of another.
func patchSize(older, newer string) (int64, error) {
	o, err := os.Open(older)
	if err != nil {
		return 0, err
	}
	defer o.Close()
	n, err := os.Open(newer)
	if err != nil {
		return 0, err
	}
	defer n.Close()
	was, err := o.Stat()
	if err != nil {
		return 0, err
	}
	is, err := n.Stat()
	if err != nil {
		return 0, err
	}
	var size counter
	err = parcel.MakePatch(&size, o, was.Size(), n, is.Size())
	return int64(size), err
}

// counter counts what is written.
type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }
