package cli

import (
	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
)

func newRdepsCommand(a *app) *cobra.Command {
	var f depsFlags
	cmd := &cobra.Command{
		Use:   "rdeps PATH|ASSET",
		Short: "Show what needs an asset or a source file",
		Long: `Show what needs an asset or a source file, as the last finished build found it: the assets that read the
file, looked for it or listed it (source), are made of the asset (job), need it with them in the game (product), or are
made by it: a program, or a script, module or Go file of a processor (tool).`,
		GroupID:           groupLook,
		Example:           "  kiln rdeps textures/cape.png\n  kiln rdeps --all schemas/unit.schema.json",
		Args:              exactly("PATH or ASSET"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.dependencies(cmd.Context(), args[0], f, backward)
		},
	}
	f.add(cmd)
	return cmd
}

var backward = direction{
	ask:   (*contentdb.Reader).Rdeps,
	from:  func(e contentdb.Edge) string { return e.To },
	to:    func(e contentdb.Edge) string { return e.From },
	empty: "the last build found nothing that needs %q%s",
}
