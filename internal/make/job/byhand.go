package job

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// What a job depends on by hand: source files and products of other assets that kiln.toml names for it. They are recorded before the
// processor runs, whether it looks at them or not. And what it finds by itself and kiln.toml says is harmless.

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
		_, h := j.w.meant(j.t.Platform, p.Text)
		j.run.See(SawAssets, j.t.Platform+"\x00"+p.Text, h)
	}
	for _, a := range j.w.needs(j.t) {
		ids = append(ids, a.ID)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	all, err := j.Products(slices.Compact(ids)...)
	return slices.Concat(all...), err
}

// needs are the assets on which a task depends by hand, without that which it is itself about.
func (w *World) needs(t *Task) (list []*asset.Asset) {
	for _, p := range t.On.Needs {
		assets, _ := w.meant(t.Platform, p.Text)
		for _, a := range assets {
			if a.Path != t.Asset.Path {
				list = append(list, a)
			}
		}
	}
	return list
}

// Needed are the tasks that rules have run before a task: those of assets that it depends on by hand, and its imports.
func (w *World) Needed(t *Task) (list []*Task) {
	for _, a := range w.needs(t) {
		on := a.On(t.Platform)
		for i := range on {
			list = append(list, w.Task(a, &on[i], ""))
		}
	}
	imports, _ := t.imports()
	for _, id := range imports {
		if r := w.TaskFor(task.Subject{Platform: t.Platform, Asset: id}.String()); r != nil {
			list = append(list, r)
		}
	}
	return list
}

// Means returns the assets that a pattern means and that are built on a platform, by id.
func (w *World) Means(platform, pattern string) []*asset.Asset {
	list, _ := w.meant(platform, pattern)
	return list
}

// meant lists the assets that a pattern means and that are built on a platform, by id, and hashes the list.
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

// Ignored is the pattern under ignore that names what a task observed, so that a change of it alone does not make the task run; nil if
// there is none. own is the path of the file that the task is about, which is never harmless.
func Ignored(own string, on *asset.Resolved, o *engine.Observation) *project.Pattern {
	switch {
	case len(on.Ignore) == 0:
	case o.Kind == SawEnv:
		return on.Ignored(project.EnvMark, o.Subject)
	case o.Kind == SawTool:
		return on.Ignored(project.ToolMark, strings.TrimPrefix(o.Subject, InProject))
	case (o.Kind == SawFile || o.Kind == SawExists) && o.Subject != own:
		return on.Ignored("", o.Subject)
	}
	return nil
}

// Harmless reports whether a difference of an observation alone does not make its task run, because a rule names it under ignore.
func Harmless(et *engine.Task, o *engine.Observation) bool {
	t := et.World.(*Task)
	return Ignored(t.Asset.Path, t.On, o) != nil
}

// Meant takes apart the subject of an observation of SawAssets.
func Meant(subject string) (platform, pattern string) {
	platform, pattern, _ = strings.Cut(subject, "\x00")
	return platform, pattern
}
