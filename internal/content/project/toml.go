package project

import (
	"bytes"
	"errors"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

const (
	maxSize  = 1 << 20 // bytes of a project or rules file
	maxDepth = 32      // nesting of tables and arrays
)

// parseTOML reads a file into tables with places. A second definition is reported with the place of the first and then
// ignored, so that the rest of the file is still checked. complete is false if the reader had to stop before the end.
func parseTOML(file string, data []byte) (root *settings.Table, complete bool, diags diag.List) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	b := builder{text: settings.NewText(file, data)}
	if len(data) > maxSize {
		m := diag.Errorf(diag.ProjectSyntax, diag.Pos{File: file}, "the file has more than %d bytes", maxSize).WithHint("name files by globs, or write rules into rules.toml in the folders that they are for")
		return nil, false, diag.List{m}
	}
	v, faults, err := document.TOMLTree(data)
	root = b.table(v.V.(document.Object), b.text.At(1, 1, 0), 0)
	for _, e := range faults {
		b.add(b.mistake(e))
	}
	var last *document.Error
	if errors.As(err, &last) {
		b.add(b.mistake(last))
	}
	return root, err == nil, b.diags
}

type builder struct {
	text  *settings.Text
	diags diag.List
}

func (b *builder) add(m *diag.Message) { b.diags = append(b.diags, m) }

func (b *builder) at(p document.Pos) settings.Span {
	return b.text.At(int(p.Line), int(p.Column), int(p.Length))
}

// mistake turns an error of the reader into a message.
func (b *builder) mistake(e *document.Error) *diag.Message {
	at := b.at(e.Pos)
	switch number := strings.TrimLeft(at.Source(), "+-"); {
	case e.First.Line > 0:
		return at.Errorf(diag.ProjectSyntax, "%q is defined twice", e.Key).
			WithNote("first at %s", b.at(e.First).Pos).WithHint("remove one of them")
	case e.Fault == document.Number && (number == "inf" || number == "nan"):
		return at.Errorf(diag.BadValue, "%s is not a finite number", at.Source()).WithHint("write a number, or leave the key out")
	case e.Fault == document.Limit:
		return tooDeep(at)
	}
	at.Length = 1
	return notTOML(at, e.Text)
}

func tooDeep(at settings.Span) *diag.Message {
	return at.Errorf(diag.ProjectSyntax, "more than %d tables inside each other", maxDepth).WithHint("write it with fewer levels")
}

// notTOML is the message for an error of the TOML reader. The hint depends on the reader's text, because it has no
// codes.
func notTOML(at settings.Span, what string) *diag.Message {
	hint := `a line is key = value: text is in quotes, a list in [ ], and a name in [ ] on a line of its own begins a table`
	for _, h := range [][2]string{
		{"table name", `close the name of the table: [name], or [[name]] for one of several`},
		{"control", `write \t, \n or \u0007 for such a character`},
		{"UTF-8", "save the file as UTF-8"},
		{"array", "close the list with ], and put commas between what is in it"},
		{"after key", "write key = value"},
		{"strings", `end the text with the quote that it begins with, on the same line; """ begins text of several lines`},
		{"start of value", "write a value: text in quotes, a number, true, false, or a list in [ ]"},
		{"date", "put it in quotes if it is not a date"},
		{"number", "put it in quotes if it is not a number"},
	} {
		if strings.Contains(what, h[0]) {
			hint = h[1]
			break
		}
	}
	return at.Errorf(diag.ProjectSyntax, "not TOML: %s", what).WithHint("%s", hint)
}

func (b *builder) table(o document.Object, span settings.Span, depth int) *settings.Table {
	t := &settings.Table{Span: span}
	for i := range o {
		t.Entries = append(t.Entries, settings.Entry{Key: o[i].Key, Span: b.at(o[i].KeyPos), Value: b.value(&o[i].Value, depth+1)})
	}
	return t
}

func (b *builder) value(from *document.Value, depth int) *settings.Value {
	v := &settings.Value{Span: b.at(from.Pos)}
	if depth > maxDepth {
		b.add(tooDeep(v.Span))
		return v
	}
	switch x := from.V.(type) {
	case string:
		v.Str = x
	case bool:
		v.Kind, v.Bool = settings.Bool, x
	case int64:
		v.Kind, v.Int = settings.Integer, x
	case float64:
		v.Kind, v.Float = settings.Float, x
	case document.Literal:
		v.Kind = settings.Time
	case []document.Value:
		v.Kind = settings.Array
		for i := range x {
			v.Array = append(v.Array, b.value(&x[i], depth+1))
		}
	case document.Object:
		v.Kind, v.Table = settings.Inner, b.table(x, v.Span, depth)
	}
	return v
}
