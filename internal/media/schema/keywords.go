package schema

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// keyword is a row of the table that says which keywords a draft has, what values they may have, and what
// they mean. The table stands for the metaschemas, whose complaints would be about the metaschema.
type keyword struct {
	name     string
	from, to draft // the drafts that have it
	take     func(c *compiler, n *node, m *document.Member)
	rank     int
}

// keywordsOf is the table of one draft. A row's rank is its place: assertions are asked in this order.
func keywordsOf(d draft) map[string]*keyword {
	table := map[string]*keyword{}
	for _, rows := range [][]keyword{assertions(), applicators(), others()} {
		for i := range rows {
			if k := &rows[i]; k.from <= d && d <= k.to {
				k.rank = len(table)
				table[k.name] = k
			}
		}
	}
	return table
}

// assertions judge a value by itself. The first four are the last that is asked where they fail.
func assertions() []keyword {
	chars := func(r *run, v any) int { s, _ := v.(string); r.spend(len(s) / 64); return utf8.RuneCountInString(s) }
	items := func(_ *run, v any) int { l, _ := v.([]document.Value); return len(l) }
	members := func(_ *run, v any) int { o, _ := v.(document.Object); return len(o) }
	return []keyword{
		{name: "type", from: draft4, to: newest, take: takeType},
		{name: "const", from: draft6, to: newest, take: takeConst},
		{name: "enum", from: draft4, to: newest, take: takeEnum},
		{name: "format", from: draft4, to: newest, take: takeFormat},

		{name: "minimum", from: draft4, to: draft4, take: boundOf4("exclusiveMinimum", bound(1, true, "must be at least"), bound(1, false, "must be more than"))},
		{name: "maximum", from: draft4, to: draft4, take: boundOf4("exclusiveMaximum", bound(-1, true, "may be at most"), bound(-1, false, "must be less than"))},
		{name: "exclusiveMinimum", from: draft4, to: draft4, take: exclusiveOf4("minimum")},
		{name: "exclusiveMaximum", from: draft4, to: draft4, take: exclusiveOf4("maximum")},
		{name: "minimum", from: draft6, to: newest, take: bound(1, true, "must be at least")},
		{name: "maximum", from: draft6, to: newest, take: bound(-1, true, "may be at most")},
		{name: "exclusiveMinimum", from: draft6, to: newest, take: bound(1, false, "must be more than")},
		{name: "exclusiveMaximum", from: draft6, to: newest, take: bound(-1, false, "must be less than")},
		{name: "multipleOf", from: draft4, to: newest, take: takeMultipleOf},

		{name: "minLength", from: draft4, to: newest, take: sized(typeString, 1, "character", chars)},
		{name: "maxLength", from: draft4, to: newest, take: sized(typeString, -1, "character", chars)},
		{name: "pattern", from: draft4, to: newest, take: takePattern},
		{name: "minItems", from: draft4, to: newest, take: sized(typeArray, 1, "item", items)},
		{name: "maxItems", from: draft4, to: newest, take: sized(typeArray, -1, "item", items)},
		{name: "uniqueItems", from: draft4, to: newest, take: takeUniqueItems},
		{name: "minProperties", from: draft4, to: newest, take: sized(typeObject, 1, "key", members)},
		{name: "maxProperties", from: draft4, to: newest, take: sized(typeObject, -1, "key", members)},
	}
}

