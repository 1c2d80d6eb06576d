package schema_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// TestDynamic checks references that depend on the path to them, against draft 2020-12.
func TestDynamic(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		good, bad    []string
	}{
		{"a tree that another schema makes strict", `{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://x.example/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": false,
			"$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "properties": {"data": {}, "children": {"items": {"$dynamicRef": "#node"}}}}}}`,
			[]string{`{"children": [{"data": 1}]}`}, []string{`{"children": [{"daat": 1}]}`}},
		{"without the anchor at its target, a dynamic reference is a plain one", `{"$id": "http://x.example/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": false,
			"$defs": {"tree": {"$id": "tree", "$anchor": "node", "properties": {"children": {"items": {"$dynamicRef": "#node"}}}}}}`,
			[]string{`{"children": [{"daat": 1}]}`}, []string{`{"daat": 1}`}},
		{"a list of what the user of the list says", `{"$id": "http://x.example/numbers", "$ref": "list", "$defs": {
			"item": {"$dynamicAnchor": "item", "type": "number"},
			"list": {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"item": {"$dynamicAnchor": "item"}}}}}`,
			[]string{`[1]`}, []string{`["a"]`}},
		{"a pointer is no anchor", `{"$defs": {"a": {"$dynamicAnchor": "x", "type": "null"}}, "$dynamicRef": "#/$defs/a"}`, []string{`null`}, []string{`1`}},
	} {
		s, err := compile(files{"main.json": []byte(c.schema)})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, data := range c.good {
			if got := told(t, s, data); got != "" {
				t.Errorf("%s: of %s: %s", c.name, data, got)
			}
		}
		for _, data := range c.bad {
			if told(t, s, data) == "" {
				t.Errorf("%s: let through: %s", c.name, data)
			}
		}
	}
}

// noting returns a loader for files. It records which files are read, and notes the keyword "note".
func noting(f files, asked *[]string) schema.Loader {
	return schema.Loader{
		Path: func(from schema.Place, ref string) (string, error) {
			if strings.Contains(ref, ":") {
				return "", fmt.Errorf("%s:%d:%d: remote", from.File, from.Line, from.Column)
			}
			return ref, nil
		},
		Read: func(from schema.Place, path string) (document.Value, error) {
			*asked = append(*asked, path)
			if f[path] == nil {
				return document.Value{}, fmt.Errorf("%s:%d:%d: no %s", from.File, from.Line, from.Column, path)
			}
			return document.JSON(f[path])
		},
		Note: func(_ string, o document.Object) (any, error) {
			if v := o.Get("note"); v != nil {
				return v.V, nil
			}
			return nil, nil
		},
	}
}

