package settings

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Parse reads the text of Canonical as a struct of the type that like points to, and returns a new one; nil for nil. It
// accepts only canonical text: Canonical writes everything that it accepts in the same way.
func Parse(like any, text []byte) (any, error) {
	if like == nil {
		if len(text) > 0 {
			return nil, errors.New("settings of a processor that has none")
		}
		return nil, nil
	}
	to := reflect.New(reflect.TypeOf(like).Elem())
	fields := map[string]reflect.Value{}
	walk(to.Elem(), nil, func(_ field, path []string, v reflect.Value) { fields[strings.Join(path, ".")] = v })
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		field, known := fields[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d: %.100q is not of the form name = value", n, line)
		case !known:
			return nil, fmt.Errorf("line %d: no setting is called %.100q, or it is there twice", n, name)
		}
		delete(fields, name)
		p := parser{rest: value}
		if p.value(field); p.err == nil && p.rest != "" {
			p.failf("%.100q is left over", p.rest)
		}
		if p.err != nil {
			return nil, fmt.Errorf("line %d: setting %q: %w", n, name, p.err)
		}
	}
	for name := range fields {
		return nil, fmt.Errorf("setting %q is missing", name)
	}
	if again := Canonical(to.Interface()); !bytes.Equal(again, text) {
		for n, line := range bytes.SplitAfter(again, []byte("\n")) {
			if !bytes.HasPrefix(text, line) {
				return nil, fmt.Errorf("line %d: not in canonical form, which is %.100q", n+1, line)
			}
			text = text[len(line):]
		}
	}
	return to.Interface(), nil
}

// parser reads the value of one setting. After an error it reads nothing more.
type parser struct {
	rest  string
	depth int
	err   error
}

// maxDepth is how deeply free-form tables and lists may be nested.
const maxDepth = 10_000

func (p *parser) failf(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// skip skips a text if it comes next.
func (p *parser) skip(text string) bool {
	rest, ok := strings.CutPrefix(p.rest, text)
	p.rest = rest
	return ok
}

func (p *parser) expect(text string) {
	if !p.skip(text) {
		p.failf("%q is expected before %.100q", text, p.rest)
	}
}

// word is the text up to the end of a list, a table or the line.
func (p *parser) word() string {
	n := strings.IndexAny(p.rest, ",] ")
	if n < 0 {
		n = len(p.rest)
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// value reads a value of the type of v.
func (p *parser) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if x := p.free(); p.err == nil {
			v.Set(reflect.ValueOf(x))
		}
	case reflect.Bool:
		word := p.word()
		if word != "true" && word != "false" {
			p.failf("%.100q is neither true nor false", word)
		}
		v.SetBool(word == "true")
	case reflect.Int, reflect.Int64:
		v.SetInt(p.integer(p.word(), v.Type().Bits()))
	case reflect.Float64:
		v.SetFloat(p.float(p.word()))
	case reflect.String:
		v.SetString(p.string())
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), 0, 0)
		p.list(func() {
			x := reflect.New(v.Type().Elem()).Elem()
			p.value(x)
			list = reflect.Append(list, x)
		})
		v.Set(list)
	case reflect.Map:
		table := reflect.MakeMap(v.Type())
		p.table(func(key string) {
			x := reflect.New(v.Type().Elem()).Elem()
			p.value(x)
			table.SetMapIndex(reflect.ValueOf(key), x)
		})
		v.Set(table)
	default:
		p.failf("it is a %s, which settings are not", v.Type())
	}
}

// free reads a value of any type.
func (p *parser) free() any {
	if p.depth++; p.depth > maxDepth {
		p.failf("more than %d tables and lists lie in each other", maxDepth)
		return nil
	}
	defer func() { p.depth-- }()
	switch {
	case strings.HasPrefix(p.rest, `"`):
		return p.string()
	case strings.HasPrefix(p.rest, "["):
		list := []any{}
		p.list(func() { list = append(list, p.free()) })
		return list
	case strings.HasPrefix(p.rest, "{"):
		table := map[string]any{}
		p.table(func(key string) { table[key] = p.free() })
		return table
	}
	switch word := p.word(); {
	case word == "true" || word == "false":
		return word == "true"
	case strings.ContainsAny(word, ".eIN"):
		return p.float(word)
	default:
		return p.integer(word, 64)
	}
}

func (p *parser) integer(word string, bits int) int64 {
	x, err := strconv.ParseInt(word, 10, bits)
	if err != nil {
		p.failf("%.100q is not an integer of %d bits", word, bits)
	}
	return x
}

func (p *parser) float(word string) float64 {
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		p.failf("%.100q is not a number", word)
	}
	return x
}

func (p *parser) string() string {
	quoted, err := strconv.QuotedPrefix(p.rest)
	text, err2 := strconv.Unquote(quoted)
	if err != nil || err2 != nil {
		p.failf("%.100q does not begin with a string in quotes", p.rest)
		return ""
	}
	p.rest = p.rest[len(quoted):]
	return text
}

// list reads a list, each element by the function given.
func (p *parser) list(element func()) {
	p.expect("[")
	for first := true; p.err == nil && !p.skip("]"); first = false {
		if !first {
			p.expect(", ")
		}
		element()
	}
}

// table reads a table, each value by the function given.
func (p *parser) table(value func(key string)) {
	if p.skip("{}") {
		return
	}
	p.expect("{ ")
	for first := true; p.err == nil && (first || !p.skip(" }")); first = false {
		if !first {
			p.expect(", ")
		}
		key := p.string()
		p.expect(" = ")
		if p.err == nil {
			value(key)
		}
	}
}
