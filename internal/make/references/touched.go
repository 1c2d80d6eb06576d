package references

import (
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
)

// Touched are the assets of which, in a build of few tasks, a task is another one than before, or has another trace, by UUID.
func Touched(s *results.Set, few *plan.Few) map[string]*asset.Asset {
	all := map[string]*asset.Asset{}
	for _, x := range few.Leaving() {
		if !task.IsRequest(x.Of.ID) {
			all[x.Of.UUID] = x.Of
		}
	}
	for _, t := range s.Live {
		if t.Request() {
			continue
		}
		was, known := s.Scope.Tasks.Held(t.Key)
		if tr := s.TraceOf(t); tr != nil && (!known || was != tr.ID) {
			all[t.Asset.UUID] = t.Asset
		}
	}
	return all
}

// Referring finds the assets with products that referred, in the build before, to those of assets: ids by UUID. If that is not known, each
// has one without a name.
func Referring(s *results.Set, uuids []string) map[string][]string {
	db, opened, err := s.Database.Open()
	if err == nil {
		if ids, err := db.Referring(uuids); err == nil && opened.Reason == "" {
			return ids
		}
	}
	unknown := map[string][]string{}
	for _, uuid := range uuids {
		unknown[uuid] = []string{""}
	}
	return unknown
}
