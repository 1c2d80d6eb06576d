package settings

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// Layer is one table of settings to merge over the layers below.
type Layer struct {
	Table *Table // nil is empty

	// Lenient ignores settings that the processor does not have, instead of reporting them: a rule
	// for all files of a folder may have settings for only some of them.
	Lenient bool

	// Except are keys that are not for this processor: tables with the names of other processors.
	Except []string
}

func (l *Layer) excepts(key string) bool { return slices.Contains(l.Except, key) }

// Resolve returns a new pointer to a struct of the type of info.Settings: the defaults with the
// layers merged over them, in order; nil if the processor has no settings. Check must accept info.
func Resolve(info processor.Info, layers []Layer) (any, diag.List) {
	r := resolver{processor: info.Name}
	if info.Settings == nil {
		for _, l := range layers {
			if l.Table != nil && !l.Lenient {
				for _, e := range l.Table.Entries {
					if l.excepts(e.Key) {
						continue
					}
					r.add(e.Span.Errorf(diag.UnknownKey, "processor %q has no settings", info.Name).
						WithHint("remove %q, or name another processor", e.Key))
				}
			}
		}
		return nil, r.diags
	}
	from := reflect.ValueOf(info.Settings).Elem()
	to := reflect.New(from.Type())
	clone(to.Elem(), from)
	for _, l := range layers {
		if l.Table != nil {
			r.structure(to.Elem(), l.Table, "", l)
		}
	}
	return to.Interface(), r.diags
}

// clone copies deeply, so that no two assets share a slice or a map with the defaults. Values with the same canonical
// text become equal: a missing list or table becomes an empty one, and values of a free-form table get the types that
// files have.
func clone(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Struct:
		for i := range from.NumField() {
			clone(to.Field(i), from.Field(i))
		}
	case reflect.Slice:
		to.Set(reflect.AppendSlice(reflect.MakeSlice(from.Type(), 0, from.Len()), from))
	case reflect.Map:
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for it := from.MapRange(); it.Next(); {
			v := it.Value()
			if v.Kind() == reflect.Interface {
				x, _ := asInFile(v) // Check makes sure of that
				v = reflect.ValueOf(x)
			}
			to.SetMapIndex(it.Key(), v)
		}
	default:
		to.Set(from)
	}
}

// asInFile converts a value that a program has put into a free-form table to the type that it would have from a file:
// string, bool, int64, float64, []any or map[string]any. It returns false for values that files cannot have.
func asInFile(v reflect.Value) (any, bool) {
	switch v.Kind() {
	case reflect.Interface:
		return asInFile(v.Elem())
	case reflect.String:
		return v.String(), true
	case reflect.Bool:
		return v.Bool(), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), true
	case reflect.Float64:
		return v.Float(), v.Float() == v.Float()
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			x, ok := asInFile(v.Index(i))
			if !ok {
				return nil, false
			}
			list[i] = x
		}
		return list, true
	case reflect.Map:
		table := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			x, ok := asInFile(it.Value())
			if !ok || it.Key().Kind() != reflect.String {
				return nil, false
			}
			table[it.Key().String()] = x
		}
		return table, true
	}
	return nil, false
}

type resolver struct {
	processor string
	diags     diag.List
}

func (r *resolver) add(m *diag.Message) { r.diags = append(r.diags, m) }

// structure merges a table over a struct, following the options of its layer.
func (r *resolver) structure(to reflect.Value, t *Table, prefix string, l Layer) {
	fields := fieldsOf(to.Type())
	for _, e := range t.Entries {
		if l.excepts(e.Key) {
			continue
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.Key })
		if i >= 0 {
			r.set(to.Field(i), fields[i], prefix+e.Key, e.Value)
			continue
		}
		if !l.Lenient {
			var names []string
			for _, f := range fields {
				names = append(names, f.name)
			}
			r.add(Unknown(e, r.processor, prefix, names))
		}
	}
}

// Unknown is the error for a setting that a processor does not have, with a suggestion.
func Unknown(e Entry, processor, prefix string, names []string) *diag.Message {
	m := e.Span.Errorf(diag.UnknownKey, "processor %q has no setting %q", processor, prefix+e.Key)
	if m.Hint = diag.DidYouMean(e.Key, names); m.Hint == "" {
		m.Hint = oneOf("it has ", names)
	}
	return m
}

