package live_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
)

// town is a link and the watcher behind it.
type town struct {
	*livetest.Link
	t *testing.T
	s *stock
}

func newTown(t *testing.T) *town { return &town{livetest.NewLink(t), t, nil} }

// restart ends the watcher, and starts another one. It is in its first build until it gets a whole update.
func (w *town) restart() *stock {
	w.To("")
	w.Cut()
	w.begin()
	return w.s
}

// begin starts another watcher for new connections.
func (w *town) begin() {
	s := newStock(w.t, live.Options{Beat: beat})
	if w.s != nil {
		w.s.hub.Hangup()
		w.s.mu.Lock()
		for h, b := range w.s.blobs { // the store of a project outlives its watcher
			s.blobs[h] = b
		}
		w.s.mu.Unlock()
	}
	srv := httptest.NewServer((&live.Guard{}).Wrap(live.Games, s.hub.Handler()))
	w.t.Cleanup(func() {
		s.hub.Hangup()
		srv.Close()
	})
	w.s = s
	w.After(-1, livetest.Cut) // whatever was to come
	w.To(srv.Listener.Addr().String())
}

// meets waits until a game is connected to the watcher.
func (w *town) meets() {
	w.t.Helper()
	until(w.t, "a game is connected", func() bool { return len(w.s.hub.Games()) == 1 })
}

// beat is the watcher's: a fraction of the patience of games in these tests.
const beat = 100 * time.Millisecond

// army is a list of products with a reference, an optional one and a chain.
func army(s *stock, version string) []live.Product {
	return []live.Product{
		s.product("knight", "model", "K"+version, "cloth", "?shadow"), s.product("cloth", "material", "C"+version, "paint"),
		s.product("paint", "texture", "P"+version), s.product("shadow", "texture", "H"+version),
	}
}

// testRestart: while the first build of a restarted watcher is under way, a game keeps all that it has, also what nobody has built yet.
func testRestart(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: army(w.s, "1")})
	game := livetest.Start(t, language, w.URL(), "knight")
	game.Until(t, "knight=K1(C1(P1),H1)")

	s := w.restart()
	w.meets()
	s.put(army(s, "2")[:1]...) // another game has asked for it
	s.put(s.product("paint", "texture", "P2"))
	s.update(live.Update{Whole: true, Products: army(s, "3")})
	game.Until(t, "knight=K3(C3(P3),H3)")

	// A watcher that comes and goes within its first build, and one that has less.
	w.restart()
	w.meets()
	s = w.restart()
	w.meets()
	s.update(live.Update{Whole: true, Products: append(army(s, "3")[1:3], s.product("knight", "model", "K4", "cloth"))})
	game.Until(t, "knight=K4(C3(P3))")
	game.UntilSaid(t, "loaded", "cloth knight paint")
	if want := []string{"knight=K1(C1(P1),H1)", "knight=K3(C3(P3),H3)", "knight=K4(C3(P3))"}; !slices.Equal(game.Contents(), want) {
		t.Errorf("the game had\n%s", strings.Join(game.Contents(), "\n"))
	}
}

// crowd is a list of several pages. The numbers are others for each watcher, because the first name is.
func crowd(s *stock, version string) []live.Product {
	all := append(army(s, version), s.product("0"+version, "data", "x"))
	for i := range 2500 {
		all = append(all, s.product(fmt.Sprintf("other/%04d", i), "data", "x"))
	}
	return all
}

