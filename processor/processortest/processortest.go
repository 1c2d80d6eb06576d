// Package processortest runs a processor in memory, for its golden tests: it takes source files, and returns products,
// observations and problems, with the same contract as in a build.
package processortest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/processor"
)

// Case is one job to run.
type Case struct {
	Files    map[string][]byte // source files by path
	Asset    string            // the asset's id; a folder's ends in a slash
	Platform string            // "pc" if empty
	Settings any               // pointer to the processor's settings struct; nil for the defaults

	// Others are products of other assets, by asset id. An asset that is only in Files exists, but has no products.
	// Products of a part named "pack" are images that the asset adds to an atlas, named ATLAS:FRAME.
	Others map[string][]OtherProduct
	UUIDs  map[string]string         // UUID to id, for assets that can be found by their UUID
	Meta   map[string]map[string]any // metadata from rules of the assets in Others, by id
	Env    map[string]string

	// ResourceIDs are the numbers that kiln.ids has for products of the asset, by name.
	ResourceIDs map[string]uint32

	Tools map[string]string // program name to path

	// Processors can be used by requests. Named are settings from rules for requests, by name.
	Processors []processor.Processor
	Named      map[string]map[string]any

	// Inputs and Needs are dependencies that kiln.toml declares: globs of source files, and ids of assets in Others.
	Inputs, Needs []string

	// Programs replace the programs that the processor runs, by name.
	Programs map[string]Program
}

// Program replaces a program that a processor runs. It gets the processor's command; in Files it also has the source
// files that the program would see: the job's own, those that match Inputs, or, if it is traced, all of the case. The
// processor gets its result.
type Program func(c processor.Command) (processor.Result, error)

// OtherProduct is a product of another asset.
type OtherProduct struct {
	processor.Product
	Data []byte
}

// Result is the result of one job.
type Result struct {
	Products     map[string]Product // by name; the main product is ""; includes those of parts, unless they are hidden
	Observations []string           // "file a.png", "missing b.png", "exists c", "glob *.png", "products x", "part p", ...
	Warnings     []processor.Problem
	Err          error
	Parts        map[string]Part // by name: all parts that were requested
}

// Part is the result of one part of the asset's work (see [processor.Parter]).
type Part struct {
	Products     map[string]Product // by name, hidden or not
	Observations []string
	Warnings     []processor.Problem
	Err          error
}

// Product is a product.
type Product struct {
	processor.Output
	Data []byte
}

// UUID returns the UUID that this package gives an asset: its id, in angle brackets.
func UUID(assetID string) string { return "<" + strings.ToLower(assetID) + ">" }

// Run runs the processor on the case. A panic is not caught.
func Run(t testing.TB, p processor.Processor, c Case) Result {
	t.Helper()
	return RunContext(t, context.Background(), p, c)
}

// RunContext is like Run with a context.
func RunContext(t testing.TB, ctx context.Context, p processor.Processor, c Case) Result {
	t.Helper()
	if c.Platform == "" {
		c.Platform = "pc"
	}
	if c.Settings == nil {
		c.Settings = defaults(p.Info().Settings)
	}
	w := &work{t: t, ctx: ctx, c: c, parts: map[string]*job{}}
	w.parter, _ = p.(processor.Parter)
	j := w.job("")
	err := p.Process(ctx, j)
	r := Result{Products: j.products, Observations: j.seen, Warnings: j.warnings, Err: err, Parts: map[string]Part{}}
	for _, name := range slices.Sorted(maps.Keys(w.parts)) {
		part := w.parts[name]
		r.Parts[name] = Part{part.products, part.seen, part.warnings, part.err}
		for name, product := range part.products {
			if _, twice := r.Products[name]; twice && !product.Hidden {
				r.Err = errors.Join(r.Err, fmt.Errorf("product %q is written twice", name))
			}
			if !product.Hidden {
				r.Products[name] = product
			}
		}
	}
	if r.Err != nil {
		r.Products = nil
	}
	return r
}

// defaults copies the struct, so that a processor that changes its settings does not affect the next test.
func defaults(settings any) any {
	if settings == nil {
		return nil
	}
	v := reflect.New(reflect.TypeOf(settings).Elem())
	v.Elem().Set(reflect.ValueOf(settings).Elem())
	return v.Interface()
}

