package schema

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// keyword is a row of the table of keywords: which drafts have it, its allowed values, and its meaning. The table is
// used in place of the metaschemas, because errors from a metaschema would describe the metaschema.
type keyword struct {
	name string
	only draft // the draft that has it, 0 for both
	take func(c *compiler, n *node, m *document.Member)
	rank int
}

// keywordsOf returns the table for one draft. The rank of a keyword is its index: assertions are checked in this order.
func keywordsOf(d draft) map[string]*keyword {
	table := map[string]*keyword{}
	for _, rows := range [][]keyword{assertions(), applicators(), others()} {
		for i := range rows {
			if k := &rows[i]; k.only == 0 || k.only == d {
				k.rank = len(table)
				table[k.name] = k
			}
		}
	}
	return table
}

// assertions check a value without schemas inside. If one of the first four fails, the later ones are not checked.
func assertions() []keyword {
	chars := func(r *run, v any) int { s, _ := v.(string); r.spend(len(s) / 64); return utf8.RuneCountInString(s) }
	items := func(_ *run, v any) int { l, _ := v.([]document.Value); return len(l) }
	members := func(_ *run, v any) int { o, _ := v.(document.Object); return len(o) }
	return []keyword{
		{name: "type", take: takeType},
		{name: "const", take: takeConst},
		{name: "enum", take: takeEnum},
		{name: "format", take: takeFormat},

		{name: "minimum", take: bound(1, true, "must be at least")},
		{name: "maximum", take: bound(-1, true, "may be at most")},
		{name: "exclusiveMinimum", take: bound(1, false, "must be more than")},
		{name: "exclusiveMaximum", take: bound(-1, false, "must be less than")},
		{name: "multipleOf", take: takeMultipleOf},

		{name: "minLength", take: sized(typeString, 1, "character", chars)},
		{name: "maxLength", take: sized(typeString, -1, "character", chars)},
		{name: "pattern", take: takePattern},
		{name: "minItems", take: sized(typeArray, 1, "item", items)},
		{name: "maxItems", take: sized(typeArray, -1, "item", items)},
		{name: "uniqueItems", take: takeUniqueItems},
		{name: "minProperties", take: sized(typeObject, 1, "key", members)},
		{name: "maxProperties", take: sized(typeObject, -1, "key", members)},
	}
}

// applicators are keywords with schemas inside.
func applicators() []keyword {
	return []keyword{
		{name: "allOf", take: list(func(n *node) *[]*node { return &n.allOf })},
		{name: "anyOf", take: list(func(n *node) *[]*node { return &n.anyOf })},
		{name: "oneOf", take: list(func(n *node) *[]*node { return &n.oneOf })},
		{name: "not", take: one(func(n *node) **node { return &n.not })},
		{name: "if", take: one(func(n *node) **node { return &n.when })},
		{name: "then", take: one(func(n *node) **node { return &n.then })},
		{name: "else", take: one(func(n *node) **node { return &n.els })},

		{name: "required", take: func(c *compiler, n *node, m *document.Member) { n.required = c.strings(&m.Value) }},
		{name: "properties", take: takeProperties},
		{name: "patternProperties", take: takePatternProperties},
		{name: "additionalProperties", take: one(func(n *node) **node { return &n.additional })},
		{name: "propertyNames", take: one(func(n *node) **node { return &n.names })},
		{name: "dependencies", take: takeDependencies(true, true)}, // still used after draft 7
		{name: "dependentRequired", only: draft2020, take: takeDependencies(true, false)},
		{name: "dependentSchemas", only: draft2020, take: takeDependencies(false, true)},
		{name: "unevaluatedProperties", only: draft2020, take: one(func(n *node) **node { return &n.unevaluatedProperties })},

		{name: "items", only: draft7, take: takeItems},
		{name: "additionalItems", only: draft7, take: takeAdditionalItems},
		{name: "prefixItems", only: draft2020, take: list(func(n *node) *[]*node { return &n.prefix })},
		{name: "items", only: draft2020, take: takeRest},
		{name: "contains", take: one(func(n *node) **node { return &n.contains })},
		{name: "minContains", only: draft2020, take: func(c *compiler, n *node, m *document.Member) { n.minContains, _ = c.count(m) }},
		{name: "maxContains", only: draft2020, take: func(c *compiler, n *node, m *document.Member) { n.maxContains, _ = c.count(m) }},
		{name: "unevaluatedItems", only: draft2020, take: one(func(n *node) **node { return &n.unevaluatedItems })},
	}
}