// testHalfList: a connection breaks within a list. What the game has stays as it was, and it gets the list from the next watcher.
func testHalfList(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: crowd(w.s, "1")})
	game := livetest.Start(t, language, w.URL(), "knight")
	game.Until(t, "knight=K1(C1(P1),H1)")
	list := w.Sent()
	for i, at := range []int64{list / 10, list / 2, list * 9 / 10} {
		w.restart()
		w.s.update(live.Update{Whole: true, Products: crowd(w.s, fmt.Sprint(i+2))})
		w.After(at, livetest.Cut)
		until(t, "the list breaks", w.Ended)
	}
	w.To("")
	w.Cut()
	w.begin()
	w.s.update(live.Update{Whole: true, Products: crowd(w.s, "7")[1:]}) // the knight is no more
	w.After(list/2, livetest.Cut)
	until(t, "the list breaks", w.Ended)
	w.begin() // the same watcher is back
	w.s.update(live.Update{Whole: true, Products: crowd(w.s, "8")})
	game.Until(t, "knight=K8(C8(P8),H8)")
	if want := []string{"knight=K1(C1(P1),H1)", "knight=K8(C8(P8),H8)"}; !slices.Equal(game.Contents(), want) {
		t.Errorf("the game had\n%s", strings.Join(game.Contents(), "\n"))
	}
}

// testSilence: connections stay open and nothing arrives: not the answer to the first request, not the rest of a list, of a message, of a
// content. The game connects again by itself.
func testSilence(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: crowd(w.s, "1")})
	w.After(0, livetest.Silence)
	game := livetest.StartPatient(t, language, w.URL(), 10*beat, "knight")
	game.Until(t, "knight=K1(C1(P1),H1)")
	for i, at := range []int64{0, 50, 400, 200_000} { // within the answer, the welcome, the list
		version := fmt.Sprint(i + 2)
		w.restart()
		w.s.update(live.Update{Whole: true, Products: crowd(w.s, version)})
		w.After(at, livetest.Silence)
		game.Until(t, fmt.Sprintf("knight=K%s(C%[1]s(P%[1]s),H%[1]s)", version))
	}
	big := strings.Repeat("x", 200_000)
	w.meets()
	w.After(100_000, livetest.Silence) // within a content
	w.s.put(w.s.product("shadow", "texture", big), w.s.product("paint", "texture", "P"))
	until(t, "the content breaks off", w.Ended)
	until(t, "the game has all", func() bool { return strings.HasPrefix(game.Said(""), "knight=K5(C5(P),xxx") })
	w.After(0, livetest.Silence) // within nothing: only the connection is dead
	until(t, "the connection is dead", w.Ended)
	w.s.put(w.s.product("shadow", "texture", "H"))
	game.Until(t, "knight=K5(C5(P),H)")
}

// testFailures: a game knows the assets that fail, and why, at any time.
func testFailures(t *testing.T, language string) {
	failure := func(asset, code, text string) live.Failure {
		return live.Failure{Asset: asset, Messages: diag.List{{Severity: diag.Error, Code: diag.Code(code), Pos: diag.Pos{File: asset, Line: 3}, Text: text, Hint: "do it"}}}
	}
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: army(w.s, "1"), Failed: []live.Failure{failure("cloth", "K0201", `it is "torn" ü`), {Asset: "knight"}}})
	game := livetest.Start(t, language, w.URL(), "knight")
	game.Until(t, "knight=K1(C1(P1),H1)")
	game.UntilSaid(t, "failing", `cloth: K0201 it is "torn" ü; knight:;`)
	w.s.update(live.Update{Failed: []live.Failure{failure("cloth", "K0202", "other")}, Mended: []string{"knight"}})
	game.UntilSaid(t, "failing", "cloth: K0202 other;")
	w.s.update(live.Update{Products: []live.Product{w.s.product("cloth", "material", "C2", "paint")}, Mended: []string{"cloth"}})
	game.UntilSaid(t, "failing", "")
	game.Until(t, "knight=K1(C2(P1),H1)")

	w.s.update(live.Update{Failed: []live.Failure{failure("cloth", "K0203", "again")}})
	game.UntilSaid(t, "failing", "cloth: K0203 again;")
	w.Cut() // the same watcher: nothing is forgotten
	w.s.update(live.Update{Failed: []live.Failure{failure("paint", "K0204", "dry")}})
	game.UntilSaid(t, "failing", "cloth: K0203 again; paint: K0204 dry;")
	w.restart().update(live.Update{Whole: true, Products: army(w.s, "3"), Failed: []live.Failure{failure("shadow", "K0205", "dark")}})
	game.UntilSaid(t, "failing", "shadow: K0205 dark;")
	game.Until(t, "knight=K3(C3(P3),H3)")

	s := w.restart() // in the first build, games that keep what they have know what fails so far
	s.update(live.Update{Failed: []live.Failure{failure("shadow", "K0206", "early"), failure("knight", "K0207", "soon well")}})
	game.UntilSaid(t, "failing", "knight: K0207 soon well; shadow: K0206 early;")
	s.update(live.Update{Mended: []string{"knight"}})
	game.UntilSaid(t, "failing", "shadow: K0206 early;")
	s.update(live.Update{Whole: true, Products: army(s, "4"), Failed: []live.Failure{failure("shadow", "K0206", "early"), failure("cloth", "K0208", "late")}})
	game.UntilSaid(t, "failing", "cloth: K0208 late; shadow: K0206 early;")
	game.Until(t, "knight=K4(C4(P4),H4)")
}