// Golden compares data with a file, or writes the file when update is set.
func Golden(t testing.TB, file string, data []byte, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if !bytes.Equal(want, data) {
		t.Errorf("%s: %d bytes differ from the golden %d; look at the difference, then run with -update", file, len(data), len(want))
	}
}

// Problems lists the problems in an error, in order.
func Problems(err error) []*processor.Problem {
	if err == nil {
		return nil
	}
	if p, ok := err.(*processor.Problem); ok {
		return []*processor.Problem{p}
	}
	var all []*processor.Problem
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, x := range e.Unwrap() {
			all = append(all, Problems(x)...)
		}
	case interface{ Unwrap() error }:
		all = Problems(e.Unwrap())
	}
	return all
}

// work is the whole work on one case: the asset's own job, and its parts.
type work struct {
	t      testing.TB
	ctx    context.Context
	c      Case
	parter processor.Parter // nil if the processor has no parts
	parts  map[string]*job
}

type job struct {
	*work
	part     string // empty for the asset's own job
	mu       sync.Mutex
	seen     []string
	products map[string]Product
	warnings []processor.Problem
	scratch  string
	err      error // of a part
	running  bool  // the part is running

	source    *processor.Request // of a request; nil for the asset
	settings  any                // of a request
	requested map[string]Product // by the AssetID and Name from ofRequest
}

func (w *work) job(part string) *job {
	return &job{work: w, part: part, products: map[string]Product{}}
}

func (j *job) see(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, fmt.Sprintf(format, args...))
}

func (j *job) Asset() processor.Asset {
	if r := j.source; r != nil {
		a := processor.Asset{UUID: uuid.Nil.String(), Path: r.Path}
		if r.Bytes != nil {
			a.Path = "bytes" + r.Extension
		} else if r.Product != nil {
			a.Path = path.Base(r.Product.AssetID) + r.Product.Extension
		}
		return a
	}
	return processor.Asset{
		ID: j.c.Asset, UUID: UUID(j.c.Asset),
		Path: strings.TrimSuffix(j.c.Asset, "/"), Folder: strings.HasSuffix(j.c.Asset, "/"),
	}
}

