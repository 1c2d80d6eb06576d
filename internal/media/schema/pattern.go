package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// maxInstructions limits all patterns of a schema together. An instruction takes 40 bytes. Usual patterns have ten to a
// hundred; but Go accepts a thousand repeats of three thousand characters, which take 120 MB.
const maxInstructions = 1 << 20

// pattern is a regular expression with a cost. The time of Go's matcher is proportional to the text, but at each
// character it may be at all instructions at once, 40 ns each.
type pattern struct {
	expr *regexp.Regexp
	size int // number of instructions, estimated
}

// matches reports whether the pattern matches a part of a text.
func (p *pattern) matches(r *run, s string) bool {
	return r.spend(1+len(s)*p.size/16) && p.expr.MatchString(s)
}

// pattern compiles a regular expression. Each text is compiled once. The size is estimated before memory is allocated.
func (c *compiler) pattern(text string, at document.Pos) *pattern {
	if p := c.patterns[text]; p != nil {
		return p
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		c.add(Error{Place: c.place(at), Keyword: "pattern", Text: fmt.Sprintf("pattern %s cannot be used: %s", quote(text), shorten(strings.TrimPrefix(err.Error(), "error parsing regexp: "))), Hint: "patterns are RE2: no look-around, no back references"})
		return nil
	}
	size := instructions(parsed)
	if c.instructions += size; c.instructions > maxInstructions {
		c.add(Error{Kind: Limit, Place: c.place(at), Keyword: "pattern", Text: fmt.Sprintf("the patterns of the schema up to %s are too large together", quote(text)), Hint: "have them repeat less: a{1000} is a thousand times as large as a"})
		return nil
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		c.add(Error{Place: c.place(at), Keyword: "pattern", Text: fmt.Sprintf("pattern %s cannot be used: %v", quote(text), err)})
		return nil
	}
	if c.patterns == nil {
		c.patterns = map[string]*pattern{}
	}
	c.patterns[text] = &pattern{expr, size}
	return c.patterns[text]
}

// instructions estimates the size of the program for a pattern. The parser limits its depth (1,000) and its repeats.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += 1 + instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
