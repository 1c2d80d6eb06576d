package data

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// named is how a schema was asked for, and where.
type named struct {
	path     string // source path of the schema file
	fragment string // what within it, as in a $ref; "" for all
	file     string // the file that asks, "" for the asset's own
	at       document.Pos
}

// schemaOf finds the schema's name: the setting, else a top-level "$schema" that is a path.
// Such a key speaks to tools, not to the game, and is taken out of the data. A URL there is left
// alone: it says that the file is a schema itself, or is for an editor.
func schemaOf(job processor.Job, s *Settings, v *document.Value) (*named, error) {
	ref, at := s.Schema, document.Pos{}
	if o, ok := v.V.(document.Object); ok {
		for i, m := range o {
			text, isText := m.Value.V.(string)
			if m.Key != "$schema" || !isText || strings.Contains(text, ":") {
				continue
			}
			v.V = append(o[:i:i], o[i+1:]...)
			if ref == "" {
				ref, at = text, m.Value.Pos
			}
			break
		}
	}
	if ref == "" {
		return nil, nil
	}
	file, fragment, _ := strings.Cut(ref, "#")
	if strings.Contains(file, "://") {
		return nil, problemAt(diag.DataSchemaRemote, "", at, "keep the schema beside the data and name it by a path", "schema %q is remote; nothing is fetched", ref)
	}
	p, err := sourcePath(job.Asset().Path, file)
	if err != nil {
		return nil, problemAt(diag.DataSchemaRemote, "", at, "name a file of the project", "schema %s", err)
	}
	return &named{path: p, fragment: fragment, at: at}, nil
}

// sourcePath is processor.Resolve where a leading slash means the source root.
func sourcePath(from, ref string) (string, error) {
	if rest, ok := strings.CutPrefix(ref, "/"); ok {
		return processor.Resolve("", rest)
	}
	return processor.Resolve(from, ref)
}

// schema is a compiled schema and the files it came from.
type schema struct {
	*jsonschema.Schema
	bundle *bundle
}

// bundle is a schema file and all that it refers to. It is read whole, in the order
// of the text, before the compiler sees it: so the job's reads have one order, and a $ref that
// leads nowhere has a place.
type bundle struct {
	job   processor.Job
	files map[string]*schemaFile // by source path
	docs  map[string]*schemaFile // by the URL that the compiler asks for
	ids   map[string]bool        // URLs of $id within the files; they need no file
	refs  map[string]named       // where each $ref stands, by its full URL
}

type schemaFile struct {
	path  string
	value document.Value
	plain any
}

func schemaURL(p string) string { return (&url.URL{Scheme: "kiln", Path: "/" + p}).String() }

// loadSchema reads and compiles a schema.
func loadSchema(job processor.Job, n named) (*schema, error) {
	b := &bundle{job: job, files: map[string]*schemaFile{}, docs: map[string]*schemaFile{}, ids: map[string]bool{}, refs: map[string]named{}}
	u := schemaURL(n.path)
	if err := b.load(u, n); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(b)
	c.AssertFormat()
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "kiln:assets", Compile: compileMark})
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "kiln:names", Compile: compileNames})
	c.AssertVocabs()
	if n.fragment != "" {
		b.refs[u+"#"+n.fragment] = n
		u += "#" + n.fragment
	}
	compiled, err := c.Compile(u)
	if err != nil {
		return nil, b.explain(err, n.path)
	}
	return &schema{compiled, b}, nil
}

// Load gives the compiler what was read; it never reads by itself.
func (b *bundle) Load(u string) (any, error) {
	if f := b.docs[u]; f != nil {
		return f.plain, nil
	}
	return nil, errors.New("it is remote; nothing is fetched")
}

