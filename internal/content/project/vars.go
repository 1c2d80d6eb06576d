package project

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Variables: [vars] in kiln.toml declares them, and ${NAME} in any string of kiln.toml and rules.toml is replaced by
// the value. The value comes from the caller (--set), from the environment if the declaration says so, or from the
// declaration.

// Given are the caller's values for variables of a project.
type Given struct {
	Set    map[string]string        // values by name
	Getenv func(name string) string // nil: os.Getenv
	Kiln   string                   // the version of Kiln that runs; "": it does not matter
}

// Variable is a value with a name.
type Variable struct {
	Name, Value string
	From        string // where the value comes from: "--set", "the environment variable ENGINE_DIR", or a place in kiln.toml
	Env         string // the environment variable that it may come from; "": none
	outside     bool   // a part of the value may come from the environment
	Span        settings.Span
}

const (
	maxVariable = 4 << 10 // bytes of a value
	maxExpanded = 4 << 20 // bytes that all values together may add to a file
)

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })

// Vars are the variables, in the order of the file.
func (n Names) Vars() []Variable { return n.vars }

func (n Names) variable(name string) *Variable {
	i := slices.IndexFunc(n.vars, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &n.vars[i]
}

func (n Names) variableNames() []string {
	names := make([]string, len(n.vars))
	for i := range n.vars {
		names[i] = n.vars[i].Name
	}
	return names
}

// takeVars reads the table of variables, if there is one. A value may use variables declared before it.
func (d *decoder) takeVars(e *settings.Entry, given Given) {
	if e != nil {
		if t := d.table(e, "write [vars]"); t != nil {
			for i := range t.Entries {
				d.variable(&t.Entries[i], given)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given.Set)) {
		if d.names.variable(name) == nil {
			m := diag.Errorf(diag.UnknownKey, diag.Pos{}, "there is no variable %q to set", name)
			d.add(m.WithHint("%s", noVariable(name, d.names.variableNames())))
		}
	}
}

func noVariable(name string, names []string) string {
	if len(names) == 0 {
		return `declare it in kiln.toml: [vars] and ` + name + ` = "value"`
	}
	return meant(name, names)
}

// variable reads the declaration of a variable.
func (d *decoder) variable(e *settings.Entry, given Given) {
	v := Variable{Name: e.Key, Span: e.Span, From: e.Value.Span.Pos.String()}
	if !variableName().MatchString(e.Key) {
		d.add(e.Span.Errorf(diag.BadValue, "%q cannot be the name of a variable", e.Key).WithHint("letters, digits and underscores, at most 64, and no digit first"))
		return
	}
	value := e.Value
	if e.Kind == settings.Inner {
		value = nil
		d.keys(e.Table, "a variable", []key{
			{name: "env", missing: `env = "ENGINE_DIR"`, take: func(e *settings.Entry) { v.Env = d.publicName(e.Value, d.str(e)) }},
			{name: "default", take: func(e *settings.Entry) { value = e.Value }},
		})
	}
	if value != nil {
		if d.expand(value); !d.is(value, e.Key, settings.String, `write it in quotes, or { env = "NAME", default = "value" }`) {
			return
		}
		v.Value, v.From, v.outside = value.Str, value.Span.Pos.String(), d.fromOutside(value) != ""
	}
	v.outside = v.outside || v.Env != ""
	getenv := given.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if v.Env != "" && getenv(v.Env) != "" {
		v.Value, v.From, value = getenv(v.Env), "the environment variable "+v.Env, e.Value
	}
	if set, ok := given.Set[e.Key]; ok {
		v.Value, v.From, value = set, "--set", e.Value
	}
	switch {
	case value == nil && v.Env != "":
		d.add(e.Span.Errorf(diag.BadValue, "the variable %q has no value: the environment variable %s is not set", e.Key, v.Env).
			WithHint("set it, use --set %s=VALUE, or add default = \"value\"", e.Key))
	case value == nil:
		return // env is missing, which was reported
	case len(v.Value) > maxVariable || !printable(v.Value):
		d.add(e.Span.Errorf(diag.BadValue, "the value of %q, from %s, cannot be used", e.Key, v.From).WithHint("at most 4096 bytes, without control characters"))
		v.Value = ""
	}
	d.names.vars = append(d.names.vars, v)
}

// publicName takes the name of an environment variable, unless it is one of Kiln's credentials: a project file is written by others, and
// could have them sent anywhere.
func (d *decoder) publicName(v *settings.Value, name string) string {
	if !strings.HasPrefix(name, "KILN_CACHE_") && !strings.HasPrefix(name, "KILN_KEY_") {
		return name
	}
	d.bad(v, "remove it: only Kiln itself uses this variable", "%s cannot be used in a project file: it is for credentials", name)
	return ""
}

// fromOutside is a variable in a value whose own value comes from the environment; "": none.
func (d *decoder) fromOutside(v *settings.Value) string {
	for _, use := range v.Uses {
		if x := d.names.variable(use.Name); x != nil && x.outside {
			return x.Name
		}
	}
	return ""
}

// expandTable replaces variables in all strings of a table, but for some of its keys.
func (d *decoder) expandTable(t *settings.Table, except ...string) {
	for i := range t.Entries {
		if !slices.Contains(except, t.Entries[i].Key) {
			d.expand(t.Entries[i].Value)
		}
	}
}

// expand replaces variables in all strings of a value.
func (d *decoder) expand(v *settings.Value) {
	switch v.Kind {
	case settings.Array:
		for _, x := range v.Array {
			d.expand(x)
		}
	case settings.Inner:
		d.expandTable(v.Table)
	case settings.String:
		if strings.Contains(v.Str, "${") {
			d.expandString(v)
		}
	}
}

// expandString replaces ${NAME} by the value of the variable, and $${ by ${.
func (d *decoder) expandString(v *settings.Value) {
	var b strings.Builder
	rest := v.Str
	for {
		before, after, more := strings.Cut(rest, "${")
		b.WriteString(before)
		if !more {
			break
		}
		if strings.HasSuffix(before, "$") { // the first $ is already written
			b.WriteString("{")
			rest = after
			continue
		}
		name, behind, closed := strings.Cut(after, "}")
		x := d.names.variable(name)
		switch {
		case !closed || !variableName().MatchString(name):
			d.bad(v, "write ${NAME}, or $${ for these two characters", "${ begins the name of a variable, and there is none")
			v.Str = "variable" // so that nothing else is reported about it
			return
		case x == nil:
			d.bad(v, noVariable(name, d.names.variableNames()), "there is no variable %q", name)
			v.Str = "variable"
			return
		}
		if d.expanded += len(x.Value); d.expanded > maxExpanded {
			d.bad(v, "use shorter values", "the values of variables add more than %d bytes to the file", maxExpanded)
			return
		}
		b.WriteString(x.Value)
		v.Uses = append(v.Uses, settings.Use{Name: name, From: x.From})
		rest = behind
	}
	v.Str = b.String()
}

// String is the variable with its value, for hashes.
func (v Variable) String() string { return fmt.Sprintf("%s=%q", v.Name, v.Value) }
