package schema

import (
	"net/netip"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// formatOf is the check of a format that "format" names, or nil if there is none of that name.
// Each is held to the grammar that the specification cites for it, on syntax alone: whether a
// host exists is nobody's business here. It is a switch, not a map, so that it costs nothing at
// start-up.
func formatOf(name string) func(string) bool {
	switch name {
	case "date":
		return isDate
	case "time":
		return isTime
	case "date-time":
		return isDateTime
	case "duration":
		return isDuration
	case "period":
		return isPeriod
	case "email":
		return isEmail
	case "hostname":
		return isHostname
	case "ipv4":
		return isIPv4
	case "ipv6":
		return isIPv6
	case "uri":
		return func(s string) bool { return isReference(s, true, false) }
	case "uri-reference":
		return func(s string) bool { return isReference(s, false, false) }
	case "iri":
		return func(s string) bool { return isReference(s, true, true) }
	case "iri-reference":
		return func(s string) bool { return isReference(s, false, true) }
	case "uri-template":
		return isURITemplate
	case "uuid":
		return isUUID
	case "json-pointer":
		return isPointer
	case "relative-json-pointer":
		return isRelativePointer
	case "regex":
		return isRegex
	case "semver":
		return isSemver
	}
	return nil
}

// scan reads a short text from its start. What is not as it must be makes it bad for good, so
// that a grammar is written down without a test at every step.
type scan struct {
	rest string
	bad  bool
}

// end tells whether all was read and all was right.
func (s *scan) end() bool { return !s.bad && s.rest == "" }

// skip reads one byte if it is among those of a set, and returns it, or 0.
func (s *scan) skip(set string) byte {
	if s.bad || s.rest == "" || strings.IndexByte(set, s.rest[0]) < 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// one reads one byte, which must be among those of a set.
func (s *scan) one(set string) byte {
	b := s.skip(set)
	s.bad = s.bad || b == 0
	return b
}

// digits reads one digit or more, as many as there are.
func (s *scan) digits() string {
	n := 0
	for n < len(s.rest) && isDigit(s.rest[n]) {
		n++
	}
	s.bad = s.bad || n == 0
	d := s.rest[:n]
	s.rest = s.rest[n:]
	return d
}

// number reads a number of so many digits, which must be within bounds.
func (s *scan) number(width, least, most int) int {
	n := 0
	for range width {
		n = n*10 + int(s.one("0123456789")) - '0'
	}
	s.bad = s.bad || n < least || n > most
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
func isHex(b byte) bool { return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }

// only tells whether all bytes of a text are letters and digits of ASCII, or among those of a set.
func only(s, set string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && !isDigit(s[i]) && strings.IndexByte(set, s[i]) < 0 {
			return false
		}
	}
	return true
}

// isDate is full-date of RFC 3339, section 5.6, with the days of months of section 5.7.
func isDate(text string) bool {
	s := scan{rest: text}
	year := s.number(4, 0, 9999)
	s.one("-")
	month := s.number(2, 1, 12)
	s.one("-")
	day := s.number(2, 1, 31)
	if !s.end() {
		return false
	}
	switch month {
	case 2:
		leap := year%4 == 0 && (year%100 != 0 || year%400 == 0)
		return day <= 28 || leap && day == 29
	case 4, 6, 9, 11:
		return day <= 30
	}
	return true
}

// isTime is full-time of RFC 3339, section 5.6. A second 60 is in its place only where it is
// 23:59 in UTC (section 5.7); which days had one is not asked.
func isTime(text string) bool {
	s := scan{rest: text}
	minute := s.number(2, 0, 23) * 60
	s.one(":")
	minute += s.number(2, 0, 59)
	s.one(":")
	second := s.number(2, 0, 60)
	if s.skip(".") != 0 {
		s.digits()
	}
	if sign := s.one("Zz+-"); sign == '+' || sign == '-' {
		offset := s.number(2, 0, 23) * 60
		s.one(":")
		offset += s.number(2, 0, 59)
		if sign == '+' {
			offset = -offset
		}
		minute = (minute + offset + 24*60) % (24 * 60)
	}
	return s.end() && (second < 60 || minute == 23*60+59)
}

// isDateTime is date-time of RFC 3339, section 5.6.
func isDateTime(s string) bool {
	return len(s) > 10 && (s[10] == 'T' || s[10] == 't') && isDate(s[:10]) && isTime(s[11:])
}

// isDuration is duration of RFC 3339, appendix A: weeks alone, or years, months and days and after
// a T hours, minutes and seconds. There, a unit may be left out only at the ends: P1Y2D is none.
func isDuration(text string) bool {
	s := scan{rest: text}
	s.one("P")
	if n, ok := strings.CutSuffix(s.rest, "W"); ok {
		weeks := scan{rest: n, bad: s.bad}
		weeks.digits()
		return weeks.end()
	}
	if !strings.HasPrefix(s.rest, "T") {
		s.units("YMD")
		if s.rest == "" {
			return s.end()
		}
	}
	s.one("T")
	s.units("HMS")
	return s.end()
}

// units reads numbers with neighbouring units, at least one of them.
func (s *scan) units(all string) {
	s.digits()
	at := strings.IndexByte(all, s.one(all))
	for at++; at > 0 && at < len(all) && s.rest != "" && isDigit(s.rest[0]); at++ {
		s.digits()
		s.one(all[at : at+1])
	}
}

// isPeriod is period of RFC 3339, appendix A, with date-times as section 5.6 writes them.
func isPeriod(s string) bool {
	start, end, ok := strings.Cut(s, "/")
	switch {
	case !ok:
		return false
	case strings.HasPrefix(start, "P"):
		return isDuration(start) && isDateTime(end)
	}
	return isDateTime(start) && (isDateTime(end) || isDuration(end))
}

// isEmail is Mailbox of RFC 5321, section 4.1.2, with the lengths of section 4.5.3.1. Of address
// literals it takes those for IPv4 and IPv6 (section 4.1.3); there is no other tag.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 || !isLocalPart(s[:at]) {
		return false
	}
	domain := s[at+1:]
	literal, ok := strings.CutPrefix(domain, "[")
	if !ok {
		return isHostname(domain)
	}
	if literal, ok = strings.CutSuffix(literal, "]"); !ok {
		return false
	}
	const tag = "ipv6:" // in ABNF, the case of letters in quotes says nothing
	if len(literal) > len(tag) && strings.EqualFold(literal[:len(tag)], tag) {
		return isIPv6(literal[len(tag):])
	}
	return isIPv4(literal)
}

