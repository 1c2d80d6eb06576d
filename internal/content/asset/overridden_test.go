package asset

import (
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// TestOverridden: a rule for an exact path that loses something to a later pattern is a warning at its place, and only then.
func TestOverridden(t *testing.T) {
	for _, c := range []struct{ name, exact, later, want string }{
		{"processor", `processor = "texture"`, `processor = "copy"`, "6:13 processor"},
		{"the same", `processor = "copy"`, `processor = "copy"`, ""},
		{"nothing later", `processor = "texture"`, `settings = {}`, ""},
		{"id", `id = "called"`, `id = "{parent}/{stem}"`, "6:6 id"},
		{"inputs", `inputs = ["x.txt"]`, `inputs = ["*.txt"]`, "5:9 inputs"},
		{"inputs, removed", `inputs = ["x.txt"]`, `inputs = []`, "5:9 inputs"},
		{"needs", `needs = ["x.txt"]`, `needs = ["*.txt"]`, "5:9 needs"},
		{"needs of another processor", `needs = ["x.txt"]`, "needs = [\"*.txt\"]\nplatforms.tv.processor = \"copy\"", "5:9 needs"},
		{"on a platform", `platforms.pc.processor = "texture"`, `platforms.pc.processor = "copy"`, "5:9 processor"},
		{"settings", `settings = { mips = false }`, `settings = { mips = true }`, ""},
	} {
		for _, order := range []string{"pattern", "exact"} {
			text := "[project]\nname = \"test\"\n\n[[rules]]\nmatch = \"a/x.png\"\n" + c.exact + "\n[[rules]]\nmatch = \"a/*\"\n" + c.later + "\n"
			want := c.want
			if order == "exact" { // a later exact rule is meant
				text += "[[rules]]\nmatch = \"a/x.png\"\n" + c.exact + "\n"
				want = ""
			}
			p, l := project.Parse(project.File, []byte(text), project.Given{})
			if l.Err() != nil {
				t.Fatal(c.name, l)
			}
			_, l = Build(Input{Files: []string{"a/x.png", "a/y.png", "x.txt"}, Project: p, Processors: builtin()})
			var got []string
			for _, m := range l {
				if m.Code == diag.RuleOverridden {
					_, key, _ := strings.Cut(m.Text, `"`)
					key, _, _ = strings.Cut(key, `"`)
					got = append(got, strings.TrimPrefix(m.Pos.String(), "kiln.toml:")+" "+key)
				}
			}
			if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
				t.Errorf("%s, then %s: %q, not %q\n%v", c.name, order, got, want, l)
			}
		}
	}
}
