package document

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// isNumber reports whether s is a number in the grammar of JSON (RFC 8259, section 6), and whether it is an integer: without
// fraction and exponent.
func isNumber(s string) (ok, integer bool) {
	s = strings.TrimPrefix(s, "-")
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	zero := strings.HasPrefix(s, "0")
	whole := s
	if !digits() || zero && len(whole)-len(s) > 1 {
		return false, false
	}
	integer = true
	if rest, found := strings.CutPrefix(s, "."); found {
		s, integer = rest, false
		if !digits() {
			return false, false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s, integer = s[1:], false
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false, false
		}
	}
	return s == "", integer
}

// number returns the value of a number that isNumber accepts.
func number(s string, integer bool, at Pos) (any, error) {
	if integer {
		return integerOf(s, 10, at)
	}
	return floatOf(s, at)
}

// integerOf accepts integers of 64 bits. It accepts larger ones only if a float is written with the same digits, as
// canonical JSON does with floats up to 1e21: any other float would silently be a different number.
func integerOf(s string, base int, at Pos) (any, error) {
	if i, err := strconv.ParseInt(s, base, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(s, base, 64); err == nil {
		return u, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && base == 10 && string(appendFloat(nil, f)) == s {
		return f, nil
	}
	return nil, errorf(Number, at, "integer %s does not fit into 64 bits", shorten(s)).
		hint(`write it as a string, or with ".0" if it need not be exact`)
}

func floatOf(s string, at Pos) (any, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, errorf(Syntax, at, "%s is not a number", shorten(s))
	}
	return finite(f, shorten(s), at)
}

func finite(f float64, s string, at Pos) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errorf(Number, at, "%s is not a finite number", s).
			hint("JSON has no infinity and no NaN; write null, a string or a very large number")
	}
	return f, nil
}

// shorten limits the length of text in a message.
func shorten(s string) string {
	if r := []rune(s[:min(len(s), 200)]); len(r) > 40 {
		return string(r[:37]) + "..."
	}
	return s
}
