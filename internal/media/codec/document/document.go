// Package document reads JSON, TOML, YAML and CSV into one model in which every value
// knows where it stood, and writes that model as canonical JSON or as MessagePack.
//
// Its rules: text is UTF-8 (a byte order mark is passed over); no key stands twice in an
// object; numbers are kept exactly or refused, so there are no infinities and no
// integers beyond 64 bits; what a file can cost in memory is bounded before it is
// spent, whatever aliases and headers multiply. All errors are an [*Error].
package document

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of every reader. They are far above real game data, and low enough that a
// hostile file costs memory in the hundreds of megabytes, not all there is.
const (
	MaxSize   = 64 << 20  // bytes of a file
	MaxDepth  = 200       // arrays and objects within each other
	MaxValues = 1 << 22   // values, aliases expanded
	MaxText   = 256 << 20 // bytes of all keys and strings, aliases and CSV headers expanded
)

// maxMarks bounds the separators of a TOML or YAML file, because their parsers build a
// tree of their own, 100 to 250 bytes a node, before Kiln can count the values.
const maxMarks = 1 << 21

// Pos is where something stands in the text. Line and Column count from 1, Column and
// Length in characters; 0 is unknown. Length is 1 for what has an inside.
type Pos struct{ Line, Column, Length int32 }

// Value is a value and its place. V is one of
//
//	nil, bool, int64, uint64 (only above the range of int64), float64 (finite), string,
//	[]Value, Object
//
// and, of Written and TOMLTree alone, Literal.
//
// TOML's dates and times are strings in the form of RFC 3339.
type Value struct {
	Pos
	V any
}

// Literal is a number as it is written, or a time.
type Literal string

// Object holds members in the order of the source; no key stands twice.
type Object []Member

// Member is a key with its value.
type Member struct {
	Key    string
	KeyPos Pos
	Value  Value
}

// Get is the member's value, or nil.
func (o Object) Get(key string) *Value {
	for i := range o {
		if o[i].Key == key {
			return &o[i].Value
		}
	}
	return nil
}

// At finds a value by the tokens of a JSON pointer (RFC 6901, unescaped); nil if there is none.
func (v *Value) At(tokens ...string) *Value {
	for _, t := range tokens {
		switch x := v.V.(type) {
		case Object:
			v = x.Get(t)
		case []Value:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = &x[i]
		default:
			return nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

// Plain is the value without places: nil, bool, int64, uint64, float64, string, []any and map[string]any.
func (v *Value) Plain() any {
	switch x := v.V.(type) {
	case []Value:
		list := make([]any, len(x))
		for i := range x {
			list[i] = x[i].Plain()
		}
		return list
	case Object:
		m := make(map[string]any, len(x))
		for i := range x {
			m[x[i].Key] = x[i].Value.Plain()
		}
		return m
	default:
		return x
	}
}

// sorted is the object's members in the order both writers use: keys compared bytewise in UTF-8.
func (o Object) sorted() []*Member {
	members := make([]*Member, len(o))
	for i := range o {
		members[i] = &o[i]
	}
	slices.SortFunc(members, func(a, b *Member) int { return strings.Compare(a.Key, b.Key) })
	return members
}

// Reader reads until its context ends; then the error is the context's. The functions of this package read to the end.
type Reader struct{ ctx context.Context }

// Under is a reader under a context.
func Under(ctx context.Context) Reader { return Reader{ctx} }

// JSON reads strict JSON (RFC 8259).
func JSON(data []byte) (Value, error) { return Under(context.Background()).JSON(data) }

// RelaxedJSON reads what is written by hand; see Reader.RelaxedJSON.
func RelaxedJSON(data []byte) (Value, error) { return Under(context.Background()).RelaxedJSON(data) }

// TOML reads TOML 1.1; see Reader.TOML.
func TOML(data []byte) (Value, error) { return Under(context.Background()).TOML(data) }

// YAML reads a YAML document; see Reader.YAML.
func YAML(data []byte) (Value, error) { return Under(context.Background()).YAML(data) }

// CSV reads a table; see Reader.CSV.
func CSV(data []byte, o CSVOptions) (Value, error) { return Under(context.Background()).CSV(data, o) }

// CommaCSV is [CSV] with commas between cells.
func CommaCSV(data []byte) (Value, error) { return CSV(data, CSVOptions{}) }

// Fault is the kind of an error.
type Fault uint8

const (
	Syntax      Fault = iota // the text is not in its format
	Duplicate                // a key stands twice
	Encoding                 // not UTF-8
	Limit                    // too large, too deep, too many
	Number                   // a number that cannot be kept
	Unsupported              // right in its format, but has no place in the model
	Ragged                   // a CSV row that is longer or shorter than the header
)

// Error is why a text cannot be read.
type Error struct {
	Fault Fault
	Pos   Pos
	Text  string // what is wrong
	Hint  string // what to do next; may be empty

	// In TOML, the last part of a key that cannot be given here, because of the one that stands first.
	Key   string
	First Pos
}

func (e *Error) Error() string {
	switch {
	case e.Pos.Line == 0:
		return e.Text
	case e.Pos.Column == 0:
		return fmt.Sprintf("%d: %s", e.Pos.Line, e.Text)
	}
	return fmt.Sprintf("%d:%d: %s", e.Pos.Line, e.Pos.Column, e.Text)
}

func errorf(f Fault, p Pos, format string, args ...any) *Error {
	return &Error{Fault: f, Pos: p, Text: fmt.Sprintf(format, args...)}
}

func (e *Error) hint(h string) *Error {
	e.Hint = h
	return e
}

func duplicate(key string, at, first Pos) *Error {
	return errorf(Duplicate, at, "key %q is given again; the first is at %d:%d", key, first.Line, first.Column).
		hint("remove or rename one of the two")
}

// keys notices a key that stands twice in one object.
type keys map[string]Pos

func (k *keys) add(key string, at Pos) error {
	if first, ok := (*k)[key]; ok {
		return duplicate(key, at, first)
	}
	if *k == nil {
		*k = keys{}
	}
	(*k)[key] = at
	return nil
}

// Limits of a reader that has its own.
type Limits struct {
	Size, Depth, Values int // as MaxSize, MaxDepth and MaxValues
}

// budget is what is left of the limits.
type budget struct {
	values, text int
	of           Limits
	ctx          context.Context // ends the reading
}

func newBudget(ctx context.Context) budget {
	return budget{MaxValues, MaxText, Limits{MaxSize, MaxDepth, MaxValues}, ctx}
}

// spend takes one value with so many bytes of text out of the budget.
func (b *budget) spend(at Pos, text int) error {
	b.values--
	b.text -= text
	if b.values%1024 == 0 && b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	switch {
	case b.values < 0:
		return errorf(Limit, at, "the file has more than %d values", b.of.Values).hint("split it")
	case b.text < 0:
		return errorf(Limit, at, "the file's keys and strings come to more than %d MiB", MaxText>>20).hint("split it")
	}
	return nil
}

func (b *budget) checkDepth(at Pos, depth int) error {
	if depth > b.of.Depth {
		return errorf(Limit, at, "values are nested more than %d levels deep", b.of.Depth).hint("flatten the data")
	}
	return nil
}
