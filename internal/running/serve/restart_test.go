package serve_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/live/livetest"
)

// TestRestarts: a watcher is restarted again and again, and the game is there while it builds for the first time. The game keeps all that it
// has loaded, and in the end has what is on disk.
func TestRestarts(t *testing.T) {
	for _, language := range livetest.Languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			testRestarts(t, language, thorough.Of(4, 100))
		})
	}
}

func testRestarts(t *testing.T, language string, restarts int) {
	random := rand.New(rand.NewPCG(thorough.Seed(t), 0))
	dir, listen := t.TempDir(), address(t)
	write(t, dir, "kiln.toml", project+"[build]\nworkers = 2\n", "assets/knight.ref", "cloth.ref", "assets/cloth.ref", "paint.txt", "assets/paint.txt", "P0",
		"assets/z.slow", "0")
	gate := make(slow)
	_, stop := startAt(t, listen, dir, live.Guard{}, nil, append(processors.All(), gate, refers{})...)
	close(gate)
	game := livetest.Start(t, language, "http://"+listen, "knight.ref")
	want := []string{"knight.ref=cloth.ref(paint.txt(P0))"}
	game.Until(t, want[0])
	for i := range restarts {
		stop()
		write(t, dir, "assets/z.slow", fmt.Sprint(i)) // so that the first build takes until the gate opens
		if random.IntN(2) == 0 {
			write(t, dir, "assets/paint.txt", fmt.Sprint("P", i+1))
			want = append(want, fmt.Sprintf("knight.ref=cloth.ref(paint.txt(P%d))", i+1))
		}
		gate = make(slow)
		srv, again := startAt(t, listen, dir, live.Guard{}, nil, append(processors.All(), gate, refers{})...)
		stop = again
		for end := time.Now().Add(livetest.Patience); len(srv.Hub().Games()) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the game did not come back")
			}
		}
		if random.IntN(4) > 0 { // else it ends within its first build
			close(gate)
			game.Until(t, want[len(want)-1])
		}
	}
	stop()
	gate = make(slow)
	close(gate)
	_, stop = startAt(t, listen, dir, live.Guard{}, nil, append(processors.All(), gate, refers{})...)
	game.Until(t, want[len(want)-1])
	game.UntilSaid(t, "loaded", "cloth.ref knight.ref paint.txt")
	stop()
	for _, text := range game.Contents() { // versions may be skipped, but nothing else comes between
		if !slices.Contains(want, text) {
			t.Errorf("the game had %s", text)
		}
	}
	t.Logf("%d restarts, %d wrong unloads", restarts, len(game.Wrong()))
}

// TestFirstBuildImpossible: kiln.toml cannot be read when the watcher begins to build. Nobody knows then what there is, so a game keeps what it
// has; it is told why, and gets the content when the file can be read.
func TestFirstBuildImpossible(t *testing.T) {
	for _, language := range livetest.Languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir, listen := t.TempDir(), address(t)
			write(t, dir, "kiln.toml", project, "assets/knight.ref", "paint.txt", "assets/paint.txt", "P0")
			_, stop := startAt(t, listen, dir, live.Guard{}, nil, append(processors.All(), refers{})...)
			game := livetest.Start(t, language, "http://"+listen, "knight.ref")
			game.Until(t, "knight.ref=paint.txt(P0)")
			stop()
			write(t, dir, "assets/paint.txt", "P1")
			_, stop = startAt(t, listen, dir, live.Guard{}, func() { write(t, dir, "kiln.toml", project+"nonsense") }, append(processors.All(), refers{})...)
			for end := time.Now().Add(livetest.Patience); !strings.HasPrefix(game.Said("failing"), "kiln.toml: K"); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the game is not told why, but: ", game.Said("failing"), game.Contents())
				}
			}
			write(t, dir, "kiln.toml", project)
			game.Until(t, "knight.ref=paint.txt(P1)")
			game.UntilSaid(t, "failing", "")
			game.UntilSaid(t, "loaded", "knight.ref paint.txt")
			stop()
			if want := []string{"knight.ref=paint.txt(P0)", "knight.ref=paint.txt(P1)"}; !slices.Equal(game.Contents(), want) {
				t.Errorf("the game had\n%s", strings.Join(game.Contents(), "\n"))
			}
		})
	}
}

// address is one that nobody else takes while no watcher runs: its port is below those that systems give to who asks for any, be it to
// connect with another one (Linux: from 32768, others: from 49152).
func address(t *testing.T) string {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(10_000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal(err)
	return ""
}
