package project

import (
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

func (d *decoder) parcels(e *settings.Entry) []Parcel {
	var list []Parcel
	seen := firsts{}
	d.tables(e, func(t *settings.Table) {
		p := Parcel{Span: t.Span, Align: 16}
		d.keys(t, "a parcel", []key{
			{name: "name", missing: `name = "preload"`, take: func(e *settings.Entry) {
				if s := d.str(e); s != "" && d.name(s, e.Value.Span, "parcel") && d.fresh(seen, s, e.Value.Span, "parcels") {
					p.Name = s
				}
			}},
			{name: "assets", missing: `assets = ["sprites/**"]`, take: func(e *settings.Entry) { p.Assets = d.patterns(e, patternsOf{how: `["sprites/**"]`}) }},
			{name: "platforms", take: func(e *settings.Entry) { p.Platforms = d.strs(e, `["pc"]`) }},
			{name: "shared_with", take: func(e *settings.Entry) { p.SharedWith, p.SharedSpan = d.str(e), e.Value.Span }},
			{name: "split", take: func(e *settings.Entry) { p.Split = d.boolean(e) }},
			{name: "budget", take: func(e *settings.Entry) { p.Budget = d.size(e) }},
			{name: "over_budget", take: func(e *settings.Entry) { p.WarnOnly = d.oneOf(e, "fail", "warn") == "warn" }},
			{name: "compression", take: func(e *settings.Entry) { p.Store = d.oneOf(e, "zstd", "none") == "none" }},
			{name: "stored", take: func(e *settings.Entry) { p.Stored = d.patterns(e, patternsOf{how: `["music/**"]`}) }},
			{name: "align", take: func(e *settings.Entry) { p.Align = d.alignment(e) }},
			{name: "dictionary", take: func(e *settings.Entry) { p.Dictionary, p.DictionarySpan = d.inProject(e.Value, e.Key), e.Value.Span }},
			{name: "listed", take: func(e *settings.Entry) { p.Listed = d.boolean(e) }},
			{name: "order", take: func(e *settings.Entry) { p.Order, p.OrderSpan = d.inProject(e.Value, e.Key), e.Value.Span }},
		})
		if p.SharedWith != "" && p.Split {
			d.add(p.SharedSpan.Errorf(diag.BadValue, "a parcel cannot have both \"shared_with\" and \"split\"").WithHint("remove one of them"))
			p.Split = false
		}
		if p.Name != "" {
			list = append(list, p)
		}
	})
	return list
}

// parcelsTogether checks references between parcels, and to platforms.
func (d *decoder) parcelsTogether(p *Project) {
	var all, platforms []string
	for i := range p.Parcels {
		all = append(all, p.Parcels[i].Name)
	}
	for i := range p.Platforms {
		platforms = append(platforms, p.Platforms[i].Name)
	}
	for i := range p.Parcels {
		x := &p.Parcels[i]
		for _, name := range x.Platforms {
			if !slices.Contains(platforms, name) {
				d.add(x.Span.Errorf(diag.BadValue, "parcel %q is for a platform %q, which the project does not have", x.Name, name).WithHint("%s", meant(name, platforms)))
			}
		}
		if x.SharedWith == "" {
			continue
		}
		with := p.Parcel(x.SharedWith)
		wrong := func(hint, format string, args ...any) {
			d.add(x.SharedSpan.Errorf(diag.BadValue, format, args...).WithHint("%s", hint))
			x.SharedWith = ""
		}
		switch {
		case with == nil:
			wrong(meant(x.SharedWith, all), "there is no parcel %q", x.SharedWith)
		case with == x:
			wrong("name another parcel", "parcel %q cannot be shared with itself", x.Name)
		case with.SharedWith != "" || with.Split:
			wrong("let that one stand by itself", "parcel %q shares its own content", with.Name)
		case slices.ContainsFunc(platforms, func(name string) bool { return x.On(name) && !with.On(name) }):
			wrong("give that one the same platforms, or none", "parcel %q is not made for all platforms of %q", with.Name, x.Name)
		}
	}
}

func meant(name string, names []string) string {
	if hint := diag.DidYouMean(name, names); hint != "" {
		return hint
	}
	return "there are: " + strings.Join(names, ", ")
}

// oneOf reads one of some words, or returns "".
func (d *decoder) oneOf(e *settings.Entry, words ...string) string {
	s := d.str(e)
	if s != "" && !slices.Contains(words, s) {
		hint := diag.DidYouMean(s, words)
		if hint == "" {
			hint = "one of: " + strings.Join(words, ", ")
		}
		d.bad(e.Value, hint, "%q cannot be %q", e.Key, s)
		return ""
	}
	return s
}

func (d *decoder) alignment(e *settings.Entry) int {
	n := int(d.integer(e, 16, 4096))
	if n&(n-1) != 0 {
		d.bad(e.Value, "a power of two from 16 to 4096", "%q is %d", e.Key, n)
		n = 0
	}
	return max(n, 16)
}

func (d *decoder) constants(e *settings.Entry) []Constants {
	var list []Constants
	d.tables(e, func(t *settings.Table) {
		c := Constants{Span: t.Span}
		d.keys(t, "a table of constants", []key{
			{name: "language", missing: `language = "cpp"`, take: func(e *settings.Entry) {
				c.Language, c.LanguageSpan = d.oneOf(e, Languages...), e.Value.Span
			}},
			{name: "package", take: func(e *settings.Entry) { c.Package = d.str(e) }},
			{name: "template", take: func(e *settings.Entry) { c.Template, c.TemplateSpan = d.inProject(e.Value, e.Key), e.Value.Span }},
			{name: "file", take: func(e *settings.Entry) { c.File, c.FileSpan = d.inProject(e.Value, e.Key), e.Value.Span }},
		})
		if c.Language != "" {
			list = append(list, c)
		}
	})
	return list
}

// Languages are the languages of constants.
var Languages = []string{"go", "c", "cpp", "csharp", "rust", "typescript", "haxe", "lua"}

// constantsTogether reports files of constants in source roots, where they would be assets, and two of the same
// name.
func (d *decoder) constantsTogether(p *Project) {
	seen := firsts{}
	for i := range p.Constants {
		c := &p.Constants[i]
		if c.File == "" {
			continue
		}
		if c.File = path.Clean(c.File); !d.fresh(seen, c.File, c.FileSpan, "files of constants") {
			c.File = ""
			continue
		}
		if controlled(c.File) {
			d.add(c.FileSpan.Errorf(diag.BadValue, "constants cannot be in a folder of version control").WithHint("write them where the game's code is"))
		}
		for _, r := range p.Roots {
			if within(c.File, r.Path) {
				d.add(c.FileSpan.Errorf(diag.FoldersOverlap, "%q lies in source root %q", c.File, r.Path).WithHint("write it where the game's code is"))
			}
		}
	}
}
