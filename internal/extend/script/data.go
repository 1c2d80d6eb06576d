package script

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// A readFunc converts a text to values. Its error is a *document.Error if the text is wrong.
type readFunc = func(t *starlark.Thread, data []byte) (starlark.Value, error)

func readJSON(t *starlark.Thread, data []byte) (starlark.Value, error) {
	return values(t, data, document.JSON)
}
func readTOML(t *starlark.Thread, data []byte) (starlark.Value, error) {
	return values(t, data, document.TOML)
}

func readCSV(t *starlark.Thread, data []byte) (starlark.Value, error) {
	return values(t, data, func(data []byte) (document.Value, error) { return document.CSV(data, document.CSVOptions{}) })
}

// perValue is the memory of a value of a document in a script, in bytes; readers of text need several times their
// text.
const perValue = 64

func values(t *starlark.Thread, data []byte, read func([]byte) (document.Value, error)) (starlark.Value, error) {
	if err := take(t, int64(len(data))*4); err != nil {
		return nil, err
	}
	doc, err := read(data)
	if err != nil {
		return nil, err
	}
	count := int64(0)
	v := fromDocument(&doc, &count)
	return v, take(t, count*perValue)
}

func fromDocument(v *document.Value, count *int64) starlark.Value {
	*count++
	switch x := v.V.(type) {
	case bool:
		return starlark.Bool(x)
	case int64:
		return starlark.MakeInt64(x)
	case uint64:
		return starlark.MakeUint64(x)
	case float64:
		return starlark.Float(x)
	case string:
		return starlark.String(x)
	case []document.Value:
		list := make([]starlark.Value, len(x))
		for i := range x {
			list[i] = fromDocument(&x[i], count)
		}
		return starlark.NewList(list)
	case document.Object:
		d := starlark.NewDict(len(x))
		for i := range x {
			d.SetKey(starlark.String(x[i].Key), fromDocument(&x[i].Value, count)) // a new dict accepts every string
		}
		return d
	}
	return starlark.None
}

// toDocument is the reverse. Keys keep their order; json.encode sorts them.
func toDocument(v starlark.Value, depth int) (document.Value, error) {
	if depth > document.MaxDepth {
		return document.Value{}, fmt.Errorf("nested deeper than %d", document.MaxDepth)
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return document.Value{}, nil
	case starlark.Bool:
		return document.Value{V: bool(v)}, nil
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return document.Value{V: n}, nil
		}
		if n, ok := v.Uint64(); ok {
			return document.Value{V: n}, nil
		}
		return document.Value{}, errors.New("a whole number has more than 64 bits")
	case starlark.Float:
		if f := float64(v); !math.IsInf(f, 0) && !math.IsNaN(f) {
			return document.Value{V: f}, nil
		}
		return document.Value{}, errors.New("a number is not finite")
	case starlark.String:
		if !utf8.ValidString(string(v)) {
			return document.Value{}, errors.New("a string is not UTF-8")
		}
		return document.Value{V: string(v)}, nil
	case starlark.IterableMapping:
		var o document.Object
		for _, item := range v.Items() {
			key, ok := starlark.AsString(item[0])
			if !ok {
				return document.Value{}, fmt.Errorf("a key is %s, not a string", item[0].Type())
			}
			e, err := toDocument(item[1], depth+1)
			if err != nil {
				return e, err
			}
			o = append(o, document.Member{Key: key, Value: e})
		}
		return document.Value{V: o}, nil
	case *starlark.List, starlark.Tuple:
		list := []document.Value{}
		for e := range starlark.Elements(v.(starlark.Iterable)) {
			d, err := toDocument(e, depth+1)
			if err != nil {
				return d, err
			}
			list = append(list, d)
		}
		return document.Value{V: list}, nil
	}
	return document.Value{}, fmt.Errorf("%s has no form in JSON", v.Type())
}

func jsonModule() *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "json", Members: starlark.StringDict{
		"decode": decoder("json.decode", readJSON),
		"encode": starlark.NewBuiltin("json.encode", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var v starlark.Value
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "value", &v); err != nil {
				return nil, err
			}
			if err := takeText(t, v); err != nil {
				return nil, err
			}
			d, err := toDocument(v, 0)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
			return starlark.String(document.AppendJSON(nil, &d)), nil
		}),
	}}
}

func reader(name string, read readFunc) *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: name, Members: starlark.StringDict{"decode": decoder(name+".decode", read)}}
}

// decoder decodes a text of the script.
func decoder(name string, read readFunc) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var v starlark.Value
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &v); err != nil {
			return nil, err
		}
		data, err := bytesOf(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		out, err := read(t, data)
		var de *document.Error
		if errors.As(err, &de) {
			return nil, fmt.Errorf("%s: line %d, column %d: %s", b.Name(), de.Pos.Line, de.Pos.Column, de.Text)
		}
		return out, err
	})
}

func (j *jobValue) json(c *callArgs) (starlark.Value, error) { return j.document(c, readJSON) }
func (j *jobValue) toml(c *callArgs) (starlark.Value, error) { return j.document(c, readTOML) }
func (j *jobValue) xml(c *callArgs) (starlark.Value, error)  { return j.document(c, readXML) }
func (j *jobValue) csv(c *callArgs) (starlark.Value, error)  { return j.document(c, readCSV) }

