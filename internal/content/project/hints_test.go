package project

import (
	"strings"
	"testing"
)

// TestHints has each mistake of TOML say what to write.
func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		"[project\n": "close the name of the table",
		"name = \n":  "write a value",
		"a = \"x\n":  "end the text with the quote",
		"[project]\nname = \"a\"\nname = \"b\"\n": "remove one of them",
		"x = 1979-13-45\n[project]\n":             "if it is not a date",
		"[platforms.pc]\nfoo\n":                   "write key = value",
		"a = 1_\n":                                "if it is not a number",
		"a = [1, 2\n":                             "close the list with ]",
		"a = \"\xff\"\n":                          "save the file as UTF-8",
		"]\n":                                     "a line is key = value",
	} {
		_, l := Parse(File, []byte(text), Given{})
		found := false
		for _, m := range l {
			if m.Hint == "" {
				t.Errorf("%q: %s has no hint", text, m)
			}
			found = found || strings.Contains(m.Hint, want)
		}
		if !found {
			t.Errorf("%q: none of these says %q: %v", text, want, l)
		}
	}
}
