package dashboard

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/store/cas/castest"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/processor"
)

const large = 100_000 // assets

// writeLarge makes a content database of a large project: textures in 200 folders on two platforms, a level for every ten of
// them that needs the nine before it, one asset in a thousand that failed, and 1000 that fail because of one.
func writeLarge(tb testing.TB, path string, n int) {
	tb.Helper()
	db, _, err := contentdb.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := db.Begin(contentdb.Start{Number: 1, Started: time.Unix(1e9, 0), Project: "large", Output: "build", Roots: []string{"assets"}, Platforms: []string{"pc", "mobile"}})
	if err != nil {
		tb.Fatal(err)
	}
	files := make([]contentdb.File, n)
	for i := range n {
		files[i] = contentdb.File{Path: largeID(i), Size: 4096, Hash: largeHash(1, i)}
	}
	b.PutFiles(files)
	for i := range n {
		b.Put(largeAsset(i))
	}
	if err := b.Finish(contentdb.Summary{Seconds: 12, Assets: n, Jobs: 2 * n, Built: 2 * n, Products: 2 * n}); err != nil {
		tb.Fatal(err)
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

func largeID(i int) string {
	name := fmt.Sprintf("tile%06d.png", i)
	if i%10 == 9 {
		name = fmt.Sprintf("room%06d.json", i)
	}
	return fmt.Sprintf("world%d/level%03d/%s", i/20000, i/500, name)
}

func largeUUID(i int) string {
	return fmt.Sprintf("%08x-0000-5000-8000-%012x", uint32(i)*2654435761, i)
}

func largeHash(kind byte, i int) (h digest.Hash) {
	binary.BigEndian.PutUint64(h[:], uint64(i+1)*0x9e3779b97f4a7c15)
	h[8] = kind
	return h
}

func largeAsset(i int) contentdb.Asset {
	id := largeID(i)
	a := contentdb.Asset{ID: id, Path: id, Processor: "texture", UUID: largeUUID(i)}
	for _, platform := range []string{"pc", "mobile"} {
		j := contentdb.Job{
			Platform: platform, Processor: "texture", Key: largeHash(2, i), Settings: `{"mips":false,"srgb":true}`, Fingerprint: "texture 3", Built: 1, Reason: "it was never built",
			Seconds: float64(i%997) / 1000, PeakMemory: 1 << 20, Observations: []contentdb.Observation{{Kind: contentdb.SawFile, Subject: id, Hash: largeHash(1, i)}},
			Products: []contentdb.Product{{Type: "texture", File: id + ".ktx2", Size: int64(4096 + i*7919%10007), Hash: largeHash(4, i)}},
		}
		if i%10 == 9 {
			a.Processor, j.Processor, j.Products[0].Type = "level", "level", "level"
			for k := i - 9; k < i; k++ {
				j.Needs = append(j.Needs, largeID(k))
				j.Products[0].References = append(j.Products[0].References, processor.Reference{UUID: largeUUID(k), Required: true})
			}
		}
		if i%1000 == 500 {
			j.Failed, j.Products = true, nil
			j.Diagnostics = []contentdb.Diagnostic{{Message: *diag.Errorf(diag.ImageTruncated, diag.Pos{File: "assets/" + id}, "the file ends too early")}}
		}
		if i >= 50000 && i < 51000 && i != 50500 {
			j.Failed, j.Products = true, nil
			j.Diagnostics = []contentdb.Diagnostic{{Message: *diag.Errorf(diag.NeedsFailed, diag.Pos{}, "needs %s, which failed", largeID(50500)), Cause: largeID(50500)}}
		}
		a.Jobs = append(a.Jobs, j)
	}
	return a
}

// largePages are asked for in benchmarks and in the browser.
var largePages = []struct{ name, path string }{
	{"builds", "/"},
	{"build", "/builds/1"},
	{"content", "/content"},
	{"content, page 900", "/content?page=900"},
	{"content, by size", "/content?sort=size"},
	{"search, one of all", "/content?q=tile077777"},
	{"search, thousands", "/content?q=7+png"},
	{"search, none", "/content?q=nothing"},
	{"folder", "/content?folder=world2/"},
	{"failed", "/content?state=failed"},
	{"built in the last build", "/content?state=built"},
	{"type and platform", "/content?type=level&platform=mobile"},
	{"asset", "/asset/" + largeID(77777)},
	{"dependencies", "/asset/" + largeID(77779) + "?view=deps"},
	{"problems", "/problems"},
	{"parcels", "/parcels"},
}

// BenchmarkPages draws pages about 100,000 assets, each with the database's cache warm, as it is after the first page.
// "first ms" is the very first drawing, with a new connection.
func BenchmarkPages(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "content.db")
	writeLarge(b, path, large)
	d, err := New(Config{Dir: dir, Database: path, Blobs: new(castest.Memory)})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	draw := func(b *testing.B, path string) time.Duration {
		began := time.Now()
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusOK {
			b.Fatalf("GET %s: %d\n%.300s", path, w.Code, w.Body)
		}
		return time.Since(began)
	}
	for _, page := range largePages {
		first := draw(b, page.path)
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				draw(b, page.path)
			}
			b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/page")
			b.ReportMetric(0, "ns/op")
		})
	}
}
