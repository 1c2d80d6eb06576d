package processors

import (
	"os"
	"regexp"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// TestSettingsHaveRows: the page of each processor has a table with all its settings.
func TestSettingsHaveRows(t *testing.T) {
	pages := map[string]string{"atlas": "atlases", "data": "data", "gltf": "models", "texture": "textures"}
	for _, p := range All() {
		page, ok := pages[p.Info().Name]
		if !ok {
			continue
		}
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range settings.Describe(p.Info()) {
			if !regexp.MustCompile("(?m)^\\| (?:[^|]*[ ,])?`" + regexp.QuoteMeta(s.Name) + "`[ ,][^|]*\\|").Match(text) {
				t.Errorf("docs/%s.md has no row for the setting %s", page, s.Name)
			}
		}
	}
}
