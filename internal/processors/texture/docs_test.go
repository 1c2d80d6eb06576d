package texture

import (
	"os"
	"regexp"
	"strings"
	"testing"

	values "github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// TestDocs parses every example of the page, and holds its settings to those there are.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/textures.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 4 {
		t.Fatalf("only %d examples", len(blocks))
	}
	info := New().Info()
	for _, b := range blocks {
		text := "[project]\nname = \"test\"\n"
		for _, platform := range []string{"[platforms.pc]\n", "[platforms.mobile]\n"} {
			if !strings.Contains(string(b[1]), platform) {
				text += platform
			}
		}
		text += string(b[1])
		p, l := project.Parse(project.File, []byte(text), project.Given{})
		if l != nil {
			t.Errorf("%v\n%s", l, text)
			continue
		}
		var tables []*values.Table
		for _, platform := range p.Platforms {
			tables = append(tables, platform.Processor("texture"))
		}
		for _, r := range p.Rules {
			tables = append(tables, r.Settings)
			for _, platform := range r.Platforms {
				tables = append(tables, platform.Settings)
			}
		}
		for _, table := range tables {
			if _, l := values.Resolve(info, []values.Layer{{Table: table}}); l != nil {
				t.Errorf("%v", l)
			}
		}
	}
}

// Every setting has a row in the page's table.
func TestSettingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/textures.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range values.Describe(New().Info()) {
		if !regexp.MustCompile("(?m)^\\| (`\\w+` )*`" + s.Name + "` ").Match(page) {
			t.Errorf("docs/textures.md has no row for %s", s.Name)
		}
		d := strings.TrimSuffix(s.DefaultText(), ".0")
		if d != `""` && d != "[]" && !strings.Contains(string(page), "`"+s.Name+"` | `"+d+"` |") && s.Name != "cube" && s.Name != "slice_count" {
			t.Errorf("docs/textures.md has another default for %s than %s", s.Name, d)
		}
	}
}
