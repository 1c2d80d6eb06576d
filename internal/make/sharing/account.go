package sharing

import (
	"context"
	"fmt"
	"slices"

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
		if text := err.Error(); a.first(text) {
			warnings = append(warnings, diag.Warningf(diag.CacheFails, diag.Pos{}, "%s", text).
				WithHint("jobs run here as if there were no cache; `kiln cache check` says more, KILN_CACHE=off leaves it alone"))
		}
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
	warnings = append(a.Settle(), a.otherKilns()...)
	a.Now.Close()
	a.before, a.Now = a.Traffic(), nil
	return warnings
}

// otherKilns returns a message for each other version of Kiln of which results were taken from a cache, which it did not return before.
func (a *Account) otherKilns() (l diag.List) {
	var versions []string
	a.Now.others.Range(func(v, _ any) bool { versions = append(versions, v.(string)); return true })
	slices.Sort(versions)
	for _, v := range versions {
		text := fmt.Sprintf("Kiln %s made results that come from the cache, and this is %s: they are used, of processors that did not change",
			v, a.Now.version)
		if a.first(text) {
			m := diag.Warningf(diag.OtherKiln, diag.Pos{}, "%s", text).
				WithHint("that needs no action; `kiln build --force` builds all with this version")
			m.Severity = diag.Note
			l = append(l, m)
		}
	}
	return l
}

// first reports whether a text was not reported yet, and records that it is.
func (a *Account) first(text string) bool {
	if a.reported == nil {
		a.reported = map[string]bool{}
	}
	first := !a.reported[text]
	a.reported[text] = true
	return first
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
