package project

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Parse reads a kiln.toml. file is its path for messages. The project is nil if the file is not TOML;
// otherwise it has everything that is valid.
func Parse(file string, data []byte, given Given) (*Project, diag.List) {
	root, complete, diags := parseTOML(file, data)
	d := &decoder{diags: diags}
	if !complete {
		return nil, d.list()
	}
	p := &Project{Output: "build", Roots: []Root{{Path: "assets"}}}
	d.takeVars(root.Get("vars"), given)
	d.names.kiln = given.Kiln
	d.expandTable(root, "vars")
	if e := root.Get("groups"); e != nil { // other tables use them
		d.takeGroups(e)
	}
	d.keys(root, File, []key{
		{name: "project", missing: `[project] and name = "mygame"`, take: func(e *settings.Entry) { d.project(p, e) }},
		{name: "platforms", take: func(e *settings.Entry) { p.Platforms = d.platforms(e) }},
		{name: "rules", take: func(e *settings.Entry) { p.Rules = append(p.Rules, d.rules(e, "")...) }},
		{name: "assets", take: func(e *settings.Entry) { p.Rules = append(p.Rules, d.assets(e, "")...) }},
		{name: "processors", take: func(e *settings.Entry) { p.Processors = d.processors(e) }},
		{name: "vars", take: func(*settings.Entry) {}},
		{name: "groups", take: func(*settings.Entry) {}},
		{name: "parcels", take: func(e *settings.Entry) { p.Parcels = d.parcels(e) }},
		{name: "constants", take: func(e *settings.Entry) { p.Constants = d.constants(e) }},
		{name: "build", take: func(e *settings.Entry) { p.Build = d.build(e) }},
		{name: "cache", take: func(e *settings.Entry) { p.Cache = d.cache(e) }},
		{name: "execution", take: func(e *settings.Entry) { p.Execution = d.execution(e) }},
		{name: "run", take: func(e *settings.Entry) { p.Run = d.run(e) }},
	})
	if len(p.Platforms) == 0 {
		p.Platforms = []Platform{{Name: "pc"}}
	}
	p.Names, p.Listed = d.names, d.listing
	d.parcelsTogether(p)
	d.constantsTogether(p)
	if d.other != nil {
		return p, diag.List{d.other}
	}
	return p, d.list()
}

func (d *decoder) project(p *Project, e *settings.Entry) {
	t := d.table(e, "write [project]")
	if t == nil {
		return
	}
	p.Roots[0].Span = t.Span // of the default root
	var output *settings.Value
	d.keys(t, "[project]", []key{
		{name: "name", missing: `name = "mygame"`, take: func(e *settings.Entry) { p.Name = d.str(e) }},
		{name: "roots", take: func(e *settings.Entry) { p.Roots = d.roots(e) }},
		{name: "output", take: func(e *settings.Entry) {
			if s, ok := d.folder(e.Value, e.Key); ok {
				p.Output, output = s, e.Value
			}
		}},
		{name: "kiln", take: func(e *settings.Entry) { p.Kiln, p.KilnSpan = d.inProject(e.Value, e.Key), e.Value.Span }},
		{name: "ignore", take: func(e *settings.Entry) { p.Ignore = d.strs(e, `["*.bak"]`) }},
		{name: "requires", take: d.requires},
	})
	if output != nil && (p.Output == "." || leaves(p.Output) || overlap(p.Output, StateFolder) || controlled(p.Output)) {
		d.bad(output, `write a folder inside the project, like "build"`, "output cannot be %q", p.Output)
		p.Output = "build"
	}
	if t.Get("roots") == nil && output != nil {
		p.Roots[0].Span = output.Span // the cause cannot be the default root
	}
	d.apart(p)
}

