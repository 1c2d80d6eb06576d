package kilnrt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Loader converts a resource to what the game uses: a texture on the graphics card, a sound, a level. All handles of
// the resource share its result; if that has a method Unload(), it is called when the last handle is released.
//
// Resources of one parcel and one type that have the same bytes and need nothing are also loaded only once: a texture
// that a hundred models share is one texture on the graphics card. Loading.Resource is then the one that was loaded
// first.
type Loader func(*Loading) (any, error)

// Loading is the argument of a loader.
type Loading struct {
	Resource Resource
	Needs    []Need // the required ones, then the optional ones, each as the resource lists them
}

// Need is a resource that another one needs, loaded before it.
type Need struct {
	ID    uint32
	Value any // result of its loader; nil for an optional one that is skipped
}

// Library is a set of parcels mounted over each other, and their loaded resources. All methods may be called by several goroutines at the
// same time; a resource is loaded once, however many calls load it.
//
// All parcels of a library share one numbering: a mod or a DLC is built with the ids of its game.
type Library struct {
	mu      sync.Mutex
	layers  []*Parcel // the topmost is last; replaced, never modified, so that a reader may continue to use it
	loaders map[string]Loader
	loaded  map[content]*entry
}

// content identifies what is loaded once: a resource, or all resources of a parcel and a type that need nothing and are
// stored in the same place. Equal hashes are not enough, because a parcel may claim any hash.
type content struct {
	place                // index is -1 if it may be several resources
	typ                  int
	offset, stored, size int64
	codec                Codec
	crc                  uint32
}

func contentOf(r *Resource) content {
	if r.Required+r.Optional > 0 || r.Stored == 0 {
		return content{place: place{r.p, r.index}}
	}
	return content{place{r.p, -1}, r.typ, r.Offset, r.Stored, r.Size, r.Codec, r.CRC}
}

// place is one resource of one parcel.
type place struct {
	p     *Parcel
	index int
}

// entry is a resource that is loaded or being loaded. refs is guarded by the library. value and err are written before
// done is closed, and read after that.
type entry struct {
	at    content
	refs  int
	done  chan struct{}
	needs []*entry
	value any
	err   error
}

// NewLibrary returns an empty library.
func NewLibrary() *Library {
	return &Library{loaders: map[string]Loader{}, loaded: map[content]*entry{}}
}

// Register sets the loader of a type of resources. The type "" is for all types without a loader of their own.
func (l *Library) Register(productType string, load Loader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaders[productType] = load
}

// Mount mounts a parcel over the others: its resources are found in it from now on. Resources that are already loaded
// do not change.
func (l *Library) Mount(p *Parcel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.layers = append(slices.Clone(l.layers), p)
}

// Unmount removes a parcel. Close the parcel when everything that was loaded from it is released.
func (l *Library) Unmount(p *Parcel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.layers = slices.DeleteFunc(slices.Clone(l.layers), func(q *Parcel) bool { return p == q })
}

// Find looks a resource up by its id, in the topmost parcel that has it.
func (l *Library) Find(id uint32) (Resource, error) {
	return topmost(l.mounted(), func(p *Parcel) (Resource, error) { return p.ByID(id) })
}

// FindName looks a resource up by its name.
func (l *Library) FindName(name string) (Resource, error) {
	return topmost(l.mounted(), func(p *Parcel) (Resource, error) { return p.ByName(name) })
}

// FindUUID looks a resource up by the UUID of its asset and the sub id of the product.
func (l *Library) FindUUID(uuid [16]byte, sub uint32) (Resource, error) {
	return topmost(l.mounted(), func(p *Parcel) (Resource, error) { return p.ByUUID(uuid, sub) })
}

func (l *Library) mounted() []*Parcel {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.layers
}

// topmost searches the parcels from the top down. A parcel that is damaged at that place is an error: the content of a parcel
// below would be the wrong one.
func topmost(layers []*Parcel, find func(*Parcel) (Resource, error)) (Resource, error) {
	for _, p := range slices.Backward(layers) {
		if r, err := find(p); !errors.Is(err, ErrNotFound) {
			return r, err
		}
	}
	return Resource{}, ErrNotFound
}

