package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/upkeep"
)

type gcFlags struct {
	days    int
	maxSize string
	dryRun  bool
	noWait  bool
}

type gcLine struct {
	Type       string `json:"type"`
	DryRun     bool   `json:"dry_run"`
	Traces     int    `json:"traces"` // deleted, or to be deleted
	Files      int    `json:"files"`
	Bytes      int64  `json:"bytes"`
	KeptTraces int    `json:"kept_traces"`
	KeptFiles  int    `json:"kept_files"`
	KeptBytes  int64  `json:"kept_bytes"`
	Unsettled  bool   `json:"unsettled,omitempty"` // the last build was interrupted, or kiln.toml changed: no newer trace was deleted
}

func newGCCommand(a *app) *cobra.Command {
	var f gcFlags
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete cached results that have not been used recently",
		Long: `Delete the results that Kiln keeps of earlier states of the project, so that going back to them builds nothing, if they
have not been used recently. What the project needs now is always kept: after gc, a build has nothing to do.`,
		GroupID: groupMake,
		Example: "  kiln gc\n  kiln gc --days 7 --max-size 10GB\n  kiln gc --days 0 --dry-run",
		Args:    atMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.gc(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.days, "days", 30, "delete what has not been used for `N` days")
	fl.StringVar(&f.maxSize, "max-size", "", "then delete the least recently used, until the rest has at most `SIZE`, as 10GB or 512MiB")
	fl.BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would be deleted; delete nothing")
	fl.BoolVar(&f.noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project, instead of waiting")
	return cmd
}

// maxDays is a hundred years: a duration cannot hold much more.
const maxDays = 36500

func (f *gcFlags) request() (upkeep.GCRequest, error) {
	if f.days < 0 || f.days > maxDays {
		return upkeep.GCRequest{}, wrongUsage(fmt.Sprintf("it is 0 to %d; with 0, only what the project needs now stays", maxDays),
			"--days cannot be %d", f.days)
	}
	req := upkeep.GCRequest{Unused: time.Duration(f.days) * 24 * time.Hour, DryRun: f.dryRun}
	if f.maxSize == "" {
		return req, nil
	}
	size, ok := project.Size(f.maxSize)
	if !ok {
		return req, wrongUsage("write it like 10GB or 512MiB", "--max-size cannot be %q", f.maxSize)
	}
	req.MaxBytes = size
	return req, nil
}

func (a *app) gc(ctx context.Context, f gcFlags) error {
	req, err := f.request()
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := a.lock(ctx, p, f.noWait); err != nil {
			return err
		}
		defer p.Unlock()
	}
	freed, err := p.GC(ctx, req)
	if err != nil {
		return err
	}
	if err := a.tell(freed.Messages); err != nil {
		return err
	}
	if err := a.tellFreed(req, freed); err != nil || f.dryRun {
		return err
	}
	return a.gcCache(p)
}

// gcCache shrinks the cache folder to its limit.
func (a *app) gcCache(p *build.Project) error {
	c, err := p.CachePlace().Collect()
	if err != nil {
		return a.tell(diag.List{diag.Warningf(diag.CacheFails, diag.Pos{}, "the cache folder cannot be cleared up: %v", err)})
	}
	if c.Files == 0 || a.json || a.quiet {
		return nil
	}
	_, err = fmt.Fprintf(a.out, "freed %s of the cache folder, %s left\n", diag.Size(c.Bytes), diag.Size(c.Left.Bytes))
	return err
}

func (a *app) tellFreed(req upkeep.GCRequest, f *upkeep.Freed) error {
	if a.json {
		return a.emit(gcLine{"gc", req.DryRun, f.Traces, f.Files, f.Bytes, f.KeptTraces, f.KeptFiles, f.KeptBytes, f.Unsettled})
	}
	if a.quiet {
		return nil
	}
	verb := "freed"
	if req.DryRun {
		verb = "would free"
	}
	_, err := fmt.Fprintf(a.out, "%s %s: %s, %s\nkept  %s: %s, %s\n", verb, diag.Size(f.Bytes), count(f.Files, "file", "files"),
		count(f.Traces, "trace", "traces"),
		diag.Size(f.KeptBytes), count(f.KeptFiles, "file", "files"), count(f.KeptTraces, "trace", "traces"))
	switch {
	case err != nil:
	case f.Unsettled:
		_, err = fmt.Fprintln(a.errs, "traces stay until a build has ended: one was cut short or is under way, or kiln.toml changed since")
	case req.MaxBytes > 0 && f.KeptBytes > req.MaxBytes:
		_, err = fmt.Fprintf(a.errs, "the project needs more than %s as it is now; all of that stays\n", diag.Size(req.MaxBytes))
	}
	return err
}
