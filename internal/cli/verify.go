package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
)

type verifyLine struct {
	Type     string `json:"type"`
	Sources  int    `json:"sources"` // files whose content was checked
	Products int    `json:"products"`
	Blobs    int    `json:"blobs"`
	Wrong    int    `json:"wrong"`
	Mended   int    `json:"mended"`
}

func newVerifyCommand(a *app) *cobra.Command {
	var noBuild, noWait, fix bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every byte of sources and products",
		Long: `Hash every source file that was built, every product and every stored blob, check the content database, and report
what sizes and times did not show: a damaged disk, an output that somebody edited. The exit code is 1 if something is
wrong. Nothing is changed, unless --fix is given: it builds what is needed to repair what is wrong, and removes products
that no asset makes, left when .kiln was removed together with their assets.`,
		GroupID: groupMake,
		Example: "  kiln verify\n  kiln verify --fix",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.open()
			if err != nil {
				return err
			}
			fix = fix && !noBuild
			if _, err := os.Lstat(p.StatePlace()); fix || err == nil { // else there is nothing to lock, and a check makes nothing
				if err := a.lock(cmd.Context(), p, noWait); err != nil {
					return err
				}
				defer p.Unlock()
			}
			return a.verify(cmd.Context(), p, fix)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "repair what is wrong, and remove products that no asset makes")
	cmd.Flags().BoolVar(&noBuild, "no-build", false, "")
	cmd.Flags().MarkHidden("no-build") // its effect is the default now
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project, instead of waiting")
	return cmd
}

func (a *app) verify(ctx context.Context, p *build.Project, fix bool) error {
	found, err := p.Verify(ctx, fix)
	if err != nil {
		return err
	}
	if err := a.tell(found.Messages); err != nil {
		return err
	}
	line := verifyLine{"verify", found.Sources, found.Products, found.Blobs, wrong(found), 0}
	if line.Wrong == 0 || !fix {
		return a.tellVerified(line, fix)
	}
	show := a.newProgress(p.Workers(a.workers))
	r, err := p.Build(ctx, build.Request{Workers: a.workers, Reporter: show})
	show.stop()
	if err != nil {
		return err
	}
	if err := a.tell(r.Messages); err != nil {
		return err
	}
	if err := a.tellBuild(ctx, r, a.newTeller(show)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	again, err := p.Verify(ctx, false)
	if err != nil {
		return err
	}
	line.Mended = max(0, line.Wrong-wrong(again))
	if err := a.tellVerified(line, fix); err != nil {
		return err
	}
	if r.Summary.Failed > 0 {
		return exitFailed
	}
	return nil
}

// wrong is the number of problems; notes report what is good.
func wrong(v *upkeep.Verified) int {
	n := 0
	for _, m := range v.Messages {
		if m.Severity != diag.Note {
			n++
		}
	}
	return n
}

// tellVerified writes the summary; it returns exit code 1 if there still is a problem.
func (a *app) tellVerified(l verifyLine, fix bool) error {
	if a.json {
		if err := a.emit(l); err != nil {
			return err
		}
	} else {
		what := "nothing wrong"
		switch {
		case l.Wrong > 0 && l.Mended == l.Wrong:
			what = fmt.Sprintf("%d wrong, all fixed", l.Wrong)
		case l.Wrong > 0 && !fix:
			what = fmt.Sprintf("%d wrong; `kiln verify --fix` repairs it", l.Wrong)
		case l.Wrong > 0:
			what = fmt.Sprintf("%d wrong, %d fixed", l.Wrong, l.Mended)
		}
		if _, err := fmt.Fprintf(a.errs, "verified %s, %s, %s: %s\n", count(l.Sources, "source file", "source files"), count(l.Products, "product", "products"),
			count(l.Blobs, "blob", "blobs"), what); err != nil {
			return err
		}
	}
	if l.Mended < l.Wrong {
		return exitFailed
	}
	return nil
}
