package data

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/kiln-pipeline/kiln/internal/codec/document"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/processor"
)

// report turns the validator's tree of errors into problems with places.
type report struct {
	code     diag.Code
	bundle   *bundle
	file     string          // of the data; "" for the asset's own
	value    *document.Value // the data
	base     int             // how much of each location goes without saying
	problems []*processor.Problem
}

// err is all problems in the order of the text: the validator's own order is that of Go's maps.
func (r *report) err() error {
	slices.SortFunc(r.problems, func(a, b *processor.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Text, b.Text), strings.Compare(a.Hint, b.Hint))
	})
	r.problems = slices.CompactFunc(r.problems, func(a, b *processor.Problem) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Text == b.Text
	})
	errs := make([]error, len(r.problems))
	for i, p := range r.problems {
		errs[i] = p
	}
	return errors.Join(limit(errs)...)
}

// add tells of an error's causes, or of the error itself where the causes are no news.
func (r *report) add(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		r.alternatives(e)
		return
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			r.alternatives(e)
			return
		}
		r.tell(e, r.valueAt(e), "fits %d of the forms it may have, but must fit one alone", len(k.Subschemas))
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			r.tell(e, r.keyAt(e, name), "key %q is not in the schema%s", name, r.meantKey(e, name))
		}
		return
	case *kind.PropertyNames:
		if r.code == diag.DataSchemaInvalid { // of data, names tells it with the right place
			r.tell(e, r.value.Pos, "key %q is not of the form that keys have here", k.Property)
		}
		return
	case *badName:
		r.tell(e, r.keyAt(e, k.Property), "key %q is not of the form that keys have here", k.Property)
		return
	case *kind.Required:
		for _, name := range k.Missing {
			r.tell(e, r.valueAt(e), "%q is missing", name)
		}
		return
	case *kind.RefCycle:
		file, at := r.bundle.place(k.URL)
		r.problems = append(r.problems, problemAt(diag.DataSchemaInvalid, file, at, "break the circle of $ref", "the schema refers to itself without end"))
		return
	case *kind.Contains, *kind.MinContains, *kind.Not:
		r.tell(e, r.valueAt(e), "%s", words(e.ErrorKind))
		return
	}
	for _, cause := range e.Causes {
		r.add(cause)
	}
	if len(e.Causes) == 0 {
		r.tell(e, r.valueAt(e), "%s", words(e.ErrorKind))
	}
}

// alternatives tells why none of several forms fits. If just one of them is wrong further inside
// only, it is the one that was meant.
func (r *report) alternatives(e *jsonschema.ValidationError) {
	var meant []*jsonschema.ValidationError
	for _, c := range e.Causes {
		if shallowest(c) > len(e.InstanceLocation) {
			meant = append(meant, c)
		}
	}
	if len(meant) == 1 || len(e.Causes) == 1 {
		r.add(append(meant, e.Causes...)[0])
		return
	}
	var why []string
	for _, c := range e.Causes {
		inner := &report{code: r.code, bundle: r.bundle, value: r.value, base: len(e.InstanceLocation)}
		inner.add(c)
		inner.err() // sorts
		if len(inner.problems) > 0 && !slices.Contains(why, inner.problems[0].Text) {
			why = append(why, inner.problems[0].Text)
		}
	}
	r.tell(e, r.valueAt(e), "fits none of the forms it may have: %s", strings.Join(why, "; or "))
}

// shallowest is the depth in the data of an error's outermost leaf.
func shallowest(e *jsonschema.ValidationError) int {
	if len(e.Causes) == 0 {
		return len(e.InstanceLocation)
	}
	depth := shallowest(e.Causes[0])
	for _, c := range e.Causes[1:] {
		depth = min(depth, shallowest(c))
	}
	return depth
}

func (r *report) valueAt(e *jsonschema.ValidationError) document.Pos {
	if v := r.value.At(e.InstanceLocation...); v != nil {
		return v.Pos
	}
	return r.value.Pos
}

func (r *report) keyAt(e *jsonschema.ValidationError, key string) document.Pos {
	if v := r.value.At(e.InstanceLocation...); v != nil {
		if o, ok := v.V.(document.Object); ok {
			for _, m := range o {
				if m.Key == key {
					return m.KeyPos
				}
			}
		}
	}
	return r.valueAt(e)
}

