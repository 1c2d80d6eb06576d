package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
)

type auditLine struct {
	Type        string `json:"type"`
	Jobs        int    `json:"jobs"`   // built twice
	Failed      int    `json:"failed"` // jobs that failed: their products were not compared
	Differences int    `json:"differences"`
}

type differenceLine struct {
	Type      string `json:"type"`
	Processor string `json:"processor"`
	Asset     string `json:"asset"`
	Platform  string `json:"platform"`
	What      string `json:"what"`
}

func newAuditCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "audit [PATTERN...]",
		Short: "Build twice under other conditions, and name processors whose output differs",
		Long: `Build all assets, or those that the patterns mean, twice from nothing, in folders beside the project: with other
paths, order, number of workers, locale, time zone and time. What comes out otherwise is named. The project's own
output is not touched. Exit code 1 if there is a difference, or a source file that cannot be read.`,
		GroupID:           groupLook,
		Example:           "  kiln audit\n  kiln audit 'models/**'",
		ValidArgsFunction: a.assetIDs(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			return a.audit(cmd.Context(), p, a.named(p, args))
		},
	}
}

func (a *app) audit(ctx context.Context, p *build.Project, patterns []string) error {
	show := a.newProgress(p.Workers(a.workers))
	found, err := p.Audit(ctx, patterns, show)
	show.stop()
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		return err
	}
	if err := a.tell(found.Unread); err != nil {
		return err
	}
	if a.json {
		for _, d := range found.Differences {
			if err := a.emit(differenceLine{"difference", d.Processor, d.Asset, d.Platform, d.What}); err != nil {
				return err
			}
		}
		if err := a.emit(auditLine{"audit", found.Jobs, found.Failed, len(found.Differences)}); err != nil {
			return err
		}
	} else if err := a.tellAudit(found); err != nil {
		return err
	}
	if len(found.Differences)+len(found.Unread) > 0 {
		return exitFailed
	}
	return nil
}

func (a *app) tellAudit(found *upkeep.Audited) error {
	t := a.table()
	for _, d := range found.Differences {
		t.row(left(d.Processor), left(d.Asset), left(d.Platform), left(d.What))
	}
	if err := t.write(); err != nil {
		return err
	}
	if a.verbose {
		for _, m := range found.Messages {
			fmt.Fprintln(a.errs, m)
		}
	}
	verdict := "no difference"
	if n := len(found.Differences); n > 0 {
		verdict = count(n, "differs", "differ")
	}
	if found.Failed > 0 {
		verdict += fmt.Sprintf("; %d failed, and made nothing to compare: `kiln build` shows why", found.Failed)
	}
	_, err := fmt.Fprintf(a.errs, "%s built twice: %s\n", count(found.Jobs, "job", "jobs"), verdict)
	return err
}
