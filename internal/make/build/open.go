package build

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/parcels"
	"github.com/kiln-pipeline/kiln/internal/make/previous"
	"github.com/kiln-pipeline/kiln/internal/make/references"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// Project is an open project that can be built.
type Project struct{ *workspace.Workspace }

// Open reads the project file and prepares its processors. The error is a diag.List.
func Open(cfg workspace.Config) (*Project, error) {
	w, err := workspace.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Project{w}, nil
}

// beside returns the project with its state and output in another folder.
func beside(p *workspace.Workspace, dir string) *workspace.Workspace {
	return p.Beside(filepath.Join(dir, "state"), filepath.Join(dir, "out"))
}

// newSession starts a build for a request.
func (p *Project) newSession(req Request) *session {
	return &session{
		Set: results.NewSet(p.Workspace, req.OnError), req: req, start: time.Now(),
		Build: previous.New(p.Workspace, workspace.Changes{
			Detect: req.Detect, Changed: req.Changed, From: req.From, Workers: req.Workers,
		}, req.Outputs, req.OnError, req.Locked),
	}
}

// Look inspects the project without building. Patterns and platforms as in Request.
func (p *Project) Look(ctx context.Context, patterns, platforms []string) (*view.View, error) {
	return p.LookAt(ctx, Request{Patterns: patterns, Platforms: platforms})
}

// LookAt inspects the project with the options of a request.
func (p *Project) LookAt(ctx context.Context, req Request) (*view.View, error) {
	req.Reporter = job.Silent{}
	s := p.newSession(req)
	if err := s.look(ctx); err != nil {
		return nil, p.OwnFiles(err)
	}
	s.findLive()
	failing := references.Messages(references.Standing(s.Set, notices.Failures(s.Prev)))
	return view.Of(s.Set, s.wanted, s.Prev, s.KeyOf, failing, s.said(), func() diag.List { return s.strangers().Messages(p.Output) }), nil
}

// found is what the last build left.
func (s *session) found() *upkeep.Found {
	return &upkeep.Found{
		Set: s.Set, Prev: s.Prev, Before: s.Before, Tree: s.outputs(), Shipped: parcels.Before(s.Prev), Settled: s.Settled(), Said: s.said(),
	}
}

// GC deletes what has not been used recently: see upkeep. The caller holds the lock, unless it is a dry
// run.
func (p *Project) GC(ctx context.Context, req upkeep.GCRequest) (*upkeep.Freed, error) {
	s := p.newSession(Request{Reporter: job.Silent{}})
	s.Killed = p.UnderWay()
	if err := s.look(ctx); err != nil {
		return nil, p.OwnFiles(err)
	}
	s.findLive()
	f, err := s.found().GC(ctx, req)
	return f, p.OwnFiles(err)
}

// Verify compares the recorded state with the disk: see upkeep. The caller holds the lock, and with fix builds afterwards.
func (p *Project) Verify(ctx context.Context, fix bool) (*upkeep.Verified, error) {
	s := p.newSession(Request{Reporter: job.Silent{}})
	if err := s.readLeft(); err != nil {
		return nil, p.OwnFiles(err)
	}
	found := s.found()
	found.Said = s.messages
	v, err := found.Verify(ctx, fix)
	var m *diag.Message
	if errors.As(err, &m) && m.Code == diag.ContentDBUnusable {
		m.File = ".kiln/content.db"
	}
	return v, p.OwnFiles(err)
}

// Clean deletes outputs, and with state also the recorded state: see upkeep. The caller holds the
// lock.
func (p *Project) Clean(state, dryRun bool) (int, diag.List, error) {
	s := p.newSession(Request{Reporter: job.Silent{}})
	if !dryRun {
		s.Tidy()
	}
	if err := s.readLeft(); err != nil {
		return 0, nil, err
	}
	return s.found().Clean(state, dryRun)
}

// readLeft reads what the last build left. It runs nothing.
func (s *session) readLeft() error {
	if err := s.readSnapshot(); err != nil {
		return err
	}
	if err := s.openTraces(true); err != nil {
		return err
	}
	s.warnState(s.ReadAll())
	return nil
}

// Audit builds twice beside the project, and compares: see upkeep.
func (p *Project) Audit(ctx context.Context, patterns []string, r job.Reporter) (*upkeep.Audited, error) {
	a := &upkeep.Auditor{
		Beside: func(dir string) *workspace.Workspace { return beside(p.Workspace, dir) },
		Look:   func(ctx context.Context) (*view.View, error) { return p.Look(ctx, nil, nil) },
		Build: func(ctx context.Context, w *workspace.Workspace, workers int, shuffle uint64) (jobs, failed int, messages diag.List, err error) {
			report, err := (&Project{w}).Build(ctx, Request{Patterns: patterns, Workers: workers, Shuffle: shuffle, Reporter: r})
			if err != nil {
				return 0, 0, nil, err
			}
			return report.Summary.Jobs, report.Summary.Failed, report.Messages, nil
		},
	}
	return a.Audit(ctx)
}
