package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Auditor audits a project.
type Auditor struct {
	Beside func(dir string) *workspace.Workspace // returns the project with state and output in a folder
	Look   func(ctx context.Context) (*view.View, error)

	// Build builds the assets beside the project: with this number of workers, and jobs in an order of this
	// seed.
	Build func(ctx context.Context, w *workspace.Workspace, workers int, shuffle uint64) (jobs, failed int, messages diag.List, err error)
}

// Difference is a job with another result under other conditions.
type Difference struct {
	Processor, Asset, Platform string
	What                       string // a description, with the place if it is known
}

// Audited is the result of an audit.
type Audited struct {
	Jobs        int          // jobs built twice, without parts
	Failed      int          // in the second build; and in the first, unless it is listed as a difference
	Differences []Difference // by processor, asset, platform
	Unread      diag.List    // source files that could not be read in either build: what is made from them was not compared
	Messages    []string     // the conditions of the two builds
}

// conditions must not affect the result of a build. The folders' paths also differ in length, and the second build
// starts in another second.
type conditions struct {
	name    string
	workers int
	shuffle uint64
	env     map[string]string
}

func (c conditions) String() string {
	order := "jobs in order"
	if c.shuffle != 0 {
		order = "jobs shuffled"
	}
	return fmt.Sprintf("%s: %d workers, %s, TZ=%s, LC_ALL=%s", c.name, c.workers, order, c.env["TZ"], c.env["LC_ALL"])
}

// Audit builds the assets twice from nothing, beside the project's own output, under conditions that must not matter,
// and compares observations, messages and products of all jobs. The project's own state is not touched, and no lock is
// needed.
func (a *Auditor) Audit(ctx context.Context) (*Audited, error) {
	two := []conditions{
		{"first", 1, 0, map[string]string{"TZ": "UTC", "LC_ALL": "C", "HOME": "/"}},
		{"second", 2*runtime.GOMAXPROCS(0) + 1, 20221203, map[string]string{"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "HOME": os.TempDir()}},
	}
	found := &Audited{}
	var dirs []string
	for i, c := range two {
		dir, err := os.MkdirTemp("", "kiln-audit"+string(bytes.Repeat([]byte{'-'}, 1+20*i)))
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		dirs = append(dirs, dir)
		if i > 0 {
			waitForSecond(ctx)
		}
		jobs, failed, messages, err := a.buildUnder(ctx, c, dir)
		if err != nil {
			return nil, err
		}
		found.Jobs, found.Failed = jobs, failed
		found.Messages = append(found.Messages, c.String())
		for _, m := range messages {
			if m.Code == diag.SourceUnreadable {
				found.unread(m)
			}
		}
	}
	return found, found.compare(ctx, a, dirs)
}

// unread adds a source file, once.
func (a *Audited) unread(m *diag.Message) {
	if !slices.ContainsFunc(a.Unread, func(o *diag.Message) bool { return o.Error() == m.Error() }) {
		a.Unread = append(a.Unread, m)
	}
}

// waitForSecond waits for the clock's next second, so that a time that gets into a product makes a
// difference.
func waitForSecond(ctx context.Context) {
	now := time.Now()
	select {
	case <-time.After(now.Truncate(time.Second).Add(time.Second).Sub(now)):
	case <-ctx.Done():
	}
}

// compare compares the traces of two builds.
func (a *Audited) compare(ctx context.Context, with *Auditor, dirs []string) error {
	v, err := with.Look(ctx) // for the names of the keys
	if err != nil {
		return err
	}
	for _, m := range v.Messages {
		if m.Severity == diag.Error {
			a.unread(m)
		}
	}
	var logs []*state.Traces
	var blobs []*cas.Store
	for _, dir := range dirs {
		q := with.Beside(dir)
		log, _, err := state.OpenTraces(q.TracesPath(), true)
		if err != nil {
			return err
		}
		logs, blobs = append(logs, log), append(blobs, cas.OpenReadOnly(q.CasDir()))
	}
	for _, k := range logs[0].Keys() {
		one, two := logs[0].Traces(k), logs[1].Traces(k)
		what := "it was built once only"
		if len(one) > 0 && len(two) > 0 {
			what = traceDifference(one[0], two[0], blobs)
		}
		if what == "" {
			continue
		}
		d := Difference{What: what, Asset: k.String()}
		if t := v.Task(k); t != nil {
			d.Processor, d.Asset, d.Platform = t.Proc.Info.Name, t.Asset.ID, t.Platform
		}
		a.Differences = append(a.Differences, d)
	}
	slices.SortFunc(a.Differences, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(x.Processor, y.Processor), cmp.Compare(x.Asset, y.Asset), cmp.Compare(x.Platform, y.Platform))
	})
	return nil
}

// traceDifference describes the first difference between two runs of a job.
func traceDifference(a, b *engine.Trace, blobs []*cas.Store) string {
	switch {
	case a.Outcome != b.Outcome:
		return "it fails in one of the builds only"
	case len(a.Products) != len(b.Products):
		return fmt.Sprintf("it makes %d products, or %d", len(a.Products), len(b.Products))
	}
	for i := range a.Products {
		x, y := &a.Products[i], &b.Products[i]
		switch {
		case x.File != y.File || x.Type != y.Type:
			return fmt.Sprintf("it makes %s of type %s, or %s of type %s", x.File, x.Type, y.File, y.Type)
		case x.Hash != y.Hash:
			return x.File + firstDifference(x.Hash, y.Hash, blobs)
		case !slices.Equal(x.References, y.References):
			return x.File + " has other references"
		case x.Facts != y.Facts:
			return x.File + " has other facts"
		}
	}
	if !bytes.Equal(a.Messages, b.Messages) {
		return "it says other things"
	}
	if !slices.Equal(a.Observations, b.Observations) {
		return "it looks at other files, or in another order"
	}
	return ""
}

func firstDifference(x, y digest.Hash, blobs []*cas.Store) string {
	one, err := blobs[0].Read(x)
	two, err2 := blobs[1].Read(y)
	if err != nil || err2 != nil {
		return " differs"
	}
	n := 0
	for n < len(one) && n < len(two) && one[n] == two[n] {
		n++
	}
	if len(one) != len(two) {
		return fmt.Sprintf(" differs from byte %d on, and has %d bytes, or %d", n, len(one), len(two))
	}
	return fmt.Sprintf(" differs from byte %d on", n)
}

// buildUnder builds the assets under conditions.
func (a *Auditor) buildUnder(ctx context.Context, c conditions, dir string) (jobs, failed int, messages diag.List, err error) {
	for name, value := range c.env {
		old, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return 0, 0, nil, err
		}
		defer func() {
			if was {
				os.Setenv(name, old)
			} else {
				os.Unsetenv(name)
			}
		}()
	}
	jobs, failed, messages, err = a.Build(ctx, a.Beside(dir), c.workers, c.shuffle)
	return jobs, failed, messages, errors.Join(err, ctx.Err())
}