func isLocalPart(s string) bool {
	if s[0] != '"' {
		for atom := range strings.SplitSeq(s, ".") {
			if atom == "" || !only(atom, "!#$%&'*+-/=?^_`{|}~") {
				return false
			}
		}
		return true
	}
	if len(s) < 2 || s[len(s)-1] != '"' {
		return false
	}
	s = s[1 : len(s)-1]
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++ // what follows it may be a quote or a backslash
		} else if s[i] == '"' {
			return false
		}
		if i == len(s) || s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isHostname is a host name of RFC 1123, section 2.1: labels of 1 to 63 letters, digits and inner
// hyphens, 253 in all, without a dot at the end. Names of other alphabets stand in their ASCII form.
func isHostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || !only(label, "-") {
			return false
		}
	}
	return true
}

// isIPv4 is a dotted quad of RFC 2673, section 3.2. A leading zero is refused, as is usual, because
// some read the number as octal then.
func isIPv4(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

// isIPv6 is an address of RFC 4291, section 2.2; a zone is no part of it.
func isIPv6(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is6() && addr.Zone() == ""
}

const (
	subDelims  = "!$&'()*+,;="
	unreserved = "-._~" // beside letters and digits
)

// isReference is URI-reference of RFC 3986, appendix A, or IRI-reference of RFC 3987, section 2.2;
// absolute asks for a scheme. A colon before the first slash always ends a scheme: the first
// segment of a relative reference may have none.
func isReference(s string, absolute, iri bool) bool {
	chars := uriChars{iri: iri}
	s, fragment, _ := strings.Cut(s, "#")
	s, query, _ := strings.Cut(s, "?")
	if !chars.only(fragment, ":@/?") || !(uriChars{iri: iri, private: iri}).only(query, ":@/?") {
		return false
	}
	first, _, _ := strings.Cut(s, "/")
	if scheme, rest, ok := strings.Cut(first, ":"); ok {
		if scheme == "" || !isLetter(scheme[0]) || !only(scheme, "+-.") {
			return false
		}
		s = s[len(first)-len(rest):]
	} else if absolute {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		authority, _, _ := strings.Cut(rest, "/")
		if !chars.authority(authority) {
			return false
		}
		s = rest[len(authority):]
	}
	return chars.only(s, ":@/")
}

// uriChars says which characters of Unicode may stand in a part of a reference: none in a URI.
type uriChars struct{ iri, private bool }

func (c uriChars) authority(s string) bool {
	user, host, ok := strings.Cut(s, "@")
	if !ok {
		user, host = "", s
	}
	if !c.only(user, ":") {
		return false
	}
	if literal, ok := strings.CutPrefix(host, "["); ok {
		var end bool
		if literal, host, end = strings.Cut(literal, "]"); !end || !isIPv6(literal) && !isIPvFuture(literal) {
			return false
		}
		if host != "" && host[0] != ':' {
			return false
		}
	}
	name, port, _ := strings.Cut(host, ":")
	return c.only(name, "") && strings.Trim(port, "0123456789") == ""
}

// isIPvFuture is IPvFuture of RFC 3986, section 3.2.2.
func isIPvFuture(s string) bool {
	version, address, ok := strings.Cut(s, ".")
	if !ok || len(version) < 2 || version[0]|0x20 != 'v' || address == "" {
		return false
	}
	for i := 1; i < len(version); i++ {
		if !isHex(version[i]) {
			return false
		}
	}
	return only(address, unreserved+subDelims+":")
}

// only tells whether a text is of unreserved and escaped characters, sub-delims, and those of a set.
func (c uriChars) only(s, set string) bool {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '%':
			if n = 3; !isEscape(s) {
				return false
			}
		case r < utf8.RuneSelf:
			if b := s[:1]; !only(b, unreserved) && !only(b, subDelims) && !only(b, set) {
				return false
			}
		case c.iri && isUcschar(r), c.private && isPrivate(r):
		default:
			return false
		}
		s = s[n:]
	}
	return true
}

