package live

import (
	"cmp"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

// plan is the work on resources, in load order, and its results. The game sees no change until commit.
type plan struct {
	l     *Library
	table *table
	since *change // if nil, only load what is not loaded
	ready map[[32]byte][]byte
	at    map[key]*step
	order []*step
}

// step is one resource of a plan.
type step struct {
	res     *Resource
	entry   *entry  // nil if it is not loaded yet
	needs   []*step // nil for one that does not exist
	planned bool    // everything that it needs is in the plan before it
	content bool    // its own content must be loaded
	touched bool    // must be loaded, or notified
	made    bool    // value is new
	value   any
	err     error // why it keeps its old value
}

func newPlan(l *Library, t *table, since *change) *plan {
	return &plan{l: l, table: t, since: since, at: map[key]*step{}}
}

// addLoaded plans everything that is loaded. A removed resource stays unchanged as long as the game holds it. The caller holds mu.
func (pl *plan) addLoaded() {
	entries := slices.SortedFunc(maps.Values(pl.l.loaded), func(a, b *entry) int { return cmp.Compare(a.res.ID, b.res.ID) })
	for _, e := range entries {
		if r := pl.table.byKey[e.key]; r != nil {
			if _, err := pl.add(r, 0); err != nil {
				s := &step{res: r, entry: e, touched: true, value: e.value.it, err: err}
				pl.at[e.key] = s
				pl.order = append(pl.order, s)
			}
		}
	}
}

// add plans a resource after those it needs.
func (pl *plan) add(r *Resource, depth int) (*step, error) {
	k := key{r.UUID, r.SubID}
	if s := pl.at[k]; s != nil {
		if !s.planned && s.err == nil {
			return nil, fmt.Errorf("%w: %q", kilnrt.ErrCycle, r.name)
		}
		return s, nil
	}
	if depth > kilnrt.MaxChain {
		return nil, fmt.Errorf("%w: more than %d resources require each other one after the other", kilnrt.ErrCycle, kilnrt.MaxChain)
	}
	s := &step{res: r, entry: pl.l.loaded[k]}
	pl.at[k] = s
	for i, id := range r.needs {
		n := pl.table.byID[id]
		if n == nil && i < r.Required {
			delete(pl.at, k)
			return nil, fmt.Errorf("%q needs %w: %d", r.name, kilnrt.ErrNotFound, id)
		}
		var need *step
		if n != nil {
			var err error
			if need, err = pl.add(n, depth+1); err != nil && i < r.Required {
				delete(pl.at, k)
				return nil, err
			}
		}
		s.needs = append(s.needs, need)
	}
	pl.judge(s)
	s.planned = true
	pl.order = append(pl.order, s)
	return s, nil
}

// judge decides whether a resource needs work.
func (pl *plan) judge(s *step) {
	e := s.entry
	if e == nil {
		s.content, s.touched = true, true
		return
	}
	s.value = e.value.it
	if pl.since == nil {
		return
	}
	other := e.res.Hash != s.res.Hash || e.res.kind != s.res.kind
	told := pl.since.whole || pl.since.resources[s.res.ID] != nil // otherwise it was refused before, and nothing has changed
	s.content = other && told || pl.since.reloadAll || pl.since.reload[s.res.ID]
	s.touched = s.content || len(s.needs) != len(e.needs)
	for i := 0; !s.touched && i < len(s.needs); i++ {
		n := s.needs[i]
		s.touched = n != nil && n.touched || (n == nil) != (e.needs[i] == nil) || n != nil && n.entry != e.needs[i]
	}
	s.content = s.content || s.touched && other
}

// contents returns the resources whose contents are needed.
func (pl *plan) contents() []*Resource {
	var all []*Resource
	for _, s := range pl.order {
		if s.err != nil || !s.touched {
			continue
		}
		if _, rebinds := s.value.(Rebinder); s.content || !rebinds {
			all = append(all, s.res)
		}
	}
	return all
}

// loadFresh loads what is not loaded. A resource that cannot be loaded fails those that require it; others continue without it.
func (pl *plan) loadFresh() {
	for _, s := range pl.order {
		if s.entry == nil {
			pl.load(s)
		}
	}
}

// run does the work. A resource that cannot be loaded keeps its old value.
func (pl *plan) run() {
	for _, s := range pl.order {
		if s.err != nil || !s.touched {
			continue
		}
		if !s.content && !slices.ContainsFunc(s.needs, func(n *step) bool { return n != nil && n.touched && n.err == nil }) && len(s.needs) == len(s.entry.needs) && pl.sameNeeds(s) {
			s.touched = false // what it needs did not change after all
			continue
		}
		if r, ok := s.value.(Rebinder); ok && !s.content {
			needs, err := s.given()
			if err == nil && guarded(func() error { return r.Rebind(needs) }) == nil {
				continue
			}
		}
		pl.load(s)
	}
}

// sameNeeds reports whether a resource has exactly what it needs.
func (pl *plan) sameNeeds(s *step) bool {
	for i, n := range s.needs {
		if (n == nil) != (s.entry.needs[i] == nil) || n != nil && n.entry != s.entry.needs[i] {
			return false
		}
	}
	return true
}

// given returns the needed resources for a loader.
func (s *step) given() ([]kilnrt.Need, error) {
	var out []kilnrt.Need
	for i, n := range s.needs {
		need := kilnrt.Need{ID: s.res.needs[i]}
		switch {
		case n != nil && (n.err == nil || n.entry != nil):
			need.Value = n.value
		case i < s.res.Required:
			return nil, fmt.Errorf("%q, which it needs: %w", n.res.name, n.err)
		}
		out = append(out, need)
	}
	return out, nil
}

// load calls the loader of a resource.
func (pl *plan) load(s *step) {
	s.err = func() error {
		needs, err := s.given()
		if err != nil {
			return err
		}
		pl.l.mu.Lock()
		load := pl.l.loaders[s.res.kind]
		if load == nil {
			load = pl.l.loaders[""]
		}
		pl.l.mu.Unlock()
		if load == nil {
			return fmt.Errorf("%w: %q", kilnrt.ErrNoLoader, s.res.kind)
		}
		res := *s.res
		content, err := pl.content(&res)
		if err != nil {
			return err
		}
		res.content = content
		return guarded(func() error {
			v, err := load(&Loading{Resource: res, Needs: needs, Old: s.value})
			if err == nil {
				s.value, s.made = v, true
			}
			return err
		})
	}()
}

// guarded calls code of the game. A panic is an error like any other.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &kilnrt.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

func (pl *plan) content(r *Resource) ([]byte, error) {
	if b, ok := pl.ready[r.Hash]; ok {
		return b, nil
	}
	return pl.l.content(r)
}

// drop returns the values that are not used.
func (pl *plan) drop() []any {
	var all []any
	for _, s := range pl.order {
		if s.made {
			all = append([]any{s.value}, all...)
		}
	}
	return all
}

// settle puts the value of a step in place, after those of what it needs, and returns the values that this replaces.
func (s *step) settle() (gone []any) {
	var of []*value
	for _, n := range s.needs {
		if n != nil && n.entry != nil {
			of = append(of, n.entry.value.use())
		}
	}
	old := s.entry.value
	if old == nil || s.made {
		s.entry.value = (&value{it: s.value, of: of}).use()
		return old.end()
	}
	old.of, of = of, old.of
	return endAll(of)
}

// commit applies everything, adds a reference to root, and returns the values without references. The caller holds mu
// and work.
func (pl *plan) commit(root *step) (gone []any) {
	var before, born []*entry
	for _, s := range pl.order {
		if s.err != nil {
			continue
		}
		fresh := s.entry == nil
		if fresh {
			s.entry = &entry{key: key{s.res.UUID, s.res.SubID}}
			pl.l.loaded[s.entry.key] = s.entry
			pl.l.nowUsed(s.res, s.entry.key)
			born = append(born, s.entry)
		}
		if fresh || s.touched || s.entry.res.Hash == s.res.Hash { // otherwise it was refused
			s.entry.res = s.res
		}
		if !s.touched {
			continue
		}
		gone = append(gone, s.settle()...)
		before = append(before, s.entry.needs...)
		s.entry.needs = nil
		for _, n := range s.needs {
			var e *entry
			if n != nil && n.entry != nil {
				e = n.entry
				e.refs++
			}
			s.entry.needs = append(s.entry.needs, e)
		}
	}
	if root != nil {
		root.entry.refs++
	}
	for _, e := range slices.Backward(born) {
		if e.refs == 0 { // what needed it was refused
			e.refs++
			before = append(before, e)
		}
	}
	for _, e := range before {
		gone = append(gone, pl.l.drop(e)...)
	}
	return gone
}
