package contentdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// many is a project of n textures, each with one job, two observations and one product.
func many(n int) ([]File, []Asset) {
	hash := func(kind, i int) (h digest.Hash) {
		binary.BigEndian.PutUint64(h[:], uint64(i+1)*0x9e3779b97f4a7c15)
		h[8] = byte(kind) + 1
		return h
	}
	files, assets := make([]File, n), make([]Asset, n)
	for i := range n {
		id := fmt.Sprintf("sprites/level%03d/tile%06d.png", i/500, i)
		files[i] = File{Path: id, Size: 4096, Hash: hash(1, i)}
		a := Asset{
			ID: id, Path: id, Processor: "texture",
			UUID: fmt.Sprintf("%08x-0000-5000-8000-%012x", uint32(i)*2654435761, i),
			Jobs: []Job{{
				Platform: "pc", Key: hash(2, i), Settings: `{"mips":false,"srgb":true}`, Fingerprint: "texture 3",
				Built: 1, Reason: "it was never built", Seconds: float64(i%997) / 1000, PeakMemory: 1 << 20,
				Observations: []Observation{
					{Kind: SawFile, Subject: id, Hash: hash(1, i)},
					{Group: 1, Kind: SawTool, Subject: "encoder", Hash: hash(3, 0)},
				},
				Products: []Product{{Type: "texture", File: id + ".ktx2", Size: int64(4096 + i*7919%10007), Hash: hash(4, i)}},
			}},
		}
		assets[i] = a
	}
	return files, assets
}

// link makes every tenth asset a level that needs the nine before it.
func link(assets []Asset) {
	for i := 9; i < len(assets); i += 10 {
		j := &assets[i].Jobs[0]
		for _, tile := range assets[i-9 : i] {
			j.Needs = append(j.Needs, tile.ID)
			j.Products[0].References = append(j.Products[0].References, ref(tile.UUID, 0))
		}
	}
}

func write(tb testing.TB, path string, files []File, assets []Asset) {
	db, _, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := db.Begin(Start{Number: 1, Started: time.Unix(0, 0), Project: "bench", Output: "build", Roots: []string{"assets"}, Platforms: []string{"pc"}})
	if err != nil {
		tb.Fatal(err)
	}
	b.PutFiles(files)
	for _, a := range assets {
		b.Put(a)
	}
	if err := b.Finish(Summary{Seconds: 1, Assets: len(assets)}); err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkWrite writes a project anew, file and all: open, a build, close.
func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			files, assets := many(n)
			for b.Loop() {
				write(b, filepath.Join(b.TempDir(), "content.db"), files, assets)
			}
			rows := 6 * n // file, asset, job, two observations, product
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "assets/s")
		})
	}
}

// BenchmarkChange is a build that hands in one asset in a hundred.
func BenchmarkChange(b *testing.B) {
	const n = 100_000
	files, assets := many(n)
	path := filepath.Join(b.TempDir(), "content.db")
	write(b, path, files, assets)
	last := int64(1)
	for b.Loop() {
		db := open(b, path)
		build := begin(b, db, Start{Number: last + 1, After: last, Project: "bench", Output: "build", Platforms: []string{"pc"}})
		for i := int(last) % 100; i < n; i += 100 {
			build.PutFiles(files[i : i+1])
			build.Put(assets[i])
		}
		finish(b, build)
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		last++
	}
	b.ReportMetric(float64(n/100*b.N)/b.Elapsed().Seconds(), "assets/s")
}

// BenchmarkQueries asks each named question of 100,000 assets, for the first thousand rows. The floor is the
// shortest query there is.
func BenchmarkQueries(b *testing.B) {
	files, assets := many(100_000)
	link(assets)
	path := filepath.Join(b.TempDir(), "content.db")
	write(b, path, files, assets)
	r := reader(b, path)
	const level = "sprites/level100/tile050009.png"
	args := map[string][]string{argAsset: {level}, argProduct: {"build/pc/" + level + ".ktx2"}, argPath: {"build/pc/" + level + ".ktx2"}}
	ask := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	ctx := context.Background()
	ask("floor", func() error { _, err := r.RunSQL(ctx, "SELECT 1", 0); return err })
	for _, q := range Queries() {
		var with []string
		if len(q.Args) > 0 {
			with = args[q.Args[0]]
		}
		ask(q.Name, func() error { _, err := r.Run(ctx, q.Name, with, 1000); return err })
	}
	ask("deps", func() error { _, err := r.Deps(ctx, level, nil, true); return err })
	ask("rdeps", func() error { _, err := r.Rdeps(ctx, "sprites/level100/tile050001.png", nil, true); return err })
}
