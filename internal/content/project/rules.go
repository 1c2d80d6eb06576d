package project

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Rule is a rule for the source files that it matches. An entry of [[assets]] is a rule that makes an asset itself.
type Rule struct {
	Match string // glob relative to Base, with a slash at the end for folders as assets; the first one of List
	Base  string // folder, relative to the source roots, to which the rule applies; "" is all
	ID    string // set by the rule, or ""; only if Match is the path of one asset, or the id has fields
	UUID  string // set by the rule, in lower case, or ""

	// List has the patterns of a rule that matches several, or a group, relative to the source roots; nil: only Match.
	List []Pattern

	// Listed are the strings of the rule's lists of patterns, unchanged.
	Listed []Listed

	// Declares is set for an entry of [[assets]]: ID is then the asset's, and Match the path of its source file, without globs; "" if it has
	// none.
	Declares bool

	// Processors that each make products of the matching assets. If it is empty, other rules decide; "none", alone,
	// means that such files are not assets.
	Processors []Named

	// Imports are processors that run on the source file first, one after the other; the asset's processors get the
	// result of the last one. HasImport distinguishes an empty list, which removes imports of earlier rules, from none.
	Imports   []Import
	HasImport bool

	// Inputs are globs of source files, and Needs patterns of assets, on which the jobs depend by hand, in addition to
	// those in the declaration of their processor.
	Inputs, Needs ByHand

	// Ignore are patterns of what jobs find by themselves and is harmless: a change of it alone does not make a job run.
	Ignore ByHand

	// Follow, where it is set, says whether the assets go into every parcel in which something refers to them, required or not.
	Follow *bool

	// Allow has the accepted codes of warnings, and is nil if the rule does not set them.
	Allow *[]Named

	// Stage is the stage of builds to which the rule applies; "": all.
	Stage string

	Meta      []Metadata      // by key
	Settings  *settings.Table // nil: none
	Platforms []RulePlatform  // in the order of the file

	Span, MatchSpan, IDSpan, UUIDSpan settings.Span
}

// Named is the name of a processor, with its place.
type Named struct {
	Name string
	Span settings.Span
}

// ByHand is a list of patterns in a rule, relative to the source roots even if the rule is in a folder. Given
// distinguishes an empty list, which removes those of earlier rules, from none.
type ByHand struct {
	Patterns []Pattern
	Given    bool
}

// Import is a step before the processors of a rule.
type Import struct {
	Named
	Settings *settings.Table // nil: none
}

// RulePlatform is the part of a rule for one platform.
type RulePlatform struct {
	Name       string
	Processors []Named // empty: the rule's
	Settings   *settings.Table
	Span       settings.Span
}

// ForFolders reports whether the rule is for folders as assets.
func (r *Rule) ForFolders() bool { return strings.HasSuffix(r.Match, "/") }

// Source is the path of the source file of an entry of [[assets]], from the source root; "" if it has none.
func (r *Rule) Source() string {
	if r.Match == "" {
		return ""
	}
	return path.Join(r.Base, r.Match)
}

// ParseRules reads a rules.toml. file is its path for messages, relative to the project folder; base is
// its folder, relative to its source root, "" for the root itself.
//
// names are the groups and variables of kiln.toml.
func ParseRules(file, base string, data []byte, names Names) ([]Rule, diag.List) {
	root, complete, diags := parseTOML(file, data)
	d := &decoder{diags: diags, names: names}
	if !complete {
		return nil, d.list()
	}
	var rules []Rule
	d.expandTable(root)
	d.keys(root, "rules.toml", []key{
		{name: "rules", take: func(e *settings.Entry) { rules = append(rules, d.rules(e, base)...) }},
		{name: "assets", take: func(e *settings.Entry) { rules = append(rules, d.assets(e, base)...) }},
	})
	return rules, d.list()
}

func (d *decoder) rules(e *settings.Entry, base string) []Rule {
	var rules []Rule
	d.tables(e, func(t *settings.Table) {
		if r, ok := d.rule(t, base); ok {
			rules = append(rules, r)
		}
	})
	return rules
}

// rule reads one rule; ok is false if it does not say what it matches.
func (d *decoder) rule(t *settings.Table, base string) (r Rule, ok bool) {
	r = Rule{Base: base, Span: t.Span}
	before := len(d.listing)
	defer func() { r.Listed = slices.Clone(d.listing[before:]) }()
	d.keys(t, "a rule", append([]key{
		{name: "match", missing: `match = "sprites/**/*.png"`, take: func(e *settings.Entry) { d.match(e, &r) }},
		{name: "id", take: func(e *settings.Entry) { r.ID, r.IDSpan = d.assetID(e), e.Value.Span }},
	}, d.ruleKeys(t, &r)...))
	if r.Match == "./" && base == "" {
		d.add(r.MatchSpan.Errorf(diag.BadGlob, "a source root cannot be one asset").WithHint("move the files into a folder"))
		return r, false
	}
	if r.HasImport && r.ForFolders() {
		d.bad(t.Get("import").Value, "leave import out, or match files", "%q is for files, and %q matches folders", "import", r.Match)
	}
	if IsGlob(r.Match) || r.List != nil {
		for _, name := range []string{"id", "uuid"} {
			if e := t.Get(name); e != nil && (name != "id" || !r.HasFields()) {
				d.bad(e.Value, "write the path of one asset in match", "%q is given to all that %q matches", name, r.Match)
			}
		}
	}
	return r, r.Match != ""
}

