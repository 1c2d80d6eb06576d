package game

import (
	"context"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// Keeper keeps a game running beside a session. It starts the game after the first build that did not fail, and restarts it when
// something changes that a running game cannot take over:
//
//   - [run] in kiln.toml, or the game's program;
//   - products, parcels or constants, if the game has not connected as a live game, and so reads files.
//
// A game that its player closed stays closed until [run] or its program changes. A game that ended with an error is
// started again after any change.
type Keeper struct {
	Start     Start // Run is set from Settings
	Settings  func() project.Run
	Connected func(since time.Time) bool // reports whether a game that was started at this time receives changes while it runs
	Anyway    bool                       // start it even after a build that failed
	Tell      func(Event)

	Interrupted func() bool   // reports, when the context has ended, whether the game was interrupted too, for example by Ctrl-C
	Interval    time.Duration // at which the game's program is checked; 0: a second

	mu    sync.Mutex
	built built
	wake  chan struct{}
	once  sync.Once
}

// built is the result of the builds since the last check.
type built struct {
	ok      bool // the last one did not fail
	any     bool // there was a build
	changed bool // files that the game reads have changed
}

// Event reports that a game was started, with the reason; that it ended by itself, with its exit code; or that it could
// not be started.
type Event struct {
	Started bool
	Why     string // reason of a restart
	Exit    int
	Err     error
}

func (k *Keeper) channel() chan struct{} {
	k.once.Do(func() { k.wake = make(chan struct{}, 1) })
	return k.wake
}

// Built reports that a build ended, whether it succeeded, and whether it changed files that games read. It returns
// at once.
func (k *Keeper) Built(ok, changed bool) {
	k.mu.Lock()
	k.built = built{ok, true, k.built.changed || changed}
	k.mu.Unlock()
	select {
	case k.channel() <- struct{}{}:
	default:
	}
}

// Run keeps the game running until the context ends, and then ends the game.
func (k *Keeper) Run(ctx context.Context) {
	r := running{k: k}
	every := k.Interval
	if every == 0 {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if r.game != nil {
				r.game.End(k.Interrupted())
			}
			return
		case <-k.channel():
		case <-tick.C:
		case <-r.done():
			k.Tell(Event{Exit: r.game.Exit()})
			r.failed = r.game.Exit() != 0
			r.game = nil
			continue
		}
		if ctx.Err() == nil {
			r.look()
		}
	}
}

// running is the state of a keeper.
type running struct {
	k       *Keeper
	game    *Game
	tried   bool        // the game was started, or starting it failed
	failed  bool        // it ended with an error, or could not be started
	settled project.Run // the settings with which it was started
	program fileState
	since   time.Time
}

func (r *running) done() <-chan struct{} {
	if r.game == nil {
		return nil
	}
	return r.game.Done()
}

// look starts or restarts the game if there is a reason.
func (r *running) look() {
	k := r.k
	k.mu.Lock()
	b := k.built
	ready := b.any && (b.ok || k.Anyway)
	if ready {
		k.built.changed = false
	}
	k.mu.Unlock()
	if !ready {
		return
	}
	settings := k.Settings()
	why := r.reason(&settings, b.changed)
	if why == "" && r.tried {
		return
	}
	if r.game != nil {
		r.game.End(false)
		r.game = nil
	}
	r.start(settings, why)
}

// reason is why the game must be restarted, or "".
func (r *running) reason(settings *project.Run, changed bool) string {
	now := programState(r.k.Start.Dir, settings)
	switch {
	case !r.tried:
	case !sameRun(settings, &r.settled):
		return "[run] changed"
	case now != r.program && now != (fileState{}):
		return "its program changed"
	case changed && r.game == nil && r.failed:
		return "something changed since it failed"
	case changed && r.game != nil && !r.k.Connected(r.since):
		return "what it reads changed"
	}
	return ""
}

func (r *running) start(settings project.Run, why string) {
	s := r.k.Start
	s.Run = settings
	r.tried, r.settled, r.since = true, settings, time.Now()
	r.program = programState(s.Dir, &settings)
	var err error
	r.game, err = New(&s)
	r.failed = err != nil
	r.k.Tell(Event{Started: err == nil, Why: why, Err: err})
}

func sameRun(a, b *project.Run) bool {
	x, y := *a, *b
	x.Span, y.Span = project.Run{}.Span, project.Run{}.Span // the section may have moved within the file
	return reflect.DeepEqual(x, y)
}

// fileState identifies a version of a file.
type fileState struct {
	size int64
	time time.Time
}

func programState(dir string, r *project.Run) fileState {
	file, err := Program(dir, r)
	if err != nil {
		return fileState{}
	}
	info, err := os.Stat(file)
	if err != nil {
		return fileState{}
	}
	return fileState{info.Size(), info.ModTime()}
}
