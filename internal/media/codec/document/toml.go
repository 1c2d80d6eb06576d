package document

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// TOML reads TOML 1.1. Dates and times become strings: "2026-03-01", "07:32:00",
// "2026-03-01T07:32:00", and with an offset "2026-03-01T07:32:00+01:00".
//
// The parser of go-toml splits the text. This package checks where tables may be defined, and passes single numbers and
// times to go-toml if they are not plain. It does not use go-toml's Unmarshal, which looks up keys one after the other: a
// table of 300,000 keys takes minutes.
func (r Reader) TOML(data []byte) (Value, error) {
	w := &tomlWalk{left: newBudget(r.ctx)}
	if err := w.file(data); err != nil {
		return Value{}, err
	}
	if len(w.faults) > 0 { // syntax errors are reported first
		return Value{}, w.faults[0]
	}
	return w.root.value(), nil
}

// TOMLTree reads TOML for callers that continue after errors. v has the readable part, and faults has the errors, up to a
// maximum. The returned error is the one that ended reading early. Dates and times are Literals, and the position of an
// array or table covers its whole first line.
func TOMLTree(data []byte) (v Value, faults []*Error, err error) {
	w := &tomlWalk{left: newBudget(context.Background()), tree: true}
	err = w.file(data)
	return w.root.value(), w.faults, err
}

// maxFaults is the number of faults kept for one file.
const maxFaults = 200

// tomlKind is the origin of a node, which decides what may be added to it.
type tomlKind uint8

const (
	tomlValue  tomlKind = iota // nothing: inline tables and arrays are complete
	tomlTable                  // a [header], or a table on the path to one
	tomlDotted                 // a table on the path of a dotted key
	tomlTables                 // [[headers]]; a path through it continues in its last item
)

// tomlNode is a value during reading.
type tomlNode struct {
	at, keyAt Pos
	names     []string // of the children, in the order of the source
	children  map[string]*tomlNode
	items     []*tomlNode
	list      bool // it has items, possibly zero
	scalar    any  // the value, unless it is a table or an array
	kind      tomlKind
	given     bool // by a value or its own header, not only on the path to another
	depth     int
}

type tomlWalk struct {
	text   []byte
	cur    cursor
	left   budget
	parser unstable.Parser
	root   tomlNode
	tree   bool     // continue after a value that cannot be represented
	faults []*Error // keys that are not allowed where they are, and such values
}

// file reads all expressions. It stops at a syntax error.
func (w *tomlWalk) file(data []byte) (err error) {
	w.root.at = Pos{1, 1, 1}
	if w.text, err = prepare(data, MaxSize); err != nil {
		return err
	}
	if err := checkMarks(w.text, ",\n=.", maxMarks); err != nil {
		return err
	}
	w.cur.text = w.text
	w.parser.Reset(w.text)
	table := &w.root
	for w.parser.NextExpression() {
		var err error
		switch n := w.parser.Expression(); n.Kind {
		case unstable.KeyValue:
			_, err = w.member(table, n)
		case unstable.Table:
			table, _, err = w.header(n)
		case unstable.ArrayTable:
			var list *tomlNode
			var at Pos
			if list, at, err = w.header(n); err == nil {
				list.list = true
				table = &tomlNode{at: at, depth: list.depth + 1}
				list.items = append(list.items, table)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := w.parser.Error(); err != nil {
		return w.explain(err)
	}
	return nil
}

// explain converts an error of go-toml to an Error.
func (w *tomlWalk) explain(err error) error {
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) {
		at := w.parser.Range(syntax.Highlight)
		return errorf(Syntax, w.cur.span(int(at.Offset), int(at.Offset+at.Length)), "%s", syntax.Message)
	}
	return errorf(Syntax, Pos{}, "%s", strings.TrimPrefix(err.Error(), "toml: "))
}

// descend follows a key from a table, and creates missing tables. A key that cannot be followed leads to a node outside of
// the result.
func (w *tomlWalk) descend(n *tomlNode, key unstable.Iterator, made tomlKind) (child *tomlNode, old bool, end int, err error) {
	from := 0
	for first := true; key.Next(); first = false {
		if !first {
			n = w.through(child, made, from, end)
		}
		part := key.Node()
		name := string(part.Data)
		from = int(part.Raw.Offset)
		end = from + int(part.Raw.Length)
		if child, old = n.children[name]; old {
			continue
		}
		at := w.cur.span(from, end)
		child = &tomlNode{at: at, keyAt: at, depth: n.depth + 1, kind: made}
		if err := w.left.checkDepth(at, child.depth+1); err != nil {
			return nil, false, 0, err
		}
		if err := w.left.spend(at, len(name)); err != nil {
			return nil, false, 0, err
		}
		if n.children == nil {
			n.children = map[string]*tomlNode{}
		}
		n.children[name] = child
		n.names = append(n.names, name)
	}
	return child, old, end, nil
}

// through returns the table in which a path continues after a node; text[from:end] is its name.
func (w *tomlWalk) through(n *tomlNode, made tomlKind, from, end int) *tomlNode {
	switch {
	case made == n.kind && n.kind != tomlValue:
		return n
	case made == tomlTable && n.kind == tomlTables:
		return n.items[len(n.items)-1]
	case made == tomlTable && n.kind == tomlDotted:
		return n
	}
	w.clash(n, string(w.text[from:end]), w.cur.span(from, end), "nothing can be added to %s here: it was defined at %d:%d",
		w.text[from:end], n.keyAt.Line, n.keyAt.Column)
	return &tomlNode{depth: n.depth}
}

// clash records a key that is not allowed because of an earlier one.
func (w *tomlWalk) clash(first *tomlNode, key string, at Pos, format string, args ...any) {
	e := errorf(Syntax, at, format, args...)
	e.Key, e.First = key, first.keyAt
	w.fault(e)
}

func (w *tomlWalk) fault(e *Error) {
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, e)
	}
}

