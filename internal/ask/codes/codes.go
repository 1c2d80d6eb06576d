// Package codes explains the codes of messages. It reads docs/messages.md, which is embedded in the program: each row
// of a table there is the page of a code.
package codes

import (
	"regexp"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Page is the text about a code, without markup.
type Page struct {
	Code     diag.Code     `json:"code"`
	Name     string        `json:"name"`
	Section  string        `json:"section"`
	Severity diag.Severity `json:"severity"` // the highest that it usually has
	Example  string        `json:"example,omitempty"`
	Means    string        `json:"means"`
	Do       string        `json:"do"`
}

var (
	row  = regexp.MustCompile(`^\| (K\d{4}) (?:\* )?\| (.+) \|$`)
	bar  = regexp.MustCompile(` *\| *`)
	link = regexp.MustCompile(`\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^)]*\)`)
	// severities matches the severity of a code that is not an error, and the command that prints it: *note* or
	// *warning* of `kiln doctor`: ...
	severities = regexp.MustCompile("^(\\*(?:note|warning)\\*(?: or \\*(?:note|warning)\\*)?)(?: of ((?:`[^`]+`(?:, | and )?)+))?: ")
	emphasis   = regexp.MustCompile(`\*(\w+)\*`)
	// elsewhere matches a reference to another page. Users of the command line may not have that page.
	elsewhere = regexp.MustCompile(` ?\(\[[^\]]*\.md\]\([^)]*\)\)`)
)

// Parse returns the pages of all codes in the text of docs/messages.md, in its order.
func Parse(text string) (all []Page) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		cells := bar.Split(strings.ReplaceAll(m[2], `\|`, "\x00"), -1)
		for i := range cells {
			cells[i] = plain(cells[i])
		}
		if len(cells) < 4 {
			continue // a test of the page reports this
		}
		p := Page{diag.Code(m[1]), cells[0], section, diag.Error, strings.Trim(cells[1], "`"), cells[2], cells[3]}
		if m := severities.FindStringSubmatch(p.Means); m != nil {
			p.Severity = diag.Note
			if strings.Contains(m[1], string(diag.Warning)) {
				p.Severity = diag.Warning
			}
			p.Means = p.Means[len(m[0]):]
			if m[2] != "" {
				p.Means = m[2] + ": " + p.Means
			}
		}
		p.Means = emphasis.ReplaceAllString(p.Means, "$1")
		all = append(all, p)
	}
	return all
}

// plain returns the text of a cell without links.
func plain(cell string) string {
	cell = link.ReplaceAllString(elsewhere.ReplaceAllString(cell, ""), "$1")
	return strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|"))
}

// Find returns the page of a code. The code may be without its K, or in lower case. If there is none, it returns a
// similar code as a suggestion, or "".
func Find(pages []Page, code string) (page *Page, near string) {
	name := strings.ToUpper(code)
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "K" + name
	}
	var names []string
	for i := range pages {
		if string(pages[i].Code) == name {
			return &pages[i], ""
		}
		names = append(names, string(pages[i].Code))
	}
	return nil, diag.Nearest(name, names)
}
