package live

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/kiln-pipeline/kiln/internal/diag"
)

// history is how many changes a platform remembers. 65,536 of 64 bytes are 4 MiB: an hour of a watcher that builds 18 resources a second.
const history = 1 << 16

// platform is the content of one platform, and what changed lately.
type platform struct {
	name      string
	seq       uint64 // of the last change
	assets    map[string]*asset
	resources map[Key]*resource
	byID      map[uint32]*resource
	byName    map[string]*resource
	needers   map[Key]map[Key]bool // who needs it, required or not; also of resources that do not exist
	log       []change             // by seq
	forgotten uint64               // changes up to this one are no longer in the log
}

type asset struct {
	keys    []Key
	failure diag.List
}

// change says that something about a resource is different since seq, or about whether an asset fails.
type change struct {
	seq   uint64
	key   Key // UUID "": it is about the asset
	id    uint32
	asset string
}

func newPlatform(name string) *platform {
	return &platform{name: name, assets: map[string]*asset{}, resources: map[Key]*resource{}, byID: map[uint32]*resource{},
		byName: map[string]*resource{}, needers: map[Key]map[Key]bool{}}
}

// update takes in what is different, and tells whether anything was. Each key in it has a number.
func (p *platform) update(u *Update, n *numbers) bool {
	p.seq++
	before := len(p.log)
	if u.Whole {
		here := make(map[string]bool, len(u.Assets))
		for i := range u.Assets {
			here[u.Assets[i].ID] = true
		}
		for _, id := range slices.Sorted(maps.Keys(p.assets)) {
			if !here[id] {
				p.replace(&Asset{ID: id}, n)
			}
		}
	}
	for _, id := range u.Gone {
		p.replace(&Asset{ID: id}, n)
	}
	for i := range u.Assets {
		p.replace(&u.Assets[i], n)
	}
	if len(p.log) == before {
		p.seq--
		return false
	}
	if extra := len(p.log) - history; extra > history/4 { // not at each change: it moves the rest
		p.forgotten = p.log[extra-1].seq
		p.log = append([]change(nil), p.log[extra:]...)
	}
	return true
}

// replace makes an asset what a says. A resource that is the same stays the same.
func (p *platform) replace(a *Asset, n *numbers) {
	was := p.assets[a.ID]
	if was == nil {
		was = &asset{}
	}
	now := &asset{failure: a.Failure}
	has := make(map[Key]bool, len(a.Products))
	for i := range a.Products {
		pr := &a.Products[i]
		now.keys = append(now.keys, pr.Key)
		has[pr.Key] = true
		old := p.resources[pr.Key]
		if old == nil || old.asset != a.ID || !same(&old.Product, pr) {
			p.put(&resource{Product: *pr, id: n.of[pr.Key], asset: a.ID})
		}
	}
	for _, k := range was.keys {
		// What another asset has taken over, as by a rename with a pin, is its own now.
		if r := p.resources[k]; r != nil && r.asset == a.ID && !has[k] {
			p.remove(r)
		}
	}
	if !slices.EqualFunc(was.failure, now.failure, sameMessage) {
		p.log = append(p.log, change{seq: p.seq, asset: a.ID})
	}
	if p.assets[a.ID] = now; len(now.keys) == 0 && now.failure == nil {
		delete(p.assets, a.ID)
	}
}

func same(a, b *Product) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Hash == b.Hash && a.Size == b.Size && slices.Equal(a.Refs, b.Refs)
}

func sameMessage(a, b *diag.Message) bool {
	return a.Code == b.Code && a.Pos == b.Pos && a.Text == b.Text && a.Severity == b.Severity
}

// put puts a resource in place of the one with its key, if there is one.
func (p *platform) put(r *resource) {
	old := p.resources[r.Key]
	if old != nil {
		p.forget(old)
	}
	p.resources[r.Key], p.byID[r.id], p.byName[r.name()] = r, r, r
	for _, ref := range r.Refs {
		if p.needers[ref.Key] == nil {
			p.needers[ref.Key] = map[Key]bool{}
		}
		p.needers[ref.Key][r.Key] = true
	}
	p.note(r)
	if old == nil {
		for k := range p.needers[r.Key] { // they name its number from now on
			if waiting := p.resources[k]; waiting != nil {
				p.note(waiting)
			}
		}
	}
}