// applicators have schemas inside.
func applicators() []keyword {
	return []keyword{
		{name: "allOf", from: draft4, to: newest, take: list(func(n *node) *[]*node { return &n.allOf })},
		{name: "anyOf", from: draft4, to: newest, take: list(func(n *node) *[]*node { return &n.anyOf })},
		{name: "oneOf", from: draft4, to: newest, take: list(func(n *node) *[]*node { return &n.oneOf })},
		{name: "not", from: draft4, to: newest, take: one(func(n *node) **node { return &n.not })},
		{name: "if", from: draft7, to: newest, take: one(func(n *node) **node { return &n.when })},
		{name: "then", from: draft7, to: newest, take: one(func(n *node) **node { return &n.then })},
		{name: "else", from: draft7, to: newest, take: one(func(n *node) **node { return &n.els })},

		{name: "required", from: draft4, to: newest, take: func(c *compiler, n *node, m *document.Member) { n.required = c.strings(&m.Value) }},
		{name: "properties", from: draft4, to: newest, take: takeProperties},
		{name: "patternProperties", from: draft4, to: newest, take: takePatternProperties},
		{name: "additionalProperties", from: draft4, to: newest, take: one(func(n *node) **node { return &n.additional })},
		{name: "propertyNames", from: draft6, to: newest, take: one(func(n *node) **node { return &n.names })},
		{name: "dependencies", from: draft4, to: newest, take: takeDependencies(true, true)}, // still in use after draft 7
		{name: "dependentRequired", from: draft2019, to: newest, take: takeDependencies(true, false)},
		{name: "dependentSchemas", from: draft2019, to: newest, take: takeDependencies(false, true)},
		{name: "unevaluatedProperties", from: draft2019, to: newest, take: one(func(n *node) **node { return &n.unevaluatedProperties })},

		{name: "items", from: draft4, to: draft2019, take: takeItems},
		{name: "additionalItems", from: draft4, to: draft2019, take: takeAdditionalItems},
		{name: "prefixItems", from: draft2020, to: newest, take: list(func(n *node) *[]*node { return &n.prefix })},
		{name: "items", from: draft2020, to: newest, take: takeRest},
		{name: "contains", from: draft6, to: newest, take: one(func(n *node) **node { return &n.contains })},
		{name: "minContains", from: draft2019, to: newest, take: func(c *compiler, n *node, m *document.Member) { n.minContains, _ = c.count(m) }},
		{name: "maxContains", from: draft2019, to: newest, take: func(c *compiler, n *node, m *document.Member) { n.maxContains, _ = c.count(m) }},
		{name: "unevaluatedItems", from: draft2019, to: newest, take: one(func(n *node) **node { return &n.unevaluatedItems })},
	}
}

// others name schemas, refer to them, or say something to people.
func others() []keyword {
	schemas := func(c *compiler, _ *node, m *document.Member) { c.schemaMap(m) }
	flag := func(c *compiler, _ *node, m *document.Member) { c.is(&m.Value, typeBoolean) }
	words := func(c *compiler, _ *node, m *document.Member) { c.is(&m.Value, typeString) }
	return []keyword{
		{name: "id", from: draft4, to: draft4, take: words},
		{name: "$id", from: draft6, to: newest, take: takeID},
		{name: "$schema", from: draft4, to: newest, take: takeSchema},
		{name: "$ref", from: draft4, to: newest, take: takeRef},
		{name: "$recursiveRef", from: draft2019, to: draft2019, take: takeRef},
		{name: "$recursiveRef", from: draft2020, to: newest, take: func(c *compiler, _ *node, m *document.Member) { c.uri(&m.Value, "uri-reference") }},
		{name: "$dynamicRef", from: draft2020, to: newest, take: takeRef},
		{name: "$anchor", from: draft2019, to: newest, take: takeAnchor},
		{name: "$dynamicAnchor", from: draft2020, to: newest, take: takeAnchor},
		{name: "$recursiveAnchor", from: draft2019, to: draft2019, take: takeRecursiveAnchor},
		{name: "$recursiveAnchor", from: draft2020, to: newest, take: func(c *compiler, _ *node, m *document.Member) { c.anchorName(m) }},
		{name: "$vocabulary", from: draft2019, to: newest, take: takeVocabulary},
		{name: "$defs", from: draft2019, to: newest, take: schemas},
		{name: "definitions", from: draft4, to: newest, take: schemas}, // still in use after draft 7

		{name: "$comment", from: draft7, to: newest, take: words},
		{name: "title", from: draft4, to: newest, take: words},
		{name: "description", from: draft4, to: newest, take: words},
		{name: "readOnly", from: draft7, to: newest, take: flag},
		{name: "writeOnly", from: draft7, to: newest, take: flag},
		{name: "deprecated", from: draft2019, to: newest, take: flag},
		{name: "examples", from: draft6, to: newest, take: func(c *compiler, _ *node, m *document.Member) { c.is(&m.Value, typeArray) }},
		{name: "contentEncoding", from: draft7, to: newest, take: words},
		{name: "contentMediaType", from: draft7, to: newest, take: words},
		{name: "contentSchema", from: draft2019, to: newest, take: func(c *compiler, _ *node, m *document.Member) { c.schema(&m.Value) }},
	}
}

