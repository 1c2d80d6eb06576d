package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
)

// JSON is a resolved settings struct as a JSON object with the names of rules; "{}" for nil.
func JSON(value any) string {
	if value == nil {
		return "{}"
	}
	b, err := json.Marshal(plain(reflect.ValueOf(value).Elem()))
	if err != nil {
		return "{}" // what Check lets pass always marshals
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

// FromJSON reads a JSON object as a table that stands in no file. There is no null in settings.
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
	return nil, errors.New("null is no setting")
}
