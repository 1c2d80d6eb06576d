package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"sync/atomic"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// jobValue is the job for a script.
type jobValue struct {
	job    processor.Job
	ctx    context.Context // ends with the job
	script *Script
	ended  atomic.Bool // the job has ended without it
	prints int
	clock  *stopwatch
	file   string // of the script, for messages without a line

	asks   bool           // it is the job of pack(job), which only makes requests
	asked  []request      // by job.pack, in order
	frames map[frame]bool // the same

	returned starlark.Value // result of the function
}

func (j *jobValue) String() string      { return "job " + j.job.Asset().ID }
func (*jobValue) Type() string          { return "job" }
func (*jobValue) Freeze()               {}
func (*jobValue) Truth() starlark.Bool  { return true }
func (*jobValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: job") }
func (*jobValue) AttrNames() []string   { return slices.Concat(jobFields, methodNames(jobMethods())) }

var jobFields = []string{"folder", "id", "path", "platform", "settings", "uuid"}

type jobMethod = func(j *jobValue, c *callArgs) (starlark.Value, error)

// jobMethods are the methods of a job; docs/scripts.md describes them.
func jobMethods() map[string]jobMethod {
	return map[string]jobMethod{
		"read": (*jobValue).read, "read_text": (*jobValue).readText, "exists": (*jobValue).exists, "glob": (*jobValue).glob,
		"json": (*jobValue).json, "toml": (*jobValue).toml, "xml": (*jobValue).xml, "csv": (*jobValue).csv, "image": (*jobValue).image,
		"assets": (*jobValue).assets, "try_products": (*jobValue).tryProducts,
		"products": (*jobValue).products, "request": (*jobValue).request, "adopt": (*jobValue).adopt, "run": (*jobValue).run,
		"open": (*jobValue).open, "reference": (*jobValue).reference, "own": (*jobValue).own,
		"resource_id": (*jobValue).resourceID, "pack": (*jobValue).pack, "write": (*jobValue).write, "warn": (*jobValue).warn, "random": (*jobValue).random,
	}
}

func methodNames(m map[string]jobMethod) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// callArgs are the arguments of one call.
type callArgs struct {
	thread *starlark.Thread
	name   string
	args   starlark.Tuple
	kwargs []starlark.Tuple
}

func (c *callArgs) unpack(pairs ...any) error {
	return starlark.UnpackArgs(c.name, c.args, c.kwargs, pairs...)
}

var jobTable = jobMethods()

func (j *jobValue) Attr(name string) (starlark.Value, error) {
	a := j.job.Asset()
	switch name {
	case "id":
		return starlark.String(a.ID), nil
	case "path":
		return starlark.String(a.Path), nil
	case "uuid":
		return starlark.String(a.UUID), nil
	case "folder":
		return starlark.Bool(a.Folder), nil
	case "platform":
		return starlark.String(j.job.Platform()), nil
	case "settings":
		return j.settings(), nil
	}
	m := jobTable[name]
	if m == nil {
		return nil, nil
	}
	return starlark.NewBuiltin("job."+name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if t.Local(jobKey) != j || j.ended.Load() {
			return nil, errNoJob
		}
		return m(j, &callArgs{t, b.Name(), args, kwargs})
	}), nil
}

func (j *jobValue) settings() starlark.Value {
	values := starlark.StringDict{}
	if s := j.job.Settings(); s != nil {
		v := reflect.ValueOf(s).Elem()
		for i := range v.NumField() {
			values[v.Type().Field(i).Tag.Get("toml")] = starlarkValue(v.Field(i))
		}
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, values)
}

// jobError is an error of the job itself.
type jobError struct {
	path string
	err  error
}

func (e *jobError) Error() string {
	if e.missing() {
		return fmt.Sprintf("it needs %q, which does not exist", e.path)
	}
	return e.err.Error()
}
func (e *jobError) Unwrap() error { return e.err }

// missing reports whether the error is a missing file without a message of its own.
func (e *jobError) missing() bool {
	var m *diag.Message
	return e.path != "" && errors.Is(e.err, fs.ErrNotExist) && !errors.As(e.err, &m)
}

func jobFailed(path string, err error) error {
	if err == nil {
		return nil
	}
	return &jobError{path, err}
}

