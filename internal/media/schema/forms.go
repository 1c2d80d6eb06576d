package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// tries reports whether a schema holds for a value, without adding errors. If it does not hold, its notes are removed.
func (r *run) tries(n *node, v *document.Value, seen evaluated) bool {
	quiet, notes := r.quiet, len(r.notes)
	r.quiet = true
	ok := r.visit(n, v, seen)
	r.quiet = quiet
	if !ok || !quiet {
		r.notes = r.notes[:notes]
	}
	return ok
}

// combine checks the schemas that apply to the value as a whole.
func (r *run) combine(n *node, v *document.Value, seen evaluated) bool {
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

// fitting counts the forms that fit a value. It tries all forms if they have notes or evaluate members, else it stops
// at enough.
func (r *run) fitting(forms []*node, enough int, v *document.Value, seen evaluated) int {
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

// noForm reports why none of several forms fits. If only one of the forms has all its errors inside the value, it is
// the intended one, and its errors are reported.
func (r *run) noForm(n *node, v *document.Value, forms []*node, keyword string, seen evaluated) bool {
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
	const most = 10
	var why []string
	for _, errors := range all {
		if len(errors) > 0 && len(why) < most && !slices.Contains(why, errors[0].Message(len(r.path))) {
			why = append(why, errors[0].Message(len(r.path)))
		}
	}
	if len(why) == most && len(all) > most {
		why = append(why, fmt.Sprintf("... (%d in all)", len(all)))
	}
	r.told = told
	return r.fail(n, v.Pos, func() string { return "fits none of the forms it may have: " + strings.Join(why, "; or ") }, keyword)
}
