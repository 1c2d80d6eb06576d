package schema_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maker makes random schemas of one draft, and data that nearly fits them. A schema is a plain value of maps and
// slices, whose text is the output of encoding/json.
//
// The choices make most schemas meaningful. Keys and values come from small pools, so that schema and data match. A
// reference that applies to the same value leads only to a later definition, which makes endless references rare; a
// reference for a value inside leads anywhere. One keyword in three hundred is malformed, and one reference in thirty
// leads to any place.
type maker struct {
	*rand.Rand
	draft int       // 7 or 2020
	words []keyword // that it chooses from
	plain bool      // half of the schemas for inner values accept anything
	sub   string    // the id of definition 2
	left  int       // number of schemas that may still be made
	level int       // definitions up to this index may not be referred to for the same value
	deep  bool
}

var (
	old, latest = []int{7}, []int{2020}
	drafts      = []int{7, 2020}
	draftURLs   = map[int]string{7: "http://json-schema.org/draft-07/schema#", 2020: "https://json-schema.org/draft/2020-12/schema"}
	someKeys    = []string{"a", "b", "c", "dd", "é/~", "~1", "$ref"}
	somePattern = []string{"^a", "b$", "[cd]+", ".", "^.{2}$", "^$", "é"}
	someStrings = []string{"", "a", "ab", "dd", "é", "éa", "2026-11-21", "a@b"}
	someTypes   = []string{"null", "boolean", "integer", "number", "string", "array", "object"}
)

func oneOf[T any](m *maker, list []T) T { return list[m.IntN(len(list))] }

// in returns true once in n times.
func (m *maker) in(n int) bool { return m.IntN(n) == 0 }

// keyword makes the value of a keyword. make may add other keywords to the schema.
type keyword struct {
	name   string
	drafts []int
	make   func(m *maker, s map[string]any) any
}

func schemaValue(m *maker, _ map[string]any) any { return m.below() }
func inPlace(m *maker, _ map[string]any) any     { return m.schema() }
func schemasInPlace(m *maker, _ map[string]any) any {
	list := []any{}
	for range 1 + m.IntN(3) {
		list = append(list, m.schema())
	}
	return list
}
func schemaMap(m *maker, _ map[string]any) any {
	return m.mapOf(someKeys, func() any { return m.below() })
}
func count(m *maker, _ map[string]any) any {
	if m.in(8) {
		return float64(m.IntN(4)) // 2 and 2.0 are equal; encoding/json writes both without a fraction
	}
	return m.IntN(4)
}
func bound(m *maker, _ map[string]any) any { return m.number() }
func text(list []string) func(*maker, map[string]any) any {
	return func(m *maker, _ map[string]any) any { return oneOf(m, list) }
}

