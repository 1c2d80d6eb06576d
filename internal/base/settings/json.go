package settings

import (
	"encoding/json"
	"reflect"
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
