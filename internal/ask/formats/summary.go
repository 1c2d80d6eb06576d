package formats

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// inSummary is how many messages a summary has: GitHub shows 10 errors and 10 warnings of a step as annotations.
const inSummary = 50

// Summary writes a run as Markdown, for the page that GitHub shows of a job: how many assets and messages there are, the first messages,
// errors before warnings, and what to do about each.
func Summary(w io.Writer, r *Run) error {
	list := slices.Clone(r.Messages)
	rank := map[diag.Severity]int{diag.Warning: 1, diag.Note: 2}
	slices.SortStableFunc(list, func(x, y *diag.Message) int { return cmp.Compare(rank[x.Severity], rank[y.Severity]) })
	var b strings.Builder
	fmt.Fprintf(&b, "### Kiln: %s, %s\n\n", counted(list.Total(diag.Error), "error"), counted(list.Total(diag.Warning), "warning"))
	if r.Summary != "" {
		fmt.Fprintf(&b, "%s\n\n", r.Summary)
	}
	if len(list) > 0 {
		b.WriteString("| | where | what | what to do |\n|---|---|---|---|\n")
	}
	for _, m := range list[:min(len(list), inSummary)] {
		where := r.place(m)
		if m.Pos.Line > 0 && m.File != "" {
			where += fmt.Sprintf(":%d", m.Pos.Line)
		}
		fmt.Fprintf(&b, "| %s %s | %s | %s | %s |\n", m.Severity, m.Code, cell(where), cell(m.Text), cell(m.Hint))
	}
	if more := len(list) - inSummary; more > 0 {
		fmt.Fprintf(&b, "\nand %s, which the log has\n", counted(more, "more message"))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// cell is text in a cell of a table, in which nothing is markup.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "`", "&#96;", "*", `\*`, "_", `\_`, "[", `\[`, "\\", `\\`).Replace(text)
}
