package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// member and item check a value inside the current one.
func (r *run) member(n *node, m *document.Member) bool {
	if r.quiet {
		return r.visit(n, &m.Value, nil)
	}
	r.path = append(r.path, m.Key)
	ok := r.visit(n, &m.Value, nil)
	r.path = r.path[:len(r.path)-1]
	return ok
}

func (r *run) item(n *node, list []document.Value, i int) bool {
	if r.quiet {
		return r.visit(n, &list[i], nil)
	}
	r.path = append(r.path, strconv.Itoa(i))
	ok := r.visit(n, &list[i], nil)
	r.path = r.path[:len(r.path)-1]
	return ok
}

func (r *run) object(n *node, v *document.Value, o document.Object, seen evaluated) bool {
	ok := true
	if len(n.required)+len(n.depends) > 0 {
		ok = r.needs(n, v, o, seen)
	}
	if n.properties != nil || n.patterns != nil || n.additional != nil {
		for i := range o {
			if !ok && r.quiet || !r.spend(1+len(o[i].Key)/64) {
				return false
			}
			ok = r.property(n, &o[i], i, seen) && ok
		}
	}
	if n.names != nil {
		for i := range o {
			key, notes := document.Value{Pos: o[i].KeyPos, V: o[i].Key}, len(r.notes)
			if !r.tries(n.names, &key, nil) {
				ok = r.fail(n, o[i].KeyPos, func() string { return fmt.Sprintf("key %s is not of the form that keys have here", quote(o[i].Key)) }, "propertyNames")
			}
			r.notes = r.notes[:notes] // notes for keys are not kept
			if !ok && r.quiet {
				return false
			}
		}
	}
	return ok
}

func (r *run) property(n *node, m *document.Member, i int, seen evaluated) bool {
	ok, known := true, false
	if sub := n.properties[m.Key]; sub != nil {
		ok, known = r.member(sub, m), true
	}
	for j := range n.patterns {
		if p := &n.patterns[j]; p.pattern.matches(r, m.Key) {
			ok, known = r.member(p.schema, m) && ok, true
		}
	}
	if !known && n.additional != nil {
		known = true
		if n.additional.never {
			ok = r.unknown(n, m, "additionalProperties")
		} else {
			ok = r.member(n.additional, m)
		}
	}
	if known {
		seen.set(i)
	}
	return ok
}

// unknown adds the error that a key is not allowed, with a suggestion.
func (r *run) unknown(n *node, m *document.Member, keyword string) bool {
	return r.fail(n, m.KeyPos, func() string {
		return fmt.Sprintf("key %s is not in the schema", quote(m.Key)) + r.meant(m.Key, len(n.known), func(i int) any { return n.known[i].Key })
	}, keyword)
}

// needs checks for required keys: always required ones, and those required by another key.
func (r *run) needs(n *node, v *document.Value, o document.Object, seen evaluated) bool {
	ok, keys := true, keysOf(r, o)
	r.spend(len(n.depends))
	for _, key := range n.required {
		if r.spend(1+len(key)/64) && keys.get(key) == nil {
			ok = r.fail(n, v.Pos, func() string { return quote(key) + " is missing" }, "required")
			if r.quiet {
				return false
			}
		}
	}
	for i := range n.depends {
		d := &n.depends[i]
		if keys.get(d.key) == nil {
			continue
		}
		if d.schema != nil {
			ok = r.visit(d.schema, v, seen) && ok
		}
		var missing []string
		for _, key := range d.needs {
			if r.spend(1+len(key)/64) && keys.get(key) == nil {
				missing = append(missing, key)
			}
		}
		if missing != nil {
			ok = r.failBy(Place{n.res.file.path, d.at}, v.Pos, func() string {
				verb := "is"
				if len(missing) > 1 {
					verb = "are"
				}
				return fmt.Sprintf("%s %s missing, which %s needs", shorten(strings.Join(missing, ", ")), verb, quote(d.key))
			}, d.keyword)
		}
	}
	return ok
}