// note adds the asset to a message.
func (j *jobValue) note(m *diag.Message) {
	a := j.job.Asset()
	if of := cmp.Or(a.ID, a.Path); of != "" { // a request has no id, and may have no source
		m.WithNote("of %s", of)
	}
}

// pathOf reads the optional argument of read methods: the default is the asset's own file.
func (j *jobValue) pathOf(c *callArgs, more ...any) (string, error) {
	path := j.job.Asset().Path
	err := c.unpack(append([]any{"path?", &path}, more...)...)
	return path, err
}

func (j *jobValue) data(c *callArgs, more ...any) (string, []byte, error) {
	path, err := j.pathOf(c, more...)
	if err != nil {
		return "", nil, err
	}
	f, err := j.job.Open(path)
	if err != nil {
		return path, nil, jobFailed(path, err)
	}
	data, err := j.whole(c, f)
	return path, data, err
}

// whole reads a file to its end and closes it.
func (j *jobValue) whole(c *callArgs, f processor.File) ([]byte, error) {
	if err := take(c.thread, f.Size()); err != nil {
		f.Close()
		return nil, err
	}
	data := make([]byte, f.Size())
	_, err := io.ReadFull(f, data)
	return data, jobFailed("", errors.Join(err, f.Close()))
}

func (j *jobValue) read(c *callArgs) (starlark.Value, error) {
	_, data, err := j.data(c)
	return starlark.Bytes(data), err
}

func (j *jobValue) readText(c *callArgs) (starlark.Value, error) {
	path, data, err := j.data(c)
	if err != nil {
		return nil, err
	}
	return textOf(path, data)
}

func (j *jobValue) exists(c *callArgs) (starlark.Value, error) {
	var path string
	if err := c.unpack("path", &path); err != nil {
		return nil, err
	}
	ok, err := j.job.Exists(path)
	return starlark.Bool(ok), jobFailed("", err)
}

func (j *jobValue) glob(c *callArgs) (starlark.Value, error) {
	var pattern string
	if err := c.unpack("pattern", &pattern); err != nil {
		return nil, err
	}
	found, err := j.job.Glob(pattern)
	return strings2list(found), jobFailed("", err)
}

func strings2list(list []string) *starlark.List {
	values := make([]starlark.Value, len(list))
	for i, s := range list {
		values[i] = starlark.String(s)
	}
	return starlark.NewList(values)
}

// productValue is a product of another asset.
type productValue struct {
	*starlarkstruct.Struct
	product processor.Product
}

// products(id, ...) returns a list of products for each id.
func (j *jobValue) products(c *callArgs) (starlark.Value, error) {
	var ids []string
	for _, a := range c.args {
		id, ok := starlark.AsString(a)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want an asset's id", c.name, a.Type())
		}
		ids = append(ids, id)
	}
	if len(c.kwargs) > 0 || len(ids) == 0 {
		return nil, fmt.Errorf("%s: want the ids of assets", c.name)
	}
	j.clock.pause()
	found, err := j.job.Products(ids...)
	j.clock.resume()
	if err != nil {
		return nil, jobFailed("", err)
	}
	var all []starlark.Value
	for _, ps := range found {
		all = append(all, productList(ps))
	}
	return starlark.NewList(all), nil
}

func productList(ps []processor.Product) *starlark.List {
	var list []starlark.Value
	for _, p := range ps {
		fields := starlark.StringDict{
			"asset": starlark.String(p.AssetID), "uuid": starlark.String(p.UUID), "name": starlark.String(p.Name),
			"type": starlark.String(p.Type), "file": starlark.String(p.File), "ext": starlark.String(p.Extension),
		}
		list = append(list, &productValue{starlarkstruct.FromStringDict(starlark.String("product"), fields), p})
	}
	return starlark.NewList(list)
}

func (j *jobValue) open(c *callArgs) (starlark.Value, error) {
	var v starlark.Value
	if err := c.unpack("product", &v); err != nil {
		return nil, err
	}
	p, err := productOf(c, v)
	if err != nil {
		return nil, err
	}
	j.clock.pause()
	f, err := j.job.OpenProduct(p)
	j.clock.resume()
	if err != nil {
		return nil, jobFailed("", err)
	}
	data, err := j.whole(c, f)
	return starlark.Bytes(data), err
}