// oneOf lists choices, unless there are too many.
func oneOf(before string, names []string) string {
	const most = 12
	if len(names) > most {
		return before + strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return before + strings.Join(names, ", ")
}

// set sets a field to a value, and reports why if the value does not fit.
func (r *resolver) set(to reflect.Value, f field, name string, v *Value) {
	switch to.Kind() {
	case reflect.Struct:
		if v.Kind != Inner {
			r.wrong(to.Type(), name, v)
			return
		}
		r.structure(to, v.Table, name+".", Layer{})
	case reflect.Map:
		r.table(to, f, name, v)
	case reflect.Slice:
		if v.Kind != Array {
			r.wrong(to.Type(), name, v)
			return
		}
		list, before := reflect.MakeSlice(to.Type(), len(v.Array), len(v.Array)), len(r.diags)
		for i, x := range v.Array {
			r.scalar(list.Index(i), f, fmt.Sprintf("%s[%d]", name, i), x)
		}
		if len(r.diags) == before {
			to.Set(list)
		}
	default:
		r.scalar(to, f, name, v)
	}
}

func (r *resolver) table(to reflect.Value, f field, name string, v *Value) {
	if v.Kind != Inner {
		r.wrong(to.Type(), name, v)
		return
	}
	if m, ok := to.Interface().(map[string]any); ok {
		r.merge(m, name, v.Table)
		return
	}
	for _, e := range v.Table.Entries {
		x, before := reflect.New(to.Type().Elem()).Elem(), len(r.diags)
		if r.scalar(x, f, name+"."+e.Key, e.Value); len(r.diags) == before {
			to.SetMapIndex(reflect.ValueOf(e.Key), x)
		}
	}
}

// merge merges a table over a free-form map.
func (r *resolver) merge(to map[string]any, name string, t *Table) {
	for _, e := range t.Entries {
		if inner, ok := to[e.Key].(map[string]any); ok && e.Kind == Inner {
			r.merge(inner, name+"."+e.Key, e.Table)
		} else if x, ok := r.free(name+"."+e.Key, e.Value); ok {
			to[e.Key] = x
		}
	}
}

// free returns a value of any type: string, bool, int64, float64, []any, map[string]any.
func (r *resolver) free(name string, v *Value) (any, bool) {
	switch v.Kind {
	case String:
		return v.Str, true
	case Bool:
		return v.Bool, true
	case Integer:
		return v.Int, true
	case Float:
		return v.Float, r.finite(name, v, v.Float)
	case Array:
		list := make([]any, 0, len(v.Array))
		for i, e := range v.Array {
			x, ok := r.free(fmt.Sprintf("%s[%d]", name, i), e)
			if !ok {
				return nil, false
			}
			list = append(list, x)
		}
		return list, true
	case Inner:
		m := make(map[string]any, len(v.Table.Entries))
		r.merge(m, name, v.Table)
		return m, true
	}
	r.add(v.Span.Errorf(diag.WrongType, "setting %q of %s cannot be %s", name, r.processor, v.Kind).
		WithHint("write it as a string"))
	return nil, false
}

func (r *resolver) scalar(to reflect.Value, f field, name string, v *Value) {
	switch kind := to.Kind(); {
	case kind == reflect.Bool && v.Kind == Bool:
		to.SetBool(v.Bool)
	case kind == reflect.String && v.Kind == String:
		if r.allowed(f, name, v) {
			to.SetString(v.Str)
		}
	case (kind == reflect.Int || kind == reflect.Int64) && v.Kind == Integer:
		if to.OverflowInt(v.Int) {
			r.add(v.Span.Errorf(diag.BadValue, "setting %q of %s does not fit in %d bits", name, r.processor, to.Type().Bits()).WithHint("write a smaller number"))
		} else if r.between(f, name, v, float64(v.Int)) {
			to.SetInt(v.Int)
		}
	case kind == reflect.Float64 && (v.Kind == Integer || v.Kind == Float):
		x := v.Float
		if v.Kind == Integer {
			x = float64(v.Int)
		}
		if r.finite(name, v, x) && r.between(f, name, v, x) {
			to.SetFloat(x)
		}
	default:
		r.wrong(to.Type(), name, v)
	}
}

func (r *resolver) wrong(want reflect.Type, name string, v *Value) {
	article := "a"
	if strings.HasPrefix(typeText(want), "i") {
		article = "an"
	}
	m := v.Span.Errorf(diag.WrongType, "setting %q of %s must be %s %s, not %s", name, r.processor, article, typeText(want), v.Kind)
	m.Hint = wrongHint(want, v)
	r.add(m)
}

// wrongHint guesses the error: quotes around a number, a single value instead of a list.
func wrongHint(want reflect.Type, v *Value) string {
	switch kind := want.Kind(); {
	case v.Kind == String && kind == reflect.Bool && (v.Str == "true" || v.Str == "false"):
		return "write " + v.Str + ", without quotes"
	case v.Kind == String && (kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Float64):
		if _, err := strconv.ParseFloat(v.Str, 64); err == nil {
			return "write " + v.Str + ", without quotes"
		}
	case kind == reflect.String && v.Kind <= Time && v.Kind != String:
		return "put it in quotes"
	case kind == reflect.Slice && v.Kind != Inner:
		return "put it in brackets: [" + v.Span.Source() + "]"
	case kind == reflect.Bool:
		return "write true or false"
	}
	return ""
}

func (r *resolver) finite(name string, v *Value, x float64) bool {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		r.add(v.Span.Errorf(diag.BadValue, "setting %q of %s is not a finite number", name, r.processor).WithHint("write a number, or leave the setting out"))
		return false
	}
	return true
}

