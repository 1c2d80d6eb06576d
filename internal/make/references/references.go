// Package references finds what products refer to although it does not exist: a product that another asset does not make. That is known
// once both are built, and no job depends on it: assets that refer to each other need not wait for each other.
package references

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/processor"
)

// Missing is a product that an asset refers to, and that the other asset does not make on some platforms.
type Missing struct {
	Asset     string        `json:"asset"` // with products that refer to it
	To        string        `json:"to"`    // that should make it
	SubID     uint32        `json:"sub_id"`
	Platforms []string      `json:"platforms"`
	Jobs      []string      `json:"jobs"` // those with products that refer to it, by subject
	Message   *diag.Message `json:"message"`
}

// Check compares references with products, as a build left them.
type Check struct {
	*results.Set
	Tree *outputs.Tree
	Few  *plan.Few // nil: the build checks everything

	made  map[place]*products
	words map[string]map[uint32]string // see wordsOf
}

// place is an asset on a platform.
type place struct {
	asset    *asset.Asset
	platform string
}

// products are what an asset makes on a platform.
type products struct {
	known  bool     // its jobs succeeded
	subIDs []uint32 // sorted
}

// Find finds what is missing: in a build of few tasks by what changed and by what was missing before. It is false if it has to go by all.
func (c *Check) Find(before []Missing) ([]Missing, bool) {
	c.made, c.words = map[place]*products{}, map[string]map[uint32]string{}
	if c.Few != nil {
		return c.changed(before)
	}
	return c.all(), true
}

func (c *Check) all() (list []Missing) {
	refers := func(p engine.Product) bool { return len(p.References) > 0 }
	seen := map[*asset.Asset]bool{}
	for _, t := range c.Live {
		if tr := c.TraceOf(t); tr != nil && !t.Request() && slices.ContainsFunc(tr.Products, refers) && !seen[t.Asset] {
			seen[t.Asset] = true
			list = append(list, c.find(t.Asset)...)
		}
	}
	return sorted(list)
}

func (c *Check) changed(before []Missing) ([]Missing, bool) {
	past := map[string][]*plan.Past{} // by UUID
	for i := range c.Few.Past {
		x := &c.Few.Past[i]
		past[x.Of.UUID] = append(past[x.Of.UUID], x)
	}
	ids := map[string]bool{}
	var moved []string // UUIDs
	for id, a := range Touched(c.Set, c.Few) {
		ids[a.ID] = true
		if c.moved(a, past[id]) {
			moved = append(moved, id)
		}
	}
	if len(moved) > 0 {
		slices.Sort(moved)
		for _, list := range Referring(c.Set, moved) {
			for _, id := range list {
				if id == "" {
					return nil, false
				}
				ids[id] = true
			}
		}
	}
	list := slices.DeleteFunc(slices.Clone(before), func(m Missing) bool { return ids[m.Asset] })
	for id := range ids {
		if a := c.Asset(id); a != nil {
			list = append(list, c.find(a)...)
		}
	}
	return sorted(list), true
}

func sorted(list []Missing) []Missing {
	slices.SortFunc(list, func(a, b Missing) int {
		return cmp.Or(strings.Compare(a.Asset, b.Asset), strings.Compare(a.To, b.To), cmp.Compare(a.SubID, b.SubID))
	})
	return list
}

// moved reports whether products of an asset came or went, or a job of it began or ceased to fail.
func (c *Check) moved(a *asset.Asset, past []*plan.Past) bool {
	type product struct {
		platform string
		failed   bool
		sub      uint32
	}
	was, now := map[product]bool{}, map[product]bool{}
	note := func(set map[product]bool, platform string, failed bool, list []engine.Product) {
		if failed {
			set[product{platform, true, 0}] = true
			return
		}
		for i := range list {
			set[product{platform, false, list[i].SubID}] = true
		}
	}
	for _, x := range past {
		if !x.Gone {
			note(was, x.Platform, x.Failed, x.Products)
		}
	}
	is := c.Asset(a.ID)
	for _, platform := range c.P.PlatformNames() {
		if is == nil {
			break // tasks of an asset that was removed are not to be found again
		}
		for _, t := range c.TasksOf(is, platform) {
			if tr := c.TraceOf(t); tr != nil {
				note(now, platform, tr.Outcome != engine.Succeeded, tr.Products)
			}
		}
	}
	return !maps.Equal(was, now)
}

