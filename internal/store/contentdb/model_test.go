package contentdb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// model answers the named questions from the records themselves, by loops that anyone can follow.
type model struct {
	*project
	ids     map[string]*Asset
	uuids   map[string]*Asset
	primary map[string]*Asset // by the path of the primary source file
	sizes   map[string]int64  // of source files
}

func newModel(p *project) *model {
	m := &model{p, map[string]*Asset{}, map[string]*Asset{}, map[string]*Asset{}, map[string]int64{}}
	for i := range p.assets {
		a := &p.assets[i]
		m.ids[a.ID], m.uuids[a.UUID] = a, a
		if !a.Folder {
			m.primary[a.Path] = a
		}
	}
	for _, f := range p.files {
		m.sizes[f.Path] = f.Size
	}
	return m
}

// link is one way in which an asset needs another.
type linked struct{ from, to, kind string }

func (m *model) links() map[linked]bool {
	all := map[linked]bool{}
	for _, a := range m.assets {
		for _, j := range a.Jobs {
			for _, id := range j.Needs {
				all[linked{a.ID, id, "job"}] = true
			}
			for _, p := range j.Products {
				for _, r := range p.References {
					if to := m.uuids[r.UUID]; to != nil {
						all[linked{a.ID, to.ID, "product"}] = true
					}
				}
			}
			for _, o := range j.Observations {
				if to := m.primary[o.Subject]; to != nil && o.Kind == SawFile {
					all[linked{a.ID, to.ID, "source"}] = true
				}
			}
		}
	}
	maps.DeleteFunc(all, func(l linked, _ bool) bool { return l.from == l.to })
	return all
}

// product is the product that a file of every platform holds: its asset, and its place among the job's products.
func (m *model) product(file string) (*Asset, int) {
	for i := range m.assets {
		for k, p := range m.assets[i].Jobs[0].Products {
			if p.File == file {
				return &m.assets[i], k
			}
		}
	}
	return nil, 0
}

func line(cells ...any) string {
	for i, c := range cells {
		if c == nil {
			cells[i] = "·"
		}
	}
	return strings.TrimSuffix(fmt.Sprintln(cells...), "\n")
}

// platforms in the order of their names. The jobs on both are the same.
var bothPlatforms = []string{"mobile", "pc"}

func sortedBy[T any](rows []T, key func(T) string) []T {
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return rows
}

// answer gives the rows of a question, one a line. The argument is an asset id, the file of a product on every platform, or that of a
// parcel on pc.
func (m *model) answer(question, arg string) (rows []string) {
	a := m.ids[arg]
	switch question {
	case "assets":
		for _, a := range m.assets {
			state, products, bytes := "built", 0, int64(0)
			for _, j := range a.Jobs {
				if j.Failed {
					state = "failed"
				}
				for _, p := range j.Products {
					products, bytes = products+1, bytes+p.Size
				}
			}
			rows = append(rows, line(a.ID, a.Processor, state, products, bytes, a.Path, a.UUID))
		}
	case "asset-files":
		for _, o := range a.Jobs[0].Observations {
			switch o.Kind {
			case SawFile:
				rows = append(rows, line(o.Subject, o.Kind, 1, m.sizes[o.Subject], "pc mobile"))
			case SawGlob:
				rows = append(rows, line(o.Subject, o.Kind, nil, nil, "pc mobile"))
			}
		}
	case "asset-references", "referenced-by":
		for l := range m.links() {
			if question == "asset-references" && l.from == arg {
				rows = append(rows, line(l.to, l.kind, 1))
			} else if question == "referenced-by" && l.to == arg {
				rows = append(rows, line(l.from, l.kind, 1))
			}
		}
	case "asset-products":
		for _, platform := range bothPlatforms {
			for _, p := range a.Jobs[0].Products {
				rows = append(rows, line(platform, p.Name, p.Type, "build/"+platform+"/"+p.File, p.Size, p.Hash, p.SubID, a.Processor))
			}
		}
	case "needs-rebuild":
		for _, platform := range bothPlatforms {
			if j := a.Jobs[0]; j.Failed {
				rows = append(rows, line(platform, "when it changes", "it failed in build 1: "+j.Diagnostics[0].Text, a.Processor))
			} else {
				rows = append(rows, line(platform, "no", "up to date since build 1", a.Processor))
			}
		}
	case "product-files", "product-dependencies", "product-dependents":
		return m.ofProduct(question, arg)
	case "file-origin":
		return m.origin(arg)
	case "unused":
		return m.unused()
	case "failures":
		return m.failuresInOrder()
	}
	return sortedBy(rows, func(s string) string { return s })
}