// document reads a source file; errors in it are shown with their own line.
func (j *jobValue) document(c *callArgs, read readFunc) (starlark.Value, error) {
	path, data, err := j.data(c)
	if err != nil {
		return nil, err
	}
	v, err := read(c.thread, data)
	var de *document.Error
	if errors.As(err, &de) {
		return nil, &failure{processor.Problem{
			Code: string(diag.ScriptFailed), Path: path, Text: de.Text, Hint: de.Hint,
			Line: int(de.Pos.Line), Column: int(de.Pos.Column), Length: int(de.Pos.Length),
		}}
	}
	return v, err
}

// textOf is a source file as a string.
func textOf(path string, data []byte) (starlark.Value, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if utf8.Valid(data) {
		return starlark.String(data), nil
	}
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
		rest = rest[n:]
	}
	return nil, &failure{processor.Problem{Code: string(diag.ScriptFailed), Path: path, Line: line, Column: column, Text: "the text is not UTF-8", Hint: "save it as UTF-8"}}
}

// element of an XML document.
type xmlElement struct {
	tag          string
	attrs        *starlark.Dict
	text         strings.Builder
	children     *starlark.List
	line, column int
}

func (e *xmlElement) String() string { return "<" + e.tag + ">" }
func (*xmlElement) Type() string     { return "element" }
func (e *xmlElement) Freeze()        { e.attrs.Freeze(); e.children.Freeze() }
func (*xmlElement) Truth() starlark.Bool {
	return true
}
func (*xmlElement) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: element") }
func (*xmlElement) AttrNames() []string {
	return []string{"all", "attrs", "children", "column", "find", "line", "tag", "text"}
}

func (e *xmlElement) Attr(name string) (starlark.Value, error) {
	switch name {
	case "tag":
		return starlark.String(e.tag), nil
	case "attrs":
		return e.attrs, nil
	case "text":
		return starlark.String(e.text.String()), nil
	case "children":
		return e.children, nil
	case "line":
		return starlark.MakeInt(e.line), nil
	case "column":
		return starlark.MakeInt(e.column), nil
	case "find", "all":
		return starlark.NewBuiltin(name, e.search), nil
	}
	return nil, nil
}

// search returns the children with a tag: the first or None for find, a list for all.
func (e *xmlElement) search(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var tag string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "tag", &tag); err != nil {
		return nil, err
	}
	found := []starlark.Value{}
	for c := range e.children.Elements() {
		if c.(*xmlElement).tag == tag {
			found = append(found, c)
		}
	}
	if b.Name() == "all" {
		return starlark.NewList(found), nil
	}
	if len(found) > 0 {
		return found[0], nil
	}
	return starlark.None, nil
}

// readXML reads an XML 1.0 document in UTF-8 as its root element. Names lose their namespace; own entities are refused.
func readXML(t *starlark.Thread, data []byte) (starlark.Value, error) {
	if err := take(t, int64(len(data))*4); err != nil {
		return nil, err
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(name string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(name, "utf-8") || strings.EqualFold(name, "us-ascii") {
			return in, nil
		}
		return nil, fmt.Errorf("the encoding %q is not known: save it as UTF-8", name)
	}
	var open []*xmlElement
	var root *xmlElement
	for {
		line, column := d.InputPos()
		wrong := func(format string, args ...any) error {
			return &document.Error{Fault: document.Syntax, Text: fmt.Sprintf(format, args...), Pos: document.Pos{Line: int32(line), Column: int32(column), Length: 1}}
		}
		tok, err := d.Token()
		if err == io.EOF && root != nil {
			return root, nil
		}
		if err != nil {
			line, column = d.InputPos()
			return nil, wrong("%s", xmlText(err))
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if err := take(t, 8*perValue+int64(len(tok.Attr))*4*perValue); err != nil {
				return nil, err
			}
			e := &xmlElement{tag: tok.Name.Local, attrs: starlark.NewDict(len(tok.Attr)), children: starlark.NewList(nil), line: line, column: column}
			for _, a := range tok.Attr {
				e.attrs.SetKey(starlark.String(a.Name.Local), starlark.String(a.Value)) // a new dict accepts every string
			}
			switch {
			case len(open) >= document.MaxDepth:
				return nil, wrong("elements are nested deeper than %d", document.MaxDepth)
			case len(open) > 0:
				open[len(open)-1].children.Append(e)
			case root != nil:
				return nil, wrong("a second root element")
			default:
				root = e
			}
			open = append(open, e)
		case xml.EndElement:
			open = slices.Delete(open, len(open)-1, len(open))
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text.Write(tok)
			}
		}
	}
}

// xmlText is the decoder's error without its own line number.
func xmlText(err error) string {
	var se *xml.SyntaxError
	if errors.As(err, &se) {
		return se.Msg
	}
	if err == io.EOF {
		return "no element"
	}
	return strings.TrimPrefix(err.Error(), "xml: ")
}
