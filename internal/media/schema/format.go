package schema

import (
	"net/mail"
	"net/url"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/google/uuid"
)

// formatOf returns the check for a format that "format" names, or nil for a format that is not checked. A check accepts
// what the standard library accepts, with a few exceptions: it is meant to find slips, not to prove a grammar.
func formatOf(name string) func(string) bool {
	switch name {
	case "date":
		return func(s string) bool { return len(s) == len(time.DateOnly) && isDateTime(s+"T00:00:00Z") }
	case "time":
		return func(s string) bool { return isDateTime("2000-01-01T" + s) }
	case "date-time":
		return isDateTime
	case "email":
		return func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address == s }
	case "uri":
		return func(s string) bool { return isReference(s, true) }
	case "uri-reference":
		return func(s string) bool { return isReference(s, false) }
	case "uuid":
		return func(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }
	case "regex":
		return isRegex
	}
	return nil
}

// isDateTime reports whether a text is a time of RFC 3339, without leap seconds. Package time would also accept an hour
// of one digit, and a comma.
func isDateTime(s string) bool {
	_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	return err == nil && s[13] == ':' && !strings.Contains(s, ",")
}

// isReference reports whether a text is a URI, or, unless absolute is set, a relative reference. Characters other than
// ASCII must be escaped.
func isReference(s string, absolute bool) bool {
	u, err := url.Parse(s)
	return err == nil && (u.IsAbs() || !absolute) && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) })
}

// isRegex reports whether a text is a valid pattern here, which is RE2, not ECMA-262. Parsing finds every error that
// compiling would, in less time and memory.
func isRegex(s string) bool {
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}
