package project

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

const (
	maxSize  = 1 << 20 // bytes of a project or rules file
	maxDepth = 32      // tables and arrays inside each other
)

// parseTOML reads a file into tables that know their places.
//
// The reader of TOML data is the judge of what is TOML, but stops at the first mistake. So the parser runs
// besides, to build the tree, in which a second definition is said with the
// place of the first and then passed over, so that the rest of the file is still checked.
// complete is false where the parser had to stop before the end.
func parseTOML(file string, data []byte) (root *settings.Table, complete bool, diags diag.List) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	text := settings.NewText(file, data)
	if len(data) > maxSize {
		m := diag.Errorf(diag.ProjectSyntax, diag.Pos{File: file}, "the file has more than %d bytes", maxSize).WithHint("name files by globs, or write rules into rules.toml in the folders that they are for")
		return nil, false, diag.List{m}
	}
	b := builder{text: text, root: &table{Table: settings.Table{Span: text.Span(0, 0)}}}
	b.current = b.root
	b.parser.Reset(data)
	for b.parser.NextExpression() {
		b.expression(b.parser.Expression())
	}
	if len(b.diags) == 0 {
		if _, err := document.TOML(data); err != nil {
			b.diags = append(b.diags, syntaxError(text, err))
		}
	} else if err := b.parser.Error(); err != nil {
		b.diags = append(b.diags, b.parserError(err))
	}
	return b.root.finish(), b.parser.Error() == nil, b.diags
}

func syntaxError(text *settings.Text, err error) *diag.Message {
	var at *document.Error
	if !errors.As(err, &at) || at.Pos.Line == 0 {
		return notTOML(text.Span(0, 0), err.Error())
	}
	return notTOML(text.Span(text.At(int(at.Pos.Line), int(at.Pos.Column)), 1), at.Text)
}

// notTOML is a mistake that the TOML reader found, in its words, with what to write: by what these say, since it has no codes.
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
		{"date", "put it in quotes if it is no date"},
		{"number", "put it in quotes if it is no number"},
	} {
		if strings.Contains(what, h[0]) {
			hint = h[1]
			break
		}
	}
	return at.Errorf(diag.ProjectSyntax, "not TOML: %s", what).WithHint("%s", hint)
}

func (b *builder) parserError(err error) *diag.Message {
	var at *unstable.ParserError
	if !errors.As(err, &at) {
		return notTOML(b.text.Span(0, 0), err.Error())
	}
	return notTOML(b.text.Span(int(b.parser.Range(at.Highlight).Offset), 1), at.Message)
}

// table is a settings.Table while it is built: children that further headers may extend are kept apart.
type table struct {
	settings.Table
	index map[string]*node
	order []string
}

// node is one key of a table: a table that may grow, an array of such tables, or a finished value.
type node struct {
	key   settings.Span
	table *table
	array []*table
	value *settings.Value
	named bool // by a header of its own, or by a dotted key
}

func (t *table) child(key string, span settings.Span) (n *node, isNew bool) {
	if n := t.index[key]; n != nil {
		return n, false
	}
	n = &node{key: span}
	if t.index == nil {
		t.index = map[string]*node{}
	}
	t.index[key] = n
	t.order = append(t.order, key)
	return n, true
}

func (t *table) finish() *settings.Table {
	for _, key := range t.order {
		n := t.index[key]
		v := n.value
		switch {
		case n.array != nil:
			v = &settings.Value{Kind: settings.Array, Span: n.key}
			for _, x := range n.array {
				v.Array = append(v.Array, &settings.Value{Kind: settings.Inner, Span: x.Span, Table: x.finish()})
			}
		case n.table != nil:
			v = &settings.Value{Kind: settings.Inner, Span: n.key, Table: n.table.finish()}
		}
		t.Entries = append(t.Entries, settings.Entry{Key: key, Span: n.key, Value: v})
	}
	return &t.Table
}

type builder struct {
	parser        unstable.Parser
	text          *settings.Text
	root, current *table
	diags         diag.List
}

func (b *builder) span(n *unstable.Node) settings.Span {
	return b.text.Span(int(n.Raw.Offset), int(n.Raw.Length))
}

func (b *builder) add(m *diag.Message) { b.diags = append(b.diags, m) }

func (b *builder) twice(key *unstable.Node, first settings.Span) {
	b.add(b.span(key).Errorf(diag.ProjectSyntax, "%q is defined twice", key.Data).WithNote("first at %s", first.Pos).WithHint("remove one of them"))
}

// expression takes one line: a header, or a key with its value.
func (b *builder) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table, unstable.ArrayTable:
		b.current = b.header(e)
	case unstable.KeyValue:
		b.keyValue(b.current, e, 0)
	}
}

