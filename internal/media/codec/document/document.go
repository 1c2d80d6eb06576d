// Package document reads JSON, TOML, YAML, CSV and Java's properties into one model, in which every value has its
// position in the source. It writes the model as canonical JSON or as MessagePack.
//
// Text must be UTF-8 (a byte order mark is skipped); properties may be ISO 8859-1. A key
// occurs only once in an object. Numbers are exact or refused, so
// there are no infinities and no integers beyond 64 bits. Memory is limited before it is allocated, also if aliases and
// headers multiply the content. All errors are an [*Error].
package document

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of every reader. They are far above real game data, and low enough that a hostile file costs at most hundreds of
// megabytes.
const (
	MaxSize   = 64 << 20  // bytes of a file
	MaxDepth  = 200       // nested arrays and objects
	MaxValues = 1 << 22   // values, with aliases expanded
	MaxText   = 256 << 20 // bytes of all keys and strings, with aliases and CSV headers expanded
)

// maxMarks limits the separators in a TOML or YAML file: their parsers build their own tree, 100 to 250 bytes per node,
// before Kiln can count the values.
const maxMarks = 1 << 21

// Pos is a position in the text. Line and Column count from 1, Column and Length in characters; 0 is unknown. Length is 1
// for arrays and objects.
type Pos struct{ Line, Column, Length int32 }

// Value is a value with its position. V is one of
//
//	nil, bool, int64, uint64 (only above the range of int64), float64 (finite), string,
//	[]Value, Object
//
// and, only from Written and TOMLTree, Literal.
//
// Dates and times of TOML are strings in the form of RFC 3339.
type Value struct {
	Pos
	V any
}

// Literal is a number in its written form, or a time.
type Literal string

// Object has members in the order of the source; a key occurs only once.
type Object []Member

// Member is a key with its value.
type Member struct {
	Key    string
	KeyPos Pos
	Value  Value
}

// Get returns the value of a member, or nil.
func (o Object) Get(key string) *Value {
	for i := range o {
		if o[i].Key == key {
			return &o[i].Value
		}
	}
	return nil
}

// At returns the value at the tokens of a JSON pointer (RFC 6901, unescaped), or nil.
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

// Plain returns the value without positions: nil, bool, int64, uint64, float64, string, []any and map[string]any.
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

// sorted returns the members in the order of both writers: by the bytes of the keys in UTF-8.
func (o Object) sorted() []*Member {
	members := make([]*Member, len(o))
	for i := range o {
		members[i] = &o[i]
	}
	slices.SortFunc(members, func(a, b *Member) int { return strings.Compare(a.Key, b.Key) })
	return members
}

// Reader reads until its context ends, and then returns the context's error. The functions of this package read without a
// context.
type Reader struct{ ctx context.Context }

// Under returns a reader with a context.
func Under(ctx context.Context) Reader { return Reader{ctx} }

// JSON reads strict JSON (RFC 8259).
func JSON(data []byte) (Value, error) { return Under(context.Background()).JSON(data) }

// RelaxedJSON reads JSON in a relaxed syntax; see Reader.RelaxedJSON.
func RelaxedJSON(data []byte) (Value, error) { return Under(context.Background()).RelaxedJSON(data) }

// TOML reads TOML 1.1; see Reader.TOML.
func TOML(data []byte) (Value, error) { return Under(context.Background()).TOML(data) }

// YAML reads a YAML document; see Reader.YAML.
func YAML(data []byte) (Value, error) { return Under(context.Background()).YAML(data) }

// CSV reads a table; see Reader.CSV.
func CSV(data []byte, o CSVOptions) (Value, error) { return Under(context.Background()).CSV(data, o) }

// CommaCSV is [CSV] with commas between cells.
func CommaCSV(data []byte) (Value, error) { return CSV(data, CSVOptions{}) }

// TabCSV is [CSV] with tabs between cells.
func TabCSV(data []byte) (Value, error) { return CSV(data, CSVOptions{Comma: '\t'}) }

// Properties reads a file of Java's properties; see Reader.Properties.
func Properties(data []byte) (Value, error) { return Under(context.Background()).Properties(data) }

// Fault is the kind of an error.
type Fault uint8

const (
	Syntax      Fault = iota // the text is not valid in its format
	Duplicate                // a key occurs twice
	Encoding                 // the text is not UTF-8
	Limit                    // too large, too deep, too many
	Number                   // a number that cannot be represented exactly
	Unsupported              // valid in its format, but not in the model
	Ragged                   // a CSV row is longer or shorter than the header
)

// Error is the reason why a text cannot be read.
type Error struct {
	Fault Fault
	Pos   Pos
	Text  string // the problem
	Hint  string // what to do next; may be empty

	// In TOML: the last part of a key that is not allowed here, because of the key at First.
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

// keys detects duplicate keys in an object.
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

// Limits are the limits of a single reader.
type Limits struct {
	Size, Depth, Values int // as MaxSize, MaxDepth and MaxValues
}

// budget is the remaining part of the limits.
type budget struct {
	values, text int
	of           Limits
	ctx          context.Context // ends reading
}

func newBudget(ctx context.Context) budget {
	return budget{MaxValues, MaxText, Limits{MaxSize, MaxDepth, MaxValues}, ctx}
}

// spend subtracts one value with the given bytes of text from the budget.
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
