package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// pollEvery is the interval of polling, where the system does not report changes. Checking 100,000 files takes about
// 0.1 s here; at most a tenth of the time is spent on it.
const pollEvery = time.Second

// poller checks everything at intervals.
type poller struct {
	every time.Duration
	out   chan []event
	now   chan chan bool
	quit  chan struct{}
	over  sync.WaitGroup

	mu   sync.Mutex
	dirs folders[*listing]
}

// listing is the content of a folder at one check.
type listing struct {
	dir     string
	self    look // from before the entries were listed
	entries map[string]look
}

// look is what is compared of a file.
type look struct {
	size    int64
	mtime   int64 // nanoseconds since 1970
	changed int64 // the time of the last change of content or metadata, likewise; 0 if the system has none
	inode   uint64
	mode    uint32
	dir     bool
	fresh   bool // so new that another change may not show: counts as changed at the next check
}

// A file that changed less than this before it was checked may change again without a change of its times; see package
// source.
const (
	freshTime       = 20 * time.Millisecond
	freshTimeCoarse = 2 * time.Second
)

func fresh(mtime int64, now time.Time) bool {
	window := freshTime
	if mtime%int64(time.Second) == 0 {
		window = freshTimeCoarse
	}
	return now.Sub(time.Unix(0, mtime)).Abs() < window
}

func newPoller(every time.Duration) notifier {
	p := &poller{every: every, out: make(chan []event, 1), now: make(chan chan bool), quit: make(chan struct{})}
	p.over.Go(p.run)
	return p
}

func (p *poller) add(dir string, _ bool) error {
	l, err := list(dir)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirs.put(dir, l)
	return nil
}

func (p *poller) remove(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirs.cut(dir)
}

func (p *poller) events() <-chan []event { return p.out }

func (p *poller) sync() bool {
	done := make(chan bool)
	select {
	case p.now <- done:
		return <-done
	case <-p.quit:
		return false
	}
}

func (p *poller) close() {
	close(p.quit)
	p.over.Wait()
}

func (p *poller) run() {
	wait := p.every
	for {
		var done chan bool
		select {
		case <-p.quit:
			return
		case <-time.After(wait):
		case done = <-p.now:
		}
		start := time.Now()
		sent := p.send(p.look())
		if done != nil {
			done <- sent
		}
		if !sent {
			return
		}
		wait = max(p.every, 9*time.Since(start))
	}
}

func (p *poller) send(events []event) bool {
	if len(events) == 0 {
		return true
	}
	select {
	case p.out <- events:
		return true
	case <-p.quit:
		return false
	}
}

// look compares all folders with the last check.
func (p *poller) look() []event {
	p.mu.Lock()
	all := p.dirs.all()
	p.mu.Unlock()
	var events []event
	for _, was := range all {
		events = p.lookAt(events, was.dir)
	}
	return events
}

// lookAt compares a folder with the last check.
func (p *poller) lookAt(events []event, dir string) []event {
	now, err := list(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTDIR) {
		return events // a server does not answer: compared when it does
	}
	p.mu.Lock()
	was, still := p.dirs.get(dir)
	if still && err == nil {
		p.dirs.put(dir, now)
	}
	if err != nil {
		// The folder is no longer watched. If its parent is restored with it before the next check, both look
		// unchanged. So the parent forgets its name, and reports it again.
		if above, ok := p.dirs.get(filepath.Dir(dir)); ok {
			delete(above.entries, filepath.Base(dir))
		}
	}
	p.mu.Unlock()
	switch {
	case !still:
	case err != nil:
		events = append(events, event{path: dir, kind: removed, dir: true})
	default:
		events = compareLooks(events, dir, was.entries, now.entries)
		if was.self != now.self || was.self.fresh {
			events = append(events, event{path: dir, kind: stirred, dir: true})
		}
	}
	return events
}

func compareLooks(events []event, dir string, was, now map[string]look) []event {
	for name, l := range now {
		old, known := was[name]
		switch path := filepath.Join(dir, name); {
		case known && !old.fresh && old == l, known && l.dir && old.mode == l.mode && old.inode == l.inode:
		case l.dir:
			events = append(events, event{path: path, kind: moved, dir: true})
		default:
			events = append(events, event{path: path, kind: changed})
		}
	}
	for name := range was {
		if _, still := now[name]; !still {
			events = append(events, event{path: filepath.Join(dir, name), kind: removed, dir: was[name].dir})
		}
	}
	return events
}

func list(dir string) (*listing, error) {
	start := time.Now()
	self, err := lookOf(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	l := &listing{dir, self, make(map[string]look, len(entries))}
	l.self.size, l.self.fresh = 0, fresh(self.mtime, start)
	for _, e := range entries {
		if x, err := lookOf(filepath.Join(dir, e.Name())); err == nil {
			x.fresh = fresh(x.mtime, start)
			l.entries[e.Name()] = x
		}
	}
	return l, nil
}
