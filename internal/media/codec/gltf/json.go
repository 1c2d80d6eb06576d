package gltf

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind of a JSON value.
type Kind uint8

const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Value is one JSON value. It keeps what encoding/json would lose: the order of an object's
// members, how a number is written, and where in the text the value stands.
type Value struct {
	Kind       Kind
	start, end int32 // bytes of the text; both 0 in a value that was not read

	Text  string   // a string's value; a number, true, false or null as it is written
	Names []string // an object's member names
	Items []*Value // an array's items, or the values of an object's members
}

// Get is the member of an object, or nil if there is none or v is no object.
func (v *Value) Get(name string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	for i, n := range v.Names {
		if n == name {
			return v.Items[i]
		}
	}
	return nil
}

// Path is Get, one name after the other.
func (v *Value) Path(names ...string) *Value {
	for _, n := range names {
		v = v.Get(n)
	}
	return v
}

// Array is the items of an array member, or nil.
func (v *Value) Array(name string) []*Value {
	if a := v.Get(name); a != nil && a.Kind == Array {
		return a.Items
	}
	return nil
}

// Str is the text of a string member, or "".
func (v *Value) Str(name string) string {
	if s := v.Get(name); s != nil && s.Kind == String {
		return s.Text
	}
	return ""
}

// Int is the value of an integer, which may be written as 3, 3.0 or 3e0, up to 2^53.
func (v *Value) Int() (int64, bool) {
	if v == nil || v.Kind != Number {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
		return n, n >= -1<<53 && n <= 1<<53
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// int is Int of a member, or the default.
func (v *Value) int(name string, otherwise int64) int64 {
	if n, ok := v.Get(name).Int(); ok {
		return n
	}
	return otherwise
}

// Set gives an object a member, in the place of one of that name, else at the end.
func (v *Value) Set(name string, member *Value) {
	for i, n := range v.Names {
		if n == name {
			v.Items[i] = member
			return
		}
	}
	v.Names = append(v.Names, name)
	v.Items = append(v.Items, member)
}

// Delete removes a member, if there is one.
func (v *Value) Delete(name string) {
	for i, n := range v.Names {
		if n == name {
			v.Names = append(v.Names[:i:i], v.Names[i+1:]...)
			v.Items = append(v.Items[:i:i], v.Items[i+1:]...)
			return
		}
	}
}

// Walk calls visit for v and all that is in it, an outer value before its inner ones.
func (v *Value) Walk(visit func(*Value)) {
	if v == nil {
		return
	}
	visit(v)
	for _, item := range v.Items {
		item.Walk(visit)
	}
}

// NewString, NewInt and NewObject make values.
func NewString(s string) *Value { return &Value{Kind: String, Text: s} }

// NewInt makes a number.
func NewInt(n int64) *Value { return &Value{Kind: Number, Text: strconv.FormatInt(n, 10)} }

// NewObject makes an object without members.
func NewObject() *Value { return &Value{Kind: Object} }

// AppendJSON appends the value as JSON without white space: members in their order, numbers as they
// were written, strings in UTF-8 with as few escapes as JSON allows.
func (v *Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case String:
		return appendString(b, v.Text)
	case Array, Object:
		open, end := byte('['), byte(']')
		if v.Kind == Object {
			open, end = '{', '}'
		}
		b = append(b, open)
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			if v.Kind == Object {
				b = append(appendString(b, v.Names[i]), ':')
			}
			b = item.AppendJSON(b)
		}
		return append(b, end)
	default:
		return append(b, v.Text...)
	}
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// syntaxError is where a text stops being JSON.
type syntaxError struct {
	offset int
	kind   Problem
	text   string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.offset, e.text) }

// parseJSON reads a whole text (RFC 8259). Names in an object must be unique, as glTF asks.
func parseJSON(text string, lim Limits) (*Value, error) {
	if len(text) > lim.JSON || len(text) > math.MaxInt32 {
		return nil, &syntaxError{0, TooBig, fmt.Sprintf("%d bytes of JSON are over the limit of %d", len(text), lim.JSON)}
	}
	if !utf8.ValidString(text) {
		return nil, &syntaxError{firstInvalid(text), Syntax, "the text is not valid UTF-8"}
	}
	p := &parser{text: text, lim: lim}
	p.pos = len(text) - len(strings.TrimPrefix(text, "\ufeff"))
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(text) {
		return nil, p.fail("there is more after the end of the JSON")
	}
	return v, nil
}

