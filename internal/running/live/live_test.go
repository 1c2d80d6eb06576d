package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
	"github.com/kiln-pipeline/kiln/internal/store/used"
	"github.com/kiln-pipeline/kiln/kilnrt"
	client "github.com/kiln-pipeline/kiln/kilnrt/live"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { livetest.Clean(); os.Exit(code) }))
}

// stock is content in memory, and a hub that has it.
type stock struct {
	t   *testing.T
	hub *live.Hub

	mu    sync.Mutex
	blobs map[digest.Hash][]byte
	want  func(asset string) error
}

func newStock(t *testing.T, o live.Options) *stock {
	s := &stock{t: t, blobs: map[digest.Hash][]byte{}}
	o.Project, o.Content = "demo", s
	if o.Platforms == nil {
		o.Platforms = []string{"pc"}
	}
	s.hub = live.NewHub(o)
	return s
}

type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }

func (s *stock) Open(h digest.Hash) (io.ReadSeekCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[h]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return blob{bytes.NewReader(b)}, nil
}

func (s *stock) Want(_ context.Context, platform, asset string) error {
	s.mu.Lock()
	want := s.want
	s.mu.Unlock()
	if want == nil {
		return errors.New("there is no asset " + asset)
	}
	return want(asset)
}

func uuid(name string) string { return asset.UUID(name) }

// product is a product with content; needs are names of assets, "?" before one makes it optional.
func (s *stock) product(asset, kind, content string, needs ...string) live.Product {
	h := digest.Of([]byte(content))
	s.mu.Lock()
	s.blobs[h] = []byte(content)
	s.mu.Unlock()
	p := live.Product{Key: live.Key{UUID: uuid(asset)}, Asset: asset, Kind: kind, Hash: h, Size: int64(len(content))}
	for _, n := range needs {
		name, optional := strings.CutPrefix(n, "?")
		p.Refs = append(p.Refs, live.Ref{Key: live.Key{UUID: uuid(name)}, Required: !optional})
	}
	return p
}

