package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/manual"
)

type manLine struct {
	Type  string   `json:"type"`
	Files []string `json:"files"`
}

func newManCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write man pages",
		Long:    "Write a man page for each command into a folder: kiln.1, kiln-build.1, ...",
		GroupID: groupAbout,
		Example: "  kiln man ~/.local/share/man/man1",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := manual.Write(cmd.Root(), args[0], a.cfg.Version.Number)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.emit(manLine{"man", files})
			case !a.quiet:
				_, err = fmt.Fprintf(a.out, "wrote %s to %s\n", count(len(files), "page", "pages"), args[0])
			}
			return err
		},
	}
}
