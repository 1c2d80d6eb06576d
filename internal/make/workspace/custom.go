package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/local"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	scripts "github.com/kiln-pipeline/kiln/internal/extend/script"
	"github.com/kiln-pipeline/kiln/internal/extend/wasm"
	"github.com/kiln-pipeline/kiln/processor"
)

// made is a processor that the project file declares.
type made struct {
	processor.Processor
	code string // hash of its declaration and all its code
	errs diag.List
}

// customs makes the processors that the project file declares, in parallel, and installs them in its order.
func (p *Workspace) customs() diag.List {
	list := p.Project.Processors
	all := make([]made, len(list))
	var wg sync.WaitGroup
	for i := range list {
		if list[i].Command != nil {
			all[i] = p.custom(&list[i]) // in parallel
			continue
		}
		wg.Go(func() { all[i] = p.custom(&list[i]) })
	}
	wg.Wait()
	var l diag.List
	for i := range all {
		if l = append(l, all[i].errs...); len(all[i].errs) == 0 {
			l = append(l, p.adopt(&list[i], all[i])...)
		}
	}
	return l
}

// adopt installs a processor, unless an earlier one of the project has its name. The check of the project file does not
// see names that scripts set.
func (p *Workspace) adopt(c *project.CustomProcessor, m made) diag.List {
	info := m.Info()
	c.Name = info.Name
	for _, other := range p.CustomInfos {
		if other.Name == info.Name {
			return diag.List{c.NameSpan.Errorf(diag.DuplicateName, "two processors are called %q", info.Name).WithHint("give one of them another name")}
		}
	}
	p.CustomInfos = append(p.CustomInfos, p.install(m.Processor, m.code))
	return nil
}

// custom makes one processor.
func (p *Workspace) custom(c *project.CustomProcessor) (m made) {
	switch {
	case c.Script != "":
		return p.script(c)
	case c.Wasm != "" || c.WasmGo != "":
		return p.wasm(c)
	default:
		pr, code, err := p.command(c)
		if err != nil {
			return made{errs: commandErrors(c, err)}
		}
		return made{Processor: pr, code: code}
	}
}

// script makes a processor of a Starlark script. Where kiln.toml and the script both say something, they
// must agree.
func (p *Workspace) script(c *project.CustomProcessor) made {
	s, err := scripts.Load(p.Config.Dir, c.Script, p.codePlace(p.Config.Dir, "scripts"))
	if err != nil {
		l := diag.Messages(err, diag.ScriptError)
		// The script is missing: report it at the place in kiln.toml.
		if m := l[0]; m.Code == diag.ScriptLoad && m.File == c.Script && m.Pos.Line == 0 {
			at := c.Place("script", -1).Errorf(m.Code, "%s", m.Text)
			at.Hint = m.Hint
			l = diag.List{at}
		}
		return made{errs: l}
	}
	info := s.Info()
	differ := func(key string, says, said any) made {
		return made{errs: diag.List{c.Place(key, -1).Errorf(diag.ScriptDeclaration, "%s is %v here and %v in %s", key, says, said, c.Script).WithHint("leave it out here, or say the same")}}
	}
	switch {
	case c.Name != "" && c.Name != info.Name:
		return differ("name", fmt.Sprintf("%q", c.Name), fmt.Sprintf("%q", info.Name))
	case c.Folder && !info.Folder:
		return differ("folder", true, false)
	case c.Extensions != nil && info.Extensions != nil && !slices.Equal(sorted(c.Extensions), sorted(info.Extensions)):
		return differ("extensions", c.Extensions, info.Extensions)
	}
	s.Declare(scripts.Declared{Summary: c.Summary, Version: c.Version, Extensions: c.Extensions, Timeout: c.Timeout, Memory: c.Memory})
	if info.Packs {
		return made{Processor: s, code: s.Fingerprint()}
	}
	return made{Processor: noParts{s}, code: s.Fingerprint()}
}

