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

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/internal/delivery/release"
)

// maxDifferences is how many changed resources of a parcel are listed.
const maxDifferences = 200

// maxPatched is how many bytes of parcels are compared for one page, to find the size of patches. It takes 0.3 to 0.5
// s; for the rest, only resources are compared.
const maxPatched = 128 << 20

// since is the difference of a parcel from the last release.
type since struct {
	release.Difference // without Changes
	Total              release.Total
	List               []difference // the largest first
	More               bool
	AtMost             bool // the patch was not made and may be smaller
	Problem            string
}

// difference is a changed resource.
type difference struct {
	release.Change
	Asset string // of which it is made; empty: there is none now
}

// Same reports whether the parcel is unchanged.
func (s *since) Same() bool { return s.Problem == "" && s.Change == "" }

// New reports whether the release has no such parcel.
func (s *since) New() bool { return s.Change == release.Added }

// sinceTotal is the sum over all parcels.
type sinceTotal struct {
	From     string // path of the manifest or folder
	Total    release.Total
	Same     int
	New      int
	NewBytes int64
	AtMost   bool
}

// sinceReleases compares all parcels with the last release, and adds up. It returns nil if no release is
// known.
func (d *Dashboard) sinceReleases(ctx context.Context, all []parcelRow) (*sinceTotal, error) {
	if d.cfg.Release == "" {
		return nil, nil
	}
	sum, budget := &sinceTotal{From: d.cfg.Release}, int64(maxPatched)
	for i := range all {
		r, err := d.sinceRelease(ctx, all[i], &budget)
		if err != nil {
			return nil, err
		}
		if all[i].Since = r; r == nil {
			continue
		}
		if r.Same() {
			sum.Same++
		}
		if r.New() {
			sum.New, sum.NewBytes = sum.New+1, sum.NewBytes+all[i].Size
			continue
		}
		t := &sum.Total
		t.Added, t.Removed, t.Changed, t.Renamed = t.Added+r.Total.Added, t.Removed+r.Total.Removed, t.Changed+r.Total.Changed, t.Renamed+r.Total.Renamed
		t.Patch, sum.AtMost = t.Patch+r.Patch, sum.AtMost || r.AtMost
	}
	return sum, nil
}

// sinceRelease compares a parcel with that of the last release. It returns nil if no release is known. budget is how
// many bytes may still be compared for the page.
func (d *Dashboard) sinceRelease(ctx context.Context, k parcelRow, budget *int64) (*since, error) {
	if d.cfg.Release == "" || k.File == "" {
		return nil, nil
	}
	rows, err := d.library.ask(ctx, "SELECT output FROM project", nil, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	newer := filepath.Join(d.cfg.Dir, rows[0].text(0), filepath.FromSlash(k.File))
	info, err := os.Stat(d.cfg.Release)
	if err != nil {
		return &since{Problem: err.Error()}, nil
	}
	older := "" // path of the release's parcel, if it exists
	if info.IsDir() {
		older = filepath.Join(d.cfg.Release, filepath.FromSlash(k.File))
		if info, err = os.Stat(older); errors.Is(err, fs.ErrNotExist) {
			return newParcel(k), nil
		} else if err != nil {
			return &since{Problem: err.Error()}, nil
		}
	}
	exact := older != "" && info.Size()+k.Size <= *budget
	name := fmt.Sprint(k.File, " ", info.Size(), " ", info.ModTime().UnixNano(), " ", exact)
	return d.shelf.releases.of(ctx, d.version, name, func() (*since, error) {
		if exact {
			*budget -= info.Size() + k.Size
		}
		r, err := d.compare(ctx, k, older, newer, exact)
		if err != nil {
			return &since{Problem: err.Error()}, nil
		}
		return r, d.assetsOf(ctx, r.List)
	})
}

func newParcel(k parcelRow) *since {
	return &since{Difference: release.Difference{Change: release.Added, NewSize: k.Size, Patch: k.Size}}
}

// compare compares a parcel with that of the release, which is the file older or else in the manifest; with exact it
// makes the patch to find its size.
func (d *Dashboard) compare(ctx context.Context, k parcelRow, older, newer string, exact bool) (*since, error) {
	var was release.Parcel
	var err error
	if older != "" {
		was, err = release.ReadParcel(k.Platform, k.Name, older)
	} else {
		var m *release.Manifest
		if m, err = d.manifest(ctx); err == nil {
			i := slices.IndexFunc(m.Parcels, func(x release.Parcel) bool { return x.Platform == k.Platform && x.Name == k.Name })
			if i < 0 {
				return newParcel(k), nil
			}
			was = m.Parcels[i]
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the release: %w", err)
	}
	is, err := release.ReadParcel(k.Platform, k.Name, newer)
	if err != nil {
		return nil, err
	}
	list := release.Since(&release.Manifest{Parcels: []release.Parcel{was}}, &release.Manifest{Parcels: []release.Parcel{is}})
	s := &since{Difference: list[0], Total: release.Sum(list), AtMost: !exact}
	for _, c := range s.Changes {
		s.List = append(s.List, difference{c, ""})
	}
	s.Changes = nil
	slices.SortStableFunc(s.List, func(a, b difference) int {
		return cmp.Compare(max(b.OldSize, b.NewSize), max(a.OldSize, a.NewSize))
	})
	if len(s.List) > maxDifferences {
		s.List, s.More = s.List[:maxDifferences], true
	}
	if exact && s.Change != "" {
		s.Patch, err = patchSize(older, newer)
	}
	return s, err
}

// manifest is the manifest of the last release. It is read once for each build: with 100,000 resources
// it has 10 MB.
func (d *Dashboard) manifest(ctx context.Context) (*release.Manifest, error) {
	info, err := os.Stat(d.cfg.Release)
	if err != nil {
		return nil, err
	}
	return d.shelf.manifests.of(ctx, d.version, fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano()), func() (*release.Manifest, error) {
		return release.Load(d.cfg.Release)
	})
}

// assetsOf finds the assets of resources: a resource has the asset's name, or that with # and the product's name.
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

// patchSize is the size of the patch from one file to another.
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
