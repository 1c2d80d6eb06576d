package diag_test

import (
	"os"
	"regexp"
	"testing"
)

// TestMessagesPage: in docs/messages.md each code has a name, an example, a meaning and an advice, and the page names no code,
// in its tables or between them, that does not exist.
func TestMessagesPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| (K\\d{4}) \\| [^|]+ \\| (?:`[^|]+` )?\\| [^|]+ \\| [^|]+ \\|\r?$")
	for _, m := range row.FindAllSubmatch(page, -1) {
		whole[string(m[1])] = true
	}
	known := map[string]bool{}
	for _, c := range codes(t) {
		known[c.number] = true
		if !whole[c.number] {
			t.Errorf("%s (%s) needs a row: code, name, example, what it means, what to do", c.number, c.name)
		}
	}
	for _, number := range regexp.MustCompile(`\bK\d{4}\b`).FindAll(page, -1) {
		if !known[string(number)] {
			t.Errorf("%s is no code", number)
		}
	}
}
