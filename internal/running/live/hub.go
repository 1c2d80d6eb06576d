package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// Hub has the content of all platforms and the connected games. Its methods may be called by several goroutines.
type Hub struct {
	project string
	content Content
	used    *used.Log

	mu        sync.Mutex // guards all fields below, and some fields of games
	epoch     string
	platforms []*platform // in the order of the project file
	numbers   *numbers
	file      *ids.File
	whole     bool // there was an Update with Whole
	games     map[*game]bool
	strangers int // number of connections before their hello
	open      int // number of all connections
	lastGame  int
	saved     []savedAt
	latencies []Latency
	lines     []Line
	watchers  map[chan struct{}]bool
	beat      time.Duration
}

// savedAt is when the files were saved that caused a change of a platform.
type savedAt struct {
	platform string
	seq      uint64
	at       time.Time
}

// Latency is the time from a saved file until the game had swapped the result.
type Latency struct {
	Game     int // number of the game
	Platform string
	Took     time.Duration
	At       time.Time // time of the swap
	Swapped  int       // number of resources
}

// Line is a line that a game logged, or a note about a game.
type Line struct {
	At    time.Time
	Game  int
	Level string
	Text  string
}

const (
	keptLines     = 1000
	keptLatencies = 200
)

// Options are the parameters of a hub.
type Options struct {
	Project   string   // name of the project
	Platforms []string // the first is for games that name none
	Content   Content
	IDs       *ids.File // kiln.ids; nil: there is none
	Used      *used.Log // stores what games loaded; may be nil

	// Beat is how often games get a sign of life, at least; 0: every 15 seconds.
	Beat time.Duration
}

// NewHub makes a hub without content. Call Update with Whole for each platform as soon as all of its content is known: until then, games that
// have content of another hub get none of this one.
func NewHub(o Options) *Hub {
	h := &Hub{project: o.Project, content: o.Content, used: o.Used, epoch: rand.Text(), file: o.IDs, games: map[*game]bool{},
		watchers: map[chan struct{}]bool{}, beat: cmp.Or(o.Beat, beatEvery)}
	if h.file == nil {
		h.file = &ids.File{}
	}
	for _, name := range o.Platforms {
		h.platforms = append(h.platforms, newPlatform(name))
	}
	return h
}

// platform returns a platform by name; "" is the first. The caller holds the lock.
func (h *Hub) platform(name string) *platform {
	for _, p := range h.platforms {
		if p.name == name || name == "" {
			return p
		}
	}
	return nil
}

// Update applies changes of some platforms, by name. Games receive them when they can.
func (h *Hub) Update(updates map[string]*Update) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.number(updates); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(updates)) {
		if name != "" && h.platform(name) == nil { // kiln.toml has a new platform
			p := newPlatform(name)
			p.whole = h.whole
			h.platforms = append(h.platforms, p)
		}
	}
	for _, p := range h.platforms {
		u := updates[p.name]
		if u == nil || !p.update(u, h.numbers) {
			continue
		}
		if !u.Saved.IsZero() {
			h.saved = append(h.saved, savedAt{p.name, p.seq, u.Saved})
			h.saved = h.saved[max(0, len(h.saved)-1000):]
		}
	}
	h.wakeAll()
	return nil
}

// Has reports whether there is a resource on a platform.
func (h *Hub) Has(platform string, k Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.platform(platform)
	return p != nil && p.resources[k] != nil
}

// number assigns a number to each resource of the updates.
func (h *Hub) number(updates map[string]*Update) error {
	var names []ids.Name
	for _, u := range updates {
		h.whole = h.whole || u.Whole
		for i := range u.Products {
			if pr := &u.Products[i]; h.numbers == nil || !h.numbers.has(pr.Key) {
				names = append(names, ids.Name{Asset: pr.Asset, UUID: pr.UUID, Product: pr.Name})
			}
		}
	}
	if h.numbers != nil {
		h.numbers.add(names)
		return nil
	}
	n, err := newNumbers(h.file, names, h.whole)
	h.numbers = n
	return err
}

// SetIDs sets a kiln.ids that may have changed. If it contradicts the numbers that games have, all resources get new
// numbers, and games receive everything again.
func (h *Hub) SetIDs(f *ids.File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.file = f
	if h.numbers == nil || h.numbers.agrees(f) {
		return nil
	}
	var names []ids.Name
	for _, p := range h.platforms {
		for _, r := range p.resources {
			names = append(names, ids.Name{Asset: r.Asset, UUID: r.UUID, Product: r.Name})
		}
	}
	n, err := newNumbers(f, names, h.whole)
	if err != nil {
		return err
	}
	h.numbers, h.epoch = n, rand.Text()
	for i, p := range h.platforms {
		h.platforms[i] = p.renumbered(n)
	}
	for g := range h.games {
		g.start = true
	}
	h.wakeAll()
	return nil
}

// wakeAll makes games check for changes. The caller holds the lock.
func (h *Hub) wakeAll() {
	for g := range h.games {
		g.wake()
	}
	for c := range h.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Watch returns a channel that receives a value when games or content have changed; several changes may be one value.
// Call stop at the end.
func (h *Hub) Watch() (news <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers[c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, c)
	}
}

