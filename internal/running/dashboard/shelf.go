package dashboard

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/delivery/release"
)

// shelf caches what is expensive to compute.
type shelf struct {
	facets    kept[*facets]
	types     kept[[]facet]
	folders   kept[[]facet]
	unused    kept[[]facet]
	counts    kept[int64] // numbers of assets that filters find
	problems  kept[int64]
	releases  kept[*since]
	manifests kept[*release.Manifest]
	pictures  pictures
}

func newShelf() *shelf {
	return &shelf{pictures: pictures{slots: make(chan struct{}, 2), byName: map[string]*list.Element{}}}
}

// kept caches values computed from the database of one build, by name.
type kept[V any] struct {
	mu      sync.Mutex // guards all fields below; held during computation, so that a value is computed once
	version string
	byName  map[string]V

	wait time.Duration // how long soon waits; 0: patience

	old    sync.Mutex // guards all fields below
	last   map[string]V
	making map[string]chan struct{} // closed when the value is ready
}

// maxKept is the number of cached values of one kind. The largest, of which there is one, is the list of unused assets:
// 10 MB for 100,000 assets.
const maxKept = 256

// of returns the value of a name for the current database, and computes it if necessary.
func (k *kept[V]) of(ctx context.Context, version func(context.Context) (string, error), name string, make func() (V, error)) (V, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := version(ctx)
	if v, ok := k.byName[name]; err != nil || ok && k.version == now {
		return v, err
	}
	if k.version != now || len(k.byName) >= maxKept {
		k.version, k.byName = now, map[string]V{}
	}
	v, err := make()
	if err == nil {
		k.byName[name] = v
	}
	return v, err
}

// patience is how long a page waits if there is a value of the build before: with 100,000 assets, computing takes 30 to
// 80 ms.
const patience = 200 * time.Millisecond

// soon is of, but may return the value of the build before if computing the new one takes longer than patience. The
// computation continues.
func (k *kept[V]) soon(ctx context.Context, version func(context.Context) (string, error), name string, make func(context.Context) (V, error)) (V, error) {
	k.old.Lock()
	v, ok := k.last[name]
	made := k.making[name]
	if ok && made == nil {
		made = k.begin(context.WithoutCancel(ctx), version, name, make)
	}
	k.old.Unlock()
	if !ok {
		return k.fresh(ctx, version, name, make)
	}
	select {
	case <-made:
	case <-ctx.Done():
	case <-time.After(cmp.Or(k.wait, patience)):
	}
	k.old.Lock()
	defer k.old.Unlock()
	if now, ok := k.last[name]; ok {
		v = now
	}
	return v, nil
}

// begin computes a value, and closes the channel when it is ready. old is held.
func (k *kept[V]) begin(ctx context.Context, version func(context.Context) (string, error), name string, do func(context.Context) (V, error)) chan struct{} {
	made := make(chan struct{})
	if k.making == nil {
		k.making = map[string]chan struct{}{}
	}
	k.making[name] = made
	go func() {
		k.fresh(ctx, version, name, do)
		k.old.Lock()
		defer k.old.Unlock()
		delete(k.making, name)
		close(made)
	}()
	return made
}

// fresh is of, and remembers the value for later builds.
func (k *kept[V]) fresh(ctx context.Context, version func(context.Context) (string, error), name string, make func(context.Context) (V, error)) (V, error) {
	v, err := k.of(ctx, version, name, func() (V, error) { return make(ctx) })
	k.old.Lock()
	defer k.old.Unlock()
	if k.last == nil || len(k.last) >= maxKept {
		k.last = map[string]V{}
	}
	if err == nil {
		k.last[name] = v
	}
	return v, err
}

// maxPictures is the size of the cached PNG files. A page of the list has 100 of about 4 KB.
const maxPictures = 48 << 20

// pictures caches decoded PNG files, the last used ones. At most two are decoded at a time, because builds need the
// processor too.
type pictures struct {
	slots chan struct{}

	mu     sync.Mutex // guards all fields below
	byName map[string]*list.Element
	used   list.List // the last used first
	bytes  int
}

type keptPicture struct {
	name string
	png  []byte
}

func (p *pictures) of(ctx context.Context, name string, make func() ([]byte, error)) ([]byte, error) {
	if png, ok := p.find(name); ok {
		return png, nil
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if png, ok := p.find(name); ok {
		return png, nil
	}
	png, err := make()
	if err == nil {
		p.keep(name, png)
	}
	return png, err
}

func (p *pictures) find(name string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byName[name]
	if !ok {
		return nil, false
	}
	p.used.MoveToFront(e)
	return e.Value.(keptPicture).png, true
}

func (p *pictures) keep(name string, png []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.byName[name]; ok || len(png) > maxPictures/4 {
		return
	}
	p.byName[name] = p.used.PushFront(keptPicture{name, png})
	for p.bytes += len(png); p.bytes > maxPictures; {
		last := p.used.Back()
		old := p.used.Remove(last).(keptPicture)
		delete(p.byName, old.name)
		p.bytes -= len(old.png)
	}
}
