package build

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// excused are the assets that need not be as a clean build makes them: those that are held by ignore, and those that are made of their
// products. It checks that what the build, the state and the database say of the former is the same, and that what differs is named by a
// rule.
func (p *fixture) excused(b built) map[string]bool {
	p.Helper()
	v, err := p.open().Look(context.Background(), nil, nil)
	p.must(err)
	excused, failed, holds := map[string]bool{}, map[string]bool{}, map[string]bool{}
	asks := map[string][]string{} // by what is asked for: who asks
	what := ""
	for i := range v.Assets {
		for k := range v.Assets[i].Jobs {
			id, j := v.Assets[i].ID, &v.Assets[i].Jobs[k]
			failed[id] = failed[id] || j.State == view.Failed
			holds[id] = holds[id] || j.State == view.Held
			excused[id] = excused[id] || len(j.Ignored) > 0 // also a part of a job that failed
			for _, r := range j.Ignored {
				what += fmt.Sprintf("%s [%s]: %s\n", id, j.Platform, explain.Reason(&r))
				if r.Observation.Value == r.New || job.Ignored("", j.On, &r.Observation) == nil {
					p.Errorf("%s is held although %s, which no rule names", id, explain.Reason(&r))
				}
			}
			for _, x := range append([]view.JobView{*j}, j.Parts...) {
				for n := 0; x.Last != nil && n < len(x.Last.Observations); n++ {
					if o := x.Last.Observations[n]; o.Kind < engine.FirstLeaf {
						if a := v.Table().Find(explain.Asset(o)); a != nil {
							asks[a.ID] = append(asks[a.ID], id)
						}
					}
				}
			}
		}
	}
	held := slices.DeleteFunc(slices.Sorted(maps.Keys(holds)), func(id string) bool { return !holds[id] || failed[id] })
	if b.held > len(held) || b.held < len(held)-b.AssetsFailed { // one that could not be put in place has failed
		p.Errorf("%d assets are held by ignore, and the build counts %d: %q\n%s", len(held), b.held, held, what)
	}
	if got := strings.Fields(p.asked("SELECT asset FROM assets WHERE state = 'held by ignore' ORDER BY asset")); !slices.Equal(got, held) {
		p.Errorf("the database has %q as held by ignore, not %q\n%s", got, held, what)
	}
	for todo := slices.Collect(maps.Keys(excused)); len(todo) > 0; {
		id := todo[0]
		if todo = todo[1:]; !excused[id] {
			continue
		}
		for _, who := range asks[id] {
			if !excused[who] {
				excused[who] = true
				todo = append(todo, who)
			}
		}
	}
	maps.DeleteFunc(excused, func(_ string, is bool) bool { return !is })
	return excused
}

// ignores reports whether something may be held by ignore.
func (p *fixture) ignores() bool {
	for _, file := range []string{"kiln.toml", "assets/rules.toml", "assets/sub/rules.toml"} {
		if strings.Contains(p.read(file), "\nignore = [") {
			return true
		}
	}
	return false
}

// withoutAssets leaves out what assets made and said, and what is made of all products.
func (o *outcome) withoutAssets(ids map[string]bool) *outcome {
	of := func(file string) bool {
		_, name, _ := strings.Cut(file, "/")
		for id := range ids {
			if id = strings.TrimSuffix(id, "/"); name == id || strings.HasPrefix(name, id+".") {
				return true
			}
		}
		return strings.HasPrefix(file, "parcels/")
	}
	less := &outcome{
		outputs: maps.Clone(o.outputs), database: map[string][]string{},
		summary: report.Summary{Assets: o.summary.Assets, Jobs: o.summary.Jobs},
	}
	maps.DeleteFunc(less.outputs, func(file, content string) bool { return content == "folder" || of(file) })
	for _, table := range []string{"assets", "meta", "jobs", "observations", "products", "needs", "references"} {
		rows := slices.DeleteFunc(slices.Clone(o.database[table]), func(row string) bool {
			for id := range ids {
				if strings.HasPrefix(row, id) || strings.Contains(row, id) && (table == "needs" || table == "references") {
					return true
				}
			}
			return false
		})
		if len(rows) > 0 {
			less.database[table] = rows
		}
	}
	return less
}

// TestIgnore: what is held by ignore, is so in builds of few tasks and of all, for parts, requests, imports and twins.
func TestIgnore(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
-- kiln.toml --
[project]
name = "test"
[platforms.pc]
[platforms.web]
[[rules]]
match = "*.s"
ignore = ["h.txt"]
[[rules]]
match = "*.bin"
import = "script"
processor = "gather"
ignore = ["h.txt"]
-- assets/h.txt --
one
-- assets/a.s --
read h.txt
-- assets/b.s --
part x 1
read c.txt
use a.s
-- assets/c.txt --
text
-- assets/d.bin --
read h.txt
-- assets/e.s --
read c.txt
`)
	p.procs = append(p.procs, gather{p.procs[0].(*script)})
	held := func(want int, ran string) {
		t.Helper()
		b := p.build()
		if b.held != want || b.ran != ran {
			t.Errorf("%d held by ignore, not %d; ran %q, not %q", b.held, want, b.ran, ran)
		}
		if b := p.build0(); b.held != want || b.HeldByIgnore != want || b.ran != "" {
			t.Errorf("%d held by ignore afterwards, not %d; ran %q", b.HeldByIgnore, want, b.ran)
		}
	}
	p.build()
	p.write("assets/h.txt", "two")
	held(2, "h.txt")
	p.write("assets/c.txt", "others")
	held(2, "b.s c.txt e.s")
	p.write("assets/a.s", "read h.txt\ntext edited")
	held(1, "a.s b.s")
	b := p.buildWith(Request{Strict: true})
	if b.held != 0 || !strings.Contains(b.ran, "d.bin") {
		t.Errorf("%d held by ignore after --strict, which ran %q", b.held, b.ran)
	}
	held(0, "")
	p.remove("assets/h.txt")
	held(2, "")
	p.remove("assets/d.bin")
	held(1, "")
	p.write("assets/h.txt", "two")
	held(0, "")
	p.write("assets/f.s", "take h.txt")
	held(0, "f.s f.s#h.txt")
	p.write("assets/h.txt", "three")
	held(2, "h.txt")
	p.remove("assets/f.s") // with its part
	held(1, "")
}
