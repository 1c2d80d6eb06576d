package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
)

// run asks a document all that a schema asks. A first run is quiet: it stops at what is wrong, and keeps notes. If the
// document does not hold, a second one collects what is wrong in words.
type run struct {
	schema  *Schema
	quiet   bool
	steps   int // that are left
	fatal   *Error
	stack   []frame // the schemas being asked, from the first
	notes   []Note
	path    []string // of the value; not kept while quiet
	errors  Errors
	told    int // errors that are kept, those of forms included
	guessed int // letters that were compared to tell what was meant
}

type frame struct {
	node  *node
	value *document.Value
}

// evaluated are the members or items that some schema has looked at, for unevaluatedProperties and unevaluatedItems; nil if
// nobody asks.
type evaluated struct{ at []bool }

func (r *run) evaluatedOf(v *document.Value) *evaluated {
	n := 0
	switch x := v.V.(type) {
	case document.Object:
		n = len(x)
	case []document.Value:
		n = len(x)
	}
	r.spend(n / 8)
	return &evaluated{make([]bool, n)}
}

// fork is a set for a schema that may fail, and what it looked at not count.
func (e *evaluated) fork(r *run, v *document.Value) *evaluated {
	if e == nil {
		return nil
	}
	return r.evaluatedOf(v)
}

func (e *evaluated) join(other *evaluated) {
	if e == nil || other == nil {
		return
	}
	for i, seen := range other.at {
		e.at[i] = e.at[i] || seen
	}
}

func (e *evaluated) set(i int) {
	if e != nil {
		e.at[i] = true
	}
}

func (e *evaluated) setAll() {
	if e != nil {
		for i := range e.at {
			e.at[i] = true
		}
	}
}

// spend counts steps, and is false when there are none left.
func (r *run) spend(n int) bool {
	r.steps -= n
	if r.steps < 0 && r.fatal == nil {
		r.stop(Error{Kind: Limit, Text: fmt.Sprintf("checking takes more than %d million steps", int(maxSteps)/1e6), Hint: "split the data, or have the schema try fewer forms (anyOf, oneOf) of the same value"})
	}
	return r.fatal == nil
}

// stop ends the run, at the value that is being asked about if the error has no place of its own.
func (r *run) stop(e Error) {
	if r.fatal != nil {
		return
	}
	if e.Line == 0 && len(r.stack) > 0 {
		e.Pos = r.stack[len(r.stack)-1].value.Pos
	}
	r.fatal = &e
}

// says is the place of a keyword of a schema.
func (n *node) says(keyword ...string) Place {
	if n.res == nil || n.value == nil {
		return Place{}
	}
	v := n.value.At(keyword...)
	if v == nil {
		v = n.value
	}
	return Place{n.res.file.path, v.Pos}
}

// fail says that a value, or a key of it, is not as a keyword wants it. It is false.
func (r *run) fail(n *node, at document.Pos, words func() string, keyword ...string) bool {
	if r.quiet || r.fatal != nil || r.told >= maxErrors {
		return false
	}
	e := &Error{Place: Place{Pos: at}, Path: slices.Clone(r.path), Says: n.says(keyword...), Text: words(), depth: len(r.path)}
	if len(keyword) > 0 {
		e.Keyword = keyword[0]
	}
	r.told++
	r.errors = append(r.errors, e)
	return false
}

// visit asks whether a schema holds for a value.
func (r *run) visit(n *node, v *document.Value, seen *evaluated) bool {
	if n.always || !r.spend(1) {
		return r.fatal == nil
	}
	if n.never {
		return r.fail(n, v.Pos, func() string { return "may not be here" })
	}
	if len(r.stack) == maxDepth {
		r.stop(Error{Kind: Limit, Place: Place{Pos: v.Pos}, Text: fmt.Sprintf("the schema asks more than %d levels deep", maxDepth), Hint: "flatten the schema or the data"})
		return false
	}
	r.stack = append(r.stack, frame{n, v})
	ok := r.ask(n, v, seen)
	r.stack = r.stack[:len(r.stack)-1]
	if ok && n.note != nil && r.quiet && r.spend(8) {
		r.notes = append(r.notes, Note{v, n.note})
	}
	return ok
}

func (r *run) ask(n *node, v *document.Value, outer *evaluated) bool {
	ok, t := true, typeOf(v.V)
	for i := range n.asserts {
		if a := &n.asserts[i]; a.on&t != 0 && !a.holds(r, v) {
			ok = r.fail(n, v.Pos, func() string { return a.says(r, v) }, a.keyword)
			if r.quiet || a.last {
				return false
			}
		}
	}
	seen, own := outer, n.unevaluatedProperties != nil && t == typeObject || n.unevaluatedItems != nil && t == typeArray
	if own {
		seen = r.evaluatedOf(v)
	}
	for i := range n.refs {
		if ok = r.refer(n, &n.refs[i], v, seen) && ok; !ok && r.quiet {
			return false
		}
	}
	switch x := v.V.(type) {
	case document.Object:
		ok = r.object(n, v, x, seen) && ok
	case []document.Value:
		ok = r.array(n, v, x, seen) && ok
	}
	if !ok && r.quiet {
		return false
	}
	ok = r.combine(n, v, seen) && ok
	if own && (ok || !r.quiet) {
		ok = r.unevaluated(n, v, seen) && ok
		outer.join(seen)
	}
	return ok && r.fatal == nil
}

