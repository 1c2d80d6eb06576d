package job

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// Questions of a job that does not know which assets exist, or whether they can be built.

func (j *Job) Assets(pattern string) ([]processor.Listed, error) {
	if err := j.may(pattern); err != nil {
		return nil, err
	}
	pattern = assetName(pattern)
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("pattern %q is not well formed", pattern)
	}
	list, h := j.w.catalogue(SawListed, j.t.Platform, pattern)
	j.run.See(SawListed, j.t.Platform+"\x00"+pattern, h)
	if parcel, ok := j.w.heldParcel(pattern); ok && h.IsZero() {
		return nil, fmt.Errorf("there is no parcel %q in kiln.toml", parcel)
	}
	return list, nil
}

// catalogue lists the assets that a pattern matches on a platform, and hashes everything that Job.Assets returns of them; as SawCatalogue
// without their metadata. The hash is zero if there is no such platform, or
// no such parcel.
func (w *World) catalogue(as engine.Kind, platform, pattern string) (list []processor.Listed, h digest.Hash) {
	if !slices.Contains(w.platforms, platform) {
		return nil, h
	}
	assets, meant := w.meant(platform, pattern)
	if parcel, ok := w.heldParcel(pattern); ok && as == SawListed {
		assets, meant = w.heldBy(platform, parcel)
	}
	if meant.IsZero() {
		return nil, meant
	}
	b := digest.Build("catalogue")
	for _, a := range assets {
		on := a.On(platform)
		b.Str("asset", a.ID).Str("uuid", a.UUID).Str("path", a.Path)
		meta := a.MetaJSON()
		if as == SawListed {
			b.Str("meta", meta)
		}
		for i := range on {
			l := processor.Listed{Asset: a.ForJob(), Processor: on[i].Processor, Settings: settings.JSON(on[i].Settings), Meta: meta}
			if pr := w.procs[l.Processor]; pr != nil && len(pr.Info.Products) > 0 {
				l.Type = pr.Info.Products[0].Type
			}
			b.Str("processor", l.Processor).Str("type", l.Type).Str("settings", l.Settings)
			list = append(list, l)
		}
	}
	return list, b.Sum()
}

func (j *Job) TryProducts(of processor.Ask) (products []processor.Product, ok bool, err error) {
	if err := j.may(of.Asset, of.Platform, of.Processor); err != nil {
		return nil, false, err
	}
	if of.Platform != "" && of.Platform == j.Platform() { // on another platform, the same question would be about another platform's products
		of.Platform = ""
	}
	id, platform := assetName(of.Asset), j.platformOf(of.Platform)
	j.sawAsset(id)
	a := j.w.Find(id)
	known := slices.Contains(j.w.platforms, platform)
	if of.Processor != "" || of.Platform != "" { // the record does not contain the list of platforms, nor what the asset has on them
		pattern := processor.QuoteGlob(id)
		if a != nil {
			pattern = processor.QuoteGlob(a.ID)
		}
		_, h := j.w.catalogue(SawCatalogue, platform, pattern)
		j.run.See(SawCatalogue, platform+"\x00"+pattern, h)
	}
	switch {
	case !known:
		return nil, false, fmt.Errorf("there is no platform %q", of.Platform) // the list of platforms is not recorded
	case a == nil || task.IsRequest(id):
		return nil, false, nil
	}
	jobs := j.jobsOn(id, platform)
	if on := a.On(platform); of.Processor != "" {
		jobs = slices.DeleteFunc(jobs, func(s task.Subject) bool {
			return len(on) == 0 || s.Processor != of.Processor && (s.Processor != "" || on[0].Processor != of.Processor)
		})
	}
	if len(jobs) == 0 {
		return nil, false, nil
	}
	needed, err := j.needJobs(jobs)
	if failed := (*engine.NeedError)(nil); errors.As(err, &failed) || errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	all := slices.DeleteFunc(slices.Concat(needed...), func(m madeProduct) bool { return m.File == "" })
	slices.SortStableFunc(all, func(a, b madeProduct) int { return strings.Compare(a.Name, b.Name) })
	if err := j.distinct(id, all); err != nil {
		return nil, false, err
	}
	for _, m := range all {
		p := j.product(a, m)
		p.Platform = of.Platform
		products = append(products, p)
	}
	return products, true, nil
}

// platformOf is the platform of a product or a question: the job's own if it names none.
func (j *Job) platformOf(name string) string {
	if name == "" {
		return j.t.Platform
	}
	return name
}
