package livetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/kiln-pipeline/kiln/kilnrt/live"
)

// goGame is the game in Go, on goroutines of this process.
type goGame struct {
	*Game
	l       *client.Library
	names   []string
	handles []*client.Handle
	orders  chan string

	mu     sync.Mutex
	things map[*thing]bool // what is loaded
	failed bool            // the assets that fail have changed
}

// thing is a loaded resource. It uses what it was made of until it is unloaded.
type thing struct {
	g     *goGame
	name  string
	text  string
	needs []*thing
}

// Unload is called by the library.
func (t *thing) Unload() {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if !t.g.things[t] {
		t.g.say("!wrong "+t.name+" was unloaded twice", "")
	}
	delete(t.g.things, t)
	for other := range t.g.things {
		if slices.Contains(other.needs, t) {
			t.g.say("!wrong "+t.name+" was unloaded, which "+other.name+" uses", "")
		}
	}
}

// startGo runs the game in Go.
func (g *Game) startGo(t testing.TB, address string, names []string) {
	ctx, cancel := context.WithCancel(context.Background())
	me := &goGame{Game: g, names: names, handles: make([]*client.Handle, len(names)), orders: make(chan string, 100), things: map[*thing]bool{}}
	g.inside, g.tell = true, func(line string) { me.orders <- line }
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		l, err := client.Connect(ctx, client.Options{Address: address, Game: "go", Notify: me.notify, Patience: g.patience})
		if err != nil {
			g.say(err.Error(), "# ")
			return
		}
		defer l.Close()
		me.l = l
		l.Register("", me.load)
		me.play(ctx)
	})
}

func (g *goGame) notify(e client.Event) {
	g.say(fmt.Sprintf("%T", e), "# ")
	g.mu.Lock()
	g.failed = true
	g.mu.Unlock()
}

func (g *goGame) play(ctx context.Context) {
	frames := time.NewTicker(5 * time.Millisecond)
	defer frames.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		news := len(g.l.Poll()) > 0
		if n%20 == 0 {
			news = g.hold() || news
		}
		if news {
			g.tellTexts()
		}
		g.tellRest()
		select {
		case <-ctx.Done():
		case line := <-g.orders:
			g.release(strings.TrimPrefix(line, "release "))
		case <-frames.C:
		}
	}
}

// hold loads what is not loaded yet.
func (g *goGame) hold() (news bool) {
	for i, name := range g.names {
		if g.handles[i] != nil || name == "" {
			continue
		}
		h, err := g.l.LoadName(name)
		if err != nil {
			g.say(err.Error(), "# ")
			continue
		}
		g.handles[i], news = h, true
	}
	return news
}

func (g *goGame) release(name string) {
	i := slices.Index(g.names, name)
	g.handles[i].Release()
	g.handles[i], g.names[i] = nil, ""
}

func (g *goGame) tellTexts() {
	var line []string
	for i, h := range g.handles {
		text := "?"
		if h != nil {
			text = h.Value().(*thing).text
		}
		line = append(line, g.names[i]+"="+text)
	}
	g.say(strings.Join(line, " "), "")
}

func (g *goGame) tellRest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := []string{"!loaded"}
	for t := range g.things {
		names = append(names, t.name)
	}
	slices.Sort(names[1:])
	if line := strings.Join(names, " "); line != "!loaded "+g.Said("loaded") {
		g.say(line, "")
	}
	if !g.failed {
		return
	}
	g.failed = false
	line := []string{"!failing"}
	for asset, messages := range g.l.Failures() {
		text := asset + ":"
		for _, m := range messages {
			text += " " + m.Code + " " + m.Text
		}
		line = append(line, text+";")
	}
	slices.Sort(line[1:])
	g.say(strings.Join(line, " "), "")
}

func (g *goGame) load(in *client.Loading) (any, error) {
	b, err := in.Resource.Bytes()
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(b), "bad") {
		return nil, errors.New("the game's loader refused it")
	}
	made := &thing{g: g, name: in.Resource.Name(), text: string(b)}
	var texts []string
	for _, n := range in.Needs {
		need, _ := n.Value.(*thing)
		text := "-"
		if need != nil {
			text = need.text
		}
		texts, made.needs = append(texts, text), append(made.needs, need)
	}
	if len(texts) > 0 {
		made.text += "(" + strings.Join(texts, ",") + ")"
	}
	g.mu.Lock()
	g.things[made] = true
	g.mu.Unlock()
	return made, nil
}