func (s *stock) update(u live.Update) {
	s.t.Helper()
	if err := s.hub.Update(map[string]*live.Update{"pc": &u}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stock) put(ps ...live.Product) {
	s.t.Helper()
	s.update(live.Update{Products: ps})
}

// serve listens as kiln serve does.
func (s *stock) serve(g *live.Guard) string {
	srv := httptest.NewServer(g.Wrap(live.Games, s.hub.Handler()))
	s.t.Cleanup(srv.Close)
	return srv.URL
}

// player is a game whose values are texts: kind(content;needs).
type player struct {
	*client.Library
	arrived chan struct{}
	events  chan client.Event
	mu      sync.Mutex
	refuse  string   // contents that have this in them cannot be loaded
	loads   []string // in order
}

type text struct{ s string }

func play(t *testing.T, o client.Options) *player {
	t.Helper()
	p := &player{arrived: make(chan struct{}, 1), events: make(chan client.Event, 1000)}
	o.Game = "demo"
	o.Notify = func(e client.Event) {
		if _, ok := e.(client.Arrived); ok {
			select {
			case p.arrived <- struct{}{}:
			default:
			}
			return
		}
		p.events <- e
	}
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	l, err := client.Connect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	p.Library = l
	t.Cleanup(l.Close)
	l.Register("", p.load)
	return p
}

func (p *player) load(in *client.Loading) (any, error) {
	b, err := in.Resource.Bytes()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != "" && strings.Contains(string(b), p.refuse) {
		return nil, errors.New("not like this")
	}
	var needs []string
	for _, n := range in.Needs {
		if n.Value == nil {
			needs = append(needs, "-")
		} else {
			needs = append(needs, n.Value.(*text).s)
		}
	}
	v := &text{string(b)}
	if len(needs) > 0 {
		v.s += "(" + strings.Join(needs, " ") + ")"
	}
	p.loads = append(p.loads, v.s)
	return v, nil
}

func (p *player) get(t *testing.T, name string) *client.Handle {
	t.Helper()
	h, err := p.LoadName(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func says(h *client.Handle) string { return h.Value().(*text).s }

// next waits for what comes, and applies it.
func (p *player) next(t *testing.T) (done []string) {
	t.Helper()
	select {
	case <-p.arrived:
	case <-time.After(livetest.Patience):
		t.Fatal("nothing arrived")
	}
	for _, s := range p.Poll() {
		word := s.Resource.Name()
		if s.Kept != nil {
			word += " kept"
		}
		done = append(done, word)
	}
	return done
}

func event[E client.Event](t *testing.T, p *player) E {
	t.Helper()
	for {
		select {
		case e := <-p.events:
			if e, ok := e.(E); ok {
				return e
			}
		case <-time.After(livetest.Patience):
			var e E
			t.Fatalf("no %T", e)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(livetest.Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestSwap(t *testing.T) {
	s := newStock(t, live.Options{})
	s.update(live.Update{Whole: true, Products: []live.Product{
		s.product("knight", "model", "K1", "cloth", "?shadow"), s.product("cloth", "material", "C1", "paint"), s.product("paint", "texture", "P1"),
		s.product("tree", "model", "T1", "cloth"), s.product("song", "sound", "S1")}})
	p := play(t, client.Options{Address: s.serve(&live.Guard{})})
	if p.Len() != 5 {
		t.Fatalf("%d resources, not 5", p.Len())
	}
	knight, tree, song := p.get(t, "knight"), p.get(t, "tree"), p.get(t, "song")
	if says(knight) != "K1(C1(P1) -)" || says(tree) != "T1(C1(P1))" {
		t.Fatal(says(knight), says(tree))
	}

	s.put(s.product("paint", "texture", "P2"))
	select {
	case <-p.arrived:
		p.arrived <- struct{}{}
	case <-time.After(livetest.Patience):
		t.Fatal("nothing arrived")
	}
	if says(knight) != "K1(C1(P1) -)" {
		t.Error("it changed before Poll:", says(knight))
	}
	if got := p.next(t); !slices.Equal(got, []string{"paint", "cloth", "knight", "tree"}) {
		t.Error("swapped", got)
	}
	if says(knight) != "K1(C1(P2) -)" || says(tree) != "T1(C1(P2))" {
		t.Error(says(knight), says(tree))
	}

	// What is new is used by who would use it, and what two need is loaded once.
	s.put(s.product("shadow", "texture", "H1"))
	if got := p.next(t); !slices.Equal(got, []string{"shadow", "knight"}) {
		t.Error("swapped", got)
	}
	// A loader refuses: it and what needs it stay, all else is swapped; when it is right again, all is.
	p.mu.Lock()
	p.refuse = "bad"
	p.mu.Unlock()
	s.put(s.product("cloth", "material", "bad", "paint"), s.product("song", "sound", "S2"))
	if got := p.next(t); !slices.Equal(got, []string{"song", "cloth kept"}) && !slices.Equal(got, []string{"cloth kept", "song"}) {
		t.Error("swapped", got)
	}
	if says(knight) != "K1(C1(P2) H1)" || says(song) != "S2" {
		t.Error(says(knight), says(song))
	}
	until(t, "the watcher knows what was refused", func() bool {
		g := s.hub.Games()
		return len(g) == 1 && len(g[0].Refused) == 1 && g[0].Refused[0].Name == "cloth" && g[0].Refused[0].Reason == "not like this"
	})
	s.put(s.product("cloth", "material", "C3"))
	if got := p.next(t); !slices.Equal(got, []string{"cloth", "knight", "tree"}) {
		t.Error("swapped", got)
	}
	if says(knight) != "K1(C3 H1)" || says(tree) != "T1(C3)" {
		t.Error(says(knight), says(tree))
	}
	// Gone is what the game may go on holding, and nobody finds any more.
	s.update(live.Update{Gone: []live.Key{{UUID: uuid("song")}}})
	p.next(t)
	if _, err := p.FindName("song"); !errors.Is(err, kilnrt.ErrNotFound) || says(song) != "S2" {
		t.Error(err, says(song))
	}
	until(t, "the watcher knows what was loaded", func() bool { g := s.hub.Games(); return len(g) == 1 && len(g[0].Refused) == 0 && len(g[0].Loaded) == 6 })
}

func TestResume(t *testing.T) {
	s := newStock(t, live.Options{})
	s.update(live.Update{Whole: true, Products: []live.Product{s.product("a", "data", "1"), s.product("b", "data", "1")}})
	var now atomic.Pointer[live.Hub]
	now.Store(s.hub)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().Handler().ServeHTTP(w, r) }))
	p := play(t, client.Options{Address: srv.URL})
	a := p.get(t, "a")
	if e := event[client.Connected](t, p); e.Resumed || e.Project != "demo" || e.Platform != "pc" {
		t.Error(e)
	}
	s.put(s.product("a", "data", "2"))
	p.next(t)
	s.hub.Hangup()
	event[client.Disconnected](t, p)
	s.put(s.product("a", "data", "3"), s.product("c", "data", "1"))
	s.update(live.Update{Failed: []live.Failure{{Asset: "b", Messages: diag.List{diag.Errorf(diag.JobFailed, diag.Pos{File: "b"}, "no")}}}})
	if e := event[client.Connected](t, p); !e.Resumed {
		t.Error("it began anew")
	}
	if e := event[client.Failed](t, p); e.Asset != "b" || e.Messages[0].Text != "no" {
		t.Error(e)
	}
	until(t, "3 is there", func() bool { p.Poll(); return says(a) == "3" })
	if _, err := p.FindName("c"); err != nil {
		t.Error(err)
	}

	// The watcher is another one, and much is different.
	n := newStock(t, live.Options{})
	n.update(live.Update{Whole: true, Products: []live.Product{n.product("0", "data", "1"), n.product("a", "data", "4"), n.product("c", "data", "1")}})
	now.Store(n.hub)
	s.hub.Hangup()
	event[client.Disconnected](t, p)
	if e := event[client.Connected](t, p); e.Resumed {
		t.Error("it went on with a watcher that knows nothing")
	}
	until(t, "4 is there", func() bool { p.Poll(); return says(a) == "4" })
	if _, err := p.FindName("b"); err == nil || p.Len() != 3 || len(p.Failures()) != 0 {
		t.Error(err, p.Len(), p.Failures())
	}
	until(t, "it tells anew what it loaded", func() bool {
		g := n.hub.Games()
		return len(g) == 1 && len(g[0].Loaded) == 1 && g[0].Loaded[0].Name == "a"
	})
	p.Close()
	srv.Close()
}

func TestRequest(t *testing.T) {
	s := newStock(t, live.Options{Used: used.NewLog(t.TempDir())})
	s.update(live.Update{Whole: true})
	s.want = func(asset string) error {
		switch asset {
		case "late":
			s.put(s.product("late", "data", "L"))
		case "broken":
			s.update(live.Update{Failed: []live.Failure{{Asset: "broken", Messages: diag.List{diag.Errorf(diag.JobFailed, diag.Pos{}, "it is crooked")}}}})
		default:
			return fs.ErrNotExist
		}
		return nil
	}
	p := play(t, client.Options{Address: s.serve(&live.Guard{})})
	if h := p.get(t, "late"); says(h) != "L" {
		t.Error(says(h))
	}
	for name, want := range map[string]string{"broken": "it is crooked", "none": "not exist"} {
		if _, err := p.LoadName(name); !errors.Is(err, kilnrt.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSlowGame(t *testing.T) {
	s := newStock(t, live.Options{})
	all := make([]live.Product, 3000)
	for i := range all {
		all[i] = s.product(fmt.Sprintf("a%04d", i), "data", "0")
	}
	s.update(live.Update{Whole: true, Products: all})
	p := play(t, client.Options{Address: s.serve(&live.Guard{})})
	h := p.get(t, "a0007")
	for round := range 40 { // nobody polls, nobody waits
		for i := range all {
			all[i] = s.product(all[i].Asset, "data", fmt.Sprint(round*len(all)+i))
		}
		s.put(all...)
	}
	want := fmt.Sprint(39*len(all) + 7)
	until(t, "the last is there", func() bool { p.Poll(); return says(h) == want })
}

func TestRenumbered(t *testing.T) {
	s := newStock(t, live.Options{})
	s.update(live.Update{Whole: true, Products: []live.Product{s.product("a", "data", "1", "b"), s.product("b", "data", "1")}})
	p := play(t, client.Options{Address: s.serve(&live.Guard{})})
	a := p.get(t, "a")
	first, err := p.FindName("b")
	if err != nil || first.ID != 1 {
		t.Fatal(first.ID, err)
	}
	// A file that has been merged says something else, and something that is not built yet has the number that b had.
	f, err := ids.Parse("kiln.ids", []byte("a\t4\nb\t0\nc\t1\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.hub.SetIDs(f); err != nil {
		t.Fatal(err)
	}
	s.put(s.product("b", "data", "2"))
	until(t, "all is told anew", func() bool { p.Poll(); r, err := p.FindName("b"); return err == nil && r.ID == 0 && says(a) == "1(2)" })
	s.put(s.product("c", "data", "C"))
	until(t, "c is there", func() bool { p.Poll(); r, err := p.FindName("c"); return err == nil && r.ID == 1 })
	if err := s.hub.SetIDs(f); err != nil {
		t.Fatal(err)
	}
	s.put(s.product("a", "data", "3", "b"))
	until(t, "the new a is there", func() bool { p.Poll(); return says(a) == "3(2)" })
	if len(p.events) != 2 { // it connected, and was told of the new numbers: no third time
		t.Error(len(p.events), "events")
	}
}

// What was saved before a game came is no news to it, and what it loads again by hand was not saved just now.
func TestLatency(t *testing.T) {
	s := newStock(t, live.Options{})
	s.update(live.Update{Whole: true, Products: []live.Product{s.product("a", "data", "1")}, Saved: time.Now().Add(-time.Hour)})
	s.update(live.Update{Products: []live.Product{s.product("a", "data", "2")}, Saved: time.Now().Add(-time.Hour)})
	p := play(t, client.Options{Address: s.serve(&live.Guard{})})
	a := p.get(t, "a")
	applied := func(seq uint64) {
		t.Helper()
		until(t, fmt.Sprint("the watcher knows that the game has all up to ", seq), func() bool { g := s.hub.Games(); return len(g) == 1 && g[0].Applied == seq })
	}
	applied(3)
	if l := s.hub.Latencies(); len(l) != 0 {
		t.Error("before anything was saved:", l)
	}
	s.update(live.Update{Products: []live.Product{s.product("a", "data", "3")}, Saved: time.Now()})
	p.next(t)
	applied(4)
	if err := s.hub.Reload(s.hub.Games()[0].Number); err != nil {
		t.Fatal(err)
	}
	p.next(t)
	s.put(s.product("a", "data", "4")) // not because a file was saved
	p.next(t)
	applied(5)
	l := s.hub.Latencies()
	if len(l) != 1 || l[0].Took > time.Minute || l[0].Swapped != 1 || says(a) != "4" {
		t.Error(l, says(a))
	}
}

// TestStrangers: connections that say nothing are few and short, what they may say first is small, and games come in when they are gone.
func TestStrangers(t *testing.T) {
	s := newStock(t, live.Options{})
	s.put(s.product("a", "text", "A"))
	address := s.serve(&live.Guard{})
	dial := func() (*websocket.Conn, int) {
		c, resp, err := websocket.Dial(t.Context(), strings.Replace(address, "http", "ws", 1)+"/live/v1", &websocket.DialOptions{Subprotocols: []string{"kiln.live.v1"}})
		if err != nil && resp == nil {
			t.Fatal(err)
		}
		return c, resp.StatusCode
	}
	var open []*websocket.Conn
	for range 40 {
		if c, code := dial(); code == http.StatusSwitchingProtocols {
			open = append(open, c)
		} else if code != http.StatusServiceUnavailable {
			t.Fatal(code)
		}
	}
	if len(open) != 16 {
		t.Errorf("%d connections that say nothing are let in", len(open))
	}
	for _, large := range []string{`{"type":"hello","version":1,"game":"` + strings.Repeat("x", 1<<20) + `"}`, `{"type":"hello","version":1,"have":[` + strings.Repeat("{},", 1<<14) + `{}]}`} {
		c := open[0]
		open = open[1:]
		go c.Write(t.Context(), websocket.MessageText, []byte(large)) // it ends with the connection
		c.SetReadLimit(-1)
		if _, said, err := c.Read(t.Context()); err == nil && !strings.Contains(string(said), `"refused"`) {
			t.Errorf("%.50s is answered %s", large, said)
		}
		c.CloseNow()
	}
	for _, c := range open {
		c.CloseNow()
	}
	p := play(t, client.Options{Address: address}) // it tries again until there is room
	if got := says(p.get(t, "a")); got != "A" {
		t.Error(got)
	}
}

// TestPanic: a loader that panics refuses. The old value stays, and the library goes on.
func TestPanic(t *testing.T) {
	s := newStock(t, live.Options{})
	s.put(s.product("a", "text", "A"), s.product("b", "other", "B"))
	p := play(t, client.Options{Address: s.serve(&live.Guard{})})
	a := p.get(t, "a")
	var bad atomic.Bool
	bad.Store(true)
	p.Register("text", func(in *client.Loading) (any, error) {
		if bad.Load() {
			panic("no such texture")
		}
		return p.load(in)
	})
	s.put(s.product("a", "text", "A2"))
	if got := p.next(t); !slices.Equal(got, []string{"a kept"}) || says(a) != "A" {
		t.Errorf("%q, %s", got, says(a))
	}
	a.Release()
	if h, err := p.LoadName("a"); err == nil || !strings.Contains(err.Error(), "no such texture") {
		t.Errorf("%v, %v", h, err)
	}
	bad.Store(false)
	if got := says(p.get(t, "a")) + says(p.get(t, "b")); got != "A2B" {
		t.Error(got)
	}
}
