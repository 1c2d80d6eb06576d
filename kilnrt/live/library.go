package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Library is the content of a platform in a watcher, and its loaded resources. All methods may be called by several goroutines at the same
// time. Loaders run one at a time, and must not call the library.
type Library struct {
	options Options
	http    *http.Client
	ctx     context.Context
	stop    context.CancelFunc
	ended   sync.WaitGroup

	work sync.Mutex // held while something is loaded, swapped or released; taken before mu

	mu        sync.Mutex // guards all below
	loaders   map[string]Loader
	table     *table // as of the last Poll
	news      *table // as of the last message of the watcher
	loaded    map[key]*entry
	order     []key // in the order of their first load
	ordered   map[key]bool
	incoming  *change             // changes from table to news, oldest first: arrived,
	fetching  *change             // fetching, incoming
	arrived   *change             // may be applied: all contents that it needs are in ready
	ready     map[[32]byte][]byte // contents for the next Poll
	epoch     string              // of news: the state to resume
	seq       uint64
	coming    string // epoch of the connected watcher
	level     bool   // news is of its epoch, or of that of the last one: numbers mean the same
	connected bool
	first     chan struct{} // closed when the first list arrives
	refused   error
	failures  map[string][]Message
	out       outbox
	requests  map[int64]chan *fromWatcher
	asked     int64

	outNews, stageNews chan struct{} // have a value when there may be work
	changed            chan struct{} // closed and replaced when a message arrives
}

// entry is a resource that is loaded.
type entry struct {
	key   key
	res   *Resource
	refs  int
	needs []*entry // nil for an optional one that does not exist
	value *value
}

// value is the result of a loader. It is unloaded when neither a resource nor another value uses it: one that was refused, or whose
// resource was removed, was made with values that may have been replaced meanwhile.
type value struct {
	it   any
	uses int
	of   []*value // what it was made with
}

// use adds a use. v may be nil.
func (v *value) use() *value {
	if v != nil {
		v.uses++
	}
	return v
}

// end ends a use, and returns what has no use any longer, in the order in which to unload it. v may be nil.
func (v *value) end() (gone []any) {
	if v == nil {
		return nil
	}
	if v.uses--; v.uses > 0 {
		return nil
	}
	return append([]any{v.it}, endAll(v.of)...)
}

func endAll(values []*value) (gone []any) {
	for _, v := range values {
		gone = append(gone, v.end()...)
	}
	return gone
}

// Handle is a reference to a loaded resource. The library counts them.
type Handle struct {
	l    *Library
	e    *entry
	once sync.Once
}

// Value returns the result of the loader, as of the last Poll.
func (h *Handle) Value() any {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	return h.e.value.it
}

// Resource returns the resource that it was loaded from.
func (h *Handle) Resource() Resource {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	return *h.e.res
}

// Release releases the handle. With the last one the resource is unloaded, and then the resources that only it needed. A second call does
// nothing.
func (h *Handle) Release() {
	h.once.Do(func() {
		h.l.work.Lock()
		gone := h.l.release(h.e)
		h.l.work.Unlock()
		unload(gone)
	})
}

// Register sets the loader of a type of resources. The type "" is for all types without a loader of their own.
func (l *Library) Register(productType string, load Loader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaders[productType] = load
}

// Find looks a resource up by its id.
func (l *Library) Find(id uint32) (Resource, error) {
	return l.find(func(t *table) *Resource { return t.byID[id] })
}

// FindName looks a resource up by its name.
func (l *Library) FindName(name string) (Resource, error) {
	return l.find(func(t *table) *Resource { return t.byName[name] })
}

// FindUUID looks a resource up by the UUID of its asset and the sub id of the product.
func (l *Library) FindUUID(uuid [16]byte, sub uint32) (Resource, error) {
	return l.find(func(t *table) *Resource { return t.byKey[key{uuid, sub}] })
}

func (l *Library) find(look func(*table) *Resource) (Resource, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := look(l.table); r != nil {
		return *r, nil
	}
	return Resource{}, kilnrt.ErrNotFound
}

// Len returns the number of resources.
func (l *Library) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.table.byID)
}

// Resources returns all resources, sorted by name.
func (l *Library) Resources() []Resource {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.sorted()
}

// Failures returns the assets that do not build, with their messages.
func (l *Library) Failures() map[string][]Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string][]Message, len(l.failures))
	for id, m := range l.failures {
		all[id] = m
	}
	return all
}

// Load loads a resource, and before it everything that it needs. If there is none, the watcher first builds its asset.
func (l *Library) Load(id uint32) (*Handle, error) {
	return l.load(fmt.Sprint(id), request{ID: &id}, func(t *table) *Resource { return t.byID[id] })
}

// LoadName loads a resource by its name. If there is none, the watcher first builds the asset.
func (l *Library) LoadName(name string) (*Handle, error) {
	return l.load(fmt.Sprintf("%q", name), request{Name: name}, func(t *table) *Resource { return t.byName[name] })
}

// LoadResource loads a resource that was already found.
func (l *Library) LoadResource(r Resource) (*Handle, error) {
	k := key{r.UUID, r.SubID}
	return l.load(fmt.Sprintf("%q", r.name), request{Name: r.name}, func(t *table) *Resource { return t.byKey[k] })
}

