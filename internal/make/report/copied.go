package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// copiedAsIs returns a message for each source format whose files are copied unchanged, when the first file of the
// format appears.
func (s *Source) copiedAsIs() diag.List {
	count := map[string]int{}
	note := func(a *asset.Asset) {
		if e := processors.SourceFormat(a.Path); e != "" && a.Unasked() {
			count[e]++
		}
	}
	if s.Few != nil {
		for _, p := range s.Few.Added {
			if a := s.Set.W.Find(p); a != nil && processors.SourceFormat(p) != "" {
				note(a)
			}
		}
	} else {
		for i := range s.Set.W.Assets.Assets {
			note(&s.Set.W.Assets.Assets[i])
		}
	}
	if len(count) > 0 && s.Prev != nil {
		s.Prev.Sources.Each(func(_ int, p string, _ *source.File) { delete(count, processors.SourceFormat(p)) })
	}
	var parts []string
	for _, e := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[e], e))
	}
	if len(parts) == 0 {
		return nil
	}
	m := diag.Warningf(diag.CopiedAsIs, diag.Pos{}, "source files are copied as they are: %s", strings.Join(parts, ", ")).
		WithHint(`in a rule for them, import = "..." processes them, processor = "none" leaves them out`)
	m.Severity = diag.Note
	return diag.List{m}
}
