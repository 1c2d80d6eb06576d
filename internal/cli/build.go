package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/explain"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
)

type buildFlags struct {
	changed          string
	onError          string
	onErrorSet       bool
	packPlaceholders bool
	trace            string
	failFast         bool
	force            bool
	dryRun           bool
	locked           bool
	compact          bool
	noWait           bool
}

func newBuildCommand(a *app) *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build [PATTERN...]",
		Short: "Build what is out of date",
		Long: `Build all assets that are out of date, or those that the patterns mean, and what these need. A build of all of them
brings resource ids, parcels and constants up to date as well.
A pattern is an asset's id, a path, a folder (all below it) or a glob of ids.`,
		GroupID: groupMake,
		Example: `  kiln build                          everything
  kiln build -p mobile 'sprites/**'   some, for one platform
  kiln build --dry-run                tell what would be built, and why
  git diff --name-only --no-renames A B | kiln build --changed -
                                      look only at what version control says changed`,
		ValidArgsFunction: a.assetIDs(-1),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			f.onErrorSet = cmd.Flags().Changed("on-error")
			return f.check()
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.build(cmd.Context(), f, args) },
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.dryRun, "dry-run", "n", false, "tell what would be built, and why, and build nothing")
	fl.BoolVar(&f.force, "force", false, "build although nothing changed")
	fl.BoolVar(&f.failFast, "fail-fast", false, "start nothing more after the first failure")
	fl.StringVar(&f.changed, "changed", "stat", "`HOW` to see that files changed: stat (size, times, inode), hash (content), or a list of paths: a file, or - for standard input")
	fl.StringVar(&f.onError, "on-error", "fail", "`WHAT` becomes of an asset that fails: fail (it has no products), last-good (the last good ones stay) or placeholder (a checkerboard, silence, a cube; else the last good ones)")
	fl.BoolVar(&f.packPlaceholders, "placeholders-in-parcels", false, "with --on-error placeholder: pack placeholders too, instead of leaving parcels as they are")
	fl.BoolVar(&f.locked, "locked", false, "fail if kiln.ids would change, instead of writing it")
	fl.BoolVar(&f.compact, "compact", false, "leave no waste in parcels: they come out as if made from nothing")
	fl.BoolVar(&f.noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project, instead of waiting")
	fl.StringVar(&f.trace, "trace", "", "write when which job ran to `FILE`, in Chrome's trace format")
	fixed := func(words ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	cmd.RegisterFlagCompletionFunc("changed", cobra.FixedCompletions([]string{"stat", "hash"}, cobra.ShellCompDirectiveDefault)) // or a file
	cmd.RegisterFlagCompletionFunc("on-error", fixed("fail", "last-good", "placeholder"))
	return cmd
}

func (f *buildFlags) check() error {
	switch f.onError {
	case "fail", "last-good", "placeholder":
	default:
		return wrongUsage("it is fail, last-good or placeholder", "--on-error cannot be %q", f.onError)
	}
	if f.packPlaceholders && f.onError != "placeholder" {
		return wrongUsage("add --on-error placeholder", "--placeholders-in-parcels says what becomes of placeholders, and there are none")
	}
	return nil
}

// failed is what becomes of assets that fail, by flags that were checked.
func (f *buildFlags) failed() build.OnError {
	switch {
	case f.packPlaceholders:
		return build.PackedPlaceholders
	case f.onError == "placeholder":
		return build.Placeholders
	case f.onError == "last-good":
		return build.LastGood
	}
	return build.Fail
}

// detect reads how to see that files changed: a word, or where a list of them is.
func (f *buildFlags) detect(in io.Reader) (how build.Detect, changed []string, err error) {
	const hint = "it is stat, hash, - for paths on standard input, or a file with one path a line"
	switch f.changed {
	case "stat":
		return build.ByStat, nil, nil
	case "hash":
		return build.ByHash, nil, nil
	case "":
		return 0, nil, wrongUsage(hint, "--changed cannot be empty")
	case "-":
	default:
		file, err := os.Open(f.changed)
		if err != nil {
			return 0, nil, wrongUsage(hint, "--changed %s: the list cannot be read: %v", f.changed, bareReason(err))
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, source.MaxList+1))
	if err != nil {
		return 0, nil, wrongUsage(hint, "--changed %s: the list cannot be read: %v", f.changed, bareReason(err))
	}
	if len(data) > source.MaxList {
		return 0, nil, wrongUsage("leave it out: then every file is looked at", "--changed %s: the list is larger than %d MiB", f.changed, source.MaxList>>20)
	}
	return build.ByList, source.ParseList(data), nil
}

// bareReason is what is wrong with a file, without its path.
func bareReason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// build runs a build and tells of it. Messages and summary are told also of a build that was interrupted.
func (a *app) build(ctx context.Context, f buildFlags, patterns []string) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	detect, changed, err := f.detect(a.in)
	if err != nil {
		return err
	}
	trace, err := newTrace(f.trace)
	if err != nil {
		return err
	}
	show := a.newProgress(p.Workers(a.workers))
	told := a.newTeller(show)
	if err := told.start(p, patterns, f.dryRun); err != nil {
		show.stop()
		return err
	}
	r, err := a.buildIn(ctx, p, f, build.Request{
		Patterns: patterns, Platforms: a.platforms, Workers: a.workers, Force: f.force, FailFast: f.failFast, DryRun: f.dryRun,
		Detect: detect, Changed: changed, Locked: f.locked, Compact: f.compact, OnError: f.failed(), Reporter: reporters{show, trace}, Tell: told.tell,
	})
	show.stop()
	if terr := trace.close(); err == nil {
		err = terr
	}
	if r == nil {
		return err
	}
	if err := told.rest(r.Messages); err != nil {
		return err
	}
	if err != nil {
		a.failWith(diag.Messages(err, codeOf(err)))
	}
	if f.dryRun {
		return a.tellPlan(r)
	}
	if terr := a.tellBuild(ctx, r, told); terr != nil {
		return terr
	}
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil || r.Summary.Failed > 0 || r.Messages.Err() != nil: // what is no asset can be wrong too: a link to nowhere
		return exitFailed
	}
	return nil
}