// keywords is a function, because a variable would refer to itself: its functions make schemas of keywords.
func keywords() []keyword {
	return []keyword{
		{"type", drafts, func(m *maker, _ map[string]any) any {
			if m.in(3) {
				return anys(m.some(someTypes))
			}
			return oneOf(m, someTypes)
		}},
		{"enum", drafts, func(m *maker, _ map[string]any) any {
			list := []any{}
			for range 1 + m.IntN(3) {
				v := m.any(2)
				if m.draft != 7 && m.in(10) || !slices.ContainsFunc(list, func(x any) bool { return fmt.Sprint(v) == fmt.Sprint(x) }) { // the library refuses these in draft 7, which only advises against them
					list = append(list, v)
				}
			}
			return list
		}},
		{"const", drafts, func(m *maker, _ map[string]any) any { return m.any(2) }},
		{"minimum", drafts, bound},
		{"maximum", drafts, bound},
		{"exclusiveMinimum", drafts, bound},
		{"exclusiveMaximum", drafts, bound},
		{"multipleOf", drafts, func(m *maker, _ map[string]any) any { return oneOf(m, []any{1, 2, 0.5, 0.1, 0.01, 3, 1e-9, 1e20}) }},
		{"minLength", drafts, count},
		{"maxLength", drafts, count},
		{"pattern", drafts, text(somePattern)},
		{"format", drafts, text([]string{"date", "email", "regex", "nonsense", "uuid"})},
		{"minItems", drafts, count},
		{"maxItems", drafts, count},
		{"uniqueItems", drafts, func(m *maker, _ map[string]any) any { return !m.in(4) }},
		{"minProperties", drafts, count},
		{"maxProperties", drafts, count},
		{"required", drafts, func(m *maker, _ map[string]any) any { return anys(m.some(someKeys)) }},
		{"properties", drafts, schemaMap},
		{"properties", drafts, schemaMap}, // listed again, so that it is chosen more often
		{"patternProperties", drafts, func(m *maker, _ map[string]any) any {
			return m.mapOf(somePattern, func() any { return m.below() })
		}},
		{"additionalProperties", drafts, schemaValue},
		{"propertyNames", drafts, schemaValue},
		{"items", drafts, func(m *maker, s map[string]any) any {
			if m.draft == 2020 || m.in(2) {
				return m.below()
			}
			if m.in(2) {
				s["additionalItems"] = m.below()
			}
			return m.belowAll()
		}},
		{"additionalItems", old, schemaValue},
		{"prefixItems", latest, func(m *maker, _ map[string]any) any { return m.belowAll() }},
		{"contains", drafts, func(m *maker, s map[string]any) any {
			if m.draft == 2020 && m.in(2) {
				s[oneOf(m, []string{"minContains", "maxContains"})] = m.IntN(4)
			}
			return m.below()
		}},
		{"allOf", drafts, schemasInPlace},
		{"anyOf", drafts, schemasInPlace},
		{"oneOf", drafts, schemasInPlace},
		{"not", drafts, inPlace},
		{"if", drafts, func(m *maker, s map[string]any) any {
			s[oneOf(m, []string{"then", "else"})] = m.schema()
			return m.schema()
		}},
		{"dependencies", old, func(m *maker, _ map[string]any) any {
			return m.mapOf(someKeys, func() any {
				if m.in(2) {
					return m.schema()
				}
				return anys(m.some(someKeys))
			})
		}},
		{"dependentRequired", latest, func(m *maker, _ map[string]any) any {
			return m.mapOf(someKeys, func() any { return anys(m.some(someKeys)) })
		}},
		{"dependentSchemas", latest, func(m *maker, _ map[string]any) any {
			return m.mapOf(someKeys, func() any { return m.schema() })
		}},
		{"unevaluatedProperties", latest, schemaValue},
		{"unevaluatedItems", latest, schemaValue},
		{"unevaluatedProperties", latest, func(*maker, map[string]any) any { return false }},
		{"unevaluatedItems", latest, func(*maker, map[string]any) any { return false }},
		{"$ref", drafts, func(m *maker, _ map[string]any) any { return m.ref() }},
		{"$ref", drafts, func(m *maker, _ map[string]any) any { return m.ref() }},
		{"$dynamicRef", latest, func(m *maker, _ map[string]any) any {
			return m.ifDeep(oneOf(m, []string{"#dyn", "#dyn", m.sub + "#dyn", "other.json#dyn", "#an0", "#an0", m.sub + "#an0", "#/$defs/d1"}), "#/$defs/d2")
		}},
		{"id", drafts, text([]string{"sub.json", "gone"})}, // an unknown keyword
		{"x-k", drafts, schemaValue},
		{"examples", drafts, func(m *maker, _ map[string]any) any { return []any{m.any(1)} }},
		{"readOnly", drafts, func(m *maker, _ map[string]any) any { return m.in(2) }},
		{"title", drafts, text(someStrings)},
		{"default", drafts, func(m *maker, _ map[string]any) any { return m.any(1) }},
		{"$comment", drafts, text(someStrings)},
		{"contentSchema", latest, schemaValue},
		{"contentEncoding", drafts, text([]string{"base64"})},
		{"contentMediaType", drafts, text([]string{"application/json"})},
	}
}

