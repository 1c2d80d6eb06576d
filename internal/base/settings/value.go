package settings

import (
	"cmp"
	"slices"
)

// Kind of a Value.
type Kind uint8

const (
	String Kind = iota
	Bool
	Integer
	Float
	Time // a date, a time or both; no setting accepts one
	Array
	Inner // a table
)

func (k Kind) String() string {
	return [...]string{"a string", "a boolean", "an integer", "a float", "a date or time", "an array", "a table"}[k]
}

// Value is one value in a file. The field of its Kind is set.
type Value struct {
	Kind  Kind
	Span  Span
	Str   string
	Int   int64
	Float float64
	Bool  bool
	Array []*Value
	Table *Table
	Uses  []Use // variables whose values are in Str
}

// Use is a variable in a string.
type Use struct {
	Name string
	From string // where the value comes from
}

// AllUses returns the variables in all strings of a value.
func (v *Value) AllUses() []Use {
	all := v.Uses
	for _, x := range v.Array {
		all = append(all[:len(all):len(all)], x.AllUses()...)
	}
	return all
}

// Table has entries in the order of the file; each key once.
type Table struct {
	Span    Span // of its header, or of the key it belongs to
	Entries []Entry
}

// Entry is a key with its value.
type Entry struct {
	Key  string
	Span Span // of the key
	*Value
}

// Get returns an entry, or nil. A nil table has none.
func (t *Table) Get(key string) *Entry {
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		if t.Entries[i].Key == key {
			return &t.Entries[i]
		}
	}
	return nil
}

// Merge merges a table over another one: tables in both are merged by key, everything else is replaced. Neither is
// changed.
func Merge(under, over *Table) *Table {
	if under == nil || over == nil {
		return cmp.Or(under, over)
	}
	t := &Table{Span: under.Span, Entries: slices.Clone(under.Entries)}
	for _, e := range over.Entries {
		switch was := t.Get(e.Key); {
		case was == nil:
			t.Entries = append(t.Entries, e)
		case was.Kind == Inner && e.Kind == Inner:
			was.Value = &Value{Kind: Inner, Span: e.Value.Span, Table: Merge(was.Table, e.Table)}
		default:
			*was = e
		}
	}
	return t
}

// lookup follows a path of keys through tables.
func (t *Table) lookup(path []string) *Entry {
	e := t.Get(path[0])
	for _, key := range path[1:] {
		if e == nil || e.Kind != Inner {
			return nil
		}
		e = e.Table.Get(key)
	}
	return e
}
