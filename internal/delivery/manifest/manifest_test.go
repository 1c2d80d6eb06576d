package manifest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// project is written as lines "knight: !cape ?sound" : an asset with one product, what it requires and can do without. "knight lost: ..."
// cannot be had, "cape follows:" follows.
func project(t *testing.T, text string) []Asset {
	t.Helper()
	var assets []Asset
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		head, refs, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			t.Fatalf("no colon in %q", line)
		}
		words := strings.Fields(head)
		a := Asset{ID: words[0], UUID: uuidOf(words[0]), Products: []Product{{}}}
		switch {
		case len(words) > 1 && words[1] == "lost":
			a.Lost, a.Products = "failed", nil
		case len(words) > 1:
			a.Follows = true
		}
		for _, r := range strings.Fields(refs) {
			a.Products[0].References = append(a.Products[0].References, Reference{UUID: uuidOf(r[1:]), Required: r[0] == '!'})
		}
		assets = append(assets, a)
	}
	return assets
}

func uuidOf(id string) (u UUID) {
	copy(u[:], id)
	return u
}

func naming(name string, assets ...string) Parcel {
	return Parcel{Name: name, Has: func(id string) bool { return slices.Contains(assets, id) }}
}

// words writes contents as "name <needs> = assets | lacks".
func words(assets []Asset, all []Contents) []string {
	var list []string
	for _, c := range all {
		s := c.Name
		for _, n := range c.Needs {
			s += " <" + n + ">"
		}
		s += " ="
		for _, at := range c.Products {
			s += " " + assets[at.Asset].ID
		}
		for _, l := range c.Lacks {
			s += " | " + l.String(c.Name) + " " + l.Why
		}
		if c.Held != "" {
			s += " | held by " + c.Held
		}
		list = append(list, s)
	}
	return list
}

const castle = `
	level1: !knight !sky ?music
	level2: !knight !cave
	level3: !cave !knight
	knight: !cape
	cape:
	cave: ?bats
	sky:
	music follows: !strings
	strings:
	bats:
	alone:`

