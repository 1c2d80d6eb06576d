package project

import (
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Execution is where jobs run besides this machine. The zero Execution is not configured.
type Execution struct {
	Remote     string            // address of a server
	Jobs       int               // concurrent jobs; 0: not set
	Timeout    time.Duration     // of a job; 0: not set
	Properties map[string]string // required of a worker
	All        bool              // jobs that can run there do, even quick ones
	Kiln       string            // path of the program that workers run, relative to the project folder; "": that of the kiln that builds
	Span       settings.Span
}

func (d *decoder) execution(e *settings.Entry) Execution {
	var x Execution
	t := d.table(e, "write [execution]")
	if t == nil {
		return x
	}
	x.Span = t.Span
	d.keys(t, "[execution]", []key{
		{name: "remote", take: func(e *settings.Entry) { x.Remote = d.server(e) }},
		{name: "jobs", take: func(e *settings.Entry) { x.Jobs = int(d.integer(e, 1, 1024)) }},
		{name: "timeout", take: func(e *settings.Entry) { x.Timeout = d.duration(e) }},
		{name: "all", take: func(e *settings.Entry) { x.All = d.boolean(e) }},
		{name: "properties", take: func(e *settings.Entry) { x.Properties = d.properties(e) }},
		{name: "kiln", take: func(e *settings.Entry) {
			if x.Kiln = d.str(e); strings.ContainsAny(x.Kiln, "\x00\n") {
				d.bad(e.Value, `write the path of a kiln for the system of the workers: "tools/kiln-linux"`, "%q is not a file", e.Key)
				x.Kiln = ""
			}
		}},
	})
	return x
}

// properties reads the required properties of a worker, by name.
func (d *decoder) properties(e *settings.Entry) map[string]string {
	t := d.table(e, `write properties = { OSFamily = "linux", pool = "assets" }`)
	if t == nil {
		return nil
	}
	list := map[string]string{}
	for i := range t.Entries {
		list[t.Entries[i].Key] = d.sent(&t.Entries[i])
	}
	return list
}