// madeBy returns what a task's run made, and whether that is known: it and its job have no error of their own, and it is not as another
// build left it.
func (c *Check) madeBy(t *job.Task) ([]engine.Product, bool) {
	tr := c.TraceOf(t)
	if main := c.TraceOf(c.W.Task(t.Asset, t.On, "")); main != nil && main.Outcome != engine.Succeeded {
		return nil, false
	}
	if tr == nil || tr.Outcome != engine.Succeeded || c.Tree.Fails(t) || c.Scope == nil && !c.W.Task(t.Asset, t.On, "").Decided() {
		return nil, false
	}
	return tr.Products, true
}

// productsOf are those of an asset on a platform, as its jobs made them.
func (c *Check) productsOf(a *asset.Asset, platform string) *products {
	at := place{a, platform}
	if ps := c.made[at]; ps != nil {
		return ps
	}
	ps := &products{known: true}
	c.made[at] = ps
	for _, t := range c.TasksOf(a, platform) {
		list, ok := c.madeBy(t)
		ps.known = ps.known && ok
		for i := range list {
			if list[i].File != "" {
				ps.subIDs = append(ps.subIDs, list[i].SubID)
			}
		}
	}
	slices.Sort(ps.subIDs)
	return ps
}

// find checks the references of an asset.
func (c *Check) find(a *asset.Asset) (list []Missing) {
	for _, platform := range c.P.PlatformNames() {
		for _, t := range c.TasksOf(a, platform) {
			products, _ := c.madeBy(t)
			for i := range products {
				for _, r := range products[i].References {
					if products[i].File == "" {
						break // who adopts it refers to the same
					}
					if to := c.W.Find(processor.ByUUID(uuid.UUID(r.UUID).String())); to != nil && c.lacks(to, platform, r.SubID) {
						list = c.add(list, t, to, r)
					}
				}
			}
		}
	}
	return list
}

// lacks reports whether an asset makes no product with a sub id, as far as is known.
func (c *Check) lacks(a *asset.Asset, platform string, sub uint32) bool {
	ps := c.productsOf(a, platform)
	_, has := slices.BinarySearch(ps.subIDs, sub)
	return ps.known && !has
}

// add notes that a product to which a task's refer is missing. One that is required once is required.
func (c *Check) add(list []Missing, t *job.Task, to *asset.Asset, r engine.Reference) []Missing {
	a, platform, subject := t.Asset, t.Platform, c.W.Task(t.Asset, t.On, "").Subject()
	i := slices.IndexFunc(list, func(m Missing) bool { return m.To == to.ID && m.SubID == r.SubID })
	if i < 0 {
		i = len(list)
		list = append(list, Missing{Asset: a.ID, To: to.ID, SubID: r.SubID})
	}
	m := &list[i]
	required := r.Required || m.Message != nil && m.Message.Severity == diag.Error
	if !slices.Contains(m.Platforms, platform) {
		m.Platforms = append(m.Platforms, platform)
	}
	if !slices.Contains(m.Jobs, subject) {
		m.Jobs = append(m.Jobs, subject)
	}
	m.Message = c.message(m, a, to, required, i < mostNamed)
	return list
}

// message says what is missing.
func (c *Check) message(m *Missing, a, to *asset.Asset, required, named bool) *diag.Message {
	name, pos := unnamed, diag.Pos{File: c.W.DisplayAsset(a)}
	if named {
		name, pos = c.named(a, m.Platforms[0], to, m.SubID)
	}
	x := diag.Errorf(diag.ProductMissing, pos, "%s does not make %s [%s]", to.ID, name, strings.Join(m.Platforms, ", "))
	if !required {
		x.Severity = diag.Note
		return x.WithNote("the reference to it is optional: the game does without it")
	}
	var makes []string
	for _, t := range c.TasksOf(to, m.Platforms[0]) {
		for _, p := range c.TraceOf(t).Products {
			if p.File != "" {
				makes = append(makes, p.Name)
			}
		}
	}
	slices.Sort(makes)
	for i, name := range makes {
		makes[i] = job.ProductText(name)
	}
	const most = 8
	switch n := len(makes); {
	case n == 0:
		return x.WithHint("it makes nothing there; refer to another asset, or make the reference optional")
	case n > most:
		makes = append(makes[:most], "others")
	}
	return x.WithHint("it makes %s; correct the name, or make the reference optional", strings.Join(makes, ", "))
}
