package live

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// history is how many changes a platform remembers. 65,536 of 64 bytes are 4 MiB: one hour of 18 built resources a
// second.
const history = 1 << 16

// platform is the content of one platform, with recent changes.
type platform struct {
	name      string
	seq       uint64 // of the last change, from 1: games at 0 have no complete list
	whole     bool   // all of it is known, not only what games requested
	assets    map[string]*asset
	resources map[Key]*resource
	byID      map[uint32]*resource
	byName    map[string]*resource
	needers   map[Key]map[Key]bool // the resources that need it, required or not; also for resources that do not exist
	log       []change             // by seq
	forgotten uint64               // changes up to this seq are no longer in the log
}

// asset is an asset that has resources or fails.
type asset struct {
	keys    []Key
	failure *Failure // nil: it did not fail
}

// change records that a resource, or the failure of an asset, changed at seq.
type change struct {
	seq   uint64
	key   Key // UUID "": the change is of the asset
	id    uint32
	asset string
}

func newPlatform(name string) *platform {
	return &platform{name: name, seq: 1, assets: map[string]*asset{}, resources: map[Key]*resource{}, byID: map[uint32]*resource{},
		byName: map[string]*resource{}, needers: map[Key]map[Key]bool{}}
}

// update applies changes, and reports whether there were any. Each of its products has a number.
func (p *platform) update(u *Update, n *numbers) bool {
	p.whole = p.whole || u.Whole
	p.seq++
	before := len(p.log)
	gone, mended := u.Gone, u.Mended
	if u.Whole {
		gone, mended = p.missing(u)
	}
	for _, k := range gone {
		if r := p.resources[k]; r != nil {
			p.remove(r)
		}
	}
	for i := range u.Products {
		pr := &u.Products[i]
		if old := p.resources[pr.Key]; old == nil || !same(&old.Product, pr) {
			p.put(&resource{Product: *pr, id: n.of[pr.Key]})
		}
	}
	for _, id := range mended {
		p.fail(id, nil)
	}
	for i := range u.Failed {
		p.fail(u.Failed[i].Asset, &u.Failed[i])
	}
	if len(p.log) == before {
		p.seq--
		return false
	}
	if extra := len(p.log) - history; extra > history/4 { // not at each change, because it moves the rest
		p.forgotten = p.log[extra-1].seq
		p.log = append([]change(nil), p.log[extra:]...)
	}
	return true
}

// missing returns what is not in a whole update.
func (p *platform) missing(u *Update) (gone []Key, mended []string) {
	here, fails := make(map[Key]bool, len(u.Products)), map[string]bool{}
	for i := range u.Products {
		here[u.Products[i].Key] = true
	}
	for _, f := range u.Failed {
		fails[f.Asset] = true
	}
	for k := range p.resources {
		if !here[k] {
			gone = append(gone, k)
		}
	}
	for id, a := range p.assets {
		if a.failure != nil && !fails[id] {
			mended = append(mended, id)
		}
	}
	return gone, mended
}

// fail sets why an asset fails; nil: it does not fail.
func (p *platform) fail(id string, f *Failure) {
	a := p.asset(id)
	if (f == nil) != (a.failure == nil) || f != nil && !slices.EqualFunc(f.Messages, a.failure.Messages, sameMessage) {
		p.log = append(p.log, change{seq: p.seq, asset: id})
	}
	a.failure = f
	p.drop(id)
}

// asset returns the record of an asset, and creates it if necessary.
func (p *platform) asset(id string) *asset {
	a := p.assets[id]
	if a == nil {
		a = new(asset)
		p.assets[id] = a
	}
	return a
}

// drop deletes the record of an asset without resources and failure.
func (p *platform) drop(id string) {
	if a := p.assets[id]; a != nil && a.failure == nil && len(a.keys) == 0 {
		delete(p.assets, id)
	}
}

func same(a, b *Product) bool {
	return a.Asset == b.Asset && a.Name == b.Name && a.Kind == b.Kind && a.Hash == b.Hash && a.Size == b.Size && slices.Equal(a.Refs, b.Refs)
}

func sameMessage(a, b *diag.Message) bool {
	return a.Code == b.Code && a.Pos == b.Pos && a.Text == b.Text && a.Severity == b.Severity
}

// put adds a resource, or replaces the one with its key.
func (p *platform) put(r *resource) {
	old := p.resources[r.Key]
	if old != nil {
		p.forget(old)
	}
	p.resources[r.Key], p.byID[r.id], p.byName[r.name()] = r, r, r
	a := p.asset(r.Asset)
	a.keys = append(a.keys, r.Key)
	for _, ref := range r.Refs {
		if p.needers[ref.Key] == nil {
			p.needers[ref.Key] = map[Key]bool{}
		}
		p.needers[ref.Key][r.Key] = true
	}
	p.note(r)
	if old == nil {
		for k := range p.needers[r.Key] { // they must be sent with the new number
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

// forget removes a resource from all indexes.
func (p *platform) forget(r *resource) {
	a := p.asset(r.Asset)
	a.keys = slices.DeleteFunc(a.keys, func(k Key) bool { return k == r.Key })
	p.drop(r.Asset)
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
	p.log = append(p.log, change{seq: p.seq, key: r.Key, id: r.id, asset: r.Asset})
}

// news is the changes since some seq.
type news struct {
	seq     uint64
	changed []*resource // in load order
	removed []uint32
	order   []uint32 // all of changed, and everything that needs one of them or a removed one, in load order
	failed  []string // assets whose failure changed
	mended  []string
}

// since returns the changes after seq, each thing once; ok is false if the log does not reach back that
// far.
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

// tell returns the news about resources, given by key with their numbers.
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

// loadOrder returns the resources of a set in the order of their numbers, except that each comes after those that it
// requires, directly or indirectly. A cycle is broken at some place.
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

// everything returns all resources in load order.
func (p *platform) everything() []*resource {
	set := make(map[Key]bool, len(p.resources))
	for k := range p.resources {
		set[k] = true
	}
	return p.loadOrder(set)
}

// renumbered returns the same content with other numbers, and without history.
func (p *platform) renumbered(n *numbers) *platform {
	q := newPlatform(p.name)
	q.seq, q.whole = p.seq+1, p.whole
	for id, a := range p.assets {
		if a.failure != nil {
			q.asset(id).failure = a.failure
		}
	}
	q.forgotten = q.seq
	for _, r := range p.everything() {
		q.put(&resource{Product: r.Product, id: n.of[r.Key]})
	}
	q.log = nil
	return q
}

// idsOf returns the numbers of an asset's resources, ascending.
func (p *platform) idsOf(a *asset) []uint32 {
	var all []uint32
	for _, k := range a.keys {
		all = append(all, p.resources[k].id)
	}
	slices.Sort(all)
	return all
}

// words describes a failure in one line.
func (f *Failure) words() string {
	if len(f.Messages) == 0 {
		return f.Asset + " needs an asset that failed"
	}
	return f.Asset + " failed: " + f.Messages[0].Text
}
