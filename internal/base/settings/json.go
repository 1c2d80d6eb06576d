package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSON is a resolved settings struct as a JSON object with the names used in rules; "{}" for nil.
func JSON(value any) string {
	if value == nil {
		return "{}"
	}
	b, err := json.Marshal(plain(reflect.ValueOf(value).Elem()))
	if err != nil {
		return "{}" // what Check accepts always marshals
	}
	return string(b)
}

// plain is a value with structs turned into maps, which encoding/json sorts by key.
func plain(v reflect.Value) any {
	if v.Kind() != reflect.Struct {
		return v.Interface()
	}
	m := map[string]any{}
	for i, f := range fieldsOf(v.Type()) {
		m[f.name] = plain(v.Field(i))
	}
	return m
}

// Difference returns the settings in which a resolved struct differs from another one of its type, by the names used in
// rules: merged over the other one, they give the first.
func Difference(value, base any) map[string]any {
	m := map[string]any{}
	if value == nil {
		return m
	}
	v, b := reflect.ValueOf(value).Elem(), reflect.ValueOf(base).Elem()
	for i, f := range fieldsOf(v.Type()) {
		if !reflect.DeepEqual(v.Field(i).Interface(), b.Field(i).Interface()) {
			m[f.name] = plain(v.Field(i))
		}
	}
	return m
}

// FromJSON reads a JSON object as a table without places. Settings have no null.
func FromJSON(text []byte) (*Table, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is something after the settings")
	}
	if object == nil {
		return nil, errors.New("null is not a setting")
	}
	return tableOf(object)
}

func tableOf(object map[string]any) (*Table, error) {
	t := &Table{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		v, err := valueOf(object[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		t.Entries = append(t.Entries, Entry{Key: key, Value: v})
	}
	return t, nil
}

func valueOf(v any) (*Value, error) {
	switch v := v.(type) {
	case string:
		return &Value{Kind: String, Str: v}, nil
	case bool:
		return &Value{Kind: Bool, Bool: v}, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return &Value{Kind: Integer, Int: n}, nil
		}
		x, err := v.Float64()
		return &Value{Kind: Float, Float: x}, err
	case []any:
		list := &Value{Kind: Array}
		for _, e := range v {
			x, err := valueOf(e)
			if err != nil {
				return nil, err
			}
			list.Array = append(list.Array, x)
		}
		return list, nil
	case map[string]any:
		t, err := tableOf(v)
		return &Value{Kind: Inner, Table: t}, err
	}
	return nil, errors.New("null is not a setting")
}

// JSON is the reverse of FromJSON; "{}" for nil. A date or time becomes a string.
func (t *Table) JSON() string {
	b, err := json.Marshal(t.object())
	if err != nil {
		return "{}" // TOML has infinite floats, but no setting accepts one
	}
	return string(b)
}

func (t *Table) object() map[string]any {
	m := map[string]any{}
	if t != nil {
		for i := range t.Entries {
			m[t.Entries[i].Key] = t.Entries[i].any()
		}
	}
	return m
}

func (v *Value) any() any {
	switch v.Kind {
	case Bool:
		return v.Bool
	case Integer:
		return v.Int
	case Float:
		return floatText(v.Float)
	case Array:
		list := make([]any, len(v.Array))
		for i := range v.Array {
			list[i] = v.Array[i].any()
		}
		return list
	case Inner:
		return v.Table.object()
	}
	return v.Str
}

// floatText distinguishes a whole float from an integer.
func floatText(x float64) any {
	if text := strconv.FormatFloat(x, 'g', -1, 64); x == math.Trunc(x) && !strings.ContainsAny(text, ".eIN") {
		return json.Number(text + ".0")
	}
	return x
}