// load reads a file for a URL, and all that it refers to.
func (b *bundle) load(u string, n named) error {
	f := b.files[n.path]
	if f == nil {
		data, err := readBounded(b.job, n.path)
		if errors.Is(err, fs.ErrNotExist) {
			return problemAt(diag.DataSchemaMissing, n.file, n.at, "correct the path; it is relative to the file that names it, or from the source root with a leading slash", "schema %q does not exist", n.path)
		} else if err != nil {
			return problem(err, n.path)
		}
		f = &schemaFile{path: n.path}
		if f.value, err = parse(inputOf(n.path), data); err != nil {
			return problem(err, n.path)
		}
		f.plain = f.value.Plain()
		b.files[n.path] = f
	}
	b.docs[u] = f
	base, err := url.Parse(u)
	if err != nil {
		return problemAt(diag.DataSchemaInvalid, n.file, n.at, "", "%q is no URL", u)
	}
	w := &schemaWalk{bundle: b, file: f, idKey: "$id"}
	if draft := f.value.At("$schema"); draft != nil && strings.Contains(fmt.Sprint(draft.V), "/draft-04/") {
		w.idKey = "id"
	}
	if root := w.base(&f.value, base); root != base {
		b.docs[root.String()] = f
	}
	if err := w.walk(&f.value, base); err != nil {
		return err
	}
	for _, r := range w.found {
		if err := b.follow(r); err != nil {
			return err
		}
	}
	return nil
}

// foundRef is one $ref in a schema.
type foundRef struct {
	file *schemaFile
	base *url.URL
	text string
	at   document.Pos
}

// schemaWalk looks for $id, $ref and Kiln's own keywords in a schema file.
type schemaWalk struct {
	bundle *bundle
	file   *schemaFile
	idKey  string // draft 4 calls it id
	found  []foundRef
}

// base is what references within a value are relative to: its own $id, or what was before.
func (w *schemaWalk) base(v *document.Value, before *url.URL) *url.URL {
	m := v.At(w.idKey)
	if m == nil {
		return before
	}
	id, ok := m.V.(string)
	u, err := before.Parse(id)
	if !ok || strings.HasPrefix(id, "#") || err != nil {
		return before
	}
	u.Fragment = ""
	return u
}