// member and item ask about a value inside.
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

// tries asks without a word. What was noted in vain is forgotten.
func (r *run) tries(n *node, v *document.Value, seen *evaluated) bool {
	quiet, notes := r.quiet, len(r.notes)
	r.quiet = true
	ok := r.visit(n, v, seen)
	r.quiet = quiet
	if !ok || !quiet {
		r.notes = r.notes[:notes]
	}
	return ok
}

// refer asks the schema that a reference means here. One that is being asked about the same value already would be asked for ever.
func (r *run) refer(n *node, ref *reference, v *document.Value, seen *evaluated) bool {
	if ref.meta != nil {
		return r.judge(n, ref.meta, v, seen)
	}
	target := ref.target
	if ref.anchor != "" || ref.recursive {
		target = r.outermost(ref)
	}
	for i := len(r.stack) - 1; i >= 0 && r.stack[i].value == v && r.spend(1); i-- {
		if r.stack[i].node == target {
			r.stop(Error{Kind: Circle, Place: target.says(), Text: "the schema refers to itself without end", Hint: "break the circle of $ref"})
		}
	}
	return r.visit(target, v, seen)
}

// outermost is what a dynamic reference means: the schema with the same anchor in the first resource that was entered on the way here and has one
// (2020-12, section 8.2.3.2; 2019-09, section 8.2.4.2.2).
func (r *run) outermost(ref *reference) *node {
	for i := range r.stack {
		res := r.stack[i].node.res
		if res == nil || !r.spend(1) {
			continue
		}
		if ref.recursive {
			if res.root.recursiveAnchor {
				return res.root
			}
		} else if n := res.dynamic[ref.anchor]; n != nil {
			return n
		}
	}
	return ref.target
}

// judge asks whether data is a schema.
func (r *run) judge(n *node, m *metaschema, v *document.Value, seen *evaluated) bool {
	faults, table := m.judge(v)
	o, _ := v.V.(document.Object)
	for i := range o {
		if table[o[i].Key] != nil {
			seen.set(i)
		}
	}
	r.spend(16 * size(v))
	for _, f := range faults {
		outer := r.path
		r.path = slices.Concat(r.path, f.Path)
		r.fail(n, f.Pos, func() string { return f.Text }, "$ref")
		r.path = outer
	}
	return len(faults) == 0
}

