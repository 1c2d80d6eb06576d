package project

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// decoder reads tables strictly: it reports an error, ignores the entry and continues.
type decoder struct {
	diags diag.List
	names Names

	expanded int // bytes that variables added

	listing []Listed // strings of lists of patterns, in the order of the file

	other *diag.Message // the project requires another version of Kiln
}

func (d *decoder) add(m *diag.Message) { d.diags = append(d.diags, m) }

// list returns the messages in the order of the file.
func (d *decoder) list() diag.List {
	slices.SortStableFunc(d.diags, func(a, b *diag.Message) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Column, b.Column))
	})
	return diag.Limit(d.diags)
}

// key is a valid key of a table, with the function that reads its value.
type key struct {
	name    string
	missing string // what to write if a required key is missing; "" for an optional one
	take    func(e *settings.Entry)
}

// keys passes each entry of a table to its key. what is the name of the table in messages: "a
// rule".
func (d *decoder) keys(t *settings.Table, what string, keys []key) {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	meant := map[string]bool{} // misspelt keys, which are not reported as missing
	for i := range t.Entries {
		e := &t.Entries[i]
		known := false
		for _, k := range keys {
			if known = k.name == e.Key; known {
				k.take(e)
				break
			}
		}
		if !known {
			m := e.Span.Errorf(diag.UnknownKey, "%s has no key %q", what, e.Key)
			meant[diag.Nearest(e.Key, names)] = true
			if m.Hint = diag.DidYouMean(e.Key, names); m.Hint == "" {
				m.Hint = "it has " + strings.Join(names, ", ")
				if v := d.names.kiln; v != "" {
					m.WithNote("a newer Kiln may have it; this is %s", shortVersion(v))
				}
			}
			d.add(m)
		}
	}
	for _, k := range keys {
		if k.missing != "" && t.Get(k.name) == nil && !meant[k.name] {
			d.add(t.Span.Errorf(diag.MissingKey, "%s needs a key %q", what, k.name).WithHint("write %s", k.missing))
		}
	}
}

// is checks the type of a value; hint says how to write it.
func (d *decoder) is(v *settings.Value, name string, kind settings.Kind, hint string) bool {
	if v.Kind != kind {
		d.add(v.Span.Errorf(diag.WrongType, "%q must be %s, not %s", name, kind, v.Kind).WithHint("%s", hint))
		return false
	}
	return true
}

// bad reports that a value of the right type is not valid.
func (d *decoder) bad(v *settings.Value, hint, format string, args ...any) {
	d.add(v.Span.Errorf(diag.BadValue, format, args...).WithHint("%s", hint))
}

// str reads a string that is not empty and contains only printable characters.
func (d *decoder) str(e *settings.Entry) string { return d.strValue(e.Value, e.Key) }

func (d *decoder) strValue(v *settings.Value, name string) string {
	hint := "put it in quotes"
	if v.Kind == settings.Array || v.Kind == settings.Inner {
		hint = "write a single one, in quotes"
	}
	if !d.is(v, name, settings.String, hint) {
		return ""
	}
	switch {
	case v.Str == "":
		d.bad(v, "write something, or remove the key", "%q is empty", name)
	case !printable(v.Str):
		d.bad(v, "remove it", "%q has a control character", name)
		return ""
	}
	return v.Str
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// each iterates over the elements of an array; how is an example of one, for the hint.
func (d *decoder) each(e *settings.Entry, how string, visit func(v *settings.Value)) {
	if d.is(e.Value, e.Key, settings.Array, "write "+e.Key+" = "+how) {
		for _, v := range e.Array {
			visit(v)
		}
	}
}

// strs reads an array of strings.
func (d *decoder) strs(e *settings.Entry, how string) []string {
	var list []string
	d.each(e, how, func(v *settings.Value) {
		if s := d.strValue(v, e.Key); s != "" {
			list = append(list, s)
		}
	})
	return list
}

// table reads a table, or returns nil.
func (d *decoder) table(e *settings.Entry, hint string) *settings.Table {
	if !d.is(e.Value, e.Key, settings.Inner, hint) {
		return nil
	}
	return e.Table
}

// tables iterates over an array of tables, written with a header in double brackets.
func (d *decoder) tables(e *settings.Entry, visit func(t *settings.Table)) {
	hint := "begin each with [[" + e.Key + "]]"
	if d.is(e.Value, e.Key, settings.Array, hint) {
		for _, v := range e.Array {
			if d.is(v, e.Key, settings.Inner, hint) {
				visit(v.Table)
			}
		}
	}
}

// integer reads an integer between bounds.
func (d *decoder) integer(e *settings.Entry, low, high int64) int64 {
	if !d.is(e.Value, e.Key, settings.Integer, "write it without quotes") {
		return 0
	}
	if e.Int < low || e.Int > high {
		d.add(e.Value.Span.Errorf(diag.BadValue, "%q is %d", e.Key, e.Int).WithHint("%d to %d", low, high))
		return 0
	}
	return e.Int
}

// boolean reads true or false.
func (d *decoder) boolean(e *settings.Entry) bool {
	return d.is(e.Value, e.Key, settings.Bool, "write true or false, without quotes") && e.Bool
}

// name checks a name of a platform, a processor or a parcel.
func (d *decoder) name(s string, span settings.Span, what string) bool {
	if settings.Name().MatchString(s) {
		return true
	}
	m := span.Errorf(diag.BadValue, "%q cannot be the name of a %s", s, what).
		WithHint("lower case letters, digits, dashes and underscores, at most 64")
	if fixed := strings.ReplaceAll(strings.ToLower(s), " ", "-"); settings.Name().MatchString(fixed) {
		m.Hint = "write \"" + fixed + "\""
	}
	d.add(m)
	return false
}

// firsts has the first place of each name.
type firsts map[string]settings.Span

// fresh reports a name that was used before.
func (d *decoder) fresh(seen firsts, s string, span settings.Span, what string) bool {
	if first, ok := seen[s]; ok {
		d.add(span.Errorf(diag.DuplicateName, "there are two %s %q", what, s).WithNote("the first is at %s", first.Pos).WithHint("give one of them another name, or remove it"))
		return false
	}
	seen[s] = span
	return true
}
