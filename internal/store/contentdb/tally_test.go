package contentdb

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// addedUp is what table asset says of an asset's jobs and products, asked of these themselves.
const addedUp = `SELECT id,
	coalesce((SELECT max(failed) FROM job j WHERE j.asset = a.no), 0), (SELECT max(built) FROM job j WHERE j.asset = a.no), (SELECT sum(seconds) FROM job j WHERE j.asset = a.no),
	(SELECT count(*) FROM product x WHERE x.asset = a.no), (SELECT coalesce(sum(size), 0) FROM product x WHERE x.asset = a.no),
	(SELECT group_concat(text, ', ') FROM (SELECT DISTINCT t.text FROM product x JOIN shared_text t ON t.no = x.type WHERE x.asset = a.no ORDER BY t.text)),
	(SELECT group_concat(name, ', ') FROM (SELECT DISTINCT p.name FROM job j JOIN platform p ON p.no = j.platform WHERE j.asset = a.no ORDER BY p.no))
	FROM asset a ORDER BY id`

const asWritten = `SELECT id, failed, built, seconds, products, bytes, t.text, p.text
	FROM asset a LEFT JOIN shared_list t ON t.no = a.types LEFT JOIN shared_list p ON p.no = a.platforms ORDER BY id`

// TestTally: whatever builds hand in, and for whichever platforms, table asset adds up what the other tables hold.
func TestTally(t *testing.T) {
	compared := 0
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		db := open(t, filepath.Join(t.TempDir(), "content.db"))
		for n := int64(1); n <= 25; n++ {
			platforms := [][]string{{"pc", "mobile"}, {"pc", "mobile", "web"}, {"web", "pc"}}[rnd.IntN(3)]
			s := Start{Number: n, After: n - 1, Platforms: platforms, Project: "random", Output: "build"}
			if n > 1 && rnd.IntN(2) == 0 {
				s.Building = platforms[:1+rnd.IntN(len(platforms))]
			}
			b := begin(t, db, s)
			for _, i := range rnd.Perm(12)[:rnd.IntN(6)] {
				if id := fmt.Sprintf("a%d", i); rnd.IntN(5) == 0 {
					b.Delete(id)
				} else {
					on := platforms
					if s.Building != nil {
						on = s.Building
					}
					b.Put(withProducts(rnd, id, on, n))
				}
			}
			finish(t, b)
			r := &Reader{conn: db.conn}
			got, err := r.query(asWritten, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			want, err := r.query(addedUp, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Rows, got.Rows); d != "" {
				t.Fatalf("seed %d, build %d (-rows +asset):\n%s", seed, n, d)
			}
			compared += len(got.Rows)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d assets were looked at", compared)
	}
}

// withProducts has none to two jobs on each platform, with none to two products each. Seconds are such that their sum is the same in any
// order.
func withProducts(rnd *rand.Rand, id string, platforms []string, build int64) Asset {
	a := Asset{ID: id, UUID: id, Path: id}
	for _, platform := range platforms {
		for k := range rnd.IntN(3) {
			j := Job{Platform: platform, Processor: fmt.Sprint("processor", k), Built: build * int64(rnd.IntN(2)), Failed: rnd.IntN(4) == 0, Seconds: float64(rnd.IntN(8)) / 8}
			for i := range rnd.IntN(3) {
				j.Products = append(j.Products, Product{SubID: uint32(10*rnd.IntN(2)*k + i), Type: []string{"", "texture", "atlas", "model"}[rnd.IntN(4)], File: id, Size: int64(rnd.IntN(1000))})
			}
			a.Jobs = append(a.Jobs, j)
		}
	}
	return a
}