// testReferences: what is used stays loaded, also if the watcher no longer has it, until nothing that is loaded uses it.
func testReferences(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	all := func(s *stock) []live.Product {
		return append(army(s, "1"), s.product("squire", "model", "S", "cloth"), s.product("lamp", "data", "L1"))
	}
	w.s.update(live.Update{Whole: true, Products: all(w.s)})
	game := livetest.Start(t, language, w.URL(), "knight", "squire", "lamp")
	game.UntilSaid(t, "loaded", "cloth knight lamp paint shadow squire")
	game.Release("knight")
	game.UntilSaid(t, "loaded", "cloth lamp paint squire")
	w.s.update(live.Update{Gone: []live.Key{{UUID: uuid("squire")}, {UUID: uuid("cloth")}, {UUID: uuid("paint")}}, Products: []live.Product{w.s.product("lamp", "data", "L2")}})
	until(t, "the lamp is another one", func() bool { return strings.Contains(game.Said(""), "lamp=L2") })
	game.UntilSaid(t, "loaded", "cloth lamp paint squire")
	s := w.restart() // with other numbers, and nothing of that but the lamp
	s.update(live.Update{Whole: true, Products: []live.Product{s.product("0", "data", "0"), s.product("1", "data", "1"), s.product("lamp", "data", "L3")}})
	until(t, "the lamp is another one", func() bool { return strings.Contains(game.Said(""), "lamp=L3") })
	game.UntilSaid(t, "loaded", "cloth lamp paint squire")
	game.Release("squire")
	game.UntilSaid(t, "loaded", "lamp")
	game.Release("lamp")
	game.UntilSaid(t, "loaded", "")
}

// testRemoved: the watcher no longer has a resource that the game holds, and what it needs changes.
func testRemoved(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: append(army(w.s, "1"), w.s.product("lamp", "data", "L1", "paint"))})
	game := livetest.Start(t, language, w.URL(), "knight", "lamp")
	game.UntilSaid(t, "loaded", "cloth knight lamp paint shadow")
	w.s.update(live.Update{Gone: []live.Key{{UUID: uuid("knight")}, {UUID: uuid("cloth")}}, Products: []live.Product{w.s.product("paint", "texture", "P2")}})
	until(t, "the lamp has the paint", func() bool { return strings.Contains(game.Said(""), "lamp=L1(P2)") })
	s := w.restart()
	s.update(live.Update{Whole: true, Products: []live.Product{s.product("0", "data", "0"), s.product("1", "data", "1"), s.product("lamp", "data", "L1", "paint"), s.product("paint", "texture", "P3")}})
	until(t, "the lamp has the paint", func() bool { return strings.Contains(game.Said(""), "lamp=L1(P3)") })
	s.put(s.product("cloth", "material", "C4", "paint"), s.product("knight", "model", "K4", "cloth"))
	game.Until(t, "knight=K4(C4(P3)) lamp=L1(P3)")
	game.UntilSaid(t, "loaded", "cloth knight lamp paint")
	game.Release("knight")
	game.UntilSaid(t, "loaded", "lamp paint")
}