func anys(list []string) []any {
	all := []any{}
	for _, s := range list {
		all = append(all, s)
	}
	return all
}

// some picks one or more different entries of a list.
func (m *maker) some(list []string) []string {
	all := slices.Clone(list)
	m.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+m.IntN(min(3, len(all)))]
}

func (m *maker) mapOf(keys []string, value func() any) any {
	o := map[string]any{}
	for _, k := range m.some(keys) {
		o[k] = value()
	}
	return o
}

// below returns a schema for a value inside the value. A reference from there may lead anywhere, because a circle
// through it ends with the data.
func (m *maker) below() any {
	if m.plain && m.in(2) {
		return map[string]any{}
	}
	before := m.deep
	m.deep = true
	defer func() { m.deep = before }()
	return m.schema()
}

func (m *maker) belowAll() any {
	list := []any{}
	for range 1 + m.IntN(3) {
		list = append(list, m.below())
	}
	return list
}

func (m *maker) ifDeep(then, other string) string {
	if m.deep {
		return then
	}
	return other
}

// ref returns a reference, usually to a definition.
func (m *maker) ref() string {
	defs := m.definitions()
	switch {
	case m.in(30):
		return oneOf(m, []string{"#/nowhere", "#none", "gone.json", "#/" + defs + "/d9", "http://x.example/gone", "#/%", "#/" + defs + "/d0/", "#/type", "", "%zz", "#an1", "#an2", "x1.json",
			"http://x.example/t", "x1.json#an1", "#/properties/a", "other.json#/x-k"})
	case m.level == 3 && m.deep:
		return oneOf(m, []string{"#", "#leaf", "#/" + defs + "/d1", "main.json", "main.json#an0", "main.json#/" + defs + "/d2", "other.json#leaf"})
	case m.level == 3: // for the same value
		return "#/" + defs + "/d1"
	case !m.deep && m.level < 2:
		return "#/" + defs + "/d" + strconv.Itoa(m.level+1+m.IntN(2-m.level))
	case !m.deep:
		return oneOf(m, []string{"other.json#/" + defs + "/leaf", "other.json#leaf"})
	case m.level == 2: // references in definition 2 are relative to it
		return oneOf(m, []string{"#", "#/" + defs + "/inner", "#/" + defs + "/d1", "other.json", "other.json#leaf", m.sub, m.sub + "#", m.sub + "#/" + defs + "/inner"})
	}
	return oneOf(m, []string{"#", "#/" + defs + "/d0", "#/" + defs + "/d1", "#/" + defs + "/d2", "#an0", m.sub, m.sub + "#", m.sub + "#/" + defs + "/inner", "other.json", "other.json#leaf",
		"#/" + strings.Replace(defs, "d", "%64", 1) + "/d0", "#/x-k", "#/x-k/items", "#/" + defs + "/d1/properties/%C3%A9~1~0", "#/" + defs + "/d1/properties/~01"})
}

func (m *maker) definitions() string {
	if m.draft == 2020 {
		return "$defs"
	}
	return "definitions"
}

// schema makes a schema for the current value.
func (m *maker) schema() any {
	if m.left--; m.left < 0 || m.in(12) {
		if m.in(2) {
			return !m.in(3)
		}
		return map[string]any{}
	}
	s := map[string]any{}
	for range 1 + m.IntN(4) {
		k := oneOf(m, m.words)
		s[k.name] = k.make(m, s)
		if m.in(300) {
			s[k.name] = m.junk()
		}
	}
	if m.draft == 7 && s["$ref"] != nil {
		delete(s, "const") // the library checks it, but draft 7 ignores keywords beside $ref
	}
	if m.in(60) {
		m.name(s)
	}
	return s
}

