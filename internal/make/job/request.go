package job

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/processor"
)

// A request is a job that belongs to no asset: a processor, with settings, on a source, on a platform. Jobs
// that make the same request ask for the same task, and it runs once. A request is written as the id of an
// asset that is in no table (see package task), so the code for the jobs of assets finds, runs, traces and
// remembers it. Its products have no file until a job adopts them.

// Request reports whether a task is a request, or a part of one.
func (t *Task) Request() bool { return task.IsRequest(t.Asset.ID) }

// Sought returns the task for a subject even if it cannot run here: another build may have its result.
func (w *World) Sought(s string) *engine.Task {
	if t := w.TaskFor(s); t != nil {
		return &t.Task
	}
	return nil
}

// Possible reports whether a task can run: if it is a request on bytes, the bytes must be stored.
func (w *World) Possible(t *engine.Task) bool { return w.bytesThere(t.World.(*Task)) }

// bytesThere reports whether the bytes of a request are stored; true if it is not on bytes.
func (w *World) bytesThere(t *Task) bool {
	h := task.SourceBlob(t.Asset.ID)
	if h.IsZero() {
		return true
	}
	has, err := w.Blobs.Has(context.Background(), []digest.Hash{h})
	return err == nil && has[0]
}

// requested makes the asset that stands for a request. It returns nil if the request is not valid: its
// processor was removed, or its settings have changed.
func (w *World) requested(id string) *asset.Asset {
	w.requestsMu.Lock()
	defer w.requestsMu.Unlock()
	a, known := w.requests[id]
	if !known {
		a, _ = w.makeRequest(id)
		w.requests[id] = a
	}
	return a
}

// makeRequest is like requested, and also returns what is wrong.
func (w *World) makeRequest(id string) (*asset.Asset, error) {
	r, ok := task.ParseRequest(id)
	pr := w.procs[r.Processor]
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is not a request", id)
	case pr == nil:
		return nil, fmt.Errorf("there is no processor %q", r.Processor)
	case pr.Info.Folder:
		return nil, fmt.Errorf("processor %q takes folders, which a request has none of", r.Processor)
	}
	a := &asset.Asset{ID: id, UUID: uuid.Nil.String(), Path: w.sourcePath(r.Source), Processor: r.Processor}
	for _, platform := range w.platforms {
		on, err := w.settings(pr.Info, platform, r.Given, r.ByHand)
		if err != nil {
			return nil, err
		}
		a.Resolved = append(a.Resolved, on)
	}
	return a, nil
}

// sourcePath is the file that messages of a request name: the source file at the end of the chain, or the name of bytes.
func (w *World) sourcePath(s task.Source) string {
	switch s.Kind {
	case task.File:
		return s.Path
	case task.Bytes:
		return s.FileName()
	case task.Product:
		if r, ok := task.ParseRequest(s.By.Asset); ok {
			return w.sourcePath(r.Source)
		}
		if a := w.Find(s.By.Asset); a != nil {
			return a.Path
		}
		return s.By.Asset
	}
	return ""
}

// Request has other processors work on sources that this job names, and returns their products.
func (j *Job) Request(requests ...processor.Request) ([][]processor.Product, error) {
	jobs := make([]task.Subject, len(requests))
	for i := range requests {
		id, err := j.requestOf(&requests[i])
		if err != nil {
			return nil, err
		}
		jobs[i] = task.Subject{Platform: j.t.Platform, Asset: id}
	}
	needed, err := j.needJobs(jobs)
	if err != nil {
		return nil, err
	}
	all := make([][]processor.Product, len(requests))
	for i, ps := range needed {
		a := j.w.Find(jobs[i].Asset)
		for _, p := range ps {
			if p.Extension != "" {
				all[i] = append(all[i], j.product(a, p))
			}
		}
	}
	return all, nil
}

