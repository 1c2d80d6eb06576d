// Package schema validates documents against JSON schemas, and tells where: every complaint has
// its place in the data and the place in the schema that makes it.
//
// Its rules: a schema is of draft 7 or 2020-12, as its "$schema" says, and of
// 2020-12 without one; nothing is fetched, other files come from a function that the caller
// gives; formats are asserted, and a format that is not known says nothing;
// patterns are RE2. Schemas and data may be hostile: depth and steps are bounded.
package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// Limits. Real schemas and data stay a hundred times below them.
const (
	maxSchemas   = 1 << 18 // schemas within each other in all files of one: 400 bytes each
	maxFiles     = 1000    // files that refer to each other
	maxURL       = 2000    // characters of an $id with those around it
	maxResources = 1 << 14 // schemas with an $id
	maxDepth     = 5000    // schemas that are asked within each other: 1 KB of stack each
	maxSteps     = 100e6   // questions asked of one document: a million texts of 40 characters against a usual pattern
	maxErrors    = 100_000 // complaints that are kept
)

// Place is where something stands in a file.
type Place struct {
	File string
	document.Pos
}

// Loader is how a schema meets its surroundings.
type Loader struct {
	// Path is the file that a reference means, which is relative to the file where it stands. It has no fragment.
	Path func(from Place, ref string) (string, error)
	// Read gives a file that Path or the caller of Compile named at from. Each is asked for once.
	Read func(from Place, path string) (document.Value, error)
	// Note is what the caller makes of keywords of its own in a schema; nil for nothing. It may be nil itself.
	Note func(file string, schema document.Object) (any, error)
}

// Schema is a compiled schema. It may be used by many goroutines.
type Schema struct {
	root  *node
	notes bool // some schema has a note
}

// Note is what a schema that holds for a value has noted.
type Note struct {
	Value *document.Value
	Note  any // as Loader.Note gave it
}

// Kind is the kind of an error.
type Kind uint8

const (
	Broken Kind = iota // data breaks its schema, or a schema its draft
	Draft              // "$schema" names no draft that is known
	Circle             // a schema refers to itself and gets no further
	Limit              // too large, too deep, too many
)

// Error is one thing that is wrong.
type Error struct {
	Kind    Kind
	Place            // of the value or the key; File is empty in the data
	Path    []string // keys and indices that lead to the value; nil if they say nothing
	Keyword string   // which complains
	Says    Place    // of the keyword's value; without File if no schema in a file says so
	Text    string   // what is there and what should be
	Hint    string   // what to do next; may be empty
	depth   int      // of the value, or of those inside it that are the matter
}

// Message is the text with the path in front, less so many keys of it.
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

// Errors are all that is wrong, in the order of the text.
type Errors []*Error

func (l Errors) Error() string {
	var lines []string
	for _, e := range l {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message(0)))
	}
	return strings.Join(lines, "\n")
}

// sorted puts errors in the order of the text, and each there once.
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
	value   *document.Value // as it is written
	res     *resource
	note    any
	always  bool // nothing is asked
	never   bool // the schema false
	asserts []assertion
	refs    []reference

	allOf, anyOf, oneOf  []*node
	not, when, then, els *node

	properties map[string]*node
	known      document.Object // properties as they are written
	patterns   []patternSchema
	additional *node
	names      *node
	required   []string
	depends    []dependency

	prefix           []*node
	rest             *node
	restIsAdditional bool // rest is of additionalItems
	contains         *node
	minContains      int
	maxContains      int // -1 for any

	unevaluatedProperties, unevaluatedItems *node

	dynamicAnchor string
}

// assertion is a keyword that judges a value by itself, without schemas inside.
type assertion struct {
	rank    int
	keyword string
	on      types // the values that it speaks of
	last    bool  // where it fails, nothing else is asked
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

// dependency is what an object needs that has a key.
type dependency struct {
	keyword, key string
	at           document.Pos // of what it needs
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

// Validate tells what is wrong with a document, as Errors, or else what the schemas that hold have
// noted, in the order of the text.
func (s *Schema) Validate(v *document.Value) ([]Note, error) {
	return s.ValidateUnder(context.Background(), v)
}

// ValidateUnder is Validate until a context ends; then the error is the context's.
func (s *Schema) ValidateUnder(ctx context.Context, v *document.Value) ([]Note, error) {
	r := &run{schema: s, steps: maxSteps, quiet: true, ctx: ctx}
	ok := r.visit(s.root, v, nil)
	if !ok && r.fatal == nil { // once more, with words
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
