package project

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// Metadata is a value that rules give to assets under a key of their choice. Only jobs that list assets see it.
type Metadata struct {
	Key   string
	Value any // string, bool, int64, float64 or []any of these
	Span  settings.Span
	Uses  []settings.Use
}

// Texts returns the value as text, or the elements of a list.
func (m *Metadata) Texts() []string {
	if list, ok := m.Value.([]any); ok {
		texts := make([]string, len(list))
		for i, x := range list {
			texts[i] = metaText(x)
		}
		return texts
	}
	return []string{metaText(m.Value)}
}

func metaText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// Written is the value as it is written in a file.
func (m *Metadata) Written() string {
	quoted := func(v any) string {
		if s, ok := v.(string); ok {
			return strconv.Quote(s)
		}
		return metaText(v)
	}
	list, ok := m.Value.([]any)
	if !ok {
		return quoted(m.Value)
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = quoted(x)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// meta reads the table of a rule.
func (d *decoder) meta(e *settings.Entry) (list []Metadata) {
	t := d.table(e, `write meta = { status = "final" }`)
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		x := &t.Entries[i]
		if !variableName().MatchString(strings.ReplaceAll(x.Key, "-", "_")) {
			d.add(x.Span.Errorf(diag.BadValue, "%q cannot be a key of meta", x.Key).WithHint("letters, digits, dashes and underscores, at most 64, and no digit first"))
			continue
		}
		if v := d.metaValue(x.Value, x.Key); v != nil {
			list = append(list, Metadata{x.Key, v, x.Value.Span, x.AllUses()})
		}
	}
	slices.SortFunc(list, func(a, b Metadata) int { return strings.Compare(a.Key, b.Key) })
	return list
}

func (d *decoder) metaValue(v *settings.Value, key string) any {
	switch v.Kind {
	case settings.String:
		if s := v.Str; printable(s) {
			return s
		}
		d.bad(v, "remove it", "%q has a control character", key)
		return nil
	case settings.Bool:
		return v.Bool
	case settings.Integer:
		return v.Int
	case settings.Float:
		return v.Float
	case settings.Array:
		list := []any{}
		for _, x := range v.Array {
			one := d.metaValue(x, key)
			if _, nested := one.([]any); nested {
				d.add(x.Span.Errorf(diag.WrongType, "%q is a list of lists", key).WithHint("a list has strings, numbers or booleans"))
				return nil
			}
			if one == nil {
				return nil
			}
			list = append(list, one)
		}
		return list
	}
	d.add(v.Span.Errorf(diag.WrongType, "%q cannot be %s", key, v.Kind).WithHint("write a string, a number, a boolean or a list of these"))
	return nil
}
