package results

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// MakePlaceholders makes what stands for failed jobs: products that the processor makes, with the asset's settings, of a placeholder in
// place of its source file; so they are of the type, format and file that the game expects. What of the last good products this does not
// make stays. Of an asset whose source has no placeholder, or of whose settings nothing can be made, the last good products stay as a
// whole; if there are none, it has none. It returns the ids of the assets for which placeholders stand.
func (s *Set) MakePlaceholders(ctx context.Context) (ids []string) {
	if s.OnError < Placeholders || ctx.Err() != nil {
		return nil
	}
	s.Placeholders = map[*job.Task][]engine.Product{}
	for _, t := range s.Live {
		if !Failed(t.Result) || t.Part != "" || t.Request() || s.P.OwnProcessor(t.Proc.Info.Name) {
			continue
		}
		made := s.W.StandIn(ctx, t)
		if made == nil {
			continue
		}
		if good := s.Good[t]; good != nil {
			made = s.ofLastGood(made, good.Products)
		}
		if made != nil {
			s.Placeholders[t] = made
			ids = append(ids, t.Asset.ID)
		}
	}
	return slices.Compact(ids)
}

// ofLastGood are placeholders under the names and files of the last good products, with those that have no placeholder as they were. It
// is nil if none of them has.
func (s *Set) ofLastGood(made, good []engine.Product) []engine.Product {
	found := false
	list := slices.Clone(good)
	for i := range list {
		for k := range made {
			if m := &made[k]; m.SubID == list[i].SubID && m.Type == list[i].Type {
				list[i].Hash, list[i].Size, list[i].References, list[i].Facts = m.Hash, m.Size, m.References, m.Facts
				found = true
			}
		}
	}
	if !found {
		return nil
	}
	return list
}

// PlaceholderMessage is said of a job for which placeholders stand: in the content database, and to games.
func (s *Set) PlaceholderMessage(t *job.Task) diag.List {
	if s.Placeholders[t] == nil {
		return nil
	}
	return diag.List{diag.Warningf(diag.PlaceholderMade, diag.Pos{File: s.W.DisplayAsset(t.Asset)}, "a placeholder stands for it").
		WithHint("fix it, and build again")}
}

// PlaceholdersMade is a message about all assets for which placeholders stand.
func (s *Set) PlaceholdersMade(ids []string) *diag.Message {
	const few = 10
	text := strings.Join(ids[:min(few, len(ids))], ", ")
	if len(ids) > few {
		text += fmt.Sprintf(" and %d more", len(ids)-few)
	}
	hint := "fix it, and build again"
	if s.OnError == Placeholders && len(s.P.Parcels) > 0 {
		hint += "; no parcel is packed with them"
	}
	return diag.Warningf(diag.PlaceholderMade, diag.Pos{}, "placeholders stand for what failed: %s", text).WithHint("%s", hint)
}
