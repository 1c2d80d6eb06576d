package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// told returns the errors of a schema for data, one a line: path, text, and place in the schema.
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

// inDraft inserts "$schema" into a schema.
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

// TestKeywords checks each keyword against its draft: data that is accepted, and the errors for data that is not.
func TestKeywords(t *testing.T) {
	for _, c := range []struct {
		drafts []int
		schema string
		good   string            // documents, one a line
		bad    map[string]string // documents, each with its error
	}{
		{drafts, `{}`, "1\nnull", nil},
		{drafts, `false`, "", map[string]string{`1`: "may not be here"}},
		{drafts, `true`, "1", nil},

		{drafts, `{"type": "integer"}`, "1\n1.0\n-3\n1e20\n18446744073709551615", map[string]string{
			`1.5`: "is a number, but must be an integer", `"1"`: "is a string, but must be an integer", `true`: "is a boolean, but must be an integer"}},
		{drafts, `{"type": ["string", "null"]}`, "\"a\"\nnull", map[string]string{`[]`: "is an array, but must be null or a string", `{}`: "is an object, but must be null or a string"}},
		{drafts, `{"type": "boolean", "minimum": 5}`, "true", map[string]string{`1`: "is a number, but must be true or false"}},

		{drafts, `{"enum": [1, "a", null, [2.0], {"x": 1, "y": 2}]}`, "1\n1.0\n\"a\"\nnull\n[2]\n{\"y\": 2, \"x\": 1.0}", map[string]string{
			`true`: `is true, but must be one of 1, "a", null, an array, an object`, `"A"`: `is "A", but must be one of 1, "a", null, an array, an object; did you mean "a"?`,
			`[3]`: `is an array, but must be one of 1, "a", null, an array, an object`}},
		{drafts, `{"enum": [false]}`, "false", map[string]string{`0`: "is 0, but must be one of false"}},
		{drafts, `{"const": 0.1}`, "0.1\n1e-1", map[string]string{`0.2`: "is 0.2, but must be 0.1"}},
		{drafts, `{"const": {"a": 1}}`, `{"a": 1.0}`, map[string]string{`{"a": 2}`: "is an object, but not the one that it must be"}},
		{drafts, `{"enum": []}`, "", map[string]string{`1`: "is 1, but the schema lists nothing that it may be"}},
		{drafts, `{"const": null}`, "null", map[string]string{`false`: "is false, but must be null"}},
		{drafts, `{"const": 18446744073709551615}`, "18446744073709551615", map[string]string{`18446744073709551614`: "is 18446744073709551614, but must be 18446744073709551615"}},

		{drafts, `{"minimum": 1.5}`, "1.5\n2\n\"a\"", map[string]string{`1`: "is 1, but must be at least 1.5"}},
		{drafts, `{"maximum": 3}`, "3\n3.0\n-1e300", map[string]string{`3.5`: "is 3.5, but may be at most 3", `18446744073709551615`: "is 18446744073709551615, but may be at most 3"}},
		{drafts, `{"maximum": 9007199254740992}`, "9007199254740992", map[string]string{`9007199254740993`: "is 9007199254740993, but may be at most 9007199254740992"}},
		{drafts, `{"exclusiveMinimum": 1}`, "1.1", map[string]string{`1.0`: "is 1, but must be more than 1"}},
		{drafts, `{"exclusiveMaximum": 1}`, "0", map[string]string{`1`: "is 1, but must be less than 1"}},
		{drafts, `{"multipleOf": 0.1}`, "0.3\n7\n1.1\n\"a\"", map[string]string{`0.35`: "is 0.35, but must be a multiple of 0.1"}},
		{drafts, `{"multipleOf": 3}`, "9\n-3\n0\n18446744073709551615", map[string]string{`10`: "is 10, but must be a multiple of 3"}},
		{drafts, `{"multipleOf": 1e-8}`, "0.00012345\n12391239123", map[string]string{`1.5e-9`: "is 1.5e-09, but must be a multiple of 1e-08"}},

		{drafts, `{"minLength": 2}`, "\"éa\"\n1", map[string]string{`"é"`: "has 1 character, but must have at least 2"}},
		{drafts, `{"maxLength": 1.0}`, "\"😀\"", map[string]string{`"ab"`: "has 2 characters, but may have at most 1"}},
		{drafts, `{"pattern": "b+"}`, "\"abc\"\n5", map[string]string{`"a"`: `"a" does not match the pattern b+`}},
		{drafts, `{"format": "date"}`, "\"2026-11-21\"\n3", map[string]string{`"2026-13-01"`: `"2026-13-01" is not a valid date`}},
		{drafts, `{"format": "shoe-size"}`, `"x"`, nil},

		{drafts, `{"minItems": 1}`, "[1]\n{}", map[string]string{`[]`: "has 0 items, but must have at least 1"}},
		{drafts, `{"maxItems": 1}`, "[1]\n[]", map[string]string{`[1, 2]`: "has 2 items, but may have at most 1"}},
		{drafts, `{"uniqueItems": true}`, "[1, true, \"1\", [1], {\"a\": 1}, {\"a\": true}, null, 0, false, [], {}]\n[0]", map[string]string{
			`[1, 2, 1.0]`: "items 0 and 2 are equal, but no two may be", `[{"a": 1, "b": 2}, {"b": 2, "a": 1}]`: "items 0 and 1 are equal, but no two may be",
			`[1, 2, 3, 4, 5, 6, 7, 8, [0.0], 9, 10, [0]]`: "items 8 and 11 are equal, but no two may be"}},
		{drafts, `{"uniqueItems": false}`, "[1, 1]", nil},
		{drafts, `{"minProperties": 1}`, `{"a": 1}`, map[string]string{`{}`: "has 0 keys, but must have at least 1"}},
		{drafts, `{"maxProperties": 1}`, `{"a": 1}`, map[string]string{`{"a": 1, "b": 1}`: "has 2 keys, but may have at most 1"}},
		{drafts, `{"required": ["a", "b"]}`, "{\"b\": null, \"a\": 1}\n[]", map[string]string{`{"b": 1}`: `"a" is missing`, `{}`: `"a" is missing; "b" is missing`}},

		{drafts, `{"properties": {"a": {"type": "string"}}, "patternProperties": {"^b": {"type": "null"}}, "additionalProperties": {"type": "integer"}}`, `{"a": "x", "b1": null, "c": 1}`, map[string]string{
			`{"a": 1, "b": 2, "c": "3"}`: "/a: is a number, but must be a string; /b: is a number, but must be null; /c: is a string, but must be an integer"}},
		{drafts, `{"properties": {"alpha": {}}, "additionalProperties": false}`, `{"alpha": 1}`, map[string]string{`{"alhpa": 1}`: `key "alhpa" is not in the schema; did you mean "alpha"?`}},
		{drafts, `{"propertyNames": {"maxLength": 1}}`, `{"a": 1}`, map[string]string{`{"ab": 1}`: `key "ab" is not of the form that keys have here`}},
		{drafts, `{"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}}`, "{\"b\": 1}\n{\"a\": 1, \"b\": 1}\n{\"c\": 1}", map[string]string{
			`{"a": 1}`: `b is missing, which "a" needs`, `{"c": 1, "d": 1}`: "has 2 keys, but may have at most 1"}},
		{latest, `{"dependentRequired": {"a": ["b", "c"]}, "dependentSchemas": {"d": {"required": ["e"]}}}`, `{"d": 1, "e": 1}`, map[string]string{
			`{"a": 1}`: `b, c are missing, which "a" needs`, `{"d": 1}`: `"e" is missing`}},
		{old, `{"dependentRequired": {"a": ["b"]}}`, `{"a": 1}`, nil},

		{old, `{"items": {"type": "integer"}, "additionalItems": false}`, "[1, 2]", map[string]string{`[1, "a"]`: "/1: is a string, but must be an integer"}},
		{old, `{"items": [{"type": "integer"}], "additionalItems": {"type": "string"}}`, "[1, \"a\"]\n[]", map[string]string{`["a", 1]`: "/0: is a string, but must be an integer; /1: is a number, but must be a string"}},
		{old, `{"items": [{}], "additionalItems": false}`, "[1]", map[string]string{`[1, 2, 3]`: "has 2 items more than it may have"}},
		{latest, `{"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}`, "[1, \"a\"]\n[]", map[string]string{`["a", 1]`: "/0: is a string, but must be an integer; /1: is a number, but must be a string"}},
		{old, `{"prefixItems": [{"type": "integer"}]}`, `["a"]`, nil},
		{drafts, `{"contains": {"type": "null"}}`, "[1, null]", map[string]string{`[1]`: "no item is of the form that one must have", `[]`: "no item is of the form that one must have"}},
		{latest, `{"contains": {"type": "null"}, "minContains": 2, "maxContains": 3}`, "[null, null, 1]", map[string]string{
			`[null]`: "items of the form that at least 2 must have: 1", `[null, null, null, null]`: "items of the form that at most 3 may have: 4"}},
		{latest, `{"contains": false, "minContains": 0}`, "[]\n[1]", nil},
		{old, `{"contains": {"type": "null"}, "minContains": 0}`, "[null]", map[string]string{`[]`: "no item is of the form that one must have"}},

		{drafts, `{"allOf": [{"minimum": 1}, {"maximum": 2}]}`, "1", map[string]string{`0`: "is 0, but must be at least 1"}},
		{drafts, `{"anyOf": [{"type": "null"}, {"minimum": 1}]}`, "null\n1\n\"a\"", map[string]string{`0`: "fits none of the forms it may have: is a number, but must be null; or is 0, but must be at least 1"}},
		{drafts, `{"anyOf": [{"type": "null"}, {"properties": {"a": {"type": "null"}}}]}`, "", map[string]string{`{"a": 1}`: "/a: is a number, but must be null"}},
		{drafts, `{"oneOf": [{"minimum": 1}, {"maximum": 2}, {"type": "number"}]}`, "", map[string]string{`1`: "fits 3 of the forms it may have, but must fit one alone", `"a"`: "fits 2 of the forms it may have, but must fit one alone"}},
		{drafts, `{"not": {"type": "null"}}`, "1", map[string]string{`null`: "is of a form that it must not have"}},
		{drafts, `{"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 3}}`, "20\n3", map[string]string{`15`: "is 15, but must be a multiple of 10", `5`: "is 5, but must be a multiple of 3"}},
		{drafts, `{"then": false, "else": false}`, "1", nil},

		{latest, `{"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}, {"not": {"properties": {"c": {}}, "required": ["x"]}}], "unevaluatedProperties": false}`, `{"a": 1, "b": 1}`, map[string]string{
			`{"a": 1, "c": 1}`: `key "c" is not in the schema; did you mean "a"?`}},
		{latest, `{"anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {}}}], "unevaluatedProperties": {"type": "string"}}`, "{\"a\": null, \"b\": 1}\n{\"a\": \"x\", \"b\": 1}", map[string]string{
			`{"a": 1, "b": 1}`: "/a: is a number, but must be a string"}},
		{latest, `{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}, "unevaluatedProperties": false}`, "{\"a\": 1, \"b\": 2}\n{\"c\": 3}", map[string]string{
			`{"a": 2}`: `key "a" is not in the schema`}},
		{latest, `{"allOf": [{"unevaluatedProperties": false}], "properties": {"a": {}}}`, "{}", map[string]string{`{"a": 1}`: `key "a" is not in the schema`}},
		{latest, `{"allOf": [{"properties": {"a": {"type": "null"}}}], "unevaluatedProperties": false}`, "", map[string]string{`{"a": 1, "b": 1}`: `/a: is a number, but must be null; key "b" is not in the schema`}},
		{latest, `{"prefixItems": [{}], "contains": {"type": "null"}, "unevaluatedItems": false}`, "[1, null]", map[string]string{`[null, 2, null]`: "/1: may not be here"}},
		{latest, `{"unevaluatedItems": {"type": "null"}}`, "[null]\n{\"a\": 1}", map[string]string{`[1]`: "/0: is a number, but must be null"}},
		{old, `{"unevaluatedProperties": false, "unevaluatedItems": false}`, "[1]\n{\"a\": 1}", nil},

		{drafts, `{"contentEncoding": "base64", "contentMediaType": "application/json"}`, `"%%"`, nil},
		{drafts, `{"definitions": {"n": {"type": "null"}}, "items": {"$ref": "#/definitions/n"}}`, "[null]", map[string]string{`[1]`: "/0: is a number, but must be null"}},
		{old, `{"definitions": {"n": {}}, "items": {"$ref": "#/definitions/n", "type": "null"}}`, "[1]", nil},
		{latest, `{"$defs": {"n": {"minimum": 1}}, "items": {"$ref": "#/$defs/n", "maximum": 3}}`, "[1]", map[string]string{`[0, 4]`: "/0: is 0, but must be at least 1; /1: is 4, but may be at most 3"}},
		{drafts, `{"properties": {"a~b": {"enum": [{"type": "null"}]}}, "items": {"$ref": "#/properties/a~0b/enum/0"}}`, "[null]", map[string]string{`[1]`: "/0: is a number, but must be null"}},
		{old, `{"$id": "http://x.example/a/", "definitions": {"n": {"$id": "b.json", "type": "null"}, "m": {"$id": "#m", "type": "string"}}, "items": [{"$ref": "b.json#"}, {"$ref": "#m"}]}`, `[null, "a"]`, map[string]string{
			`[1, 1]`: "/0: is a number, but must be null; /1: is a number, but must be a string"}},
		{latest, `{"$id": "urn:x:a", "$defs": {"n": {"$id": "urn:x:b", "$anchor": "n", "type": "null"}}, "properties": {"x": {"$ref": "urn:x:b#n"}, "y": {"$ref": "#/$defs/n"}}}`, `{"x": null}`, map[string]string{
			`{"x": 1, "y": 1}`: "/x: is a number, but must be null; /y: is a number, but must be null"}},
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

// TestRefused checks that what the metaschema of a draft refuses is refused, with an error about the schema.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		drafts       []int
		schema, want string // want is empty for a valid schema
	}{
		{latest, `[]`, "is an array, but must be true or false or an object"},
		{drafts, `{"type": "strnig"}`, `/type: is "strnig", but must be one of "array", "boolean", "integer", "null", "number", "object", "string"; did you mean "string"?`},
		{drafts, `{"type": []}`, "/type: has 0 items, but must have at least 1"},
		{drafts, `{"type": ["null", "null"]}`, `/type/1: is "null" again`},
		{drafts, `{"type": 1}`, "/type: is a number, but must be a string or an array"},
		{drafts, `{"enum": 1}`, "/enum: is a number, but must be an array"},
		{drafts, `{"enum": [1, 1.0]}`, ""},
		{drafts, `{"multipleOf": 0}`, "/multipleOf: is 0, but must be more than 0"},
		{drafts, `{"minimum": "1"}`, "/minimum: is a string, but must be a number"},
		{drafts, `{"exclusiveMinimum": true}`, "/exclusiveMinimum: is a boolean, but must be a number"},
		{drafts, `{"minLength": -1}`, "/minLength: is -1, but must be at least 0"},
		{drafts, `{"maxItems": 1.5}`, "/maxItems: is a number, but must be an integer"},
		{drafts, `{"maxItems": 1e300}`, ""},
		{drafts, `{"pattern": "("}`, "pattern \"(\" cannot be used: missing closing ): `(`"},
		{drafts, `{"patternProperties": {"[": {}}}`, "pattern \"[\" cannot be used: missing closing ]: `[`"},
		{drafts, `{"uniqueItems": 1}`, "/uniqueItems: is a number, but must be true or false"},
		{drafts, `{"required": "a"}`, "/required: is a string, but must be an array"},
		{drafts, `{"required": ["a", 1]}`, "/required/1: is a number, but must be a string"},
		{drafts, `{"required": ["a", "a"]}`, "/required: items 0 and 1 are equal, but no two may be"},
		{drafts, `{"required": []}`, ""},
		{drafts, `{"properties": []}`, "/properties: is an array, but must be an object"},
		{drafts, `{"properties": {"a": 1}}`, "/properties/a: is a number, but must be true or false or an object"},
		{old, `{"additionalProperties": false, "items": [{}], "additionalItems": true}`, ""},
		{drafts, `{"allOf": []}`, "/allOf: has 0 items, but must have at least 1"},
		{drafts, `{"anyOf": {}}`, "/anyOf: is an object, but must be an array"},
		{old, `{"items": []}`, "/items: has 0 items, but must have at least 1"},
		{latest, `{"items": [{}]}`, "/items: is an array, but must be true or false or an object"},
		{latest, `{"prefixItems": []}`, "/prefixItems: has 0 items, but must have at least 1"},
		{drafts, `{"dependencies": {"a": [1]}}`, "/dependencies/a/0: is a number, but must be a string"},
		{latest, `{"dependentRequired": {"a": {}}}`, "/dependentRequired/a: is an object, but must be an array"},
		{old, `{"dependentRequired": {"a": {}}}`, ""},
		{latest, `{"dependentSchemas": {"a": []}}`, "/dependentSchemas/a: is an array, but must be true or false or an object"},
		{drafts, `{"title": 1}`, "/title: is a number, but must be a string"},
		{drafts, `{"readOnly": 1}`, "/readOnly: is a number, but must be true or false"},
		{drafts, `{"examples": 1}`, "/examples: is a number, but must be an array"},
		{latest, `{"contentSchema": 1}`, "/contentSchema: is a number, but must be true or false or an object"},
		{drafts, `{"$ref": 1}`, "/$ref: is a number, but must be a string"},
		{drafts, `{"$ref": "#/none"}`, "there is nothing at main.json#/none"},
		{drafts, `{"definitions": {"sword": {}}, "items": {"$ref": "#/definitons/sword"}}`, `there is nothing at main.json#/definitons/sword; did you mean "definitions"?`},
		{latest, `{"$defs": {"s": {"$anchor": "sword"}}, "$ref": "#swrod"}`, `there is no anchor main.json#swrod; did you mean "sword"?`},
		{drafts, `{"$ref": "#none"}`, "there is no anchor main.json#none"},
		{drafts, `{"$ref": "%zz"}`, `$ref "%zz" is not a URI reference`},
		{drafts, `{"$ref": "a\\b"}`, `$ref "a\\b" is not a URI reference`},
		{drafts, `{"definitions": {"a": {"$ref": "#/definitions/bow"}}}`, "there is nothing at main.json#/definitions/bow"},
		{drafts, `{"x": 1, "$ref": "#/x"}`, "/x: is a number, but must be true or false or an object"},
		{latest, `{"$id": "a#b"}`, `/$id: is "a#b", but may have nothing behind a #; that is an $anchor`},
		{latest, `{"$anchor": "1"}`, `/$anchor: is "1", but must be a name of letters, digits, -, _ and . that begins with a letter`},
		{latest, `{"$anchor": "a", "items": {"$anchor": "a"}}`, `anchor "a" is given again; the first is at line 1`},
		{latest, `{"$anchor": "_a", "items": {"$anchor": "a:b"}}`, `/items/$anchor: is "a:b", but must be a name of letters, digits, -, _ and . that begins with a letter`},
		{drafts, `{"definitions": {"a": {"$id": "x.json"}, "b": {"$id": "x.json"}}}`, `$id "x.json" is given again; the first is at line 1`},
		{drafts, `{"$id": "main.json", "definitions": {"a": {"$id": "main.json"}}}`, `$id "main.json" is given again; the first is at line 1`},
		{drafts, `{"definitions": {"a": {"$id": "main.json"}}}`, `$id "main.json" is given again; the first is at line 1`},
		{drafts, `{"title": 1, "minLength": -1}`, "/title: is a number, but must be a string; /minLength: is -1, but must be at least 0"},
		{drafts, `{"properties": {"enum": {"title": 1}}, "enum": [{"title": 1}], "default": {"title": 1}}`, "/properties/enum/title: is a number, but must be a string"},
	} {
		for _, draft := range c.drafts {
			text := inDraft(draft, c.schema)
			_, err := compile(files{"main.json": text})
			if got := lines(t, err); got != c.want {
				t.Errorf("draft %d: %s:\ngot  %s\nwant %s", draft, c.schema, got, c.want)
			}
		}
	}
	for other, hint := range map[string]string{
		"https://example.com/mine": "draft-07/schema#", "draft-07": "draft-07/schema#", "draft-07/schema": "draft-07/schema#",
		"http://json-schema.org/draft-03/schema#":      "draft-07/schema#",
		"http://json-schema.org/draft-04/schema#":      `"$id" for "id"`,
		"https://json-schema.org/draft-06/schema":      "all else may stay",
		"https://json-schema.org/draft/2019-09/schema": `"prefixItems"`,
	} {
		_, err := compile(files{"main.json": encode(t, map[string]any{"$schema": other})})
		var errs schema.Errors
		if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Kind != schema.Draft || !strings.Contains(errs[0].Hint, hint) {
			t.Errorf("another draft: %v", err)
		}
	}
	if _, err := compile(files{"main.json": []byte(`{"items": {"$schema": "https://example.com/mine"}}`)}); err != nil {
		t.Errorf("$schema where there is no $id means nothing: %v", err)
	}
}
