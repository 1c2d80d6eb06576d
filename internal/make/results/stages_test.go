package results

import (
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// TestAsksAssets: what a job saw of other assets may differ in another stage, what it saw of files may not.
func TestAsksAssets(t *testing.T) {
	for _, c := range []struct {
		kinds []engine.Kind
		want  bool
	}{
		{nil, false},
		{[]engine.Kind{job.SawFile, job.SawExists, job.SawGlob, job.SawTool, job.SawEnv}, false},
		{[]engine.Kind{job.SawFile, job.SawAsset}, true},
		{[]engine.Kind{job.SawAssets}, true},
		{[]engine.Kind{job.SawSettings}, true},
		{[]engine.Kind{engine.FirstLeaf - 1}, true}, // the products of another job
	} {
		tr := &engine.Trace{}
		for _, k := range c.kinds {
			tr.Observations = append(tr.Observations, engine.Observation{Kind: k})
		}
		if got := asksAssets(tr); got != c.want {
			t.Errorf("%v: %t", c.kinds, got)
		}
	}
	if asksAssets(nil) {
		t.Error("a job that never ran")
	}
}

// TestElsewhere: assets are kept by platform, once for all stages, and listed in the order of their UUIDs.
func TestElsewhere(t *testing.T) {
	e := &Elsewhere{on: map[string]map[string]*asset.Asset{}}
	first := &asset.Asset{ID: "b.txt", UUID: "2"}
	e.add("pc", first)
	e.add("pc", &asset.Asset{ID: "a.txt", UUID: "1"})
	e.add("pc", &asset.Asset{ID: "b.txt in another stage", UUID: "2"})
	e.add("web", &asset.Asset{ID: "c.txt", UUID: "3"})
	var got []string
	for _, a := range e.On("pc") {
		got = append(got, a.ID)
	}
	if !slices.Equal(got, []string{"a.txt", "b.txt"}) || !e.Differs("pc", "2") || e.Differs("web", "2") || e.Differs("mobile", "2") {
		t.Errorf("%q", got)
	}
}
