package data

import (
	"testing"

	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// Whatever a schema and its data hold, a job ends with a product or with problems that have codes.
func FuzzSchema(f *testing.F) {
	for _, s := range [][2]string{
		{`{"properties": {"a": {"type": "string", "kiln:asset": true}}}`, `{"a": "b.json"}`},
		{`{"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"items": {"$ref": "#"}}, {"enum": [1]}]}}}`, `[[1], 2]`},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x/", "definitions": {"y": {"$id": "#y"}}, "allOf": [{"$ref": "#y"}]}`, `1`},
		{`{"$dynamicRef": "#a", "$defs": {"b": {"$dynamicAnchor": "a", "propertyNames": {"pattern": "^x"}}}}`, `{"y": 1}`},
		{`{"if": {"minimum": 1}, "then": {"multipleOf": 2}, "else": {"not": {}}, "unevaluatedProperties": false}`, `3`},
		{`{"patternProperties": {"^a": {"contains": {"const": 1}, "prefixItems": [true, false]}}, "$id": "http://x/y"}`, `{"ab": [1, 2]}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, schema, data []byte) {
		r := processortest.Run(t, Processor{}, processortest.Case{
			Files: map[string][]byte{"a.json": data, "s.json": schema}, Asset: "a.json",
			Settings: with(func(s *Settings) { s.Schema = "s.json" }),
		})
		if problems := processortest.Problems(r.Err); (len(problems) > 0) != (r.Err != nil) {
			t.Fatalf("no problem in %v", r.Err)
		} else if r.Err == nil && len(r.Products) != 1 {
			t.Fatalf("%d products", len(r.Products))
		}
		for _, p := range processortest.Problems(r.Err) {
			if p.Code == "" || p.Text == "" {
				t.Fatalf("problem %+v", p)
			}
		}
	})
}