// name gives a schema an id or anchor for references.
func (m *maker) name(s map[string]any) {
	switch {
	case m.in(3):
		s["$id"] = oneOf(m, []string{"x1.json", "http://x.example/t", "/x2.json"})
	case m.draft == 2020 && m.in(2):
		s["$dynamicAnchor"] = oneOf(m, []string{"dyn", "dyn2"})
	default:
		m.anchor(s, oneOf(m, []string{"an1", "an2", "an3"}))
	}
}

// themes are groups of keywords that belong together, and would rarely be chosen together. A third of the schemas use
// one theme.
var themes = map[string][]string{
	"evaluated": {"properties", "patternProperties", "additionalProperties", "items", "additionalItems", "prefixItems", "contains", "allOf", "anyOf", "oneOf", "if", "not", "$ref", "dependentSchemas",
		"unevaluatedProperties", "unevaluatedItems", "type"},
	"dynamic": {"$dynamicRef", "$ref", "properties", "additionalProperties", "items", "allOf", "anyOf", "type", "minimum", "maxLength", "minItems", "required"},
}

// choose sets the keywords for a document, and returns its theme.
func (m *maker) choose() string {
	theme := oneOf(m, []string{"", "", "", "", "evaluated", "dynamic"})
	m.words, m.plain = nil, theme != ""
	for _, k := range keywords() {
		if slices.Contains(k.drafts, m.draft) && (theme == "" || slices.Contains(themes[theme], k.name)) {
			m.words = append(m.words, k)
		}
	}
	return theme
}

// document returns a whole schema with its definitions. Definition 1 has an anchor, 2 an id.
func (m *maker) document() map[string]any {
	theme := m.choose()
	m.sub = oneOf(m, []string{"sub.json", "sub.json", "sub.json", "http://x.example/s", "urn:x:y"})
	root, ok := m.inLevel(-1).(map[string]any)
	if !ok {
		root = map[string]any{"type": "object"}
	}
	defs := map[string]any{}
	for i := range 3 {
		d, ok := m.inLevel(i).(map[string]any)
		if !ok {
			d = map[string]any{}
		}
		switch i {
		case 1:
			m.anchor(d, "an0")
			props, _ := d["properties"].(map[string]any)
			if props == nil {
				props = map[string]any{}
			}
			props["é/~"], props["~1"] = m.below(), m.below()
			d["properties"] = props
		case 2:
			m.resource(d)
		}
		defs["d"+strconv.Itoa(i)] = d
	}
	root[m.definitions()] = defs
	root["x-k"] = map[string]any{"items": map[string]any{"type": oneOf(m, someTypes)}}
	if theme == "evaluated" && m.draft == 2020 {
		root[oneOf(m, []string{"unevaluatedProperties", "unevaluatedItems"})] = oneOf(m, []any{false, false, map[string]any{"type": "string"}})
	}
	if theme == "dynamic" {
		m.left = 6
		root["properties"] = map[string]any{"a": m.below(), "b": m.below()}
		root["items"] = m.below()
	}
	if m.draft != 2020 || m.in(2) {
		root["$schema"] = draftURLs[m.draft]
	}
	m.dynamic(root)
	return root
}

func (m *maker) inLevel(level int) any {
	m.level, m.left = level, 8
	return m.schema()
}

func (m *maker) anchor(s map[string]any, name string) {
	switch {
	case m.draft == 2020 && m.in(3):
		s["$dynamicAnchor"] = name
	case m.draft == 2020:
		s["$anchor"] = name
	default:
		s["$id"] = "#" + name
	}
}

func (m *maker) dynamic(s map[string]any) {
	if m.draft == 2020 && !m.in(5) {
		s["$dynamicAnchor"] = "dyn"
	}
}