// requestOf encodes a request of a job, and stores its bytes.
func (j *Job) requestOf(r *processor.Request) (string, error) {
	if err := j.may(r.Processor, r.Path, r.Extension, r.Name); err != nil {
		return "", err
	}
	given := []byte("{}")
	if len(r.Settings) > 0 {
		var err error
		if given, err = json.Marshal(r.Settings); err != nil {
			return "", fmt.Errorf("settings of a request to %q: %w", r.Processor, err)
		}
	}
	if r.Name != "" {
		var err error
		if given, err = j.layNamed(r, given); err != nil {
			return "", err
		}
	}
	source, err := j.requestSource(r)
	if err != nil {
		return "", err
	}
	id := task.Request{Processor: r.Processor, Given: string(given), Source: source}.ID()
	return id, j.possible(id)
}

// possible returns what is wrong with a request that cannot run. This is recorded: the project may get such a processor later.
func (j *Job) possible(id string) error {
	if j.w.requested(id) != nil {
		return nil
	}
	j.needJobs([]task.Subject{{Platform: j.t.Platform, Asset: id}}) // fails, because there is no such task
	_, err := j.w.makeRequest(id)
	var l diag.List
	if errors.As(err, &l) && len(l) > 0 { // what is wrong with the settings; they are in no file
		r, _ := task.ParseRequest(id)
		text := l[0].Text
		if l[0].Hint != "" {
			text += "; " + l[0].Hint
		}
		err = fmt.Errorf("a request to processor %q: %s", r.Processor, text)
	}
	return err
}

func (j *Job) requestSource(r *processor.Request) (s task.Source, err error) {
	given := 0
	for _, is := range []bool{r.Path != "", r.Product != nil, r.Bytes != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return s, fmt.Errorf("a request to %q has more than one of Path, Product and Bytes", r.Processor)
	case r.Extension != "" && (r.Bytes == nil || badOutput(processor.Output{Type: "-", Extension: r.Extension}) != ""):
		return s, fmt.Errorf("a request to %q: %q is not an extension of bytes", r.Processor, r.Extension)
	case r.Path != "":
		p := j.sourceOf(r.Path)
		return task.Source{Kind: task.File, Path: p}, j.allowed(p)
	case r.Bytes != nil:
		h, err := j.w.Blobs.Add(r.Bytes)
		return task.Source{Kind: task.Bytes, Hash: h, Extension: r.Extension}, j.mayPass(err)
	case r.Product != nil:
		if err := j.may(r.Product.AssetID, r.Product.Part, r.Product.Processor); err != nil {
			return s, err
		}
		makers := j.makersOf(*r.Product)
		if len(makers) != 1 {
			return s, fmt.Errorf("product %q of %q: %w", r.Product.Name, r.Product.AssetID, fs.ErrNotExist)
		}
		by := makers[0]
		by.Platform = "" // the request's platform
		return task.Source{Kind: task.Product, By: by, SubID: r.Product.SubID}, nil
	}
	return s, nil
}

// Adopt makes a product of this job from one that Products, Parts or Request returned, without copying its
// bytes. Missing fields of out are taken from the other product: extension, type and references. References
// to the request's own products become references to this job's products of the same names.
func (j *Job) Adopt(p processor.Product, out processor.Output) error {
	made, err := j.productOf(p)
	if err != nil {
		return err
	}
	if err := j.w.content(made, p.AssetID, func() error { return j.w.Blobs.Bring(made.Hash) }); err != nil {
		return j.mayPass(err)
	}
	out.Type = cmp.Or(out.Type, made.Type)
	out.Extension = cmp.Or(out.Extension, p.Extension)
	w, err := j.writer(out)
	if err != nil {
		return err
	}
	if len(w.refs) == 0 {
		own, _ := uuid.Parse(j.t.Asset.UUID)
		for _, r := range made.References {
			if r.UUID == uuid.Nil {
				r.UUID = own
			}
			w.refs = append(w.refs, r)
		}
	}
	w.facts = cmp.Or(w.facts, made.Facts)
	return w.made(made.Hash, made.Size)
}

