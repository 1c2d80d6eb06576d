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
	Built     string   `json:"built,omitempty"`  // the folder that has the products that differ
}

func newTestCommand(a *app) *cobra.Command {
	var update bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Run the golden tests of the project's own processors",
		Long: `Build what is in testdata/in beside each of the project's own scripts, modules, packages in Go and programs of commands, and compare the products with
testdata/want; messages.txt there has what was said. Exits with 1 if anything differs, shows the messages that are not expected, and puts
the products that differ into .kiln/test. With --update, want becomes what was built, unless an error is of the processor itself: want then
stays as it is.`,
		GroupID: groupMake,
		Example: "  kiln test\n  kiln test --update",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			cfg := a.cfg.Project(p.Dir)
			failed, differ, kept := false, false, []string(nil)
			dirs, without := golden.Find(p)
			for _, dir := range dirs {
				r, err := golden.Run(cmd.Context(), cfg, dir, update)
				if err != nil {
					return err
				}
				failed = failed || r.Broken || len(r.Different) > 0 && !update
				differ = differ || !r.Broken && len(r.Different) > 0 && !update
				built, _ := r.Keep(p, !update && !r.Broken) // only for users to see: the test works without it
				if built != "" {
					kept = append(kept, built)
				}
				if err := a.tellTest(r, update, built); err != nil {
					return err
				}
			}
			if differ && !a.json && !a.quiet {
				a.tellUpdate(kept)
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

func (a *app) tellTest(r *golden.Result, update bool, built string) error {
	if !update || r.Broken {
		if err := a.tell(r.Unexpected); err != nil {
			return err
		}
	}
	if a.json {
		return a.emit(testLine{"test", r.Dir, r.Products, append([]string{}, r.Different...), update && !r.Broken, r.Broken, built})
	}
	if update && r.Broken {
		a.tellBroken(r, "not written: "+r.Dir+"/want")
		return nil
	}
	for _, name := range r.Different {
		verb := "differs"
		switch {
		case update && slices.Contains(r.Removed, name):
			verb = "removed"
		case update:
			verb = "written"
		case slices.Contains(r.New, name):
			verb = "new"
		case slices.Contains(r.Removed, name):
			verb = "not made"
		}
		fmt.Fprintf(a.out, "%s: %s/want/%s\n", verb, r.Dir, name)
	}
	if len(r.Different) == 0 && !a.quiet {
		fmt.Fprintf(a.out, "same: %s, %s\n", r.Dir, count(r.Products, "file", "files"))
	}
	if r.Broken {
		a.tellBroken(r, r.Dir)
	}
	return nil
}

// tellBroken says that a processor fails, whatever it is given.
func (a *app) tellBroken(r *golden.Result, what string) {
	fmt.Fprintf(a.out, "%s: the processor itself fails; fix that first\n", what)
	if slices.ContainsFunc(r.Unexpected, func(m *diag.Message) bool { return m.Code == diag.CommandFailed }) {
		fmt.Fprintln(a.out, "  a program that rejects a file prints a line with the place: FILE:LINE: error: TEXT")
	}
}

// tellUpdate says what to do if products differ, and in which folders they are.
func (a *app) tellUpdate(kept []string) {
	switch len(kept) {
	case 0: // they are only in want
		fmt.Fprintln(a.out, "if that is right, run `kiln test --update`")
	case 1:
		fmt.Fprintf(a.out, "what was built is in %s; if it is right, run `kiln test --update`\n", kept[0])
	default:
		fmt.Fprintf(a.out, "what was built is in %s; if it is right, run `kiln test --update`\n", golden.Kept)
	}
}
