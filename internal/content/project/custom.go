package project

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// CustomProcessor is a processor that the project declares. One of Script, Wasm, WasmGo and Command is
// set.
type CustomProcessor struct {
	Name       string // "": the script sets it
	Summary    string
	Version    int      // increased to run every job again when Kiln cannot know that the output changes
	Folder     bool     // its assets are folders
	Extensions []string // lower case, with the dot

	Script  string   // path of a Starlark script, relative to the project folder
	Wasm    string   // path of a WebAssembly module, relative to the project folder
	WasmGo  string   // folder of a Go package that is compiled to a module, relative to the project folder
	Command []string // program and arguments with {in}, {out} and so on; no shell

	Output  string         // extension of the main product; "" keeps the source's own name
	Outputs []CustomOutput // further products, in the order of the file
	Inputs  []Pattern      // globs from the source root: dependencies by hand of all kinds of jobs, and what a command may read
	Needs   []Pattern      // patterns of assets: jobs depend on their products by hand
	Reads   string         // how inputs of a command are found, if not by these globs: "traced" or "depfile"
	Network bool           // a command may use the network
	Timeout time.Duration  // 0: not set
	Memory  int64          // bytes that one run needs, used until one was measured; 0: not set
	Env     []string       // names of environment variables that are passed to it

	Properties map[string]string // that workers of a farm have to have that run its jobs, besides those of [execution]

	Settings []CustomSetting // in the order of the file

	Span, NameSpan, CommandSpan settings.Span
	table                       *settings.Table
}

// CustomOutput is one further product.
type CustomOutput struct {
	Name      string
	Extension string
	Span      settings.Span
}

// CustomSetting is a setting that rules may set.
type CustomSetting struct {
	Name    string
	Default any // bool, int64, float64, string or []any of one of these
	Doc     string
	Span    settings.Span
}

// Place returns the place of a dotted key of the declaration ("outputs.reflection"), or of an
// element of its list if index is not negative; the declaration's own place if there is no such key.
func (p *CustomProcessor) Place(key string, index int) settings.Span {
	t, span := p.table, p.Span
	for _, name := range strings.Split(key, ".") {
		e := t.Get(name)
		if e == nil {
			return span
		}
		span, t = e.Value.Span, e.Table
		if index >= 0 && index < len(e.Array) {
			span = e.Array[index].Span
		}
	}
	return span
}

const commandHint = `write command = ["tool", "{in}", "{out}"]`

func (d *decoder) processors(e *settings.Entry) []CustomProcessor {
	var list []CustomProcessor
	seen := firsts{}
	d.tables(e, func(t *settings.Table) {
		if p := d.processor(t, seen); p.Name != "" || p.Script != "" {
			list = append(list, p)
		}
	})
	return list
}

func (d *decoder) processor(t *settings.Table, seen firsts) CustomProcessor {
	p := CustomProcessor{Version: 1, Span: t.Span, NameSpan: t.Span, CommandSpan: t.Span, table: t}
	nameless := `name = "tilemap"`
	if t.Get("script") != nil {
		nameless = "" // the script sets its name
	}
	d.keys(t, "a processor", []key{
		{name: "name", missing: nameless, take: func(e *settings.Entry) {
			p.NameSpan = e.Value.Span
			switch s := d.str(e); {
			case s == "none":
				d.bad(e.Value, "take another name", "a processor cannot be called %q: rules say so for files that are not assets", s)
			case s == Textures:
				d.bad(e.Value, "take another name", "a processor cannot be called %q: under a platform, that is the policy for all textures", s)
			case s != "" && d.name(s, e.Value.Span, "processor") && d.fresh(seen, s, e.Value.Span, "processors"):
				p.Name = s
			}
		}},
		{name: "summary", take: func(e *settings.Entry) { p.Summary = d.str(e) }},
		{name: "version", take: func(e *settings.Entry) { p.Version = int(d.integer(e, 1, math.MaxInt32)) }},
		{name: "folder", take: func(e *settings.Entry) { p.Folder = d.boolean(e) }},
		{name: "extensions", take: func(e *settings.Entry) { p.Extensions = d.extensions(e) }},
		{name: "script", take: func(e *settings.Entry) { p.Script = d.inProject(e.Value, e.Key) }},
		{name: "wasm", take: func(e *settings.Entry) { d.wasm(e, &p) }},
		{name: "command", take: func(e *settings.Entry) {
			p.CommandSpan = e.Value.Span
			p.Command = d.strs(e, commandHint[len("write command = "):])
			if e.Kind == settings.Array && len(e.Array) == 0 {
				d.bad(e.Value, commandHint, "%q is empty", e.Key)
			}
		}},
		{name: "output", take: func(e *settings.Entry) { p.Output = d.extension(e.Value, e.Key) }},
		{name: "outputs", take: func(e *settings.Entry) { p.Outputs = d.outputs(e) }},
		{name: "inputs", take: func(e *settings.Entry) { d.inputs(e, &p) }},
		{name: "needs", take: func(e *settings.Entry) { p.Needs = d.patterns(e, patternsOf{how: `["palettes/*.png"]`}) }},
		{name: "network", take: func(e *settings.Entry) { p.Network = d.boolean(e) }},
		{name: "timeout", take: func(e *settings.Entry) { p.Timeout = d.duration(e) }},
		{name: "memory", take: func(e *settings.Entry) { p.Memory = d.size(e) }},
		{name: "properties", take: func(e *settings.Entry) { p.Properties = d.properties(e) }},
		{name: "env", take: func(e *settings.Entry) {
			d.each(e, `["SDK_HOME"]`, func(v *settings.Value) {
				if name := d.publicName(v, d.strValue(v, e.Key)); name != "" {
					p.Env = append(p.Env, name)
				}
			})
		}},
		{name: "settings", take: func(e *settings.Entry) { p.Settings = d.customSettings(e) }},
	})
	d.oneWay(t)
	return p
}

