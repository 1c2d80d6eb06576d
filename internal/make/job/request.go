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
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/processor"
)

// A request is a job that belongs to no asset: a processor, with settings, on a source, on a platform. Whoever asks for the same asks for the
// same task, and it runs once. It is written as the id of an asset that is in no table, and so it is found, run, traced and remembered as the
// job of an asset is; what it makes has no file until a job adopts it.

// requestMark begins the ids of requests. No path below a source root, and no id, begins so.
const requestMark = "//"

// IsRequest tells whether an id is that of a request.
func IsRequest(id string) bool { return strings.HasPrefix(id, requestMark) }

// Request tells whether a task is a request, or a part of one.
func (t *Task) Request() bool { return IsRequest(t.Asset.ID) }

// What a request's source can be. A letter begins it as it is written.
const (
	sourceNothing = 'n' // and nothing more
	sourceFile    = 'f' // and its path
	sourceBytes   = 'b' // and their hash, and the extension
	sourceProduct = 'p' // and its sub id, the part and the processor that made it, quoted, and the asset, which may be a request
)

// requestID writes a request: the processor, the settings that its asker gives, as JSON, and the source.
func requestID(name, given, source string) string {
	return requestMark + name + "\x01" + given + "\x01" + source
}

// parseRequest reads what requestID wrote.
func parseRequest(id string) (name, given, source string, ok bool) {
	name, rest, ok1 := strings.Cut(strings.TrimPrefix(id, requestMark), "\x01")
	given, source, ok2 := strings.Cut(rest, "\x01")
	return name, given, source, ok1 && ok2 && source != "" && IsRequest(id)
}

// sourceOfProduct writes a product as a source.
func sourceOfProduct(by Subject, sub uint32) string {
	return fmt.Sprintf("%c%d %q %q %s", sourceProduct, sub, by.Part, by.Processor, by.Asset)
}

