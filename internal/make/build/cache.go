package build

import (
	"cmp"
	"context"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
)

// How a build uses results of other builds; package sharing does the work.

// share connects a world to shared results. A world that is only inspected learns which promised
// blobs can be fetched.
func (s *session) share(ctx context.Context) {
	s.endSharing()
	s.sharing.Begin(ctx, s.P.CachePlace(), s.W, s.req.done&lostContent != 0, s.P.Config.Version)
	s.dispatcher = s.P.Farm().Work(s.W)
}

// endSharing ends the sharing of a world, and keeps its messages.
func (s *session) endSharing() { s.notes = slices.Concat(s.notes, s.sharing.End(), s.dispatcher.End()) }

// Pushed is the result of Push.
type Pushed struct {
	Results, Lost, Stale int   // stored or there already; whose blobs are not here; tasks that would run now, and have none
	Held                 int   // by ignore, and so kept here
	Foreign              int   // from a cache, and so not signed here
	Uploaded             int64 // bytes
	Messages             diag.List
}

// Push stores the current results of the assets that patterns mean, or of all assets, in the writable caches. The
// caller holds the lock.
func (p *Project) Push(ctx context.Context, patterns []string) (*Pushed, error) {
	if err := p.CachePlace().MayPush(); err != nil {
		return nil, err
	}
	s := p.newSession(Request{Reporter: job.Silent{}, Patterns: patterns})
	if err := s.look(ctx); err != nil {
		return nil, p.OwnFiles(err)
	}
	s.share(ctx)
	defer s.endSharing()
	s.W.Blobs.LetRemove() // and write: blobs that were lost are made again of outputs
	results := slices.DeleteFunc(slices.Clone(s.Results), func(r *engine.Result) bool { return len(r.Ignored) > 0 })
	done := &Pushed{Held: len(s.Results) - len(results)}
	done.Results, done.Lost, done.Stale, done.Foreign = s.sharing.Now.Push(results)
	s.notes = append(s.notes, s.sharing.Settle()...)
	done.Messages = append(s.notes, s.said()...)
	done.Uploaded = s.sharing.Traffic().Uploaded
	return done, ctx.Err()
}

// ExplainedJob is a job, a part of it or a request, with the reason why a cache has its result or
// does not.
type ExplainedJob struct {
	Job report.JobReport
	*sharing.Explained
}

// ExplainCache returns what the caches know about the jobs of assets.
func (p *Project) ExplainCache(ctx context.Context, patterns, platforms []string) ([]ExplainedJob, error) {
	if p.CachePlace() == nil {
		return nil, diag.Errorf(diag.CacheWrong, diag.Pos{}, "this project shares its results with nobody").
			WithHint("`kiln cache on`, KILN_CACHE=DIR, or [cache] in kiln.toml says where")
	}
	s := p.newSession(Request{Reporter: job.Silent{}, Patterns: patterns, Platforms: platforms})
	if err := s.look(ctx); err != nil {
		return nil, p.OwnFiles(err)
	}
	s.share(ctx)
	defer s.endSharing()
	var list []ExplainedJob
	for _, t := range s.wanted {
		all, err := s.sharing.Now.Explain(ctx, t, s.Traces.Traces)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			list = append(list, ExplainedJob{report.JobOf(cmp.Or(x.Task.Result, &engine.Result{Task: &x.Task.Task})), x})
		}
	}
	return list, nil
}