// TestNotes checks that the notes of a schema are returned for the values that it holds for, in the order of the text,
// and not for other values.
func TestNotes(t *testing.T) {
	for _, c := range []struct{ schema, data, want string }{
		{`{"note": "n"}`, `1`, "n 1"},
		{`{"properties": {"b": {"note": "b"}, "a": {"note": "a"}}, "additionalProperties": {"note": "+"}}`, `{"c": 1, "a": 2, "b": 3}`, "+ 1, a 2, b 3"},
		{`{"anyOf": [{"note": "x", "type": "null"}, {"note": "y"}, {"note": "z"}]}`, `1`, "y 1, z 1"},
		{`{"oneOf": [{"items": {"note": "x", "minimum": 5}}, {"items": {"note": "y"}}]}`, `[9, 1]`, "y 9, y 1"},
		{`{"anyOf": [{"items": {"note": "x"}, "maxItems": 0}, {}]}`, `[1]`, ""},
		{`{"not": {"not": {"note": "x"}}}`, `1`, ""},
		{`{"if": {"note": "if", "minimum": 1}, "then": {"note": "then"}, "else": {"note": "else"}}`, `1`, "if 1, then 1"},
		{`{"if": {"note": "if", "minimum": 1}, "then": {"note": "then"}, "else": {"note": "else"}}`, `0`, "else 0"},
		{`{"contains": {"note": "c", "minimum": 2}}`, `[1, 2, 3]`, "c 2, c 3"},
		{`{"propertyNames": {"note": "x"}}`, `{"a": 1}`, ""},
		{`{"prefixItems": [{"note": "p"}], "items": {"note": "i"}}`, `[1, 2]`, "p 1, i 2"},
		{`{"properties": {"a": {}}, "unevaluatedProperties": {"note": "u"}}`, `{"a": 1, "b": 2}`, "u 2"},
		{`{"prefixItems": [{}], "unevaluatedItems": {"note": "u"}}`, `[1, 2]`, "u 2"},
		{`{"dependentSchemas": {"a": {"properties": {"b": {"note": "d"}}}}}`, `{"a": 1, "b": 2}`, "d 2"},
		{`{"dependentSchemas": {"c": {"properties": {"b": {"note": "d"}}}}}`, `{"a": 1, "b": 2}`, ""},
		{`{"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"note": "n"}}}`, `[1]`, "n 1"},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": {"$ref": "#/definitions/n", "note": "beside"}, "definitions": {"n": {"note": "n"}}}`, `[1]`, "n 1, beside 1"},
		{`{"$id": "urn:x", "$ref": "urn:y", "$defs": {"mine": {"$dynamicAnchor": "e", "note": "mine"}, "y": {"$id": "urn:y", "items": {"$dynamicRef": "#e"}, "$defs": {"e": {"$dynamicAnchor": "e", "note": "theirs"}}}}}`, `[1]`, "mine 1"},
	} {
		var asked []string
		s, err := schema.Compile(noting(files{"main.json": []byte(c.schema)}, &asked), schema.Place{}, "main.json", "")
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		notes, err := s.Validate(parse(t, []byte(c.data)))
		var got []string
		for _, n := range notes {
			got = append(got, fmt.Sprintf("%v %v", n.Note, n.Value.V))
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s of %s: got %s (%v), want %s", c.schema, c.data, strings.Join(got, ", "), err, c.want)
		}
	}
}

// TestFiles checks that files are read in the order of the text, once each, with the files of a file before the next
// reference. Every bad reference is reported with its place.
func TestFiles(t *testing.T) {
	f := files{
		"main.json": []byte("{\"properties\": {\n \"x\": {\"$ref\": \"b\"},\n \"enum\": {\"$ref\": \"a\"},\n \"y\": {\"$ref\": \"b#/items\"}},\n \"enum\": [{\"$ref\": \"none\"}], \"other\": {\"$ref\": \"none\"}, \"$ref\": \"c#here\"}"),
		"a":         []byte(`{"$ref": "main.json#/$defs"}`), "b": []byte(`{"items": {"$ref": "d"}}`), "c": []byte(`{"$defs": {"x": {"$anchor": "here"}}}`), "d": []byte(`true`),
		"broken": []byte(`{"$defs": {"x": {"$ref": "c#elsewhere"}}}`), "far": []byte("{\"$defs\":\n{\"x\": {\"$ref\": \"http://example.com\"}}}"), "missing": []byte("{\n  \"$ref\": \"none\"}"),
		"wrong": []byte("{\"items\": {\"$ref\": \"meta\"}}"), "meta": []byte("{\n \"minimum\": null}"),
	}
	f["a"] = []byte(`{"$ref": "main.json#/properties/x"}`)
	for _, c := range []struct{ path, fragment, want string }{
		{"main.json", "", "main.json b d a c"},
		{"main.json", "/properties/x", "main.json b d a c"},
		{"b", "/items", "b d"},
		{"b", "/none", "b d: :7:1: there is nothing at b#/none"},
		{"broken", "", "broken c: broken:1:26: there is no anchor c#elsewhere"},
		{"far", "", "far: far:2:16: remote"},
		{"missing", "", "missing none: missing:2:11: no none"},
		{"wrong", "", "wrong meta: meta:2:13: /minimum: is null, but must be a number"},
	} {
		var asked []string
		_, err := schema.Compile(noting(f, &asked), schema.Place{Pos: document.Pos{Line: 7, Column: 1}}, c.path, c.fragment)
		got := strings.Join(asked, " ")
		if err != nil {
			got += ": " + err.Error()
		}
		if got != c.want {
			t.Errorf("%s#%s:\ngot  %s\nwant %s", c.path, c.fragment, got, c.want)
		}
	}
}

