// Package livetest runs small games against a watcher, one in each language that there is a client for: Go, C and JavaScript. It is for
// tests, which have all three come to the same.
//
// A game keeps the resources of some names, and tells what they are whenever that changes: their contents as text, with those of what they
// need in parentheses. A content with "bad" in it is refused by its loader.
package livetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/kiln-pipeline/kiln/kilnrt/live"
)

// Languages that there are clients for.
var Languages = []string{"go", "c", "js"}

// Patience is how long a game may take to come to something. No test waits so long unless it fails.
const Patience = time.Minute

// Game is a game that runs.
type Game struct {
	mu    sync.Mutex
	said  string   // its last line
	lines []string // all that it wrote, for the message of a test that fails
	news  chan struct{}
}

// Start starts a game in a language, or skips the test if that cannot be. It ends with the test.
func Start(t testing.TB, language, address string, names ...string) *Game {
	t.Helper()
	g := &Game{news: make(chan struct{}, 1)}
	switch language {
	case "go":
		g.startGo(t, address, names)
	case "c":
		g.program(t, compiled(t), append([]string{address}, names...)...)
	case "js":
		node, err := exec.LookPath("node")
		if err != nil {
			t.Skip("there is no node")
		}
		here := folder()
		g.program(t, node, append([]string{"--experimental-websocket", "--no-warnings", filepath.Join(here, "testdata", "game.mjs"), filepath.Join(here, "..", "..", "..", "..", "kilnrt", "js", "live.mjs"), address}, names...)...)
	}
	return g
}

// folder is where this file lies: paths of tests are relative to their own packages.
func folder() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for d := dir; filepath.Dir(d) != d; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return filepath.Join(d, "internal", "running", "live", "livetest")
		}
	}
	return dir
}

// made is the C game, compiled once a test run.
var made struct {
	sync.Once
	path string
	err  error
}

func compiled(t testing.TB) string {
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no gcc")
	}
	made.Do(func() {
		dir, err := os.MkdirTemp("", "kiln-live-")
		if err != nil {
			made.err = err
			return
		}
		made.path = filepath.Join(dir, "game")
		here := folder()
		out, err := exec.Command(gcc, "-std=c99", "-Wall", "-Wextra", "-Wno-format-truncation", "-Wshadow", "-Wconversion", "-pedantic", "-Werror", "-O1", "-g", "-fsanitize=address,undefined",
			"-fno-sanitize-recover=all", "-I", filepath.Join(here, "..", "..", "..", "..", "kilnrt", "c"), filepath.Join(here, "testdata", "game.c"), "-o", made.path).CombinedOutput()
		if err != nil {
			made.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made.path
}

// Clean removes what was compiled: call it at the end of TestMain.
func Clean() {
	if made.path != "" {
		os.RemoveAll(filepath.Dir(made.path))
	}
}

// program runs a game that is a program of its own.
func (g *Game) program(t testing.TB, name string, args ...string) {
	cmd := exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { g.read(out, "") })
	reading.Go(func() { g.read(said, "# ") })
	t.Cleanup(func() {
		in.Close()
		late := time.AfterFunc(Patience, func() { cmd.Process.Kill() })
		defer late.Stop()
		reading.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, g.all())
		}
	})
}

func (g *Game) read(r io.Reader, mark string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		g.say(lines.Text(), mark)
	}
}

// say takes a line. What has a mark is for people.
func (g *Game) say(line, mark string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if mark == "" {
		g.said = line
	}
	if g.lines = append(g.lines, mark+line); len(g.lines) > 200 {
		g.lines = g.lines[100:]
	}
	select {
	case g.news <- struct{}{}:
	default:
	}
}

func (g *Game) all() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

// Said is the last line: "name=text name=text".
func (g *Game) Said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said
}

// Until waits until the last line is this one.
func (g *Game) Until(t testing.TB, want string) {
	t.Helper()
	late := time.After(Patience)
	for g.Said() != want {
		select {
		case <-g.news:
		case <-late:
			t.Fatalf("want\n%s\nand what came is\n%s", want, g.all())
		}
	}
}

// startGo runs the Go game on goroutines of this process.
func (g *Game) startGo(t testing.TB, address string, names []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		l, err := client.Connect(ctx, client.Options{Address: address, Game: "go"})
		if err != nil {
			g.say(err.Error(), "# ")
			return
		}
		defer l.Close()
		l.Register("", loadText)
		g.play(ctx, l, names)
	})
}

func (g *Game) play(ctx context.Context, l *client.Library, names []string) {
	handles := make([]*client.Handle, len(names))
	frames := time.NewTicker(5 * time.Millisecond)
	defer frames.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		news := len(l.Poll()) > 0
		for i, name := range names {
			if handles[i] == nil && n%20 == 0 {
				h, err := l.LoadName(name)
				if err != nil {
					g.say(err.Error(), "# ")
					continue
				}
				handles[i], news = h, true
			}
		}
		if news {
			var line []string
			for i, h := range handles {
				text := "?"
				if h != nil {
					text = h.Value().(string)
				}
				line = append(line, names[i]+"="+text)
			}
			g.say(strings.Join(line, " "), "")
		}
		select {
		case <-ctx.Done():
		case <-frames.C:
		}
	}
}

func loadText(in *client.Loading) (any, error) {
	b, err := in.Resource.Bytes()
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(b), "bad") {
		return nil, errors.New("the game's loader refused it")
	}
	var needs []string
	for _, n := range in.Needs {
		text, ok := n.Value.(string)
		if !ok {
			text = "-"
		}
		needs = append(needs, text)
	}
	if len(needs) == 0 {
		return string(b), nil
	}
	return string(b) + "(" + strings.Join(needs, ",") + ")", nil
}