// codePlace is the folder for compiled code of the project in a folder, or of all projects. It is not in the state folder, which
// may come from another machine, unless that is another one, which is made for one job or audit. "": nothing is kept.
func (p *Workspace) codePlace(project, kind string) string {
	if p.Config.State != "" {
		return filepath.Join(p.Config.State, kind)
	}
	return local.Folder(project, kind)
}

// wasm makes a processor of a WebAssembly module.
func (p *Workspace) wasm(c *project.CustomProcessor) made {
	dir, err := filepath.Abs(p.Config.Dir)
	if err != nil {
		return made{errs: diag.List{c.Span.Errorf(diag.WasmModule, "the project's folder has no absolute path: %v", err)}}
	}
	pr, code, err := wasm.Load(context.Background(), wasm.Config{
		Dir: dir, Path: c.Wasm, Go: c.WasmGo, Cache: p.codePlace("", "wasm"),
		Name: c.Name, Summary: c.Summary, Version: c.Version, Extensions: c.Extensions, Folder: c.Folder, Timeout: c.Timeout, Memory: c.Memory,
	})
	if err == nil {
		return made{Processor: pr, code: code}
	}
	var l diag.List
	for _, e := range joined(err) {
		var problem *processor.Problem
		switch m := c.Place("wasm", -1).Errorf(diag.WasmModule, "%v", e); {
		case !errors.As(e, &problem):
			l = append(l, m)
		case problem.Line > 0: // in the module's source
			m = diag.Errorf(diag.Code(problem.Code), diag.Pos{File: problem.Path, Line: problem.Line, Column: problem.Column}, "%s", problem.Text)
			m.Hint = problem.Hint
			l = append(l, m)
		default:
			m.Code, m.Text, m.Hint = diag.Code(problem.Code), problem.Text, problem.Hint
			l = append(l, m)
		}
	}
	return made{errs: l}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// noParts hides the method for parts of a script that packs no images, so that no parts are looked up.
type noParts struct{ processor.Processor }

// sources are the files of a script, by their paths below the project folder; nil for another processor.
func sources(p processor.Processor) map[string][]byte {
	if hidden, ok := p.(noParts); ok {
		p = hidden.Processor
	}
	if s, ok := p.(*scripts.Script); ok {
		return s.Sources()
	}
	return nil
}

// command makes a processor of an external program.
func (p *Workspace) command(c *project.CustomProcessor) (processor.Processor, string, error) {
	cc := command.Config{
		Name: c.Name, Summary: c.Summary, Version: c.Version, Command: c.Command, Extensions: c.Extensions, Folder: c.Folder,
		Output: c.Output, Outputs: map[string]string{}, Timeout: c.Timeout, Memory: c.Memory, Env: c.Env,
	}
	for _, o := range c.Outputs {
		cc.Outputs[o.Name] = o.Extension
	}
	cc.Reads, cc.Network = command.Reads(c.Reads), c.Network
	for _, s := range c.Settings {
		cc.Settings = append(cc.Settings, command.Setting{Name: s.Name, Default: s.Default, Doc: s.Doc})
	}
	cc.Kiln = p.ownFolders()
	pr, err := command.New(cc)
	return pr, cc.Fingerprint(), err
}

// ownFolders are Kiln's own folders in the project, for programs.
func (p *Workspace) ownFolders() command.Kiln {
	return command.Kiln{Built: p.builtFolders(), State: p.stateFolders(), Shipped: p.shippedFiles()}
}

// commandErrors turns an error in the declaration of a command into messages with places.
func commandErrors(c *project.CustomProcessor, err error) diag.List {
	var l diag.List
	for _, e := range joined(err) {
		var ce *command.ConfigError
		if !errors.As(e, &ce) {
			l = append(l, c.Span.Errorf(diag.BadValue, "processor %q: %v", c.Name, e))
			continue
		}
		m := c.Place(ce.Key, ce.Index).Errorf(ce.Code, "processor %q: %s", c.Name, ce.Text)
		m.Hint = ce.Hint
		l = append(l, m)
	}
	return l
}
