package game

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// TestMain makes the test binary a game, too: it plays until its standard input ends.
func TestMain(m *testing.M) {
	switch os.Getenv("PLAY") {
	case "":
		os.Exit(m.Run())
	case "crash":
		os.Exit(3)
	}
	var b [1]byte
	os.Stdin.Read(b[:])
}

// keep keeps a game until the test ends, and returns the events that are reported of it.
func keep(t *testing.T, k *Keeper) <-chan Event {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); hold.Close() })
	if k.Settings == nil {
		k.Settings = func() project.Run {
			return project.Run{Command: []string{program}, Env: []project.EnvVariable{{Name: "PLAY", Value: "on"}}}
		}
	}
	events := make(chan Event, 100)
	k.Start.Dir, k.Start.In, k.Interval = t.TempDir(), in, time.Millisecond
	k.Tell = func(e Event) { events <- e }
	k.Interrupted = func() bool { return false }
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { k.Run(ctx); close(over) }()
	t.Cleanup(func() { cancel(); <-over })
	return events
}

const patience = 30 * time.Second

func next(t *testing.T, events <-chan Event) Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(patience):
		t.Fatal("nothing was told")
	}
	return Event{}
}

// TestConnected: a game that gets changes while it runs is not restarted for them; one that does not is.
func TestConnected(t *testing.T) {
	var connected atomic.Bool
	asked := make(chan bool, 100)
	k := &Keeper{Connected: func(time.Time) bool { asked <- true; return connected.Load() }}
	events := keep(t, k)
	k.Built(false, true) // not started by a build that fails
	k.Built(true, true)
	if e := next(t, events); !e.Started || e.Why != "" {
		t.Fatalf("%+v", e)
	}
	connected.Store(true)
	k.Built(true, true)
	<-asked
	connected.Store(false)
	k.Built(true, false) // nothing that it reads
	k.Built(true, true)
	if e := next(t, events); !e.Started || e.Why != "what it reads changed" {
		t.Fatalf("%+v", e)
	}
	if n := len(asked); n != 1 {
		t.Errorf("it was asked %d times more whether the game is connected", n)
	}
}

// TestProgramChanged: a game is restarted when its program is another one, and one that cannot be started is tried again then.
func TestProgramChanged(t *testing.T) {
	var program atomic.Value
	k := &Keeper{Connected: func(time.Time) bool { return true }}
	k.Settings = func() project.Run { return project.Run{Command: []string{program.Load().(string)}} }
	program.Store("./game")
	events := keep(t, k)
	k.Built(true, false)
	var m *diag.Message
	if e := next(t, events); !errors.As(e.Err, &m) || m.Code != diag.GameNotStarted {
		t.Fatalf("%+v", e)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PLAY", "on")
	file := filepath.Join(k.Start.Dir, "game")
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	put := func() {
		if err := errors.Join(os.WriteFile(file+".new", self, 0o777), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if e := next(t, events); !e.Started || e.Why != "its program changed" {
		t.Fatalf("%+v", e)
	}
	self = append(self, 0)
	put()
	if e := next(t, events); !e.Started || e.Why != "its program changed" {
		t.Fatalf("%+v", e)
	}
}

// TestEnd: how a game ended is known, and ending it once more does no harm.
func TestEnd(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	crash := project.Run{Command: []string{program}, Env: []project.EnvVariable{{Name: "PLAY", Value: "crash"}}}
	g, err := New(&Start{Dir: t.TempDir(), Run: crash})
	if err != nil {
		t.Fatal(err)
	}
	if g.Exit() != 3 {
		t.Errorf("exit code %d", g.Exit())
	}
	g.End(true) // it has
}
