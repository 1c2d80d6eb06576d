package schema

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// compileText compiles a schema of one file.
func compileText(t testing.TB, text string) (*Schema, error) {
	t.Helper()
	return Compile(Loader{Read: func(Place, string) (document.Value, error) { return document.JSON([]byte(text)) }}, Place{}, "main.json", "")
}

// TestInstructions compares the estimate with the program that Go compiles.
func TestInstructions(t *testing.T) {
	for _, p := range []string{"a", "^[a-z_][a-z0-9_]*$", `^\d{4}-\d{2}-\d{2}$`, "a{1000}", "(a|bc|d)*e+", "((a{10}){10}){9}", "x{0,500}y{20,}", `\p{L}+`, "(?i)sprite|level|sound", "[^a]{30}", "(((a?)?)?)?"} {
		re, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		guess := instructions(re)
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		// One unit may have two instructions (a capture, an optional copy). A class of many ranges is one instruction.
		if real := len(prog.Inst); 3*guess+4 < real {
			t.Errorf("%s: the estimate is %d, but there are %d", p, guess, real)
		}
	}
}

func TestPatternLimits(t *testing.T) {
	large := func(c string) string { return "(" + strings.Repeat(c, 550) + "){1000}" }
	for _, text := range []string{
		`{"pattern": "` + large("abc") + `"}`,
		`{"patternProperties": {"` + large("a") + `": {"items": {"pattern": "` + large("b") + `"}}}}`,
	} {
		_, err := compileText(t, text)
		if err == nil || !strings.Contains(err.Error(), "are too large together") {
			t.Errorf("%.60s: %v", text, err)
		}
	}
	var many []string // realistic ones, of a hundred instructions each
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"pattern": "^sprites/[a-z0-9_/]{3,60}_%d\\.(png|tga|jpg)$"}`, i))
	}
	if _, err := compileText(t, `{"anyOf": [`+strings.Join(many, ",")+`]}`); err != nil {
		t.Error(err)
	}
}

// TestPatternPrice matches a text for which Go's matcher would take minutes.
func TestPatternPrice(t *testing.T) {
	s, err := compileText(t, `{"items": {"pattern": "^(a?){1000}b$"}}`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 1<<20)
	v := document.Value{V: []document.Value{{V: text}, {V: text}}}
	if _, err := s.Validate(&v); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("it took no more steps than allowed: %v", err)
	}
}