// testRefusedNeed: a resource is refused, so its old version stays, and what that needs changes.
func testRefusedNeed(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: append(army(w.s, "1"), w.s.product("lamp", "data", "L1"))})
	game := livetest.Start(t, language, w.URL(), "knight", "lamp")
	game.UntilSaid(t, "loaded", "cloth knight lamp paint shadow")
	w.s.put(w.s.product("cloth", "material", "bad", "lamp"), w.s.product("paint", "texture", "P2"), w.s.product("lamp", "data", "L2"))
	until(t, "the lamp is another one", func() bool { return strings.HasSuffix(game.Said(""), "lamp=L2") })
	w.s.put(w.s.product("paint", "texture", "P3"), w.s.product("lamp", "data", "L3"))
	until(t, "the lamp is another one", func() bool { return strings.HasSuffix(game.Said(""), "lamp=L3") })
	w.s.put(w.s.product("cloth", "material", "C4", "lamp"))
	game.Until(t, "knight=K1(C4(L3),H1) lamp=L3")
	game.UntilSaid(t, "loaded", "cloth knight lamp shadow")
}

// testOptional: something that a loaded resource uses, and does not require, goes and comes.
func testOptional(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: army(w.s, "1")})
	game := livetest.Start(t, language, w.URL(), "knight")
	game.Until(t, "knight=K1(C1(P1),H1)")
	w.s.update(live.Update{Gone: []live.Key{{UUID: uuid("shadow")}}})
	game.Until(t, "knight=K1(C1(P1),-)")
	game.UntilSaid(t, "loaded", "cloth knight paint")
	w.s.put(w.s.product("shadow", "texture", "H2"))
	game.Until(t, "knight=K1(C1(P1),H2)")
	game.UntilSaid(t, "loaded", "cloth knight paint shadow")
}

// testWaiting: a game that waits takes next to nothing of the processor, connected or not, however often it has connected again.
func testWaiting(t *testing.T, language string) {
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: army(w.s, "0")})
	game := livetest.Start(t, language, w.URL(), "knight")
	game.Until(t, "knight=K0(C0(P0),H0)")
	most := map[string]time.Duration{"c": 10, "js": 2}[language] // node does things of its own
	idle := func(when string) {
		t.Helper()
		if took, worked, ok := game.Idle(t, 500*time.Millisecond); ok && worked > took/most {
			t.Errorf("%s: in %s, the processor worked %s", when, took, worked)
		}
	}
	game.Idle(t, 500*time.Millisecond) // node still makes itself comfortable
	idle("connected")
	for i := range 4 {
		w.To("")
		w.Cut()
		idle("disconnected")
		version := fmt.Sprint(i + 1)
		w.begin()
		w.s.update(live.Update{Whole: true, Products: army(w.s, version)})
		game.Until(t, fmt.Sprintf("knight=K%s(C%[1]s(P%[1]s),H%[1]s)", version))
		idle("connected again")
	}
	w.s.mu.Lock()
	clear(w.s.blobs)
	w.s.mu.Unlock()
	p := w.s.product("paint", "texture", "P9")
	w.s.mu.Lock()
	clear(w.s.blobs)
	w.s.mu.Unlock()
	w.s.put(p)
	idle("a content is not there")
	w.Close()
	idle("nobody listens")
}

// world is a project at random: assets that require others of a lower number.
type world struct {
	random   *rand.Rand
	versions []int
	needs    [][]int
	gone     []bool
}

func (v *world) change() {
	for i := range v.versions {
		switch v.random.IntN(6) {
		case 0:
			v.versions[i]++
		case 1:
			v.needs[i] = nil
			for j := range i {
				if v.random.IntN(3) == 0 && len(v.needs[i]) < 4 {
					v.needs[i] = append(v.needs[i], j)
				}
			}
			v.versions[i]++
		case 2:
			v.gone[i] = v.random.IntN(4) == 0
		}
	}
	v.gone[len(v.gone)-1] = false
}

func (v *world) name(i int) string { return fmt.Sprintf("%c", 'a'+i) }