func TestMake(t *testing.T) {
	with := func(p Parcel, shared string) Parcel { p.SharedWith = shared; return p }
	split := func(p Parcel) Parcel { p.Split = true; return p }
	one, two, three := naming("one", "level1"), naming("two", "level2"), naming("three", "level3")
	for name, c := range map[string]struct {
		assets  string
		parcels []Parcel
		want    []string
	}{
		"in each": {castle, []Parcel{one, two}, []string{
			"one = level1 knight cape sky music strings", // music follows, and requires strings
			"two = level2 knight cape cave",              // bats are optional
		}},
		"optional ones that are named": {castle, []Parcel{naming("two", "level2", "bats")}, []string{"two = level2 knight cape cave bats"}},
		"shared": {castle, []Parcel{with(one, "common"), with(two, "common"), naming("common", "alone")}, []string{
			"one <common> = level1 sky music strings",
			"two <common> = level2 cave",
			"common = knight cape alone",
		}},
		"shared has it anyway": {castle, []Parcel{with(one, "common"), naming("common", "sky")}, []string{
			"one <common> = level1 knight cape music strings",
			"common = sky",
		}},
		"shared with nothing in common": {castle, []Parcel{with(one, "common"), with(naming("lone", "alone"), "common"), naming("common")}, []string{
			"one = level1 knight cape sky music strings", "lone = alone", "common =",
		}},
		"split": {castle, []Parcel{split(one), split(two), split(three), naming("rest", "alone")}, []string{
			"one <one+two+three> = level1 sky music strings",
			"two <one+two+three> <two+three> = level2",
			"three <one+two+three> <two+three> = level3",
			"rest = alone",
			"one+two+three = knight cape",
			"two+three <one+two+three> = cave",
		}},
		"chains": {`
			level1: !knight !lamp
			knight: !cape
			lamp:  !light !knight
			cape lost:
			light: !elsewhere ?nowhere
		`, []Parcel{naming("one", "level1"), naming("two", "cape"), naming("three", "light")}, []string{
			"one = level1 knight lamp light | one -> level1 -> knight -> cape failed | one -> level1 -> lamp -> light -> 656c7365-7768-6572-6500-000000000000 is not in the project",
			"two = | two -> cape failed",
			"three = light | three -> light -> 656c7365-7768-6572-6500-000000000000 is not in the project",
		}},
		"one that lacks something holds those it shares with": {`
			a: !b !c
			b lost:
			c:
			d: !c
			e:
		`, []Parcel{with(naming("one", "a"), "common"), with(naming("two", "d"), "common"), naming("common"), naming("alone", "e"), split(naming("x", "a")), split(naming("y", "c"))}, []string{
			"one <common> = a | one -> a -> b failed",
			"two <common> = d | held by one",
			"common = c | held by one",
			"alone = e",
			"x <x+y> = a | x -> a -> b failed",
			"y <x+y> = | held by x",
			"x+y = c | held by x",
		}},
		"a circle": {"a: !b !d\nb: !c ?a\nc: !a !c\nd:", []Parcel{naming("one", "d", "b"), naming("two", "d")}, []string{
			"one = a b c d | one -> a -> b -> c -> a closes a circle of requirements", "two = d",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assets := project(t, c.assets)
			if d := cmp.Diff(c.want, words(assets, Make(c.parcels, assets))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestMadeNames: a name that would be too long is the first one, how many more there are, and a hash of all.
func TestMadeNames(t *testing.T) {
	var parcels []Parcel
	for i := range 4 {
		parcels = append(parcels, naming(fmt.Sprintf("p%d", i), "a"))
	}
	if got := madeName(parcels, []int{0, 1, 2}); got != "p0+p1+p2" {
		t.Error(got)
	}
	a, b := madeName(parcels, []int{0, 1, 2, 3}), madeName(append(parcels, naming("x", "a")), []int{0, 1, 2, 4})
	if form := regexp.MustCompile(`^p0\+3\+[0-9a-f]{12}$`); a == b || !form.MatchString(a) || !form.MatchString(b) {
		t.Errorf("%s and %s", a, b)
	}
	for name, first := range map[string]string{"p0": "p0", "p0+p1+p2": "p0", a: "p0"} {
		if got := First(name); got != first {
			t.Errorf("%s is made for %s first", name, got)
		}
	}
}

// TestClosed: whatever the graph and the sharing, a parcel with those that it needs holds exactly what it would hold by itself or more, and
// nothing is both in a parcel and in one that it needs; needed ones are closed over those before them.
func TestClosed(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rnd.IntN(20)
		assets := make([]Asset, n)
		for i := range assets {
			assets[i] = Asset{ID: fmt.Sprint(i), UUID: UUID{byte(i)}, Products: make([]Product, 1+rnd.IntN(2))}
			for k := range assets[i].Products {
				assets[i].Products[k].SubID = uint32(k)
				for range rnd.IntN(3) {
					assets[i].Products[k].References = append(assets[i].Products[k].References, Reference{UUID: UUID{byte(rnd.IntN(n))}, Required: rnd.IntN(3) > 0})
				}
			}
		}
		var parcels []Parcel
		for i := range 1 + rnd.IntN(5) {
			p := Parcel{Name: fmt.Sprintf("p%d", i), Has: func(id string) bool { return (len(id)*7+int(id[0])+i*13+int(seed))%5 == 0 }}
			switch {
			case i > 0 && rnd.IntN(2) == 0:
				p.SharedWith = "p0"
			case i > 0:
				p.Split = rnd.IntN(2) == 0
			}
			parcels = append(parcels, p)
		}
		all := Make(parcels, assets)
		byName := map[string]*Contents{}
		for i := range all {
			byName[all[i].Name] = &all[i]
		}
		for i := range all {
			c := &all[i]
			have := map[Place]bool{}
			for _, name := range append(slices.Clone(c.Needs), c.Name) {
				for _, at := range byName[name].Products {
					if have[at] && name == c.Name {
						t.Errorf("seed %d: %s has %v, and so has one that it needs", seed, c.Name, at)
					}
					have[at] = true
				}
				for at := range have { // closed as far as it is mounted
					for _, r := range assets[at.Asset].Products[at.Product].References {
						if r.Required && !have[Place{int(r.UUID[0]), 0}] {
							t.Errorf("seed %d: %s requires %d, which is in none of %v", seed, c.Name, r.UUID[0], c.Needs)
						}
					}
				}
			}
			for _, at := range c.All {
				if !have[at] {
					t.Errorf("seed %d: %s and what it needs lack %v", seed, c.Name, at)
				}
			}
		}
	}
}

func BenchmarkMake(b *testing.B) {
	assets := make([]Asset, 100_000)
	for i := range assets {
		assets[i] = Asset{ID: fmt.Sprint(i), UUID: UUID{byte(i), byte(i >> 8), byte(i >> 16)}, Products: []Product{{}}}
		if i > 0 {
			assets[i].Products[0].References = []Reference{{UUID: assets[i/2].UUID, Required: true}}
		}
	}
	parcels := []Parcel{{Name: "all", Has: func(string) bool { return true }}}
	for b.Loop() {
		Make(parcels, assets)
	}
}
