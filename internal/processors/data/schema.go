package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/schema"
	"github.com/kiln-pipeline/kiln/processor"
)

// named is how a schema was named, and where.
type named struct {
	path     string // source path of the schema file
	fragment string // the part within it, as in a $ref; "" for all
	at       document.Pos
}

// schemaOf returns the schema's name: the setting, else a top-level "$schema" that is a path. Such
// a key is for tools, not for the game, and is removed from the data. A URL is kept: it means that
// the file is a schema itself, or is for an editor.
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
	return &named{p, fragment, at}, nil
}

// sourcePath is processor.Resolve, except that a leading slash means the source root.
func sourcePath(from, ref string) (string, error) {
	if rest, ok := strings.CutPrefix(ref, "/"); ok {
		return processor.Resolve("", rest)
	}
	return processor.Resolve(from, ref)
}

// loadSchema reads and compiles a schema, unless it is in the cache.
func (p Processor) loadSchema(ctx context.Context, job processor.Job, n named) (*schema.Schema, error) {
	name, r := schemaName{n.path, n.fragment}, newReader(job)
	if p.shelf != nil {
		if s := p.shelf.find(r, name); s != nil {
			return s, nil
		}
	}
	made := &kept{}
	l := schema.Loader{Path: refPath, Note: markOf}
	l.Read = func(from schema.Place, file string) (v document.Value, err error) {
		data, err := r.read(file)
		if errors.Is(err, fs.ErrNotExist) {
			return v, problemAt(diag.DataSchemaMissing, from.File, from.Pos, "correct the path; it is relative to the file that names it, or from the source root with a leading slash", "schema %q does not exist", file)
		}
		if err == nil {
			v, err = parse(ctx, document.FormatOf(file), data)
		}
		if err != nil {
			return v, problem(err, file)
		}
		made.files = append(made.files, schemaFile{file, data})
		return v, nil
	}
	s, err := schema.Compile(l, schema.Place{Pos: n.at}, n.path, n.fragment)
	if made.schema = s; err == nil && p.shelf != nil {
		p.shelf.put(name, made)
	}
	return s, report(err, diag.DataSchemaInvalid)
}

// refPath is the source file that a $ref means. A file may have an $id on a web site; its relative references
// still mean files beside it.
func refPath(from schema.Place, ref string) (string, error) {
	u, err := url.Parse(ref)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" {
		return "", problemAt(diag.DataSchemaRemote, from.File, from.Pos, "keep a copy in the project and name it by a relative path", "$ref %q is remote; nothing is fetched", ref)
	}
	p, err := sourcePath(from.File, u.Path)
	if err != nil {
		return "", problemAt(diag.DataSchemaRemote, from.File, from.Pos, "name a file of the project", "$ref %s", err)
	}
	return p, nil
}

// check returns all errors of the data, or else the places in it that name assets.
func check(ctx context.Context, s *schema.Schema, v *document.Value) ([]*place, error) {
	notes, err := s.ValidateUnder(ctx, v)
	if err != nil {
		return nil, report(err, diag.DataInvalid)
	}
	return placesOf(notes), nil
}

// report turns errors of a schema, or of data that violates one, into problems.
func report(err error, code diag.Code) error {
	var all schema.Errors
	if !errors.As(err, &all) {
		return err
	}
	errs := make([]error, len(all))
	for i, e := range all {
		code, hint := code, e.Hint
		switch e.Kind {
		case schema.Draft:
			code = diag.DataSchemaRemote
		case schema.Circle:
			code = diag.DataSchemaInvalid
		case schema.Limit:
			code = diag.DataLimit
		}
		if e.Says.File != "" {
			hint = fmt.Sprintf("the schema says so at %s:%d:%d", e.Says.File, e.Says.Line, e.Says.Column)
		}
		errs[i] = problemAt(code, e.File, e.Pos, hint, "%s", e.Message(0))
	}
	return errors.Join(limit(errs)...)
}
