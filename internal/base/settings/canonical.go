package settings

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Canonical is the text of a settings struct for keys: one line for each setting, sorted by dotted name, with values
// that show their types, as in TOML:
//
//	filter = "box"
//	font.size = 12
//	gamma = 1.0
//	tags = { "a" = "x" }
//
// Two structs have the same text if and only if their settings are equal (an empty and a missing list or table are).
// nil has an empty text.
func Canonical(value any) []byte {
	if value == nil {
		return nil
	}
	var lines [][]byte
	walk(reflect.ValueOf(value).Elem(), nil, func(_ field, path []string, v reflect.Value) {
		line := append([]byte(strings.Join(path, ".")), " = "...)
		lines = append(lines, append(appendValue(line, v), '\n'))
	})
	slices.SortFunc(lines, bytes.Compare)
	return bytes.Join(lines, nil)
}

// appendValue writes a value so that its type shows: strings in quotes, floats with a point or an exponent.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Interface:
		return appendValue(b, v.Elem())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Float64:
		from := len(b)
		b = strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
		if !bytes.ContainsAny(b[from:], ".en") {
			b = append(b, ".0"...)
		}
		return b
	case reflect.String:
		return strconv.AppendQuote(b, v.String())
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendValue(b, v.Index(i))
		}
		return append(b, ']')
	case reflect.Map:
		if v.Len() == 0 {
			return append(b, "{}"...)
		}
		b = append(b, '{')
		for i, key := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(strconv.AppendQuote(append(b, ' '), key.String()), " = "...)
			b = appendValue(b, v.MapIndex(key))
		}
		return append(b, " }"...)
	}
	// Not from a file: a processor's default inside a free-form table.
	return fmt.Appendf(b, "%#v", v)
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
