package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

type cleanLine struct {
	Type  string `json:"type"`
	Files int    `json:"files"` // outputs that were removed
	State bool   `json:"state"` // what Kiln remembers was removed, too
}

func newCleanCommand(a *app) *cobra.Command {
	var all, noWait bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the output",
		Long: `Remove the files that Kiln put into the output folder, and no others. The next build puts them back
without running a job. With --all, what Kiln remembers goes too, and the next build starts from nothing.`,
		GroupID: groupMake,
		Example: "  kiln clean\n  kiln clean --all",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			if err := a.lock(cmd.Context(), p, noWait); err != nil {
				return err
			}
			defer p.Unlock()
			n, stays, err := p.Clean(all)
			if err != nil {
				return err
			}
			if err := a.tell(stays); err != nil {
				return err
			}
			if a.json {
				return a.emit(cleanLine{"clean", n, all})
			}
			if a.quiet {
				return nil
			}
			what := "removed " + count(n, "file", "files") + " from " + p.Output + "/"
			if all {
				what += ", and all that Kiln remembered"
			}
			_, err = fmt.Fprintln(a.out, what)
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also remove what Kiln remembers")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project, instead of waiting")
	return cmd
}