// isEscape tells whether a text begins with pct-encoded of RFC 3986, section 2.1.
func isEscape(s string) bool { return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2]) }

// isUcschar and isPrivate are ucschar and iprivate of RFC 3987, section 2.2. What stands for
// broken UTF-8, U+FFFD, is neither.
func isUcschar(r rune) bool {
	switch {
	case r < 0x10000:
		return r >= 0xA0 && r <= 0xD7FF || r >= 0xF900 && r <= 0xFDCF || r >= 0xFDF0 && r <= 0xFFEF
	case r >= 0xE0000:
		return r >= 0xE1000 && r <= 0xEFFFD
	}
	return r&0xFFFF <= 0xFFFD
}

func isPrivate(r rune) bool {
	return r >= 0xE000 && r <= 0xF8FF || r >= 0xF0000 && r <= 0xFFFFD || r >= 0x100000 && r <= 0x10FFFD
}

// isURITemplate is URI-Template of RFC 6570, section 2. The apostrophe is a literal, as
// erratum 6937 has it.
func isURITemplate(s string) bool {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '{':
			var expression string
			var ok bool
			if expression, s, ok = strings.Cut(s[1:], "}"); !ok || !isExpression(expression) {
				return false
			}
			continue
		case r == '%':
			if n = 3; !isEscape(s) {
				return false
			}
		case r <= ' ', r < utf8.RuneSelf && strings.IndexByte("\"<>\\^`|}\x7f", s[0]) >= 0:
			return false
		case r >= utf8.RuneSelf && !isUcschar(r) && !isPrivate(r):
			return false
		}
		s = s[n:]
	}
	return true
}

// isExpression is what stands between the braces of a template: an operator, one that is kept for
// later (section 2.2) too, and variables with their modifiers (sections 2.3 and 2.4).
func isExpression(text string) bool {
	s := scan{rest: text}
	s.skip("+#./;?&=,!@|")
	for variable := range strings.SplitSeq(s.rest, ",") {
		name, prefix, cut := strings.Cut(variable, ":")
		if cut {
			n := scan{rest: prefix}
			n.number(1, 1, 9)
			if n.bad || len(n.rest) > 3 || strings.Trim(n.rest, "0123456789") != "" {
				return false
			}
		} else {
			name = strings.TrimSuffix(name, "*")
		}
		for part := range strings.SplitSeq(name, ".") {
			if !isVariable(part) {
				return false
			}
		}
	}
	return true
}

func isVariable(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			if !isEscape(s[i:]) {
				return false
			}
			i += 2
		} else if !only(s[i:i+1], "_") {
			return false
		}
	}
	return true
}

// isUUID is UUID of RFC 9562, section 4.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// isPointer is json-pointer of RFC 6901, section 3.
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

// isRelativePointer is relative-json-pointer of draft-bhutton-relative-json-pointer-00, section 3.
// It has what the older ones have, and a step along an array, such as 0-1.
func isRelativePointer(text string) bool {
	s := scan{rest: text}
	s.integer()
	if s.skip("+-") != 0 {
		s.integer()
	}
	return !s.bad && (s.rest == "#" || isPointer(s.rest))
}

// integer reads an integer without leading zeros.
func (s *scan) integer() {
	d := s.digits()
	s.bad = s.bad || len(d) > 1 && d[0] == '0'
}

// isRegex tells whether a text can be a pattern here, which is RE2 and not ECMA-262. Parsing says all that
// compiling would, and takes neither its time nor its memory.
func isRegex(s string) bool {
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}

// isSemver is a version of semver.org 2.0.0, "Backus-Naur Form Grammar for Valid SemVer Versions".
func isSemver(s string) bool {
	s, build, ok := strings.Cut(s, "+")
	if ok && !isIdentifiers(build, false) {
		return false
	}
	s, release, ok := strings.Cut(s, "-")
	if ok && !isIdentifiers(release, true) {
		return false
	}
	core := scan{rest: s}
	core.integer()
	core.one(".")
	core.integer()
	core.one(".")
	core.integer()
	return core.end()
}

// isIdentifiers tells of the identifiers of a release before the version or of a build; those of a
// release that are numbers have no leading zero.
func isIdentifiers(s string, release bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" || !only(id, "-") {
			return false
		}
		if release && len(id) > 1 && id[0] == '0' && strings.Trim(id, "0123456789") == "" {
			return false
		}
	}
	return true
}
