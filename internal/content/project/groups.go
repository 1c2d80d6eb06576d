package project

import (
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/processor"
)

// Lists of patterns, and groups, which are lists with a name. In a list, "@name" means all patterns of a group, and
// "!pattern" excludes from the other patterns of the same list, at any position. Exclusions of a group apply only to
// that group.

// Names are the groups and variables of kiln.toml. The zero Names has none.
type Names struct {
	groups map[string][]Pattern
	vars   []Variable
	kiln   string // the version of Kiln that runs; "": it does not matter
}

// Group returns the patterns of a group.
func (n Names) Group(name string) ([]Pattern, bool) {
	list, ok := n.groups[name]
	return list, ok
}

// GroupNames returns the names of all groups, sorted.
func (n Names) GroupNames() []string {
	var list []string
	for name := range n.groups {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// CutGroup returns the name of a group without its mark; ok is false if there is no mark.
func CutGroup(pattern string) (name string, ok bool) { return strings.CutPrefix(pattern, groupMark) }

// CutOut returns a pattern without the mark of an exclusion; ok is false if there is none.
func CutOut(pattern string) (rest string, ok bool) { return strings.CutPrefix(pattern, takeOut) }

// Listed is a string of a list of patterns: a glob, and whether it excludes.
type Listed struct {
	Text string
	Out  bool
	Span settings.Span
}

// Written is the string as it is in the file.
func (l Listed) Written(text string) string {
	if l.Out {
		return takeOut + text
	}
	return text
}

// takeGroups reads the table of groups.
func (d *decoder) takeGroups(e *settings.Entry) {
	t := d.table(e, "write [groups]")
	if t == nil {
		return
	}
	d.names.groups = map[string][]Pattern{}
	g := &grouper{d: d, table: t}
	for i := range t.Entries {
		if x := &t.Entries[i]; d.name(x.Key, x.Span, "group") {
			g.group(x.Key)
		}
	}
}

// grouper replaces groups inside groups by their patterns.
type grouper struct {
	d     *decoder
	table *settings.Table
	under []string // groups that are being read, the outer ones first
}

// group reads a group, and first the groups that it names. ok is false if there is no group of this
// name.
func (g *grouper) group(name string) (list []Pattern, ok bool) {
	if list, ok = g.d.names.groups[name]; ok {
		return list, true
	}
	e := g.table.Get(name)
	if e == nil {
		return nil, false
	}
	g.under = append(g.under, name)
	list = g.d.patterns(e, patternsOf{how: `["levels/1/**", "@ui"]`, group: g.named})
	g.under = g.under[:len(g.under)-1]
	g.d.names.groups[name] = list
	return list, true
}

// named returns a group that another one names.
func (g *grouper) named(v *settings.Value, name string) ([]Pattern, bool) {
	if i := slices.Index(g.under, name); i >= 0 {
		cycle := strings.Join(append(slices.Clone(g.under[i:]), name), " -> ")
		g.d.bad(v, "remove one of these names", "groups contain each other: %s", cycle)
		return nil, true
	}
	return g.group(name)
}

// patternsOf describes the use of a list of patterns.
type patternsOf struct {
	base  string // folder to which they are relative
	files bool   // they mean source files, not assets
	found bool   // or, after EnvMark and ToolMark, what else jobs find
	how   string // an example, for hints
	group func(v *settings.Value, name string) ([]Pattern, bool)
}

// patterns reads an array of patterns.
func (d *decoder) patterns(e *settings.Entry, of patternsOf) []Pattern {
	var all []*settings.Value
	d.each(e, of.how, func(v *settings.Value) { all = append(all, v) })
	return d.patternList(all, e.Key, of)
}

// patternList returns the patterns of a list: groups are replaced by their patterns, and exclusions are appended to
// each of the other patterns.
func (d *decoder) patternList(values []*settings.Value, key string, of patternsOf) []Pattern {
	var in, out []Pattern
	wrong := false
	for _, v := range values {
		list, minus := d.listed(v, key, of)
		wrong = wrong || len(list) == 0
		if minus {
			out = append(out, list...)
		} else {
			in = append(in, list...)
		}
	}
	if len(in) == 0 && len(out) > 0 && !wrong {
		d.bad(values[0], `write "**" for everything else`, "%q takes patterns out, and has none to take them out of", key)
	}
	for i := range in {
		glob, without := SplitPattern(in[i].Text)
		for _, p := range out {
			if !slices.Contains(without, p.Text) {
				without = append(without, p.Text)
			}
		}
		in[i].Text = JoinPattern(glob, without)
	}
	return in
}

// listed reads one string of a list, and reports whether it excludes.
func (d *decoder) listed(v *settings.Value, key string, of patternsOf) (list []Pattern, minus bool) {
	rest, minus := CutOut(d.strValue(v, key))
	name, group := CutGroup(rest)
	if mark, glob := CutFound(rest); of.found && mark != "" {
		if text := d.foundGlob(v, key, mark, glob); text != "" {
			list = []Pattern{{text, v.Span}}
		}
		return list, minus
	}
	if !group {
		switch text := d.glob(v, key, rest); text {
		case "":
		case "./":
			d.add(v.Span.Errorf(diag.BadGlob, "%q has the folder of the file itself", key).WithHint(`write "**" for all that is in it`))
		default:
			d.listing = append(d.listing, Listed{text, minus, v.Span})
			list = []Pattern{{of.fromRoot(text), v.Span}}
		}
		return list, minus
	}
	list = d.groupIn(v, name, of)
	for _, p := range list {
		if _, without := SplitPattern(p.Text); minus && len(without) > 0 {
			d.bad(v, "list the patterns that are meant here", "%q cannot be taken out: it takes out patterns itself", groupMark+name)
			return nil, minus
		}
	}
	return list, minus
}

// fromRoot is a pattern relative to the source roots.
func (of patternsOf) fromRoot(text string) string {
	if _, is := processor.UUIDOf(text); of.base == "" || is {
		return text
	}
	return processor.QuoteGlob(of.base) + "/" + text
}

// groupIn reads a group that a list names. Its patterns mean assets: in a list of source files, the path of a folder
// means everything in it.
func (d *decoder) groupIn(v *settings.Value, name string, of patternsOf) []Pattern {
	find := of.group
	if find == nil {
		find = func(_ *settings.Value, name string) ([]Pattern, bool) { return d.names.Group(name) }
	}
	list, ok := find(v, name)
	if !ok {
		d.bad(v, noGroup(name, d.names.GroupNames()), "there is no group %q", name)
	}
	if !of.files {
		return slices.Clone(list)
	}
	var files []Pattern
	for _, p := range list {
		glob, without := SplitPattern(p.Text)
		if _, is := processor.UUIDOf(glob); is {
			d.bad(v, "name a group of paths", "group %q has a UUID, and source files are meant here", name)
			continue
		}
		var out []string
		for _, x := range without {
			out = append(out, fileGlobs(x)...)
		}
		for _, g := range fileGlobs(glob) {
			files = append(files, Pattern{JoinPattern(g, out), p.Span})
		}
	}
	return files
}

// fileGlobs returns globs of the source files that a pattern of assets means.
func fileGlobs(pattern string) []string {
	pattern = strings.TrimSuffix(pattern, "/")
	if IsGlob(pattern) {
		return []string{pattern}
	}
	return []string{pattern, pattern + "/**"}
}

// noGroup is a hint for the name of a group that does not exist.
func noGroup(name string, names []string) string {
	if len(names) == 0 {
		return `declare it: [groups] and ` + name + ` = ["sprites/**"]; a file of this name is "[@]` + name + `"`
	}
	return meant(name, names)
}

// match reads what a rule matches: a glob, a group or a list of these.
func (d *decoder) match(e *settings.Entry, r *Rule) {
	r.MatchSpan = e.Value.Span
	values := e.Array
	if e.Kind != settings.Array {
		s := d.strValue(e.Value, e.Key)
		_, group := CutGroup(s)
		if _, out := CutOut(s); !group && !out {
			r.Match = d.glob(e.Value, e.Key, s)
			return
		}
		values = []*settings.Value{e.Value}
	}
	if len(values) == 0 {
		d.bad(e.Value, `write match = ["sprites/**", "!sprites/raw/**"]`, "%q is empty", e.Key)
	}
	r.List = d.patternList(values, e.Key, patternsOf{base: r.Base, files: true})
	for i, p := range r.List {
		glob, _ := SplitPattern(p.Text)
		if i == 0 {
			r.Match = glob
		} else if strings.HasSuffix(glob, "/") != r.ForFolders() {
			d.bad(e.Value, "write one rule for the folders and one for the files", "%q has both folders and files", e.Key)
			return
		}
	}
}
