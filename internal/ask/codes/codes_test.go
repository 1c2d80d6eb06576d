package codes

import (
	"os"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// TestPages checks that each row of docs/messages.md becomes a page with all its parts and without markup. A test in
// diag checks that each code has one row.
func TestPages(t *testing.T) {
	text, err := os.ReadFile("../../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := Parse(string(text))
	rows := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| K") {
			rows++
		}
	}
	if len(pages) != rows || rows < 150 {
		t.Errorf("%d pages of %d rows", len(pages), rows)
	}
	for _, p := range pages {
		if p.Name == "" || p.Section == "" || p.Means == "" || p.Do == "" {
			t.Errorf("%+v lacks something", p)
		}
		if all := p.Means + p.Do + p.Example; strings.Contains(all, "](") || strings.Contains(all, ".md)") {
			t.Errorf("%s has links: %s", p.Code, all)
		}
	}
}

// TestSeverities checks that a code that is not an error has another severity.
func TestSeverities(t *testing.T) {
	for means, want := range map[string]Page{
		"*warning*: a":                                {Severity: diag.Warning, Means: "a"},
		"*note* or *warning*: a":                      {Severity: diag.Warning, Means: "a"},
		"*note* of `kiln doctor`: a":                  {Severity: diag.Note, Means: "`kiln doctor`: a"},
		"*note* of `kiln doctor` and `kiln check`: a": {Severity: diag.Note, Means: "`kiln doctor` and `kiln check`: a"},
		"a. *Warning* if b":                           {Severity: diag.Error, Means: "a. Warning if b"},
	} {
		p := Parse("| K0001 | name | `x` | " + means + " | fix it |\n")[0]
		if p.Severity != want.Severity || p.Means != want.Means {
			t.Errorf("%s: %s, %s", means, p.Severity, p.Means)
		}
	}
	text, err := os.ReadFile("../../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Parse(string(text)) {
		if low := strings.ToLower(p.Means); p.Severity == diag.Error && (strings.HasPrefix(low, "note") || strings.HasPrefix(low, "warning")) {
			t.Errorf("%s is listed as an error: %s", p.Code, p.Means)
		}
	}
}

func TestFind(t *testing.T) {
	pages := Parse("## Data\n\n| K1114 | asset missing | `a \\| b` | *warning*: see [this](x.md) ([x.md](x.md)) | fix it |\n")
	for _, name := range []string{"K1114", "k1114", "1114"} {
		if p, _ := Find(pages, name); p == nil {
			t.Fatalf("%s is not found", name)
		} else if want := (Page{"K1114", "asset missing", "Data", diag.Warning, "a | b", "see this", "fix it"}); *p != want {
			t.Errorf("%+v", *p)
		}
	}
	if p, near := Find(pages, "K1141"); p != nil || near != "K1114" {
		t.Errorf("%v, %q", p, near)
	}
}
