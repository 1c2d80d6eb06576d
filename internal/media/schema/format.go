package schema

import (
	"net/mail"
	"net/url"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/google/uuid"
)

// formatOf is the check of a format that "format" names, or nil for one that is not checked here. Each takes what the standard library
// takes, less what it forgives: it is to find slips of the pen, not to prove a grammar.
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

// isDateTime tells whether a text is a time of RFC 3339. There is no second 60. Package time would take an hour of one digit, and a comma.
func isDateTime(s string) bool {
	_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	return err == nil && s[13] == ':' && !strings.Contains(s, ",")
}

// isReference tells whether a text is a URI, or a reference to one that may be relative. Other characters than ASCII are escaped in it.
func isReference(s string, absolute bool) bool {
	u, err := url.Parse(s)
	return err == nil && (u.IsAbs() || !absolute) && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) })
}

// isRegex tells whether a text can be a pattern here, which is RE2 and not ECMA-262. Parsing says all that
// compiling would, and takes neither its time nor its memory.
func isRegex(s string) bool {
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}