// header finds or makes the table that a header names. After a mistake it gives one that nobody sees,
// so that the lines below are not blamed for it.
func (b *builder) header(e *unstable.Node) *table {
	nowhere := &table{}
	last, at := b.descend(b.root, e.Key(), e.Kind == unstable.Table)
	if at == nil {
		return nowhere
	}
	span := b.span(last)
	n, isNew := at.child(string(last.Data), span)
	if e.Kind == unstable.ArrayTable {
		if !isNew && n.array == nil {
			b.twice(last, n.key)
			return nowhere
		}
		t := &table{Table: settings.Table{Span: span}}
		n.array = append(n.array, t)
		return t
	}
	switch {
	case isNew:
		n.table = &table{Table: settings.Table{Span: span}}
	case n.table == nil || n.named:
		b.twice(last, n.key)
		return nowhere
	default: // until now only tables inside it were named
		n.key, n.table.Span = span, span
	}
	n.named = true
	return n.table
}

// descend goes to the table that holds the last part of a key, making the tables on the way.
func (b *builder) descend(at *table, key unstable.Iterator, header bool) (last *unstable.Node, in *table) {
	for depth := 0; key.Next(); depth++ {
		last = key.Node()
		if depth >= maxDepth {
			b.add(b.span(last).Errorf(diag.ProjectSyntax, "more than %d tables inside each other", maxDepth).WithHint("write it with fewer levels"))
			return last, nil
		}
		if key.IsLast() {
			return last, at
		}
		span := b.span(last)
		n, isNew := at.child(string(last.Data), span)
		switch {
		case isNew:
			n.table = &table{Table: settings.Table{Span: span}}
			n.named = !header
			at = n.table
		case n.table != nil:
			at = n.table
		case n.array != nil && header:
			at = n.array[len(n.array)-1]
		default:
			b.twice(last, n.key)
			return last, nil
		}
	}
	return last, nil
}

func (b *builder) keyValue(in *table, e *unstable.Node, depth int) {
	last, at := b.descend(in, e.Key(), false)
	if at == nil {
		return
	}
	n, isNew := at.child(string(last.Data), b.span(last))
	if !isNew {
		b.twice(last, n.key)
		return
	}
	n.value = b.value(e.Value(), b.valueSpan(e, last), depth)
}

// valueSpan is the place of a key's value: the parser gives none for arrays.
func (b *builder) valueSpan(e, lastKey *unstable.Node) settings.Span {
	from, end := int(lastKey.Raw.Offset+lastKey.Raw.Length), int(e.Raw.Offset+e.Raw.Length)
	data := b.parser.Data()
	for from < end && strings.IndexByte(" \t=", data[from]) >= 0 {
		from++
	}
	return b.text.Span(from, end-from)
}

// value turns a parsed value into a settings.Value. span is its place, or its array's.
func (b *builder) value(n *unstable.Node, span settings.Span, depth int) *settings.Value {
	if n.Raw.Length > 0 && n.Kind != unstable.InlineTable {
		span = b.span(n)
	}
	v := &settings.Value{Span: span}
	if depth > maxDepth {
		b.add(span.Errorf(diag.ProjectSyntax, "more than %d tables inside each other", maxDepth).WithHint("write it with fewer levels"))
		return v
	}
	var err error
	digits := strings.ReplaceAll(string(n.Data), "_", "")
	switch n.Kind {
	case unstable.String:
		v.Str = string(n.Data)
	case unstable.Bool:
		v.Kind, v.Bool = settings.Bool, n.Data[0] == 't'
	case unstable.Integer:
		v.Kind = settings.Integer
		v.Int, err = strconv.ParseInt(digits, 0, 64)
	case unstable.Float:
		v.Kind = settings.Float
		if number := strings.TrimLeft(digits, "+-"); number == "inf" || number == "nan" {
			b.add(v.Span.Errorf(diag.BadValue, "%s is not a finite number", digits).WithHint("write a number, or leave the key out"))
			break
		}
		v.Float, err = strconv.ParseFloat(digits, 64)
	case unstable.Array:
		v.Kind = settings.Array
		for it := n.Children(); it.Next(); {
			v.Array = append(v.Array, b.value(it.Node(), span, depth+1))
		}
	case unstable.InlineTable:
		v.Kind = settings.Inner
		t := &table{Table: settings.Table{Span: span}}
		for it := n.Children(); it.Next(); {
			b.keyValue(t, it.Node(), depth+1)
		}
		v.Table = t.finish()
	default:
		v.Kind = settings.Time
	}
	if err != nil {
		b.add(notTOML(span, numberError(err)))
	}
	return v
}

func numberError(err error) string {
	var e *strconv.NumError
	if errors.As(err, &e) {
		return fmt.Sprintf("%s: %v", e.Num, e.Err)
	}
	return err.Error()
}
