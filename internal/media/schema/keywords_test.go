package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// told is what a schema says of data, a line each: path, text and the place in the schema.
func told(t *testing.T, s *schema.Schema, data string) string {
	t.Helper()
	_, err := s.Validate(parse(t, []byte(data)))
	return lines(t, err)
}

func lines(t *testing.T, err error) string {
	t.Helper()
	var all schema.Errors
	if err != nil && !errors.As(err, &all) {
		t.Fatal(err)
	}
	var b []string
	for _, e := range all {
		b = append(b, e.Message(0))
	}
	return strings.Join(b, "; ")
}

// inDraft puts "$schema" into a schema.
func inDraft(draft int, text string) []byte {
	if rest, ok := strings.CutPrefix(text, "{"); ok {
		comma := ","
		if rest == "}" {
			comma = ""
		}
		return []byte(fmt.Sprintf(`{"$schema": %q%s%s`, draftURLs[draft], comma, rest))
	}
	return []byte(text)
}

// TestKeywords holds each keyword to what its draft says of it: data that it takes, and what is said of data that it does not.
func TestKeywords(t *testing.T) {
	all := []int{4, 6, 7, 2019, 2020}
	for _, c := range []struct {
		drafts []int
		schema string
		good   string            // documents, one a line
		bad    map[string]string // documents, and what is said
	}{
		{all, `{}`, "1\nnull", nil},
		{all[1:], `false`, "", map[string]string{`1`: "may not be here"}},
		{all[1:], `true`, "1", nil},

		{all, `{"type": "integer"}`, "1\n1.0\n-3\n1e20\n18446744073709551615", map[string]string{
			`1.5`: "is a number, but must be an integer", `"1"`: "is a string, but must be an integer", `true`: "is a boolean, but must be an integer"}},
		{all, `{"type": ["string", "null"]}`, "\"a\"\nnull", map[string]string{`[]`: "is an array, but must be null or a string", `{}`: "is an object, but must be null or a string"}},
		{all, `{"type": "boolean", "minimum": 5}`, "true", map[string]string{`1`: "is a number, but must be true or false"}},

		{all, `{"enum": [1, "a", null, [2.0], {"x": 1, "y": 2}]}`, "1\n1.0\n\"a\"\nnull\n[2]\n{\"y\": 2, \"x\": 1.0}", map[string]string{
			`true`: `is true, but must be one of 1, "a", null, an array, an object`, `"A"`: `is "A", but must be one of 1, "a", null, an array, an object; did you mean "a"?`,
			`[3]`: `is an array, but must be one of 1, "a", null, an array, an object`}},
		{all, `{"enum": [false]}`, "false", map[string]string{`0`: "is 0, but must be one of false"}},
		{all[1:], `{"const": 0.1}`, "0.1\n1e-1", map[string]string{`0.2`: "is 0.2, but must be 0.1"}},
		{all[1:], `{"const": {"a": 1}}`, `{"a": 1.0}`, map[string]string{`{"a": 2}`: "is an object, but not the one that it must be"}},
		{all[2:], `{"enum": []}`, "", map[string]string{`1`: "is 1, but the schema lists nothing that it may be"}},
		{all[1:], `{"const": null}`, "null", map[string]string{`false`: "is false, but must be null"}},
		{all[1:], `{"const": 18446744073709551615}`, "18446744073709551615", map[string]string{`18446744073709551614`: "is 18446744073709551614, but must be 18446744073709551615"}},
		{all[:1], `{"const": 1}`, "2", nil},

		{all, `{"minimum": 1.5}`, "1.5\n2\n\"a\"", map[string]string{`1`: "is 1, but must be at least 1.5"}},
		{all, `{"maximum": 3}`, "3\n3.0\n-1e300", map[string]string{`3.5`: "is 3.5, but may be at most 3", `18446744073709551615`: "is 18446744073709551615, but may be at most 3"}},
		{all, `{"maximum": 9007199254740992}`, "9007199254740992", map[string]string{`9007199254740993`: "is 9007199254740993, but may be at most 9007199254740992"}},
		{all[:1], `{"minimum": 1, "exclusiveMinimum": true}`, "1.1", map[string]string{`1`: "is 1, but must be more than 1"}},
		{all[:1], `{"maximum": 1, "exclusiveMaximum": true}`, "0", map[string]string{`1`: "is 1, but must be less than 1"}},
		{all[:1], `{"maximum": 1, "exclusiveMaximum": false}`, "1", map[string]string{`2`: "is 2, but may be at most 1"}},
		{all[1:], `{"exclusiveMinimum": 1}`, "1.1", map[string]string{`1.0`: "is 1, but must be more than 1"}},
		{all[1:], `{"exclusiveMaximum": 1}`, "0", map[string]string{`1`: "is 1, but must be less than 1"}},
		{all, `{"multipleOf": 0.1}`, "0.3\n7\n1.1\n\"a\"", map[string]string{`0.35`: "is 0.35, but must be a multiple of 0.1"}},
		{all, `{"multipleOf": 3}`, "9\n-3\n0\n18446744073709551615", map[string]string{`10`: "is 10, but must be a multiple of 3"}},
		{all, `{"multipleOf": 1e-8}`, "0.00012345\n12391239123", map[string]string{`1.5e-9`: "is 1.5e-09, but must be a multiple of 1e-08"}},

		{all, `{"minLength": 2}`, "\"éa\"\n1", map[string]string{`"é"`: "has 1 character, but must have at least 2"}},
		{all, `{"maxLength": 1.0}`, "\"😀\"", map[string]string{`"ab"`: "has 2 characters, but may have at most 1"}},
		{all, `{"pattern": "b+"}`, "\"abc\"\n5", map[string]string{`"a"`: `"a" does not match the pattern b+`}},
		{all, `{"format": "date"}`, "\"2026-11-21\"\n3", map[string]string{`"2026-13-01"`: `"2026-13-01" is no date`}},
		{all, `{"format": "shoe-size"}`, `"x"`, nil},

		{all, `{"minItems": 1}`, "[1]\n{}", map[string]string{`[]`: "has 0 items, but must have at least 1"}},
		{all, `{"maxItems": 1}`, "[1]\n[]", map[string]string{`[1, 2]`: "has 2 items, but may have at most 1"}},
		{all, `{"uniqueItems": true}`, "[1, true, \"1\", [1], {\"a\": 1}, {\"a\": true}, null, 0, false, [], {}]\n[0]", map[string]string{
			`[1, 2, 1.0]`: "items 0 and 2 are equal, but no two may be", `[{"a": 1, "b": 2}, {"b": 2, "a": 1}]`: "items 0 and 1 are equal, but no two may be",
			`[1, 2, 3, 4, 5, 6, 7, 8, [0.0], 9, 10, [0]]`: "items 8 and 11 are equal, but no two may be"}},
		{all, `{"uniqueItems": false}`, "[1, 1]", nil},
		{all, `{"minProperties": 1}`, `{"a": 1}`, map[string]string{`{}`: "has 0 keys, but must have at least 1"}},
		{all, `{"maxProperties": 1}`, `{"a": 1}`, map[string]string{`{"a": 1, "b": 1}`: "has 2 keys, but may have at most 1"}},
		{all, `{"required": ["a", "b"]}`, "{\"b\": null, \"a\": 1}\n[]", map[string]string{`{"b": 1}`: `"a" is missing`, `{}`: `"a" is missing; "b" is missing`}},

		{all, `{"properties": {"a": {"type": "string"}}, "patternProperties": {"^b": {"type": "null"}}, "additionalProperties": {"type": "integer"}}`, `{"a": "x", "b1": null, "c": 1}`, map[string]string{
			`{"a": 1, "b": 2, "c": "3"}`: "/a: is a number, but must be a string; /b: is a number, but must be null; /c: is a string, but must be an integer"}},
		{all, `{"properties": {"alpha": {}}, "additionalProperties": false}`, `{"alpha": 1}`, map[string]string{`{"alhpa": 1}`: `key "alhpa" is not in the schema; did you mean "alpha"?`}},
		{all[1:], `{"propertyNames": {"maxLength": 1}}`, `{"a": 1}`, map[string]string{`{"ab": 1}`: `key "ab" is not of the form that keys have here`}},
		{all, `{"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}}`, "{\"b\": 1}\n{\"a\": 1, \"b\": 1}\n{\"c\": 1}", map[string]string{
			`{"a": 1}`: `b is missing, which "a" needs`, `{"c": 1, "d": 1}`: "has 2 keys, but may have at most 1"}},
		{all[3:], `{"dependentRequired": {"a": ["b", "c"]}, "dependentSchemas": {"d": {"required": ["e"]}}}`, `{"d": 1, "e": 1}`, map[string]string{
			`{"a": 1}`: `b, c are missing, which "a" needs`, `{"d": 1}`: `"e" is missing`}},
		{all[:3], `{"dependentRequired": {"a": ["b"]}}`, `{"a": 1}`, nil},

		{all[:4], `{"items": {"type": "integer"}, "additionalItems": false}`, "[1, 2]", map[string]string{`[1, "a"]`: "/1: is a string, but must be an integer"}},
		{all[:4], `{"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}`, "[1, \"a\"]\n[]", map[string]string{`["a", 1]`: "/0: is a string, but must be an integer; /1: is a number, but must be a string"}},
		{all[:4], `{"items": [{}], "additionalItems": false}`, "[1]", map[string]string{`[1, 2, 3]`: "has 2 items more than it may have"}},
		{all[4:], `{"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}`, "[1, \"a\"]\n[]", map[string]string{`["a", 1]`: "/0: is a string, but must be an integer; /1: is a number, but must be a string"}},
		{all[:4], `{"prefixItems": [{"type": "integer"}]}`, `["a"]`, nil},
		{all[1:], `{"contains": {"type": "null"}}`, "[1, null]", map[string]string{`[1]`: "no item is of the form that one must have", `[]`: "no item is of the form that one must have"}},
		{all[3:], `{"contains": {"type": "null"}, "minContains": 2, "maxContains": 3}`, "[null, null, 1]", map[string]string{
			`[null]`: "items of the form that at least 2 must have: 1", `[null, null, null, null]`: "items of the form that at most 3 may have: 4"}},
		{all[3:], `{"contains": false, "minContains": 0}`, "[]\n[1]", nil},
		{all[1:3], `{"contains": {"type": "null"}, "minContains": 0}`, "[null]", map[string]string{`[]`: "no item is of the form that one must have"}},

		{all, `{"allOf": [{"minimum": 1}, {"maximum": 2}]}`, "1", map[string]string{`0`: "is 0, but must be at least 1"}},
		{all, `{"anyOf": [{"type": "null"}, {"minimum": 1}]}`, "null\n1\n\"a\"", map[string]string{`0`: "fits none of the forms it may have: is a number, but must be null; or is 0, but must be at least 1"}},
		{all, `{"anyOf": [{"type": "null"}, {"properties": {"a": {"type": "null"}}}]}`, "", map[string]string{`{"a": 1}`: "/a: is a number, but must be null"}},
		{all, `{"oneOf": [{"minimum": 1}, {"maximum": 2}, {"type": "number"}]}`, "", map[string]string{`1`: "fits 3 of the forms it may have, but must fit one alone", `"a"`: "fits 2 of the forms it may have, but must fit one alone"}},
		{all, `{"not": {"type": "null"}}`, "1", map[string]string{`null`: "is of a form that it must not have"}},
		{all[2:], `{"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 3}}`, "20\n3", map[string]string{`15`: "is 15, but must be a multiple of 10", `5`: "is 5, but must be a multiple of 3"}},
		{all[2:], `{"then": false, "else": false}`, "1", nil},
		{all[:2], `{"if": {}, "then": {"minimum": 5}}`, "1", nil},

		{all[3:], `{"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}, {"not": {"properties": {"c": {}}, "required": ["x"]}}], "unevaluatedProperties": false}`, `{"a": 1, "b": 1}`, map[string]string{
			`{"a": 1, "c": 1}`: `key "c" is not in the schema; did you mean "a"?`}},
		{all[3:], `{"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {}}}], "unevaluatedProperties": {"type": "string"}}`, "{\"a\": null, \"b\": 1}\n{\"a\": \"x\", \"b\": 1}", map[string]string{
			`{"a": 1, "b": 1}`: "/a: is a number, but must be a string"}},
		{all[3:], `{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}, "unevaluatedProperties": false}`, "{\"a\": 1, \"b\": 2}\n{\"c\": 3}", map[string]string{
			`{"a": 2}`: `key "a" is not in the schema`}},
		{all[3:], `{"allOf": [{"unevaluatedProperties": false}], "properties": {"a": {}}}`, "{}", map[string]string{`{"a": 1}`: `key "a" is not in the schema`}},
		{all[3:], `{"allOf": [{"properties": {"a": {"type": "null"}}}], "unevaluatedProperties": false}`, "", map[string]string{`{"a": 1, "b": 1}`: `/a: is a number, but must be null; key "b" is not in the schema`}},
		{all[3:4], `{"items": [{}], "contains": {"type": "null"}, "unevaluatedItems": false}`, "[null]", map[string]string{`[1, null]`: "/1: may not be here"}},
		{all[4:], `{"prefixItems": [{}], "contains": {"type": "null"}, "unevaluatedItems": false}`, "[1, null]", map[string]string{`[null, 2, null]`: "/1: may not be here"}},
		{all[3:], `{"unevaluatedItems": {"type": "null"}}`, "[null]\n{\"a\": 1}", map[string]string{`[1]`: "/0: is a number, but must be null"}},
		{all[:3], `{"unevaluatedProperties": false, "unevaluatedItems": false}`, "[1]\n{\"a\": 1}", nil},

		{all[2:], `{"contentEncoding": "base64", "contentMediaType": "application/json"}`, `"%%"`, nil},
		{all, `{"definitions": {"n": {"type": "null"}}, "items": {"$ref": "#/definitions/n"}}`, "[null]", map[string]string{`[1]`: "/0: is a number, but must be null"}},
		{all[:3], `{"definitions": {"n": {}}, "items": {"$ref": "#/definitions/n", "type": "null"}}`, "[1]", nil},
		{all[3:], `{"$defs": {"n": {"minimum": 1}}, "items": {"$ref": "#/$defs/n", "maximum": 3}}`, "[1]", map[string]string{`[0, 4]`: "/0: is 0, but must be at least 1; /1: is 4, but may be at most 3"}},
		{all, `{"properties": {"a~b": {"enum": [{"type": "null"}]}}, "items": {"$ref": "#/properties/a~0b/enum/0"}}`, "[null]", map[string]string{`[1]`: "/0: is a number, but must be null"}},
		{all[:1], `{"id": "http://x.example/a/", "definitions": {"n": {"id": "b.json", "type": "null", "definitions": {"m": {"id": "#m", "type": "string"}}}}, "items": [{"$ref": "b.json"}, {"$ref": "b.json#m"}]}`, `[null, "a"]`, map[string]string{
			`[1, 1]`: "/0: is a number, but must be null; /1: is a number, but must be a string"}},
		{all[1:3], `{"$id": "http://x.example/a/", "definitions": {"n": {"$id": "b.json", "type": "null"}, "m": {"$id": "#m", "type": "string"}}, "items": [{"$ref": "b.json#"}, {"$ref": "#m"}]}`, `[null, "a"]`, map[string]string{
			`[1, 1]`: "/0: is a number, but must be null; /1: is a number, but must be a string"}},
		{all[3:], `{"$id": "urn:x:a", "$defs": {"n": {"$id": "urn:x:b", "$anchor": "n", "type": "null"}}, "properties": {"x": {"$ref": "urn:x:b#n"}, "y": {"$ref": "#/$defs/n"}}}`, `{"x": null}`, map[string]string{
			`{"x": 1, "y": 1}`: "/x: is a number, but must be null; /y: is a number, but must be null"}},
		{all, `{"items": {"$ref": "http://json-schema.org/draft-07/schema#"}}`, `[{"type": "null"}, true]`, map[string]string{
			`[{"properties": {"a": {"type": 1}}}]`: `/0/properties/a/type: is a number, but must be a string or an array`}},
		{all, `{"items": {"$ref": "http://json-schema.org/draft-04/schema#/definitions/positiveInteger"}}`, `[0]`, map[string]string{`[-1]`: "/0: is -1, but must be at least 0"}},
	} {
		for _, draft := range c.drafts {
			s, err := compile(files{"main.json": inDraft(draft, c.schema)})
			if err != nil {
				t.Errorf("draft %d: %s: %v", draft, c.schema, err)
				continue
			}
			for _, data := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(c.good, " ", ""), "\n", " ")) {
				if got := told(t, s, data); got != "" {
					t.Errorf("draft %d: %s: of %s: %s", draft, c.schema, data, got)
				}
			}
			for data, want := range c.bad {
				if got := told(t, s, data); got != want {
					t.Errorf("draft %d: %s: of %s:\ngot  %s\nwant %s", draft, c.schema, data, got, want)
				}
			}
		}
	}
}

