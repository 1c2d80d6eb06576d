// Package codes explains the codes of messages. It reads docs/messages.md, which is part of the program: a row of a table there is the page
// of a code.
package codes

import (
	"regexp"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Page is what there is to say about a code, without markup.
type Page struct {
	Code     diag.Code     `json:"code"`
	Name     string        `json:"name"`
	Section  string        `json:"section"`
	Severity diag.Severity `json:"severity"` // the gravest that it mostly has
	Example  string        `json:"example,omitempty"`
	Means    string        `json:"means"`
	Do       string        `json:"do"`
}

var (
	row  = regexp.MustCompile(`^\| (K\d{4}) (?:\* )?\| (.+) \|$`)
	bar  = regexp.MustCompile(` *\| *`)
	link = regexp.MustCompile(`\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^)]*\)`)
	// severities are those of a code that is no error, and what prints it: *note* or *warning* of `kiln doctor`: ...
	severities = regexp.MustCompile("^(\\*(?:note|warning)\\*(?: or \\*(?:note|warning)\\*)?)(?: of ((?:`[^`]+`(?:, | and )?)+))?: ")
	emphasis   = regexp.MustCompile(`\*(\w+)\*`)
	// elsewhere is a page of the documentation that a cell points to: users of the command line may not have it.
	elsewhere = regexp.MustCompile(` ?\(\[[^\]]*\.md\]\([^)]*\)\)`)
)

// Parse reads the pages of all codes from the text of docs/messages.md, in its order.
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
			continue // a test of the page finds it
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

// plain is the text of a cell, without links.
func plain(cell string) string {
	cell = link.ReplaceAllString(elsewhere.ReplaceAllString(cell, ""), "$1")
	return strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|"))
}

// Find finds the page of a code, which may lack its K or be in lower case. If there is none, it returns the code that was probably meant,
// or "".
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
