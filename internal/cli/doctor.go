package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/doctor"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what stops a build, here or on another machine",
		Long: `Look for what stops a build, here or on another machine: external tools that assets need, limits of the
system, folders that cannot be written to, names that differ only in case or that Windows cannot have, Git LFS
pointers, files that are empty or whose end is missing.`,
		GroupID: groupLook,
		Example: "  kiln doctor\n  kiln doctor --json | jq 'select(.type == \"message\")'",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.doctor(cmd.Context())
		},
	}
}

type toolLine struct {
	Type string `json:"type"`
	doctor.Tool
}

type limitLine struct {
	Type string `json:"type"`
	doctor.Limit
}

type placeLine struct {
	Type string `json:"type"`
	doctor.Place
}

type doctorLine struct {
	Type     string `json:"type"`
	Files    int    `json:"files"`
	Folders  int    `json:"folders"`
	Assets   int    `json:"assets"`
	Errors   int    `json:"errors"`
	Warnings int    `json:"warnings"`
}

func (a *app) doctor(ctx context.Context) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	r, err := doctor.Examine(ctx, p)
	if err != nil {
		return err
	}
	sum := doctorLine{Type: "doctor", Files: r.Files, Folders: r.Folders, Assets: r.Assets}
	for _, m := range r.Messages {
		switch m.Severity {
		case diag.Error:
			sum.Errors++
		case diag.Warning:
			sum.Warnings++
		}
	}
	if a.json {
		err = a.emitDoctor(r, sum)
	} else {
		err = a.tellDoctor(r, sum)
	}
	if err == nil && r.Stops() {
		return exitFailed
	}
	return err
}

func (a *app) emitDoctor(r *doctor.Report, sum doctorLine) error {
	var lines []any
	for _, t := range r.Tools {
		lines = append(lines, toolLine{"tool", t})
	}
	for _, l := range r.Limits {
		lines = append(lines, limitLine{"limit", l})
	}
	for _, p := range r.Places {
		lines = append(lines, placeLine{"folder", p})
	}
	for _, h := range r.Helpers {
		lines = append(lines, h)
	}
	for _, m := range r.Messages {
		lines = append(lines, messageLine{"message", m})
	}
	for _, l := range append(lines, sum) {
		if err := a.emit(l); err != nil {
			return err
		}
	}
	return nil
}

// Marks before a line: good, unimportant, warning, stops a build.
const (
	markGood  = "✓"
	markNone  = "·"
	markWarn  = "!"
	markWrong = "✗"
)