// resource gives a schema an id, and targets for references.
func (m *maker) resource(s map[string]any) {
	s["$id"] = m.sub
	if m.in(5) {
		s["$id"] = m.sub + "#"
	}
	inner := map[string]any{"type": oneOf(m, someTypes)}
	m.dynamic(oneOf(m, []map[string]any{s, inner}))
	defs := m.simple()
	defs["inner"] = inner
	s[m.definitions()] = defs
	if m.in(12) {
		s["$schema"] = draftURLs[oneOf(m, drafts)]
	}
	if s["$ref"] == nil && m.in(2) { // draft 7 ignores an id beside $ref, and the anchor would exist twice
		m.anchor(inner, "an0")
	}
}

// simple returns definitions with the names that references use.
func (m *maker) simple() map[string]any {
	return map[string]any{"leaf": map[string]any{"type": anys(m.some(someTypes))}, "d0": map[string]any{"minimum": 1}, "d1": map[string]any{"maxLength": 1}, "d2": map[string]any{"minItems": 1}}
}

// other returns a second file: the definitions that the first file refers to, and a leaf.
func (m *maker) other() map[string]any {
	m.level, m.left, m.deep = 3, 6, false
	s, _ := m.schema().(map[string]any)
	if s == nil {
		s = map[string]any{}
	}
	defs := m.simple()
	m.anchor(defs["leaf"].(map[string]any), "leaf")
	s[m.definitions()] = defs
	if m.draft != 2020 || m.in(2) {
		s["$schema"] = draftURLs[m.draft]
	}
	m.dynamic(s)
	return s
}

func (m *maker) junk() any {
	return oneOf(m, []any{nil, true, false, -1, 0, 1.5, 3, 1e30, "", "a", "[", []any{}, []any{"a", "a"}, []any{1}, []any{map[string]any{}}, map[string]any{}, map[string]any{"a": 1},
		map[string]any{"[": true}, map[string]any{"a": []any{}}, map[string]any{"a": map[string]any{}}})
}

// misplaced returns a copy of a document where one part has replaced another one, or is under another keyword.
func (m *maker) misplaced(v any) any {
	parts := []any{v}
	for i := 0; i < len(parts); i++ {
		switch x := parts[i].(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(x)) {
				parts = append(parts, x[k])
			}
		case []any:
			parts = append(parts, x...)
		}
	}
	part := oneOf(m, parts)
	if m.in(3) {
		part = m.junk()
	}
	switch x := oneOf(m, parts).(type) {
	case map[string]any:
		if len(x) == 0 {
			return v
		}
		k := oneOf(m, slices.Sorted(maps.Keys(x)))
		if name := oneOf(m, m.words).name; m.in(2) && name != k {
			x[name] = x[k]
			delete(x, k)
		} else if !reaches(part, x) {
			x[k] = part
		}
	case []any:
		if len(x) > 0 && !reaches(part, x) {
			x[m.IntN(len(x))] = part
		}
	}
	return v
}

// reaches reports whether x is inside v, so that putting v into x would make a cycle.
func reaches(v, x any) bool {
	switch y := v.(type) {
	case map[string]any:
		if z, ok := x.(map[string]any); ok && reflect.ValueOf(y).Pointer() == reflect.ValueOf(z).Pointer() {
			return true
		}
		for _, inner := range y {
			if reaches(inner, x) {
				return true
			}
		}
	case []any:
		if z, ok := x.([]any); ok && len(y) > 0 && len(z) > 0 && &y[0] == &z[0] {
			return true
		}
		return slices.ContainsFunc(y, func(inner any) bool { return reaches(inner, x) })
	}
	return false
}

func (m *maker) number() any {
	return oneOf(m, []any{-1, 0, 1, 2, 3, 1.5, 0.1, 0.3, 2.0, 1e3, 9007199254740993, uint64(1<<63) + 1, 1e20, -0.01})
}

