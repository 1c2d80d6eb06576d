// Package settings turns settings in files into the settings struct of a processor.
//
// A processor declares its settings as a struct with defaults (processor.Info.Settings). Files have
// tables whose keys and values have places. Resolve merges the tables over the defaults, field by
// field. The rules:
//
//   - a later layer wins; tables merge by key, everything else is replaced completely, arrays too;
//   - nothing is converted, except an integer where a float is expected;
//   - everything that does not fit is reported with its place and ignored, so that all errors show at once;
//   - equal settings, and only those, have the same canonical text.
package settings

import (
	"reflect"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// Setting describes one setting for users and for editors.
type Setting struct {
	Name    string   `json:"name"` // dotted, if it is in a table: "font.size"
	Type    string   `json:"type"` // "boolean", "integer", "number", "string", "list of integer", "table of string", "table"
	Default any      `json:"default"`
	Doc     string   `json:"doc,omitempty"`
	Values  []string `json:"values,omitempty"` // all valid values of a string
	Min     string   `json:"min,omitempty"`    // bounds of a number, as written; empty: none
	Max     string   `json:"max,omitempty"`
	Of      string   `json:"of,omitempty"` // the processor whose settings a table holds
}

// DefaultText is the default as written in a file.
func (s Setting) DefaultText() string { return string(appendValue(nil, reflect.ValueOf(s.Default))) }

// Describe lists a processor's settings in the order of its struct.
func Describe(info processor.Info) []Setting {
	var list []Setting
	if info.Settings == nil {
		return nil
	}
	walk(reflect.ValueOf(info.Settings).Elem(), nil, func(f field, path []string, v reflect.Value) {
		s := Setting{
			Name: strings.Join(path, "."), Type: typeText(v.Type()), Default: v.Interface(),
			Doc: f.Tag.Get("doc"), Values: f.values(), Min: f.Tag.Get("min"), Max: f.Tag.Get("max"), Of: f.Tag.Get("of"),
		}
		list = append(list, s)
	})
	return list
}

// Names lists the names that a rule may set at the outermost level.
func Names(info processor.Info) []string {
	if info.Settings == nil {
		return nil
	}
	var names []string
	for _, f := range fieldsOf(reflect.TypeOf(info.Settings).Elem()) {
		names = append(names, f.name)
	}
	return names
}

// field of a settings struct.
type field struct {
	reflect.StructField
	name string
}

func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		f := t.Field(i)
		fields[i] = field{f, f.Tag.Get("toml")}
	}
	return fields
}

func (f field) values() []string {
	if v, ok := f.Tag.Lookup("values"); ok {
		return strings.Split(v, ",")
	}
	return nil
}

// walk visits the leaves of a settings struct: all fields that are not structs.
func walk(v reflect.Value, path []string, visit func(f field, path []string, v reflect.Value)) {
	for i, f := range fieldsOf(v.Type()) {
		at := append(path[:len(path):len(path)], f.name)
		if f.Type.Kind() == reflect.Struct {
			walk(v.Field(i), at, visit)
			continue
		}
		visit(f, at, v.Field(i))
	}
}

func typeText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + typeText(t.Elem())
	case reflect.Struct:
		return "table"
	case reflect.Map:
		if t.Elem().Kind() == reflect.String {
			return "table of string"
		}
		return "table"
	}
	return "string"
}