func (p *platform) remove(r *resource) {
	p.forget(r)
	p.note(r)
}

// forget takes a resource out of all indexes.
func (p *platform) forget(r *resource) {
	delete(p.resources, r.Key)
	delete(p.byID, r.id)
	if p.byName[r.name()] == r {
		delete(p.byName, r.name())
	}
	for _, ref := range r.Refs {
		if delete(p.needers[ref.Key], r.Key); len(p.needers[ref.Key]) == 0 {
			delete(p.needers, ref.Key)
		}
	}
}

func (p *platform) note(r *resource) {
	p.log = append(p.log, change{seq: p.seq, key: r.Key, id: r.id, asset: r.asset})
}

// news is what is different since some moment.
type news struct {
	seq     uint64
	changed []*resource // in load order
	removed []uint32
	order   []uint32 // all of changed, and all that needs one of them or one that was removed, in load order
	failed  []string // assets that fail, differently than before
	mended  []string
}

// since is what is different after seq, once for each thing; ok is false if so much is no longer known.
func (p *platform) since(seq uint64) (n news, ok bool) {
	if seq < p.forgotten || seq > p.seq {
		return n, false
	}
	touched, assets := map[Key]uint32{}, map[string]bool{}
	for _, c := range p.log[sort.Search(len(p.log), func(i int) bool { return p.log[i].seq > seq }):] {
		if c.key.UUID != "" {
			touched[c.key] = c.id
		} else {
			assets[c.asset] = true
		}
	}
	n = p.tell(touched)
	for _, id := range slices.Sorted(maps.Keys(assets)) {
		if a := p.assets[id]; a != nil && a.failure != nil {
			n.failed = append(n.failed, id)
		} else {
			n.mended = append(n.mended, id)
		}
	}
	return n, true
}

// tell is what is to be said about resources, given by key with their numbers.
func (p *platform) tell(touched map[Key]uint32) news {
	n := news{seq: p.seq}
	all := map[Key]bool{}
	queue := make([]Key, 0, len(touched))
	for k, id := range touched {
		queue = append(queue, k)
		if p.resources[k] == nil {
			n.removed = append(n.removed, id)
		}
	}
	slices.Sort(n.removed)
	for len(queue) > 0 {
		k := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if all[k] {
			continue
		}
		all[k] = true
		for needer := range p.needers[k] {
			queue = append(queue, needer)
		}
	}
	for _, r := range p.loadOrder(all) {
		n.order = append(n.order, r.id)
		if _, ok := touched[r.Key]; ok {
			n.changed = append(n.changed, r)
		}
	}
	return n
}

// loadOrder is the resources of a set, by ascending number but for this: each comes after those that it requires, directly or by way of
// others. Where these go round in a circle, it is cut somewhere.
func (p *platform) loadOrder(set map[Key]bool) []*resource {
	roots := make([]*resource, 0, len(set))
	for k := range set {
		if r := p.resources[k]; r != nil {
			roots = append(roots, r)
		}
	}
	slices.SortFunc(roots, func(a, b *resource) int { return cmp.Compare(a.id, b.id) })
	seen := make(map[Key]bool, len(roots))
	out := make([]*resource, 0, len(roots))
	var visit func(r *resource)
	visit = func(r *resource) {
		if seen[r.Key] {
			return
		}
		seen[r.Key] = true
		for _, ref := range r.Refs {
			if need := p.resources[ref.Key]; need != nil && ref.Required {
				visit(need)
			}
		}
		if set[r.Key] {
			out = append(out, r)
		}
	}
	for _, r := range roots {
		visit(r)
	}
	return out
}

// everything is all resources in load order.
func (p *platform) everything() []*resource {
	set := make(map[Key]bool, len(p.resources))
	for k := range p.resources {
		set[k] = true
	}
	return p.loadOrder(set)
}

// renumbered is the same content with other numbers, and without a history.
func (p *platform) renumbered(n *numbers) *platform {
	q := newPlatform(p.name)
	q.seq, q.assets = p.seq+1, p.assets
	q.forgotten = q.seq
	for _, r := range p.everything() {
		q.put(&resource{Product: r.Product, id: n.of[r.Key], asset: r.asset})
	}
	q.log = nil
	return q
}