// buildIn builds, or has the kiln build that watches the project: there failed assets keep their last good products unless something else
// is said.
func (a *app) buildIn(ctx context.Context, p *build.Project, f buildFlags, req build.Request) (*build.Report, error) {
	if a.turn != nil {
		if !f.onErrorSet {
			req.OnError = build.LastGood
		}
		return a.turn.Build(ctx, req)
	}
	var err error
	if req.From, err = os.Getwd(); err != nil {
		req.From = "" // it was removed
	}
	if !f.dryRun {
		if err := a.lock(ctx, p, f.noWait); err != nil {
			return nil, err
		}
		defer p.Unlock()
	}
	return p.Build(ctx, req)
}

// tellBuild writes the jobs that ran, if wanted and not told of yet, and the summary.
func (a *app) tellBuild(ctx context.Context, r *build.Report, told *teller) error {
	switch {
	case a.json:
		if err := told.restOfJobs(r.Jobs); err != nil {
			return err
		}
	case a.verbose:
		t := a.tableOn(a.errs)
		for _, j := range mergeJobs(r.Jobs) {
			t.row(styled(jobStyle(j.state), j.state), left(j.Name()), left(j.platforms), left(j.Processor), right(secondsText(j.Seconds)), styled(dim, j.why))
		}
		if err := t.write(); err != nil {
			return err
		}
		a.lookedAt(r.Summary)
	}
	if ctx.Err() != nil && !a.json {
		fmt.Fprintln(a.errs, "interrupted; what was finished is kept")
	}
	s := r.Summary
	if _, err := fmt.Fprintf(a.errs, "built %d, reused %d, failed %d in %.2fs\n", s.Built, s.Reused, s.Failed, s.Seconds); err != nil {
		return err
	}
	if a.json {
		return a.emit(summaryLine{"summary", s, 0})
	}
	return nil
}

