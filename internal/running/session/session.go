// Package session is a project kept open between builds. It follows the project's files, builds at every change, and tells whoever
// wants to know what came of it: the command, games, pages in a browser.
//
//	s, err := session.Open(session.Config{Build: ...})
//	stop := s.Follow(func(e session.Event) { ... })
//	err = s.Run(ctx) // builds, then follows changes until ctx ends
//
// Rules:
//
//   - There is one build at a time, of everything. Changes that come meanwhile join it: it stops, keeps what is finished, and goes on at once
//     with what the changes did not touch.
//   - A job that fails leaves the last good products in place.
//   - The project's lock is held during builds only, so that another kiln can have it in between. What it does is seen.
//   - What is held in memory is only ever what the disk says: killed at any moment, the session leaves what any build leaves.
//   - Followers are called one after the other, on goroutines of the build. They must return at once.
//
// Why no change is lost, step by step:
//
//   - What a batch says is added to what is to be done, and that is emptied only by a build without an error which was given all of it. What comes while
//     a build is under way is added after that.
//   - Every batch wakes: it is remembered that something came since the last build began, wherever it was taken in. So a project that could not be built
//     is tried again, and never waits for a second change.
//   - A build that was stopped, or was of less than everything, is followed by one of everything, even if an error comes in between.
//   - What failed for a moment, as when a disk is full, is tried again although nothing changes; jobs some times, ever later.
//   - What there is to watch is known after a look only, so after watching begins there is another look: at everything if the project was read anew, at
//     kiln.toml if that cannot be read, at programs and what links lead to if these are others.
//   - What a build made is told when it counts as known, be it that who asked for the build has cancelled it.
//   - The state folder is watched, too: where it is gone, a build of everything makes it anew.
//   - A file changed again within the grain of the clock is known to be uncertain (package source), and looked into by the build that its event causes.
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

// Config says which project to keep open, and how.
type Config struct {
	Build     workspace.Config
	Platforms []string      // to build for; all if empty
	Workers   int           // jobs at once; 0: as the project says
	Quiet     time.Duration // how long a file must be left alone before it is looked at; 0: the default of package watch
	Poll      time.Duration // not 0: look at all files so often, instead of being told of changes by the system

	// Sooner lists the assets that are built before others, in this order, though after those that are wanted; may be nil.
	Sooner func() []control.Asset
}

// Session is a project kept open. Its methods may be called from several goroutines.
type Session struct {
	cfg   Config
	first chan struct{} // closed when the first build has ended
	over  chan struct{} // closed when Run has

	leastBuild, mostWait, retryAfter time.Duration // as the constants; other in tests

	telling sync.Mutex // held while followers are called; taken before mu

	mu        sync.Mutex // all below
	project   *build.Project
	followers []*follower
	content   *content
	wants     wants     // has a lock of its own
	asked     []request // for builds
	wake      chan struct{}
	variables map[string]string
}

type follower struct{ f func(Event) }

// Open reads the project. The error is a diag.List where the project is to blame.
func Open(cfg Config) (*Session, error) {
	p, err := build.Open(cfg.Build)
	if err != nil {
		return nil, err
	}
	p.Keep()
	s := &Session{cfg: cfg, leastBuild: leastBuild, mostWait: mostWait, retryAfter: retryAfter, first: make(chan struct{}), over: make(chan struct{}), project: p, variables: p.Variables(), content: newContent(), wake: make(chan struct{}, 1)}
	s.wants.begin() // the first build is as good as under way: who wants something waits for that, and not for all of it
	return s, nil
}

// Project is the project as it is now. After a change of kiln.toml it is another one.
func (s *Session) Project() *build.Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.project
}

// Workers is how many jobs run at once.
func (s *Session) Workers() int { return s.Project().Workers(s.cfg.Workers) }

// Follow has f called with every event from now on, until stop is called. f must neither block nor call the session.
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

// Content is what there is for a platform after a build.
type Content struct {
	Number   int       // of the last build that is in it: what Ended tells of builds with a higher number is not
	Products []Product // sorted by asset and sub id
	Failures []Failure // sorted by asset
}

// Content tells of all products of a platform. It waits for the first build of the session to end, and never for a later one.
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

// request is for a turn.
type request struct {
	do   func(*Turn)
	done chan struct{}
}

// Turn has do called when the session is not building, and waits until it has returned. If the context ends before it begins, it is not
// called.
func (s *Session) Turn(ctx context.Context, do func(*Turn)) error {
	var begun atomic.Bool // or given up
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

// Variables are the hashes of the environment variables that matter in the project, by name.
func (s *Session) Variables() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.variables
}

// Busy tells whether a build is under way.
func (s *Session) Busy() bool { return s.wants.building() }

// Build has everything looked at that changed, and built, and waits until that is done.
func (s *Session) Build(ctx context.Context) error {
	var err error
	terr := s.Turn(ctx, func(t *Turn) { _, err = t.Build(ctx, t.r.request()) })
	return errors.Join(terr, err)
}

// Blob opens the bytes of a product: its blob, or, if that is lost, an output that holds the same.
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

// Run builds, then follows changes and builds at each, until the context ends. The error is the context's, or tells why nothing can be
// followed.
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

// noted passes on the notes of a batch.
func (s *Session) noted(b *watch.Batch) {
	for _, m := range b.Notes {
		s.tell(Noted{m})
	}
}
