package script

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/processor"
)

// declaration is one call of processor().
type declaration struct {
	info processor.Info
	pos  syntax.Position
}

// processor(name, extensions=[], folder=False, settings={}, products={}, summary="", version=1, memory=0) declares the script's processor.
func (l *loader) processor(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var (
		d          = &declaration{info: processor.Info{Version: 1}, pos: thread.CallFrame(1).Pos}
		extensions *starlark.List
		declared   *starlark.Dict
		products   *starlark.Dict
	)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &d.info.Name, "extensions?", &extensions, "folder?", &d.info.Folder,
		"settings?", &declared, "products?", &products, "summary?", &d.info.Summary, "version?", &d.info.Version, "memory?", &d.info.Memory); err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) (starlark.Value, error) {
		return nil, at(diag.ScriptDeclaration, d.pos, format, args...)
	}
	var err error
	if d.info.Extensions, err = strs(extensions); err != nil {
		return fail("extensions: %v", err)
	}
	if d.info.Products, err = productTypes(d.info.Name, products); err != nil {
		return fail("products: %v", err)
	}
	if d.info.Settings, err = settingsStruct(declared); err != nil {
		return fail("settings: %v", err)
	}
	if d.info.Version < 1 || d.info.Memory < 0 {
		return fail("version begins at 1, and memory at 0")
	}
	if d.info.Summary == "" {
		d.info.Summary = "by " + d.pos.Filename()
	}
	if err := settings.Check(d.info); err != nil {
		return fail("%v", err)
	}
	l.declared = append(l.declared, d)
	return starlark.None, nil
}

func strs(list *starlark.List) ([]string, error) {
	if list == nil {
		return nil, nil
	}
	var out []string
	for v := range list.Elements() {
		s, ok := starlark.AsString(v)
		if !ok {
			return nil, fmt.Errorf("got %s, want a string", v.Type())
		}
		out = append(out, s)
	}
	return out, nil
}

// productTypes are written as {"type": ".ext"} or {"type": (".ext", "description")}, the main one
// first.
func productTypes(name string, products *starlark.Dict) ([]processor.ProductType, error) {
	if products == nil || products.Len() == 0 {
		return []processor.ProductType{{Type: name, Doc: "what the script writes"}}, nil
	}
	var types []processor.ProductType
	for _, item := range products.Items() {
		var ok bool
		p := processor.ProductType{}
		if p.Type, ok = starlark.AsString(item[0]); !ok || p.Type == "" {
			return nil, fmt.Errorf("a type is a string that is not empty, not %s", item[0])
		}
		ext := item[1]
		if pair, is := ext.(starlark.Tuple); is && len(pair) == 2 {
			ext = pair[0]
			if p.Doc, ok = starlark.AsString(pair[1]); !ok {
				return nil, fmt.Errorf("%q: the second of a pair says in a string what it is", p.Type)
			}
		}
		if p.Extension, ok = starlark.AsString(ext); !ok || p.Extension != "" && p.Extension[0] != '.' {
			return nil, fmt.Errorf("%q: want an extension with a dot in front, or a pair of that and what it is", p.Type)
		}
		types = append(types, p)
	}
	return types, nil
}

// settingValue is the result of setting(): a default with the values that rules may give.
type settingValue struct {
	value    starlark.Value
	doc      string
	values   []string
	min, max starlark.Value // nil: no limit
}

func (*settingValue) String() string        { return "setting" }
func (*settingValue) Type() string          { return "setting" }
func (*settingValue) Freeze()               {}
func (*settingValue) Truth() starlark.Bool  { return true }
func (*settingValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: setting") }

// setting(default, doc="", values=[], min=None, max=None)
func setting(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	s := &settingValue{}
	var values *starlark.List
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "default", &s.value, "doc?", &s.doc, "values?", &values, "min?", &s.min, "max?", &s.max)
	if err != nil {
		return nil, err
	}
	s.value.Freeze()
	if s.values, err = strs(values); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	for _, v := range s.values {
		if strings.Contains(v, ",") || v == "" {
			return nil, fmt.Errorf("values: %q is empty or has a comma", v)
		}
	}
	return s, nil
}

