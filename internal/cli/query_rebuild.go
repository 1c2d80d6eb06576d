package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
)

// needsRebuild answers the question that the content database cannot answer, because it only knows the last build: it
// compares the current files. The columns are those of the database's answer.
func (a *app) needsRebuild(ctx context.Context, name string) (*contentdb.Result, error) {
	v, av, err := a.lookAt(ctx, name)
	if err != nil {
		return nil, err
	}
	res := &contentdb.Result{Columns: []string{"platform", "rebuild", "why", "processor"}}
	jobs := jobsByAsset(v)
	for i := range av.Jobs {
		j := &av.Jobs[i]
		rebuild, why := rebuildOf(j, jobs)
		res.Rows = append(res.Rows, []any{j.Platform, rebuild, why, j.Processor})
	}
	return res, nil
}

func rebuildOf(j *view.JobView, jobs jobTable) (rebuild, why string) {
	switch j.State {
	case view.NotBuilt:
		return "yes", "it was not built for " + j.Platform
	case view.Stale, view.Maybe:
		lines := nowLines(j, jobs)
		lines[0] = strings.TrimPrefix(lines[0], "because ")
		for k := range lines {
			lines[k] = strings.TrimSpace(lines[k])
		}
		if rebuild = "yes"; j.State == view.Maybe {
			rebuild = "maybe"
		}
		return rebuild, strings.Join(lines, "; ")
	case view.Failed:
		if why = fmt.Sprintf("it failed in build %d", j.Last.Build); j.Failure != nil {
			why = "it failed" // although its run succeeded
		}
		for _, m := range j.Messages() {
			if m.Severity == diag.Error {
				return "when it changes", why + ": " + m.Text
			}
		}
		return "when it changes", why
	}
	if j.State == view.Held {
		return "no", "held by ignore, " + strings.Join(ignoredLines(j), "; ")
	}
	if j.Last.Adopted {
		return "no", "up to date, taken from " + explain.Cache(j.Last)
	}
	return "no", fmt.Sprintf("up to date since build %d", j.Last.Build)
}
