package build

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/media/placeholder"
	"github.com/kiln-pipeline/kiln/processor"
)

// placeholders makes what stands for failed jobs: products that the processor makes, with the asset's settings, of a placeholder in place of its source file; so
// they are of the type, format and file that the game expects. What of the last good products this does not make stays. Of an asset whose source has no
// placeholder, or of whose settings nothing can be made, the last good products stay as a whole; if there are none, it has none.
func (s *session) makePlaceholders(ctx context.Context) {
	if s.req.OnError < Placeholders || ctx.Err() != nil {
		return
	}
	s.placeholders = map[*task][]engine.Product{}
	var names []string
	for _, t := range s.live {
		if !failed(t.result) || t.part != "" {
			continue
		}
		made := s.w.standIn(ctx, s.p, t)
		if made == nil {
			continue
		}
		if good := s.good[t]; good != nil {
			made = s.ofLastGood(made, good.Products)
		}
		if made != nil {
			s.placeholders[t] = made
			names = append(names, t.asset.ID)
		}
	}
	if names = slices.Compact(names); len(names) > 0 {
		s.notes = append(s.notes, diag.Warningf(diag.PlaceholderMade, diag.Pos{}, "placeholders stand for what failed: %s", firstFew(names)).
			WithHint("mend it, and build again%s", map[bool]string{true: "; no parcel is packed with them"}[s.req.OnError == Placeholders && len(s.p.Parcels) > 0]))
	}
}

// firstFew names some of many.
func firstFew(names []string) string {
	const few = 10
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// ofLastGood are placeholders under the names and files of the last good products, with those that have no placeholder as they were. It is nil if none of them has.
func (s *session) ofLastGood(made, good []engine.Product) []engine.Product {
	found := false
	list := slices.Clone(good)
	for i := range list {
		for k := range made {
			if m := &made[k]; m.SubID == list[i].SubID && m.Type == list[i].Type {
				list[i].Hash, list[i].Size, list[i].References = m.Hash, m.Size, m.References
				found = true
			}
		}
	}
	if !found {
		return nil
	}
	return list
}

// placeholderMessage is said of a job for which placeholders stand: in the content database, and to games.
func (s *session) placeholderMessage(t *task) diag.List {
	if s.placeholders[t] == nil {
		return nil
	}
	return diag.List{diag.Warningf(diag.PlaceholderMade, diag.Pos{File: s.w.display(t.asset.Path)}, "a placeholder stands for it").WithHint("mend it, and build again")}
}

// standIn runs a processor on a placeholder. It is nil if there is none, and if nothing comes of it.
func (w *world) standIn(ctx context.Context, p *Project, t *task) []engine.Product {
	a := t.asset
	content, ok := placeholder.For(a.Path)
	if !ok || a.Folder || p.OwnProcessor(t.proc.info.Name) || t.settings == nil && t.proc.info.Settings != nil {
		return nil // a processor of the project's own is a program whose world is more than one file
	}
	j := &standIn{job: &job{w: w, t: t}, ctx: ctx, content: content}
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

// standIn is a job whose world is one file, a placeholder. What it looks at is recorded nowhere: it is made anew by each build that needs it.
type standIn struct {
	*job
	ctx     context.Context
	content []byte
}

func (j *standIn) process() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v) // it has failed; how does not matter
		}
	}()
	return j.t.proc.Process(j.ctx, j)
}

func (j *standIn) missing(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
}

func (j *standIn) ReadFile(path string) ([]byte, error) {
	if path != j.t.asset.Path {
		return nil, j.missing("open", path)
	}
	return slices.Clone(j.content), nil
}

func (j *standIn) Open(path string) (processor.File, error) {
	if path != j.t.asset.Path {
		return nil, j.missing("open", path)
	}
	return memFile{bytes.NewReader(j.content)}, nil
}

func (j *standIn) Exists(path string) (bool, error)     { return path == j.t.asset.Path, nil }
func (j *standIn) Glob(string) ([]string, error)        { return nil, nil }
func (j *standIn) Tool(name string) (string, error)     { return "", j.missing("find", name) }
func (j *standIn) Env(string) (string, bool)            { return "", false }
func (j *standIn) Warn(processor.Problem)               {}
func (j *standIn) NeedMemory(int64) error               { return nil } // placeholders are small, and made one by one
func (j *standIn) Drafts() bool                         { return false }
func (j *standIn) Draft(processor.Output, []byte) error { return nil }

func (j *standIn) Find(name string) (processor.Asset, error) {
	return processor.Asset{}, j.missing("find", name)
}

func (j *standIn) Products(ids ...string) ([][]processor.Product, error) {
	return nil, j.missing("find", strings.Join(ids, ", "))
}

func (j *standIn) Parts(names ...string) ([][]processor.Product, error) {
	return nil, j.missing("make", strings.Join(names, ", "))
}

func (j *standIn) OpenProduct(p processor.Product) (processor.File, error) {
	return nil, j.missing("open", p.Name)
}

func (j *standIn) Reference(id, _ string, _ bool) (processor.Reference, error) {
	return processor.Reference{}, j.missing("find", id)
}
