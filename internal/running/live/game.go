package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

const (
	subprotocol = "kiln.live.v1"

	helloWithin = 10 * time.Second
	sendWithin  = 30 * time.Second
	pingEvery   = 15 * time.Second // finds games that disappeared without closing
	beatEvery   = 15 * time.Second // for games that must find a watcher that disappeared
)

// game is one connection. Fields are set by its hello and then only read, unless their comment says
// otherwise.
type game struct {
	hub      *Hub
	conn     *websocket.Conn
	number   int
	name     string
	client   string
	platform string
	address  string
	since    time.Time
	parcels  []string
	list     bool
	have     []have
	news     chan struct{} // has a value when there may be something to send

	// Guarded by the hub.
	epoch    string
	seq      uint64 // last change that was sent
	start    bool   // nothing was sent, or nothing that is still valid
	keeps    bool   // it has content of another watcher, which it keeps until everything is known here
	failures uint64 // it knows which assets failed at this seq, although nothing else was sent
	outbox   []any  // messages that do not depend on seq; sent after those that do
	requests int
	began    uint64 // seq at which everything was sent: latencies of earlier changes are not measured
	applied  uint64
	swapped  time.Time
	loaded   []uint32
	play     used.Play
	isLoaded map[uint32]bool
	refused  map[uint32]string
	logged   int // lines in the current second, which started at
	second   time.Time
	dropped  int
}

// connect is the handler of /live/v1.
func (h *Hub) connect(w http.ResponseWriter, r *http.Request) {
	if !slices.ContainsFunc(r.Header.Values("Sec-WebSocket-Protocol"), func(v string) bool { return strings.Contains(v, subprotocol) }) {
		http.Error(w, "this is where games connect: a WebSocket with the subprotocol "+subprotocol, http.StatusBadRequest)
		return
	}
	if !h.admit() {
		http.Error(w, "too many connect at once: come back in a moment", http.StatusServiceUnavailable)
		return
	}
	defer h.gone()
	// The guard has already checked Origin, by other rules than this library's.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}, InsecureSkipVerify: true})
	if err != nil {
		h.known()
		return // it has answered
	}
	conn.SetReadLimit(maxHello)
	g := &game{hub: h, conn: conn, address: r.RemoteAddr, since: time.Now(), news: make(chan struct{}, 1), isLoaded: map[uint32]bool{},
		refused: map[uint32]string{}}
	g.serve(r.Context())
}

// admit counts a connection before its hello. Their number and the size of their messages are limited, because anybody
// may connect.
func (h *Hub) admit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.strangers >= maxNew || h.open >= maxGames+maxNew {
		return false
	}
	h.strangers++
	h.open++
	return true
}

// known is called when a connection has sent hello, or has ended before that.
func (h *Hub) known() {
	h.mu.Lock()
	h.strangers--
	h.mu.Unlock()
}

func (h *Hub) gone() {
	h.mu.Lock()
	h.open--
	h.mu.Unlock()
}

// serve communicates with a game until one side ends the connection.
func (g *game) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := g.hello(ctx)
	if err == nil {
		defer g.leave()
		go func() {
			defer cancel()
			g.pings(ctx)
		}()
		go func() {
			defer cancel()
			if err := g.speak(ctx); err != nil {
				g.conn.CloseNow()
			}
		}()
		err = g.listen(ctx)
	}
	if wrong := (*badMessage)(nil); errors.As(err, &wrong) {
		g.send(ctx, refused{"refused", wrong.Error()})
		g.conn.Close(websocket.StatusPolicyViolation, "refused")
		return
	}
	g.conn.CloseNow()
}

// badMessage is the reason for refusing a game.
type badMessage struct{ error }

func bad(format string, args ...any) error { return &badMessage{fmt.Errorf(format, args...)} }

// read reads one message.
func (g *game) read(ctx context.Context) (*fromGame, error) {
	kind, data, err := g.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return understood(kind, data)
}

func understood(kind websocket.MessageType, data []byte) (*fromGame, error) {
	if kind != websocket.MessageText {
		return nil, bad("messages are text")
	}
	m, err := parse(data)
	if err != nil {
		return nil, &badMessage{err}
	}
	return m, nil
}

// first reads the first message, which has stricter limits.
func (g *game) first(ctx context.Context) (*fromGame, error) {
	defer g.hub.known()
	in, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	kind, data, err := g.conn.Read(in)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(data, []byte("{")); n > maxHave {
		return nil, bad("a hello with more than %d resources: ask for the list in place of telling what you have", maxHave)
	}
	return understood(kind, data)
}

