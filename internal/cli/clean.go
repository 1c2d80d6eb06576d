package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

type cleanLine struct {
	Type  string `json:"type"`
	Files int    `json:"files"` // removed outputs
	State bool   `json:"state"` // Kiln's state was removed too
	Dry   bool   `json:"dry_run,omitempty"`
}

func newCleanCommand(a *app) *cobra.Command {
	var all, noWait, dryRun bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the output",
		Long: `Remove the files that Kiln put into the output folder, and no others. The next build puts them back
without running a job. With --all, what Kiln remembers goes too, and the next build starts from nothing.`,
		GroupID: groupMake,
		Example: "  kiln clean\n  kiln clean --all\n  kiln clean -n",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			if !dryRun {
				if err := a.lock(cmd.Context(), p, noWait); err != nil {
					return err
				}
				defer p.Unlock()
			}
			n, stays, err := p.Clean(all, dryRun)
			if err != nil {
				return err
			}
			if err := a.tell(stays); err != nil {
				return err
			}
			if a.json {
				return a.emit(cleanLine{"clean", n, all, dryRun})
			}
			if a.quiet {
				return nil
			}
			what := map[bool]string{true: "would remove ", false: "removed "}[dryRun] + count(n, "file", "files") + " from " + p.Output + "/"
			if all {
				what += ", and all that Kiln remembered"
			}
			_, err = fmt.Fprintln(a.out, what)
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove what Kiln remembers")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "show what would be removed; remove nothing, take no lock")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project, instead of waiting")
	return cmd
}