// ruleKeys are the keys of both rules and entries of [[assets]].
func (d *decoder) ruleKeys(t *settings.Table, r *Rule) []key {
	return []key{
		{name: "processor", take: func(e *settings.Entry) { r.Processors = d.ruleProcessor(t, e) }},
		{name: "processors", take: func(e *settings.Entry) { r.Processors = d.ruleProcessors(e) }},
		{name: "import", take: func(e *settings.Entry) { r.Imports, r.HasImport = d.imports(e), true }},
		{name: "inputs", take: func(e *settings.Entry) {
			r.Inputs = d.byHand(e, patternsOf{base: r.Base, files: true, how: `["materials/*.toml"]`})
		}},
		{name: "needs", take: func(e *settings.Entry) { r.Needs = d.byHand(e, patternsOf{base: r.Base, how: `["palettes/*.png"]`}) }},
		{name: "ignore", take: func(e *settings.Entry) {
			r.Ignore = d.byHand(e, patternsOf{base: r.Base, files: true, found: true, how: `["include/version.h", "env:USER"]`})
		}},
		{name: "settings", take: func(e *settings.Entry) { r.Settings = d.table(e, settingsHint) }},
		{name: "stage", take: func(e *settings.Entry) {
			if s := d.str(e); s != "" && d.name(s, e.Value.Span, "stage") {
				r.Stage = s
			}
		}},
		{name: "meta", take: func(e *settings.Entry) { r.Meta = d.meta(e) }},
		{name: "platforms", take: func(e *settings.Entry) { r.Platforms = d.rulePlatforms(e) }},
		{name: "follow", take: func(e *settings.Entry) { follow := d.boolean(e); r.Follow = &follow }},
		{name: "allow", take: func(e *settings.Entry) { r.Allow = d.allow(e) }},
		{name: "uuid", take: func(e *settings.Entry) { r.UUID, r.UUIDSpan = d.uuid(e), e.Value.Span }},
	}
}

// assets reads entries of [[assets]].
func (d *decoder) assets(e *settings.Entry, base string) (list []Rule) {
	d.tables(e, func(t *settings.Table) {
		r := Rule{Base: base, Span: t.Span, Declares: true}
		before := len(d.listing)
		sourced := true
		d.keys(t, "an asset", append([]key{
			{name: "id", missing: `id = "icon"`, take: func(e *settings.Entry) {
				r.ID, r.IDSpan = d.assetID(e), e.Value.Span
				r.MatchSpan = cmp.Or(r.MatchSpan, r.IDSpan)
			}},
			{name: "source", take: func(e *settings.Entry) {
				r.Match, r.MatchSpan = d.source(e), e.Value.Span
				sourced = r.Match != ""
			}},
		}, d.ruleKeys(t, &r)...))
		if r.HasFields() {
			d.add(r.IDSpan.Errorf(diag.BadValue, "an entry of [[assets]] is one asset, and %q is made of the path of each", r.ID).
				WithHint("write a name, or a rule"))
			r.ID = ""
		}
		if r.Listed = slices.Clone(d.listing[before:]); r.ID != "" && sourced {
			list = append(list, r)
		}
	})
	return list
}