// Handle is a reference to a loaded resource. The library counts them.
type Handle struct {
	l    *Library
	e    *entry
	once sync.Once
}

// Value returns the result of the loader.
func (h *Handle) Value() any { return h.e.value }

// Release releases the handle. With the last one the resource is unloaded, and then the resources that only it needed. A second call does
// nothing.
func (h *Handle) Release() { h.once.Do(func() { h.l.release(h.e) }) }

// Load loads the resource that Find finds, and before it everything that it needs. An optional need that is missing or damaged is skipped;
// an error of its loader is an error of Load, because the loader belongs to the game.
func (l *Library) Load(id uint32) (*Handle, error) {
	layers := l.mounted()
	r, err := topmost(layers, func(p *Parcel) (Resource, error) { return p.ByID(id) })
	if err != nil {
		return nil, fmt.Errorf("resource %d: %w", id, err)
	}
	return l.load(layers, r)
}

// LoadName loads a resource by its name.
func (l *Library) LoadName(name string) (*Handle, error) {
	layers := l.mounted()
	r, err := topmost(layers, func(p *Parcel) (Resource, error) { return p.ByName(name) })
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", name, err)
	}
	return l.load(layers, r)
}

// LoadResource loads a resource that was already found.
func (l *Library) LoadResource(r Resource) (*Handle, error) { return l.load(l.mounted(), r) }

// Order returns what Load loads, the resource itself last: see "Load order" in docs/formats/parcel.md.
func (l *Library) Order(id uint32) ([]Resource, error) {
	layers := l.mounted()
	r, err := topmost(layers, func(p *Parcel) (Resource, error) { return p.ByID(id) })
	if err != nil {
		return nil, fmt.Errorf("resource %d: %w", id, err)
	}
	pl := plan{layers: layers, at: map[place]*step{}}
	if _, err := pl.add(r, 0); err != nil {
		return nil, err
	}
	rs := make([]Resource, len(pl.order))
	for i, s := range pl.order {
		rs[i] = s.r
	}
	return rs, nil
}

// load first plans and then loads. The plan finds cycles, so that no two loads wait for each other.
func (l *Library) load(layers []*Parcel, r Resource) (*Handle, error) {
	pl := plan{layers: layers, at: map[place]*step{}}
	root, err := pl.add(r, 0)
	if err != nil {
		return nil, err
	}
	var mine []*entry // a reference to each, until the resource that needs it has its own
	defer func() {
		for _, e := range mine {
			l.release(e)
		}
	}()
	for _, s := range pl.order {
		e, load := l.enter(s)
		mine = append(mine, e)
		if load != nil {
			load()
		}
		<-e.done
		if e.err != nil {
			return nil, e.err
		}
		s.entry = e
	}
	l.mu.Lock()
	root.entry.refs++
	l.mu.Unlock()
	return &Handle{l: l, e: root.entry}, nil
}

// plan is the resources to load, in load order.
type plan struct {
	layers []*Parcel
	at     map[place]*step
	order  []*step
	needs  int // looked up so far
}

type step struct {
	r     Resource
	needs []*step // nil for an optional one that is skipped
	ready bool    // everything that it needs is in the plan before it
	entry *entry
}

// add plans a resource after those it needs. depth is limited, so that a hostile parcel cannot use up the stack. The
// number of needs that are looked up is limited too, because the needs of an optional resource are planned again if the
// first attempt failed.
func (pl *plan) add(r Resource, depth int) (*step, error) {
	k := place{r.p, r.index}
	if s := pl.at[k]; s != nil {
		if !s.ready {
			return nil, fmt.Errorf("%w: %d", ErrCycle, r.ID)
		}
		return s, nil
	}
	if depth > MaxChain {
		return nil, fmt.Errorf("%w: more than %d resources need each other one after the other", ErrDamaged, MaxChain)
	}
	if pl.needs += r.Required + r.Optional; pl.needs > MaxLookedUp {
		return nil, pl.tooMany()
	}
	s := &step{r: r}
	pl.at[k] = s
	for i := range r.Required + r.Optional {
		need, err := pl.need(r.Need(i), depth, i >= r.Required)
		if err != nil {
			delete(pl.at, k) // it may be reached again on another path
			return nil, fmt.Errorf("%d needs %d: %w", r.ID, r.Need(i), err)
		}
		s.needs = append(s.needs, need)
	}
	s.ready = true
	pl.order = append(pl.order, s)
	return s, nil
}

