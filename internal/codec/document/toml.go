package document

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// TOML reads TOML 1.1. Dates and times become strings: "2026-03-01", "07:32:00",
// "2026-03-01T07:32:00", and with an offset "2026-03-01T07:32:00+01:00".
//
// go-toml says what the file means, but not where its values stood. So the file is read
// twice: a walk over the parser's tree gives the places, in the shape of the data, and bounds
// depth and size; then Unmarshal checks what tables may be defined where and gives the values.
func TOML(data []byte) (Value, error) {
	text, err := prepare(data)
	if err != nil {
		return Value{}, err
	}
	if err := checkMarks(text, ",\n=.", maxMarks); err != nil {
		return Value{}, err
	}
	w := &tomlWalk{text: text, cur: cursor{text: text}, left: newBudget(), root: &tomlNode{at: Pos{1, 1, 1}}}
	if err := w.file(); err != nil {
		return Value{}, err
	}
	plain := map[string]any{}
	if err := toml.Unmarshal(text, &plain); err != nil {
		return Value{}, w.explain(err)
	}
	return w.root.value(plain)
}

// tomlNode is a value without its content: its place and its shape.
type tomlNode struct {
	at, keyAt Pos
	names     []string // of the children, in the order of the source
	children  map[string]*tomlNode
	items     []*tomlNode
	tables    bool // an array made by [[headers]]; a path through it goes to its last item
	given     bool // by a value or a header of its own, not only on the way to another
	depth     int
}

type tomlWalk struct {
	text   []byte
	cur    cursor
	left   budget
	parser unstable.Parser
	root   *tomlNode
	again  error // about the first key that stands twice, in case go-toml objects to it
}

// file walks over all expressions. Syntax errors end it.
func (w *tomlWalk) file() error {
	w.parser.Reset(w.text)
	table := w.root
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
				list.tables = true
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

// explain makes an error of go-toml ours.
func (w *tomlWalk) explain(err error) error {
	var syntax *unstable.ParserError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &syntax):
		at := w.parser.Range(syntax.Highlight)
		return errorf(Syntax, w.cur.span(int(at.Offset), int(at.Offset+at.Length)), "%s", syntax.Message)
	case w.again != nil:
		return w.again
	case errors.As(err, &decode):
		line, column := decode.Position() // columns in bytes
		if m := decode.Error(); strings.Contains(m, "too large to fit") || strings.Contains(m, "out of range") {
			return errorf(Number, w.cur.byteColumn(line, column), "the number does not fit into 64 bits").hint("write it as a string")
		}
		return errorf(Syntax, w.cur.byteColumn(line, column), "%s", strings.TrimPrefix(decode.Error(), "toml: "))
	}
	return errorf(Syntax, Pos{}, "%s", strings.TrimPrefix(err.Error(), "toml: "))
}

// descend follows a key from a table, and makes what is not there yet.
func (w *tomlWalk) descend(n *tomlNode, key unstable.Iterator) (child *tomlNode, old bool, end int, err error) {
	for first := true; key.Next(); first = false {
		if !first {
			n = child
			if n.tables {
				n = n.items[len(n.items)-1]
			}
		}
		part := key.Node()
		name, from := string(part.Data), int(part.Raw.Offset)
		end = from + int(part.Raw.Length)
		if child, old = n.children[name]; old {
			continue
		}
		at := w.cur.span(from, end)
		child = &tomlNode{at: at, keyAt: at, depth: n.depth + 1}
		if err := checkDepth(at, child.depth+1); err != nil {
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

// header is a [table] or a [[table]]; it stands where its last key does.
func (w *tomlWalk) header(n *unstable.Node) (child *tomlNode, at Pos, err error) {
	child, old, end, err := w.descend(w.root, n.Key())
	if err != nil {
		return nil, at, err
	}
	_, last := keyPath(n)
	at = w.cur.span(int(last.Raw.Offset), end)
	if old && child.given && !(child.tables && n.Kind == unstable.ArrayTable) {
		w.twice(n, child)
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

// member is a key with its value, in a table or in braces. It tells where the value ends.
func (w *tomlWalk) member(table *tomlNode, n *unstable.Node) (end int, err error) {
	child, old, end, err := w.descend(table, n.Key())
	if err != nil {
		return 0, err
	}
	if old {
		w.twice(n, child)
		child = &tomlNode{depth: child.depth} // the file will be refused; keep the first
	}
	child.given = true
	return w.fill(child, n.Value(), w.skip(end, " \t="))
}

func (w *tomlWalk) twice(n *unstable.Node, first *tomlNode) {
	if w.again != nil {
		return
	}
	path, last := keyPath(n)
	from := int(last.Raw.Offset)
	w.again = duplicate(strings.Join(path, "."), w.cur.span(from, from+int(last.Raw.Length)), first.keyAt)
}

// fill gives a node the place and the shape of the value that begins at an offset. It
// tells where the value ends: arrays do not say where they stand.
func (w *tomlWalk) fill(n *tomlNode, v *unstable.Node, start int) (end int, err error) {
	switch v.Kind {
	case unstable.Array, unstable.InlineTable:
		n.at = w.cur.at(start, 1)
		if err := checkDepth(n.at, n.depth+1); err != nil {
			return 0, err
		}
		end = start + 1
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
		return w.skip(end, " \t\r\n,") + 1, nil
	}
	end = int(v.Raw.Offset + v.Raw.Length)
	n.at = w.cur.span(int(v.Raw.Offset), end)
	return end, w.left.spend(n.at, len(v.Data))
}

// skip passes over the given characters, and over comments if line ends are among them.
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

// value joins places and values.
func (n *tomlNode) value(plain any) (Value, error) {
	v := Value{Pos: n.at}
	var err error
	switch x := plain.(type) {
	case map[string]any:
		o := make(Object, len(n.names))
		for i, name := range n.names {
			child := n.children[name]
			o[i] = Member{Key: name, KeyPos: child.keyAt}
			if o[i].Value, err = child.value(x[name]); err != nil {
				return v, err
			}
		}
		v.V = o
	case []any:
		list := make([]Value, len(x))
		for i := range x {
			if list[i], err = n.items[i].value(x[i]); err != nil {
				return v, err
			}
		}
		v.V = list
	case float64:
		v.V, err = finite(x, fmt.Sprint(x), n.at)
	case time.Time:
		v.V = x.Format(time.RFC3339Nano)
	case toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		v.V = fmt.Sprint(x)
	case bool, int64, string:
		v.V = x
	default:
		err = errorf(Unsupported, n.at, "a TOML value of type %T has no place in the data", x)
	}
	return v, err
}
