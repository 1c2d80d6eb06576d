package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// Conditions on assets for `kiln ls --where`: comparisons of a field with a text, joined by "and" and "or"; "and" has
// precedence. A field has several values if it is a list, or if platforms differ: "=" is true if one of them is the
// text, "!=" if none is.

// fields are the fields besides meta.KEY.
var fields = []string{"id", "path", "processor", "platform", "state"}

// Where reads a condition. The error says what is wrong with it.
func Where(text string) (func(*AssetView) bool, error) {
	words, err := whereWords(text)
	if err != nil {
		return nil, err
	}
	var any [][]comparison // all comparisons of one element must hold
	for first := true; first || len(words) > 0; first = false {
		if len(words) < 3 {
			return nil, fmt.Errorf(`a comparison is missing: write meta.status != "final"`)
		}
		c := comparison{field: words[0].text, text: words[2].text, not: words[1].text == "!="}
		switch op := words[1].text; {
		case words[0].quoted || !strings.HasPrefix(c.field, "meta.") && !slices.Contains(fields, c.field):
			return nil, fmt.Errorf("there is no field %q: it is meta.KEY, %s", c.field, strings.Join(fields, ", "))
		case words[1].quoted || op != "=" && op != "==" && op != "!=":
			return nil, fmt.Errorf("%q cannot compare: write = or !=", op)
		case c.field == "state" && !slices.Contains(States, JobState(c.text)):
			return nil, fmt.Errorf("there is no state %q: it is %s", c.text, joinStates())
		}
		words = words[3:]
		if first {
			any = append(any, nil)
		}
		any[len(any)-1] = append(any[len(any)-1], c)
		if len(words) == 0 {
			break
		}
		switch joined := words[0]; {
		case joined.quoted || joined.text != "and" && joined.text != "or":
			return nil, fmt.Errorf("%q is not expected: join comparisons with and, or", joined.text)
		case joined.text == "or":
			any = append(any, nil)
		}
		if words = words[1:]; len(words) == 0 {
			return nil, fmt.Errorf("a comparison is missing at the end")
		}
	}
	return func(v *AssetView) bool {
		return slices.ContainsFunc(any, func(all []comparison) bool {
			return !slices.ContainsFunc(all, func(c comparison) bool { return !c.holds(v) })
		})
	}, nil
}

func joinStates() string {
	var names []string
	for _, s := range States {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// comparison of a field with a text.
type comparison struct {
	field, text string
	not         bool
}

func (c *comparison) holds(v *AssetView) bool {
	return slices.Contains(v.values(c.field), c.text) != c.not
}

// values returns the values of a field.
func (v *AssetView) values(field string) (list []string) {
	switch field {
	case "id":
		return []string{v.ID}
	case "path":
		return []string{v.Path}
	}
	if key, ok := strings.CutPrefix(field, "meta."); ok {
		return metaTexts(v.Asset, key)
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		switch field {
		case "processor":
			list = append(list, j.Processor)
		case "platform":
			list = append(list, j.Platform)
		case "state":
			list = append(list, string(j.State))
		}
	}
	return list
}

func metaTexts(a *asset.Asset, key string) []string {
	for i := range a.Meta {
		if a.Meta[i].Key == key {
			return a.Meta[i].Texts()
		}
	}
	return nil
}

type word struct {
	text   string
	quoted bool
}

// whereWords splits a condition: names and numbers, texts in single or double quotes, and comparisons.
func whereWords(s string) (words []word, err error) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		switch c := s[0]; {
		case c == '"' || c == '\'':
			text, rest, ok := strings.Cut(s[1:], s[:1])
			if !ok {
				return nil, fmt.Errorf("a quote is not closed: %s", s)
			}
			words, s = append(words, word{text, true}), rest
		case c == '=' || c == '!':
			n := 1
			for n < len(s) && s[n] == '=' {
				n++
			}
			words, s = append(words, word{text: s[:n]}), s[n:]
		default:
			n := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`=!"'`, r) })
			if n < 0 {
				n = len(s)
			}
			words, s = append(words, word{text: s[:n]}), s[n:]
		}
	}
	return words, nil
}