// products are what there is: an asset that needs one that is gone does not need it.
func (v *world) products(s *stock) (all []live.Product) {
	all = append(all, s.product(fmt.Sprintf("0/%d", v.random.IntN(3)), "data", "0")) // others get other numbers
	for i := range v.versions {
		if v.gone[i] {
			continue
		}
		var needs []string
		for _, n := range v.needs[i] {
			if !v.gone[n] {
				needs = append(needs, v.name(n))
			}
		}
		all = append(all, s.product(v.name(i), "data", fmt.Sprintf("%s%d", v.name(i), v.versions[i]), needs...))
	}
	return all
}

// text is what a game says of an asset.
func (v *world) text(i int) string {
	var needs []string
	for _, n := range v.needs[i] {
		if !v.gone[n] {
			needs = append(needs, v.text(n))
		}
	}
	text := fmt.Sprintf("%s%d", v.name(i), v.versions[i])
	if len(needs) > 0 {
		text += "(" + strings.Join(needs, ",") + ")"
	}
	return text
}

// used adds an asset and all that it needs.
func (v *world) used(i int, all map[string]bool) {
	all[v.name(i)] = true
	for _, n := range v.needs[i] {
		v.used(n, all)
	}
}

// testRandomRestarts restarts a watcher at random moments, and changes the project meanwhile.
func testRandomRestarts(t *testing.T, language string) {
	random := rand.New(rand.NewPCG(thorough.Seed(t), 0))
	const assets = 9
	v := &world{random, make([]int, assets), make([][]int, assets), make([]bool, assets)}
	w := newTown(t)
	w.begin()
	w.s.update(live.Update{Whole: true, Products: v.products(w.s)})
	var names []string
	for i := assets - 3; i < assets; i++ { // all others are loaded only because these need them
		names = append(names, v.name(i))
	}
	game := livetest.Start(t, language, w.URL(), names...)
	restarts := thorough.Of(10, 100)
	for range restarts {
		v.change()
		s := w.restart()
		whole := live.Update{Whole: true, Products: v.products(s)}
		s.mu.Lock()
		s.want = func(asset string) error { // what a game asks for is built at once, or not at all before the end of the first build
			for _, p := range whole.Products {
				if p.Asset == asset {
					return s.hub.Update(map[string]*live.Update{"pc": {Products: needed(p, whole.Products)}})
				}
			}
			return fmt.Errorf("there is no %s", asset)
		}
		s.mu.Unlock()
		late := random.IntN(3)
		if late == 0 { // the game is there before the first build has ended
			w.meets()
			if random.IntN(2) == 0 {
				s.put(needed(whole.Products[random.IntN(len(whole.Products))], whole.Products)...)
			}
		}
		if random.IntN(2) == 0 {
			w.After(int64(random.IntN(6000)), livetest.Cut)
		}
		s.update(whole)
		if late == 1 {
			until(t, "a game is connected, or was", func() bool { return w.Ended() || len(s.hub.Games()) == 1 })
		}
		for n := random.IntN(3); n > 0; n-- {
			v.change()
			s.update(live.Update{Whole: true, Products: v.products(s)})
		}
	}
	for i := range v.gone { // all are there in the end
		v.gone[i] = false
	}
	s := w.restart()
	s.update(live.Update{Whole: true, Products: v.products(s)})
	var want []string
	used := map[string]bool{}
	for i := assets - 3; i < assets; i++ {
		want = append(want, v.name(i)+"="+v.text(i))
		v.used(i, used)
	}
	game.Until(t, strings.Join(want, " "))
	game.UntilSaid(t, "loaded", strings.Join(slices.Sorted(maps.Keys(used)), " "))
	t.Logf("%d restarts, %d wrong unloads", restarts, len(game.Wrong()))
}

// needed returns a product and all that it requires.
func needed(p live.Product, of []live.Product) []live.Product {
	all := []live.Product{p}
	for _, r := range p.Refs {
		for _, q := range of {
			if q.Key == r.Key {
				all = append(all, needed(q, of)...)
			}
		}
	}
	return all
}
