package data

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
	"github.com/kiln-pipeline/kiln/internal/diag"
)

// Kiln's own schema keywords: a string under keyAsset (true or "required", or "optional") names an
// asset; keyProduct names which of its products is meant, the main one by default.
const (
	keyAsset   = "kiln:asset"
	keyProduct = "kiln:product"
)

// checkMark refuses a keyword with a value that means nothing.
func checkMark(file string, m *document.Member) error {
	switch v := m.Value.V.(type) {
	case bool:
		if m.Key == keyAsset {
			return nil
		}
	case string:
		if m.Key == keyProduct && v != "" || m.Key == keyAsset && (v == "required" || v == "optional") {
			return nil
		}
	}
	want := `true, "required" or "optional"`
	if m.Key == keyProduct {
		want = "the name of a product"
	}
	return problemAt(diag.DataSchemaInvalid, file, m.Value.Pos, "", "%q must be %s", m.Key, want)
}

// mark is a schema's statement that strings there name assets.
type mark struct {
	required bool
	product  string
}

// Validate accepts everything: whether an asset is there is asked once the whole data is
// known to be valid, for a string in a branch of anyOf that fails elsewhere names nothing.
func (*mark) Validate(*jsonschema.ValidatorContext, any) {}

func compileMark(_ *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
	m := &mark{}
	switch v := obj[keyAsset].(type) {
	case bool:
		if !v {
			return nil, nil
		}
		m.required = true
	case string:
		m.required = v == "required"
	default:
		return nil, nil
	}
	m.product, _ = obj[keyProduct].(string)
	return m, nil
}

// place is a string in the data that names an asset.
type place struct {
	value *document.Value
	mark
}

type (
	visit struct {
		schema *jsonschema.Schema
		value  *document.Value
	}
	placeKey struct {
		value   *document.Value
		product string
	}
)

// markWalk walks over valid data and its schema side by side, and into those subschemas that
// hold for a value: what JSON schema calls collecting annotations, which the validator does
// not do. Keywords "unevaluated..." are not followed.
type markWalk struct {
	seen   map[visit]bool
	places map[placeKey]*place
	order  []*place
}

func (w *markWalk) walk(s *jsonschema.Schema, v *document.Value, plain any) {
	if s == nil || w.seen[visit{s, v}] {
		return
	}
	w.seen[visit{s, v}] = true
	for _, ext := range s.Extensions {
		if m, ok := ext.(*mark); ok {
			w.add(m, v)
		}
	}
	w.walk(s.Ref, v, plain)
	w.walk(s.RecursiveRef, v, plain)
	if s.DynamicRef != nil {
		w.walk(s.DynamicRef.Ref, v, plain)
	}
	for _, sub := range s.AllOf {
		w.walk(sub, v, plain)
	}
	for _, sub := range slices.Concat(s.AnyOf, s.OneOf) {
		w.ifValid(sub, v, plain)
	}
	if s.If != nil {
		if w.ifValid(s.If, v, plain) {
			w.walk(s.Then, v, plain)
		} else {
			w.walk(s.Else, v, plain)
		}
	}
	switch x := v.V.(type) {
	case document.Object:
		w.object(s, x, v, plain)
	case []document.Value:
		w.array(s, x, plain)
	}
}

// ifValid walks into a subschema if the value fits it.
func (w *markWalk) ifValid(s *jsonschema.Schema, v *document.Value, plain any) bool {
	if s.Validate(plain) != nil {
		return false
	}
	w.walk(s, v, plain)
	return true
}

func (w *markWalk) object(s *jsonschema.Schema, o document.Object, v *document.Value, plain any) {
	members, _ := plain.(map[string]any)
	patterns := slices.SortedFunc(maps.Keys(s.PatternProperties), func(a, b jsonschema.Regexp) int {
		return strings.Compare(a.String(), b.String())
	})
	for i := range o {
		key, value, evaluated := o[i].Key, &o[i].Value, false
		if sub, ok := s.Properties[key]; ok {
			w.walk(sub, value, members[key])
			evaluated = true
		}
		for _, p := range patterns {
			if p.MatchString(key) {
				w.walk(s.PatternProperties[p], value, members[key])
				evaluated = true
			}
		}
		if rest, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !evaluated {
			w.walk(rest, value, members[key])
		}
		w.walk(s.DependentSchemas[key], v, plain)
		if sub, ok := s.Dependencies[key].(*jsonschema.Schema); ok {
			w.walk(sub, v, plain)
		}
	}
}

func (w *markWalk) array(s *jsonschema.Schema, list []document.Value, plain any) {
	items, _ := plain.([]any)
	prefix, rest := s.PrefixItems, s.Items2020
	switch x := s.Items.(type) { // up to draft 2019-09
	case *jsonschema.Schema:
		rest = x
	case []*jsonschema.Schema:
		prefix = x
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	for i := range list {
		if i < len(prefix) {
			w.walk(prefix[i], &list[i], items[i])
		} else {
			w.walk(rest, &list[i], items[i])
		}
		if s.Contains != nil {
			w.ifValid(s.Contains, &list[i], items[i])
		}
	}
}

// add notes a place; where two schemas say so, the stronger one counts.
func (w *markWalk) add(m *mark, v *document.Value) {
	if _, ok := v.V.(string); !ok {
		return // null and the like name nothing
	}
	key := placeKey{v, m.product}
	if p := w.places[key]; p != nil {
		p.required = p.required || m.required
		return
	}
	p := &place{v, *m}
	w.places[key] = p
	w.order = append(w.order, p)
}

func (p *place) text() string { return fmt.Sprint(p.value.V) }
