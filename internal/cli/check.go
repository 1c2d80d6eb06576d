package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

func newCheckCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find mistakes in rules, names and references, without building",
		Long: `Find what is wrong with the project file, rules, settings, parcels, kiln.ids and names; what the last build said of files
that have not changed since; and references to files that were removed since then. Nothing is built or written, so it is
fast enough for a hook that runs before each commit. The exit code is 1 if there are errors.`,
		GroupID: groupLook,
		Example: "  kiln check\n  kiln check --format github",
		Args:    atMost(0),
		PreRunE: func(*cobra.Command, []string) error { return a.checkFormat() },
		RunE:    func(*cobra.Command, []string) error { return a.check() },
	}
	a.addFormat(cmd)
	return cmd
}

// checkLine is the result as JSON.
type checkLine struct {
	Type     string  `json:"type"`
	Assets   int     `json:"assets"`
	Errors   int     `json:"errors"`
	Warnings int     `json:"warnings"`
	Seconds  float64 `json:"seconds"`
}

// check finds errors, including those of the project file. If there is no project, it fails.
func (a *app) check() error {
	var found *build.Checked
	p, err := a.open()
	if err == nil {
		found, err = p.Check()
	}
	if err != nil {
		l := diag.Messages(err, codeOf(err))
		for _, m := range l {
			if m.Code == diag.ProjectMissing && m.File == "" || m.Code == diag.Internal || m.Code == diag.OutputUnwritable {
				return err
			}
		}
		found = &build.Checked{Messages: l}
	}
	line := checkLine{Type: "check", Assets: found.Assets, Seconds: found.Seconds}
	for _, m := range found.Messages {
		switch m.Severity {
		case diag.Error:
			line.Errors++
		case diag.Warning:
			line.Warnings++
		}
	}
	a.formatted.run.Seconds = found.Seconds
	if err := a.tell(found.Messages); err != nil {
		return err
	}
	if a.json {
		err = a.emit(line)
	} else if !a.quiet {
		_, err = fmt.Fprintln(a.errs, a.checkText(line))
	}
	if err == nil && line.Errors > 0 {
		return exitFailed
	}
	return err
}

func (a *app) checkText(l checkLine) string {
	var parts []string
	if l.Errors > 0 {
		parts = append(parts, a.counted(red, l.Errors, count(l.Errors, "error", "errors")))
	}
	if l.Warnings > 0 {
		parts = append(parts, a.counted(yellow, l.Warnings, count(l.Warnings, "warning", "warnings")))
	}
	if len(parts) == 0 {
		parts = []string{a.paint(a.errs, green, "no mistakes found")}
	}
	return fmt.Sprintf("%s checked in %.2f s: %s", count(l.Assets, "asset", "assets"), l.Seconds, strings.Join(parts, ", "))
}
