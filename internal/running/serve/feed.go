package serve

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/session"
)

// projectAsset replaces the asset in failures of the whole project: kiln.toml is wrong, the disk is full.
const projectAsset = "kiln.toml"

// feed passes events of a session to a hub, on its own goroutine, because a session does not wait for
// followers.
type feed struct {
	hub       *live.Hub
	dir       string // of the project
	platforms []string
	wake      chan struct{}

	mu    sync.Mutex
	queue []session.Event // not passed on yet: Began, Drafted, Placed, Ended

	whole   bool        // games can have all content: a build had a result
	numbers source.Stat // stat of kiln.ids when it was read
	broken  bool        // the last build was impossible
	began   session.Began
	drafts  map[draft]bool // that games have instead of products
}

// draft identifies a product of which games have a draft.
type draft struct {
	platform, asset string
	key             live.Key
}

// follow takes an event.
func (f *feed) follow(e session.Event) {
	switch e.(type) {
	case session.Began, session.Drafted, session.Placed, session.Ended:
	default:
		return
	}
	f.mu.Lock()
	f.queue = append(f.queue, e)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run passes on all content, and then what changes.
func (f *feed) run(ctx context.Context, s *session.Session) error {
	numbers := map[string]int{}
	if err := f.passAll(ctx, s, numbers); err != nil {
		return err
	}
	for {
		f.mu.Lock()
		queue := f.queue
		f.queue = nil
		f.mu.Unlock()
		for _, e := range queue {
			if err := f.hand(ctx, s, e, numbers); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
		}
	}
}

// passAll passes on all content. If no build has had a result, because the project as a whole cannot be built, nobody knows what that is, and
// games keep what they have.
func (f *feed) passAll(ctx context.Context, s *session.Session, numbers map[string]int) error {
	all := map[string]*live.Update{}
	f.whole = true
	for _, platform := range f.platforms {
		c, err := s.Content(ctx, platform)
		if err != nil {
			return err
		}
		u := &live.Update{Whole: c.Known, Products: products(c.Products)}
		f.whole = f.whole && c.Known
		for _, failed := range c.Failures {
			u.Failed = append(u.Failed, live.Failure{Asset: failed.Asset, Messages: failed.Messages})
		}
		if f.broken = c.Err != nil; f.broken {
			u.Failed = append(u.Failed, wholeProject(c.Err))
		}
		all[platform], numbers[platform] = u, c.Number
	}
	f.readNumbers()
	return f.hub.Update(all)
}

// hand passes on one event.
func (f *feed) hand(ctx context.Context, s *session.Session, e session.Event, numbers map[string]int) error {
	switch e := e.(type) {
	case session.Began:
		f.began = e
	case session.Drafted:
		p := e.Product
		if f.began.Number <= numbers[p.Platform] {
			return nil // the build has ended already
		}
		f.drafts[draft{p.Platform, p.Asset, live.Key{UUID: p.UUID, Sub: p.SubID}}] = true
		return f.hub.Update(map[string]*live.Update{p.Platform: {Products: products([]session.Product{p}), Saved: f.began.Seen}})
	case session.Placed:
		return f.hub.Update(f.updates(&session.Ended{Began: f.began, Products: e.Products}, numbers))
	case session.Ended:
		f.readNumbers()
		for i := range e.Products {
			p := &e.Products[i]
			delete(f.drafts, draft{p.Platform, p.Asset, live.Key{UUID: p.UUID, Sub: p.SubID}})
		}
		if err := f.undraft(ctx, s); err != nil {
			return err
		}
		if !f.whole && e.Report != nil && !e.Report.Stopped {
			if err := f.passAll(ctx, s, numbers); err != nil {
				return err
			}
		}
		return f.hub.Update(f.updates(&e, numbers))
	}
	return nil
}

// undraft restores products whose draft was not replaced by a new product: the job failed later, or made the same
// product as before.
func (f *feed) undraft(ctx context.Context, s *session.Session) error {
	for d := range f.drafts {
		now, err := s.Want(ctx, d.platform, d.asset)
		u := &live.Update{Products: products(now)}
		if err != nil {
			u.Gone = []live.Key{d.key}
		}
		if err := f.hub.Update(map[string]*live.Update{d.platform: u}); err != nil {
			return err
		}
	}
	clear(f.drafts)
	return nil
}

// updates returns the changes of a build, for each platform. Changes up to the number of Content are skipped.
func (f *feed) updates(e *session.Ended, numbers map[string]int) map[string]*live.Update {
	all := map[string]*live.Update{}
	for _, platform := range f.platforms {
		if e.Number > numbers[platform] {
			all[platform] = &live.Update{Saved: e.Seen}
		}
	}
	for i := range e.Products {
		p := &e.Products[i]
		u := all[p.Platform]
		switch {
		case u == nil:
		case p.Gone:
			u.Gone = append(u.Gone, live.Key{UUID: p.UUID, Sub: p.SubID})
		default:
			u.Products = append(u.Products, products(e.Products[i:i+1])...)
		}
	}
	for _, x := range e.Mended {
		if u := all[x.Platform]; u != nil {
			u.Mended = append(u.Mended, x.Asset)
		}
	}
	for _, x := range e.Failed {
		if u := all[x.Platform]; u != nil {
			u.Failed = append(u.Failed, live.Failure{Asset: x.Asset, Messages: x.Messages})
		}
	}
	f.project(e, all)
	return all
}

func wholeProject(err error) live.Failure {
	return live.Failure{Asset: projectAsset, Messages: diag.Messages(err, diag.Internal)}
}

// project reports whether the project as a whole could be built.
func (f *feed) project(e *session.Ended, all map[string]*live.Update) {
	for _, u := range all {
		switch {
		case e.Err != nil:
			u.Failed = append(u.Failed, wholeProject(e.Err))
		case f.broken:
			u.Mended = append(u.Mended, projectAsset)
		}
	}
	f.broken = e.Err != nil
}

// readNumbers passes on kiln.ids, if it has changed. An unreadable file changes nothing; the build reports it.
func (f *feed) readNumbers() {
	path := filepath.Join(f.dir, ids.FileName)
	if _, err := os.Stat(path); err != nil {
		return
	}
	st, _, err := source.StatPath(path)
	if err != nil || st == f.numbers {
		return
	}
	n, err := ship.ReadNumbers(f.dir, ids.FileName, false)
	if err == nil && len(n.Conflicts()) == 0 && f.hub.SetIDs(n.File) == nil {
		f.numbers = st
	}
}