// need plans a need of a resource at a depth. If an optional need cannot be loaded, it returns nil and restores the
// plan.
func (pl *plan) need(id uint32, depth int, optional bool) (*step, error) {
	before := len(pl.order)
	r, err := topmost(pl.layers, func(p *Parcel) (Resource, error) { return p.ByID(id) })
	var s *step
	if err == nil {
		s, err = pl.add(r, depth+1)
	}
	if err == nil || !optional || pl.needs > MaxLookedUp {
		return s, err
	}
	for _, s := range pl.order[before:] {
		delete(pl.at, place{s.r.p, s.r.index})
	}
	pl.order = pl.order[:before]
	return nil, nil
}

func (pl *plan) tooMany() error {
	return fmt.Errorf("%w: more than %d needs are looked up for one resource", ErrDamaged, MaxLookedUp)
}

// enter adds a reference to a resource whose needs are entered. run loads it; it is nil if another call loads it.
func (l *Library) enter(s *step) (e *entry, run func()) {
	k := contentOf(&s.r)
	l.mu.Lock()
	if e := l.loaded[k]; e != nil {
		e.refs++
		l.mu.Unlock()
		return e, nil
	}
	e = &entry{at: k, refs: 1, done: make(chan struct{})}
	l.loaded[k] = e
	for _, n := range s.needs {
		if n != nil {
			n.entry.refs++
			e.needs = append(e.needs, n.entry)
		}
	}
	load := l.loaders[s.r.Type()]
	if load == nil {
		load = l.loaders[""]
	}
	l.mu.Unlock()

	in := &Loading{Resource: s.r}
	for i, n := range s.needs {
		need := Need{ID: s.r.Need(i)}
		if n != nil {
			need.Value = n.entry.value
		}
		in.Needs = append(in.Needs, need)
	}
	return e, func() { l.run(e, load, in) }
}

// PanicError is the error of a loader that panicked. All calls that waited for that load return it, and the resource can be loaded again.
type PanicError struct {
	Value any    // value of the panic
	Stack []byte // as runtime/debug.Stack writes it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the loader panicked: %v\n%s", e.Value, e.Stack)
}

// Unwrap returns the value of the panic, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// call calls a loader.
func call(load Loader, in *Loading) (value any, err error) {
	defer func() {
		if v := recover(); v != nil {
			value, err = nil, &PanicError{v, debug.Stack()}
		}
	}()
	return load(in)
}

// ran ends the wait for a load. A resource whose load failed is forgotten, so that a later call tries again.
func (l *Library) ran(e *entry) {
	l.mu.Lock()
	if e.err != nil {
		delete(l.loaded, e.at)
	}
	l.mu.Unlock()
	close(e.done)
}

// run calls the loader. If the loader ends its goroutine (runtime.Goexit), the waiting calls end as well.
func (l *Library) run(e *entry, load Loader, in *Loading) {
	e.err = fmt.Errorf("kilnrt: the loader of resource %d did not return", in.Resource.ID)
	defer l.ran(e)
	if load == nil {
		e.err = fmt.Errorf("%w: %q of resource %d", ErrNoLoader, in.Resource.Type(), in.Resource.ID)
		return
	}
	value, err := call(load, in)
	if err != nil {
		err = fmt.Errorf("resource %d: %w", in.Resource.ID, err)
	}
	e.value, e.err = value, err
}

// release removes a reference, and unloads everything without references: a resource before what it needs.
func (l *Library) release(e *entry) {
	var gone []*entry
	l.mu.Lock()
	for queue := []*entry{e}; len(queue) > 0; queue = queue[1:] {
		if queue[0].refs--; queue[0].refs == 0 {
			if l.loaded[queue[0].at] == queue[0] { // if it failed, another attempt may be in its place
				delete(l.loaded, queue[0].at)
			}
			gone = append(gone, queue[0])
			queue = append(queue, queue[0].needs...)
		}
	}
	l.mu.Unlock()
	for _, e := range gone {
		if u, ok := e.value.(interface{ Unload() }); ok && e.err == nil {
			u.Unload()
		}
	}
}