// wasm reads the path of a module, or { go = "folder" }.
func (d *decoder) wasm(e *settings.Entry, p *CustomProcessor) {
	if e.Kind != settings.Inner {
		p.Wasm = d.inProject(e.Value, e.Key)
		return
	}
	d.keys(e.Table, "a module's source", []key{
		{name: "go", missing: `go = "tools/voxel"`, take: func(e *settings.Entry) { p.WasmGo = d.inProject(e.Value, e.Key) }},
	})
}

// inProject reads a path relative to the project folder that stays inside it.
func (d *decoder) inProject(v *settings.Value, name string) string {
	s := d.strValue(v, name)
	if s == "" {
		return ""
	}
	p := path.Clean(s)
	switch bad := !fs.ValidPath(p) || p == "." || strings.ContainsAny(s, `\:`); {
	case bad && strings.Contains(s, `\`):
		d.bad(v, "write "+strconv.Quote(strings.ReplaceAll(s, `\`, "/")), "%q has backslashes", s)
		return ""
	case bad:
		d.bad(v, `write it relative to kiln.toml, like "tools/tilemap.star"`, "%q is not a path in the project", s)
		return ""
	}
	return p
}

// says are the keys that are valid only for one kind of processor; others are valid for all.
var says = map[string]string{
	"output": "command", "outputs": "command", "env": "command", "settings": "command",
}

// inputs reads globs, or how a command's inputs are found without them.
func (d *decoder) inputs(e *settings.Entry, p *CustomProcessor) {
	if e.Value.Kind != settings.String {
		p.Inputs = d.patterns(e, patternsOf{files: true, how: `["shaders/include/*.glsl"]`})
		return
	}
	switch s := e.Value.Str; s {
	case "declared":
	case "traced", "depfile":
		p.Reads = s
	default:
		m := e.Value.Span.Errorf(diag.BadValue, "%q is not a way to know inputs", s)
		if m.Hint = diag.DidYouMean(s, []string{"traced", "depfile", "declared"}); m.Hint == "" {
			m.Hint = `a list of globs, "traced" or "depfile"`
		}
		d.add(m)
	}
}

func (d *decoder) oneWay(t *settings.Table) {
	var ways []*settings.Entry
	for i := range t.Entries {
		if slices.Contains([]string{"script", "wasm", "command"}, t.Entries[i].Key) {
			ways = append(ways, &t.Entries[i])
		}
	}
	switch {
	case len(ways) == 0:
		d.add(t.Span.Errorf(diag.MissingKey, "a processor needs a key %q", "command").WithHint("%s", commandHint))
	case len(ways) > 1:
		d.add(ways[1].Span.Errorf(diag.BadValue, "a processor has %q or %q, not both", ways[0].Key, ways[1].Key).WithHint("remove one"))
	default:
		for i := range t.Entries {
			e := &t.Entries[i]
			switch way := says[e.Key]; {
			case way != "" && way != ways[0].Key:
				d.add(e.Span.Errorf(diag.BadValue, "%q is for processors by %q", e.Key, way).WithHint("remove it: a %s says that itself", ways[0].Key))
			case e.Key == "inputs" && e.Kind == settings.String && ways[0].Key != "command":
				d.add(e.Value.Span.Errorf(diag.BadValue, "%q is for processors by %q", e.Value.Str, "command").
					WithHint("remove it: what a %s reads is recorded; a list of globs adds source files to that", ways[0].Key))
			}
		}
	}
}

func (d *decoder) extension(v *settings.Value, name string) string {
	s := d.strValue(v, name)
	if s == "" {
		return ""
	}
	fixed := "." + strings.TrimLeft(strings.ToLower(s), "*.")
	switch broken := len(fixed) < 2 || strings.ContainsAny(fixed, `/\*?[]{}<>:|" `) || strings.HasSuffix(fixed, ".") || strings.Contains(fixed, ".."); {
	case broken:
		d.bad(v, `lower case with a dot in front, like ".map"`, "%q is not an extension", s)
		return ""
	case s != fixed:
		d.bad(v, "write "+strconv.Quote(fixed), "%q is not an extension", s)
		return ""
	}
	return s
}

// extensions reads the extensions that a processor claims. Another one may claim them too: a rule or the order
// decides.
func (d *decoder) extensions(e *settings.Entry) []string {
	var list []string
	seen := firsts{}
	d.each(e, `[".map"]`, func(v *settings.Value) {
		if s := d.extension(v, e.Key); s != "" && d.fresh(seen, s, v.Span, "extensions") {
			list = append(list, s)
		}
	})
	return list
}

// outputs reads a table of product name to extension.
func (d *decoder) outputs(e *settings.Entry) []CustomOutput {
	var list []CustomOutput
	t := d.table(e, `write outputs = { reflection = ".json" }`)
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if ext := d.extension(e.Value, e.Key); ext != "" && d.name(e.Key, e.Span, "product") {
			list = append(list, CustomOutput{e.Key, ext, e.Span})
		}
	}
	return list
}