func (c *compiler) assert(n *node, a assertion) {
	a.rank = c.rank
	n.asserts = append(n.asserts, a)
}

func takeType(c *compiler, n *node, m *document.Member) {
	var want types
	add := func(v *document.Value) {
		name, isText := v.V.(string)
		t := typeNamed(name)
		if !isText || t == 0 {
			c.wrong(v, new(run).notAmong(v.V, typeList))
		} else if want&t != 0 {
			c.wrong(v, fmt.Sprintf("is %q again", name))
		}
		want |= t
	}
	switch x := m.Value.V.(type) {
	case string:
		add(&m.Value)
	case []document.Value:
		c.atLeastOne(&m.Value)
		for i := range x {
			c.within(i, func() { add(&x[i]) })
		}
	default:
		c.is(&m.Value, typeString|typeArray)
	}
	c.assert(n, assertion{
		keyword: m.Key, on: typeAny, last: true,
		holds: func(_ *run, v *document.Value) bool { return typeOf(v.V)&want != 0 },
		says:  func(_ *run, v *document.Value) string { return wrongType(v.V, want) },
	})
}

func takeConst(c *compiler, n *node, m *document.Member) {
	want := &m.Value
	c.assert(n, assertion{
		keyword: m.Key, on: typeAny, last: true,
		holds: func(r *run, v *document.Value) bool { return r.equal(v, want) },
		says: func(_ *run, v *document.Value) string {
			if show(v.V) == show(want.V) { // of arrays and objects no more is told
				return fmt.Sprintf("is %s, but not the one that it must be", show(v.V))
			}
			return fmt.Sprintf("is %s, but must be %s", show(v.V), show(want.V))
		},
	})
}

func takeEnum(c *compiler, n *node, m *document.Member) {
	if !c.is(&m.Value, typeArray) {
		return
	}
	want, _ := m.Value.V.([]document.Value)
	if c.res.draft <= draft6 {
		c.atLeastOne(&m.Value)
		c.unique(&m.Value)
	}
	names, others := map[string]bool{}, []*document.Value(nil)
	for i := range want {
		if s, ok := want[i].V.(string); ok {
			names[s] = true
		} else {
			others = append(others, &want[i])
		}
	}
	c.assert(n, assertion{
		keyword: m.Key, on: typeAny, last: true,
		holds: func(r *run, v *document.Value) bool {
			if s, ok := v.V.(string); ok {
				return r.spend(len(s)/64) && names[s]
			}
			return slices.ContainsFunc(others, func(x *document.Value) bool { return r.equal(v, x) })
		},
		says: func(r *run, v *document.Value) string { return r.notAmong(v.V, want) },
	})
}

func takeFormat(c *compiler, n *node, m *document.Member) {
	name, ok := c.text(&m.Value)
	valid := formatOf(name)
	if !ok || valid == nil {
		return
	}
	c.assert(n, assertion{
		keyword: m.Key, on: typeString, last: true,
		holds: func(r *run, v *document.Value) bool {
			s, _ := v.V.(string)
			return r.spend(len(s)/16) && valid(s)
		},
		says: func(_ *run, v *document.Value) string { return fmt.Sprintf("%s is no %s", show(v.V), name) },
	})
}

type taker = func(c *compiler, n *node, m *document.Member)

// bound is a limit of numbers: sign is 1 for the lowest that may be, and -1 for the highest.
func bound(sign int, orEqual bool, words string) taker {
	return func(c *compiler, n *node, m *document.Member) {
		if !c.is(&m.Value, typeNumber) {
			return
		}
		limit := m.Value.V
		c.assert(n, assertion{
			keyword: m.Key, on: typeNumber,
			holds: func(_ *run, v *document.Value) bool {
				side := compare(v.V, limit) * sign
				return side > 0 || orEqual && side == 0
			},
			says: func(_ *run, v *document.Value) string {
				return fmt.Sprintf("is %s, but %s %s", digits(v.V), words, digits(limit))
			},
		})
	}
}