func (a *app) tellDoctor(r *doctor.Report, sum doctorLine) error {
	title := func(s string) { fmt.Fprintln(a.out, a.paint(a.out, bold, s)) }
	title("tools")
	if err := a.tellTools(r.Tools); err != nil {
		return err
	}
	title("system")
	t := a.tableOn(a.out)
	for _, l := range r.Limits {
		value, mark := fmt.Sprint(l.Value), styled(green, "  "+markGood)
		if l.Value < 0 {
			value = "no limit"
		} else if l.Value < l.Need {
			mark = styled(yellow, "  "+markWarn)
		}
		t.row(mark, left(l.Name), left(value))
	}
	for _, p := range r.Places {
		t.row(a.placeCells(p)...)
	}
	if err := t.write(); err != nil {
		return err
	}
	a.tellHelpers(r.Helpers)
	title("content")
	mark, what := a.paint(a.out, green, markGood), "nothing wrong"
	switch worstOfContent(r.Messages) {
	case diag.Error:
		mark, what = a.paint(a.out, red, markWrong), "see below"
	case diag.Warning:
		mark, what = a.paint(a.out, yellow, markWarn), "see below"
	}
	fmt.Fprintf(a.out, "  %s  %s, %s: %s\n", mark, count(sum.Files, "file", "files"), count(sum.Assets, "asset", "assets"), what)
	if len(r.Messages) > 0 {
		fmt.Fprintln(a.out)
		if err := a.tell(r.Messages); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(a.errs, a.verdict(sum, r))
	return err
}

// surroundings are the codes of what is wrong with tools and the system, not with source files.
var surroundings = []diag.Code{
	diag.ToolMissing, diag.FolderUnwritable, diag.DiskLow, diag.LimitLow, diag.CommandUntraced, diag.CommandUnsealed,
	diag.OutputStranger, diag.CacheFails, diag.FarmFails, diag.FarmOther}

// worstOfContent is the highest severity of problems with source files; a note if there are none.
func worstOfContent(l diag.List) diag.Severity {
	worst := diag.Note
	for _, m := range l {
		switch {
		case slices.Contains(surroundings, m.Code):
		case m.Severity == diag.Error:
			return diag.Error
		case m.Severity == diag.Warning:
			worst = diag.Warning
		}
	}
	return worst
}

// verdict is the last line. Only what is wrong with rules and around the files stops a whole build: errors of tools and files are of some
// assets.
func (a *app) verdict(sum doctorLine, r *doctor.Report) string {
	whole := 0
	for _, m := range r.Messages {
		around := m.Code != diag.ToolMissing && slices.Contains(surroundings, m.Code)
		if m.Severity == diag.Error && (around || slices.Contains(r.Whole, m)) {
			whole++
		}
	}
	text, warnings := "nothing stops a build", count(sum.Warnings, "warning", "warnings")
	if whole > 0 {
		text = count(whole, "thing stops a build", "things stop a build")
	}
	some := sum.Errors - whole
	if some > 0 {
		text += "; " + count(some, "error keeps assets from being built", "errors keep assets from being built")
	}
	switch {
	case sum.Errors > 0:
		return a.paint(a.errs, red, text+"; "+warnings)
	case sum.Warnings > 0:
		return a.paint(a.errs, yellow, text+"; "+warnings)
	}
	return a.paint(a.errs, green, "all well")
}

// tellTools lists tools that exist or are needed; all others share one line.
func (a *app) tellTools(tools []doctor.Tool) error {
	t := a.tableOn(a.out)
	var absent []string
	for _, tool := range tools {
		needed := ""
		if n := len(tool.Assets); n > 0 {
			needed = fmt.Sprintf("needed by %s", count(n, "asset", "assets"))
		}
		switch {
		case tool.Path != "":
			t.row(styled(green, "  "+markGood), left(tool.Name), left(tool.Version), styled(dim, tool.Path), left(needed))
		case needed != "":
			absent := "missing"
			if tool.Refused {
				absent = "not executable"
			}
			t.row(styled(red, "  "+markWrong), left(tool.Name), left(absent), styled(dim, strings.Join(tool.Install, ", ")), left(needed))
		default:
			absent = append(absent, tool.Name)
		}
	}
	if err := t.write(); err != nil {
		return err
	}
	if len(absent) > 0 && !a.verbose {
		fmt.Fprintf(a.out, "  %s\n", a.paint(a.out, dim, markNone+"  not there and not needed: "+strings.Join(absent, ", ")))
	}
	for _, tool := range tools {
		if a.verbose && tool.Path == "" && len(tool.Assets) == 0 {
			fmt.Fprintf(a.out, "  %s\n", a.paint(a.out, dim, fmt.Sprintf("%s  %s: %s, not there and not needed: %s", markNone, tool.Name, tool.For, strings.Join(tool.Install, ", "))))
		}
	}
	return nil
}

// tellHelpers shows the cache and the farm, if the project has them.
func (a *app) tellHelpers(helpers []doctor.Helper) {
	if len(helpers) > 0 {
		fmt.Fprintln(a.out, a.paint(a.out, bold, "cache and farm"))
	}
	for _, h := range helpers {
		mark, what := a.paint(a.out, green, markGood), strings.Join(h.Says, "; ")
		if !h.OK {
			mark, what = a.paint(a.out, yellow, markWarn), "see below"
		}
		fmt.Fprintf(a.out, "  %s  %s: %s\n", mark, h.Name, what)
	}
}

func (a *app) placeCells(p doctor.Place) []cell {
	words := []string{"can be written to"}
	mark := styled(green, "  "+markGood)
	if !p.Writable {
		words, mark = []string{"cannot be written to"}, styled(red, "  "+markWrong)
	}
	if p.Free >= 0 {
		words = append(words, diag.Size(p.Free)+" free")
	}
	if p.Links != "" {
		words = append(words, map[string]string{
			"reflink": "products share disk blocks with what is stored", "hard link": "products are hard links to what is stored",
			"copy": "products are copies of what is stored",
		}[p.Links])
	}
	return []cell{mark, left(p.Folder + "/"), left(strings.Join(words, ", "))}
}
