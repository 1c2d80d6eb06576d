// Package schema validates documents against JSON schemas. Each error has its place in the data, and the place in the
// schema that it breaks.
//
// A schema is of draft 7 or 2020-12, as its "$schema" says; without one it is of 2020-12. Nothing is fetched: other
// files come from a function of the caller. Formats are checked; unknown formats are ignored. Patterns are RE2. Schemas
// and data may be hostile: depth and steps are limited.
package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// Limits. Real schemas and data are a hundred times smaller.
const (
	maxSchemas   = 1 << 18 // nested schemas in all files together: 400 bytes each
	maxFiles     = 1000    // files that refer to each other
	maxURL       = 2000    // characters of an $id, resolved against the ones around it
	maxResources = 1 << 14 // schemas with an $id
	maxDepth     = 5000    // schemas being checked inside each other: 1 KB of stack each
	maxSteps     = 100e6   // steps for one document: a million texts of 40 characters against a usual pattern
	maxErrors    = 100_000 // errors that are kept
)

// Place is a position in a file.
type Place struct {
	File string
	document.Pos
}

// Loader has the caller's functions for files and keywords.
type Loader struct {
	// Path returns the file that a reference means. ref is relative to the file of from, and has no fragment.
	Path func(from Place, ref string) (string, error)
	// Read reads a file that Path returned or that was given to Compile. from is the place of the reference. Each file
	// is read once.
	Read func(from Place, path string) (document.Value, error)
	// Note returns a value for the caller's own keywords in a schema, or nil. Note may be nil.
	Note func(file string, schema document.Object) (any, error)
}

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	root  *node
	notes bool // some schema has a note
}

// Note is the note of a schema that holds for a value.
type Note struct {
	Value *document.Value
	Note  any // as returned by Loader.Note
}

// Kind is the kind of an error.
type Kind uint8

const (
	Broken Kind = iota // data breaks its schema, or a schema its draft
	Draft              // "$schema" names an unknown draft
	Circle             // a schema refers to itself without end
	Limit              // too large, too deep, too many
)

// Error is one error in data or in a schema.
type Error struct {
	Kind    Kind
	Place            // of the value or the key; File is empty for data
	Path    []string // keys and indices that lead to the value; nil if they are of no use
	Keyword string   // the keyword that failed
	Says    Place    // place of the keyword's value; File is empty if it is not in a file
	Text    string   // the actual value and the expected one
	Hint    string   // what to do next; may be empty
	depth   int      // depth of the value, or of the inner values that the error is about
}

// Message returns the text with the path in front, without its first less keys.
func (e *Error) Message(less int) string {
	if len(e.Path) <= less {
		return e.Text
	}
	var b strings.Builder
	for _, step := range e.Path[less:] {
		b.WriteString("/" + shorten(step))
	}
	return b.String() + ": " + e.Text
}

// Errors are all errors, in the order of the text.
type Errors []*Error

func (l Errors) Error() string {
	var lines []string
	for _, e := range l {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message(0)))
	}
	return strings.Join(lines, "\n")
}

// sorted sorts errors in the order of the text, and removes duplicates.
func (l Errors) sorted() Errors {
	slices.SortStableFunc(l, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), slices.Compare(a.Path, b.Path), strings.Compare(a.Text, b.Text),
			cmp.Compare(a.Says.Line, b.Says.Line), cmp.Compare(a.Says.Column, b.Says.Column))
	})
	return slices.CompactFunc(l, func(a, b *Error) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Text == b.Text && slices.Equal(a.Path, b.Path)
	})
}

// node is one compiled schema.
type node struct {
	value   *document.Value // as written
	res     *resource
	note    any
	always  bool // accepts everything
	never   bool // the schema false
	asserts []assertion
	refs    []reference

	allOf, anyOf, oneOf  []*node
	not, when, then, els *node

	properties map[string]*node
	known      document.Object // properties as written
	patterns   []patternSchema
	additional *node
	names      *node
	required   []string
	depends    []dependency

	prefix           []*node
	rest             *node
	restIsAdditional bool // rest is from additionalItems
	contains         *node
	minContains      int
	maxContains      int // -1 for no limit

	unevaluatedProperties, unevaluatedItems *node

	dynamicAnchor string
}

// assertion is a keyword that checks a value without schemas inside.
type assertion struct {
	rank    int
	keyword string
	on      types // the types of values that it applies to
	last    bool  // if it fails, later assertions are not checked
	holds   func(r *run, v *document.Value) bool
	says    func(r *run, v *document.Value) string
}

// reference is a $ref or $dynamicRef.
type reference struct {
	target *node
	anchor string // of a $dynamicRef, if its target has it too
}

type patternSchema struct {
	pattern *pattern
	schema  *node
}

// dependency is what an object needs if it has a key.
type dependency struct {
	keyword, key string
	at           document.Pos // place of what it needs
	needs        []string
	schema       *node
}

// types is a set of JSON's types. A number that is an integer has both bits.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeNumber
	typeInteger
	typeString
	typeArray
	typeObject
	typeAny = typeNull | typeBoolean | typeNumber | typeInteger | typeString | typeArray | typeObject
)

// Validate validates a document. It returns the errors as Errors. If there are none, it returns the notes of the
// schemas that hold, in the order of the text.
func (s *Schema) Validate(v *document.Value) ([]Note, error) {
	return s.ValidateUnder(context.Background(), v)
}

// ValidateUnder is like Validate. It ends when the context ends, with the error of the context.
func (s *Schema) ValidateUnder(ctx context.Context, v *document.Value) ([]Note, error) {
	r := &run{schema: s, steps: maxSteps, quiet: true, ctx: ctx}
	ok := r.visit(s.root, v, nil)
	if !ok && r.fatal == nil { // a second run, with texts
		r = &run{schema: s, steps: maxSteps, ctx: ctx}
		r.visit(s.root, v, nil)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case r.fatal != nil:
		return nil, Errors{r.fatal}
	case !ok:
		return nil, r.errors.sorted()
	}
	slices.SortStableFunc(r.notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Value.Line, b.Value.Line), cmp.Compare(a.Value.Column, b.Value.Column))
	})
	return r.notes, nil
}
