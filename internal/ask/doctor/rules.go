package doctor

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// rules finds rules that say nothing new: two for one path, settings that repeat the default, and settings that others always override.
func (r *Report) rules(p *build.Project, v *view.View) {
	all := allRules(p)
	at := map[string]settings.Span{}
	for i := range all {
		rule := &all[i]
		if rule.List != nil {
			continue
		}
		name := path.Join(rule.Base, rule.Match)
		if first, ok := at[name]; ok && !project.IsGlob(rule.Match) {
			r.add(note(rule.MatchSpan, diag.RuleTwice, "the rule at %s is for the same path", first).WithHint("put both into one"))
		} else if !ok {
			at[name] = rule.MatchSpan
		}
	}
	won, same := winners(p, v)
	said := map[string]int{} // how often a setting is given anywhere
	for i := range all {
		for _, e := range entries(&all[i]) {
			said[e.Key]++
		}
	}
	for i := range p.Platforms {
		for _, s := range p.Platforms[i].Processors {
			for _, e := range s.Settings.Entries {
				said[e.Key]++
			}
		}
	}
	idle := map[diag.Pos]bool{} // rules that match nothing have a message of their own
	for _, m := range r.Messages {
		idle[m.Pos] = idle[m.Pos] || m.Code == diag.RuleMatchesNothing
	}
	for i := range all {
		if rule := &all[i]; !idle[rule.MatchSpan.Pos] {
			for _, e := range entries(rule) {
				switch {
				case e.Kind == settings.Inner:
				case !won[e.Value.Span.Pos]:
					r.add(note(e.Value.Span, diag.SettingIdle,
						"%q never counts: later or deeper rules override it, or no processor of these files has it", e.Key).
						WithHint("remove it, or move it behind them; `kiln settings ASSET` shows what counts"))
				case same[e.Value.Span.Pos] && said[e.Key] == 1:
					r.add(note(e.Value.Span, diag.SettingIdle, "%q is the default", e.Key).WithHint("remove it"))
				}
			}
		}
	}
}

// idleIgnore finds patterns under ignore that name nothing which a job found when it ran last.
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
			used[p.Span] = true // that is enough
			r.add(note(p.Span, diag.SettingIdle, "no job found what %q names", project.ShowPattern(p.Text)).
				WithHint("correct it, or remove it; `kiln inspect ASSET` lists what a job found"))
		}
	}
}

func note(at settings.Span, code diag.Code, format string, args ...any) *diag.Message {
	m := at.Warningf(code, format, args...)
	m.Severity = diag.Note
	return m
}

// entries are the settings that a rule gives, on all platforms.
func entries(r *project.Rule) (list []settings.Entry) {
	if r.Settings != nil {
		list = append(list, r.Settings.Entries...)
	}
	for i := range r.Platforms {
		if t := r.Platforms[i].Settings; t != nil {
			list = append(list, t.Entries...)
		}
	}
	return list
}

// winners are the places of the settings that count for some asset, and of those among them that are the default wherever they count.
func winners(p *build.Project, v *view.View) (won, same map[diag.Pos]bool) {
	defaults := map[string]string{}
	for _, info := range p.Processors() {
		for _, s := range settings.Describe(info) {
			defaults[info.Name+"\x00"+s.Name] = s.DefaultText()
		}
	}
	won, same = map[diag.Pos]bool{}, map[diag.Pos]bool{}
	for i := range v.Assets {
		for k := range v.Assets[i].Jobs {
			on := v.Assets[i].Jobs[k].On
			for _, o := range on.Origins() {
				if o.Span.IsZero() {
					continue
				}
				is := defaults[on.Processor+"\x00"+o.Name] == o.Value
				same[o.Span.Pos] = is && (!won[o.Span.Pos] || same[o.Span.Pos])
				won[o.Span.Pos] = true
			}
		}
	}
	return won, same
}

// allRules are those of kiln.toml and of all rules.toml.
func allRules(p *build.Project) []project.Rule {
	all := append([]project.Rule{}, p.Rules...)
	for _, root := range p.Roots {
		dir := root.Dir(p.Dir)
		filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case e.IsDir() && name != dir && strings.HasPrefix(e.Name(), "."):
				return fs.SkipDir
			case e.IsDir() || e.Name() != project.RulesFile:
				return nil
			}
			text, err := disk.ReadFile(name)
			rel, rerr := filepath.Rel(dir, filepath.Dir(name))
			if err == nil && rerr == nil {
				shown := root.Prefix() + path.Join(filepath.ToSlash(rel), project.RulesFile)
				rules, _ := project.ParseRules(shown, strings.TrimPrefix(filepath.ToSlash(rel), "."), text, p.Names)
				all = append(all, rules...)
			}
			return nil
		})
	}
	return all
}
