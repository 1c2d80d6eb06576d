package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// style is how a piece of text looks, as an SGR code of terminals.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// colored reports whether a stream gets colour.
func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && isTerminal(w) && escapes(w)
}

// escapes reports whether a stream interprets escape sequences. For a stream of another process
// that was checked there.
func escapes(w io.Writer) bool {
	_, there := w.(*elsewhere)
	return there || enableEscapes(w)
}

func isTerminal(w io.Writer) bool {
	if e, ok := w.(*elsewhere); ok {
		return e.screen.Terminal
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours a text, if the stream gets colour.
func (a *app) paint(w io.Writer, s style, text string) string {
	if s == plain || text == "" || !a.colored(w) {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// table is text in columns.
type table struct {
	a    *app
	w    io.Writer
	rows [][]cell
	gap  string
}

// cell of a table.
type cell struct {
	text  string
	style style
	right bool // aligned
	wide  bool // is not counted for the width of its column
}

// table makes a table for standard output, tableOn for another stream.
func (a *app) table() *table              { return a.tableOn(a.out) }
func (a *app) tableOn(w io.Writer) *table { return &table{a: a, w: w, gap: "  "} }

// left, styled and right make cells.
func left(text string) cell            { return cell{text: text} }
func styled(s style, text string) cell { return cell{text: text, style: s} }
func right(text string) cell           { return cell{text: text, right: true} }

// header adds a row of column titles; ">" at the beginning aligns a title to the right.
func (t *table) header(titles ...string) {
	var row []cell
	for _, title := range titles {
		rest, toRight := strings.CutPrefix(title, ">")
		row = append(row, cell{text: rest, style: dim, right: toRight})
	}
	t.rows = append(t.rows, row)
}

func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

// note adds a line across all columns.
func (t *table) note(text string) { t.rows = append(t.rows, []cell{{text: text, wide: true}}) }

// widestCell is the maximum width of a column, in cells of a terminal: one file with a name of 200 letters should not
// move all other columns.
const widestCell = 80

// write writes the table, each column as wide as its widest cell, without control characters.
func (t *table) write() error {
	var widths []int
	for _, row := range t.rows {
		for i := range row {
			c := &row[i]
			c.text = oneLine(c.text)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if w := textWidth(c.text); !c.wide && w <= widestCell {
				widths[i] = max(widths[i], w)
			}
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := ""
		for i, c := range row {
			if i > 0 {
				line += t.gap
			}
			pad := strings.Repeat(" ", max(0, widths[i]-textWidth(c.text)))
			text := t.a.paint(t.w, c.style, c.text)
			switch {
			case c.right:
				line += pad + text
			default:
				line += text + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// oneLine replaces control characters, which file names may contain: they would break the line or control the
// terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// textWidth is the number of terminal cells of a text.
func textWidth(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case width.LookupRune(r).Kind() == width.EastAsianWide, width.LookupRune(r).Kind() == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// secondsText formats a duration: "12 ms", "3.4 s", "2 min 05 s".
func secondsText(s float64) string {
	switch {
	case s < 0.0005:
		return "0 ms"
	case s < 0.9995:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 59.95:
		return fmt.Sprintf("%.1f s", s)
	}
	whole := int(s + 0.5)
	if whole < 3600 {
		return fmt.Sprintf("%d min %02d s", whole/60, whole%60)
	}
	return fmt.Sprintf("%d h %02d min", whole/3600, whole%3600/60)
}

// count is a number with its noun: "1 asset", "3 assets".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// wrap breaks a text at spaces into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && textWidth(line)+1+textWidth(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