// hello reads the first message, and answers it.
func (g *game) hello(ctx context.Context) error {
	m, err := g.first(ctx)
	if err != nil {
		return err
	}
	g.conn.SetReadLimit(maxMessage)
	switch {
	case m.Type != "hello":
		return bad("the first message is hello, not %q", m.Type)
	case m.Version != Version:
		return bad("version %d of the protocol is required, this is version %d: take a client of the same Kiln", m.Version, Version)
	}
	if m.List {
		m.Have = nil // everything will be sent
	}
	g.name, g.client, g.list, g.have, g.parcels = m.Game, m.Client, m.List, m.Have, m.Parcels
	w, err := g.hub.enter(g, m)
	if err != nil {
		return err
	}
	return g.send(ctx, w)
}

// enter adds a game.
func (h *Hub) enter(g *game, m *fromGame) (welcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.platform(m.Platform)
	if p == nil {
		var names []string
		for _, p := range h.platforms {
			names = append(names, p.name)
		}
		return welcome{}, bad("the project has no platform %q; it has %s", m.Platform, strings.Join(names, ", "))
	}
	if len(h.games) >= maxGames {
		return welcome{}, bad("%d games are connected already", maxGames)
	}
	h.lastGame++
	g.number, g.platform, g.epoch = h.lastGame, p.name, h.epoch
	g.start = m.Epoch != h.epoch || m.Seq == 0 || m.Seq < p.forgotten || m.Seq > p.seq
	g.keeps = m.Epoch != "" || len(m.Have) > 0
	if !g.start {
		g.seq, g.applied = m.Seq, m.Seq
	}
	h.games[g] = true
	g.wake()
	h.wakeAll()
	return h.welcome(p, g.seq, !g.start), nil
}

func (h *Hub) welcome(p *platform, seq uint64, resumed bool) welcome {
	return welcome{"welcome", Version, h.project, p.name, h.epoch, seq, resumed, len(p.resources), h.beat.Milliseconds()}
}

func (g *game) leave() {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	delete(g.hub.games, g)
	g.hub.wakeAll()
}

// Hangup closes the connections to all games, which may connect again. It is for the end of the server, which does not
// know them.
func (h *Hub) Hangup() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for g := range h.games {
		g.conn.CloseNow()
	}
}

// wake makes the game check for something to send.
func (g *game) wake() {
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// say queues a message. The caller holds the hub's lock.
func (g *game) say(m any) {
	g.outbox = append(g.outbox, m)
	g.wake()
}

func (g *game) send(ctx context.Context, m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	return g.conn.Write(ctx, websocket.MessageText, data)
}

func (g *game) pings(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pingEvery):
		}
		in, cancel := context.WithTimeout(ctx, sendWithin)
		err := g.conn.Ping(in)
		cancel()
		if err != nil {
			return
		}
	}
}

// speak sends changes to the game whenever there are some, and a sign of life if there are none for long.
func (g *game) speak(ctx context.Context) error {
	beat := time.NewTimer(g.hub.beat)
	defer beat.Stop()
	for {
		beat.Reset(g.hub.beat)
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if err := g.send(ctx, alive{"alive"}); err != nil {
				return err
			}
			continue
		case <-g.news:
		}
		for _, m := range g.gather() {
			var err error
			if t, ok := m.(telling); ok {
				err = g.tell(ctx, t)
			} else {
				err = g.send(ctx, m)
			}
			if err != nil {
				return err
			}
		}
	}
}

// telling is a list of resources to send in pages, with the fields of the last page.
type telling struct {
	resources []*resource
	last      changed
}

// gather returns everything that has to be sent, and marks it as sent: if sending fails, the connection ends.
func (g *game) gather() []any {
	h := g.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.platform(g.platform)
	var say []any
	if g.epoch != h.epoch { // numbers have other meanings from now on
		g.epoch, g.start, g.failures, g.loaded, g.isLoaded, g.refused = h.epoch, true, 0, nil, map[uint32]bool{}, map[uint32]string{}
		say = append(say, h.welcome(p, 0, false))
	}
	if g.start && g.keeps && !p.whole {
		return append(say, g.failuresOnly(p)...) // a list now would take from it what is only not known yet
	}
	n, ok := p.since(g.seq)
	if !g.start && !ok { // it is so far behind that it has to begin again
		say = append(say, h.welcome(p, 0, false))
	}
	if g.start || !ok {
		g.began = p.seq
		say = append(append(say, g.failuresOnly(p)...), g.everything(p))
	} else {
		say = append(say, g.newsOf(p, n)...)
	}
	g.start, g.seq, g.failures = false, p.seq, 0
	say = append(say, g.outbox...)
	g.outbox = nil
	return say
}

// newsOf returns the messages for changes. The one that advances the game's seq comes last, so nothing is lost if the
// connection breaks.
func (g *game) newsOf(p *platform, n news) (say []any) {
	say = g.failuresOf(p, n)
	if len(n.changed)+len(n.removed) > 0 {
		say = append(say, telling{n.changed, changed{Type: "changed", Seq: n.seq, Removed: n.removed, Order: n.order}})
	}
	return say
}

