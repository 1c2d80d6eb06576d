package build

import (
	"context"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/parcels"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/references"
	"github.com/kiln-pipeline/kiln/internal/make/report"
)

// report sums up the build.
func (s *session) report() *report.Report {
	r := &report.Report{Stopped: s.stopped, Passing: s.passing(), Short: s.few != nil}
	s.source().Count(r)
	r.Jobs = make([]report.JobReport, 0, r.Summary.Built)
	for _, res := range s.Results {
		if res.State == engine.Ran || res.State == engine.Adopted || res.State == engine.Stopped {
			r.Jobs = append(r.Jobs, report.JobOf(res))
		}
	}
	r.Summary.Placeholders = len(s.Placeholders)
	if r.Summary.LookedAt = s.looked; s.whole() {
		r.Summary.Because = s.because
	}
	t := s.sharing.Traffic()
	r.Summary.Downloaded, r.Summary.Uploaded, r.Summary.Saved = t.Downloaded, t.Uploaded, t.Saved
	r.Messages = s.source().Collect()
	r.Summary.Warnings = r.Messages.Total(diag.Warning)
	r.Summary.NoteWritten(s.wrote, s.P.Output)
	s.notices.Failed, s.notices.Held = r.Summary.AssetsFailed, r.Held
	r.Summary.Seconds = time.Since(s.start).Seconds()
	return r
}

// findLive finds the current results of the project's tasks.
func (s *session) findLive() {
	s.Held = nil
	if s.few != nil || !s.complete() {
		s.Held = plan.TasksOf(s.Prev) // some tasks have no result in this build
	}
	if s.few != nil {
		s.few.FindUnasked()
	}
	s.Find()
}

// standIn makes placeholders for failed tasks, if the request wants that.
func (s *session) standIn(ctx context.Context) {
	if ids := s.MakePlaceholders(ctx); len(ids) > 0 {
		s.notes = append(s.notes, s.PlaceholdersMade(ids))
	}
}

// outputs is the output tree at the beginning of this build.
func (s *session) outputs() *outputs.Tree {
	return &outputs.Tree{Set: s.Set, Prev: s.Prev, Before: s.Before.Outputs, Complete: s.complete(), Settled: s.Settled(), Workers: s.P.Workers(s.req.Workers)}
}

// bringOutputs updates the output tree. It returns false if a build of few tasks has to change outputs of other tasks.
func (s *session) bringOutputs() bool {
	s.tree = s.outputs()
	why := s.tree.Bring()
	s.messages = append(s.messages, s.tree.Messages...)
	return why == "" || s.no(why)
}

// refer finds what products refer to although no asset makes it, and the jobs that fail for that reason or because of their outputs. It is
// false if a build of few tasks finds that it has to look at others.
func (s *session) refer() (ok bool) {
	c := references.Check{Set: s.Set, Tree: s.tree, Few: s.few}
	if s.notices.Missing, ok = c.Find(s.notices.Missing); ok {
		s.notices.Failures = c.Failures(s.notices.Missing, notices.Failures(s.Prev))
	}
	return ok || s.no("it is not known what refers to products that came or went")
}

// strangers are the files in the output folder of which nothing is known.
func (s *session) strangers() outputs.Strangers {
	return s.outputs().Strangers(slices.Concat(parcels.Before(s.Prev), s.shipment.Made()))
}

// complete reports whether this build has a result for every task of the project: everything was requested,
// nothing stopped it, and it was not a dry run.
func (s *session) complete() bool {
	return s.whole() && !s.stopped && !s.req.DryRun
}

// said returns all messages that do not come from jobs: those of this build, those about kiln.toml, and
// notices.
func (s *session) said() diag.List {
	return slices.Concat(s.messages, s.P.Warnings, s.notices.Messages())
}

// noticeLearnt checks again which files are empty, among those whose content jobs read in this build, because they may
// have changed since the scan.
func (s *session) noticeLearnt() {
	paths, ok := s.W.Table.Learnt()
	if !ok {
		for i := range s.W.Names().Assets {
			paths = append(paths, s.W.Names().Assets[i].Path)
		}
	}
	s.notices.Look(s.P, s.W.Table, paths, s.W.Find)
}

// ship brings resource ids, parcels and constants up to date. It returns false if a build of few tasks finds
// that all must be checked. A build of single assets does not touch them, because the other contents of a
// parcel may be out of date. A build of parcels packs these. An audit packs none, since it builds elsewhere.
func (s *session) ship(ctx context.Context) bool {
	if s.Prev != nil {
		s.shipment.Files = s.Prev.Shipped
	}
	with := &parcels.Shipping{
		Set: s.Set, Tree: s.tree, Few: s.few, Prev: s.Prev, Notices: &s.notices, Shipment: s.shipment, Platforms: s.req.Platforms,
		Workers: s.P.Workers(s.req.Workers), Locked: s.req.Locked, Compact: s.req.Compact, Only: s.P.Selected(s.req.Patterns),
		Wrote: func(file string) {
			if s.wrote == nil {
				s.wrote = map[string]bool{}
			}
			s.wrote[file] = true
		},
	}
	whole := len(s.req.Patterns) == 0 && !s.stopped
	if s.loses() { // it is made in the build that follows; what is made of products is written once, by that one
		s.shipment.Again = true
		return true
	}
	pack := (whole || len(with.Only) > 0 && !s.stopped) && s.P.Config.Output == ""
	var ok bool
	if s.shipment, ok = with.Bring(ctx, whole, pack, s.req.done&otherHeld == 0); !ok {
		return s.no("what changed concerns parcels, numbers or constants as a whole")
	}
	s.stopped = s.stopped || s.shipment.Stopped
	s.notes = append(s.notes, s.shipment.Notes...)
	return true
}

// source is the input of the build's report.
func (s *session) source() *report.Source {
	return &report.Source{
		Set: s.Set, Few: s.few, Prev: s.Prev, Before: s.Before, Tree: s.tree, Wanted: s.wanted, Said: s.said(),
		Failures: s.notices.Failures, Some: len(s.req.Patterns) > 0,
	}
}

// runWithParcels runs the engine, and runs it again for what the requested parcels turn out to need, until nothing is
// missing.
func (s *session) runWithParcels(ctx context.Context) error {
	only := s.P.Selected(s.req.Patterns)
	for {
		if err := s.runEngine(ctx); err != nil || len(only) == 0 {
			return err
		}
		s.findLive()
		more := parcels.Required(s.Set, only, s.req.Platforms, s.wanted)
		if len(more) == 0 {
			return nil
		}
		s.wanted = append(s.wanted, more...)
		s.noteRan()
	}
}
