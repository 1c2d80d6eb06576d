package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/ask/move"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

func newMvCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mv OLD NEW",
		Short: "Rename a source file or folder, and keep the UUIDs of its assets",
		Long: `Rename a source file or folder in every source root that has it. Rules whose match begins with the old path get the new
one, and assets that would have another UUID get a rule that pins the one they had, so that references by UUID and
resource ids survive. Files that name it by its path are not changed.`,
		GroupID:           groupMake,
		Example:           "  kiln mv sprites/knight.png sprites/galahad.png\n  kiln mv characters heroes",
		Args:              exactly("OLD", "NEW"),
		ValidArgsFunction: a.assetIDs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			if err := a.lock(cmd.Context(), p, false); err != nil {
				return err
			}
			defer p.Unlock()
			return a.move(cmd.Context(), p, args[0], args[1])
		},
	}
}

func (a *app) move(ctx context.Context, p *build.Project, from, to string) error {
	r, err := move.Move(ctx, p, a.open, from, to)
	var refused *move.Refused
	switch {
	case errors.As(err, &refused):
		return wrongUsage(refused.Hint, "%s", refused.Text)
	case err != nil:
		return err
	case a.json:
		return a.emit(mvLine{"mv", r.From, r.To, r.Assets, r.Files, r.Pinned})
	case a.quiet:
		return nil
	}
	_, err = fmt.Fprintf(a.out, "%s is %s now: %s, %s\n", r.From, r.To, count(r.Assets, "asset", "assets"), count(r.Pinned, "UUID pinned", "UUIDs pinned"))
	return err
}

type mvLine struct {
	Type   string `json:"type"`
	From   string `json:"from"`
	To     string `json:"to"`
	Assets int    `json:"assets"` // that moved
	Files  int    `json:"files"`  // of rules that were edited
	Pinned int    `json:"pinned"` // assets that got a rule
}