// load loads what look finds. If it finds nothing, the watcher is asked to build it.
func (l *Library) load(what string, ask request, look func(*table) *Resource) (*Handle, error) {
	h, err := l.loadFound(look)
	if errors.Is(err, kilnrt.ErrNotFound) && l.latest(look) == nil {
		if asked := l.ask(ask); asked != nil {
			return nil, fmt.Errorf("resource %s: %w: %w", what, kilnrt.ErrNotFound, asked)
		}
		h, err = l.loadFound(look)
	}
	if err != nil {
		return nil, fmt.Errorf("resource %s: %w", what, err)
	}
	return h, nil
}

// latest searches the newest table, which the next Poll will put in place.
func (l *Library) latest(look func(*table) *Resource) *Resource {
	l.mu.Lock()
	defer l.mu.Unlock()
	return look(l.news)
}

// loadFound loads the current resource. If there is none or its content no longer exists, it loads the coming one.
func (l *Library) loadFound(look func(*table) *Resource) (*Handle, error) {
	l.work.Lock()
	defer l.work.Unlock()
	for {
		l.mu.Lock()
		news := l.changed
		l.mu.Unlock()
		h, err := l.loadFrom(l.table, look)
		if errors.Is(err, errGone) || errors.Is(err, kilnrt.ErrNotFound) {
			h, err = l.loadFrom(l.news, look)
		}
		if !errors.Is(err, errGone) {
			return h, err
		}
		select { // its replacement is about to arrive
		case <-news:
		case <-l.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// loadFrom loads a resource and all that it needs, as listed in a table.
func (l *Library) loadFrom(t *table, look func(*table) *Resource) (*Handle, error) {
	l.mu.Lock()
	pl := newPlan(l, t, nil)
	root, err := (*step)(nil), kilnrt.ErrNotFound
	if r := look(t); r != nil {
		root, err = pl.add(r, 0)
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if pl.loadFresh(); root.err != nil {
		unload(pl.drop())
		return nil, root.err
	}
	l.mu.Lock()
	gone := pl.commit(root)
	h := &Handle{l: l, e: root.entry}
	l.mu.Unlock()
	unload(gone)
	return h, nil
}

// Swapped is the change of one resource in a Poll.
type Swapped struct {
	Resource Resource
	Kept     error // nil: the new one is in place; else the reason why the old one is kept
}

// Poll applies changes: call it once a frame. It returns what it changed, in load order; usually nothing, which takes
// 50 ns.
func (l *Library) Poll() []Swapped {
	l.mu.Lock()
	if l.arrived == nil {
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	swapped, gone := l.swapAlone()
	unload(gone)
	return swapped
}

func (l *Library) swapAlone() ([]Swapped, []any) {
	l.work.Lock()
	defer l.work.Unlock() // a loader may end its goroutine
	return l.swap()
}

// swap applies the change that has arrived.
func (l *Library) swap() ([]Swapped, []any) {
	l.mu.Lock()
	c, ready := l.arrived, l.ready
	if c == nil {
		l.mu.Unlock()
		return nil, nil
	}
	l.arrived, l.ready = nil, map[[32]byte][]byte{}
	c.apply(l.table)
	pl := newPlan(l, l.table, c)
	pl.ready = ready
	pl.addLoaded()
	l.mu.Unlock()

	pl.run()

	l.mu.Lock()
	defer l.mu.Unlock()
	gone := pl.commit(nil)
	done := applied{Type: "applied", Seq: c.seq}
	var swapped []Swapped
	for _, s := range pl.order {
		if !s.touched {
			continue
		}
		swapped = append(swapped, Swapped{*s.res, s.err})
		if s.err == nil {
			done.Swapped = append(done.Swapped, s.res.ID)
		} else {
			done.Refused = append(done.Refused, kept{ID: s.res.ID, Hash: fmt.Sprintf("%x", s.res.Hash), Reason: s.err.Error()})
		}
	}
	l.say(done)
	return swapped, gone
}

// release releases a handle, and returns the values without handles: a resource before what it needs. The caller holds
// work.
func (l *Library) release(e *entry) (gone []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drop(e)
}

// drop is release with mu held.
func (l *Library) drop(e *entry) (gone []any) {
	for queue := []*entry{e}; len(queue) > 0; queue = queue[1:] {
		e := queue[0]
		if e == nil {
			continue
		}
		if e.refs--; e.refs == 0 {
			delete(l.loaded, e.key)
			gone = append(gone, e.value.end()...)
			queue = append(queue, e.needs...)
		}
	}
	return gone
}

func unload(values []any) {
	for _, v := range values {
		if u, ok := v.(interface{ Unload() }); ok {
			u.Unload()
		}
	}
}

// content returns the content of a resource. It fetches the content unless that was done before.
func (l *Library) content(r *Resource) ([]byte, error) {
	if r.content != nil {
		return r.content, nil
	}
	l.mu.Lock()
	b, ok := l.ready[r.Hash]
	l.mu.Unlock()
	if ok {
		return b, nil
	}
	return l.fetch(r.Hash, r.Size)
}
