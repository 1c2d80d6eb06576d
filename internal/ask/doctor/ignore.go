package doctor

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// idleIgnore reports patterns under ignore that match nothing that a job found in its last run.
func (r *Report) idleIgnore(v *view.View) {
	var idle []project.Pattern
	used := map[settings.Span]bool{}
	for i := range v.Assets {
		for k := range v.Assets[i].Jobs {
			j := &v.Assets[i].Jobs[k]
			if len(j.On.Ignore) == 0 || j.Last == nil {
				continue
			}
			idle = append(idle, j.On.Ignore...)
			for _, x := range append([]view.JobView{*j}, j.Parts...) {
				for n := 0; x.Last != nil && n < len(x.Last.Observations); n++ {
					if p := job.Ignored("", j.On, &x.Last.Observations[n]); p != nil {
						used[p.Span] = true
					}
				}
			}
		}
	}
	for _, p := range idle {
		if !used[p.Span] {
			used[p.Span] = true // the pattern is in use
			m := p.Span.Warningf(diag.SettingIdle, "no job found what %q names", project.ShowPattern(p.Text))
			m.Severity = diag.Note
			r.add(m.WithHint("correct it, or remove it; `kiln inspect ASSET` lists what a job found"))
		}
	}
}