// header reads a [table] or a [[table]]; its position is that of its last key.
func (w *tomlWalk) header(n *unstable.Node) (child *tomlNode, at Pos, err error) {
	child, old, end, err := w.descend(&w.root, n.Key(), tomlTable)
	if err != nil {
		return nil, at, err
	}
	_, last := keyPath(n)
	at = w.cur.span(int(last.Raw.Offset), end)
	kind := tomlTable
	if n.Kind == unstable.ArrayTable {
		kind = tomlTables
	}
	switch {
	case !old:
		child.kind = kind
	case child.kind == kind && kind == tomlTables:
	case child.kind == kind && !child.given:
		child.at, child.keyAt = at, at // before, only tables inside it were named
	case child.given:
		w.twice(n, child)
		child = &tomlNode{depth: child.depth}
	default:
		w.clash(child, string(last.Data), at, "%q was defined before, at %d:%d, in another form",
			last.Data, child.keyAt.Line, child.keyAt.Column)
		child = &tomlNode{depth: child.depth}
	}
	child.given = true
	return child, at, nil
}

func keyPath(n *unstable.Node) (path []string, last *unstable.Node) {
	for key := n.Key(); key.Next(); {
		last = key.Node()
		path = append(path, string(last.Data))
	}
	return path, last
}

// member reads a key with its value, in a table or an inline table. It returns the end of the value.
func (w *tomlWalk) member(table *tomlNode, n *unstable.Node) (end int, err error) {
	child, old, end, err := w.descend(table, n.Key(), tomlDotted)
	if err != nil {
		return 0, err
	}
	if old {
		w.twice(n, child)
		child = &tomlNode{depth: child.depth} // keep the first; the file will be refused
	}
	child.given, child.kind = true, tomlValue
	return w.fill(child, n.Value(), w.skip(end, " \t="))
}

func (w *tomlWalk) twice(n *unstable.Node, first *tomlNode) {
	path, last := keyPath(n)
	from := int(last.Raw.Offset)
	e := duplicate(strings.Join(path, "."), w.cur.span(from, from+int(last.Raw.Length)), first.keyAt)
	e.Key, e.First = string(last.Data), first.keyAt
	w.fault(e)
}