// settingsStruct makes a struct type of the declared settings, like that of a processor in Go, and a value with the
// defaults, so that the same code decodes, checks and shows rules for both.
func settingsStruct(declared *starlark.Dict) (any, error) {
	if declared == nil || declared.Len() == 0 {
		return nil, nil
	}
	var fields []reflect.StructField
	var values []reflect.Value
	for _, item := range declared.Items() {
		name, _ := starlark.AsString(item[0])
		if name == "" || name[0] < 'a' || name[0] > 'z' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, fmt.Errorf("%s is not a name: begin with a letter; use lower case letters, digits and underscores", item[0])
		}
		s, ok := item[1].(*settingValue)
		if !ok {
			s = &settingValue{value: item[1]}
		}
		v, err := goValue(s.value)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		tag, err := s.tag(name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		values = append(values, v)
		fields = append(fields, reflect.StructField{Name: fieldName(name), Type: v.Type(), Tag: tag})
	}
	p := reflect.New(reflect.StructOf(fields))
	for i, v := range values {
		p.Elem().Field(i).Set(v)
	}
	return p.Interface(), nil
}

func (s *settingValue) tag(name string) (reflect.StructTag, error) {
	doc := s.doc
	if doc == "" {
		doc = "Set by the project's own processor."
	}
	tag := fmt.Sprintf("toml:%q doc:%q", name, doc)
	if len(s.values) > 0 {
		tag += fmt.Sprintf(" values:%q", strings.Join(s.values, ","))
	}
	for _, bound := range []struct {
		key string
		v   starlark.Value
	}{{"min", s.min}, {"max", s.max}} {
		switch v := bound.v.(type) {
		case nil, starlark.NoneType:
		case starlark.Int:
			tag += fmt.Sprintf(" %s:%q", bound.key, v.String())
		case starlark.Float:
			tag += fmt.Sprintf(" %s:%q", bound.key, strconv.FormatFloat(float64(v), 'g', -1, 64))
		default:
			return "", fmt.Errorf("%s is a number, not %s", bound.key, v.Type())
		}
	}
	return reflect.StructTag(tag), nil
}

// fieldName makes an exported field name of a setting's name, as reflect requires: Max_size.
func fieldName(setting string) string { return strings.ToUpper(setting[:1]) + setting[1:] }

// goValue is a default in the form of a settings struct.
func goValue(v starlark.Value) (reflect.Value, error) {
	switch v := v.(type) {
	case starlark.Bool:
		return reflect.ValueOf(bool(v)), nil
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			return reflect.ValueOf(n), nil
		}
	case starlark.Float:
		return reflect.ValueOf(float64(v)), nil
	case starlark.String:
		return reflect.ValueOf(string(v)), nil
	case *starlark.List:
		return goList(v)
	}
	return reflect.Value{}, fmt.Errorf("a default is a boolean, a number, a string or a list of one of these, not %s", v.Type())
}

func goList(list *starlark.List) (reflect.Value, error) {
	out := reflect.ValueOf([]string{})
	for i := range list.Len() {
		v, err := goValue(list.Index(i))
		if err != nil {
			return v, err
		}
		if i == 0 {
			out = reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, list.Len())
		}
		if v.Kind() == reflect.Slice || v.Type() != out.Type().Elem() {
			return v, fmt.Errorf("a list has elements of one kind, and no lists")
		}
		out = reflect.Append(out, v)
	}
	return out, nil
}

// starlarkValue is a setting's value for a script.
func starlarkValue(v reflect.Value) starlark.Value {
	switch v.Kind() {
	case reflect.Bool:
		return starlark.Bool(v.Bool())
	case reflect.Int64:
		return starlark.MakeInt64(v.Int())
	case reflect.Float64:
		return starlark.Float(v.Float())
	case reflect.Slice:
		list := make([]starlark.Value, v.Len())
		for i := range list {
			list[i] = starlarkValue(v.Index(i))
		}
		l := starlark.NewList(list)
		l.Freeze()
		return l
	}
	return starlark.String(v.String())
}