// parseProduct reads what sourceOfProduct wrote, for a platform.
func parseProduct(source, platform string) (by Subject, sub uint32, ok bool) {
	number, rest, _ := strings.Cut(source[1:], " ")
	n, err := strconv.ParseUint(number, 10, 32)
	by.Platform = platform
	for _, to := range []*string{&by.Part, &by.Processor} {
		quoted, qerr := strconv.QuotedPrefix(rest)
		if err = errors.Join(err, qerr); err != nil {
			return by, 0, false
		}
		*to, _ = strconv.Unquote(quoted)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	by.Asset = rest
	return by, uint32(n), rest != ""
}

// SourceBlob is the hash of the bytes that a request is about; zero if it is about something else.
func SourceBlob(id string) digest.Hash {
	_, _, source, ok := parseRequest(id)
	if !ok || source[0] != sourceBytes {
		return digest.Hash{}
	}
	h, _, _ := parseBytes(source)
	return h
}

// bytesThere tells whether the bytes that a request is about are there, if it is about some.
func (w *World) bytesThere(t *Task) bool {
	h := SourceBlob(t.Asset.ID)
	if h.IsZero() {
		return true
	}
	has, err := w.Blobs.Has(context.Background(), []digest.Hash{h})
	return err == nil && has[0]
}

func parseBytes(source string) (h digest.Hash, extension string, ok bool) {
	text := source[1:]
	if len(text) < 2*len(h) {
		return h, "", false
	}
	h, err := digest.Parse(text[:2*len(h)])
	return h, text[2*len(h):], err == nil
}

// bytesName is the name under which a processor reads bytes.
func bytesName(h digest.Hash, extension string) string {
	return bytesMark + h.String()[:16] + extension
}

const bytesMark = "~"

// isBytesName tells whether a path is one that bytesName gave.
func isBytesName(name string) bool {
	if !strings.HasPrefix(name, bytesMark) || len(name) < 17 {
		return false
	}
	_, err := strconv.ParseUint(name[1:17], 16, 64)
	return err == nil
}

// RequestName is a request for people. Two requests never have the same: the engine tells rings by the names of tasks.
func RequestName(id string) string {
	name, given, source, ok := parseRequest(id)
	if !ok {
		return id
	}
	of := ""
	switch source[0] {
	case sourceFile:
		of = " of " + source[1:]
	case sourceBytes:
		if h, extension, ok := parseBytes(source); ok {
			of = " of " + bytesName(h, extension)
		}
	case sourceProduct:
		if by, sub, ok := parseProduct(source, ""); ok {
			of = " of the product of "
			if sub != 0 {
				of = fmt.Sprintf(" of product %08x of ", sub)
			}
			of += Name(TaskText(by.Asset), by.Processor, by.Part)
		}
	}
	if given != "{}" {
		of += " " + given
	}
	return name + of
}

// requested makes the asset that stands for a request; nil if there is none such: its processor is gone, or has other settings now.
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

// makeRequest is requested, and says what is wrong.
func (w *World) makeRequest(id string) (*asset.Asset, error) {
	name, given, source, ok := parseRequest(id)
	pr := w.procs[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is no request", id)
	case pr == nil:
		return nil, fmt.Errorf("there is no processor %q", name)
	case pr.Info.Folder:
		return nil, fmt.Errorf("processor %q takes folders, which a request has none of", name)
	}
	a := &asset.Asset{ID: id, UUID: uuid.Nil.String(), Path: w.requestPath(source), Processor: name}
	for _, platform := range w.platforms {
		on, err := w.settings(pr.Info, platform, given)
		if err != nil {
			return nil, err
		}
		a.Resolved = append(a.Resolved, on)
	}
	return a, nil
}

// requestPath is the file that messages of a request are about: the source file at the end of the chain, or the name of bytes.
func (w *World) requestPath(source string) string {
	switch source[0] {
	case sourceFile:
		return source[1:]
	case sourceBytes:
		h, extension, _ := parseBytes(source)
		return bytesName(h, extension)
	case sourceProduct:
		by, _, _ := parseProduct(source, "")
		if _, _, inner, ok := parseRequest(by.Asset); ok {
			return w.requestPath(inner)
		}
		if a := w.Find(by.Asset); a != nil {
			return a.Path
		}
		return by.Asset
	}
	return ""
}

// Request brings up to date what other processors make of what this job asks them to work on.
func (j *Job) Request(requests ...processor.Request) ([][]processor.Product, error) {
	jobs := make([]Subject, len(requests))
	for i := range requests {
		id, err := j.requestOf(&requests[i])
		if err != nil {
			return nil, err
		}
		jobs[i] = Subject{Platform: j.t.Platform, Asset: id}
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

// requestOf writes a request of a job, and keeps the bytes that it is about.
func (j *Job) requestOf(r *processor.Request) (string, error) {
	if err := j.may(r.Processor, r.Path, r.Extension); err != nil {
		return "", err
	}
	given := []byte("{}")
	if len(r.Settings) > 0 {
		var err error
		if given, err = json.Marshal(r.Settings); err != nil {
			return "", fmt.Errorf("settings of a request to %q: %w", r.Processor, err)
		}
	}
	source, err := j.requestSource(r)
	if err != nil {
		return "", err
	}
	id := requestID(r.Processor, string(given), source)
	return id, j.possible(id)
}

// possible says what is wrong with a request that cannot be. That it cannot is recorded: the project may get such a processor.
func (j *Job) possible(id string) error {
	if j.w.requested(id) != nil {
		return nil
	}
	j.needJobs([]Subject{{Platform: j.t.Platform, Asset: id}}) // fails, for there is no such task
	_, err := j.w.makeRequest(id)
	var l diag.List
	if errors.As(err, &l) && len(l) > 0 { // what is wrong with the settings; it stands in no file
		name, _, _, _ := parseRequest(id)
		err = fmt.Errorf("a request to processor %q: %s", name, l[0].Text)
	}
	return err
}

func (j *Job) requestSource(r *processor.Request) (string, error) {
	given := 0
	for _, is := range []bool{r.Path != "", r.Product != nil, r.Bytes != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return "", fmt.Errorf("a request to %q has more than one of Path, Product and Bytes", r.Processor)
	case r.Extension != "" && (r.Bytes == nil || badOutput(processor.Output{Type: "-", Extension: r.Extension}) != ""):
		return "", fmt.Errorf("a request to %q: %q is no extension of bytes", r.Processor, r.Extension)
	case r.Path != "":
		p := j.sourceOf(r.Path)
		return string(sourceFile) + p, j.allowed(p)
	case r.Bytes != nil:
		h, err := j.w.Blobs.Add(r.Bytes)
		return string(sourceBytes) + h.String() + r.Extension, j.mayPass(err)
	case r.Product != nil:
		if err := j.may(r.Product.AssetID, r.Product.Part, r.Product.Processor); err != nil {
			return "", err
		}
		makers := j.makersOf(*r.Product)
		if len(makers) != 1 {
			return "", fmt.Errorf("product %q of %q: %w", r.Product.Name, r.Product.AssetID, fs.ErrNotExist)
		}
		return sourceOfProduct(makers[0], r.Product.SubID), nil
	}
	return string(sourceNothing), nil
}

// Adopt makes a product of this job of one that Products, Parts or Request told of, without a copy of its bytes. Without an extension it has
// the other one's, without a type its type, and without references those of the other, of which such to the request's own products are to
// products of this job with the same names.
func (j *Job) Adopt(p processor.Product, out processor.Output) error {
	made, err := j.productOf(p)
	if err != nil {
		return err
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
	return w.made(made.Hash, made.Size)
}

// given is what a job has in place of its asset's source file: a product, or bytes.
type given struct {
	path string // by which the processor reads it
	open func() (processor.File, error)
	read func() ([]byte, error)
}

// begin finds out what the processor works on, if that is no source file.
func (j *Job) begin() error {
	source := ""
	if t := j.t; t.Request() {
		_, _, source, _ = parseRequest(t.Asset.ID)
	} else if len(t.On.Import) > 0 {
		source = string(sourceFile) + t.Asset.Path
		for _, in := range t.On.Import {
			id := requestID(in.Processor, cmp.Or(in.Settings, "{}"), source)
			if err := j.possible(id); err != nil {
				return err
			}
			source = sourceOfProduct(Subject{Asset: id}, 0)
		}
	}
	switch {
	case source == "":
	case source[0] == sourceNothing:
		j.given = &given{}
	case source[0] == sourceBytes:
		h, extension, _ := parseBytes(source)
		p := &engine.Product{Hash: h}
		j.given = j.givenProduct(bytesName(h, extension), p)
	case source[0] == sourceProduct:
		return j.beginProduct(source)
	}
	return nil
}

// beginProduct brings up to date what makes the product that the job works on.
func (j *Job) beginProduct(source string) error {
	by, sub, _ := parseProduct(source, j.t.Platform)
	needed, err := j.needJobs([]Subject{by})
	if err != nil {
		return j.needError(err, []string{by.Asset})
	}
	for _, m := range needed[0] {
		if m.SubID == sub {
			name := path.Base(m.File)
			if m.File == "" {
				name = path.Base(strings.TrimSuffix(j.t.Asset.Path, "/"))
				if m.Name != "" {
					name += "." + m.Name
				}
				name += withoutFile(m.Extension)
			}
			j.run.Use(by.String(), m.Product)
			j.given = j.givenProduct(path.Join(path.Dir(j.t.Asset.Path), name), &m.Product)
			return nil
		}
	}
	m := diag.Errorf(diag.NeedsFailed, diag.Pos{File: j.display(j.t.Asset.Path)}, "needs %s of %s, which makes no such product", ProductText(""), TaskText(by.Asset))
	return m.WithHint("the processor that is to make it has to write a main product: one without a name")
}

// TaskText is an asset, or a request, for people.
func TaskText(id string) string {
	if IsRequest(id) {
		return RequestName(id)
	}
	return id
}

func (j *Job) givenProduct(name string, p *engine.Product) *given {
	return &given{
		path: name,
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

// path is the one by which the processor reads its source.
func (j *Job) path() string {
	if j.given != nil {
		return j.given.path
	}
	return j.t.Asset.Path
}

// Given tells whether the job works on something that is no source file. It is not part of processor.Job; package command looks for it.
func (j *Job) Given() bool { return j.given != nil }

// Source opens what the job works on: its asset's source file, or what a request or an import put in its place.
func (j *Job) Source() (processor.File, error) {
	if j.given != nil && j.given.path == "" {
		return nil, fmt.Errorf("this job has no source: %w", fs.ErrNotExist)
	}
	return j.Open(j.path())
}

// noExtension stands for one of a product without a file that has none.
const noExtension = "."

// withoutFile is the extension of a product without a file.
func withoutFile(extension string) string {
	if extension == noExtension {
		return ""
	}
	return extension
}
