package gltf

import (
	"fmt"
	"math"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// Kind is the kind of a JSON value.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Value is a JSON value. Unlike with encoding/json, it keeps the order of an object's members, the text of a number, and the
// position in the text.
type Value struct {
	Kind        Kind
	at          document.Pos
	first, last int32 // numbers of this value and of the last value in it, in text order, from 1; 0 in a value that was not read

	Text  string   // a string's value; the text of a number, true, false or null
	Names []string // an object's member names
	Items []*Value // an array's items, or the values of an object's members
}

// Get returns a member of an object. It returns nil if there is no such member, or v is not an object.
func (v *Value) Get(name string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	for i, n := range v.Names {
		if n == name {
			return v.Items[i]
		}
	}
	return nil
}

// Path calls Get for each name in turn.
func (v *Value) Path(names ...string) *Value {
	for _, n := range names {
		v = v.Get(n)
	}
	return v
}

// Array returns the items of an array member, or nil.
func (v *Value) Array(name string) []*Value {
	if a := v.Get(name); a != nil && a.Kind == Array {
		return a.Items
	}
	return nil
}

// Str returns the text of a string member, or "".
func (v *Value) Str(name string) string {
	if s := v.Get(name); s != nil && s.Kind == String {
		return s.Text
	}
	return ""
}

// Int returns the value of an integer up to 2^53, in the form 3, 3.0 or 3e0.
func (v *Value) Int() (int64, bool) {
	if v == nil || v.Kind != Number {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
		return n, n >= -1<<53 && n <= 1<<53
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// int returns Int of a member, or the default.
func (v *Value) int(name string, otherwise int64) int64 {
	if n, ok := v.Get(name).Int(); ok {
		return n
	}
	return otherwise
}

// Set sets a member of an object. It replaces a member of the same name, or appends the new one.
func (v *Value) Set(name string, member *Value) {
	for i, n := range v.Names {
		if n == name {
			v.Items[i] = member
			return
		}
	}
	v.Names = append(v.Names, name)
	v.Items = append(v.Items, member)
}

// Delete removes a member if it exists.
func (v *Value) Delete(name string) {
	for i, n := range v.Names {
		if n == name {
			v.Names = append(v.Names[:i:i], v.Names[i+1:]...)
			v.Items = append(v.Items[:i:i], v.Items[i+1:]...)
			return
		}
	}
}

// Walk calls visit for v and all values in it, outer values before inner ones.
func (v *Value) Walk(visit func(*Value)) {
	if v == nil {
		return
	}
	visit(v)
	for _, item := range v.Items {
		item.Walk(visit)
	}
}

// NewString returns a string.
func NewString(s string) *Value { return &Value{Kind: String, Text: s} }

// NewInt returns a number.
func NewInt(n int64) *Value { return &Value{Kind: Number, Text: strconv.FormatInt(n, 10)} }

// NewObject returns an object without members.
func NewObject() *Value { return &Value{Kind: Object} }

// AppendJSON appends the value as JSON without white space: members in their order, numbers with their original text,
// strings in UTF-8 with minimal escapes.
func (v *Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case String:
		return appendString(b, v.Text)
	case Array, Object:
		open, end := byte('['), byte(']')
		if v.Kind == Object {
			open, end = '{', '}'
		}
		b = append(b, open)
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if v.Kind == Object {
				b = append(appendString(b, v.Names[i]), ':')
			}
			b = item.AppendJSON(b)
		}
		return append(b, end)
	default:
		return append(b, v.Text...)
	}
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// parse reads a complete JSON text. Names in an object must be unique, as glTF requires. Errors are a *document.Error.
func parse(text []byte, lim Limits) (*Value, error) {
	v, err := document.Written(text, document.Limits{Size: lim.JSON, Depth: lim.Depth, Values: lim.Values})
	if err != nil {
		return nil, err
	}
	n := int32(0)
	return valueOf(&v, &n), nil
}

// valueOf returns the tree of a document; n counts its values.
func valueOf(from *document.Value, n *int32) *Value {
	*n++
	v := &Value{at: from.Pos, first: *n}
	switch x := from.V.(type) {
	case nil:
		v.Text = "null"
	case bool:
		v.Kind, v.Text = Bool, strconv.FormatBool(x)
	case document.Literal:
		v.Kind, v.Text = Number, string(x)
	case string:
		v.Kind, v.Text = String, x
	case []document.Value:
		v.Kind, v.Items = Array, make([]*Value, len(x))
		for i := range x {
			v.Items[i] = valueOf(&x[i], n)
		}
	case document.Object:
		v.Kind, v.Names, v.Items = Object, make([]string, len(x)), make([]*Value, len(x))
		for i := range x {
			v.Names[i], v.Items[i] = x[i].Key, valueOf(&x[i].Value, n)
		}
	}
	v.last = *n
	return v
}
