package job

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// StandIn runs a processor on a placeholder. It returns nil if there is no placeholder, or if the run makes no products. The processor must
// be built in or a team's Go code: an external program needs more than one file.
func (w *World) StandIn(ctx context.Context, t *Task) []engine.Product {
	a := t.Asset
	content := placeholder(t)
	if content == nil || a.Folder || len(t.On.Import) > 0 || t.On.Settings == nil && t.Proc.Info.Settings != nil {
		return nil
	}
	j := &standIn{Job: &Job{w: w, t: t}, ctx: ctx, content: content}
	err := j.process()
	if cerr := j.close(); err != nil || cerr != nil {
		return nil
	}
	products, err := j.result()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(products, func(p engine.Product) bool { return p.File == "" })
}

// placeholder is the file that replaces a task's source: the processor's own, or the one for its kind of file.
func placeholder(t *Task) []byte {
	if p, ok := t.Proc.Processor.(processor.Placeholder); ok {
		if content := p.Placeholder(t.Asset.Path); content != nil {
			return content
		}
	}
	content, _ := processors.Placeholder(t.Asset.Path)
	return content
}

// standIn is a job whose world is a single file, a placeholder. Its observations are not recorded: it runs
// again in each build that needs it.
type standIn struct {
	*Job
	ctx     context.Context
	content []byte
}

// StandsIn is not part of processor.Job. A processor that runs programs checks for it, because a placeholder's job has no programs.
func (*standIn) StandsIn() {}

func (j *standIn) process() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v) // it has failed; the details do not matter
		}
	}()
	return j.t.Proc.Process(j.ctx, j)
}

func (j *standIn) missing(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
}

func (j *standIn) ReadFile(path string) ([]byte, error) {
	if path != j.t.Asset.Path {
		return nil, j.missing("open", path)
	}
	return slices.Clone(j.content), nil
}

func (j *standIn) Open(path string) (processor.File, error) {
	if path != j.t.Asset.Path {
		return nil, j.missing("open", path)
	}
	return memFile{bytes.NewReader(j.content)}, nil
}

func (j *standIn) Exists(path string) (bool, error) { return path == j.t.Asset.Path, nil }
func (j *standIn) Glob(string) ([]string, error)    { return nil, nil }
func (j *standIn) Tool(name string) (string, error) { return "", j.missing("find", name) }
func (j *standIn) Run(_ context.Context, c processor.Command) (processor.Result, error) {
	return processor.Result{}, j.missing("run", strings.Join(c.Args, " "))
}
func (j *standIn) Env(string) (string, bool)            { return "", false }
func (j *standIn) ResourceID(string) (uint32, bool)     { return 0, false }
func (j *standIn) Warn(processor.Problem)               {}
func (j *standIn) NeedMemory(int64) error               { return nil } // placeholders are small and made one at a time
func (j *standIn) UsedMemory(int64)                     {}
func (j *standIn) ToPack() ([]processor.Product, error) { return nil, nil }
func (j *standIn) Drafts() bool                         { return false }
func (j *standIn) Draft(processor.Output, []byte) error { return nil }

func (j *standIn) Find(name string) (processor.Asset, error) {
	return processor.Asset{}, j.missing("find", name)
}

func (j *standIn) Products(ids ...string) ([][]processor.Product, error) {
	return nil, j.missing("find", strings.Join(ids, ", "))
}

func (j *standIn) TryProducts(processor.Ask) ([]processor.Product, bool, error) {
	return nil, false, nil
}
func (j *standIn) Assets(string) ([]processor.Listed, error) { return nil, nil }

func (j *standIn) Parts(names ...string) ([][]processor.Product, error) {
	return nil, j.missing("make", strings.Join(names, ", "))
}

func (j *standIn) Request(requests ...processor.Request) ([][]processor.Product, error) {
	return nil, j.missing("make", requests[0].Processor)
}

func (j *standIn) Adopt(p processor.Product, _ processor.Output) error {
	return j.missing("open", p.Name)
}
func (j *standIn) Source() (processor.File, error) { return j.Open(j.t.Asset.Path) }

func (j *standIn) OpenProduct(p processor.Product) (processor.File, error) {
	return nil, j.missing("open", p.Name)
}

func (j *standIn) Reference(id, _ string, _ bool) (processor.Reference, error) {
	return processor.Reference{}, j.missing("find", id)
}
