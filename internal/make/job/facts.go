package job

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a product's facts.
const (
	maxFacts     = 64
	maxFactBytes = 1 << 10
)

// encodeFacts encodes a product's facts for the engine: a line "name=value" for each, sorted by name.
func encodeFacts(facts map[string]string) (string, error) {
	if len(facts) > maxFacts {
		return "", fmt.Errorf("%d facts, and %d are allowed", len(facts), maxFacts)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		value := facts[name]
		switch {
		case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._") != "":
			return "", fmt.Errorf("fact %q: a name has lower case letters, digits, dots and underscores", name)
		case len(name)+len(value) > maxFactBytes:
			return "", fmt.Errorf("fact %q has %d bytes, and %d are allowed", name, len(name)+len(value), maxFactBytes)
		case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }):
			return "", fmt.Errorf("fact %q: a value is one line of UTF-8", name)
		}
		b.WriteString(name + "=" + value + "\n")
	}
	return b.String(), nil
}

// Facts decodes the text of encodeFacts. It skips lines that are not facts.
func Facts(text string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for line := range strings.Lines(text) {
			name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if ok && !yield(name, value) {
				return
			}
		}
	}
}