// fill sets the position and the content of a node from the value at an offset. It returns the end of the value, because
// go-toml does not give the positions of arrays.
func (w *tomlWalk) fill(n *tomlNode, v *unstable.Node, start int) (end int, err error) {
	switch v.Kind {
	case unstable.Array, unstable.InlineTable:
		n.at = w.cur.at(start, 1)
		if err := w.left.checkDepth(n.at, n.depth+1); err != nil {
			return 0, err
		}
		end = start + 1
		n.list = v.Kind == unstable.Array
		for it := v.Children(); it.Next(); {
			if v.Kind == unstable.InlineTable {
				end, err = w.member(n, it.Node())
			} else {
				item := &tomlNode{depth: n.depth + 1}
				n.items = append(n.items, item)
				if err = w.left.spend(n.at, 0); err == nil {
					end, err = w.fill(item, it.Node(), w.skip(end, " \t\r\n,"))
				}
			}
			if err != nil {
				return 0, err
			}
		}
		end = w.skip(end, " \t\r\n,") + 1
		if w.tree {
			first, _, _ := bytes.Cut(w.text[start:end], []byte("\n"))
			n.at.Length = int32(utf8.RuneCount(bytes.TrimRight(first, "\r")))
		}
		return end, nil
	}
	end = int(v.Raw.Offset + v.Raw.Length)
	n.at = w.cur.span(int(v.Raw.Offset), end)
	if n.scalar, err = w.scalar(v, n.at); err != nil {
		var e *Error
		if !w.tree || !errors.As(err, &e) {
			return 0, err
		}
		w.fault(e)
		n.scalar = map[unstable.Kind]any{unstable.Integer: int64(0), unstable.Float: 0.0}[v.Kind]
		n.scalar = cmp.Or[any](n.scalar, "")
	}
	return end, w.left.spend(n.at, len(v.Data))
}

// scalar reads a value that is not an array or table.
func (w *tomlWalk) scalar(v *unstable.Node, at Pos) (any, error) {
	switch v.Kind {
	case unstable.String:
		return string(v.Data), nil
	case unstable.Bool:
		return v.Data[0] == 't', nil
	case unstable.Integer:
		if d := bytes.TrimLeft(v.Data, "+-"); len(d) < 19 && len(v.Data)-len(d) <= 1 && (d[0] != '0' || len(d) == 1) && onlyDigits(d) {
			return strconv.ParseInt(string(v.Data), 10, 64)
		}
	}
	var one struct{ V any }
	err := toml.Unmarshal(slices.Concat([]byte("V = "), w.text[v.Raw.Offset:v.Raw.Offset+v.Raw.Length]), &one)
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		if m := decode.Error(); strings.Contains(m, "too large to fit") || strings.Contains(m, "out of range") {
			return nil, errorf(Number, at, "the number does not fit into 64 bits").hint("write it as a string")
		}
		_, column := decode.Position() // in bytes, after the five bytes of the prefix
		return nil, errorf(Syntax, w.cur.at(int(v.Raw.Offset)+max(0, column-5), 1), "%s", strings.TrimPrefix(decode.Error(), "toml: "))
	} else if err != nil {
		return nil, errorf(Syntax, at, "%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	switch x := one.V.(type) {
	case float64:
		return finite(x, fmt.Sprint(x), at)
	case time.Time:
		return w.time(x.Format(time.RFC3339Nano)), nil
	case toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		return w.time(fmt.Sprint(x)), nil
	case int64:
		return x, nil
	}
	return nil, errorf(Unsupported, at, "a TOML value of type %T is not supported", one.V)
}

func (w *tomlWalk) time(s string) any {
	if w.tree {
		return Literal(s)
	}
	return s
}

func onlyDigits(d []byte) bool {
	for _, c := range d {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(d) > 0
}

// skip skips the given characters, and comments if line ends are among the characters.
func (w *tomlWalk) skip(off int, over string) int {
	for off < len(w.text) {
		switch c := w.text[off]; {
		case strings.IndexByte(over, c) >= 0:
			off++
		case c == '#' && strings.Contains(over, "\n"):
			for off < len(w.text) && w.text[off] != '\n' {
				off++
			}
		default:
			return off
		}
	}
	return off
}

// value converts the node to a Value.
func (n *tomlNode) value() Value {
	v := Value{Pos: n.at}
	switch {
	case n.scalar != nil:
		v.V = n.scalar
	case n.list:
		list := make([]Value, len(n.items))
		for i, item := range n.items {
			list[i] = item.value()
		}
		v.V = list
	default:
		o := make(Object, len(n.names))
		for i, name := range n.names {
			child := n.children[name]
			o[i] = Member{Key: name, KeyPos: child.keyAt, Value: child.value()}
		}
		v.V = o
	}
	return v
}
