// Package manifest decides which products go into which parcel of a platform.
//
// It is a pure function. The rules:
//   - A parcel contains all products of the assets that it names and, transitively, those that they require. An optional
//     reference adds a product only if its asset follows.
//   - A product that several parcels need is in each of them. Parcels that share with another one leave to it what at
//     least two of them need, and what it contains anyway. What exactly the same split parcels need goes into a
//     parcel made for these.
//   - A parcel is closed: what its products require is in it or in the parcels that it names as needed.
//   - A parcel that requires something unavailable is reported with the chain that leads there, and not
//     replaced; neither are those that share content with it.
package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// UUID of an asset.
type UUID [16]byte

// Product is a resource that can be in parcels.
type Product struct {
	SubID      uint32
	Name       string // empty for the main one
	References []Reference
}

// Reference to another product.
type Reference struct {
	UUID     UUID
	SubID    uint32
	Required bool
}

// Asset has products.
type Asset struct {
	ID       string
	UUID     UUID
	Lost     string // why its products are not available: "failed"; "": they are
	Follows  bool   // its products are added wherever something refers to them, required or not
	Products []Product
}

// Parcel is a declared parcel.
type Parcel struct {
	Name       string
	Has        func(asset string) bool // whether it names an asset
	SharedWith string                  // the parcel that gets what several sharers need; "": none
	Split      bool
}

// Place identifies a product: the index of its asset, and its index in the asset.
type Place struct{ Asset, Product int }

// Contents is the contents of a parcel to write.
type Contents struct {
	Name     string
	Of       []int    // indexes of the parcels that it is made for: itself, or several split ones, with a generated name
	Needs    []string // parcels to be mounted before it, in order
	Products []Place  // in the order of assets and products
	All      []Place  // including what it left to others; nil for a parcel that was made by splitting
	Lacks    []Chain  // unavailable assets, at most mostLacks; the parcel must not be written then
	Missing  int      // their total number
	Held     string   // an incomplete parcel with which this one shares content, so that this one must not be written either; or ""
}

// Chain leads from a parcel to something that it lacks.
type Chain struct {
	Assets []string // ids, from one that the parcel names to the unavailable one
	Why    string   // "failed"
	Circle bool     // nothing is missing, but the last one is in the chain twice: a cycle, which has no load order
}

// String is the chain for display, the parcel first.
func (c Chain) String(parcel string) string { return parcel + " -> " + strings.Join(c.Assets, " -> ") }

// mostLacks is how many missing assets of a parcel are reported.
const mostLacks = 20

// Make fills the parcels of one platform. Assets and their products keep their order. The result is in the order of
// parcels, generated ones last, by name.
func Make(parcels []Parcel, assets []Asset) []Contents {
	m := newMaker(assets)
	all := make([]Contents, len(parcels))
	for i := range parcels {
		c := &all[i]
		c.Name, c.Of = parcels[i].Name, []int{i}
		c.All, c.Lacks, c.Missing = m.close(&parcels[i])
		c.Products = c.All
	}
	m.share(parcels, all)
	made := m.split(parcels, all)
	hold(parcels, all, made)
	return append(all, made...)
}

// product identifies one product.
type product struct {
	uuid UUID
	sub  uint32
}

type maker struct {
	assets   []Asset
	byUUID   map[UUID]int
	products map[product]Place
}

func newMaker(assets []Asset) *maker {
	m := &maker{assets: assets, byUUID: make(map[UUID]int, len(assets)), products: map[product]Place{}}
	for i := range assets {
		a := &assets[i]
		m.byUUID[a.UUID] = i
		for k := range a.Products {
			m.products[product{a.UUID, a.Products[k].SubID}] = Place{i, k}
		}
	}
	return m
}