// boundOf4 is a limit in draft 4, which another keyword may make exclusive.
func boundOf4(exclusive string, plain, strict taker) taker {
	return func(c *compiler, n *node, m *document.Member) {
		if v := n.value.At(exclusive); v != nil && v.V == true {
			strict(c, n, &document.Member{Key: exclusive, KeyPos: m.KeyPos, Value: m.Value})
			return
		}
		plain(c, n, m)
	}
}

func exclusiveOf4(limit string) taker {
	return func(c *compiler, n *node, m *document.Member) {
		if c.is(&m.Value, typeBoolean) && n.value.At(limit) == nil {
			c.wrong(&m.Value, fmt.Sprintf("%s is missing, which %q needs", limit, m.Key))
		}
	}
}

func takeMultipleOf(c *compiler, n *node, m *document.Member) {
	if !c.is(&m.Value, typeNumber) {
		return
	}
	of := m.Value.V
	if compare(of, int64(0)) <= 0 {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but must be more than 0", digits(of)))
		return
	}
	c.assert(n, assertion{
		keyword: m.Key, on: typeNumber,
		holds: func(r *run, v *document.Value) bool { return r.multiple(v.V, of) },
		says: func(_ *run, v *document.Value) string {
			return fmt.Sprintf("is %s, but must be a multiple of %s", digits(v.V), digits(of))
		},
	})
}

// sized is a limit of how much is in a value: sign is 1 for the least, and -1 for the most.
func sized(on types, sign int, noun string, measure func(*run, any) int) taker {
	words := map[int]string{1: "must have at least", -1: "may have at most"}[sign]
	return func(c *compiler, n *node, m *document.Member) {
		limit, ok := c.count(m)
		if !ok {
			return
		}
		c.assert(n, assertion{
			keyword: m.Key, on: on,
			holds: func(r *run, v *document.Value) bool { return (measure(r, v.V)-limit)*sign >= 0 },
			says: func(r *run, v *document.Value) string {
				return fmt.Sprintf("has %s, but %s %s", count(measure(r, v.V), noun), words, digits(m.Value.V))
			},
		})
	}
}

func takePattern(c *compiler, n *node, m *document.Member) {
	p, ok := c.text(&m.Value)
	if !ok {
		return
	}
	expr := c.pattern(p, m.Value.Pos)
	c.assert(n, assertion{
		keyword: m.Key, on: typeString,
		holds: func(r *run, v *document.Value) bool {
			s, _ := v.V.(string)
			return expr.matches(r, s)
		},
		says: func(_ *run, v *document.Value) string {
			return fmt.Sprintf("%s does not match the pattern %s", show(v.V), shorten(p))
		},
	})
}

func takeUniqueItems(c *compiler, n *node, m *document.Member) {
	if !c.is(&m.Value, typeBoolean) || m.Value.V == false {
		return
	}
	twins := func(r *run, v *document.Value) (int, int) { l, _ := v.V.([]document.Value); return r.twins(l) }
	c.assert(n, assertion{
		keyword: m.Key, on: typeArray,
		holds: func(r *run, v *document.Value) bool { i, _ := twins(r, v); return i < 0 },
		says: func(r *run, v *document.Value) string {
			i, j := twins(r, v)
			return fmt.Sprintf("items %d and %d are equal, but no two may be", i, j)
		},
	})
}

func one(field func(*node) **node) taker {
	return func(c *compiler, n *node, m *document.Member) { *field(n) = c.child(m) }
}

func list(field func(*node) *[]*node) taker {
	return func(c *compiler, n *node, m *document.Member) {
		if c.is(&m.Value, typeArray) {
			c.atLeastOne(&m.Value)
			*field(n) = c.schemaList(&m.Value)
		}
	}
}

