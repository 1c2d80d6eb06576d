package project

import (
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Run is how the game is started. The zero Run is not configured.
type Run struct {
	Command []string // program and arguments; a program with a slash is relative to the project folder
	Dir     string   // working folder, relative to the project folder; "": that folder itself
	Env     []EnvVariable

	Span settings.Span // of Command; zero without it
}

// EnvVariable is an environment variable.
type EnvVariable struct{ Name, Value string }

const runCommandHint = `write command = ["./game", "--windowed"]`

func (d *decoder) run(e *settings.Entry) Run {
	t := d.table(e, "write [run]")
	if t == nil {
		return Run{}
	}
	var r Run
	d.keys(t, "[run]", []key{
		{name: "command", missing: runCommandHint[len("write "):], take: func(e *settings.Entry) {
			r.Span = e.Value.Span
			r.Command = d.strs(e, runCommandHint[len("write command = "):])
			if e.Kind == settings.Array && len(e.Array) == 0 {
				d.bad(e.Value, runCommandHint, "%q is empty", e.Key)
			}
		}},
		{name: "cwd", take: func(e *settings.Entry) { r.Dir, _ = d.folder(e.Value, e.Key) }},
		{name: "env", take: func(e *settings.Entry) { r.Env = d.variables(e) }},
	})
	return r
}

// variables reads a table of environment variables.
func (d *decoder) variables(e *settings.Entry) (list []EnvVariable) {
	t := d.table(e, `write env = { LEVEL = "2" }`)
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		v := &t.Entries[i]
		if v.Key == "" || strings.ContainsAny(v.Key, "=\x00") || !printable(v.Key) {
			d.add(v.Span.Errorf(diag.BadValue, "%q cannot be the name of a variable", v.Key).WithHint("write a name without =, such as LEVEL"))
			continue
		}
		if !d.is(v.Value, v.Key, settings.String, "put it in quotes") {
			continue
		}
		if strings.Contains(v.Str, "\x00") {
			d.bad(v.Value, "remove it", "%q has a control character", v.Key)
			continue
		}
		list = append(list, EnvVariable{v.Key, v.Str})
	}
	return list
}
