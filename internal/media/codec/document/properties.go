package document

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Properties reads key and value pairs as Java's java.util.Properties.load does, as an object of strings. A file that is
// not UTF-8 is ISO 8859-1, as in PropertyResourceBundle since Java 9. Unlike there, a key that is given again is an error.
//
// A line is "key = value", "key: value" or "key value"; # and ! begin comments. A line that ends with an odd number of
// backslashes goes on in the next one, whose leading white space is skipped. Escapes are \t \n \r \f and \u with four
// hexadecimal digits; any other character after a backslash is itself.
func (under Reader) Properties(data []byte) (Value, error) {
	utf16 := bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
	if len(data) <= MaxSize && !utf16 && !utf8.Valid(data) {
		wide := make([]byte, 0, len(data)+len(data)/8)
		for _, c := range data {
			wide = utf8.AppendRune(wide, rune(c))
		}
		data = wide
	}
	text, err := prepare(data, MaxSize)
	if err != nil {
		return Value{}, err
	}
	text = unixLines(text, 0)
	p := &propertiesReader{text: text, cur: cursor{text: text}, left: newBudget(under.ctx)}
	o, err := p.object()
	return Value{Pos{1, 1, 1}, o}, err
}

type propertiesReader struct {
	text []byte
	at   int
	cur  cursor
	left budget
	seen keys
}

func (p *propertiesReader) object() (Object, error) {
	o := Object{}
	for {
		p.skip(" \t\f\r\n")
		if p.at == len(p.text) {
			return o, nil
		}
		switch c := p.text[p.at]; {
		case c == '#' || c == '!':
			p.comment()
			continue
		case c == '\\': // a line that begins by going on in the next one is nothing, and the next one may be a comment
			if p.at++; p.continued() || p.at == len(p.text) {
				continue
			}
			p.at--
		}
		m, err := p.member()
		if err != nil {
			return nil, err
		}
		o = append(o, m)
	}
}

func (p *propertiesReader) member() (Member, error) {
	from := p.at
	key, err := p.word(" \t\f:=")
	if err != nil {
		return Member{}, err
	}
	keyPos := p.cur.span(from, p.at)
	if err := p.seen.add(key, keyPos); err != nil {
		return Member{}, err
	}
	p.blanks()
	if p.at < len(p.text) && (p.text[p.at] == '=' || p.text[p.at] == ':') {
		p.at++
		p.blanks()
	}
	from = p.at
	value, err := p.word("")
	if err != nil {
		return Member{}, err
	}
	at := p.cur.span(from, max(from, p.at))
	return Member{Key: key, KeyPos: keyPos, Value: Value{at, value}}, p.left.spend(at, len(key)+len(value))
}

// word reads up to one of the characters or to the end of the line, without what is escaped.
func (p *propertiesReader) word(end string) (string, error) {
	var word []byte
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '\n':
			return string(word), nil
		case c == '\r' && p.at+1 < len(p.text) && p.text[p.at+1] == '\n':
			p.at++
		case c == '\\':
			var err error
			if word, err = p.escape(word); err != nil {
				return "", err
			}
		case bytes.IndexByte([]byte(end), c) >= 0:
			return string(word), nil
		default:
			word = append(word, c)
			p.at++
		}
	}
	return string(word), nil
}

// escape reads what begins with a backslash.
func (p *propertiesReader) escape(word []byte) ([]byte, error) {
	p.at++
	if p.continued() || p.at == len(p.text) {
		return word, nil
	}
	c := p.text[p.at]
	switch c {
	case 'u':
		r, err := p.unit(p.at - 1)
		if err != nil {
			return nil, err
		}
		return utf8.AppendRune(word, r), nil
	case 't', 'n', 'r', 'f':
		c = map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}[c]
	}
	p.at++
	return append(word, c), nil
}

// unit reads \u and four digits, and the second half of a character in two halves. from is where it begins.
func (p *propertiesReader) unit(from int) (rune, error) {
	one := func(at int) (rune, bool) {
		if at+6 > len(p.text) || p.text[at] != '\\' || p.text[at+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(p.text[at+2:at+6]), 16, 16)
		return rune(n), err == nil
	}
	r, ok := one(from)
	if !ok {
		return 0, errorf(Syntax, p.cur.at(from, 1), `\u needs four hexadecimal digits`).hint(`write \\ for a backslash`)
	}
	p.at = from + 6
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	second, _ := one(p.at)
	if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
		return 0, errorf(Encoding, p.cur.at(from, 6), "%s is half a character", p.text[from:from+6]).hint("write both halves, or the character itself")
	}
	p.at += 6
	return r, nil
}

// continued passes over the end of a line after a backslash, and the white space that begins the next line.
func (p *propertiesReader) continued() bool {
	rest := p.text[p.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		p.at += 2
	case bytes.HasPrefix(rest, []byte("\n")):
		p.at++
	default:
		return false
	}
	p.skip(" \t\f")
	return true
}

// blanks skips white space, and lines' ends after a backslash.
func (p *propertiesReader) blanks() {
	for {
		p.skip(" \t\f")
		if p.at == len(p.text) || p.text[p.at] != '\\' {
			return
		}
		p.at++
		if !p.continued() {
			p.at--
			return
		}
	}
}

func (p *propertiesReader) skip(set string) {
	for p.at < len(p.text) && bytes.IndexByte([]byte(set), p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *propertiesReader) comment() {
	if i := bytes.IndexByte(p.text[p.at:], '\n'); i >= 0 {
		p.at += i + 1
	} else {
		p.at = len(p.text)
	}
}