// close returns everything that a parcel needs, breadth first, so that chains are short.
func (m *maker) close(p *Parcel) (all []Place, lacks []Chain, missing int) {
	type from struct{ at, by int } // by is the previous step, -1 for none
	var steps []from
	var queue []Place
	seen := map[Place]bool{}
	lost := map[string]bool{}
	chain := func(by int, last, why string) {
		if lost[last] {
			return
		}
		lost[last] = true
		if missing++; missing > mostLacks {
			return
		}
		ids := []string{last}
		for i := by; i >= 0; i = steps[i].by {
			if id := m.assets[steps[i].at].ID; id != ids[len(ids)-1] {
				ids = append(ids, id)
			}
		}
		slices.Reverse(ids)
		lacks = append(lacks, Chain{Assets: ids, Why: why})
	}
	add := func(at Place, by int) {
		if !seen[at] {
			seen[at] = true
			queue = append(queue, at)
			steps = append(steps, from{at.Asset, by})
		}
	}
	for i := range m.assets {
		a := &m.assets[i]
		if !p.Has(a.ID) {
			continue
		}
		if a.Lost != "" {
			chain(-1, a.ID, a.Lost)
		}
		for k := range a.Products {
			add(Place{i, k}, -1)
		}
	}
	for n := 0; n < len(queue); n++ {
		at := queue[n]
		for _, r := range m.assets[at.Asset].Products[at.Product].References {
			to, has := m.products[product{r.UUID, r.SubID}]
			i, known := m.byUUID[r.UUID]
			switch {
			case has && (r.Required || m.assets[i].Follows):
				add(to, n)
			case !r.Required || has:
			case !known:
				chain(n, uuidText(r.UUID), "is not in the project")
			case m.assets[i].Lost != "":
				chain(n, m.assets[i].ID, m.assets[i].Lost)
			default:
				chain(n, m.assets[i].ID, "has no such product on this platform")
			}
		}
	}
	sortPlaces(queue)
	if circle := m.circle(queue); circle != nil {
		lacks = append(lacks, Chain{Assets: circle, Why: "closes a circle of requirements", Circle: true})
		missing++
	}
	return queue, lacks, missing
}

// circle finds products that require each other in a cycle, and returns the ids of their assets, the first again at the
// end. A product that requires itself is not a cycle.
func (m *maker) circle(all []Place) []string {
	type step struct {
		at   Place
		next int // reference to follow
	}
	const open, done = 1, 2
	state := make(map[Place]int, len(all))
	for _, from := range all {
		if state[from] != 0 {
			continue
		}
		path := []step{{at: from}}
		state[from] = open
		for len(path) > 0 {
			top := &path[len(path)-1]
			refs := m.assets[top.at.Asset].Products[top.at.Product].References
			if top.next == len(refs) {
				state[top.at] = done
				path = path[:len(path)-1]
				continue
			}
			r := refs[top.next]
			top.next++
			to, ok := m.products[product{r.UUID, r.SubID}]
			if !ok || !r.Required || to == top.at {
				continue
			}
			switch state[to] {
			case 0:
				state[to] = open
				path = append(path, step{at: to})
			case open:
				var ids []string
				for i := len(path) - 1; i >= 0; i-- {
					ids = append(ids, m.assets[path[i].at.Asset].ID)
					if path[i].at == to {
						break
					}
				}
				slices.Reverse(ids)
				return append(ids, ids[0])
			}
		}
	}
	return nil
}

func sortPlaces(list []Place) {
	slices.SortFunc(list, func(a, b Place) int { return cmp.Or(cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Product, b.Product)) })
}

// share moves what sharers have in common to the parcel that they name.
func (m *maker) share(parcels []Parcel, all []Contents) {
	for s := range parcels {
		times := map[Place]int{}
		sharers := []int{}
		for i := range parcels {
			if parcels[i].SharedWith == parcels[s].Name {
				sharers = append(sharers, i)
				for _, at := range all[i].All {
					times[at]++
				}
			}
		}
		if len(sharers) == 0 {
			continue
		}
		in := map[Place]bool{}
		for _, at := range all[s].All {
			in[at] = true
		}
		for at, n := range times {
			if n > 1 {
				in[at] = true
			}
		}
		all[s].Products = sortedPlaces(in)
		for _, i := range sharers {
			rest := slices.DeleteFunc(slices.Clone(all[i].All), func(at Place) bool { return in[at] })
			if len(rest) < len(all[i].All) {
				all[i].Needs = []string{parcels[s].Name}
			}
			all[i].Products = rest
		}
	}
}