// given replaces an asset's source file: a product, or bytes.
type given struct {
	path string // path under which the processor reads it
	hash digest.Hash
	open func() (processor.File, error)
	read func() ([]byte, error)
}

// begin finds the source of the job if it is not a source file.
func (j *Job) begin() error {
	if err := j.byHand(); err != nil {
		return err
	}
	imports, source := j.t.imports()
	for _, id := range imports {
		if err := j.possible(id); err != nil {
			return err
		}
	}
	switch source.Kind {
	case task.Nothing:
		j.given = &given{}
	case task.Bytes:
		j.given = j.givenProduct(source.FileName(), &engine.Product{Hash: source.Hash})
	case task.Product:
		return j.beginProduct(source)
	}
	return nil
}

// imports are the ids of the requests that come before the task's processor, of which requests have none, and what the processor works on.
func (t *Task) imports() (ids []string, source task.Source) {
	if t.Asset.Path != "" {
		source = task.Source{Kind: task.File, Path: t.Asset.Path}
	}
	if r, ok := task.ParseRequest(t.Asset.ID); ok {
		source = r.Source
	}
	for _, in := range t.On.Import {
		id := task.Request{Processor: in.Processor, Given: in.Settings, ByHand: in.ByHand, Source: source}.ID()
		ids, source = append(ids, id), task.Source{Kind: task.Product, By: task.Subject{Asset: id}}
	}
	return ids, source
}

// beginProduct brings up to date what makes the product that the job works on.
func (j *Job) beginProduct(s task.Source) error {
	by := s.By
	by.Platform = j.t.Platform
	needed, err := j.needJobs([]task.Subject{by})
	if err != nil {
		return j.needError(err, []string{by.Asset})
	}
	for _, m := range needed[0] {
		if m.SubID != s.SubID {
			continue
		}
		name := path.Base(m.File)
		if m.File == "" {
			name = path.Base(strings.TrimSuffix(j.t.Asset.Path, "/"))
			if r, ok := task.ParseRequest(by.Asset); ok && j.t.Asset.Path == "" { // there is nothing at the end of the chain
				name = r.Processor
			}
			if m.Name != "" {
				name += "." + m.Name
			}
			name += withoutFile(m.Extension)
		}
		j.run.Use(by.String(), m.Product)
		j.given = j.givenProduct(path.Join(path.Dir(j.t.Asset.Path), name), &m.Product)
		return nil
	}
	m := diag.Errorf(diag.NeedsFailed, diag.Pos{File: j.display(j.t.Asset.Path)}, "needs %s of %s, which makes no such product",
		ProductText(""), task.AssetText(by.Asset))
	return m.WithHint("the processor that is to make it has to write a main product: one without a name")
}

func (j *Job) givenProduct(name string, p *engine.Product) *given {
	return &given{
		path: name, hash: p.Hash,
		open: func() (processor.File, error) {
			if p.Size > 0 {
				return j.openContent(p, name)
			}
			data, err := j.readBlob(p, name)
			return memFile{bytes.NewReader(data)}, err
		},
		read: func() ([]byte, error) { return j.readBlob(p, name) },
	}
}

func (j *Job) readBlob(p *engine.Product, of string) (data []byte, err error) {
	err = j.w.content(p, of, func() (err error) { data, err = j.w.Blobs.Read(p.Hash); return err })
	return data, j.mayPass(err)
}

// path is the path under which the processor reads its source.
func (j *Job) path() string {
	if j.given != nil {
		return j.given.path
	}
	return j.t.Asset.Path
}

// Source opens the job's source: its asset's source file, or the replacement by a request or an import.
func (j *Job) Source() (processor.File, error) {
	if j.given != nil && j.given.path == "" {
		return nil, fmt.Errorf("%w: %w", j.allowed(""), fs.ErrNotExist)
	}
	return j.Open(j.path())
}

// noExtension is stored for a product without a file that has no extension.
const noExtension = "."

// withoutFile is the stored extension of a product without a file.
func withoutFile(extension string) string {
	if extension == noExtension {
		return ""
	}
	return extension
}