func (j *job) Platform() string { return j.c.Platform }
func (j *job) Settings() any {
	if j.source != nil {
		return j.settings
	}
	return j.c.Settings
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

func (j *job) Open(path string) (processor.File, error) {
	if r := j.source; r != nil && path == j.Asset().Path {
		switch {
		case r.Bytes != nil:
			return file{bytes.NewReader(r.Bytes)}, nil
		case r.Product != nil:
			return j.OpenProduct(*r.Product)
		}
	}
	path = j.named(path)
	if !fs.ValidPath(path) {
		return nil, fmt.Errorf("read of %q refused: not a path below the source roots", path)
	}
	data, ok := j.c.Files[path]
	if !ok {
		j.see("missing %s", path)
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	j.see("file %s", path)
	return file{bytes.NewReader(data)}, nil
}

func (j *job) ReadFile(path string) ([]byte, error) {
	f, err := j.Open(path)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func (j *job) Exists(path string) (bool, error) {
	path = j.named(path)
	if !fs.ValidPath(path) {
		return false, fmt.Errorf("read of %q refused: not a path below the source roots", path)
	}
	_, ok := j.c.Files[path]
	j.see("exists %s: %t", path, ok)
	return ok, nil
}

func (j *job) Glob(pattern string) ([]string, error) {
	var found []string
	for name := range j.c.Files {
		ok, err := doublestar.Match(pattern, name)
		if err != nil {
			return nil, fmt.Errorf("glob %q: %w", pattern, err)
		}
		if ok {
			found = append(found, name)
		}
	}
	sort.Strings(found)
	j.see("glob %s", pattern)
	return found, nil
}

// called returns the id of the asset that a name means.
func (j *job) called(name string) string {
	if uuid, ok := processor.UUIDOf(name); ok && j.c.UUIDs[uuid] != "" {
		return j.c.UUIDs[uuid]
	}
	return name
}

// exists reports whether there is an asset with this id.
func (j *job) exists(id string) bool {
	_, isFile := j.c.Files[id]
	_, isOther := j.c.Others[id]
	return isFile || isOther
}

// named returns the path that a name means.
func (j *job) named(name string) string {
	if id := j.called(name); id != name {
		j.see("asset %s", name)
		return id
	}
	return name
}

func (j *job) Find(name string) (processor.Asset, error) {
	j.see("asset %s", name)
	id := j.called(name)
	if !j.exists(id) {
		return processor.Asset{}, fmt.Errorf("asset %q: %w", name, fs.ErrNotExist)
	}
	return processor.Asset{ID: id, UUID: UUID(id), Path: strings.TrimSuffix(id, "/"), Folder: strings.HasSuffix(id, "/")}, nil
}

func (j *job) Products(ids ...string) ([][]processor.Product, error) {
	all := make([][]processor.Product, len(ids))
	for i, id := range ids {
		j.see("products %s", id)
		id = j.called(id)
		ps, ok := j.c.Others[id]
		if !ok {
			return nil, fmt.Errorf("asset %q: %w", id, fs.ErrNotExist)
		}
		for _, p := range ps {
			if p.Part == "" && p.Platform == "" {
				all[i] = append(all[i], p.of(id))
			}
		}
	}
	return all, nil
}

// TryProducts supports one platform. It accepts any processor for the products in Others.
func (j *job) TryProducts(of processor.Ask) (products []processor.Product, ok bool, err error) {
	j.see("try products %s %s %s", of.Asset, of.Platform, of.Processor)
	id := j.called(of.Asset)
	for _, p := range j.c.Others[id] {
		if p.Part == "" && (of.Processor == "" || of.Processor == p.Processor) && (of.Platform == p.Platform || p.Platform == "" && of.Platform == j.c.Platform) {
			products = append(products, p.of(id))
		}
	}
	return products, len(products) > 0, nil
}

// Assets lists the assets in Others.
func (j *job) Assets(pattern string) (list []processor.Listed, err error) {
	j.see("assets %s", pattern)
	for _, id := range slices.Sorted(maps.Keys(j.c.Others)) {
		if ok, err := doublestar.Match(pattern, id); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		} else if !ok || len(j.c.Others[id]) == 0 {
			continue
		}
		meta := []byte("{}")
		if m := j.c.Meta[id]; m != nil {
			if meta, err = json.Marshal(m); err != nil {
				return nil, fmt.Errorf("metadata of %s: %w", id, err)
			}
		}
		p := j.c.Others[id][0]
		a := processor.Asset{ID: id, UUID: UUID(id), Path: strings.TrimSuffix(id, "/"), Folder: strings.HasSuffix(id, "/")}
		list = append(list, processor.Listed{Asset: a, Processor: p.Processor, Type: p.Type, Settings: "{}", Meta: string(meta)})
	}
	return list, nil
}

// of returns the product as a job sees it.
func (p OtherProduct) of(asset string) processor.Product {
	p.AssetID, p.UUID, p.SubID = asset, UUID(asset), processor.SubID(p.Name)
	return p.Product
}

func (j *job) ToPack() ([]processor.Product, error) {
	var all []processor.Product
	for _, id := range slices.Sorted(maps.Keys(j.c.Others)) {
		for _, p := range j.c.Others[id] {
			if p.Part == "pack" && strings.HasPrefix(p.Name, j.c.Asset+":") {
				all = append(all, p.of(id))
			}
		}
	}
	j.see("requests")
	return all, nil
}

func (j *job) NeedMemory(int64) error               { return nil }
func (j *job) UsedMemory(int64)                     {}
func (j *job) Drafts() bool                         { return false }
func (j *job) Draft(processor.Output, []byte) error { return nil }

// Parts runs each part when it is first requested, one after the other.
func (j *job) Parts(names ...string) ([][]processor.Product, error) {
	if j.parter == nil {
		return nil, errors.New("the processor has no parts: it is not a processor.Parter")
	}
	all := make([][]processor.Product, len(names))
	var errs []error
	for i, name := range names {
		j.see("part %s", name)
		part := j.work.parts[name]
		if part == nil {
			part = j.job(name)
			j.work.parts[name] = part
			part.running = true
			if part.err = j.parter.Part(j.ctx, part, name); part.err != nil {
				part.products = nil
			}
			part.running = false
		}
		if part.running {
			return nil, fmt.Errorf("part %q needs itself", name)
		}
		for _, err := range leaves(part.err) {
			if !slices.Contains(errs, err) { // an error of a part that several others requested
				errs = append(errs, err)
			}
		}
		for _, product := range slices.Sorted(maps.Keys(part.products)) {
			all[i] = append(all[i], j.ofPart(name, part.products[product]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// Request runs the requests one after the other, each time that they are made.
func (j *job) Request(requests ...processor.Request) ([][]processor.Product, error) {
	all := make([][]processor.Product, len(requests))
	for i := range requests {
		r := &requests[i]
		j.see("request %s", r.Processor)
		at := slices.IndexFunc(j.c.Processors, func(p processor.Processor) bool { return p.Info().Name == r.Processor })
		if at < 0 {
			return nil, fmt.Errorf("there is no processor %q", r.Processor)
		}
		p := j.c.Processors[at]
		given, err := json.Marshal(r.Settings)
		if err != nil {
			return nil, err
		}
		if r.Settings == nil {
			given = []byte("{}")
		}
		table, err := settings.FromJSON(given)
		if err != nil {
			return nil, err
		}
		inner := j.job("")
		inner.source = r
		inner.requested = j.requested
		var wrong diag.List
		if table, err = j.layNamed(r, table); err != nil {
			return nil, err
		}
		if inner.settings, wrong = settings.Resolve(p.Info(), []settings.Layer{{Table: table}}); len(wrong) > 0 {
			return nil, wrong
		}
		if err := p.Process(j.ctx, inner); err != nil {
			return nil, err
		}
		j.mu.Lock()
		if j.requested == nil {
			j.requested = map[string]Product{}
		}
		id := fmt.Sprintf("//%s %d", r.Processor, len(j.requested))
		for _, name := range slices.Sorted(maps.Keys(inner.products)) {
			if made := inner.products[name]; !made.Hidden {
				j.requested[id+"\x00"+name] = made
				all[i] = append(all[i], processor.Product{AssetID: id, UUID: uuid.Nil.String(), Name: name, SubID: processor.SubID(name),
					Type: made.Type, Extension: made.Extension, Processor: r.Processor})
			}
		}
		j.mu.Unlock()
	}
	return all, nil
}

// layNamed merges the settings from rules for a named request over those that the job gives it.
func (j *job) layNamed(r *processor.Request, given *settings.Table) (*settings.Table, error) {
	if r.Name == "" || j.source != nil {
		return given, nil
	}
	j.see("settings %s#%s", j.c.Asset, r.Name)
	if j.c.Named[r.Name] == nil {
		return given, nil
	}
	text, err := json.Marshal(j.c.Named[r.Name])
	if err != nil {
		return nil, err
	}
	over, err := settings.FromJSON(text)
	return settings.Merge(given, over), err
}

// Adopt makes another product a product of this job.
func (j *job) Adopt(p processor.Product, out processor.Output) error {
	f, err := j.OpenProduct(p)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	out.Type, out.Extension = cmp.Or(out.Type, p.Type), cmp.Or(out.Extension, p.Extension)
	return errors.Join(err, j.Write(out, data))
}

// Source opens the source of the job.
func (j *job) Source() (processor.File, error) { return j.Open(j.Asset().Path) }

// leaves returns the errors that were joined.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

func (j *job) ofPart(part string, p Product) processor.Product {
	id := j.c.Asset
	made := processor.Product{AssetID: id, UUID: UUID(id), Name: p.Name, SubID: processor.SubID(p.Name), Type: p.Type, Part: part}
	if !p.Hidden {
		made.File = strings.TrimSuffix(id, "/")
		if p.Name != "" {
			made.File += "." + p.Name
		}
		made.File += p.Extension
	}
	return made
}

func (j *job) OpenProduct(p processor.Product) (processor.File, error) {
	if made, ok := j.requested[p.AssetID+"\x00"+p.Name]; ok {
		j.see("product of request %s", p.Name)
		return file{bytes.NewReader(made.Data)}, nil
	}
	if p.Part != "" && p.AssetID == j.c.Asset {
		if part := j.work.parts[p.Part]; part != nil {
			if made, ok := part.products[p.Name]; ok {
				j.see("part %s product %s", p.Part, p.Name)
				return file{bytes.NewReader(made.Data)}, nil
			}
		}
		return nil, fmt.Errorf("product %q of part %q: %w", p.Name, p.Part, fs.ErrNotExist)
	}
	for _, o := range j.c.Others[p.AssetID] {
		if o.Name == p.Name && o.Part == p.Part && o.Platform == p.Platform {
			j.see("product %s %s", p.AssetID, p.Name)
			return file{bytes.NewReader(o.Data)}, nil
		}
	}
	return nil, fmt.Errorf("product %q of %q: %w", p.Name, p.AssetID, fs.ErrNotExist)
}

func (j *job) Reference(assetID, name string, required bool) (processor.Reference, error) {
	j.see("asset %s", assetID)
	if assetID = j.called(assetID); required && !j.exists(assetID) {
		return processor.Reference{}, fmt.Errorf("asset %q: %w", assetID, fs.ErrNotExist)
	}
	return processor.Reference{UUID: UUID(assetID), SubID: processor.SubID(name), Required: required}, nil
}

func (j *job) ResourceID(name string) (uint32, bool) {
	if j.source != nil {
		return 0, false
	}
	j.see("resource id %q", name)
	id, ok := j.c.ResourceIDs[name]
	return id, ok
}

func (j *job) Tool(name string) (string, error) {
	j.see("tool %s", name)
	if p, ok := j.c.Tools[name]; ok {
		return p, nil
	}
	return "", fmt.Errorf("tool %q: %w", name, fs.ErrNotExist)
}

// Inputs returns the globs of the case.
func (j *job) Inputs() []string { return j.c.Inputs }

// Needs returns the products of the assets that the case names in Needs.
func (j *job) Needs() ([]processor.Product, error) {
	all, err := j.Products(j.c.Needs...)
	return slices.Concat(all...), err
}

// Run calls the case's program. It fails as in a build if the exit code is not expected.
func (j *job) Run(_ context.Context, c processor.Command) (processor.Result, error) {
	if len(c.Args) == 0 {
		return processor.Result{}, errors.New("a command without a program")
	}
	program := j.c.Programs[c.Args[0]]
	j.see("run %s", strings.Join(c.Args, " "))
	if program == nil {
		return processor.Result{}, fmt.Errorf("program %q, which Case.Programs has to stand for: %w", c.Args[0], fs.ErrNotExist)
	}
	globs := slices.Concat(j.c.Inputs, c.Inputs)
	if c.Traced {
		globs = []string{"**"}
	}
	if a := j.Asset(); !a.Folder && a.Path != "" && c.Files[a.Path] == nil && c.Scratch[a.Path] == "" {
		globs = append(globs, processor.QuoteGlob(a.Path))
	}
	files := map[string][]byte{}
	for _, glob := range globs {
		found, err := j.Glob(glob)
		if err != nil {
			return processor.Result{}, err
		}
		for _, name := range found {
			if files[name], err = j.ReadFile(name); err != nil {
				return processor.Result{}, err
			}
		}
	}
	maps.Copy(files, c.Files)
	for name, from := range c.Scratch {
		dir, err := j.Scratch()
		if err != nil {
			return processor.Result{}, err
		}
		if files[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(from))); err != nil {
			return processor.Result{}, err
		}
	}
	c.Files = files
	r, err := program(c)
	if err == nil && r.Code != 0 && !slices.Contains(c.Codes, r.Code) {
		err = fmt.Errorf("%s failed with exit code %d", c.Args[0], r.Code)
	}
	return r, err
}

func (j *job) Env(name string) (string, bool) {
	j.see("env %s", name)
	v, ok := j.c.Env[name]
	return v, ok
}

type writer struct {
	bytes.Buffer
	j      *job
	out    processor.Output
	closed bool
}

func (w *writer) Close() error {
	if w.closed {
		return errors.New("product closed twice")
	}
	w.closed = true
	w.out.References = slices.Clone(w.out.References)
	w.j.mu.Lock()
	defer w.j.mu.Unlock()
	w.j.products[w.out.Name] = Product{w.out, w.Bytes()}
	return nil
}

func (j *job) Create(out processor.Output) (io.WriteCloser, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.products[out.Name]; ok {
		return nil, fmt.Errorf("product %q is written twice", out.Name)
	}
	return &writer{j: j, out: out}, nil
}

func (j *job) Write(out processor.Output, data []byte) error {
	w, err := j.Create(out)
	if err != nil {
		return err
	}
	w.Write(data)
	return w.Close()
}

func (j *job) Warn(p processor.Problem) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.warnings = append(j.warnings, p)
}

func (j *job) Scratch() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.scratch == "" {
		j.scratch = j.t.TempDir()
	}
	return j.scratch, nil
}
