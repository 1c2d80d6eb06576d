package job

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/processor"
)

// Dependencies by hand: source files and products of other assets that rules name for a job. They are recorded before
// the processor runs, whether it reads them or not.

// byHand records the source files that the job depends on by hand; it brings the products up to date and records them.
func (j *Job) byHand() error {
	for _, glob := range j.Inputs() {
		found, err := j.Glob(glob)
		if err != nil {
			return err
		}
		for _, path := range found {
			if path == j.t.Asset.Path {
				continue // the job records access to its own file itself
			}
			h, err := j.w.Observe(SawFile, path)
			if err != nil {
				return j.mayPass(j.unreadable(path, err))
			}
			j.run.See(SawFile, path, h)
		}
	}
	needs, err := j.Needs()
	for _, p := range needs {
		if _, err := j.productOf(p); err != nil {
			return err
		}
	}
	return err
}

// Inputs are the globs of source files on which the job depends by hand. It is not part of processor.Job; package
// command uses it through an interface.
func (j *Job) Inputs() []string {
	globs := make([]string, len(j.t.On.Inputs))
	for i, p := range j.t.On.Inputs {
		globs[i] = p.Text
	}
	return globs
}

// Needs are the products on which the job depends by hand: those of all assets that the patterns mean on its platform,
// except the job's own asset. It is not part of processor.Job; package command uses it through an interface.
func (j *Job) Needs() ([]processor.Product, error) {
	var ids []string
	for _, p := range j.t.On.Needs {
		assets, h := j.w.meant(j.t.Platform, p.Text)
		j.run.See(SawAssets, j.t.Platform+"\x00"+p.Text, h)
		for _, a := range assets {
			if a.Path != j.t.Asset.Path {
				ids = append(ids, a.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	all, err := j.Products(slices.Compact(ids)...)
	return slices.Concat(all...), err
}

// meant lists the assets that a pattern means and that are built on a platform, by id, with a hash of the list.
func (w *World) meant(platform, pattern string) ([]*asset.Asset, digest.Hash) {
	w.mu.Lock()
	all, known := w.meanings[pattern]
	w.mu.Unlock()
	if !known {
		if glob, _ := project.SplitPattern(pattern); w.Finder != nil {
			all = w.Finder.Meant(pattern, w.Paths(), w.Find(glob))
		} else {
			all = w.Assets.Meant(pattern)
		}
		w.mu.Lock()
		w.meanings[pattern] = all
		w.mu.Unlock()
	}
	var list []*asset.Asset
	b := digest.Build("assets")
	for _, a := range all {
		if len(a.On(platform)) > 0 {
			list = append(list, a)
			b.Str("asset", a.ID)
		}
	}
	return list, b.Sum()
}

// Meant splits the subject of an observation of SawAssets.
func Meant(subject string) (platform, pattern string) {
	platform, pattern, _ = strings.Cut(subject, "\x00")
	return platform, pattern
}
