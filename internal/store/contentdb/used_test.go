package contentdb

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// TestLost: of assets that fail and of those without a job it is not known what they make; one that a cache had is no such.
func TestLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db := open(t, path)
	b := begin(t, db, knightsStart(1, 0))
	for _, a := range knightsAssets() {
		if a.ID == "data/old.txt" {
			a.Jobs = nil
		}
		b.Put(a)
	}
	finish(t, b)
	lost, err := reader(t, path).Lost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(lost)), []string{"data/level.json", "data/menu.json", "data/old.txt", "data/world.json"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