// TestPlaces checks that an error has its place in the data, and the place of the keyword in the schema.
func TestPlaces(t *testing.T) {
	var asked []string
	s, err := schema.Compile(noting(files{
		"main.json": []byte("{\"items\": {\"$ref\": \"b\"},\n \"maxItems\": 2}"),
		"b":         []byte("{\"minimum\": 3,\n \"additionalProperties\": false, \"dependentRequired\": {\"a\":\n [\"b\"]}, \"anyOf\":\n [{\"type\": \"number\"}, {\"required\": [\"c\"]}]}"),
	}, &asked), schema.Place{}, "main.json", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Validate(parse(t, []byte("[1,\n {\"x\": 1,\n \"a\": 2}, 9]")))
	var all schema.Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%d:%d %s %s %s:%d:%d", e.Line, e.Column, strings.Join(e.Path, "/"), e.Keyword, e.Says.File, e.Says.Line, e.Says.Column))
	}
	want := []string{"1:1  maxItems main.json:2:14", "1:2 0 minimum b:1:13", "2:2 1 dependentRequired b:3:2", "2:2 1 anyOf b:4:2", "2:3 1 additionalProperties b:2:26", "3:2 1 additionalProperties b:2:26"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBounds checks that hostile schemas and data soon end with an error.
func TestBounds(t *testing.T) {
	chain := func(n int, link func(i int) string) string { // definitions, each with a reference to the next
		var b strings.Builder
		fmt.Fprintf(&b, `{"$ref": "#/$defs/0", "$defs": {`)
		for i := range n {
			fmt.Fprintf(&b, `"%d": %s, `, i, link(i+1))
		}
		fmt.Fprintf(&b, `"%d": {"type": "null"}}}`, n)
		return b.String()
	}
	ref := func(i int) string { return fmt.Sprintf(`{"$ref": "#/$defs/%d"}`, i) }
	for _, c := range []struct {
		name, schema, data string
		kind               schema.Kind
		want               string
	}{
		{"2^40 forms", chain(40, func(i int) string { return fmt.Sprintf(`{"anyOf": [%s, %s]}`, ref(i), ref(i)) }), `1`, schema.Limit, "checking takes more than 100 million steps"},
		{"2^40 forms that hold", strings.Replace(chain(40, func(i int) string { return fmt.Sprintf(`{"allOf": [%s, %s]}`, ref(i), ref(i)) }), `"null"`, `"number"`, 1), `1`, schema.Limit, "checking takes more than 100 million steps"},
		{"a chain of references", chain(20_000, ref), `1`, schema.Limit, "the schema asks more than 5000 levels deep"},
		{"a circle", `{"$ref": "#"}`, `1`, schema.Circle, "the schema refers to itself without end"},
		{"a circle of two", `{"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}`, `1`, schema.Circle, "the schema refers to itself without end"},
		{"a circle that not turns around", `{"not": {"$ref": "#"}}`, `1`, schema.Circle, "the schema refers to itself without end"},
		{"a dynamic circle", `{"$dynamicAnchor": "a", "$dynamicRef": "#a"}`, `1`, schema.Circle, "the schema refers to itself without end"},
		{"a long key asked about often", strings.Replace(chain(20, func(i int) string { return fmt.Sprintf(`{"properties": {}, "allOf": [%s, %s]}`, ref(i), ref(i)) }), `"null"`, `"object"`, 1), `{"` + strings.Repeat("k", 1<<20) + `": 1}`, schema.Limit, "checking takes more than 100 million steps"},
		{"equal items compared with each other", `{"contains": {"enum": [` + strings.Repeat("0,", 9999) + `0]}}`, `[` + strings.Repeat("1,", 9999) + `1]`, schema.Limit, "checking takes more than 100 million steps"},
	} {
		s, err := compile(files{"main.json": []byte(c.schema)})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		start := time.Now()
		_, err = s.Validate(parse(t, []byte(c.data)))
		var all schema.Errors
		if !errors.As(err, &all) || all[0].Kind != c.kind || all[0].Text != c.want || all[0].Hint == "" {
			t.Errorf("%s: got %v", c.name, err)
		}
		t.Logf("%s: %v", c.name, time.Since(start).Round(time.Millisecond))
	}
	for name, text := range map[string]string{
		"schemas":  `{"allOf": [` + strings.Repeat("{},", 1<<18) + `{}]}`,
		"a URL of": `{"$id": "http://x.example/` + strings.Repeat("x", 3000) + `"}`,
	} {
		_, err := compile(files{"main.json": []byte(text)})
		var all schema.Errors
		if !errors.As(err, &all) || all[0].Kind != schema.Limit || !strings.Contains(all[0].Text, name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// A reference that goes further into the data is not a circle.
	s, err := compile(files{"main.json": []byte(`{"items": {"$ref": "#"}, "properties": {"a": {"allOf": [{"$ref": "#"}]}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := told(t, s, `[[[]], {"a": {"a": {}}}]`); got != "" {
		t.Error(got)
	}
}

// TestMany checks that at most a hundred thousand errors are kept.
func TestMany(t *testing.T) {
	s, err := compile(files{"main.json": []byte(`{"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	many := parse(t, []byte(`[`+strings.Repeat(`{"x": 1},`, 150_000)+`1]`))
	_, err = s.Validate(many)
	var all schema.Errors
	if !errors.As(err, &all) || len(all) != 100_000 {
		t.Errorf("%d complaints", len(all))
	}
	// Errors from a schema with very many keys cost no more: each place is looked up once, and suggestions stop.
	var wide strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&wide, `"key%d": true, `, i)
	}
	s, err = compile(files{"main.json": []byte(`{"items": {"properties": {` + strings.TrimSuffix(wide.String(), ", ") + `}, ` + wide.String() + `"additionalProperties": false}}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Validate(many)
	if !errors.As(err, &all) || len(all) != 100_000 {
		t.Errorf("%d complaints of a schema with many keys", len(all))
	}
}

// FuzzSchema checks that any schema and data come to an end, and that each error has a text and a place.
func FuzzSchema(f *testing.F) {
	for _, s := range [][2]string{
		{`{"properties": {"a": {"type": "string", "note": 1}}, "unevaluatedProperties": false}`, `{"a": "b", "c": 1}`},
		{`{"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"items": {"$ref": "#"}}, {"enum": [1, {"a": 1}]}]}}}`, `[[1], 2]`},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x/", "definitions": {"y": {"$id": "#y"}}, "allOf": [{"$ref": "#y"}], "items": [true], "additionalItems": false}`, `[1, 2]`},
		{`{"$dynamicRef": "#a", "$defs": {"b": {"$dynamicAnchor": "a", "propertyNames": {"pattern": "^x"}}}, "dependentSchemas": {"y": {"minProperties": 2}}}`, `{"y": 1}`},
		{`{"if": {"minimum": 1}, "then": {"multipleOf": 2}, "else": {"not": {}}, "oneOf": [{"format": "date"}, {"const": 3}]}`, `3`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, text, data []byte) {
		v, err := document.JSON(data)
		if err != nil {
			return
		}
		var asked []string
		s, err := schema.Compile(noting(files{"main.json": text}, &asked), schema.Place{}, "main.json", "")
		if err == nil {
			_, err = s.Validate(&v)
		}
		var all schema.Errors
		if err == nil || !errors.As(err, &all) {
			return
		}
		if len(all) == 0 {
			t.Fatal("wrong, but nothing is said")
		}
		for _, e := range all {
			if e.Text == "" || e.Line == 0 && e.Kind != schema.Limit && s != nil {
				t.Fatalf("%+v", e)
			}
		}
	})
}
