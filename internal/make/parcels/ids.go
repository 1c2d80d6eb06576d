package parcels

import (
	"slices"

	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// renumber compares the numbers that jobs saw while they ran with those that kiln.ids has at the end of the build, in a build of all tasks
// those of the jobs that it was asked for, in one of few tasks those of all jobs of the assets that it checked: another platform may have
// given them their products. It notes that kiln.ids was read, so that the next build detects a change of it.
func (s *Shipping) renumber(to *Shipment) {
	if s.Few == nil && !ship.Wanted(s.P.Project) { // no update reads it
		to.Files = slices.DeleteFunc(slices.Clone(to.Files), func(f state.Shipped) bool { return f.File == ids.FileName })
	}
	if s.Few == nil && !s.W.AskedIDs.Load() {
		return
	}
	var now job.IDs
	for _, t := range s.Live {
		tr := s.TraceOf(t)
		if tr == nil || s.Few == nil && !t.Decided() {
			continue
		}
		for i := range tr.Observations {
			o := &tr.Observations[i]
			if o.Kind != job.SawID {
				continue
			}
			if now == nil {
				s.noteIDs(to) // before it is read
				now = ship.IDsIn(s.P.Project, s.P.StatePlace())
			}
			if _, product := job.Numbered(o.Subject); now.Seen(t.Asset, product) != o.Value {
				to.Renumbered, to.Again = true, true
				return
			}
		}
	}
}

// noteIDs adds kiln.ids to the files that decided what was made, unless an update read it.
func (s *Shipping) noteIDs(to *Shipment) {
	if !slices.ContainsFunc(to.Files, func(f state.Shipped) bool { return f.File == ids.FileName }) {
		to.Files = append(slices.Clone(to.Files), s.shipped(ids.FileName, false))
	}
}
