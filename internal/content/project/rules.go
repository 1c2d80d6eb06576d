package project

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Rule says what happens to the source files that it matches.
type Rule struct {
	Match string // glob relative to Base; ends in a slash for folders as assets
	Base  string // folder relative to the source roots that the rule is for; "" is all
	ID    string // pinned, or ""; only where Match is the path of one asset
	UUID  string // pinned, in lower case, or ""

	// Processors that each make products of what the rule matches. None leaves it to others; "none", alone, says that such
	// files are no assets.
	Processors []Named

	// Imports are what is made of the source file first, one step after the other: the processors get what the last one made. HasImport tells
	// an empty list, which takes away what an earlier rule says, from none.
	Imports   []Import
	HasImport bool

	// Follow, where it is set, says whether the assets go into every parcel in which something refers to them, required or not.
	Follow *bool

	Settings  *settings.Table // nil: none
	Platforms []RulePlatform  // in the order of the file

	Span, MatchSpan, IDSpan, UUIDSpan settings.Span
}

// Named is the name of a processor where a rule has it.
type Named struct {
	Name string
	Span settings.Span
}

// Import is a step before the processors of a rule.
type Import struct {
	Named
	Settings *settings.Table // nil: none
}

// RulePlatform is what a rule says for one platform only.
type RulePlatform struct {
	Name       string
	Processors []Named // none: the rule's
	Settings   *settings.Table
	Span       settings.Span
}

// ForFolders reports whether the rule is for folders as assets.
func (r *Rule) ForFolders() bool { return strings.HasSuffix(r.Match, "/") }

// ParseRules reads a rules.toml. file is its path for messages, relative to the project folder; base is
// the folder it lies in, relative to its source root, "" for the root itself.
func ParseRules(file, base string, data []byte) ([]Rule, diag.List) {
	root, complete, diags := parseTOML(file, data)
	d := &decoder{diags: diags}
	if !complete {
		return nil, d.list()
	}
	var rules []Rule
	d.keys(root, "rules.toml", []key{
		{name: "rules", take: func(e *settings.Entry) { rules = d.rules(e, base) }},
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

// rule takes one rule; it is of use only if it says what it matches.
func (d *decoder) rule(t *settings.Table, base string) (Rule, bool) {
	r := Rule{Base: base, Span: t.Span}
	d.keys(t, "a rule", []key{
		{name: "match", missing: `match = "sprites/**/*.png"`, take: func(e *settings.Entry) {
			p := d.pattern(e.Value, e.Key)
			r.Match, r.MatchSpan = p.Text, p.Span
		}},
		{name: "processor", take: func(e *settings.Entry) { r.Processors = d.ruleProcessor(t, e) }},
		{name: "processors", take: func(e *settings.Entry) { r.Processors = d.ruleProcessors(e) }},
		{name: "import", take: func(e *settings.Entry) { r.Imports, r.HasImport = d.imports(e), true }},
		{name: "settings", take: func(e *settings.Entry) { r.Settings = d.table(e, settingsHint) }},
		{name: "platforms", take: func(e *settings.Entry) { r.Platforms = d.rulePlatforms(e) }},
		{name: "follow", take: func(e *settings.Entry) { follow := d.boolean(e); r.Follow = &follow }},
		{name: "id", take: func(e *settings.Entry) { r.ID, r.IDSpan = d.assetID(e), e.Value.Span }},
		{name: "uuid", take: func(e *settings.Entry) { r.UUID, r.UUIDSpan = d.uuid(e), e.Value.Span }},
	})
	if r.Match == "./" && base == "" {
		d.add(r.MatchSpan.Errorf(diag.BadGlob, "a source root cannot be one asset").WithHint("move the files into a folder"))
		return r, false
	}
	if r.HasImport && r.ForFolders() {
		d.bad(t.Get("import").Value, "leave import out, or match files", "%q is for files, and %q matches folders", "import", r.Match)
	}
	if IsGlob(r.Match) {
		for _, name := range []string{"id", "uuid"} {
			if e := t.Get(name); e != nil {
				d.bad(e.Value, "write the path of one asset in match", "%q is given to all that %q matches", name, r.Match)
			}
		}
	}
	return r, r.Match != ""
}

// ruleProcessor takes the one processor that a table of a rule names.
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

// ruleProcessors takes a list of processors, each of which makes products of the same assets.
func (d *decoder) ruleProcessors(e *settings.Entry) []Named {
	var list []Named
	d.each(e, `["texture", "palette"]`, func(v *settings.Value) {
		switch name := d.strValue(v, e.Key); {
		case name == "":
		case name == "none" && len(e.Array) > 1:
			d.bad(v, `leave it out, or write processor = "none"`, "%q says that the files are no assets, so no other processor gets them", name)
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

// imports takes the name of a processor, or a list of names and tables.
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

// assetID takes an id, which becomes the path of a file in the output.
func (d *decoder) assetID(e *settings.Entry) string {
	s := d.str(e)
	if s == "" {
		return ""
	}
	if !fs.ValidPath(s) || s == "." || strings.ContainsAny(s, `\:*?"<>|`) {
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
