package upkeep

import (
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// IdleRules are notes about rules that say nothing new: two for one path, settings that repeat the default, and settings that others
// always override. messages are those about rules that there are already.
func IdleRules(p *workspace.Workspace, t *source.Table, set *asset.Table, messages diag.List) (l diag.List) {
	all := allRules(p, t)
	at := map[string]settings.Span{}
	for i := range all {
		rule := &all[i]
		if rule.List != nil || rule.Declares { // several assets may be made of one file, or of none
			continue
		}
		name := path.Join(rule.Base, rule.Match)
		if first, ok := at[name]; ok && !project.IsGlob(rule.Match) {
			l = append(l, note(rule.MatchSpan, diag.RuleTwice, "the rule at %s is for the same path", first).WithHint("put both into one"))
		} else if !ok {
			at[name] = rule.MatchSpan
		}
	}
	won, same := winners(p, set)
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
	for _, m := range messages {
		if m.Severity == diag.Error && inRules(m.File) {
			return l // settings with errors are in no asset, so what counts is not known
		}
		idle[m.Pos] = idle[m.Pos] || m.Code == diag.RuleMatchesNothing
	}
	for i := range all {
		if rule := &all[i]; !idle[rule.MatchSpan.Pos] && !elsewhere(rule) {
			for _, e := range entries(rule) {
				switch {
				case e.Kind == settings.Inner:
				case !won[e.Value.Span.Pos] && len(p.Config.Stages) == 0: // without the stage it may count
					l = append(l, note(e.Value.Span, diag.SettingIdle,
						"%q never counts: later or deeper rules override it, or no processor of these files has it", e.Key).
						WithHint("remove it, or move it behind them; `kiln settings ASSET` shows what counts"))
				case won[e.Value.Span.Pos] && same[e.Value.Span.Pos] && said[e.Key] == 1:
					l = append(l, note(e.Value.Span, diag.SettingIdle, "%q is the default", e.Key).WithHint("remove it"))
				}
			}
		}
	}
	return l
}

// inRules reports whether a file has rules.
func inRules(file string) bool {
	name := path.Base(file)
	return name == project.File || name == project.RulesFile
}

// elsewhere reports whether the settings of a rule count where assets do not show it: in another stage, or in requests.
func elsewhere(r *project.Rule) bool {
	return r.Stage != "" || strings.Contains(r.Match, asset.NameMark)
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
func winners(p *workspace.Workspace, set *asset.Table) (won, same map[diag.Pos]bool) {
	defaults := map[string]string{}
	for _, info := range p.Processors() {
		for _, s := range settings.Describe(info) {
			defaults[info.Name+"\x00"+s.Name] = s.DefaultText()
		}
	}
	won, same = map[diag.Pos]bool{}, map[diag.Pos]bool{}
	seen := map[*asset.Resolved]bool{} // assets with the same rules share them
	for i := range set.Assets {
		all := set.Assets[i].Resolved
		if len(all) == 0 || seen[&all[0]] {
			continue
		}
		seen[&all[0]] = true
		for k := range all {
			for _, o := range all[k].Origins() {
				if o.Span.IsZero() {
					continue
				}
				is := defaults[all[k].Processor+"\x00"+o.Name] == o.Value
				same[o.Span.Pos] = is && (!won[o.Span.Pos] || same[o.Span.Pos])
				won[o.Span.Pos] = true
			}
		}
	}
	return won, same
}

// allRules are those of kiln.toml and of all rules.toml.
func allRules(p *workspace.Workspace, t *source.Table) []project.Rule {
	all := slices.Clone(p.Rules)
	_, folders := workspace.SourcePaths(t)
	for _, dir := range folders {
		rules, _ := p.FolderRules(t, dir)
		all = append(all, rules...)
	}
	return all
}
