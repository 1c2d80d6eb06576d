package schema_test

import (
	"testing"
)

// TestEvaluated checks which members and items are evaluated for unevaluatedProperties and unevaluatedItems (2020-12
// core, sections 11.2 and 11.3). The library must agree.
func TestEvaluated(t *testing.T) {
	for _, c := range []struct {
		schema, data string
		valid        bool
	}{
		{`{"properties": {"a": true}, "patternProperties": {"^b": true}, "unevaluatedProperties": false}`, `{"a": 1, "b1": 1}`, true},
		{`{"properties": {"a": true}, "patternProperties": {"^b": true}, "unevaluatedProperties": false}`, `{"c": 1}`, false},
		{`{"additionalProperties": true, "unevaluatedProperties": false}`, `{"a": 1}`, true},
		{`{"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}`, `{"a": 1}`, true},
		{`{"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]}`, `{"a": 1}`, false},                                   // it sees schemas below it, not those beside it
		{`{"allOf": [{"unevaluatedProperties": true}], "unevaluatedProperties": false}`, `{"a": 1}`, true},                                  // what it checks counts as evaluated
		{`{"allOf": [{"unevaluatedProperties": {"type": "integer"}}], "unevaluatedProperties": false}`, `{"a": 1}`, true},                   // here too
		{`{"anyOf": [{"properties": {"a": true}}, {"properties": {"b": true}}], "unevaluatedProperties": false}`, `{"a": 1, "b": 1}`, true}, // all forms that fit count
		{`{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["a"]}], "unevaluatedProperties": false}`, `{"a": 1}`, false},  // a form that does not fit does not count
		{`{"oneOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"a": {"const": 2}, "b": true}}], "unevaluatedProperties": false}`, `{"a": 1}`, true},
		{`{"oneOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"a": {"const": 2}, "b": true}}], "unevaluatedProperties": false}`, `{"a": 1, "b": 1}`, false},
		{`{"not": {"not": {"properties": {"a": true}}}, "unevaluatedProperties": false}`, `{"a": 1}`, false},
		{`{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "unevaluatedProperties": false}`, `{"a": 1}`, true},
		{`{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "else": {"properties": {"b": true}}, "unevaluatedProperties": false}`, `{"b": 1}`, true},
		{`{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "else": {"properties": {"b": true}}, "unevaluatedProperties": false}`, `{"a": 2, "b": 1}`, false},
		{`{"dependentSchemas": {"a": {"properties": {"a": true, "b": true}}}, "unevaluatedProperties": false}`, `{"a": 1, "b": 1}`, true},
		{`{"dependentSchemas": {"a": {"properties": {"a": true, "b": true}}}, "unevaluatedProperties": false}`, `{"b": 1}`, false},
		{`{"$ref": "#/$defs/d", "unevaluatedProperties": false, "$defs": {"d": {"properties": {"a": true}}}}`, `{"a": 1}`, true},
		{`{"properties": {"a": {"properties": {"b": true}}}, "unevaluatedProperties": false}`, `{"a": {}, "b": 1}`, false}, // members of an inner object do not count

		{`{"prefixItems": [true], "unevaluatedItems": false}`, `[1]`, true},
		{`{"prefixItems": [true], "unevaluatedItems": false}`, `[1, 2]`, false},
		{`{"prefixItems": [true], "items": true, "unevaluatedItems": false}`, `[1, 2]`, true},
		{`{"contains": {"type": "string"}, "unevaluatedItems": false}`, `["a", "b"]`, true},
		{`{"contains": {"type": "string"}, "unevaluatedItems": false}`, `["a", 1]`, false},
		{`{"allOf": [{"unevaluatedItems": true}], "unevaluatedItems": false}`, `[1]`, true},
		{`{"anyOf": [{"prefixItems": [true, {"type": "string"}]}, {"prefixItems": [true]}], "unevaluatedItems": false}`, `[1, "a"]`, true},
		{`{"anyOf": [{"prefixItems": [true, {"type": "string"}]}, {"prefixItems": [true]}], "unevaluatedItems": false}`, `[1, 2]`, false},
	} {
		f, data := files{"main.json": []byte(c.schema)}, parse(t, []byte(c.data))
		for who, v := range map[string]verdict{"ours": oursSays(f, data), "the library": peerSays(f, data)} {
			if !v.compiles || v.valid != c.valid {
				t.Errorf("%s: %s %s: valid should be %v: %v", who, c.schema, c.data, c.valid, v.why)
			}
		}
	}
}