func (r *resolver) allowed(f field, name string, v *Value) bool {
	values := f.values()
	if values == nil || slices.Contains(values, v.Str) {
		return true
	}
	m := v.Span.Errorf(diag.BadValue, "setting %q of %s cannot be %q", name, r.processor, v.Str)
	if m.Hint = diag.DidYouMean(v.Str, values); m.Hint == "" {
		m.Hint = oneOf("one of ", values)
	}
	r.add(m)
	return false
}

func (r *resolver) between(f field, name string, v *Value, x float64) bool {
	low, high := f.Tag.Get("min"), f.Tag.Get("max")
	outside := func(bound string, sign float64) bool {
		limit, err := strconv.ParseFloat(bound, 64)
		return err == nil && sign*x > sign*limit
	}
	switch {
	case outside(low, -1):
		r.add(v.Span.Errorf(diag.BadValue, "setting %q of %s is below %s", name, r.processor, low).WithHint("%s", span(low, high)))
	case outside(high, 1):
		r.add(v.Span.Errorf(diag.BadValue, "setting %q of %s is above %s", name, r.processor, high).WithHint("%s", span(low, high)))
	default:
		return true
	}
	return false
}

func span(low, high string) string {
	switch {
	case high == "":
		return low + " or more"
	case low == "":
		return high + " or less"
	}
	return low + " to " + high
}

// Origin is where a setting's value comes from.
type Origin struct {
	Name  string // dotted
	Value string // as written in a file
	Span  Span   // the value's place; zero for a default
	Uses  []Use  // variables in it
}

// Origins lists every setting of a resolved struct, in its order, with the last layer that set it.
// A free-form table has an origin for each of its keys, sorted.
func Origins(value any, layers []Layer) []Origin {
	if value == nil {
		return nil
	}
	var list []Origin
	add := func(path []string, v reflect.Value) {
		o := Origin{Name: strings.Join(path, "."), Value: string(appendValue(nil, v))}
		for _, l := range slices.Backward(layers) {
			if l.Table == nil {
				continue
			}
			if e := l.Table.lookup(path); e != nil && !l.excepts(path[0]) {
				o.Span, o.Uses = e.Value.Span, e.AllUses()
				break
			}
		}
		list = append(list, o)
	}
	walk(reflect.ValueOf(value).Elem(), nil, func(_ field, path []string, v reflect.Value) {
		if v.Kind() != reflect.Map {
			add(path, v)
			return
		}
		for _, key := range sortedKeys(v) {
			add(append(path[:len(path):len(path)], key.String()), v.MapIndex(key))
		}
	})
	return list
}
