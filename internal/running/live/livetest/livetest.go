// Package livetest runs small games against a watcher, one in each language that there is a client for: Go, C and JavaScript. It is for
// tests, which have all three come to the same.
//
// A game keeps the resources of some names, and writes a line whenever that changes:
//
//	name=text name=text   their contents, with those of what they need in parentheses
//	!loaded NAME...       all that is loaded, sorted
//	!failing ASSET: CODE TEXT; ...   the assets that fail, sorted, with their messages
//	!wrong ...            something was unloaded that something loaded still uses
//	!idle MS CPU WAITS    the answer to Idle
//
// A content with "bad" in it is refused by its loader. A game is told "release NAME" and "idle MILLISECONDS".
package livetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Languages that there are clients for.
var Languages = []string{"go", "c", "js"}

// Patience is how long a game may take to come to something. No test waits so long unless it fails.
const Patience = time.Minute

// Game is a game that runs.
type Game struct {
	mu       sync.Mutex
	said     map[string]string // its last line of each kind; "": the contents
	wrong    []string          // all lines of this kind
	contents []string          // all contents, in order
	lines    []string          // what it wrote last, for the message of a test that fails
	news     chan struct{}
	tell     func(line string) // has the game do something
	inside   bool              // it is a part of this process
	patience time.Duration     // 0: that of the client
}

// Start starts a game in a language, or skips the test if that cannot be. It ends with the test.
func Start(t testing.TB, language, address string, names ...string) *Game {
	t.Helper()
	return StartPatient(t, language, address, 0, names...)
}

// StartPatient starts a game with a patience of its own.
func StartPatient(t testing.TB, language, address string, patience time.Duration, names ...string) *Game {
	t.Helper()
	g := &Game{said: map[string]string{}, news: make(chan struct{}, 1), patience: patience}
	t.Cleanup(func() { // after the game has ended
		for _, line := range g.Wrong() {
			t.Errorf("%s: %s", language, line)
		}
	})
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
		g.program(t, node, append([]string{"--experimental-websocket", "--no-warnings", filepath.Join(here, "testdata", "game.mjs"),
			filepath.Join(here, "..", "..", "..", "..", "kilnrt", "js", "live.mjs"), address}, names...)...)
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
		out, err := exec.Command(gcc, "-std=c99", "-Wall", "-Wextra", "-Wno-format-truncation", "-Wshadow", "-Wconversion",
			"-pedantic", "-Werror", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I", filepath.Join(here, "..", "..", "..", "..", "kilnrt", "c"), filepath.Join(here, "testdata", "game.c"), "-o", made.path).CombinedOutput()
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
	if g.patience > 0 {
		cmd.Env = append(os.Environ(), fmt.Sprint("KILN_TEST_PATIENCE=", g.patience.Milliseconds()))
	}
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
	g.tell = func(line string) { io.WriteString(in, line+"\n") }
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
	kind, rest := "", line
	if after, ok := strings.CutPrefix(line, "!"); ok {
		kind, rest, _ = strings.Cut(after, " ")
	}
	switch {
	case mark != "":
	case kind == "wrong":
		g.wrong = append(g.wrong, rest)
	default:
		if g.said[kind] = rest; kind == "" && (len(g.contents) == 0 || g.contents[len(g.contents)-1] != rest) {
			g.contents = append(g.contents, rest)
		}
	}
	if g.lines = append(g.lines, mark+line); len(g.lines) > 400 {
		g.lines = g.lines[200:]
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

// Said is the last line of a kind.
func (g *Game) Said(kind string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said[kind]
}

// Wrong are all unloads of something that was still used.
func (g *Game) Wrong() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.wrong)
}

// Contents are all contents that it had, in order.
func (g *Game) Contents() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.contents)
}

// Until waits until the contents are these.
func (g *Game) Until(t testing.TB, want string) {
	t.Helper()
	g.UntilSaid(t, "", want)
}

// UntilSaid waits until the last line of a kind is this one.
func (g *Game) UntilSaid(t testing.TB, kind, want string) {
	t.Helper()
	late := time.After(Patience)
	for g.Said(kind) != want {
		select {
		case <-g.news:
		case <-late:
			t.Fatalf("want\n%s\nand what came is\n%s", want, g.all())
		}
	}
}

// Release has the game give up a name.
func (g *Game) Release(name string) { g.tell("release " + name) }

// Idle has the game do nothing but wait for a while, and returns how long it did and how long the processor worked for it.
// Games in Go share a process with the test: of these nothing is known, and ok is false.
func (g *Game) Idle(t testing.TB, d time.Duration) (took, worked time.Duration, ok bool) {
	t.Helper()
	if g.tell == nil || g.inside {
		return 0, 0, false
	}
	g.mu.Lock()
	g.said["idle"] = ""
	g.mu.Unlock()
	g.tell(fmt.Sprint("idle ", d.Milliseconds()))
	for late := time.After(Patience + d); g.Said("idle") == ""; {
		select {
		case <-g.news:
		case <-late:
			t.Fatalf("the game does not come to an end of waiting\n%s", g.all())
		}
	}
	var a, b, waits int
	if _, err := fmt.Sscan(g.Said("idle"), &a, &b, &waits); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d waits in %d ms took %d ms of the processor", waits, a, b)
	return time.Duration(a) * time.Millisecond, time.Duration(b) * time.Millisecond, true
}