func (w *schemaWalk) walk(v *document.Value, base *url.URL) error {
	switch x := v.V.(type) {
	case []document.Value:
		for i := range x {
			if err := w.walk(&x[i], base); err != nil {
				return err
			}
		}
	case document.Object:
		base = w.base(v, base)
		w.bundle.ids[base.String()] = true
		for i := range x {
			if err := w.member(&x[i], base); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *schemaWalk) member(m *document.Member, base *url.URL) error {
	text, isText := m.Value.V.(string)
	switch m.Key {
	case "enum", "const", "default", "examples":
		return nil // data, not schema
	case "$ref", "$dynamicRef":
		if isText {
			w.found = append(w.found, foundRef{w.file, base, text, m.Value.Pos})
		}
	case "pattern":
		if isText {
			return w.pattern(text, m.Value.Pos)
		}
	case "patternProperties":
		patterns, _ := m.Value.V.(document.Object)
		for _, p := range patterns {
			if err := w.pattern(p.Key, p.KeyPos); err != nil {
				return err
			}
		}
	case keyAsset, keyProduct:
		if _, isProperty := m.Value.V.(document.Object); !isProperty {
			return checkMark(w.file.path, m)
		}
	}
	return w.walk(&m.Value, base)
}

// pattern checks a regular expression here, because the compiler would not say where it stands.
func (w *schemaWalk) pattern(p string, at document.Pos) error {
	if _, err := regexp.Compile(p); err != nil {
		return problemAt(diag.DataSchemaInvalid, w.file.path, at, "patterns are RE2: no look-around, no back references", "pattern %q cannot be used: %s", p, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return nil
}

// follow loads the file that a $ref names.
func (b *bundle) follow(r foundRef) error {
	at := named{file: r.file.path, at: r.at}
	ref, err := url.Parse(r.text)
	if err != nil {
		return problemAt(diag.DataSchemaInvalid, at.file, at.at, "write a relative path", "$ref %q is no URI reference", r.text)
	}
	target := r.base.ResolveReference(ref)
	b.refs[target.String()] = at
	target.Fragment, target.RawFragment = "", ""
	u := target.String()
	if b.docs[u] != nil || b.ids[u] || target.Host == "json-schema.org" {
		return nil
	}
	if ref.IsAbs() || ref.Host != "" || ref.Opaque != "" {
		return problemAt(diag.DataSchemaRemote, at.file, at.at, "keep a copy in the project and name it by a relative path", "$ref %q is remote; nothing is fetched", r.text)
	}
	// A file may carry an $id on some web site; its relative references still mean its neighbours.
	if at.path, err = sourcePath(r.file.path, ref.Path); err != nil {
		return problemAt(diag.DataSchemaRemote, at.file, at.at, "name a file of the project", "$ref %s", err)
	}
	return b.load(u, at)
}

// explain makes an error of the compiler ours.
func (b *bundle) explain(err error, path string) error {
	var broken *jsonschema.SchemaValidationError
	var pointer *jsonschema.JSONPointerNotFoundError
	var anchor *jsonschema.AnchorNotFoundError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &broken):
		return b.metaProblems(broken)
	case errors.As(err, &pointer):
		r := b.refs[pointer.URL]
		return problemAt(diag.DataSchemaInvalid, r.file, r.at, "correct what follows the #", "there is nothing at %s", strings.TrimPrefix(pointer.URL, "kiln:///"))
	case errors.As(err, &anchor):
		r := b.refs[anchor.Reference]
		return problemAt(diag.DataSchemaInvalid, r.file, r.at, "correct what follows the #", "there is no anchor %s", strings.TrimPrefix(anchor.Reference, "kiln:///"))
	case errors.As(err, &load):
		at := document.Pos{}
		if m := b.files[path].value.At("$schema"); m != nil {
			at = m.Pos
		}
		return problemAt(diag.DataSchemaRemote, path, at, "use one of the drafts 4, 6, 7, 2019-09, 2020-12 of json-schema.org", "%q is not known, and nothing is fetched", load.URL)
	}
	return problemAt(diag.DataSchemaInvalid, path, document.Pos{}, "", "the schema cannot be used: %s", strings.ReplaceAll(err.Error(), "kiln:///", ""))
}

// place finds the file and the place that a schema's URL with a JSON pointer means.
func (b *bundle) place(u string) (file string, at document.Pos) {
	v, f := b.find(u)
	if f == nil {
		return "", document.Pos{}
	}
	if v == nil {
		return f.path, document.Pos{}
	}
	return f.path, v.Pos
}

func (b *bundle) find(u string) (*document.Value, *schemaFile) {
	doc, fragment, _ := strings.Cut(u, "#")
	f := b.docs[doc]
	if f == nil {
		return nil, nil
	}
	return f.value.At(pointerTokens(fragment)...), f
}

// pointerTokens splits a JSON pointer in a URL's fragment (RFC 6901, section 6).
func pointerTokens(fragment string) []string {
	if s, err := url.PathUnescape(fragment); err == nil {
		fragment = s
	}
	if !strings.HasPrefix(fragment, "/") {
		return nil
	}
	tokens := strings.Split(fragment[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

// check tells all that is wrong with the data, or else which places in it name assets.
func (s *schema) check(v *document.Value) ([]*place, error) {
	plain := v.Plain()
	err := s.Validate(plain)
	var broken *jsonschema.ValidationError
	switch {
	case errors.As(err, &broken):
		r := &report{code: diag.DataInvalid, bundle: s.bundle, value: v}
		r.add(broken)
		return nil, r.err()
	case err != nil:
		return nil, fmt.Errorf("validate: %w", err)
	}
	w := &markWalk{seen: map[visit]bool{}, places: map[placeKey]*place{}}
	w.walk(s.Schema, v, plain)
	return w.order, nil
}

// metaProblems are a schema's own errors, as its draft sees them.
func (b *bundle) metaProblems(e *jsonschema.SchemaValidationError) error {
	v, f := b.find(e.URL)
	var broken *jsonschema.ValidationError
	if v == nil || !errors.As(e.Err, &broken) {
		return problemAt(diag.DataSchemaInvalid, "", document.Pos{}, "", "the schema cannot be used: %v", e.Err)
	}
	r := &report{code: diag.DataSchemaInvalid, bundle: b, file: f.path, value: v}
	r.add(broken)
	return r.err()
}
