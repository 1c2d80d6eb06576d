// Package doctor finds problems that stop a build here or on another machine: missing tools, limits of the system,
// folders that cannot be written, names that Windows does not allow, files with the wrong content.
//
// It makes no lasting change: to test a folder, it makes a file in it and removes the file. It runs only tools that
// Kiln knows, and only to ask their version.
package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// Report is the result of an examination. Problems are messages; those of severity error stop a build, or an asset of
// it.
type Report struct {
	Files, Folders, Assets int // number of those checked

	Tools    []Tool
	Limits   []Limit
	Places   []Place
	Helpers  []Helper
	Messages diag.List
	Whole    diag.List // those of them that are about rules or kiln.ids: no build succeeds until these are fixed
}

// Examine examines a project. It returns an error if it cannot continue. Errors in rules are in the report.
func Examine(ctx context.Context, p *build.Project) (*Report, error) {
	r := &Report{}
	v, err := p.Look(ctx, nil, nil)
	var wrong diag.List
	if errors.As(err, &wrong) {
		r.Messages, r.Whole = append(r.Messages, wrong...), wrong
	} else if err != nil {
		return nil, err
	}
	wrong = ship.CheckNumbers(p.Project)
	r.Messages, r.Whole = append(r.Messages, wrong...), append(r.Whole, wrong...)
	if v != nil {
		r.Assets = len(v.Assets)
		r.Messages = append(append(r.Messages, v.Messages...), v.Strangers()...)
		r.Messages = append(r.Messages, upkeep.IdleRules(p.Workspace, v.Sources(), v.Table(), r.Messages)...)
		r.idleIgnore(v)
		r.files(ctx, p, v)
	}
	r.tools(ctx, p, v)
	r.places(p)
	r.leads(p)
	r.caches(ctx, p)
	r.farm(ctx, p)
	r.limits()
	slices.SortStableFunc(r.Messages, func(a, b *diag.Message) int { return rank(a) - rank(b) })
	return r, ctx.Err()
}

func rank(m *diag.Message) int {
	return slices.Index([]diag.Severity{diag.Error, diag.Warning, diag.Note}, m.Severity)
}

// Stops reports whether a problem stops a build or an asset of it.
func (r *Report) Stops() bool { return r.Messages.Err() != nil }

func (r *Report) add(m *diag.Message) { r.Messages = append(r.Messages, m) }

// files checks each source file: its name, its size, its end.
func (r *Report) files(ctx context.Context, p *build.Project, v *view.View) {
	t := v.Sources()
	r.Folders = len(t.Folders)
	for _, file := range t.Paths() {
		if ctx.Err() != nil {
			return
		}
		r.Files++
		i, _, ok := t.Find(file)
		if !ok {
			continue
		}
		root, rel := t.PathOf(i)
		f := sourceFile{path: file, shown: v.Display(file), abs: t.Abs(root, rel), size: t.At(i).Stat.Size}
		if owner := v.Table().Owner(file); owner != nil {
			f.processor, f.asset = owner.Processor, owner.ID
		}
		r.name(&f)
		r.content(&f)
	}
	r.outputs(p, v)
}

// sourceFile is a source file to check.
type sourceFile struct {
	path, shown, abs string
	size             int64
	asset, processor string // that it belongs to; empty for none
}
