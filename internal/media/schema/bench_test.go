package schema_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// benchSchema is like the schemas of games: shared definitions, enumerations, two forms of an effect, no unknown
// keywords.
const benchSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "array", "items": {"$ref": "#/$defs/unit"},
	"$defs": {
		"name": {"type": "string", "pattern": "^[a-z_]+[0-9]*$", "maxLength": 40},
		"point": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "minItems": 2},
		"effect": {"oneOf": [
			{"type": "object", "required": ["sound"], "properties": {"kind": {"const": "sound"}, "sound": {"type": "string"}}},
			{"type": "object", "required": ["damage"], "properties": {"kind": {"const": "blow"}, "damage": {"type": "integer", "minimum": 1, "maximum": 1000}}}
		]},
		"unit": {
			"type": "object", "required": ["name", "cost", "class"], "additionalProperties": false,
			"properties": {
				"name": {"$ref": "#/$defs/name"},
				"cost": {"type": "integer", "minimum": 0, "maximum": 10000},
				"speed": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.25},
				"class": {"enum": ["infantry", "tank", "boat", "plane"]},
				"path": {"type": "array", "items": {"$ref": "#/$defs/point"}},
				"tags": {"type": "array", "uniqueItems": true, "items": {"$ref": "#/$defs/name"}},
				"effects": {"type": "array", "items": {"$ref": "#/$defs/effect"}}
			}
		}
	}
}`

// benchData returns a megabyte of data.
func benchData() []byte {
	var b bytes.Buffer
	for i := range 4250 {
		fmt.Fprintf(&b, `%c{"name":"unit_%d","cost":%d,"speed":%g,"class":"tank","path":[[1,2.5],[%d,4],[5,6]],"tags":["fast","red","heavy_%d"],"effects":[{"kind":"sound","sound":"sounds/%d.ogg"},{"kind":"blow","damage":%d},{"kind":"blow","damage":7}],"x":0}`,
			"[,"[min(i, 1)], i, i%10000, float64(i%40)/4+0.25, i, i, i, i%1000+1)
	}
	return append(bytes.ReplaceAll(b.Bytes(), []byte(`,"x":0`), nil), ']')
}

// BenchmarkValidate validates a megabyte against the schema of a game, with this package and with the library.
func BenchmarkValidate(b *testing.B) {
	data := benchData()
	v := parse(b, data)
	ours, err := compile(files{"main.json": []byte(benchSchema)})
	if err != nil {
		b.Fatal(err)
	}
	peer, err := peerCompile(files{"main.json": []byte(benchSchema)})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ours.Validate(v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		plain := v.Plain()
		for b.Loop() {
			if err := peer.Validate(plain); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCompile compiles the same schema. Reading it is not measured.
func BenchmarkCompile(b *testing.B) {
	v := parse(b, []byte(benchSchema))
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		l := schema.Loader{Read: func(schema.Place, string) (document.Value, error) { return *v, nil }}
		for b.Loop() {
			if _, err := schema.Compile(l, schema.Place{}, "main.json", ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		plain := v.Plain()
		for b.Loop() {
			c := jsonschema.NewCompiler()
			c.AssertFormat()
			if err := c.AddResource("kiln:///main.json", plain); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Compile("kiln:///main.json"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func compile(f files) (*schema.Schema, error) {
	return schema.Compile(schema.Loader{
		Read: func(_ schema.Place, path string) (document.Value, error) { return document.JSON(f[path]) },
	}, schema.Place{}, "main.json", "")
}