func (d *decoder) duration(e *settings.Entry) time.Duration {
	s := d.str(e)
	if s == "" {
		return 0
	}
	t, err := time.ParseDuration(s)
	if err != nil || t <= 0 || t > 24*time.Hour {
		d.bad(e.Value, `write it like "90s" or "2m", at most a day`, "%q is not a duration", s)
		return 0
	}
	return t
}

// customSettings reads the settings that a processor has for rules: name = default, or name = {
// default = ..., type = "...", doc = "..." }.
func (d *decoder) customSettings(e *settings.Entry) []CustomSetting {
	var list []CustomSetting
	t := d.table(e, "write settings = { name = default }")
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		s := CustomSetting{Name: e.Key, Doc: "Set by the project's own processor.", Span: e.Span}
		value, kind := e.Value, ""
		if e.Kind == settings.Inner {
			value = nil
			d.keys(e.Table, "the declaration of a setting", []key{
				{name: "default", missing: `default = 3`, take: func(e *settings.Entry) { value = e.Value }},
				{name: "type", take: func(e *settings.Entry) { kind = d.settingType(e) }},
				{name: "doc", take: func(e *settings.Entry) { s.Doc = d.str(e) }},
			})
		}
		if value != nil {
			if s.Default = d.defaultOf(value, e.Key, kind); s.Default != nil {
				list = append(list, s)
			}
		}
	}
	return list
}

// settingTypes are the values of `type`; without it the default's own type counts.
var settingTypes = []string{"boolean", "integer", "number", "string"}

func (d *decoder) settingType(e *settings.Entry) string {
	s := d.str(e)
	if s == "" || slices.Contains(settingTypes, s) {
		return s
	}
	m := e.Value.Span.Errorf(diag.BadValue, "%q is not a type of setting", s)
	if m.Hint = diag.DidYouMean(s, settingTypes); m.Hint == "" {
		m.Hint = "one of " + strings.Join(settingTypes, ", ")
	}
	d.add(m)
	return ""
}

// defaultOf returns a default as a Go value. The elements of a list have one type.
func (d *decoder) defaultOf(v *settings.Value, name, kind string) any {
	switch {
	case v.Kind == settings.Bool && (kind == "" || kind == "boolean"):
		return v.Bool
	case v.Kind == settings.Integer && kind == "number":
		return float64(v.Int)
	case v.Kind == settings.Integer && (kind == "" || kind == "integer"):
		return v.Int
	case v.Kind == settings.Float && (kind == "" || kind == "number"):
		return v.Float
	case v.Kind == settings.String && (kind == "" || kind == "string"):
		return v.Str
	case v.Kind == settings.Array && kind == "":
		list := []any{}
		for _, x := range v.Array {
			if x.Kind != v.Array[0].Kind {
				d.add(x.Span.Errorf(diag.WrongType, "the default of setting %q has %s among elements of another kind", name, x.Kind).
					WithHint("a list has elements of one kind"))
				return nil
			}
			one := d.defaultOf(x, name, "")
			if _, nested := one.([]any); nested {
				d.add(x.Span.Errorf(diag.WrongType, "the default of setting %q is a list of lists", name).WithHint("a list has booleans, numbers or strings"))
				one = nil
			}
			if one == nil {
				return nil
			}
			list = append(list, one)
		}
		return list
	}
	m := v.Span.Errorf(diag.WrongType, "the default of setting %q cannot be %s", name, v.Kind)
	if m.Hint = "a boolean, a number, a string or a list of one of these"; kind != "" {
		m.Hint = "its type is " + kind
	}
	d.add(m)
	return nil
}