// failuresOf returns the messages for assets that failed or no longer do.
func (g *game) failuresOf(p *platform, n news) (say []any) {
	for _, id := range n.failed {
		a := p.assets[id]
		m := failed{Type: "failed", Seq: p.seq, Asset: id, Messages: a.failure.Messages}
		if !g.start || !g.keeps || p.whole { // else the game has numbers of another watcher
			m.Resources = p.idsOf(a)
		}
		say = append(say, m)
	}
	for _, id := range n.mended {
		say = append(say, mended{"mended", n.seq, id})
	}
	return say
}

// failuresOnly returns the messages for all assets that fail, or what has changed since they were sent.
func (g *game) failuresOnly(p *platform) []any {
	n, ok := p.since(g.failures)
	if g.failures == 0 || !ok {
		n = news{seq: p.seq}
		for _, id := range slices.Sorted(maps.Keys(p.assets)) {
			if p.assets[id].failure != nil {
				n.failed = append(n.failed, id)
			}
		}
	}
	g.failures = p.seq
	return g.failuresOf(p, n)
}

// everything returns the message for a game that cannot continue from its last state.
func (g *game) everything(p *platform) any {
	if g.list {
		return telling{p.everything(), changed{Type: "list", Seq: p.seq}}
	}
	n := p.differs(g.have)
	return telling{n.changed, changed{Type: "changed", Seq: n.seq, Removed: n.removed, Order: n.order}}
}

// tell sends resources page by page.
func (g *game) tell(ctx context.Context, t telling) error {
	rest := t.resources
	for {
		page := t.last
		page.Resources, rest = g.page(rest)
		if len(rest) == 0 {
			return g.send(ctx, page)
		}
		page.Removed, page.Order, page.More = nil, nil, true
		if err := g.send(ctx, page); err != nil {
			return err
		}
	}
}

// page returns the lines of one page, and the rest of the resources.
func (g *game) page(rs []*resource) (lines []resourceLine, rest []*resource) {
	h := g.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.platform(g.platform)
	bytes := 0
	for len(rs) > 0 && len(lines) < pageResources && bytes < pageBytes {
		l := rs[0].line(p)
		lines, rs, bytes = append(lines, l), rs[1:], bytes+l.bytes()
	}
	return lines, rs
}

// listen reads messages until the connection ends.
func (g *game) listen(ctx context.Context) error {
	for {
		m, err := g.read(ctx)
		if err != nil {
			return err
		}
		if err := g.heard(ctx, m); err != nil {
			return err
		}
	}
}

func (g *game) heard(ctx context.Context, m *fromGame) error {
	h := g.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m.Type {
	case "request":
		if g.requests >= maxRequests {
			return bad("%d requests are under way already", maxRequests)
		}
		g.requests++
		go func() {
			answer := h.want(ctx, g, m)
			h.mu.Lock()
			defer h.mu.Unlock()
			g.requests--
			g.say(answer)
		}()
	case "applied":
		for _, id := range m.Swapped {
			delete(g.refused, id)
		}
		for _, r := range m.Refused {
			if len(g.refused) < maxEntries {
				g.refused[r.ID] = limited(r.Reason, maxLog)
				h.note(g, "warning", fmt.Sprintf("kept the old %s: %s", h.platform(g.platform).describe(r.ID).Name, limited(r.Reason, maxLog)))
			}
		}
		h.applied(g, m.Seq, len(m.Swapped))
		h.wakeAll()
	case "used":
		h.nowUsed(g, m.IDs)
	case "log":
		g.log(m)
	case "hello":
		return bad("hello is said once")
	}
	return nil
}

// nowUsed records what a game loaded for the first time.
func (h *Hub) nowUsed(g *game, ids []uint32) {
	p := h.platform(g.platform)
	var keys []used.Key
	for _, id := range ids {
		r := p.byID[id]
		if r == nil || g.isLoaded[id] {
			continue
		}
		g.isLoaded[id] = true
		g.loaded = append(g.loaded, id)
		keys = append(keys, used.Key(r.Key))
	}
	if h.used != nil && len(keys) > 0 {
		if err := h.used.Add(p.name, &g.play, keys); err != nil {
			h.note(g, "error", fmt.Sprintf("what it loaded cannot be kept: %v", err))
		}
	}
	h.wakeAll()
}

// log records a line of a game, with a limited rate.
func (g *game) log(m *fromGame) {
	now := time.Now()
	if now.Sub(g.second) >= time.Second {
		if g.dropped > 0 {
			g.hub.note(g, "warning", fmt.Sprintf("%d lines more than %d in a second were dropped", g.dropped, logRate))
		}
		g.second, g.logged, g.dropped = now, 0, 0
	}
	if g.logged++; g.logged > logRate {
		g.dropped++
		return
	}
	level := m.Level
	if !slices.Contains([]string{"debug", "info", "warning", "error"}, level) {
		level = "info"
	}
	g.hub.note(g, level, limited(m.Text, maxLog))
	g.hub.wakeAll()
}

// limited shortens a text that is too long, and makes it valid UTF-8.
func limited(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "�")
}
