package document

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON reads strict JSON (RFC 8259).
func (r Reader) JSON(data []byte) (Value, error) {
	return readJSON(data, &jsonReader{left: newBudget(r.ctx)})
}

// Written reads strict JSON for callers that write it again, within their own limits. Numbers are Literals; an escape with
// half a surrogate pair becomes U+FFFD, as in encoding/json.
func Written(data []byte, lim Limits) (Value, error) {
	return readJSON(data, &jsonReader{left: budget{lim.Values, lim.Size, lim, context.Background()}, written: true})
}

// RelaxedJSON reads JSON with extensions for text written by hand: comments (// and /* */), trailing commas, a line end
// instead of a comma, keys and strings without quotes or in single quotes, numbers like +1, .5, 5. and 0x1f. That covers
// JSON5 (without infinities) and libGDX's dialect. Text without quotes ends before , : { } [ ] quotes, comments and the line
// end. It is read as in JSON: true, false, null or a number; any other text is a string.
func (r Reader) RelaxedJSON(data []byte) (Value, error) {
	return readJSON(data, &jsonReader{left: newBudget(r.ctx), relaxed: true})
}

type jsonReader struct {
	cur     cursor
	text    []byte
	pos     int
	relaxed bool
	written bool
	left    budget
	names   map[string]string // makes the same key in a thousand rows share one string
}

func readJSON(data []byte, r *jsonReader) (Value, error) {
	text, err := prepare(data, r.left.of.Size)
	if err != nil {
		return Value{}, err
	}
	r.cur, r.text, r.names = cursor{text: text}, text, map[string]string{}
	if _, err := r.space(); err != nil {
		return Value{}, err
	}
	if r.pos == len(text) {
		return Value{}, r.syntax(r.pos, 1, "the file has no value").hint("write {} for an empty file")
	}
	v, err := r.value(1)
	if err != nil {
		return Value{}, err
	}
	if _, err := r.space(); err != nil {
		return Value{}, err
	}
	if r.pos < len(text) {
		return Value{}, r.unexpected("the end of the file")
	}
	return v, nil
}

func (r *jsonReader) syntax(off, length int, format string, args ...any) *Error {
	return errorf(Syntax, r.cur.at(off, length), format, args...)
}

// unexpected returns the error for the text at pos, which should be what want says.
func (r *jsonReader) unexpected(want string) *Error {
	rest := r.text[r.pos:]
	if len(rest) == 0 {
		return r.syntax(r.pos, 1, "the file ends where %s should be", want)
	}
	if bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) {
		return r.syntax(r.pos, 2, "a comment stands where %s should be", want)
	}
	c, _ := utf8.DecodeRune(rest)
	if c < ' ' || c == utf8.RuneError {
		return r.syntax(r.pos, 1, "character %U stands where %s should be", c, want)
	}
	return r.syntax(r.pos, 1, "%q stands where %s should be", string(c), want)
}

// space skips white space, and comments if they are allowed. It reports whether it skipped a line end.
func (r *jsonReader) space() (newline bool, err error) {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == '\n' || c == '\r':
			newline = true
			r.pos++
		case c == ' ' || c == '\t' || r.relaxed && (c == '\v' || c == '\f'):
			r.pos++
		case r.relaxed && r.comment():
			rest := r.text[r.pos:]
			end, size := bytes.IndexByte(rest, '\n'), 0
			if rest[1] == '*' {
				end, size = bytes.Index(rest[2:], []byte("*/"))+2, 2
				if end == 1 {
					return false, r.syntax(r.pos, 2, "the comment is not closed").hint(`close it with "*/"`)
				}
			} else if end < 0 {
				end = len(rest)
			}
			r.pos += end + size
		default:
			return newline, nil
		}
	}
	return newline, nil
}

func (r *jsonReader) comment() bool {
	rest := r.text[r.pos:]
	return len(rest) > 1 && rest[0] == '/' && (rest[1] == '/' || rest[1] == '*')
}

// value reads the value at pos.
func (r *jsonReader) value(depth int) (Value, error) {
	if r.pos == len(r.text) {
		return Value{}, r.unexpected("a value")
	}
	start := r.pos
	var v any
	var err error
	switch c := r.text[r.pos]; {
	case c == '{' || c == '[':
		v := Value{Pos: r.cur.at(start, 1)}
		if err := r.left.checkDepth(v.Pos, depth); err != nil {
			return Value{}, err
		}
		if err := r.left.spend(v.Pos, 0); err != nil {
			return Value{}, err
		}
		if c == '{' {
			v.V, err = r.object(v.Pos, depth)
		} else {
			v.V, err = r.array(v.Pos, depth)
		}
		return v, err
	case c == '"' || c == '\'' && r.relaxed:
		v, err = r.quoted()
	default:
		v, err = r.bare()
	}
	if err != nil {
		return Value{}, err
	}
	s, _ := v.(string)
	at := r.cur.span(start, r.pos)
	return Value{at, v}, r.left.spend(at, len(s))
}

