package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/build"
)

type buildFlags struct {
	noWait bool
}

func newBuildCommand(a *app) *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:               "build [PATTERN...]",
		Short:             "Build what is out of date",
		GroupID:           groupMake,
		Example:           "  kiln build\n  kiln build -p mobile 'sprites/**'",
		ValidArgsFunction: a.assetIDs(-1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.build(cmd.Context(), f, args) },
	}
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project")
	return cmd
}

func (a *app) build(ctx context.Context, f buildFlags, patterns []string) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	if err := a.lock(ctx, p, f.noWait); err != nil {
		return err
	}
	defer p.Unlock()
	r, err := p.Build(ctx, build.Request{Patterns: patterns, Platforms: a.platforms, Workers: a.workers, Reporter: silent{}})
	if err != nil {
		return err
	}
	if err := a.tell(r.Messages); err != nil {
		return err
	}
	fmt.Fprintf(a.errs, "built %d, reused %d, failed %d in %.2fs\n", r.Summary.Built, r.Summary.Reused, r.Summary.Failed, r.Summary.Seconds)
	if r.Summary.Failed > 0 {
		return exitFailed
	}
	return nil
}

// silent tells nobody.
type silent struct{}

func (silent) Planned(int)                             {}
func (silent) JobStarted(string)                       {}
func (silent) JobSuspended(string, []string, bool)     {}
func (silent) JobFinished(string, bool, time.Duration) {}