// folder reads a path relative to the project folder and cleans it.
func (d *decoder) folder(v *settings.Value, name string) (string, bool) {
	s := d.strValue(v, name)
	switch {
	case s == "":
		return "", false
	case strings.Contains(s, `\`):
		d.bad(v, `use forward slashes: "`+strings.ReplaceAll(s, `\`, "/")+`"`, "%q has a backslash", name)
	case isAbs(s) && name == "roots":
		const hint = `give it a name, so that it is the same root on every machine: { path = "${ENGINE}/content", name = "engine" }`
		d.bad(v, hint, "%q is an absolute path", name)
	case isAbs(s):
		d.bad(v, "write it relative to kiln.toml, so that it is right on every machine", "%q is an absolute path", name)
	default:
		return path.Clean(s), true
	}
	return "", false
}

func (d *decoder) roots(e *settings.Entry) []Root {
	var roots []Root
	d.each(e, `["assets"]`, func(v *settings.Value) {
		if r := d.root(v, e.Key); r.Path != "" {
			roots = append(roots, r)
		}
	})
	if e.Kind == settings.Array && len(e.Array) == 0 {
		d.bad(e.Value, `write roots = ["assets"]`, "%q is empty", e.Key)
	}
	return roots
}

// root reads a source root: a folder, or { path = "folder", name = "name" }.
func (d *decoder) root(v *settings.Value, name string) Root {
	r := Root{Span: v.Span}
	if v.Kind != settings.Inner {
		if s, ok := d.folder(v, name); ok {
			r.Path = s
		}
		return r
	}
	d.keys(v.Table, "a source root", []key{
		{name: "path", missing: `path = "../engine/content"`, take: func(e *settings.Entry) {
			if len(e.Uses) > 0 { // a variable of Windows may contain backslashes
				e.Str = strings.ReplaceAll(e.Str, `\`, "/")
			}
			if r.Span = e.Value.Span; isAbs(e.Str) {
				r.Path = path.Clean(e.Str)
			} else if s, ok := d.folder(e.Value, e.Key); ok {
				r.Path = s
			}
		}},
		{name: "name", missing: `name = "engine"`, take: func(e *settings.Entry) {
			if s := d.str(e); s != "" && d.name(s, e.Value.Span, "source root") {
				r.Name = s
			}
		}},
	})
	if r.Name == "" {
		r.Path = ""
	}
	return r
}

// isAbs reports whether a path with forward slashes is absolute on some system.
func isAbs(p string) bool { return p != "" && p[0] == '/' || len(p) > 1 && p[1] == ':' }

// apart reports roots inside each other, because a file would be two assets, and roots in the output or in Kiln's own
// folder. A root may contain these two: a scan skips them.
func (d *decoder) apart(p *Project) {
roots:
	for i, r := range p.Roots {
		clash := func(how, other, hint string) {
			d.add(r.Span.Errorf(diag.FoldersOverlap, "source root %q %s %q", r.Path, how, other).WithHint("%s", hint))
		}
		switch {
		case within(r.Path, p.Output):
			clash("lies in the output", p.Output, "put source files in a folder of their own")
		case within(r.Path, StateFolder):
			clash("lies in Kiln's own folder", StateFolder, "put source files in a folder of their own")
		}
		for _, other := range p.Roots[:i] {
			if other.Name != "" && other.Name == r.Name {
				d.add(r.Span.Errorf(diag.DuplicateName, "there are two source roots %q", r.Name).
					WithNote("the first is at %s", other.Span.Pos).WithHint("give one of them another name"))
				continue roots
			}
			if fold(other.Path) == fold(r.Path) {
				d.add(r.Span.Errorf(diag.DuplicateName, "source root %q is there twice", r.Path).WithNote("the first is at %s", other.Span.Pos).WithHint("remove one of them"))
				continue roots
			} else if overlap(other.Path, r.Path) {
				clash("overlaps source root", other.Path, "roots overlay each other file by file, so they lie side by side")
				continue roots
			}
		}
	}
}

// fold makes paths comparable where case is ignored, as on Windows and macOS.
func fold(p string) string { return strings.ToLower(p) }

// overlap reports whether one of two clean relative paths is, or is inside, the other.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// within reports whether a clean relative path is, or is inside, another one.
func within(a, b string) bool {
	a, b = fold(a), fold(b)
	switch {
	case isAbs(a) != isAbs(b):
		return false // that depends on where the project is
	case b == ".":
		return !leaves(a)
	case strings.Trim(b, "./") == "": // "..", "../.."
		return len(a) < len(b) || !strings.HasPrefix(a, b+"/..") && a != b+"/.."
	}
	return a == b || strings.HasPrefix(a, b+"/")
}

// leaves reports whether a clean relative path leads out of its folder.
func leaves(p string) bool { return p == ".." || strings.HasPrefix(p, "../") }

// reserved names of platforms: folders of the output, and devices on Windows.
var reserved = []string{"parcels", "gen", "con", "prn", "aux", "nul"}

func (d *decoder) platforms(e *settings.Entry) []Platform {
	var list []Platform
	t := d.table(e, "write [platforms.pc]")
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if inner := d.table(e, "write [platforms."+e.Key+"]"); inner == nil || !d.name(e.Key, e.Span, "platform") {
			continue
		}
		if slices.Contains(reserved, e.Key) {
			d.add(e.Span.Errorf(diag.BadValue, "a platform cannot be called %q", e.Key).WithHint("Kiln or Windows uses that folder; take another name"))
			continue
		}
		list = append(list, d.platform(e))
	}
	return list
}

func (d *decoder) platform(e *settings.Entry) Platform {
	p := Platform{Name: e.Key, Span: e.Span}
	for i := range e.Table.Entries {
		x := &e.Table.Entries[i]
		hint := "settings stand under a processor: [platforms." + e.Key + ".PROCESSOR]"
		if slices.Contains(append(TextureSettings, Textures), x.Key) {
			hint = `write textures = { family = "bc" }`
		}
		switch t := d.table(x, hint); {
		case t == nil:
		case x.Key == Textures:
			p.Textures = t
			d.textures(t)
		default:
			p.Processors = append(p.Processors, PlatformProcessor{x.Key, t, x.Span})
		}
	}
	return p
}

// textures checks the keys of a platform's policy for textures. Package asset checks the values.
func (d *decoder) textures(t *settings.Table) {
	var keys []key
	for _, name := range TextureSettings {
		keys = append(keys, key{name: name, take: func(e *settings.Entry) { d.str(e) }})
	}
	d.keys(t, "a policy for textures", keys)
}

func (d *decoder) build(e *settings.Entry) Build {
	var b Build
	if t := d.table(e, "write [build]"); t != nil {
		d.keys(t, "[build]", []key{
			{name: "workers", take: func(e *settings.Entry) { b.Workers = int(d.integer(e, 1, 1024)) }},
			{name: "memory", take: func(e *settings.Entry) { b.Memory = d.size(e) }},
		})
	}
	return b
}

// units of sizes in bytes.
var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// size reads a number of bytes, written as an integer or with a unit.
func (d *decoder) size(e *settings.Entry) int64 {
	const hint = `write it like "2GB" or "512MiB"`
	if e.Kind == settings.Integer {
		return d.integer(e, 1, math.MaxInt64)
	}
	s := d.str(e)
	n, ok := Size(s)
	if !ok && s != "" {
		d.bad(e.Value, hint, "%q is not a size", s)
	}
	return n
}

// Size reads a number of bytes with its unit, "2GB" or "512 MiB"; at least one byte.
func Size(s string) (bytes int64, ok bool) {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(x*u.bytes >= 1 && x*u.bytes < 1<<60) {
			break
		}
		return int64(x * u.bytes), true
	}
	return 0, false
}