// others are keywords that name schemas, refer to them, or are comments.
func others() []keyword {
	schemas := func(c *compiler, _ *node, m *document.Member) { c.schemaMap(m) }
	flag := func(c *compiler, _ *node, m *document.Member) { c.is(&m.Value, typeBoolean) }
	words := func(c *compiler, _ *node, m *document.Member) { c.is(&m.Value, typeString) }
	return []keyword{
		{name: "$id", take: takeID},
		{name: "$schema", take: takeSchema},
		{name: "$ref", take: takeRef},
		{name: "$dynamicRef", only: draft2020, take: takeRef},
		{name: "$anchor", only: draft2020, take: takeAnchor},
		{name: "$dynamicAnchor", only: draft2020, take: takeAnchor},
		{name: "$defs", only: draft2020, take: schemas},
		{name: "definitions", take: schemas}, // still used after draft 7

		{name: "$comment", take: words},
		{name: "title", take: words},
		{name: "description", take: words},
		{name: "readOnly", take: flag},
		{name: "writeOnly", take: flag},
		{name: "deprecated", only: draft2020, take: flag},
		{name: "examples", take: func(c *compiler, _ *node, m *document.Member) { c.is(&m.Value, typeArray) }},
		{name: "contentEncoding", take: words},
		{name: "contentMediaType", take: words},
		{name: "contentSchema", only: draft2020, take: func(c *compiler, _ *node, m *document.Member) { c.schema(&m.Value) }},
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
			if show(v.V) == show(want.V) { // two arrays or objects may be shown the same
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
		says: func(_ *run, v *document.Value) string { return fmt.Sprintf("%s is not a valid %s", show(v.V), name) },
	})
}

type taker = func(c *compiler, n *node, m *document.Member)

// bound is a limit for numbers. sign is 1 for a minimum and -1 for a maximum.
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

// sized is a limit for the size of a value. sign is 1 for a minimum and -1 for a maximum.
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
	return func(c *compiler, n *node, m *document.Member) { *field(n) = c.schema(&m.Value) }
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

// takeItems is items of draft 7: one schema for all items, or a list for the first ones.
func takeItems(c *compiler, n *node, m *document.Member) {
	if _, isList := m.Value.V.([]document.Value); !isList {
		n.rest = c.schema(&m.Value)
		return
	}
	c.atLeastOne(&m.Value)
	n.prefix = c.schemaList(&m.Value)
}

// takeAdditionalItems has no effect unless items is a list.
func takeAdditionalItems(c *compiler, n *node, m *document.Member) {
	s := c.schema(&m.Value)
	if items := n.value.At("items"); items != nil && typeOf(items.V) == typeArray {
		n.rest, n.restIsAdditional = s, true
	}
}

func takeID(c *compiler, _ *node, m *document.Member) {
	if id, ok := c.uri(&m.Value, "uri-reference"); ok && c.res.draft == draft2020 && fragmentOf(id) != "" {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but may have nothing behind a #; that is an $anchor", quote(id)))
	}
}

// takeSchema ignores a "$schema" that was already reported as unknown.
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

// takeRest is items of 2020-12.
func takeRest(c *compiler, n *node, m *document.Member) {
	if _, isList := m.Value.V.([]document.Value); isList {
		c.add(Error{Place: c.place(m.Value.Pos), Path: slices.Clone(c.path), Keyword: m.Key, Text: wrongType(m.Value.V, typeBoolean|typeObject), Hint: `from 2020-12 on, a list of schemas for the first items is "prefixItems"`})
		return
	}
	n.rest = c.schema(&m.Value)
}
