package move

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/content/mention"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

// named are the strings in kiln.toml and rules.toml files, besides globs, that name what moves.
type named struct {
	mentions []Mention
	edits    map[string][]edit // by file, absolute, of those that can be rewritten
}

// inSettings finds them. A setting of a processor names a file if a job of an asset for which it counts read that file in its last run. Keys
// whose values are paths in the project folder name a file if it is below a source root.
func (m *mover) inSettings(v *view.View) *named {
	n := &named{edits: map[string][]edit{}}
	of := map[string][]*view.AssetView{} // by place, the assets for which a setting counts
	for i := range v.Assets {
		for k := range v.Assets[i].Resolved {
			for _, o := range v.Assets[i].Resolved[k].Origins() {
				if at := o.Span.String(); !o.Span.IsZero() && !slices.Contains(of[at], &v.Assets[i]) {
					of[at] = append(of[at], &v.Assets[i])
				}
			}
		}
	}
	looked := lookedBy{}
	table := func(file string, t *settings.Table) {
		each(t, nil, of, func(value *settings.Value, assets []*view.AssetView) {
			found := map[string]bool{}
			for _, a := range assets {
				if to := m.renamedFor(a, value.Str, looked.by(a)); to != "" {
					found[to] = true
				}
			}
			for to := range found {
				n.add(file, value.Span, value.Str, to, len(found) == 1 && len(value.Uses) == 0)
				break
			}
		})
	}
	main := filepath.Join(m.p.Dir, project.File)
	for i := range m.p.Platforms {
		for k := range m.p.Platforms[i].Processors {
			table(main, m.p.Platforms[i].Processors[k].Settings)
		}
	}
	m.inProject(main, n)
	rules := func(file string, list []project.Rule) {
		for i := range list {
			table(file, list[i].Settings)
			for k := range list[i].Platforms {
				table(file, list[i].Platforms[k].Settings)
			}
		}
	}
	rules(main, m.p.Rules)
	_, folders := workspace.SourcePaths(v.Sources())
	for _, dir := range folders {
		for _, r := range m.p.Roots {
			file := filepath.Join(r.Dir(m.p.Dir), filepath.FromSlash(dir), project.RulesFile)
			if text, err := disk.ReadFile(file); err == nil {
				base := strings.TrimPrefix(dir, ".")
				list, _ := project.ParseRules(r.Prefix()+path.Join(base, project.RulesFile), base, text, m.p.Names)
				rules(file, list)
			}
		}
	}
	return n
}

// each calls f for the strings in a table of settings, with the assets for which they count.
func each(t *settings.Table, assets []*view.AssetView, of map[string][]*view.AssetView, f func(*settings.Value, []*view.AssetView)) {
	var value func(v *settings.Value, assets []*view.AssetView)
	value = func(v *settings.Value, assets []*view.AssetView) {
		if list := of[v.Span.String()]; list != nil {
			assets = list
		}
		switch v.Kind {
		case settings.String:
			f(v, assets)
		case settings.Inner:
			each(v.Table, assets, of, f)
		case settings.Array:
			for _, e := range v.Array {
				value(e, assets)
			}
		}
	}
	if t != nil {
		for i := range t.Entries {
			value(t.Entries[i].Value, assets)
		}
	}
}

// lookedBy has what the jobs of assets read in their last runs.
type lookedBy map[*view.AssetView]map[string]bool

func (l lookedBy) by(a *view.AssetView) map[string]bool {
	if l[a] == nil {
		l[a] = map[string]bool{}
		for k := range a.Jobs {
			for _, name := range looked(&a.Jobs[k]) {
				l[a][name] = true
			}
		}
	}
	return l[a]
}

// renamedFor returns what a setting of an asset has to say after the move; "" if it names nothing that moves, or still does.
func (m *mover) renamedFor(a *view.AssetView, value string, read map[string]bool) string {
	is := func(name string) (to string, ok bool) {
		rest, ok := m.below(name)
		return m.to + rest, ok && read[name]
	}
	if name, rooted := strings.CutPrefix(value, "/"); rooted {
		if to, ok := is(path.Clean(name)); ok {
			return "/" + to
		}
		return ""
	}
	from := a.Path
	if a.Folder {
		from += "/x"
	}
	now := from
	if rest, moves := m.below(from); moves {
		now = m.to + rest
	}
	if to, ok := is(path.Join(path.Dir(from), value)); ok {
		forms := mention.Forms(now, to)
		form := forms[1]
		if strings.HasPrefix(value, "./") {
			form = forms[2]
		}
		if form == value {
			return ""
		}
		return form
	}
	if to, ok := is(path.Clean(value)); ok {
		return to
	}
	return ""
}

// inProject finds the keys of kiln.toml whose values are paths in the project folder.
func (m *mover) inProject(file string, n *named) {
	check := func(value string, at settings.Span) {
		for _, r := range m.p.Roots {
			rest, ok := strings.CutPrefix(value, r.Prefix())
			if below, moves := m.below(path.Clean(rest)); ok && moves && r.Name == "" && value != "" && !at.IsZero() {
				n.add(file, at, value, r.Prefix()+m.to+below, true)
				return
			}
		}
	}
	check(m.p.Kiln, m.p.KilnSpan)
	for i := range m.p.Parcels {
		check(m.p.Parcels[i].Dictionary, m.p.Parcels[i].DictionarySpan)
		check(m.p.Parcels[i].Order, m.p.Parcels[i].OrderSpan)
	}
	for i := range m.p.Constants {
		check(m.p.Constants[i].Template, m.p.Constants[i].TemplateSpan)
	}
	for i := range m.p.Project.Processors {
		c := &m.p.Project.Processors[i]
		check(c.Script, c.Place("script", -1))
		check(c.Wasm+c.WasmGo, c.Place("wasm", -1))
		for k, arg := range c.Command {
			check(arg, c.Place("command", k))
		}
	}
}

// add adds a place whose string is a value.
func (n *named) add(file string, at settings.Span, value, to string, sure bool) {
	n.mentions = append(n.mentions, Mention{File: at.File, Line: at.Line, Column: at.Column, Old: value, New: to, setting: sure})
	if sure {
		n.edits[file] = append(n.edits[file], edit{at, strconv.Quote(to)})
	}
}

// others adds the new texts of files of rules that have no other edits, under the paths that they have after the move.
func (m *mover) others(out map[string][]byte, edits map[string][]edit) {
	for file, list := range edits {
		text, err := disk.ReadFile(file)
		if out[file] != nil || err != nil {
			continue
		}
		for _, root := range m.roots {
			old := filepath.Join(root, filepath.FromSlash(m.from)) + string(filepath.Separator)
			if rest, in := strings.CutPrefix(file, old); in {
				file = filepath.Join(root, filepath.FromSlash(m.to), rest)
			}
		}
		out[file] = splice(text, list)
	}
}