// any returns random data with at most depth levels.
func (m *maker) any(depth int) any {
	n := 8
	if depth == 0 {
		n = 6
	}
	switch m.IntN(n) {
	case 0:
		return nil
	case 1:
		return m.in(2)
	case 2, 3:
		return m.number()
	case 4, 5:
		return oneOf(m, someStrings)
	case 6:
		list := []any{}
		for range m.IntN(4) {
			list = append(list, m.any(depth-1))
		}
		return list
	}
	o := map[string]any{}
	for range m.IntN(4) {
		o[oneOf(m, someKeys)] = m.any(depth - 1)
	}
	return o
}

// data makes a value that probably fits a schema inside root.
func (m *maker) data(schema any, root map[string]any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth == 0 || m.in(15) {
		return m.any(min(depth, 2))
	}
	if v, ok := s["const"]; ok && !m.in(4) {
		return v
	}
	if list, _ := s["enum"].([]any); len(list) > 0 && !m.in(4) {
		return oneOf(m, list)
	}
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := s[k].(string); ok && m.in(2) {
			return m.data(target(root, ref), root, depth-1)
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		if list, _ := s[k].([]any); len(list) > 0 && m.in(3) {
			return m.data(oneOf(m, list), root, depth-1)
		}
	}
	switch m.typeFor(s) {
	case "null":
		return nil
	case "boolean":
		return m.in(2)
	case "integer":
		return m.IntN(4)
	case "number":
		for _, k := range []string{"minimum", "maximum", "multipleOf", "exclusiveMinimum"} {
			if v, ok := s[k]; ok && m.in(2) {
				return v
			}
		}
		return m.number()
	case "string":
		return oneOf(m, someStrings)
	case "array":
		return m.array(s, root, depth)
	}
	return m.object(s, root, depth)
}

// typeFor returns a type that a schema mentions.
func (m *maker) typeFor(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		if name, ok := oneOf(m, append(t, "object")).(string); ok {
			return name
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s)) {
		if m.in(4) {
			continue
		}
		switch k {
		case "properties", "required", "patternProperties", "additionalProperties", "unevaluatedProperties", "minProperties", "maxProperties", "dependencies", "dependentSchemas", "dependentRequired", "propertyNames":
			return "object"
		case "items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "additionalItems", "unevaluatedItems":
			return "array"
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			return "number"
		case "minLength", "maxLength", "pattern", "format":
			return "string"
		}
	}
	return oneOf(m, someTypes)
}

func (m *maker) array(s, root map[string]any, depth int) any {
	list := []any{}
	prefix, _ := s["prefixItems"].([]any)
	if items, ok := s["items"].([]any); ok {
		prefix = items
	}
	for i := range m.IntN(5) {
		var item any
		switch {
		case i < len(prefix):
			item = prefix[i]
		case s["contains"] != nil && m.in(2):
			item = s["contains"]
		case s["items"] != nil:
			item = s["items"]
		case s["additionalItems"] != nil:
			item = s["additionalItems"]
		default:
			item = s["unevaluatedItems"]
		}
		list = append(list, m.data(item, root, depth-1))
	}
	return list
}

func (m *maker) object(s, root map[string]any, depth int) any {
	o := map[string]any{}
	props, _ := s["properties"].(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(props)) {
		if !m.in(3) {
			o[k] = m.data(props[k], root, depth-1)
		}
	}
	required, _ := s["required"].([]any)
	for _, k := range required {
		if name, ok := k.(string); ok && o[name] == nil && !m.in(8) {
			o[name] = m.any(1)
		}
	}
	for m.in(3) {
		o[oneOf(m, someKeys)] = m.data(s["additionalProperties"], root, depth-1)
	}
	return o
}

// target returns the target of a simple reference in a schema.
func target(root map[string]any, ref string) any {
	if ref == "#" {
		return root
	}
	var v any = root
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	for key := range strings.SplitSeq(path, "/") {
		o, _ := v.(map[string]any)
		v = o[key]
	}
	return v
}
