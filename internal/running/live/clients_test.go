package live_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
)

// rules are what clients of all languages are held to. In each of them, and in all other tests with games, a game fails its test if something
// is unloaded that something loaded uses.
var rules = []struct {
	name string
	hold func(t *testing.T, language string)
}{
	{"contents", testClient}, {"restart", testRestart}, {"half a list", testHalfList}, {"silence", testSilence}, {"failures", testFailures},
	{"references", testReferences}, {"removed and what it needs changes", testRemoved}, {"refused and what it needs changes", testRefusedNeed},
	{"an optional need goes", testOptional}, {"waiting", testWaiting}, {"restarts at random", testRandomRestarts},
}

// TestClients holds the clients of all languages to the rules.
func TestClients(t *testing.T) {
	for _, language := range livetest.Languages {
		for _, rule := range rules {
			t.Run(language+"/"+rule.name, func(t *testing.T) {
				t.Parallel() // they wait most of the time
				rule.hold(t, language)
			})
		}
	}
}

// testClient: loading, swapping, what needs what, refusing, coming and going, breaking connections, another watcher.
func testClient(t *testing.T, language string) {
	s := newStock(t, live.Options{})
	s.update(live.Update{Whole: true, Products: []live.Product{
		s.product("knight", "model", "K1", "cloth", "?shadow"), s.product("cloth", "material", "C1", "paint"), s.product("paint", "texture", "P1"),
		s.product("empty", "data", ""), s.product("über/\"x\"", "data", "U1")}})
	var now atomic.Pointer[live.Hub]
	now.Store(s.hub)
	g := &live.Guard{}
	srv := httptest.NewServer(g.Wrap(live.Games, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().Handler().ServeHTTP(w, r) })))
	t.Cleanup(srv.Close)
	game := livetest.Start(t, language, srv.URL, "knight", "empty", "über/\"x\"", "late")
	game.Until(t, `knight=K1(C1(P1),-) empty= über/"x"=U1 late=?`)

	s.put(s.product("paint", "texture", "P2"), s.product("empty", "data", "E"))
	game.Until(t, `knight=K1(C1(P2),-) empty=E über/"x"=U1 late=?`)
	s.put(s.product("shadow", "texture", "H1"), s.product("late", "data", "L1", "?paint"))
	game.Until(t, `knight=K1(C1(P2),H1) empty=E über/"x"=U1 late=L1(P2)`)

	// Refused: it stays, and what is not concerned does not wait for it.
	s.put(s.product("cloth", "material", "bad", "paint"), s.product("empty", "data", "F"))
	game.Until(t, `knight=K1(C1(P2),H1) empty=F über/"x"=U1 late=L1(P2)`)
	until(t, "the watcher knows what was refused", func() bool {
		games := s.hub.Games()
		return len(games) == 1 && len(games[0].Refused) == 1 && games[0].Refused[0].Name == "cloth" && games[0].Refused[0].Reason == "the game's loader refused it" && len(games[0].Loaded) == 7
	})
	s.put(s.product("cloth", "material", "C2", "shadow"))
	game.Until(t, `knight=K1(C2(H1),H1) empty=F über/"x"=U1 late=L1(P2)`)

	// The connection breaks, and much is different when it is back; then it is another watcher, with other numbers.
	s.hub.Hangup()
	s.put(s.product("shadow", "texture", "H2"), s.product("empty", "data", "G"))
	game.Until(t, `knight=K1(C2(H2),H2) empty=G über/"x"=U1 late=L1(P2)`)
	n := newStock(t, live.Options{})
	n.update(live.Update{Whole: true, Products: []live.Product{
		n.product("0", "data", "0"), n.product("knight", "model", "K2", "cloth"), n.product("cloth", "material", "C3"), n.product("empty", "data", "G"),
		n.product("über/\"x\"", "data", "U2"), n.product("late", "data", "L2")}})
	now.Store(n.hub)
	s.hub.Hangup()
	game.Until(t, `knight=K2(C3) empty=G über/"x"=U2 late=L2`)
	if err := n.hub.Reload(n.hub.Games()[0].Number); err != nil {
		t.Fatal(err)
	}
	n.put(n.product("late", "data", "L3"))
	game.Until(t, `knight=K2(C3) empty=G über/"x"=U2 late=L3`)
	until(t, "the new watcher knows what is loaded", func() bool { games := n.hub.Games(); return len(games) == 1 && len(games[0].Loaded) >= 5 })
}

// TestAddresses: a game in C, whose client reads addresses itself, finds a watcher by an address of IPv6, by localhost on either loopback
// address, and by the machine's name.
func TestAddresses(t *testing.T) {
	s := newStock(t, live.Options{})
	s.update(live.Update{Whole: true, Products: []live.Product{s.product("paint", "texture", "P1")}})
	for _, c := range []struct{ network, listen, host string }{
		{"tcp4", "127.0.0.1:0", "localhost"}, {"tcp6", "[::1]:0", "localhost"}, {"tcp6", "[::1]:0", "::1"}, {"tcp", ":0", "the machine"},
	} {
		t.Run(c.listen+" as "+c.host, func(t *testing.T) {
			if c.host == "the machine" {
				name, err := os.Hostname()
				if _, lerr := net.LookupHost(name); err != nil || lerr != nil {
					t.Skip("this machine does not find itself by its name")
				}
				c.host = name
			}
			l, err := net.Listen(c.network, c.listen)
			if err != nil {
				t.Skipf("there is no %s: %v", c.network, err)
			}
			srv := httptest.NewUnstartedServer((&live.Guard{Hosts: []string{c.host}}).Wrap(live.Games, s.hub.Handler()))
			srv.Listener.Close()
			srv.Listener = l
			srv.Start()
			t.Cleanup(srv.Close)
			_, port, _ := net.SplitHostPort(l.Addr().String())
			livetest.Start(t, "c", "http://"+net.JoinHostPort(c.host, port), "paint").Until(t, "paint=P1")
		})
	}
}
