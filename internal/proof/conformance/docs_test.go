package conformance

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?s)(?:`([^`\n]+)`:\n\n)?```(\\w+)\n(.*?)```")

// TestScriptsPage follows docs/scripts.md: it writes and builds the files of the page, and compares the results.
func TestScriptsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(page), "## Declaring") // the examples after it have tests of their own
	p := &project{t: t, dir: t.TempDir()}
	var hex, message, rule string
	files := 0
	for _, b := range block.FindAllStringSubmatch(first, -1) {
		name, lang, text := b[1], b[2], b[3]
		switch {
		case lang == "hex":
			hex = strings.TrimSpace(text)
		case name == "kiln.toml" || strings.HasPrefix(name, "assets/") || strings.HasPrefix(name, "tools/"):
			p.write(name, text)
			files++
		case lang == "toml":
			rule = text
		case lang == "text":
			message = text
		}
	}
	if files != 5 || hex == "" || message == "" || rule == "" {
		t.Fatalf("%d files, %q, %q, %q", files, hex, message, rule)
	}
	if b := p.build(1); b.Failed > 0 || len(b.messages) != 1 || !strings.Contains(b.messages[0].Text, "image") {
		t.Fatal(b.messages)
	}
	if got := fmt.Sprintf("% x", p.products()["maps/cave.map.tiles"]); got != hex {
		t.Errorf("built %s, the page says %s", got, hex)
	}

	p.write("assets/tiles.png", "any")
	p.write("assets/rules.toml", "[[rules]]\nmatch = \"*.png\"\nprocessor = \"copy\"\n")
	p.ran(p.good(), "maps/cave.map", "tiles.png")
	p.write("assets/rules.toml", "[[rules]]\nmatch = \"*.png\"\nprocessor = \"copy\"\n"+rule)
	p.ran(p.good(), "maps/cave.map")
	if got := p.products()["maps/cave.map.tiles"]; !strings.HasPrefix(got, "\x06\x00\x05\x00\x09\x09") {
		t.Errorf("with a border: % x", got)
	}

	p.write("assets/maps/cave.map", "../tiles.json\n####\n#?.#\n####\n")
	b := p.build(1)
	if len(b.messages) != 1 {
		t.Fatal(b.messages)
	}
	m := b.messages[0]
	got := fmt.Sprintf("%s: %s[%s]: %s\n    %s\n%s^ %s\n", m.Pos, m.Severity, m.Code, m.Text, m.Line, strings.Repeat(" ", 4+m.Column-1), m.Hint)
	if got != message {
		t.Errorf("got\n%swant\n%s", got, message)
	}
}

// TestScriptsPrograms follows the example of docs/scripts.md where a script runs a program, and edits a file that the
// program reads.
func TestScriptsPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its sort is another one")
	}
	page, err := os.ReadFile("../../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Programs\n")
	part, _, _ = strings.Cut(part, "\n## ")
	p := &project{t: t, dir: t.TempDir()}
	files := 0
	for _, b := range block.FindAllStringSubmatch(part, -1) {
		if b[1] != "" {
			p.write(b[1], b[3])
			files++
		}
	}
	if files != 4 {
		t.Fatalf("%d files", files)
	}
	p.good()
	if got := p.products()["words/names.words.list"]; got != "Anselm\nMira\nTarek\n" {
		t.Errorf("built %q", got)
	}
	p.write("assets/words/common.inc", "Anselm\nZoe\n")
	p.ran(p.good(), "words/common.inc", "words/names.words")
	if got := p.products()["words/names.words.list"]; got != "Anselm\nMira\nZoe\n" {
		t.Errorf("built %q", got)
	}
	p.ran(p.good())
}