func (r *run) object(n *node, v *document.Value, o document.Object, seen *evaluated) bool {
	ok := true
	if len(n.required)+len(n.depends) > 0 {
		ok = r.needs(n, v, o, seen)
	}
	if n.properties != nil || n.patterns != nil || n.additional != nil {
		for i := range o {
			if !ok && r.quiet || !r.spend(1) {
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
			r.notes = r.notes[:notes] // a key names nothing
			if !ok && r.quiet {
				return false
			}
		}
	}
	return ok
}

func (r *run) property(n *node, m *document.Member, i int, seen *evaluated) bool {
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

// unknown says that a key may not be, and which may have been meant.
func (r *run) unknown(n *node, m *document.Member, keyword string) bool {
	return r.fail(n, m.KeyPos, func() string {
		var known document.Object
		if v := n.value.At("properties"); v != nil {
			known, _ = v.V.(document.Object)
		}
		return fmt.Sprintf("key %s is not in the schema", quote(m.Key)) + r.meant(m.Key, len(known), func(i int) any { return known[i].Key })
	}, keyword)
}

// needs asks for keys that must be there, always or because another one is.
func (r *run) needs(n *node, v *document.Value, o document.Object, seen *evaluated) bool {
	ok, keys := true, keysOf(r, o)
	r.spend(len(n.required) + len(n.depends))
	for _, key := range n.required {
		if keys.get(key) == nil {
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
			if r.spend(1) && keys.get(key) == nil {
				missing = append(missing, key)
			}
		}
		if missing != nil {
			ok = r.fail(n, v.Pos, func() string {
				return fmt.Sprintf("%s is missing, which %s needs", shorten(strings.Join(missing, ", ")), quote(d.key))
			}, d.keyword, d.key)
		}
	}
	return ok
}

func (r *run) array(n *node, v *document.Value, list []document.Value, seen *evaluated) bool {
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

// contains counts items of a form. From 2020-12 on these are evaluated.
func (r *run) contains(n *node, v *document.Value, list []document.Value, seen *evaluated) bool {
	found, least := 0, 1
	for i := range list {
		if r.tries(n.contains, &list[i], nil) {
			found++
			if n.res.draft >= draft2020 {
				seen.set(i)
			}
		}
	}
	keyword, words := "contains", "no item is of the form that one must have"
	if n.minContains >= 0 {
		least, keyword = n.minContains, "minContains"
		words = fmt.Sprintf("%d items are of the form that at least %d must have", found, least)
	}
	ok := true
	if found < least {
		ok = r.fail(n, v.Pos, func() string { return words }, keyword)
		if !r.quiet && len(list) > 0 && len(r.errors) > 0 {
			r.errors[len(r.errors)-1].depth++ // the items are the matter
		}
	}
	if n.maxContains >= 0 && found > n.maxContains {
		ok = r.fail(n, v.Pos, func() string {
			return fmt.Sprintf("%d items are of the form that at most %d may have", found, n.maxContains)
		}, "maxContains")
	}
	return ok
}

// combine asks the schemas that are about the value as a whole.
func (r *run) combine(n *node, v *document.Value, seen *evaluated) bool {
	ok := true
	for _, sub := range n.allOf {
		if ok = r.visit(sub, v, seen) && ok; !ok && r.quiet {
			return false
		}
	}
	if n.not != nil {
		notes := len(r.notes)
		if r.tries(n.not, v, nil) {
			ok = r.fail(n, v.Pos, func() string { return "is of a form that it must not have" }, "not")
		}
		r.notes = r.notes[:notes]
	}
	if n.anyOf != nil && (ok || !r.quiet) && r.fitting(n.anyOf, 1, v, seen) == 0 {
		ok = r.noForm(n, v, n.anyOf, "anyOf", seen)
	}
	if n.oneOf != nil && (ok || !r.quiet) {
		switch fits := r.fitting(n.oneOf, 2, v, seen); {
		case fits == 0:
			ok = r.noForm(n, v, n.oneOf, "oneOf", seen)
		case fits > 1:
			ok = r.fail(n, v.Pos, func() string {
				return fmt.Sprintf("fits %d of the forms it may have, but must fit one alone", fits)
			}, "oneOf")
		}
	}
	if n.when != nil && (ok || !r.quiet) {
		branch, own := n.els, seen.fork(r, v)
		if r.tries(n.when, v, own) {
			branch = n.then
			seen.join(own)
		}
		if branch != nil {
			ok = r.visit(branch, v, seen) && ok
		}
	}
	return ok
}

// fitting counts the forms that a value has. All are tried if they note or evaluate something, else until enough fit.
func (r *run) fitting(forms []*node, enough int, v *document.Value, seen *evaluated) int {
	n := 0
	for _, form := range forms {
		own := seen.fork(r, v)
		if r.tries(form, v, own) {
			seen.join(own)
			n++
		}
		if n == enough && r.quiet && (n > 1 || seen == nil && !r.schema.notes) {
			break
		}
	}
	return n
}

// noForm tells why none of several forms fits. If just one of them is wrong further inside only, it is the one that was meant.
func (r *run) noForm(n *node, v *document.Value, forms []*node, keyword string, seen *evaluated) bool {
	if r.quiet {
		return false
	}
	outer, told := r.errors, r.told
	var all, meant []Errors
	for _, form := range forms {
		r.errors = nil
		own := seen.fork(r, v)
		r.visit(form, v, own)
		seen.join(own)
		errors := r.errors.sorted()
		all = append(all, errors)
		if len(errors) > 0 && !slices.ContainsFunc(errors, func(e *Error) bool { return e.depth <= len(r.path) }) {
			meant = append(meant, errors)
		}
	}
	r.errors = outer
	if len(meant) == 1 || len(all) == 1 {
		r.errors = append(r.errors, append(meant, all...)[0]...)
		return false
	}
	var why []string
	for _, errors := range all {
		if len(errors) > 0 && !slices.Contains(why, errors[0].Message(len(r.path))) {
			why = append(why, errors[0].Message(len(r.path)))
		}
	}
	r.told = told
	return r.fail(n, v.Pos, func() string { return "fits none of the forms it may have: " + strings.Join(why, "; or ") }, keyword)
}

// unevaluated asks about the members or items that nothing else has looked at.
func (r *run) unevaluated(n *node, v *document.Value, seen *evaluated) bool {
	ok := true
	switch x := v.V.(type) {
	case document.Object:
		for i := range x {
			if seen.at[i] || !ok && r.quiet {
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
			if !seen.at[i] && (ok || !r.quiet) {
				ok = r.item(n.unevaluatedItems, x, i) && ok
			}
		}
	}
	seen.setAll()
	return ok
}
