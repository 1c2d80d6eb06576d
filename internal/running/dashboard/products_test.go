package dashboard

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// TestDamagedProduct: bytes that are not those that were built are not sent.
func TestDamagedProduct(t *testing.T) {
	p := newProject(t)
	s := serve(t, p.config())
	body, _ := get(t, s, "/product/pc/text/credits.txt", http.StatusOK)
	h := digest.Of([]byte(body)).String()
	blob := filepath.Join(p.dir, ".kiln", "cas", h[:2], h[2:])
	if err := os.Chmod(blob, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob, []byte("damaged"), 0o666); err != nil {
		t.Fatal(err)
	}
	page, _ := get(t, s, "/product/pc/text/credits.txt", http.StatusNotFound)
	has(t, page, "text/credits.txt is no longer in the cache; the next build makes it again.")
}

// TestLimited: the page of a sound shows that true_peak limits its gain.
func TestLimited(t *testing.T) {
	p := newProject(t)
	p.write("assets/tones/high.wav", tone(44100))
	p.write("assets/tones/low.wav", tone(44100))
	p.write("assets/tones/rules.toml", "[[rules]]\nmatch = \"high.wav\"\nprocessor = \"sound\"\nsettings = { loudness = -3 }\n")
	p.build()
	s := serve(t, p.config())
	page, _ := get(t, s, "/asset/tones/high.wav", http.StatusOK)
	has(t, page, "loudness -3 asked, -8.", " reached: limited by true_peak")
	if page, _ := get(t, s, "/asset/tones/low.wav", http.StatusOK); strings.Contains(page, "limited") {
		t.Error("low.wav is not limited")
	}
}
