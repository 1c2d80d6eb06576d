package codegen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// words splits a path into the words of a name: runs of ASCII letters and digits, split also before a capital letter
// after a small one. Letters lose their accents (NFKD); any other letter or digit is a word of its own: u and its code
// in hexadecimal. Everything else separates words.
func words(s string) []string {
	var list []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			list = append(list, word.String())
			word.Reset()
		}
	}
	last := rune(0)
	for _, r := range norm.NFKD.String(s) {
		ascii := r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r))
		switch {
		case unicode.Is(unicode.Mn, r):
			continue
		case ascii:
			if unicode.IsUpper(r) && unicode.IsLower(last) {
				end()
			}
			word.WriteRune(r)
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) && r >= 0x80:
			end()
			list = append(list, fmt.Sprintf("u%X", r))
		default:
			end()
		}
		last = r
	}
	end()
	return list
}

// emptyName replaces a path without letters and digits; digitPrefix is put before a name that would begin with a digit.
const (
	emptyName   = "resource"
	digitPrefix = "r"
)

func legal(list []string) []string {
	if len(list) == 0 {
		return []string{emptyName}
	}
	if isDigit(list[0][0]) {
		return append([]string{digitPrefix}, list...)
	}
	return list
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// pascal joins words: SpritesTankPng. Digits of two words are separated: Level1_2.
func pascal(list []string) string {
	var b strings.Builder
	for _, w := range legal(list) {
		if s := b.String(); s != "" && isDigit(s[len(s)-1]) && isDigit(w[0]) {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// camel joins words: spritesTankPng.
func camel(list []string) string {
	s := pascal(list)
	return strings.ToLower(s[:1]) + s[1:]
}

// upper joins words: SPRITES_TANK_PNG.
func upper(list []string) string { return strings.ToUpper(strings.Join(legal(list), "_")) }

// lower joins words: sprites_tank_png.
func lower(list []string) string { return strings.ToLower(strings.Join(legal(list), "_")) }

// scope is the set of used names.
type scope map[string]bool

func newScope(reserved string) scope {
	s := scope{}
	for _, w := range strings.Fields(reserved) {
		s[w] = true
	}
	return s
}

func (s scope) take(name string) { s[name] = true }

// name returns the name, or the first of name_2, name_3 and so on that is free.
func (s scope) name(want string) string {
	got := want
	for n := 2; s[got]; n++ {
		got = want + "_" + strconv.Itoa(n)
	}
	s.take(got)
	return got
}

// plain is a text as one line of a comment in any language: unchanged if all characters are visible and cannot join it
// with the next line, else as a quoted string of Go.
func plain(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == '\\' || r == unicode.ReplacementChar {
			return strconv.QuoteToGraphic(s)
		}
	}
	return s
}