// lookedAt tells how many jobs and parts a build compared with what they had looked at, or ran.
func (a *app) lookedAt(s build.Summary) {
	switch {
	case s.LookedAt == 0:
	case s.Because == "":
		fmt.Fprintf(a.errs, "compared %d jobs and parts\n", s.LookedAt)
	default:
		fmt.Fprintf(a.errs, "compared all jobs and parts, %d: %s\n", s.LookedAt, s.Because)
	}
}

// tellPlan writes what a build would do.
func (a *app) tellPlan(r *build.Report) error {
	would := slices.DeleteFunc(slices.Clone(r.Jobs), func(j build.JobReport) bool {
		return j.State != engine.WouldRun && j.State != engine.Undecided
	})
	if a.json {
		for _, j := range would {
			if err := a.emit(newJobLine(j)); err != nil {
				return err
			}
		}
	} else {
		t := a.tableOn(a.out)
		for _, j := range mergeJobs(would) {
			t.row(styled(jobStyle(j.state), j.state), left(j.Name()), left(j.platforms), left(j.Processor), styled(dim, j.why))
		}
		if err := t.write(); err != nil {
			return err
		}
	}
	maybe := 0
	for _, j := range would {
		if j.State == engine.Undecided {
			maybe++
		}
	}
	perhaps := ""
	if maybe > 0 {
		perhaps = fmt.Sprintf("perhaps %d more, ", maybe)
	}
	if _, err := fmt.Fprintf(a.errs, "would build %d, %sreuse %d in %.2fs\n", r.Summary.Built, perhaps, r.Summary.Reused, r.Summary.Seconds); err != nil {
		return err
	}
	if a.json {
		return a.emit(summaryLine{"summary", r.Summary, maybe})
	}
	return nil
}

type summaryLine struct {
	Type string `json:"type"`
	build.Summary
	Maybe int `json:"maybe,omitempty"` // dry run: jobs that are decided only once others have run
}

type jobLine struct {
	Type      string  `json:"type"`
	Asset     string  `json:"asset"`
	Platform  string  `json:"platform"`
	Part      string  `json:"part,omitempty"`
	Request   bool    `json:"request,omitempty"`
	Processor string  `json:"processor"`
	State     string  `json:"state"`
	Why       string  `json:"why,omitempty"`
	Seconds   float64 `json:"seconds"`
}

func newJobLine(j build.JobReport) jobLine {
	return jobLine{"job", j.Asset, j.Platform, j.Part, j.Request, j.Processor, jobState(j), explain.Reason(j.Why), j.Seconds}
}

// jobState is what became of a job, or, in a dry run, would become of it.
func jobState(j build.JobReport) string {
	switch {
	case j.State == engine.WouldRun:
		return "build"
	case j.State == engine.Undecided:
		return "maybe"
	case j.State == engine.Stopped:
		return "stopped"
	case j.Failed:
		return "failed"
	case j.State == engine.Held:
		return "reused"
	}
	return "built"
}

func jobStyle(state string) style {
	switch state {
	case "failed":
		return red
	case "built", "build":
		return green
	}
	return yellow
}

// mergedJob stands for the jobs of an asset that did the same for the same reason on several platforms.
type mergedJob struct {
	build.JobReport
	state, why, platforms string
}

func mergeJobs(jobs []build.JobReport) []mergedJob {
	var merged []mergedJob
	for _, j := range jobs {
		m := mergedJob{j, jobState(j), explain.Reason(j.Why), j.Platform}
		i := slices.IndexFunc(merged[max(0, len(merged)-8):], func(o mergedJob) bool {
			return o.Asset == m.Asset && o.Part == m.Part && o.Processor == m.Processor && o.state == m.state && o.why == m.why
		})
		if i < 0 {
			merged = append(merged, m)
			continue
		}
		o := &merged[max(0, len(merged)-8)+i]
		o.platforms = strings.Join([]string{o.platforms, m.platforms}, ", ")
		o.Seconds += m.Seconds
	}
	return merged
}
