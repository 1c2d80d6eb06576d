package workspace

import (
	"fmt"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/project"
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

// Processor finds the processor of a written job. state is an absolute path of a folder for caches.
func (g *Program) Processor(j *written.Job, state string) (processor.Processor, error) {
	if j.Own == nil {
		pr := g.p.Procs[j.Processor]
		if pr == nil {
			return nil, fmt.Errorf("this kiln has no processor %q", j.Processor)
		}
		return pr.Processor, nil
	}
	p := &Workspace{Config: Config{Dir: written.Code, State: state}}
	m := p.custom(&project.CustomProcessor{
		Name: j.Processor, Script: j.Own.Script, Wasm: j.Own.Wasm, Folder: j.Own.Folder, Version: j.Own.Version, Extensions: j.Own.Extensions,
		Timeout: j.Own.Timeout, Memory: j.Own.Memory,
	})
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

// carried is what a worker needs for a processor of the project: its declaration in the project file, and its files by
// their paths below written.Code. Both are nil for a processor that is compiled in. ok is false for one that cannot run
// elsewhere: a command.
func (p *Workspace) carried(name string) (own *written.Own, files map[string][]byte, ok bool) {
	i := slices.IndexFunc(p.Project.Processors, func(c project.CustomProcessor) bool { return c.Name == name })
	if i < 0 {
		return nil, nil, true
	}
	c := &p.Project.Processors[i]
	own = &written.Own{Folder: c.Folder, Version: c.Version, Extensions: c.Extensions, Timeout: c.Timeout, Memory: c.Memory}
	pr := p.Procs[name].Processor
	if code, ok := wasm.Code(pr); ok {
		own.Wasm = "module.wasm"
		return own, map[string][]byte{own.Wasm: code}, true
	}
	own.Script, files = c.Script, sources(pr)
	return own, files, files != nil
}
