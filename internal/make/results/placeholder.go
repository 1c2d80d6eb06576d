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

// MakePlaceholders makes products for failed jobs: the processor runs with the asset's settings on a placeholder
// instead of the source file, so the products have the type, format and file that the game expects. Last good products
// that this does not replace stay. If a source has no placeholder, or nothing can be made with the asset's settings,
// the last good products stay unchanged; if there are none, the asset has none. It returns the ids of the assets that
// have placeholders.
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

// ofLastGood returns placeholders with the names and files of the last good products, and those last good products that
// have no placeholder. It returns nil if none has one.
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

// PlaceholderMessage is the message about a job that has placeholders, for the content database and for
// games.
func (s *Set) PlaceholderMessage(t *job.Task) diag.List {
	if s.Placeholders[t] == nil {
		return nil
	}
	return diag.List{diag.Warningf(diag.PlaceholderMade, diag.Pos{File: s.W.DisplayAsset(t.Asset)}, "a placeholder stands for it").
		WithHint("fix it, and build again")}
}

// PlaceholdersMade is a message about all assets that have placeholders.
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
