package serve

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kiln-pipeline/kiln/internal/running/dashboard"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// Dashboard makes the pages about the project. They follow the session until the dashboard is closed.
func (s *Server) Dashboard(cfg dashboard.Config) (d *dashboard.Dashboard, stop func(), err error) {
	p := s.cfg.Session.Project()
	feed := dashboard.NewFeed(s.cfg.Session.Workers())
	cfg.Dir, cfg.Database = p.Dir, p.DatabasePath()
	cfg.Blobs = cas.OpenReadOnly(filepath.Join(filepath.Dir(cfg.Database), "cas"))
	cfg.Feed, cfg.Games = feed, games{s.hub}
	if d, err = dashboard.New(cfg); err != nil {
		return nil, nil, err
	}
	unfollow := s.cfg.Session.Follow(func(e session.Event) { show(feed, e) })
	news, deaf := s.hub.Watch()
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-news:
				feed.GamesChanged()
			case <-ended:
				return
			}
		}
	}()
	return d, func() { unfollow(); deaf(); close(ended) }, nil
}

// show passes an event to the dashboard's feed.
func show(f *dashboard.Feed, e session.Event) {
	switch e := e.(type) {
	case session.Began:
		f.Begin(e.Number, e.Paths)
	case session.Planned:
		f.Planned(e.Jobs)
	case session.JobStarted:
		f.JobStarted(e.Job)
	case session.JobSuspended:
		f.JobSuspended(e.Job, e.On, e.Begins)
	case session.JobMoved:
		f.JobMoved(e.Job, e.At)
	case session.JobFinished:
		f.JobFinished(e.Job, e.Failed, e.Took)
	case session.Noted:
		f.Note(e.Message.Text)
	case session.Ended:
		f.End(e.Err)
	}
}

// games gives the dashboard access to a hub's games.
type games struct{ hub *live.Hub }

// mostLoaded is how many of the loaded resources, and of the log lines, of a game are shown.
const mostLoaded = 200

// Connected lists the games in the order in which they connected.
func (g games) Connected() []dashboard.Game {
	var all []dashboard.Game
	lines, took := g.hub.Lines(), map[int]time.Duration{}
	for _, l := range g.hub.Latencies() {
		took[l.Game] = l.Took
	}
	for _, x := range g.hub.Games() {
		out := dashboard.Game{ID: strconv.Itoa(x.Number), Name: x.Name, Platform: x.Platform, Address: x.Address, Since: x.Since, Parcels: x.Parcels,
			Resources: len(x.Loaded), Swapped: x.Swapped, Latency: took[x.Number]}
		refused := map[uint32]string{}
		for _, r := range x.Refused {
			refused[r.ID] = r.Reason
		}
		for i := len(x.Loaded) - 1; i >= 0 && len(out.Loaded) < mostLoaded; i-- {
			r := x.Loaded[i]
			reason, old := refused[r.ID]
			out.Loaded = append(out.Loaded, dashboard.Loaded{Asset: r.Asset, Name: r.Name, Stale: old, Refused: reason})
		}
		for _, l := range lines {
			if l.Game == x.Number {
				out.Log = append(out.Log, dashboard.LogLine{At: l.At, Level: l.Level, Text: l.Text})
			}
		}
		out.Log = out.Log[max(0, len(out.Log)-mostLoaded):]
		all = append(all, out)
	}
	return all
}

// Push sends an asset to a game again.
func (g games) Push(_ context.Context, game, asset string) error {
	n, err := number(game)
	if err != nil {
		return err
	}
	return g.hub.ReloadAsset(n, asset)
}

// Reload makes a game load everything again.
func (g games) Reload(_ context.Context, game string) error {
	n, err := number(game)
	if err != nil {
		return err
	}
	return g.hub.Reload(n)
}

func number(game string) (int, error) {
	n, err := strconv.Atoi(game)
	if err != nil {
		return 0, fmt.Errorf("%q is not a game", game)
	}
	return n, nil
}