// source reads the path of one source file.
func (d *decoder) source(e *settings.Entry) string {
	s := d.str(e)
	switch {
	case s == "":
	case strings.HasSuffix(s, "/"):
		d.bad(e.Value, "name a file; for a folder write a rule whose match ends in a slash", "%q is a folder", e.Key)
	case strings.Contains(s, `\`):
		d.bad(e.Value, `use forward slashes: "`+strings.ReplaceAll(s, `\`, "/")+`"`, "%q has a backslash", e.Key)
	case !fs.ValidPath(s) || s == ".":
		const hint = "write it relative to the source root, or in rules.toml to the folder of that"
		d.bad(e.Value, hint, "%q cannot be the path of a source file", s)
	default:
		return s
	}
	return ""
}

// byHand reads patterns, and sets Given.
func (d *decoder) byHand(e *settings.Entry, of patternsOf) ByHand {
	return ByHand{d.patterns(e, of), true}
}

// ruleProcessor reads the only processor in a table of a rule.
func (d *decoder) ruleProcessor(t *settings.Table, e *settings.Entry) []Named {
	if t.Get("processors") != nil {
		d.add(e.Span.Errorf(diag.BadValue, "a rule has %q or %q, not both", "processor", "processors").WithHint("name them all in processors"))
	}
	if e.Kind == settings.Array {
		d.add(e.Value.Span.Errorf(diag.WrongType, "%q must be a string, not %s", e.Key, e.Kind).WithHint("several stand in processors = [...]"))
		return nil
	}
	if name := d.str(e); name != "" {
		return []Named{{name, e.Value.Span}}
	}
	return nil
}

// ruleProcessors reads a list of processors, each of which makes products of the same assets.
func (d *decoder) ruleProcessors(e *settings.Entry) []Named {
	var list []Named
	d.each(e, `["texture", "palette"]`, func(v *settings.Value) {
		switch name := d.strValue(v, e.Key); {
		case name == "":
		case name == "none" && len(e.Array) > 1:
			d.bad(v, `leave it out, or write processor = "none"`, "%q says that the files are not assets, so no other processor gets them", name)
		case slices.ContainsFunc(list, func(n Named) bool { return n.Name == name }):
			d.add(v.Span.Errorf(diag.DuplicateName, "processor %q is there twice", name).WithHint("leave one out"))
		default:
			list = append(list, Named{name, v.Span})
		}
	})
	if e.Kind == settings.Array && len(e.Array) == 0 {
		d.bad(e.Value, `name one or more, or write processor = "none"`, "%q is empty", e.Key)
	}
	return list
}

// allow reads a list of codes of messages.
func (d *decoder) allow(e *settings.Entry) *[]Named {
	list := []Named{}
	d.each(e, `["K1212"]`, func(v *settings.Value) {
		code := d.strValue(v, e.Key)
		switch near := diag.Nearest(code, diag.Known()); {
		case code == "":
		case slices.Contains(diag.Known(), code):
			list = append(list, Named{code, v.Span})
		case near != "":
			d.bad(v, fmt.Sprintf("did you mean %q?", near), "there is no code %q", code)
		default:
			d.bad(v, "write the code of a warning, as it stands in brackets", "there is no code %q", code)
		}
	})
	return &list
}

// imports reads the name of a processor, or a list of names and tables.
func (d *decoder) imports(e *settings.Entry) (list []Import) {
	const hint = `write import = "name", or import = ["first", { processor = "second", settings = { name = value } }]`
	take := func(v *settings.Value) {
		switch v.Kind {
		case settings.String:
			if name := d.strValue(v, e.Key); name != "" {
				list = append(list, Import{Named: Named{name, v.Span}})
			}
		case settings.Inner:
			var in Import
			d.keys(v.Table, "an import", []key{
				{name: "processor", missing: `processor = "name"`, take: func(e *settings.Entry) { in.Named = Named{d.str(e), e.Value.Span} }},
				{name: "settings", take: func(e *settings.Entry) { in.Settings = d.table(e, settingsHint) }},
			})
			if in.Name != "" {
				list = append(list, in)
			}
		default:
			d.add(v.Span.Errorf(diag.WrongType, "%q must be a string, a table or a list of these, not %s", e.Key, v.Kind).WithHint("%s", hint))
		}
	}
	if e.Kind != settings.Array {
		take(e.Value)
		return list
	}
	for _, v := range e.Array {
		take(v)
	}
	return list
}

const settingsHint = "write settings = { name = value }"

func (d *decoder) rulePlatforms(e *settings.Entry) []RulePlatform {
	var list []RulePlatform
	t := d.table(e, "write platforms.NAME.settings = { name = value }")
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		p := RulePlatform{Name: e.Key, Span: e.Span}
		inner := d.table(e, "write platforms."+e.Key+".settings = { name = value }")
		if inner == nil {
			continue
		}
		d.keys(inner, "a platform in a rule", []key{
			{name: "processor", take: func(e *settings.Entry) { p.Processors = d.ruleProcessor(inner, e) }},
			{name: "processors", take: func(e *settings.Entry) { p.Processors = d.ruleProcessors(e) }},
			{name: "settings", take: func(e *settings.Entry) { p.Settings = d.table(e, settingsHint) }},
		})
		list = append(list, p)
	}
	return list
}

// assetID reads an id, which becomes the path of a file in the output.
func (d *decoder) assetID(e *settings.Entry) string {
	s := d.str(e)
	if s == "" {
		return ""
	}
	if d.idTemplate(e.Value) {
		return s
	}
	if !validID(s) {
		d.bad(e.Value, `write a name like "player" or "sprites/player"`, "%q cannot be an asset id", s)
		return ""
	}
	return s
}

func (d *decoder) uuid(e *settings.Entry) string {
	s := d.str(e)
	if s == "" {
		return ""
	}
	u, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || u == uuid.Nil {
		d.bad(e.Value, `write it like "0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"`, "%q is not a UUID", s)
		return ""
	}
	return u.String()
}
