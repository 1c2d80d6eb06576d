package contentdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

// TestNeeded: whatever builds hand in, the file knows as well as the model which assets nothing needs.
func TestNeeded(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		db := open(t, filepath.Join(t.TempDir(), "content.db"))
		now := map[string]Asset{}
		var parcels []Parcel
		for n := int64(1); n <= 25; n++ {
			platforms := [][]string{{"pc"}, {"pc", "mobile"}}[rnd.IntN(2)]
			b := begin(t, db, Start{Number: n, After: n - 1, Platforms: platforms, Project: "random", Output: "build"})
			for _, i := range rnd.Perm(12)[:rnd.IntN(6)] {
				id := fmt.Sprintf("a%d", i)
				if _, there := now[id]; there && rnd.IntN(3) == 0 {
					delete(now, id)
					b.Delete(id)
					continue
				}
				now[id] = anyAsset(rnd, id, platforms)
				b.Put(now[id])
			}
			was := parcels
			if rnd.IntN(2) == 0 {
				parcels = []Parcel{{Name: "p", Platform: "pc", File: "p.parcel"}}
				for id := range now {
					if rnd.IntN(4) == 0 {
						parcels[0].Products = append(parcels[0].Products, ParcelProduct{AssetID: id})
					}
				}
			}
			if rnd.IntN(2) == 0 {
				b.PutParcels(parcels)
			} else {
				parcels = was
			}
			finish(t, b)
			// What is said of assets and platforms that are not there goes with them.
			gone := func(id string) bool { _, ok := now[id]; return !ok }
			for id, a := range now {
				a.Jobs = slices.DeleteFunc(slices.Clone(a.Jobs), func(j Job) bool { return !slices.Contains(platforms, j.Platform) })
				for i := range a.Jobs {
					a.Jobs[i].Needs = slices.DeleteFunc(slices.Clone(a.Jobs[i].Needs), gone)
				}
				now[id] = a
			}
			for i := range parcels {
				parcels[i].Products = slices.DeleteFunc(slices.Clone(parcels[i].Products), func(p ParcelProduct) bool { return gone(p.AssetID) })
			}

			res, err := (&Reader{conn: db.conn}).query("SELECT id FROM asset WHERE needed = 0 ORDER BY id", nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, row := range res.Rows {
				got = append(got, row[0].(string))
			}
			if want := unneeded(now, parcels); !slices.Equal(got, want) {
				t.Fatalf("seed %d, build %d: nothing needs %v, and the file says %v", seed, n, want, got)
			}
		}
	}
}

// anyAsset needs others in any of the ways there are, some of which may not be there.
func anyAsset(rnd *rand.Rand, id string, platforms []string) Asset {
	uuid := func(id string) string { return fmt.Sprintf("%s-%d", id, rnd.IntN(2)) } // it may be another one the next time
	other := func() string { return fmt.Sprintf("a%d", rnd.IntN(12)) }
	a := Asset{ID: id, UUID: uuid(id), Path: fmt.Sprintf("files/%s-%d", id, rnd.IntN(2))}
	for _, platform := range platforms {
		j := Job{Platform: platform, Built: 1, Observations: saw(a.Path)}
		switch rnd.IntN(8) {
		case 0:
			j.Needs = []string{other()}
		case 1:
			j.Products = []Product{{File: id, References: []processor.Reference{ref(uuid(other()), 0), {UUID: uuid(other())}}}}
		case 2:
			j.Observations = append(j.Observations, Observation{Kind: SawFile, Subject: "files/" + uuid(other())}, Observation{Kind: SawMissing, Subject: "files/" + uuid(other())})
		}
		a.Jobs = append(a.Jobs, j)
	}
	return a
}

// unneeded are the assets that nothing else needs and no parcel has, sorted.
func unneeded(assets map[string]Asset, parcels []Parcel) []string {
	needed := map[string]bool{}
	need := func(by, name string) {
		for id, a := range assets {
			if by != id && (name == id || name == a.UUID || name == a.Path) {
				needed[id] = true
			}
		}
	}
	for id, a := range assets {
		for _, j := range a.Jobs {
			for _, on := range j.Needs {
				need(id, on)
			}
			for _, p := range j.Products {
				for _, r := range p.References {
					need(id, r.UUID)
				}
			}
			for _, o := range j.Observations {
				need(id, o.Subject)
			}
		}
	}
	for _, p := range parcels {
		for _, x := range p.Products {
			need("", x.AssetID)
		}
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(assets)) {
		if !needed[id] {
			all = append(all, id)
		}
	}
	return all
}

// TestNeededByAnotherName: an asset becomes what another one reads, a file that it has read itself before.
func TestNeededByAnotherName(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "content.db"))
	put := func(n int64, path string) {
		t.Helper()
		b := begin(t, db, Start{Number: n, After: n - 1, Platforms: []string{"pc"}})
		b.Put(Asset{ID: "a", UUID: "u", Path: path, Jobs: []Job{{Platform: "pc", Observations: saw("old", "new")}}})
		if n == 1 {
			b.Put(Asset{ID: "b", UUID: "v", Path: "b", Jobs: []Job{{Platform: "pc", Observations: saw("b", "new")}}})
		}
		finish(t, b)
		if needed, err := number(db.conn, "SELECT needed FROM asset WHERE id = 'a'"); err != nil || needed != bit(path == "new") {
			t.Errorf("%s: needed is %d, %v", path, needed, err)
		}
	}
	put(1, "old")
	put(2, "new")
	put(3, "old")
}
