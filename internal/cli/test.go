package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/golden"
	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

type testLine struct {
	Type      string   `json:"type"`
	Folder    string   `json:"folder"`
	Products  int      `json:"products"`
	Different []string `json:"different"` // paths in want
	Updated   bool     `json:"updated"`
	Broken    bool     `json:"broken,omitempty"` // the processor itself fails; nothing was written
}

func newTestCommand(a *app) *cobra.Command {
	var update bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run the golden tests of the project's own processors",
		Long: `Build what is in testdata/in beside each of the project's own scripts, modules, packages in Go and programs of commands, and compare the products with
testdata/want; messages.txt there has what was said. Exits with 1 if anything differs, and shows the messages that are not expected.
With --update, want becomes what was built, unless an error is of the processor itself: want then stays as it is.`,
		GroupID: groupMake,
		Example: "  kiln test\n  kiln test --update",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			cfg := a.cfg.Project(p.Dir)
			failed := false
			dirs, without := golden.Find(p)
			for _, dir := range dirs {
				r, err := golden.Run(cmd.Context(), cfg, dir, update)
				if err != nil {
					return err
				}
				failed = failed || r.Broken || len(r.Different) > 0 && !update
				if err := a.tellTest(r, update); err != nil {
					return err
				}
			}
			if len(dirs) == 0 && !a.json && !a.quiet {
				fmt.Fprintln(a.out, "no tests: none of the project's own processors has a folder testdata/in beside it")
				for _, why := range without {
					fmt.Fprintln(a.out, " ", why)
				}
			}
			if failed {
				return exitFailed
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&update, "update", false, "write what was built to testdata/want")
	return cmd
}

func (a *app) tellTest(r *golden.Result, update bool) error {
	if !update || r.Broken {
		if err := a.tell(r.Unexpected); err != nil {
			return err
		}
	}
	if a.json {
		return a.emit(testLine{"test", r.Dir, r.Products, append([]string{}, r.Different...), update && !r.Broken, r.Broken})
	}
	if update && r.Broken {
		fmt.Fprintf(a.out, "not written: %s/want: the processor itself fails; fix that first\n", r.Dir)
		if slices.ContainsFunc(r.Unexpected, func(m *diag.Message) bool { return m.Code == diag.CommandFailed }) {
			fmt.Fprintln(a.out, "  a program that rejects a file prints a line with the place: FILE:LINE: error: TEXT")
		}
		return nil
	}
	for _, name := range r.Different {
		verb := "differs"
		switch {
		case update && slices.Contains(r.Removed, name):
			verb = "removed"
		case update:
			verb = "written"
		case slices.Contains(r.Removed, name):
			verb = "not made"
		}
		fmt.Fprintf(a.out, "%s: %s/want/%s\n", verb, r.Dir, name)
	}
	if len(r.Different) == 0 && !a.quiet {
		fmt.Fprintf(a.out, "same: %s, %s\n", r.Dir, count(r.Products, "file", "files"))
	}
	return nil
}