func (m *model) ofProduct(question, file string) (rows []string) {
	a, k := m.product(file)
	p := a.Jobs[0].Products[k]
	for _, platform := range bothPlatforms {
		var on []string
		switch question {
		case "product-files":
			on = append(on, line(platform, "loose", "build/"+platform+"/"+p.File, p.Size))
			for _, parcel := range m.parcels {
				if parcel.Platform == platform && slices.Contains(parcel.Products, ParcelProduct{a.ID, p.SubID}) {
					on = append(on, line(platform, "parcel "+parcel.Name, "build/"+parcel.File, parcel.Size))
				}
			}
		case "product-dependencies":
			for _, r := range p.References {
				to := m.uuids[r.UUID]
				if ps := to.Jobs[0].Products; len(ps) > 0 {
					on = append(on, line(platform, to.ID, ps[0].Name, "build/"+platform+"/"+ps[0].File, 1, r.UUID, r.SubID))
				} else {
					on = append(on, line(platform, to.ID, nil, nil, 1, r.UUID, r.SubID))
				}
			}
		default:
			for _, from := range m.assets {
				for _, x := range from.Jobs[0].Products {
					for _, r := range x.References {
						if r.UUID == a.UUID && r.SubID == p.SubID {
							on = append(on, line(platform, from.ID, x.Name, "build/"+platform+"/"+x.File, 1))
						}
					}
				}
			}
		}
		rows = append(rows, sortedBy(on, func(s string) string { return s })...)
	}
	return rows
}

func (m *model) origin(file string) (rows []string) {
	on, direct := bothPlatforms, map[string]bool{}
	for _, parcel := range m.parcels {
		if parcel.File == file {
			on = []string{parcel.Platform}
			for _, x := range parcel.Products {
				direct[x.AssetID] = true
			}
		}
	}
	if len(on) > 1 {
		a, _ := m.product(file)
		direct[a.ID] = true
	}
	reached, queue := maps.Clone(direct), slices.Collect(maps.Keys(direct))
	for len(queue) > 0 {
		for _, id := range m.ids[queue[0]].Jobs[0].Needs {
			if !reached[id] {
				reached[id] = true
				queue = append(queue, id)
			}
		}
		queue = queue[1:]
	}
	for _, platform := range on {
		for _, first := range []bool{true, false} {
			for _, id := range slices.Sorted(maps.Keys(reached)) {
				var of []string
				for _, o := range m.ids[id].Jobs[0].Observations {
					if o.Kind == SawFile && direct[id] == first {
						of = append(of, line(platform, id, m.ids[id].Processor, o.Subject, bit(first)))
					}
				}
				rows = append(rows, sortedBy(of, func(s string) string { return s })...)
			}
		}
	}
	return rows
}

func (m *model) unused() (rows []string) {
	used := map[string]bool{}
	for l := range m.links() {
		used[l.to] = true
	}
	for _, p := range m.parcels {
		for _, x := range p.Products {
			used[x.AssetID] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.ids)) {
		if used[id] {
			continue
		}
		bytes := int64(0)
		for _, j := range m.ids[id].Jobs {
			for _, p := range j.Products {
				bytes += p.Size
			}
		}
		rows = append(rows, line(id, m.ids[id].Processor, bytes))
	}
	return rows
}

