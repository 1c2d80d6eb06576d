package workspace

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/extend/wasm"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/written"
	"github.com/kiln-pipeline/kiln/processor"
)

// The parts of a project that are sent along with a job to another machine.

// Program is the code in a kiln, for written jobs. The same Kiln makes the same of a job on every system.
type Program struct {
	Kiln digest.Hash
	p    *Workspace
}

// NewProgram returns the Program of a kiln whose configuration names no project.
func NewProgram(cfg Config) *Program {
	p := &Workspace{Config: cfg, Procs: map[string]*job.Installed{}}
	p.compiledIn()
	return &Program{p.programHash(), p}
}

func (p *Workspace) programHash() digest.Hash {
	b := digest.Build("kiln").Str("version", p.Config.Version)
	for _, info := range slices.Concat(p.Builtin, p.TeamInfos) {
		b.Str("processor", info.Name).Hash("fingerprint", p.Procs[info.Name].Fingerprint)
	}
	return b.Sum()
}

// Processor finds the processor of a written job. state is an absolute path of a folder for caches, and own are Kiln's own folders in the
// project folder that a traced program sees.
func (g *Program) Processor(j *written.Job, state string, own command.Kiln) (processor.Processor, error) {
	if j.Own == nil {
		pr := g.p.Procs[j.Processor]
		if pr == nil {
			return nil, fmt.Errorf("this kiln has no processor %q", j.Processor)
		}
		return pr.Processor, nil
	}
	p := &Workspace{Config: Config{Dir: written.Code, State: state}}
	c := &project.CustomProcessor{
		Name: j.Processor, Script: j.Own.Script, Wasm: j.Own.Wasm, Folder: j.Own.Folder, Version: j.Own.Version, Extensions: j.Own.Extensions,
		Timeout: j.Own.Timeout, Memory: j.Own.Memory,
	}
	if said := j.Own.Program; said != nil {
		cc := commandOf(c, said)
		cc.Kiln = own
		return command.New(cc)
	}
	m := p.custom(c)
	if len(m.errs) > 0 {
		return nil, fmt.Errorf("processor %q: %w", j.Processor, m.errs)
	}
	return m.Processor, nil
}

// Info describes a processor that is compiled in.
func (g *Program) Info(name string) (processor.Info, bool) {
	pr := g.p.Procs[name]
	if pr == nil {
		return processor.Info{}, false
	}
	return pr.Info, true
}

// Farm runs jobs on other machines; nil: there are none. An audit, which builds beside the project, runs its jobs here.
func (p *Workspace) Farm() *farm.Farm {
	if p.Config.State != "" {
		return nil
	}
	return p.farm
}

// carried is what a worker needs of a processor of the project: what the project file says of it, and its files by their paths below
// written.Code. Of a processor that the kiln has in it, it is nearly nothing. It is nil for one that cannot run elsewhere: a command that
// writes a depfile, where only the source roots themselves show what it did not find; or a traced one whose roots are not all in
// the project.
func (p *Workspace) carried(name string) *farm.Carried {
	i := slices.IndexFunc(p.Project.Processors, func(c project.CustomProcessor) bool { return c.Name == name })
	if i < 0 {
		return &farm.Carried{Project: p.writtenFolders()}
	}
	c := &p.Project.Processors[i]
	own := &written.Own{Folder: c.Folder, Version: c.Version, Extensions: c.Extensions, Timeout: c.Timeout, Memory: c.Memory}
	carried := &farm.Carried{Own: own, Properties: c.Properties, Project: p.writtenFolders()}
	pr := p.Procs[name].Processor
	if code, ok := wasm.Code(pr); ok {
		own.Wasm = "module.wasm"
		carried.Files = map[string][]byte{own.Wasm: code}
		return carried
	}
	if command.Runs(pr) {
		own.Program = writtenCommand(c, pr.Info().Settings)
		switch traced := own.Program.Traced; {
		case c.Reads != "" && !traced, traced && carried.Project == nil:
			return nil
		case !traced:
			carried.Project = nil
		}
		return carried
	}
	own.Script, carried.Files = c.Script, sources(pr)
	return carried
}

// writtenFolders writes down where a traced program finds the project; nil if some of it is elsewhere than in the project folder.
func (p *Workspace) writtenFolders() *written.Folders {
	dirs, within := allNames(p.Dir), true
	below := func(name string) string {
		for _, dir := range dirs {
			if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
				return filepath.ToSlash(rel)
			}
		}
		within = false
		return filepath.ToSlash(name)
	}
	all := func(names []string) (list []string) {
		for _, name := range names {
			if name = below(name); !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		return list
	}
	f := &written.Folders{Roots: all(p.RootNames()), Scratch: below(p.ScratchDir())}
	built := below(p.OutputDir()) // a run makes it
	if !within || built == "." || slices.ContainsFunc(p.Roots, func(r project.Root) bool { return r.Name != "" }) {
		return nil
	}
	own := p.ownFolders()
	f.Built, f.State, f.Shipped = all(own.Built), all(own.State), all(own.Shipped)
	return f
}

// writtenCommand writes down what decides what the jobs of a command make. like has its settings as fields.
func writtenCommand(c *project.CustomProcessor, like any) *written.Program {
	said := &written.Program{
		Args: c.Command, Env: c.Env, Output: c.Output, Network: c.Network, Traced: command.Reads(c.Reads) == command.Traced,
	}
	for _, o := range c.Outputs {
		said.Outputs = append(said.Outputs, written.Named{Name: o.Name, Text: o.Extension})
	}
	for i, s := range c.Settings {
		said.Settings = append(said.Settings, written.Named{Name: s.Name, Text: reflect.TypeOf(like).Elem().Field(i).Type.String()})
	}
	return said
}

// settingTypes are the types that settings of commands can have.
var settingTypes = map[string]any{
	"bool": false, "int64": int64(0), "float64": 0.0, "string": "",
	"[]bool": []bool{}, "[]int64": []int64{}, "[]float64": []float64{}, "[]string": []string{},
}

// commandOf is a command out of a written job. The values of its settings are in there, so their defaults are not needed.
func commandOf(c *project.CustomProcessor, said *written.Program) command.Config {
	cc := command.Config{
		Name: c.Name, Version: c.Version, Command: said.Args, Extensions: c.Extensions, Folder: c.Folder, Output: said.Output,
		Outputs: map[string]string{}, Timeout: c.Timeout, Memory: c.Memory, Env: said.Env, Network: said.Network,
	}
	for _, o := range said.Outputs {
		cc.Outputs[o.Name] = o.Text
	}
	for _, s := range said.Settings {
		cc.Settings = append(cc.Settings, command.Setting{Name: s.Name, Default: settingTypes[s.Text]})
	}
	if said.Traced {
		cc.Reads = command.Traced
	}
	return cc
}
