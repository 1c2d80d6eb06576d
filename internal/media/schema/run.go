package schema

import (
	"context"
	"fmt"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// run validates a document. The first run is quiet: it stops at the first error, and keeps notes. If the document is
// not valid, a second run collects the errors with their texts.
type run struct {
	schema  *Schema
	ctx     context.Context // ends the run
	looked  int             // steps left when the context was last checked
	quiet   bool
	steps   int // steps left
	fatal   *Error
	stack   []frame // the schemas being checked, outermost first
	notes   []Note
	path    []string // path of the current value; not updated while quiet
	errors  Errors
	told    int // number of errors kept, including those of forms
	guessed int // letters compared for suggestions
	said    map[saying]Place
}

type saying struct {
	node    *node
	keyword string
}

type frame struct {
	node  *node
	value *document.Value
}

// spend counts steps. It returns false when there are none left.
func (r *run) spend(n int) bool {
	r.steps -= n
	if r.looked-r.steps > 4096 || r.looked == 0 {
		r.looked = r.steps
		if r.ctx != nil && r.ctx.Err() != nil { // nil while a schema is compiled
			r.stop(Error{Kind: Limit, Text: "it was ended"})
		}
	}
	if r.steps < 0 && r.fatal == nil {
		r.stop(Error{Kind: Limit, Text: fmt.Sprintf("checking takes more than %d million steps", int(maxSteps)/1e6), Hint: "split the data, or have the schema try fewer forms (anyOf, oneOf) of the same value"})
	}
	return r.fatal == nil
}

// stop ends the run. If the error has no place, it gets the place of the current value.
func (r *run) stop(e Error) {
	if r.fatal != nil {
		return
	}
	if e.Line == 0 && len(r.stack) > 0 {
		e.Pos = r.stack[len(r.stack)-1].value.Pos
	}
	r.fatal = &e
}

// says returns the place of a keyword in a schema. Each place is looked up once, because a hundred thousand errors may
// come from a schema of a million keys.
func (r *run) says(n *node, keyword string) Place {
	at := saying{n, keyword}
	if p, known := r.said[at]; known {
		return p
	}
	p := Place{}
	if n.res != nil && n.value != nil {
		p = Place{n.res.file.path, n.value.Pos}
		if v := n.value.At(keyword); v != nil && keyword != "" {
			p.Pos = v.Pos
		}
	}
	if r.said == nil {
		r.said = map[saying]Place{}
	}
	r.said[at] = p
	return p
}

// fail adds the error that a value or a key breaks a keyword. It returns false.
func (r *run) fail(n *node, at document.Pos, words func() string, keyword string) bool {
	if r.quiet || r.fatal != nil || r.told >= maxErrors {
		return false
	}
	return r.failBy(r.says(n, keyword), at, words, keyword)
}

// failBy is like fail, with a known place in the schema.
func (r *run) failBy(says Place, at document.Pos, words func() string, keyword string) bool {
	if r.quiet || r.fatal != nil || r.told >= maxErrors {
		return false
	}
	r.told++
	r.errors = append(r.errors, &Error{Place: Place{Pos: at}, Path: slices.Clone(r.path), Keyword: keyword, Says: says, Text: words(), depth: len(r.path)})
	return false
}

// visit reports whether a schema holds for a value.
func (r *run) visit(n *node, v *document.Value, seen evaluated) bool {
	if n.always || !r.spend(1) {
		return r.fatal == nil
	}
	if n.never {
		return r.fail(n, v.Pos, func() string { return "may not be here" }, "")
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

func (r *run) ask(n *node, v *document.Value, outer evaluated) bool {
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

// refer checks the schema that a reference leads to. If that schema is already being checked for the same value, the
// reference would never end, which is an error.
func (r *run) refer(n *node, ref *reference, v *document.Value, seen evaluated) bool {
	target := ref.target
	if ref.anchor != "" {
		target = r.outermost(ref)
	}
	for i := len(r.stack) - 1; i >= 0 && r.stack[i].value == v && r.spend(1); i-- {
		if r.stack[i].node == target {
			r.stop(Error{Kind: Circle, Place: r.says(target, ""), Text: "the schema refers to itself without end", Hint: "break the circle of $ref"})
		}
	}
	return r.visit(target, v, seen)
}

// outermost returns the target of a dynamic reference: the schema with the same anchor in the outermost resource of the
// current path that has one (2020-12, section 8.2.3.2).
func (r *run) outermost(ref *reference) *node {
	for i := range r.stack {
		res := r.stack[i].node.res
		if res == nil || !r.spend(1) {
			continue
		}
		if n := res.dynamic[ref.anchor]; n != nil {
			return n
		}
	}
	return ref.target
}
