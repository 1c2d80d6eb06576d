package sharing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// Account is the sharing of one build over its worlds: a build of few tasks that has to check all makes a second world.
// The zero value shares nothing.
type Account struct {
	Now *Sharing // of the current world; nil: nothing is shared

	reported map[string]bool
	before   Traffic // of earlier worlds
}

// Begin shares the results of a world, if there is a place for that. The world before must have
// ended.
func (a *Account) Begin(ctx context.Context, place *Place, w *job.World, whole bool, version string) {
	if place != nil {
		a.Now = New(ctx, place, w, whole, version)
	}
}

// Settle waits until all results of runs are stored, and returns warnings that it did not return
// before.
func (a *Account) Settle() (warnings diag.List) {
	if a.Now == nil {
		return nil
	}
	a.Now.Settle()
	for _, err := range a.Now.Troubles() {
		text := err.Error()
		if a.reported[text] {
			continue
		}
		if a.reported == nil {
			a.reported = map[string]bool{}
		}
		a.reported[text] = true
		warnings = append(warnings, diag.Warningf(diag.CacheFails, diag.Pos{}, "%s", text).
			WithHint("jobs run here as if there were no cache; `kiln cache check` says more, KILN_CACHE=off leaves it alone"))
	}
	if why := a.Now.Barred(); why != "" {
		warnings = append(warnings, diag.Warningf(diag.CacheUnsigned, diag.Pos{}, "nothing that is built here is stored in the cache: "+
			"kiln.toml has trust = \"signed\", and %s", why).
			WithHint("have %s name the secret key of one of the `keys` (`kiln cache key new FILE` makes one), or set %s=read", KeyVariable, ModeVariable))
	}
	return warnings
}

// End settles and closes the sharing of a world.
func (a *Account) End() (warnings diag.List) {
	if a.Now == nil {
		return nil
	}
	warnings = a.Settle()
	if m := a.Now.otherKiln(); m != nil {
		warnings = append(warnings, m)
	}
	a.Now.Close()
	a.before, a.Now = a.Traffic(), nil
	return warnings
}

// otherKiln is the message that other versions of Kiln made results that were taken from a cache.
func (s *Sharing) otherKiln() *diag.Message {
	n := s.foreigners.Load()
	if n == 0 {
		return nil
	}
	var versions []string
	s.foreign.Range(func(v, _ any) bool { versions = append(versions, v.(string)); return true })
	slices.Sort(versions)
	if more := len(versions) - 3; more > 0 {
		versions = append(versions[:3], fmt.Sprintf("%d more", more))
	}
	m := diag.Warningf(diag.OtherKiln, diag.Pos{},
		"Kiln %s made what the cache has of %d jobs, and this is %s: these results are used, of processors that did not change",
		strings.Join(versions, ", "), n, s.version).WithHint("that needs no action; `kiln build --force` builds all with this version")
	m.Severity = diag.Note
	return m
}

// Elsewhere returns the sharing for the engine, or nil.
func (a *Account) Elsewhere() engine.Elsewhere {
	if a.Now == nil {
		return nil
	}
	return a.Now
}

// Traffic returns the traffic of all worlds.
func (a *Account) Traffic() Traffic {
	t := a.before
	if a.Now != nil {
		now := a.Now.Traffic()
		t = Traffic{Downloaded: t.Downloaded + now.Downloaded, Uploaded: t.Uploaded + now.Uploaded, Saved: t.Saved + now.Saved}
	}
	return t
}
