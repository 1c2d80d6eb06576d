package dashboard

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/store/cas/castest"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
)

// TestParcelLacksOnTwoPlatforms: what keeps a parcel from being packed on two platforms is one problem on its page, and in the number
// beside its name.
func TestParcelLacksOnTwoPlatforms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "content.db")
	db, _, err := contentdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := db.Begin(contentdb.Start{Number: 1, Started: time.Unix(1e9, 0), Project: "p", Output: "build", Roots: []string{"assets"}, Platforms: []string{"pc", "mobile"}})
	if err != nil {
		t.Fatal(err)
	}
	b.Put(largeAsset(0))
	var sum contentdb.Summary
	for _, platform := range []string{"pc", "mobile"} {
		m := diag.Errorf(diag.ParcelLacks, diag.Pos{}, "parcel level [%s] was not packed: %s requires itself", platform, largeID(0))
		sum.Diagnostics = append(sum.Diagnostics, contentdb.Diagnostic{Message: *m, Asset: largeID(0), Platform: platform})
	}
	if err := b.Finish(sum); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{Dir: t.TempDir(), Database: path, Blobs: new(castest.Memory)})
	page, _ := get(t, s, "/problems", http.StatusOK)
	has(t, page, "1 root cause", "parcel level was not packed", ">1</")
	if strings.Contains(page, ">2</") || strings.Contains(page, "[pc]") {
		t.Error(page)
	}
}
