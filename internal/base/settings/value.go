package settings

// Kind of a Value.
type Kind uint8

const (
	String Kind = iota
	Bool
	Integer
	Float
	Time // a date, a time or both; no setting takes one
	Array
	Inner // a table
)

func (k Kind) String() string {
	return [...]string{"a string", "a boolean", "an integer", "a float", "a date or time", "an array", "a table"}[k]
}

// Value is one value as it stands in a file. The field of its Kind is set.
type Value struct {
	Kind  Kind
	Span  Span
	Str   string
	Int   int64
	Float float64
	Bool  bool
	Array []*Value
	Table *Table
}

// Table holds entries in the order of the file; each key once.
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

// Get finds an entry, or gives nil. A nil table has none.
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
