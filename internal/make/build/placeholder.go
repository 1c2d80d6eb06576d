package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// placeholders makes what stands for failed jobs: products that the processor makes, with the asset's settings, of a placeholder in place of its source file; so
// they are of the type, format and file that the game expects. What of the last good products this does not make stays. Of an asset whose source has no
// placeholder, or of whose settings nothing can be made, the last good products stay as a whole; if there are none, it has none.
func (s *session) makePlaceholders(ctx context.Context) {
	if s.req.OnError < Placeholders || ctx.Err() != nil {
		return
	}
	s.placeholders = map[*job.Task][]engine.Product{}
	var names []string
	for _, t := range s.live {
		if !failed(t.Result) || t.Part != "" || t.Request() || s.p.OwnProcessor(t.Proc.Info.Name) {
			continue
		}
		made := s.w.StandIn(ctx, t)
		if made == nil {
			continue
		}
		if good := s.good[t]; good != nil {
			made = s.ofLastGood(made, good.Products)
		}
		if made != nil {
			s.placeholders[t] = made
			names = append(names, t.Asset.ID)
		}
	}
	if names = slices.Compact(names); len(names) > 0 {
		s.notes = append(s.notes, diag.Warningf(diag.PlaceholderMade, diag.Pos{}, "placeholders stand for what failed: %s", firstFew(names)).
			WithHint("mend it, and build again%s", map[bool]string{true: "; no parcel is packed with them"}[s.req.OnError == Placeholders && len(s.p.Parcels) > 0]))
	}
}

// firstFew names some of many.
func firstFew(names []string) string {
	const few = 10
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// ofLastGood are placeholders under the names and files of the last good products, with those that have no placeholder as they were. It is nil if none of them has.
func (s *session) ofLastGood(made, good []engine.Product) []engine.Product {
	found := false
	list := slices.Clone(good)
	for i := range list {
		for k := range made {
			if m := &made[k]; m.SubID == list[i].SubID && m.Type == list[i].Type {
				list[i].Hash, list[i].Size, list[i].References = m.Hash, m.Size, m.References
				found = true
			}
		}
	}
	if !found {
		return nil
	}
	return list
}

// placeholderMessage is said of a job for which placeholders stand: in the content database, and to games.
func (s *session) placeholderMessage(t *job.Task) diag.List {
	if s.placeholders[t] == nil {
		return nil
	}
	return diag.List{diag.Warningf(diag.PlaceholderMade, diag.Pos{File: s.w.Display(t.Asset.Path)}, "a placeholder stands for it").WithHint("mend it, and build again")}
}