// Game is a connected game.
type Game struct {
	Number   int
	Name     string // the name that it reported
	Client   string // library and version
	Platform string
	Address  string
	Since    time.Time
	Parcels  []string
	Behind   uint64     // number of changes that were not sent to it yet
	Applied  uint64     // seq of the content in the game
	Loaded   []Resource // what it really loaded, in order
	Refused  []Refusal  // resources of which it kept an older version
	Swapped  time.Time  // time of its last swap; zero: never
}

// Resource identifies a resource for display.
type Resource struct {
	ID    uint32
	Asset string
	Name  string
	Kind  string
	Size  int64
}

// Refusal is a resource that a game refused.
type Refusal struct {
	Resource
	Reason string
}

// Games lists the connected games, by number.
func (h *Hub) Games() []Game {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Game
	for g := range h.games {
		p := h.platform(g.platform)
		v := Game{Number: g.number, Name: g.name, Client: g.client, Platform: p.name, Address: g.address, Since: g.since,
			Parcels: g.parcels, Behind: p.seq - min(g.seq, p.seq), Applied: g.applied, Swapped: g.swapped}
		for _, id := range g.loaded {
			v.Loaded = append(v.Loaded, p.describe(id))
		}
		for id, reason := range g.refused {
			v.Refused = append(v.Refused, Refusal{p.describe(id), reason})
		}
		slices.SortFunc(v.Refused, func(a, b Refusal) int { return int(int64(a.ID) - int64(b.ID)) })
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b Game) int { return a.Number - b.Number })
	return all
}

func (p *platform) describe(id uint32) Resource {
	r := p.byID[id]
	if r == nil {
		return Resource{ID: id, Name: fmt.Sprintf("%d, which no longer exists", id)}
	}
	return Resource{id, r.Asset, r.name(), r.Kind, r.Size}
}

// Lines returns recent log lines, the oldest first.
func (h *Hub) Lines() []Line {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// Latencies returns recent measurements, the oldest first.
func (h *Hub) Latencies() []Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.latencies)
}

// Reload makes a game load some resources again, or all. It returns an error if no such game is connected.
func (h *Hub) Reload(number int, resources ...uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for g := range h.games {
		if g.number == number {
			g.say(reload{Type: "reload", IDs: resources})
			return nil
		}
	}
	return fmt.Errorf("game %d is not connected", number)
}

// ReloadAsset makes a game load all resources of an asset again.
func (h *Hub) ReloadAsset(number int, asset string) error {
	h.mu.Lock()
	var ids []uint32
	for g := range h.games {
		if p := h.platform(g.platform); g.number == number && p.assets[asset] != nil {
			ids = p.idsOf(p.assets[asset])
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return fmt.Errorf("game %d is not connected, or has no platform with %s", number, asset)
	}
	return h.Reload(number, ids...)
}

// note adds a line. The caller holds the lock.
func (h *Hub) note(g *game, level, text string) {
	h.lines = append(h.lines, Line{time.Now(), g.number, level, text})
	if len(h.lines) > keptLines*5/4 {
		h.lines = append([]Line(nil), h.lines[len(h.lines)-keptLines:]...)
	}
}

// applied records that a game has swapped everything up to seq, and how long that took. Resources that were sent again
// by hand have no seq.
func (h *Hub) applied(g *game, seq uint64, swapped int) {
	if swapped > 0 {
		g.swapped = time.Now()
	}
	from := max(g.applied, g.began)
	g.applied = max(g.applied, seq)
	for _, s := range h.saved {
		if s.platform == g.platform && s.seq > from && s.seq <= seq {
			h.latencies = append(h.latencies, Latency{g.number, s.platform, time.Since(s.at), time.Now(), swapped})
			h.latencies = h.latencies[max(0, len(h.latencies)-keptLatencies):]
			return // of several changes at once, the first one waited longest
		}
	}
}

// want has the asset built that a game asked for, and returns the ids of its resources, or an error.
func (h *Hub) want(ctx context.Context, g *game, m *fromGame) reply {
	answer := reply{Type: "reply", Request: m.Request}
	name := h.assetOf(g, m)
	if name == "" {
		answer.Reason = "there is no such resource, and nothing by which to find its asset: ask by name"
		return answer
	}
	err := h.content.Want(ctx, g.platform, name)
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.platform(g.platform)
	a := p.assets[name]
	switch {
	case err != nil:
		answer.Reason = err.Error()
	case a == nil:
		answer.Reason = fmt.Sprintf("%s has no products on %s", name, p.name)
	case a.failure != nil:
		answer.Reason = a.failure.words()
	default:
		answer.IDs = p.idsOf(a)
	}
	return answer
}

// numbered returns the asset of the resource with a number in kiln.ids, or "". The caller holds the lock.
func (h *Hub) numbered(id uint32) string {
	for i := range h.file.Entries {
		if e := &h.file.Entries[i]; e.ID == id {
			return e.Asset
		}
	}
	return ""
}

// assetOf returns the asset that a request means.
func (h *Hub) assetOf(g *game, m *fromGame) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.platform(g.platform)
	var r *resource
	switch {
	case m.Asset != "":
		return m.Asset
	case m.ID != nil:
		if r = p.byID[*m.ID]; r == nil { // perhaps it is not built yet
			return h.numbered(*m.ID)
		}
	case m.UUID != "":
		r = p.resources[Key{m.UUID, m.Sub}]
	case m.Name != "":
		if r = p.byName[m.Name]; r == nil {
			return assetPart(m.Name)
		}
	}
	if r == nil {
		return ""
	}
	return r.Asset
}