// refValue is a reference to a product.
type refValue struct{ ref processor.Reference }

func (r *refValue) String() string      { return fmt.Sprintf("reference(%s, %d)", r.ref.UUID, r.ref.SubID) }
func (*refValue) Type() string          { return "reference" }
func (*refValue) Freeze()               {}
func (*refValue) Truth() starlark.Bool  { return true }
func (*refValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: reference") }
func (*refValue) AttrNames() []string   { return []string{"required", "sub_id", "uuid"} }
func (r *refValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "uuid":
		return starlark.String(r.ref.UUID), nil
	case "sub_id":
		return starlark.MakeUint64(uint64(r.ref.SubID)), nil
	case "required":
		return starlark.Bool(r.ref.Required), nil
	}
	return nil, nil
}

func (j *jobValue) reference(c *callArgs) (starlark.Value, error) {
	var id, name string
	required := true
	if err := c.unpack("id", &id, "name?", &name, "required?", &required); err != nil {
		return nil, err
	}
	ref, err := j.job.Reference(id, name, required)
	return &refValue{ref}, jobFailed(id, err)
}

func (j *jobValue) own(c *callArgs) (starlark.Value, error) {
	var name string
	required := true
	if err := c.unpack("name?", &name, "required?", &required); err != nil {
		return nil, err
	}
	return &refValue{processor.Own(j.job, name, required)}, nil
}