func sortedPlaces(set map[Place]bool) []Place {
	list := slices.Collect(maps.Keys(set))
	sortPlaces(list)
	return list
}

// split moves what split parcels have in common into parcels of their own, one for each set of
// parcels.
func (m *maker) split(parcels []Parcel, all []Contents) []Contents {
	users := map[Place][]int{}
	for i := range parcels {
		if parcels[i].Split {
			for _, at := range all[i].All {
				users[at] = append(users[at], i)
			}
		}
	}
	made := map[string]*Contents{}
	for at, by := range users {
		if len(by) < 2 {
			continue
		}
		name := madeName(parcels, by)
		if made[name] == nil {
			made[name] = &Contents{Name: name, Of: by}
		}
		made[name].Products = append(made[name].Products, at)
	}
	names := slices.Sorted(maps.Keys(made))
	// What a product requires is needed by all parcels that need the product, so it is in the parcel of the same or of
	// a larger set: larger ones first.
	order := slices.Clone(names)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(made[b].Of), len(made[a].Of)) })
	var list []Contents
	for _, name := range names {
		c := made[name]
		sortPlaces(c.Products)
		for _, other := range order {
			if len(made[other].Of) > len(c.Of) && includes(made[other].Of, c.Of) {
				c.Needs = append(c.Needs, other)
			}
		}
		list = append(list, *c)
	}
	for i := range parcels {
		if !parcels[i].Split {
			continue
		}
		all[i].Products = slices.DeleteFunc(slices.Clone(all[i].All), func(at Place) bool { return len(users[at]) > 1 })
		for _, name := range order {
			if slices.Contains(made[name].Of, i) {
				all[i].Needs = append(all[i].Needs, name)
			}
		}
	}
	return list
}

// includes reports whether a sorted set contains another one.
func includes(set, sub []int) bool {
	return !slices.ContainsFunc(sub, func(i int) bool { _, ok := slices.BinarySearch(set, i); return !ok })
}

// longestMade is how many names of parcels a generated name contains; a file's name has at most 255 bytes, a parcel's
// 64.
const longestMade = 3

// madeName joins the names of parcels with a plus, which declared names cannot contain. For many parcels it has the
// first name, the number of the others, and a hash of all.
func madeName(parcels []Parcel, by []int) string {
	var names []string
	for _, i := range by {
		names = append(names, parcels[i].Name)
	}
	all := strings.Join(names, "+")
	if len(names) > longestMade {
		return fmt.Sprintf("%s+%d+%s", names[0], len(names)-1, shortHash(all))
	}
	return all
}

// First is the first declared parcel in a parcel's name; if it differs from the name, the parcel was made by splitting.
func First(name string) string {
	first, _, _ := strings.Cut(name, "+")
	return first
}

// hold finds the parcels that share content with an incomplete one.
func hold(parcels []Parcel, all, made []Contents) {
	group := func(i int) string { // of parcels that share content
		switch p := &parcels[i]; {
		case p.Split:
			return "split"
		case p.SharedWith != "":
			return "with " + p.SharedWith
		case slices.ContainsFunc(parcels, func(o Parcel) bool { return o.SharedWith == p.Name }):
			return "with " + p.Name
		}
		return ""
	}
	first := map[string]string{}
	for i := range parcels {
		if g := group(i); g != "" && len(all[i].Lacks) > 0 && first[g] == "" {
			first[g] = all[i].Name
		}
	}
	for i := range parcels {
		if g := group(i); g != "" && len(all[i].Lacks) == 0 {
			all[i].Held = first[g]
		}
	}
	for i := range made {
		made[i].Held = first["split"]
	}
}