// meantKey suggests a key that the schema has.
func (r *report) meantKey(e *jsonschema.ValidationError, key string) string {
	v, _ := r.bundle.find(e.SchemaURL)
	if v == nil {
		return ""
	}
	v = v.At("properties")
	if v == nil {
		return ""
	}
	var known []string
	if o, ok := v.V.(document.Object); ok {
		for _, m := range o {
			known = append(known, m.Key)
		}
	}
	if near := diag.Nearest(key, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// tell adds a problem: which value, what is wrong with it, and where the schema says so.
func (r *report) tell(e *jsonschema.ValidationError, at document.Pos, format string, args ...any) {
	subject := ""
	if len(e.InstanceLocation) > r.base {
		subject = "/" + strings.Join(e.InstanceLocation[r.base:], "/") + ": "
	}
	hint := ""
	if v, f := r.bundle.find(e.SchemaURL); v != nil {
		if keyword := v.At(e.ErrorKind.KeywordPath()...); keyword != nil {
			v = keyword
		}
		hint = fmt.Sprintf("the schema says so at %s:%d:%d", f.path, v.Line, v.Column)
	}
	r.problems = append(r.problems, problemAt(r.code, r.file, at, hint, "%s%s", subject, fmt.Sprintf(format, args...)))
}

var typeWords = map[string]string{
	"null": "null", "boolean": "true or false", "number": "a number", "integer": "an integer",
	"string": "a string", "array": "an array", "object": "an object",
}

// words says a keyword's complaint in plain words.
func words(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		want := make([]string, len(k.Want))
		for i, t := range k.Want {
			want[i] = typeWords[t]
		}
		return fmt.Sprintf("is %s, but must be %s", strings.Replace(typeWords[k.Got], "true or false", "a boolean", 1), strings.Join(want, " or "))
	case *kind.Enum:
		text := fmt.Sprintf("is %s, but must be one of %s", show(k.Got), showSome(k.Want))
		if got, ok := k.Got.(string); ok {
			if near := diag.Nearest(got, stringsOf(k.Want)); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
		}
		return text
	case *kind.Const:
		return fmt.Sprintf("is %s, but must be %s", show(k.Got), show(k.Want))
	case *kind.Minimum:
		return fmt.Sprintf("is %s, but must be at least %s", rat(k.Got), rat(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("is %s, but may be at most %s", rat(k.Got), rat(k.Want))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("is %s, but must be more than %s", rat(k.Got), rat(k.Want))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("is %s, but must be less than %s", rat(k.Got), rat(k.Want))
	case *kind.MultipleOf:
		return fmt.Sprintf("is %s, but must be a multiple of %s", rat(k.Got), rat(k.Want))
	case *kind.MinLength:
		return fmt.Sprintf("has %s, but must have at least %d", count(k.Got, "character"), k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %s, but may have at most %d", count(k.Got, "character"), k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %s, but must have at least %d", count(k.Got, "item"), k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %s, but may have at most %d", count(k.Got, "item"), k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s more than it may have", count(k.Count, "item"))
	case *kind.MinProperties:
		return fmt.Sprintf("has %s, but must have at least %d", count(k.Got, "key"), k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %s, but may have at most %d", count(k.Got, "key"), k.Want)
	}
	return wordsOf(k)
}

// wordsOf goes on with what is rarer.
func wordsOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return fmt.Sprintf("%q does not match the pattern %s", k.Got, k.Want)
	case *kind.Format:
		return fmt.Sprintf("%s is no %s", show(k.Got), k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal, but no two may be", k.Duplicates[0], k.Duplicates[1])
	case *kind.Dependency:
		return fmt.Sprintf("%s is missing, which %q needs", strings.Join(k.Missing, ", "), k.Prop)
	case *kind.DependentRequired:
		return fmt.Sprintf("%s is missing, which %q needs", strings.Join(k.Missing, ", "), k.Prop)
	case *kind.Contains:
		return "no item is of the form that one must have"
	case *kind.MinContains:
		return fmt.Sprintf("%d items are of the form that at least %d must have", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("%d items are of the form that at most %d may have", len(k.Got), k.Want)
	case *kind.Not:
		return "is of a form that it must not have"
	case *kind.FalseSchema:
		return "may not be here"
	}
	return fmt.Sprintf("breaks the schema's %s", strings.Join(k.KeywordPath(), "/"))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func show(v any) string {
	switch x := v.(type) {
	case string:
		return strconv.Quote(x)
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// showSome keeps a list of hundreds of names out of a message.
func showSome(list []any) string {
	const most = 10
	var s []string
	for _, v := range list[:min(len(list), most)] {
		s = append(s, show(v))
	}
	if len(list) > most {
		s = append(s, fmt.Sprintf("... (%d in all)", len(list)))
	}
	return strings.Join(s, ", ")
}

func stringsOf(list []any) []string {
	var s []string
	for _, v := range list {
		if x, ok := v.(string); ok {
			s = append(s, x)
		}
	}
	return s
}

// rat writes a number of the validator as people would.
func rat(r *big.Rat) string {
	if r.IsInt() && len(r.Num().String()) < 22 {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
