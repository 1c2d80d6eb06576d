package schema

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// The following methods read values of keywords, and add errors for invalid ones.

func (c *compiler) is(v *document.Value, want types) bool {
	if typeOf(v.V)&want != 0 {
		return true
	}
	c.wrong(v, wrongType(v.V, want))
	return false
}

func (c *compiler) text(v *document.Value) (string, bool) {
	s, _ := v.V.(string)
	return s, c.is(v, typeString)
}

// count reads an integer of 0 or more. A number beyond an int becomes the largest int.
func (c *compiler) count(m *document.Member) (int, bool) {
	v := m.Value.V
	if !c.is(&m.Value, typeInteger) {
		return -1, false
	}
	if compare(v, int64(0)) < 0 {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but must be at least 0", digits(v)))
		return -1, false
	}
	if compare(v, int64(math.MaxInt32)) > 0 {
		return math.MaxInt32, true
	}
	if f, isFloat := v.(float64); isFloat {
		return int(f), true
	}
	i, _ := v.(int64)
	return int(i), true
}

// uri reads a text of the format uri or uri-reference.
func (c *compiler) uri(v *document.Value, format string) (string, bool) {
	s, ok := c.text(v)
	if !ok {
		return "", false
	}
	u, err := url.Parse(s)
	what, hint, right := "URI", "", err == nil && u.IsAbs()
	if format == "uri-reference" { // references to files and keys may have ö and spaces unescaped, which RFC 3986 does not allow
		what, hint, right = "URI reference", "write a relative path", err == nil && !strings.Contains(s, `\`)
	}
	if !right {
		c.add(Error{Place: c.place(v.Pos), Keyword: c.keyword(), Text: fmt.Sprintf("%s %s is not a %s", cmp.Or(c.keyword(), "it"), quote(s), what), Hint: hint})
		return "", false
	}
	return s, true
}

// anchorName reads the name of an anchor.
func (c *compiler) anchorName(m *document.Member) (string, bool) {
	s, ok := c.text(&m.Value)
	if !ok {
		return "", false
	}
	letter := func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
	for i, r := range s {
		if !letter(r) && r != '_' && (i == 0 || !strings.ContainsRune("-.0123456789", r)) {
			ok = false
		}
	}
	if !ok || s == "" {
		c.wrong(&m.Value, fmt.Sprintf("is %s, but must be a name of letters, digits, -, _ and . that begins with a letter", quote(s)))
	}
	return s, ok && s != ""
}

func (c *compiler) atLeastOne(v *document.Value) {
	if l, ok := v.V.([]document.Value); ok && len(l) == 0 {
		c.wrong(v, "has 0 items, but must have at least 1")
	}
}

func (c *compiler) unique(v *document.Value) {
	l, _ := v.V.([]document.Value)
	if i, j := (&run{steps: maxSteps}).twins(l); i >= 0 {
		c.wrong(v, fmt.Sprintf("items %d and %d are equal, but no two may be", i, j))
	}
}

// strings reads a list of texts without duplicates.
func (c *compiler) strings(v *document.Value) []string {
	if !c.is(v, typeArray) {
		return nil
	}
	l, _ := v.V.([]document.Value)
	var all []string
	for i := range l {
		c.within(i, func() {
			if s, ok := c.text(&l[i]); ok {
				all = append(all, s)
			}
		})
	}
	c.unique(v)
	return all
}

func (c *compiler) schemaList(v *document.Value) []*node {
	l, _ := v.V.([]document.Value)
	nodes := make([]*node, len(l))
	for i := range l {
		c.within(i, func() { nodes[i] = c.schema(&l[i]) })
	}
	return nodes
}

func (c *compiler) schemaMap(m *document.Member) map[string]*node {
	if !c.is(&m.Value, typeObject) {
		return nil
	}
	o, _ := m.Value.V.(document.Object)
	nodes := make(map[string]*node, len(o))
	for i := range o {
		c.within(o[i].Key, func() { nodes[o[i].Key] = c.schema(&o[i].Value) })
	}
	return nodes
}
