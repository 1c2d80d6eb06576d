package job

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Work that does not depend on the platform runs once. Tasks with the same settings that differ only by platform are twins. A run that did
// not ask for its platform would have done the same on another one, if what it observed is the same there. So its trace, with the other
// platform's name, is compared with the world like any other.

// Twins are the tasks that equal one except for the platform, in the order of the platforms; nil if there are none.
func (w *World) Twins(et *engine.Task) []*engine.Task {
	if len(w.platforms) < 2 {
		return nil
	}
	t := et.World.(*Task)
	var all []*engine.Task
	for i := range t.Asset.Resolved {
		on := &t.Asset.Resolved[i]
		if on.Processor != t.On.Processor || !bytes.Equal(on.Canonical, t.On.Canonical) {
			continue // only the following code would find this out, which costs more
		}
		if twin := w.Task(t.Asset, on, t.Part); twin != nil && twin.preimageOn("").Sum() == t.preimageOn("").Sum() {
			all = append(all, &twin.Task)
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// Translate makes a trace on one platform that of its twin on another; nil if an observation has no
// counterpart there. The result has the ID of no trace yet.
func (w *World) Translate(tr *engine.Trace, from, to *engine.Task) *engine.Trace {
	was, now := from.World.(*Task).Platform, to.World.(*Task).Platform
	own := *tr
	own.ID, own.Why = 0, &engine.Reason{Subject: was}
	own.Observations = slices.Clone(tr.Observations)
	for i := range own.Observations {
		o := &own.Observations[i]
		platform, rest, _ := strings.Cut(o.Subject, "\x00")
		switch o.Kind {
		case engine.Outline, engine.Content, SawNamed, SawSettings, SawAssets, SawCatalogue, SawListed:
			if platform != was {
				return nil
			}
			o.Subject = now + "\x00" + rest
		case SawPackers:
			o.Subject = now
		case SawAsset:
			if a := w.Find(o.Subject); a != nil && !sameProcessors(a, was, now) {
				return nil // the list of them is recorded for all platforms together
			}
		}
	}
	own.Products = slices.Clone(tr.Products)
	for i := range own.Products {
		if p := &own.Products[i]; p.File != "" {
			p.File = now + strings.TrimPrefix(p.File, was)
		}
	}
	return &own
}

// sameProcessors reports whether an asset has the same processors on two platforms, in the same order.
func sameProcessors(a *asset.Asset, p, q string) bool {
	return slices.EqualFunc(a.On(p), a.On(q), func(x, y asset.Resolved) bool { return x.Processor == y.Processor })
}
