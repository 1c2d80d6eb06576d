// Package session is a project kept open between builds. It watches the project's files, builds at every change, and
// reports the results to its followers: the command, games, pages in a browser.
//
//	s, err := session.Open(session.Config{Build: ...})
//	stop := s.Follow(func(e session.Event) { ... })
//	err = s.Run(ctx) // builds, then watches for changes until ctx ends
//
// Rules:
//
//   - There is one build at a time, of everything. If files change meanwhile, the build is halted, finished results
//     are kept, and the next build starts at once with the changes and the rest.
//   - The last good products of a failed job stay in place.
//   - The project's lock is held during builds only, so that another kiln can build in between. The session notices
//     what it does.
//   - Memory never holds more than the disk does: after a kill at any moment, the disk is as after a killed build.
//   - Followers are called one after the other, on goroutines of the build. They must return at once.
//
// Why no change is lost, step by step:
//
//   - A batch is added to the changes to build. Only a build without an error that was given all of them removes
//     them. Changes during a build are added after that.
//   - Every batch wakes the session: a flag records that something changed since the last build began. So a project
//     that could not be built is tried again, and never waits for a second change.
//   - After a build that was stopped, or that was not of everything, there is one of everything, even if an error
//     comes in between.
//   - After a temporary error, such as a full disk, the build is repeated although nothing changes; jobs several
//     times, at growing intervals.
//   - What must be watched is known only after a check, so after the watch begins there is another check: of
//     everything if the project was opened again, of kiln.toml if that cannot be read, of programs and link targets
//     if these have changed.
//   - Results of a build are reported when they count as known, even if the caller of the build has cancelled it.
//   - The state folder is watched too: if it is deleted, a build of everything creates it again.
//   - A file that changed twice within the resolution of the clock is known to be uncertain (package source), and is
//     hashed by the build that its event causes.
package session

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/running/watch"
)

// Config is which project to keep open, and how.
type Config struct {
	Build     workspace.Config
	Platforms []string      // to build; all if empty
	Workers   int           // concurrent jobs; 0: as in the project file
	Quiet     time.Duration // how long a file must be unchanged before it is built; 0: the default of package watch
	Poll      time.Duration // not 0: check all files at this interval, instead of getting events from the system

	// Sooner returns the assets that are built before others, in this order, but after those that somebody waits for;
	// may be nil.
	Sooner func() []control.Asset
}

// Session is a project kept open. Its methods may be called from several goroutines.
type Session struct {
	cfg   Config
	first chan struct{} // closed when the first build has ended
	over  chan struct{} // closed when Run has returned

	leastBuild, mostWait, retryAfter time.Duration // the constants, unless changed by tests

	telling sync.Mutex // held while followers are called; taken before mu

	mu        sync.Mutex // guards all fields below
	project   *build.Project
	followers []*follower
	content   *content
	wants     wants     // has its own lock
	asked     []request // builds
	wake      chan struct{}
	variables map[string]string
}

type follower struct{ f func(Event) }

// Open opens the project. The error is a diag.List if the cause is in the project.
func Open(cfg Config) (*Session, error) {
	p, err := build.Open(cfg.Build)
	if err != nil {
		return nil, err
	}
	p.Keep()
	s := &Session{cfg: cfg, leastBuild: leastBuild, mostWait: mostWait, retryAfter: retryAfter, first: make(chan struct{}), over: make(chan struct{}), project: p, variables: p.Variables(), content: newContent(), wake: make(chan struct{}, 1)}
	s.wants.begin() // the first build is about to start: Want waits for its job in it, not for the whole build
	return s, nil
}

// Project returns the current project, another one after a change of kiln.toml.
func (s *Session) Project() *build.Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.project
}

// Workers is the number of concurrent jobs.
func (s *Session) Workers() int { return s.Project().Workers(s.cfg.Workers) }

// Follow calls f with every event from now on, until stop is called. f must not block or call the session.
func (s *Session) Follow(f func(Event)) (stop func()) {
	me := &follower{f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers = append(s.followers, me)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.followers {
			if s.followers[i] == me {
				s.followers = append(s.followers[:i:i], s.followers[i+1:]...)
				return
			}
		}
	}
}

// tell calls the followers.
func (s *Session) tell(e Event) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	all := s.followers
	s.mu.Unlock()
	for _, f := range all {
		f.f(e)
	}
}

// Content is everything on a platform after a build.
type Content struct {
	Number   int       // of the last build that is included: only Ended events of higher numbers have news
	Known    bool      // a build has had a result; before that, nobody knows what there is
	Err      error     // what stopped the last build as a whole
	Products []Product // sorted by asset and sub id
	Failures []Failure // sorted by asset
}

// Content returns all products of a platform. It waits for the first build of the session, but never for a later one.
func (s *Session) Content(ctx context.Context, platform string) (*Content, error) {
	if err := s.waitForFirst(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content.of(platform), nil
}

func (s *Session) waitForFirst(ctx context.Context) error {
	select {
	case <-s.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request is a request for a turn.
type request struct {
	do   func(*Turn)
	done chan struct{}
}

// Turn calls do when the session is not building, and waits until it has returned. If the context ends before, do is
// not called.
func (s *Session) Turn(ctx context.Context, do func(*Turn)) error {
	var begun atomic.Bool // or cancelled
	r := request{func(t *Turn) {
		if begun.CompareAndSwap(false, true) {
			do(t)
		}
	}, make(chan struct{})}
	s.mu.Lock()
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case <-ctx.Done():
		if begun.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-r.done
		return nil
	case <-r.done:
		return nil
	case <-s.over:
		return context.Canceled
	}
}

// Variables returns the hashes of the project's relevant environment variables, by name.
func (s *Session) Variables() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.variables
}

// Busy reports whether a build is under way.
func (s *Session) Busy() bool { return s.wants.building() }

// Build checks all changes, builds, and returns when that is done.
func (s *Session) Build(ctx context.Context) error {
	var err error
	terr := s.Turn(ctx, func(t *Turn) { _, err = t.Build(ctx, t.r.request()) })
	return errors.Join(terr, err)
}

// Blob opens the bytes of a product: its blob or, if that is lost, an output with the same content.
func (s *Session) Blob(h digest.Hash) (*os.File, error) {
	p := s.Project()
	f, err := p.OpenBlob(h)
	if err == nil {
		return f, nil
	}
	s.mu.Lock()
	files := s.content.files(h)
	s.mu.Unlock()
	for _, name := range files {
		out, oerr := disk.Open(filepath.Join(p.OutputDir(), filepath.FromSlash(name)))
		if oerr != nil {
			continue
		}
		got, _, oerr := digest.Reader(out)
		if _, serr := out.Seek(0, io.SeekStart); oerr == nil && serr == nil && got == h {
			return out, nil
		}
		out.Close()
	}
	return nil, err
}

// Run builds, then watches for changes and builds after each, until the context ends. The error is the context's, or
// the reason why watching is impossible.
func (s *Session) Run(ctx context.Context) error {
	r := &run{Session: s, p: s.Project(), full: true, all: true, relink: true, onError: results.LastGood, over: ctx.Done()}
	if err := r.watch(false); err != nil {
		return err
	}
	r.reopen = true // it may have changed before it was watched
	defer func() { r.w.Close() }()
	defer close(s.over)
	for {
		if r.due() {
			r.bring(ctx)
		}
		r.turns(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		again, err := r.rewatch()
		if err != nil {
			return err
		}
		r.again = r.again || again
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
}

// noted reports the notes of a batch.
func (s *Session) noted(b *watch.Batch) {
	for _, m := range b.Notes {
		s.tell(Noted{m})
	}
}
