package cli

import (
	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/make/worker"
	"github.com/kiln-pipeline/kiln/internal/make/written"
)

// newRunJobCommand is for the workers of a farm: see package worker.
func newRunJobCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    written.Command,
		Short:  "Run the job that is written down in this folder, for a kiln on another machine",
		Hidden: true,
		Args:   atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return worker.Run(cmd.Context(), a.cfg.Project("."))
		},
	}
}
