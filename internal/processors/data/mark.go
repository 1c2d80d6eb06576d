package data

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/schema"
)

// Kiln's own schema keywords: a string under keyAsset (true or "required", or "optional") is the
// name of an asset; keyProduct selects one of its products, the main one by default.
const (
	keyAsset   = "kiln:asset"
	keyProduct = "kiln:product"
)

// mark is the statement of a schema that strings are names of assets.
type mark struct {
	required bool
	product  string
}

// markOf returns the mark of a schema, or nil. An invalid value of a keyword is an error.
func markOf(file string, o document.Object) (any, error) {
	var m mark
	marked := false
	if v := o.Get(keyAsset); v != nil {
		m.required = v.V == true || v.V == "required"
		marked = m.required || v.V == "optional"
		if !marked && v.V != false {
			return nil, problemAt(diag.DataSchemaInvalid, file, v.Pos, "", "%q must be %s", keyAsset, `true, "required" or "optional"`)
		}
	}
	if v := o.Get(keyProduct); v != nil {
		if m.product, _ = v.V.(string); m.product == "" {
			return nil, problemAt(diag.DataSchemaInvalid, file, v.Pos, "", "%q must be the name of a product", keyProduct)
		}
	}
	if !marked {
		return nil, nil
	}
	return m, nil
}

// place is a string in the data that is the name of an asset.
type place struct {
	value *document.Value
	mark
}

// placesOf returns the marked strings, each product of each once; if two schemas mark one, the stronger mark counts.
func placesOf(notes []schema.Note) []*place {
	type key struct {
		value   *document.Value
		product string
	}
	known := map[key]*place{}
	var places []*place
	for _, n := range notes {
		m, _ := n.Note.(mark)
		if _, isText := n.Value.V.(string); !isText {
			continue // null and others are not names
		}
		p := known[key{n.Value, m.product}]
		if p == nil {
			p = &place{n.Value, m}
			known[key{n.Value, m.product}] = p
			places = append(places, p)
		}
		p.required = p.required || m.required
	}
	return places
}

func (p *place) text() string { return fmt.Sprint(p.value.V) }