func (r *run) array(n *node, v *document.Value, list []document.Value, seen evaluated) bool {
	ok := true
	for i := range list[:min(len(list), len(n.prefix))] {
		if ok = r.item(n.prefix[i], list, i) && ok; !ok && r.quiet {
			return false
		}
		seen.set(i)
	}
	if n.rest != nil {
		if n.restIsAdditional && n.rest.never && len(list) > len(n.prefix) {
			ok = r.fail(n, v.Pos, func() string {
				return fmt.Sprintf("has %s more than it may have", count(len(list)-len(n.prefix), "item"))
			}, "additionalItems")
		} else {
			for i := len(n.prefix); i < len(list) && (ok || !r.quiet); i++ {
				ok = r.item(n.rest, list, i) && ok
			}
		}
		seen.setAll()
	}
	if n.contains != nil && (ok || !r.quiet) {
		ok = r.contains(n, v, list, seen) && ok
	}
	return ok
}

// contains counts the items of a form. From 2020-12 on these are evaluated.
func (r *run) contains(n *node, v *document.Value, list []document.Value, seen evaluated) bool {
	found, least := 0, 1
	for i := range list {
		if r.tries(n.contains, &list[i], nil) {
			found++
			if n.res.draft == draft2020 {
				seen.set(i)
			}
		}
	}
	keyword := "contains"
	if n.minContains >= 0 {
		least, keyword = n.minContains, "minContains"
	}
	ok := true
	if found < least {
		ok = r.fail(n, v.Pos, func() string {
			if keyword == "contains" {
				return "no item is of the form that one must have"
			}
			return fmt.Sprintf("items of the form that at least %d must have: %d", least, found)
		}, keyword)
		if len(list) > 0 && len(r.errors) > 0 {
			r.errors[len(r.errors)-1].depth++ // the error is about the items
		}
	}
	if n.maxContains >= 0 && found > n.maxContains {
		ok = r.fail(n, v.Pos, func() string {
			return fmt.Sprintf("items of the form that at most %d may have: %d", n.maxContains, found)
		}, "maxContains")
	}
	return ok
}

// evaluated has for each member or item whether a schema has evaluated it, for unevaluatedProperties and
// unevaluatedItems. It is nil if no schema needs it.
type evaluated []bool

func (r *run) evaluatedOf(v *document.Value) evaluated {
	n := 0
	switch x := v.V.(type) {
	case document.Object:
		n = len(x)
	case []document.Value:
		n = len(x)
	}
	r.spend(n / 8)
	return make(evaluated, n)
}

// fork returns an empty set for a schema that may fail. If it holds, the set is joined.
func (e evaluated) fork(r *run, v *document.Value) evaluated {
	if e == nil {
		return nil
	}
	return r.evaluatedOf(v)
}

func (e evaluated) join(fork evaluated) {
	if e != nil {
		for i, seen := range fork {
			e[i] = e[i] || seen
		}
	}
}

func (e evaluated) set(i int) {
	if e != nil {
		e[i] = true
	}
}

func (e evaluated) setAll() {
	for i := range e {
		e[i] = true
	}
}

// unevaluated checks the members or items that no other schema has evaluated.
func (r *run) unevaluated(n *node, v *document.Value, seen evaluated) bool {
	ok := true
	switch x := v.V.(type) {
	case document.Object:
		for i := range x {
			if seen[i] || !ok && r.quiet {
				continue
			}
			if sub := n.unevaluatedProperties; sub.never {
				ok = r.unknown(n, &x[i], "unevaluatedProperties")
			} else {
				ok = r.member(sub, &x[i]) && ok
			}
		}
	case []document.Value:
		for i := range x {
			if !seen[i] && (ok || !r.quiet) {
				ok = r.item(n.unevaluatedItems, x, i) && ok
			}
		}
	}
	seen.setAll()
	return ok
}
