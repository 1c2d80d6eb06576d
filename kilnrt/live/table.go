package live

import (
	"cmp"
	"maps"
	"slices"
)

// key is the permanent identity of a resource.
type key struct {
	uuid [16]byte
	sub  uint32
}

// table has the resources by all their keys.
type table struct {
	byID   map[uint32]*Resource
	byKey  map[key]*Resource
	byName map[string]*Resource
}

func newTable() *table {
	return &table{byID: map[uint32]*Resource{}, byKey: map[key]*Resource{}, byName: map[string]*Resource{}}
}

func (t *table) put(r *Resource) {
	t.remove(r.ID)
	t.byID[r.ID], t.byKey[key{r.UUID, r.SubID}], t.byName[r.name] = r, r, r
}

func (t *table) remove(id uint32) {
	r := t.byID[id]
	if r == nil {
		return
	}
	delete(t.byID, id)
	if k := (key{r.UUID, r.SubID}); t.byKey[k] == r {
		delete(t.byKey, k)
	}
	if t.byName[r.name] == r {
		delete(t.byName, r.name)
	}
}

// change is a change of resources; nil means removed. If whole is set, everything that it does not contain is removed.
type change struct {
	seq       uint64
	whole     bool
	resources map[uint32]*Resource
	reload    map[uint32]bool // to be loaded again although they are unchanged
	reloadAll bool
}

func newChange() *change {
	return &change{resources: map[uint32]*Resource{}, reload: map[uint32]bool{}}
}

// then returns both changes, one after the other. c may be nil. Neither is modified.
func (c *change) then(d *change) *change {
	if c == nil || d.whole {
		return d
	}
	both := &change{seq: max(c.seq, d.seq), whole: c.whole, resources: maps.Clone(c.resources), reload: maps.Clone(c.reload), reloadAll: c.reloadAll || d.reloadAll}
	maps.Copy(both.resources, d.resources)
	maps.Copy(both.reload, d.reload)
	return both
}

// apply applies the change to a table.
func (c *change) apply(t *table) {
	if c.whole {
		*t = *newTable()
	}
	for id, r := range c.resources {
		if r == nil {
			t.remove(id)
		}
	}
	for _, r := range c.resources {
		if r != nil {
			t.put(r)
		}
	}
}

// sorted returns all resources, sorted by name.
func (t *table) sorted() []Resource {
	all := make([]Resource, 0, len(t.byID))
	for _, r := range t.byID {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Resource) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.ID, b.ID)) })
	return all
}