// failuresInOrder: causes first, those with more victims before. Victims have no victims here.
func (m *model) failuresInOrder() []string {
	victims := map[string]int{}
	for _, a := range m.assets {
		for _, d := range a.Jobs[0].Diagnostics {
			victims[d.Cause]++
		}
	}
	type failed struct{ key, row string }
	var rows []failed
	for _, a := range m.assets {
		for _, d := range a.Jobs[0].Diagnostics {
			for _, platform := range bothPlatforms {
				cause := any(nil)
				if d.Cause != "" {
					cause = d.Cause
				}
				key := fmt.Sprintf("%t %6d %s %s", d.Cause != "", 100_000-victims[a.ID], a.ID, platform)
				rows = append(rows, failed{key, line(a.ID, platform, d.Code, d.File, nil, nil, d.Text, nil, victims[a.ID], cause)})
			}
		}
	}
	var lines []string
	for _, r := range sortedBy(rows, func(f failed) string { return f.key }) {
		lines = append(lines, r.row)
	}
	return lines
}

// most are the hundred largest values of a product's size, or of a job's time.
func (m *model) most(question string) (rows []string) {
	var values []float64
	for _, a := range m.assets {
		for _, j := range a.Jobs {
			if question == "slowest" {
				values = append(values, j.Seconds)
			} else {
				for _, p := range j.Products {
					values = append(values, float64(p.Size))
				}
			}
		}
	}
	slices.Sort(values)
	slices.Reverse(values)
	for _, v := range values[:100] {
		rows = append(rows, line(v))
	}
	return rows
}

// check asks a question and compares the answer with the model's.
func (m *model) check(tb testing.TB, r *Reader, question, arg string) {
	tb.Helper()
	args := []string{arg}
	if arg == "" {
		args = nil
	}
	res, err := r.Run(context.Background(), question, args, 0)
	if err != nil {
		tb.Fatal(question, arg, err)
	}
	var got []string
	want := m.answer(question, arg)
	if question == "largest" || question == "slowest" { // of equal ones, which are shown is not said
		want = m.most(question)
	}
	for _, row := range res.Rows {
		switch question {
		case "largest":
			row = []any{float64(row[0].(int64))}
		case "slowest":
			row = row[:1]
		}
		got = append(got, line(row...))
	}
	if len(want) == 0 && question != "asset-references" && question != "referenced-by" && question != "asset-products" && !strings.HasPrefix(question, "product-depend") {
		tb.Errorf("%s %s: the model has no answer", question, arg)
	}
	if !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		tb.Errorf("%s %s: %d rows, want %d; from row %d on\n%q\nwant\n%q", question, arg, len(got), len(want), i, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
	}
}

// asked are arguments of each kind: an ordinary one, and the worst there are.
func (p *project) asked() map[string][]string {
	i := len(p.assets)/20*10 + 9
	for p.assets[i].Jobs[0].Failed {
		i += 10
	}
	level := p.assets[i].ID
	return map[string][]string{
		"":         {""},
		argAsset:   {level, palette, atlasID, p.assets[5].ID},
		argProduct: {level + ".ktx2", palette + ".ktx2", "ui.atlas"},
		argPath:    {level + ".ktx2", "ui.atlas", "parcels/pc/part7.parcel"},
	}
}

func (q Query) kind() string { return strings.Join(q.Args, "") }

// TestAnswers: each named question of a large project is answered as the model answers it.
func TestAnswers(t *testing.T) {
	p := large(2000)
	m := newModel(p)
	r := reader(t, p.database(t))
	for _, q := range Queries() {
		if q.Name == "placeholders" {
			continue // nothing stands for anything here
		}
		for _, arg := range p.asked()[q.kind()] {
			m.check(t, r, q.Name, arg)
		}
	}
}
