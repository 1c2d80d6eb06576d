package build

import (
	"context"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// endProject is a project of which everything is made that the end of a build writes.
const endProject = `
-- kiln.toml --
[project]
name = "end"

[[parcels]]
name   = "all"
assets = ["**"]
-- assets/keep.txt --
text that stays
-- assets/sub/keep.txt --
text that stays
`

// withConstants has constants in a committed file, whose template has all that there is to be said of a resource.
const withConstants = `
[[constants]]
language = "lua"
file     = "game/ids.txt"
template = "ids.tmpl"
`

const constantsTemplate = "{{range .Parcels}}{{.Name}}\n{{range .Constants}}{{.ID}} {{.Asset}} {{.Product}}\n{{end}}{{end}}"

func endOf(t testing.TB, constants bool) *fixture {
	p := newProject(t, endProject)
	if constants {
		p.write("kiln.toml", p.read("kiln.toml")+withConstants)
		p.write("ids.tmpl", constantsTemplate)
	}
	return p
}

// An asset whose file is renamed may keep its UUID, which does not depend on case or the form of Unicode. What bears its name follows.
func TestRenameKeepsUUID(t *testing.T) {
	requireLinux(t, "two spellings of one name")
	for _, x := range []struct{ name, from, to string }{
		{"case", "a.txt", "A.txt"},
		{"script", "a.s", "A.s"},
		{"form", "sub/h\u00f6hle.txt", "sub/ho\u0308hle.txt"},
		{"folder", "old/a.txt", "Old/a.txt"},
		{"folder's form", "h\u00f6hle/a.txt", "ho\u0308hle/a.txt"},
	} {
		for _, constants := range []bool{false, true} {
			t.Run(x.name+map[bool]string{true: ", constants"}[constants], func(t *testing.T) {
				t.Parallel()
				p := endOf(t, constants)
				p.write("assets/"+x.from, "text a")
				p.build()
				from, to, _ := cutFirst(x.from, x.to)
				p.rename("assets/"+from, "assets/"+to)
				p.buildLocked(diag.IDsChange)
				b := p.build()
				if !strings.Contains(p.read("kiln.ids"), x.to+"\t") || strings.Contains(p.read("kiln.ids"), x.from+"\t") {
					t.Errorf("kiln.ids, with short %v:\n%s", b.short, p.read("kiln.ids"))
				}
				p.buildLocked("")
				p.nothing()
				p.rename("assets/"+to, "assets/"+from)
				p.build()
			})
		}
	}
}

// cutFirst is the first parts of two paths that differ, with all before them.
func cutFirst(a, b string) (from, to string, ok bool) {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range as {
		if as[i] != bs[i] {
			return strings.Join(as[:i+1], "/"), strings.Join(bs[:i+1], "/"), true
		}
	}
	return "", "", false
}

// buildLocked builds with --locked, which reports one message with a code about what is committed, or none.
func (p *fixture) buildLocked(code diag.Code) {
	p.Helper()
	before := p.read("kiln.ids")
	b, err := p.try(context.Background(), Request{Locked: true})
	p.must(err)
	found := diag.Code("")
	for _, m := range b.list {
		if m.Code == diag.IDsChange {
			found = m.Code
		}
	}
	if found != code || p.read("kiln.ids") != before {
		p.Errorf("--locked reported %q, not %q:\n%s", found, code, b.messages)
	}
}