// write(data, name="", type="", ext="", references=[]) writes a product. The default of type and extension are those
// that processor() declared: for a product with a name the type of that name if there is one, else the first.
func (j *jobValue) write(c *callArgs) (starlark.Value, error) {
	var v starlark.Value
	var ext starlark.Value = starlark.None
	var out processor.Output
	var refs *starlark.List
	if err := c.unpack("data", &v, "name?", &out.Name, "type?", &out.Type, "ext?", &ext, "references?", &refs); err != nil {
		return nil, err
	}
	if j.asks {
		return nil, fmt.Errorf("%s: products are written in write(job, responses), when the atlas is laid out", c.name)
	}
	data, err := bytesOf(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	types := j.script.info.Products
	declared := types[0]
	for _, t := range types {
		if t.Type == out.Type || out.Type == "" && t.Type == out.Name {
			declared = t
		}
	}
	if out.Type == "" {
		out.Type = declared.Type
	}
	if s, ok := starlark.AsString(ext); ok {
		out.Extension = s
	} else if ext != starlark.None {
		return nil, fmt.Errorf("%s: ext is a string, not %s", c.name, ext.Type())
	} else if out.Type == declared.Type {
		out.Extension = declared.Extension
	}
	if refs != nil {
		for v := range refs.Elements() {
			r, ok := v.(*refValue)
			if !ok {
				return nil, fmt.Errorf("%s: got %s, want a reference of job.reference or job.own", c.name, v.Type())
			}
			out.References = append(out.References, r.ref)
		}
	}
	return starlark.None, jobFailed("", j.job.Write(out, data))
}

// bytesOf returns the bytes of what can be written: bytes, text, a writer.
func bytesOf(v starlark.Value) ([]byte, error) {
	switch v := v.(type) {
	case starlark.Bytes:
		return []byte(v), nil
	case starlark.String:
		return []byte(v), nil
	case *writerValue:
		return v.data, nil
	}
	return nil, fmt.Errorf("got %s, want bytes, a string or a writer", v.Type())
}

// problem reads the arguments of warn and fail about a place in a source file.
func problem(name string, args starlark.Tuple, kwargs []starlark.Tuple) (processor.Problem, error) {
	var p processor.Problem
	err := starlark.UnpackArgs(name, args, kwargs, "message", &p.Text, "path?", &p.Path, "line?", &p.Line, "column?", &p.Column, "length?", &p.Length, "hint?", &p.Hint)
	if p.Line < 0 || p.Column < 0 || p.Length < 0 || p.Length > 1<<20 {
		err = errors.Join(err, fmt.Errorf("%s: line, column and length count from 1", name))
	}
	return p, err
}

func (j *jobValue) warn(c *callArgs) (starlark.Value, error) {
	p, err := problem(c.name, c.args, c.kwargs)
	if err != nil {
		return nil, err
	}
	p.Code = string(diag.ScriptWarning)
	j.job.Warn(p)
	return starlark.None, nil
}

// failure is the error with which fail() ends a job.
type failure struct{ problem processor.Problem }

func (f *failure) Error() string { return f.problem.Text }

// fail(message, path="", line=0, column=0, length=0, hint="") ends the job with an error at a place in a
// source file.
func fail(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	p, err := problem(b.Name(), args, kwargs)
	if err != nil {
		return nil, err
	}
	if t.Local(jobKey) == nil {
		return nil, errors.New(p.Text)
	}
	p.Code = string(diag.ScriptFailed)
	return nil, &failure{p}
}

// maxPrints is how many printed lines are kept for one job.
const maxPrints = 20

// print keeps a line as a warning, with its place in the script: it is for the author of the script, and is visible as
// long as the call exists.
func (j *jobValue) print(t *starlark.Thread, text string) {
	if j.prints++; j.prints > maxPrints || j.ended.Load() {
		return
	}
	if len(text) > 1000 {
		text = text[:1000] + "..."
	}
	j.job.Warn(processor.Problem{Code: string(diag.ScriptPrint), Text: fmt.Sprintf("%s: %s", t.CallFrame(1).Pos, text)})
}

// random(seed) makes numbers that are the same for the same seed, on every machine: PCG of 64 bits (O'Neill, 2014) as in math/rand/v2,
// seeded with the hash of the seed.
func (j *jobValue) random(c *callArgs) (starlark.Value, error) {
	var seed starlark.Value
	if err := c.unpack("seed", &seed); err != nil {
		return nil, err
	}
	var text string
	switch s := seed.(type) {
	case starlark.String:
		text = "s" + string(s)
	case starlark.Int:
		text = "i" + s.String()
	default:
		return nil, fmt.Errorf("%s: a seed is a number or a string, not %s", c.name, seed.Type())
	}
	h := digest.Build("random").Str("seed", text).Sum()
	var a, b uint64
	for i := range 8 {
		a, b = a<<8|uint64(h[i]), b<<8|uint64(h[8+i])
	}
	r := rand.New(rand.NewPCG(a, b))
	return starlarkstruct.FromStringDict(starlark.String("random"), starlark.StringDict{
		"int": starlark.NewBuiltin("random.int", func(_ *starlark.Thread, f *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var lo, hi int64
			if err := starlark.UnpackArgs(f.Name(), args, kwargs, "min", &lo, "max", &hi); err != nil {
				return nil, err
			}
			if hi < lo || hi-lo < 0 || hi-lo == 1<<63-1 {
				return nil, fmt.Errorf("%s: no number from %d to %d", f.Name(), lo, hi)
			}
			return starlark.MakeInt64(lo + r.Int64N(hi-lo+1)), nil
		}),
		"float": starlark.NewBuiltin("random.float", func(_ *starlark.Thread, f *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return starlark.Float(r.Float64()), starlark.UnpackArgs(f.Name(), args, kwargs)
		}),
		"shuffled": starlark.NewBuiltin("random.shuffled", func(t *starlark.Thread, f *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var list *starlark.List
			if err := starlark.UnpackArgs(f.Name(), args, kwargs, "list", &list); err != nil {
				return nil, err
			}
			if err := take(t, sizeOf(list)); err != nil {
				return nil, err
			}
			values := slices.Collect(list.Elements())
			r.Shuffle(len(values), func(i, k int) { values[i], values[k] = values[k], values[i] })
			return starlark.NewList(values), nil
		}),
	}), nil
}

func (j *jobValue) image(c *callArgs) (starlark.Value, error) {
	path, data, err := j.data(c)
	if err != nil {
		return nil, err
	}
	v, err := decodeImage(c.thread, path, data)
	var pe *pixel.Error
	if errors.As(err, &pe) {
		return nil, &failure{processor.Problem{Code: string(diag.ScriptFailed), Path: path, Text: "the image cannot be read: " + pe.Error(), Hint: "save it again"}}
	}
	return v, err
}