// TestRefused holds schemas to their drafts: what the metaschema of a draft refuses is refused, with words about the schema.
func TestRefused(t *testing.T) {
	all := []int{4, 6, 7, 2019, 2020}
	for _, c := range []struct {
		drafts       []int
		schema, want string // no words for a schema that is one
	}{
		{all[4:], `[]`, "is an array, but must be true or false or an object"},
		{all, `{"type": "strnig"}`, `/type: is "strnig", but must be one of "array", "boolean", "integer", "null", "number", "object", "string"; did you mean "string"?`},
		{all, `{"type": []}`, "/type: has 0 items, but must have at least 1"},
		{all, `{"type": ["null", "null"]}`, `/type/1: is "null" again`},
		{all, `{"type": 1}`, "/type: is a number, but must be a string or an array"},
		{all, `{"enum": 1}`, "/enum: is a number, but must be an array"},
		{all[:2], `{"enum": [1, 1.0]}`, "/enum: items 0 and 1 are equal, but no two may be"},
		{all[2:], `{"enum": [1, 1.0]}`, ""},
		{all[:2], `{"enum": []}`, "/enum: has 0 items, but must have at least 1"},
		{all, `{"multipleOf": 0}`, "/multipleOf: is 0, but must be more than 0"},
		{all, `{"minimum": "1"}`, "/minimum: is a string, but must be a number"},
		{all[:1], `{"exclusiveMinimum": true}`, `/exclusiveMinimum: minimum is missing, which "exclusiveMinimum" needs`},
		{all[:1], `{"exclusiveMinimum": 1}`, "/exclusiveMinimum: is a number, but must be true or false"},
		{all[1:], `{"exclusiveMinimum": true}`, "/exclusiveMinimum: is a boolean, but must be a number"},
		{all, `{"minLength": -1}`, "/minLength: is -1, but must be at least 0"},
		{all, `{"maxItems": 1.5}`, "/maxItems: is a number, but must be an integer"},
		{all, `{"maxItems": 1e300}`, ""},
		{all, `{"pattern": "("}`, "pattern \"(\" cannot be used: missing closing ): `(`"},
		{all, `{"patternProperties": {"[": {}}}`, "pattern \"[\" cannot be used: missing closing ]: `[`"},
		{all, `{"uniqueItems": 1}`, "/uniqueItems: is a number, but must be true or false"},
		{all, `{"required": "a"}`, "/required: is a string, but must be an array"},
		{all, `{"required": ["a", 1]}`, "/required/1: is a number, but must be a string"},
		{all, `{"required": ["a", "a"]}`, "/required: items 0 and 1 are equal, but no two may be"},
		{all[:1], `{"required": []}`, "/required: has 0 items, but must have at least 1"},
		{all[1:], `{"required": []}`, ""},
		{all, `{"properties": []}`, "/properties: is an array, but must be an object"},
		{all[:1], `{"properties": {"a": true}}`, "/properties/a: is a boolean, but must be an object"},
		{all[1:], `{"properties": {"a": 1}}`, "/properties/a: is a number, but must be true or false or an object"},
		{all[:4], `{"additionalProperties": false, "items": [{}], "additionalItems": true}`, ""},
		{all, `{"allOf": []}`, "/allOf: has 0 items, but must have at least 1"},
		{all, `{"anyOf": {}}`, "/anyOf: is an object, but must be an array"},
		{all[:1], `{"not": true}`, "/not: is a boolean, but must be an object"},
		{all[:4], `{"items": []}`, "/items: has 0 items, but must have at least 1"},
		{all[4:], `{"items": [{}]}`, "/items: is an array, but must be true or false or an object"},
		{all[4:], `{"prefixItems": []}`, "/prefixItems: has 0 items, but must have at least 1"},
		{all, `{"dependencies": {"a": [1]}}`, "/dependencies/a/0: is a number, but must be a string"},
		{all[3:], `{"dependentRequired": {"a": {}}}`, "/dependentRequired/a: is an object, but must be an array"},
		{all[:3], `{"dependentRequired": {"a": {}}}`, ""},
		{all[3:], `{"dependentSchemas": {"a": []}}`, "/dependentSchemas/a: is an array, but must be true or false or an object"},
		{all, `{"title": 1}`, "/title: is a number, but must be a string"},
		{all[2:], `{"readOnly": 1}`, "/readOnly: is a number, but must be true or false"},
		{all[1:], `{"examples": 1}`, "/examples: is a number, but must be an array"},
		{all[3:], `{"contentSchema": 1}`, "/contentSchema: is a number, but must be true or false or an object"},
		{all, `{"$ref": 1}`, "/$ref: is a number, but must be a string"},
		{all, `{"$ref": "#/none"}`, "there is nothing at main.json#/none"},
		{all, `{"definitions": {"sword": {}}, "items": {"$ref": "#/definitons/sword"}}`, `there is nothing at main.json#/definitons/sword; did you mean "definitions"?`},
		{all[3:], `{"$defs": {"s": {"$anchor": "sword"}}, "$ref": "#swrod"}`, `there is no anchor main.json#swrod; did you mean "sword"?`},
		{all, `{"$ref": "#none"}`, "there is no anchor main.json#none"},
		{all, `{"$ref": "%zz"}`, `$ref "%zz" is no URI reference`},
		{all[1:], `{"$ref": "a\\b"}`, `$ref "a\\b" is no URI reference`},
		{all, `{"definitions": {"a": {"$ref": "#/definitions/bow"}}}`, "there is nothing at main.json#/definitions/bow"},
		{all, `{"x": 1, "$ref": "#/x"}`, "/x: is a number, but must be true or false or an object"},
		{all[3:], `{"$id": "a#b"}`, `/$id: is "a#b", but may have nothing behind a #; that is an $anchor`},
		{all[3:], `{"$anchor": "1"}`, `/$anchor: is "1", but must be a name of letters, digits, -, _ and . that begins with a letter`},
		{all[3:], `{"$anchor": "a", "items": {"$anchor": "a"}}`, `anchor "a" is given again; the first is at line 1`},
		{all[3:4], `{"$anchor": "a:b", "items": {"$anchor": "_a"}}`, `/items/$anchor: is "_a", but must be a name of letters, digits, -, _ and . that begins with a letter`},
		{all[4:], `{"$anchor": "_a", "items": {"$anchor": "a:b"}}`, `/items/$anchor: is "a:b", but must be a name of letters, digits, -, _ and . that begins with a letter`},
		{all[1:], `{"definitions": {"a": {"$id": "x.json"}, "b": {"$id": "x.json"}}}`, `$id "x.json" is given again; the first is at line 1`},
		{all[1:], `{"$id": "main.json", "definitions": {"a": {"$id": "main.json"}}}`, `$id "main.json" is given again; the first is at line 1`},
		{all[1:], `{"definitions": {"a": {"$id": "main.json"}}}`, `$id "main.json" is given again; the first is at line 1`},
		{all[3:], `{"$vocabulary": {"urn:x": 1}}`, "/$vocabulary/urn:x: is a number, but must be true or false"},
		{all, `{"title": 1, "minLength": -1}`, "/title: is a number, but must be a string; /minLength: is -1, but must be at least 0"},
		{all, `{"properties": {"enum": {"title": 1}}, "enum": [{"title": 1}], "default": {"title": 1}}`, "/properties/enum/title: is a number, but must be a string"},
	} {
		for _, draft := range c.drafts {
			text := inDraft(draft, c.schema)
			_, err := compile(files{"main.json": text})
			want := c.want
			if draft == 4 {
				want = strings.ReplaceAll(want, "true or false or an object", "an object")
			}
			if got := lines(t, err); got != want {
				t.Errorf("draft %d: %s:\ngot  %s\nwant %s", draft, c.schema, got, want)
			}
		}
	}
	for _, own := range []string{"https://example.com/mine", "draft-07", "draft-07/schema", "http://json-schema.org/draft-05/schema#"} {
		_, err := compile(files{"main.json": encode(t, map[string]any{"$schema": own})})
		var errs schema.Errors
		if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Kind != schema.Draft {
			t.Errorf("a draft of one's own: %v", err)
		}
	}
	if _, err := compile(files{"main.json": []byte(`{"items": {"$schema": "https://example.com/mine"}}`)}); err != nil {
		t.Errorf("$schema where there is no $id means nothing: %v", err)
	}
}
