package command

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

var validSetting = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*$`) })

// settingsStruct makes a struct type of the declared settings, like that of a processor in Go, and a value with the defaults, so that the
// same code decodes, checks and shows rules for both. It returns nil if there are none.
func settingsStruct(settings []Setting) (any, []error) {
	if len(settings) == 0 {
		return nil, nil
	}
	var (
		errs   []error
		fields []reflect.StructField
		values []reflect.Value
		seen   = map[string]bool{}
	)
	for _, s := range settings {
		bad := func(hint, format string, args ...any) {
			errs = append(errs, &ConfigError{"settings." + s.Name, -1, diag.CommandConfig, fmt.Sprintf(format, args...), hint})
		}
		v, ok := defaultValue(s.Default)
		switch {
		case !validSetting().MatchString(s.Name):
			bad("begin with a letter; use lower case letters, digits and underscores", "%q is not a name of a setting", s.Name)
		case slices.Contains(placeholders, s.Name):
			bad("choose another name", "{%s} is a placeholder of Kiln's own", s.Name)
		case seen[s.Name]:
			bad("remove one of the two", "the setting %q is declared twice", s.Name)
		case !ok:
			bad("give a boolean, a number, a string or a list of one of these", "the default of %q has no type that a setting can have", s.Name)
		default:
			seen[s.Name] = true
			values = append(values, v)
			fields = append(fields, reflect.StructField{
				Name: fieldName(s.Name),
				Type: v.Type(),
				Tag:  reflect.StructTag(fmt.Sprintf("toml:%q doc:%q", s.Name, s.Doc)),
			})
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	p := reflect.New(reflect.StructOf(fields))
	for i, v := range values {
		p.Elem().Field(i).Set(v)
	}
	return p.Interface(), nil
}

// fieldName makes an exported field name of a setting's name, as reflect requires: Max_size.
func fieldName(setting string) string { return strings.ToUpper(setting[:1]) + setting[1:] }

// defaultValue is the default in the form of a settings struct: whole numbers are int64.
func defaultValue(v any) (reflect.Value, bool) {
	switch v := v.(type) {
	case int:
		return reflect.ValueOf(int64(v)), true
	case []int:
		wide := make([]int64, len(v))
		for i, n := range v {
			wide[i] = int64(n)
		}
		return reflect.ValueOf(wide), true
	case bool, int64, float64, string, []bool, []int64, []float64, []string:
		return reflect.ValueOf(v), true
	case []any:
		return listValue(v)
	}
	return reflect.Value{}, false
}

// listValue is defaultValue for a list whose elements have one type.
func listValue(list []any) (reflect.Value, bool) {
	if len(list) == 0 {
		return reflect.ValueOf([]string{}), true
	}
	var out reflect.Value
	for i, e := range list {
		v, ok := defaultValue(e)
		if !ok || v.Kind() == reflect.Slice {
			return reflect.Value{}, false
		}
		if i == 0 {
			out = reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, len(list))
		}
		if v.Type() != out.Type().Elem() {
			return reflect.Value{}, false
		}
		out = reflect.Append(out, v)
	}
	return out, true
}

// settingValue is a setting of a job as arguments: one for each element of a list, otherwise one.
func settingValue(settings any, name string) []string {
	v := reflect.ValueOf(settings).Elem().FieldByName(fieldName(name))
	if v.Kind() != reflect.Slice {
		return []string{scalar(v)}
	}
	list := make([]string, v.Len())
	for i := range list {
		list[i] = scalar(v.Index(i))
	}
	return list
}

// scalar formats a value independently of the locale: true, -3, 0.25, text.
func scalar(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return v.String()
}
