package job

import (
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// JobsOf are the first jobs of the assets that match on the platforms, or on all if none are given.
func (w *World) JobsOf(match func(*asset.Asset) bool, platforms []string) (jobs []*Task) {
	for k := range w.Assets.Assets {
		a := &w.Assets.Assets[k]
		if !match(a) {
			continue
		}
		for i := range a.Resolved {
			if len(platforms) == 0 || slices.Contains(platforms, a.Resolved[i].Platform) {
				jobs = append(jobs, w.Task(a, &a.Resolved[i], ""))
			}
		}
	}
	return jobs
}

// WithParts returns whether a task is one of these jobs, a part of one of them, or a request.
func WithParts(jobs []*Task) func(*engine.Task) bool {
	ids := make(map[ID]bool, len(jobs))
	for _, t := range jobs {
		ids[t.ID()] = true
	}
	return func(et *engine.Task) bool {
		t := et.World.(*Task)
		return ids[t.ID()] || t.Request()
	}
}

// KnowOutputs tells w which outputs of the last build are still as it left them. present has those that changed; one whose blob is spoilt
// counts as changed, because it may be a hard link to it.
func (w *World) KnowOutputs(outputs []state.Output, present map[string]source.Presence, spoilt map[digest.Hash]bool) {
	for _, o := range outputs {
		p := present[o.File]
		if spoilt[o.Hash] {
			p = source.Differs
		}
		if p == source.Same {
			w.Outputs[o.File] = o
		} else {
			w.Edited[o.File] = p
		}
	}
}