func (r *jsonReader) array(open Pos, depth int) ([]Value, error) {
	list := []Value{}
	r.pos++
	for {
		if done, err := r.close(']', len(list), open); done || err != nil {
			return list, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

func (r *jsonReader) object(open Pos, depth int) (Object, error) {
	o := Object{}
	var seen keys
	r.pos++
	for {
		if done, err := r.close('}', len(o), open); done || err != nil {
			return o, err
		}
		start := r.pos
		key, err := r.key()
		if err != nil {
			return nil, err
		}
		m := Member{Key: key, KeyPos: r.cur.span(start, r.pos)}
		if err := seen.add(key, m.KeyPos); err != nil {
			return nil, err
		}
		if _, err := r.space(); err != nil {
			return nil, err
		}
		if r.pos == len(r.text) || r.text[r.pos] != ':' {
			return nil, r.unexpected(`":"`)
		}
		r.pos++
		if _, err := r.space(); err != nil {
			return nil, err
		}
		if m.Value, err = r.value(depth + 1); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
}

// close moves to the next element of a container, after n elements, or past the closing bracket.
func (r *jsonReader) close(end byte, n int, open Pos) (done bool, err error) {
	newline, err := r.space()
	if err != nil {
		return false, err
	}
	comma := -1
	if n > 0 && r.pos < len(r.text) && r.text[r.pos] == ',' {
		comma = r.pos
		r.pos++
		if _, err := r.space(); err != nil {
			return false, err
		}
	}
	switch {
	case r.pos == len(r.text):
		return false, r.syntax(r.pos, 1, "the file ends before the bracket at %d:%d is closed", open.Line, open.Column).hint("add the missing " + string(end))
	case r.text[r.pos] == end && comma >= 0 && !r.relaxed:
		return false, r.syntax(comma, 1, "a comma stands before the closing %q", string(end)).hint("remove the comma")
	case r.text[r.pos] == end:
		r.pos++
		return true, nil
	case n > 0 && comma < 0 && !(r.relaxed && newline):
		return false, r.unexpected(`"," or "` + string(end) + `"`).hint("a comma or a bracket is missing before it")
	}
	return false, nil
}

func (r *jsonReader) key() (string, error) {
	var key string
	var err error
	switch c := r.text[r.pos]; {
	case c == '"' || c == '\'' && r.relaxed:
		key, err = r.quoted()
	case r.relaxed:
		if key = r.word(); key == "" {
			err = r.unexpected("a key")
		}
	default:
		err = r.unexpected("a key in double quotes")
	}
	if err != nil {
		return "", err
	}
	if name, ok := r.names[key]; ok {
		return name, nil
	}
	r.names[key] = key
	return key, nil
}

// word reads text without quotes, up to a character with a special meaning.
func (r *jsonReader) word() string {
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte("{}[],:\"'\r\n", r.text[r.pos]) < 0 && !r.comment() {
		r.pos++
	}
	word := bytes.TrimRight(r.text[start:r.pos], " \t\v\f")
	r.pos = start + len(word)
	return string(word)
}

// bare reads a value without quotes.
func (r *jsonReader) bare() (any, error) {
	start := r.pos
	var word string
	if r.relaxed {
		word = r.word()
	} else {
		for r.pos < len(r.text) && (r.text[r.pos] >= utf8.RuneSelf || strings.IndexByte(" \t\r\n{}[],:\"'/", r.text[r.pos]) < 0) {
			r.pos++
		}
		word = string(r.text[start:r.pos])
	}
	switch word {
	case "":
		r.pos = start
		return nil, r.unexpected("a value")
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	at := r.cur.span(start, r.pos)
	if ok, integer := isNumber(word); ok {
		if r.written {
			return Literal(word), nil
		}
		return number(word, integer, at)
	}
	if r.relaxed {
		return relaxedWord(word, at)
	}
	return nil, errorf(Syntax, at, "%q is not a JSON value", shorten(word)).hint("a string stands in double quotes; a number has digits on both sides of its point and no leading zero or plus")
}

// relaxedWord reads the numbers that JSON5 adds to JSON; any other word is a string.
func relaxedWord(word string, at Pos) (any, error) {
	unsigned, negative := strings.CutPrefix(word, "-")
	if !negative {
		unsigned = strings.TrimPrefix(word, "+")
	}
	sign := word[:0]
	if negative {
		sign = "-"
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(unsigned), "0x"); ok && hex != "" && strings.Trim(hex, "0123456789abcdef") == "" {
		return integerOf(sign+hex, 16, at)
	}
	if unsigned == "Infinity" || unsigned == "NaN" {
		return nil, errorf(Number, at, "%s is not a finite number", word).hint("write null or a very large number; put quotes around it if it is a name")
	}
	fixed := unsigned
	if strings.HasPrefix(fixed, ".") {
		fixed = "0" + fixed
	}
	if whole, rest, found := strings.Cut(fixed, "."); found && (rest == "" || rest[0] == 'e' || rest[0] == 'E') {
		fixed = whole + ".0" + rest
	}
	if ok, integer := isNumber(sign + fixed); ok && !strings.HasPrefix(fixed, "-") {
		return number(sign+fixed, integer, at)
	}
	return word, nil
}

// quoted reads the string whose opening quote is at pos.
func (r *jsonReader) quoted() (string, error) {
	start, quote := r.pos, r.text[r.pos]
	r.pos++
	from := r.pos
	var b []byte // nil as long as the string has no escapes
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == quote:
			s := string(append(b, r.text[from:r.pos]...))
			r.pos++
			return s, nil
		case c == '\\':
			b = append(b, r.text[from:r.pos]...)
			var err error
			if b, err = r.escape(b); err != nil {
				return "", err
			}
			from = r.pos
		case c < ' ' && !r.relaxed:
			if c == '\n' || c == '\r' {
				return "", errorf(Syntax, r.cur.span(start, r.pos), "the string is not closed on its line").hint(`close it with a quote, or write a line's end as \n`)
			}
			return "", r.syntax(r.pos, 1, "character %U stands in a string as it is", c).hint(`write it as an escape: \t, \u0001`)
		default:
			r.pos++
		}
	}
	return "", r.syntax(start, 1, "the string is not closed").hint("close it with a quote")
}

// escape reads the escape whose backslash is at pos.
func (r *jsonReader) escape(b []byte) ([]byte, error) {
	start := r.pos
	r.pos += 2
	if r.pos > len(r.text) {
		r.pos = len(r.text)
		return nil, r.syntax(start, 1, "the file ends within a string")
	}
	switch c := r.text[start+1]; c {
	case '"', '\\', '/':
		return append(b, c), nil
	case 'b', 'f', 'n', 'r', 't':
		return append(b, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)]), nil
	case 'u':
		return r.unicode(b, start)
	case '\'':
		if r.relaxed {
			return append(b, c), nil
		}
	case '\n':
		if r.relaxed { // JSON5: the string continues on the next line
			return b, nil
		}
	case '\r':
		if r.relaxed {
			if r.pos < len(r.text) && r.text[r.pos] == '\n' {
				r.pos++
			}
			return b, nil
		}
	}
	return nil, r.syntax(start, 2, "unknown escape in a string").hint(`write a backslash as "\\"`)
}

// unicode reads \uXXXX, and the second half of a surrogate pair.
func (r *jsonReader) unicode(b []byte, start int) ([]byte, error) {
	first, ok := r.hex4(start + 2)
	if !ok {
		return nil, r.syntax(start, 2, `\u needs four hexadecimal digits`)
	}
	r.pos = start + 6
	if !utf16.IsSurrogate(first) {
		return utf8.AppendRune(b, first), nil
	}
	if bytes.HasPrefix(r.text[r.pos:], []byte(`\u`)) {
		if second, ok := r.hex4(r.pos + 2); ok {
			if c := utf16.DecodeRune(first, second); c != utf8.RuneError {
				r.pos += 6
				return utf8.AppendRune(b, c), nil
			}
		}
	}
	if r.written {
		return utf8.AppendRune(b, utf8.RuneError), nil
	}
	return nil, errorf(Encoding, r.cur.at(start, 6), `\u%04x is half a character`, first).hint("write the character itself, or both halves of its surrogate pair")
}

func (r *jsonReader) hex4(at int) (rune, bool) {
	if at+4 > len(r.text) {
		return 0, false
	}
	var c rune
	for _, d := range r.text[at : at+4] {
		i := strings.IndexByte("0123456789abcdefABCDEF", d)
		if i < 0 {
			return 0, false
		}
		if i > 15 {
			i -= 6
		}
		c = c<<4 | rune(i)
	}
	return c, true
}