func takeProperties(c *compiler, n *node, m *document.Member) {
	n.properties = c.schemaMap(m)
	n.known, _ = m.Value.V.(document.Object)
}

func takePatternProperties(c *compiler, n *node, m *document.Member) {
	schemas := c.schemaMap(m)
	o, _ := m.Value.V.(document.Object)
	for i := range o {
		n.patterns = append(n.patterns, patternSchema{c.pattern(o[i].Key, o[i].KeyPos), schemas[o[i].Key]})
	}
}

func takeDependencies(lists, schemas bool) taker {
	return func(c *compiler, n *node, m *document.Member) {
		if !c.is(&m.Value, typeObject) {
			return
		}
		o, _ := m.Value.V.(document.Object)
		for i := range o {
			c.within(o[i].Key, func() {
				d := dependency{keyword: m.Key, key: o[i].Key, at: o[i].Value.Pos}
				if _, isList := o[i].Value.V.([]document.Value); lists && (isList || !schemas) {
					d.needs = c.strings(&o[i].Value)
				} else {
					d.schema = c.schema(&o[i].Value)
				}
				n.depends = append(n.depends, d)
			})
		}
	}
}

// takeItems is items up to draft 2019-09: one schema for all items, or a list for the first ones.
func takeItems(c *compiler, n *node, m *document.Member) {
	if _, isList := m.Value.V.([]document.Value); !isList {
		n.rest = c.schema(&m.Value)
		return
	}
	c.atLeastOne(&m.Value)
	n.prefix = c.schemaList(&m.Value)
}

// takeAdditionalItems means nothing unless items is a list.
func takeAdditionalItems(c *compiler, n *node, m *document.Member) {
	s := c.child(m)
	if items := n.value.At("items"); items != nil && typeOf(items.V) == typeArray {
		n.rest, n.restIsAdditional = s, true
	}
}

func takeID(c *compiler, _ *node, m *document.Member) {
	if id, ok := c.uri(&m.Value, "uri-reference"); ok && c.res.draft >= draft2019 && fragmentOf(id) != "" {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but may have nothing behind a #; that is an $anchor", quote(id)))
	}
}

// takeSchema says nothing of a "$schema" of which it was said already that it is not known.
func takeSchema(c *compiler, _ *node, m *document.Member) {
	if !slices.ContainsFunc(c.faults, func(e *Error) bool { return e.Kind == Draft && e.Pos == m.Value.Pos }) {
		c.uri(&m.Value, "uri")
	}
}

func takeRef(c *compiler, n *node, m *document.Member) {
	if ref, ok := c.uri(&m.Value, "uri-reference"); ok {
		c.refer(n, m.Key, ref, m.Value.Pos)
	}
}

func takeAnchor(c *compiler, n *node, m *document.Member) {
	name, ok := c.anchorName(m)
	if !ok {
		return
	}
	c.anchor(n, c.res, name, m.Value.Pos)
	if m.Key == "$dynamicAnchor" {
		n.dynamicAnchor = name
		c.res.dynamic[name] = n
	}
}

func takeRecursiveAnchor(c *compiler, n *node, m *document.Member) {
	if c.is(&m.Value, typeBoolean) && m.Value.V == true {
		n.recursiveAnchor = true
	}
}

// takeRest is items from 2020-12 on.
func takeRest(c *compiler, n *node, m *document.Member) {
	if _, isList := m.Value.V.([]document.Value); isList {
		c.add(Error{Place: c.place(m.Value.Pos), Path: slices.Clone(c.path), Keyword: m.Key, Text: wrongType(m.Value.V, typeBoolean|typeObject), Hint: `from 2020-12 on, a list of schemas for the first items is "prefixItems"`})
		return
	}
	n.rest = c.child(m)
}

func takeVocabulary(c *compiler, _ *node, m *document.Member) {
	if !c.is(&m.Value, typeObject) {
		return
	}
	o, _ := m.Value.V.(document.Object)
	for i := range o {
		c.uri(&document.Value{Pos: o[i].KeyPos, V: o[i].Key}, "uri")
		c.within(o[i].Key, func() { c.is(&o[i].Value, typeBoolean) })
	}
}