func firstInvalid(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

type parser struct {
	text   string
	pos    int
	values int
	lim    Limits
}

func (p *parser) fail(format string, args ...any) error {
	return &syntaxError{p.pos, Syntax, fmt.Sprintf(format, args...)}
}

// unexpected says what is at the position instead of what is wanted.
func (p *parser) unexpected(want string) error {
	if p.pos >= len(p.text) {
		return p.fail("the text ends where %s should be", want)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return p.fail("%q stands where %s should be", r, want)
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// accept skips white space, and then c if it is there.
func (p *parser) accept(c byte) bool {
	p.space()
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) value(depth int) (*Value, error) {
	p.space()
	if depth > p.lim.Depth {
		return nil, &syntaxError{p.pos, TooBig, fmt.Sprintf("values are nested over %d deep", p.lim.Depth)}
	}
	if p.values++; p.values > p.lim.Values {
		return nil, &syntaxError{p.pos, TooBig, fmt.Sprintf("there are over %d values", p.lim.Values)}
	}
	v := &Value{start: int32(p.pos)}
	var err error
	switch c := p.peek(); {
	case c == '{':
		err = p.object(v, depth)
	case c == '[':
		err = p.array(v, depth)
	case c == '"':
		v.Kind = String
		v.Text, err = p.str()
	case c == '-' || '0' <= c && c <= '9':
		v.Kind = Number
		v.Text, err = p.number()
	default:
		v.Kind, v.Text, err = p.word()
	}
	v.end = int32(p.pos)
	return v, err
}

func (p *parser) word() (Kind, string, error) {
	for word, kind := range map[string]Kind{"true": Bool, "false": Bool, "null": Null} {
		if strings.HasPrefix(p.text[p.pos:], word) {
			p.pos += len(word)
			return kind, word, nil
		}
	}
	return 0, "", p.unexpected("a value")
}

func (p *parser) array(v *Value, depth int) error {
	v.Kind = Array
	p.pos++
	if p.accept(']') {
		return nil
	}
	for {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
		if p.accept(']') {
			return nil
		}
		if !p.accept(',') {
			return p.unexpected(`"," or "]"`)
		}
	}
}

func (p *parser) object(v *Value, depth int) error {
	v.Kind = Object
	p.pos++
	if p.accept('}') {
		return nil
	}
	seen := map[string]bool{}
	for {
		p.space()
		at := p.pos
		if p.peek() != '"' {
			return p.unexpected("the name of a member")
		}
		name, err := p.str()
		if err != nil {
			return err
		}
		if seen[name] {
			p.pos = at
			return p.fail("member %q is there twice", name)
		}
		seen[name] = true
		if !p.accept(':') {
			return p.unexpected(`":"`)
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.Names, v.Items = append(v.Names, name), append(v.Items, item)
		if p.accept('}') {
			return nil
		}
		if !p.accept(',') {
			return p.unexpected(`"," or "}"`)
		}
	}
}

// str reads a string; the position is at its opening quote.
func (p *parser) str() (string, error) {
	start, escaped := p.pos, false
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			if !escaped {
				return p.text[start+1 : p.pos-1], nil
			}
			var s string
			if err := json.Unmarshal([]byte(p.text[start:p.pos]), &s); err != nil {
				p.pos = start
				return "", p.fail("the string has an escape that JSON does not know")
			}
			return s, nil
		case c == '\\':
			escaped = true
			p.pos++
		case c < ' ':
			return "", p.fail("a string has a control character, or its closing quote is missing")
		}
	}
	p.pos = start
	return "", p.fail("the string has no closing quote")
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (p *parser) number() (string, error) {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if !p.digits() {
		return "", p.unexpected("a digit")
	}
	if p.peek() == '.' {
		p.pos++
		if !p.digits() {
			return "", p.unexpected("a digit")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			return "", p.unexpected("a digit")
		}
	}
	return p.text[start:p.pos], nil
}

func (p *parser) digits() bool {
	start := p.pos
	for '0' <= p.peek() && p.peek() <= '9' {
		p.pos++
	}
	return p.pos > start
}
