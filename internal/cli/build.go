package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
)

type buildFlags struct {
	changed          string // value of --changed-by or --changed-from
	changedBy        string
	changedFrom      string
	onError          string
	onErrorSet       bool
	packPlaceholders bool
	trace            string
	failFast         bool
	force            bool
	strict           bool
	dryRun           bool
	order            bool
	locked           bool
	compact          bool
	keep             bool
	adopt            bool
	noWait           bool
	pull             bool // adopt results from the cache, run nothing
	exclude          []string
}

func newBuildCommand(a *app) *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build [PATTERN...]",
		Short: "Build what is out of date",
		Long: `Build all assets that are out of date, or those that the patterns mean, and what these need. A build of all of them
brings resource ids, parcels and constants up to date as well.
With parcel:NAME, Kiln builds what that parcel needs, and packs it.
` + patternHelp,
		GroupID: groupMake,
		Example: `  kiln build                          everything
  kiln build -p mobile 'sprites/**'   some, for one platform
  kiln build @level1 --exclude '**/*.wav'
                                      a group of kiln.toml, without some of it
  kiln build parcel:level1            what a parcel needs, and the parcel
  kiln build build/pc/models/a.glb    what a file of the output was made of
  kiln build --dry-run                show what would be built, and why
  git diff --name-only --no-renames A B | kiln build --changed-from -
                                      look only at what version control says changed`,
		ValidArgsFunction: a.assetIDs(-1),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.takeChanged(cmd); err != nil {
				return err
			}
			f.onErrorSet = cmd.Flags().Changed("on-error")
			return errors.Join(f.check(), a.checkFormat())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.build(cmd.Context(), f, excluding(args, f.exclude))
		},
	}
	fl := cmd.Flags()
	addExclude(cmd, &f.exclude)
	fl.BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would be built, and why; build nothing")
	fl.BoolVar(&f.order, "order", false, "with --dry-run: list each job after those that it needs, with its depth")
	fl.BoolVar(&f.force, "force", false, "build although nothing changed")
	fl.BoolVar(&f.strict, "strict", false, "build also what is held by ignore: nothing that changed counts as harmless")
	fl.BoolVar(&f.failFast, "fail-fast", false, "start nothing more after the first failure")
	fl.StringVar(&f.changedBy, "changed-by", "stat", "`HOW` to see that files changed: stat (size, times, inode) or hash (content)")
	fl.StringVar(&f.changedFrom, "changed-from", "", "read which files changed from `FILE`, one path a line; - is standard input")
	fl.StringVar(&f.changed, "changed", "", "")
	fl.MarkHidden("changed") // former flag for both
	fl.StringVar(&f.onError, "on-error", "fail", "`WHAT` to ship for an asset that fails: nothing (fail), its last good products (last-good), "+
		"or a stand-in (placeholder: a checkerboard, silence, a cube; else the last good ones)")
	fl.BoolVar(&f.packPlaceholders, "placeholders-in-parcels", false,
		"with --on-error placeholder: include placeholders, so that the game can be played while assets are broken")
	fl.BoolVar(&f.locked, "locked", false, "fail if kiln.ids would change, instead of writing it")
	fl.BoolVar(&f.compact, "compact", false, "leave no waste in parcels: they come out as if made from nothing")
	fl.BoolVar(&f.keep, "keep", false, "keep the folders of external commands that fail; of assets that are named, also if nothing changed")
	fl.BoolVar(&f.adopt, "adopt", false, "take over an output folder with files that Kiln did not make, and replace them where products have their names")
	fl.BoolVar(&f.noWait, "no-wait", false, "exit with 3 if another kiln is at work in the project, instead of waiting")
	fl.StringVar(&f.trace, "trace", "", "write when which job ran to `FILE`, in Chrome's trace format")
	a.addFormat(cmd)
	fixed := func(words ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	cmd.RegisterFlagCompletionFunc("changed-by", fixed("stat", "hash"))
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
		return wrongUsage("add --on-error placeholder", "--placeholders-in-parcels is for placeholders, and this build makes none")
	}
	if f.order && !f.dryRun {
		return wrongUsage("add --dry-run", "--order is for what a build would run, and this one runs it")
	}
	return nil
}

// failed returns what to ship for assets that fail. The flags were checked before.
func (f *buildFlags) failed() results.OnError {
	switch {
	case f.packPlaceholders:
		return results.PackedPlaceholders
	case f.onError == "placeholder":
		return results.Placeholders
	case f.onError == "last-good":
		return results.LastGood
	}
	return results.Fail
}

// takeChanged converts --changed to one of the two newer flags.
func (f *buildFlags) takeChanged(cmd *cobra.Command) error {
	fl := cmd.Flags()
	switch by, from, old := fl.Changed("changed-by"), fl.Changed("changed-from"), fl.Changed("changed"); {
	case by && from || old && (by || from):
		return wrongUsage("--changed-from names the files, --changed-by says how to find them", "only one of --changed-by and --changed-from can be given")
	case from && f.changedFrom == "" || old && f.changed == "":
		return wrongUsage("it is a file with one path a line, or - for standard input", "--changed-from cannot be empty")
	case old && (f.changed == "stat" || f.changed == "hash"):
		f.changedBy = f.changed
	case old:
		f.changedFrom = f.changed
	}
	if f.changedBy != "stat" && f.changedBy != "hash" {
		return wrongUsage("it is stat or hash", "--changed-by cannot be %q", f.changedBy)
	}
	return nil
}

// detect returns how changed files are found, and the list of changed files if the caller gives
// one.
func (f *buildFlags) detect(in io.Reader) (how workspace.Detect, changed []string, err error) {
	const hint = "it is - for paths on standard input, or a file with one path a line"
	switch f.changedFrom {
	case "":
		if f.changedBy == "hash" {
			return workspace.ByHash, nil, nil
		}
		return workspace.ByStat, nil, nil
	case "-":
	default:
		file, err := os.Open(f.changedFrom)
		if err != nil {
			return 0, nil, wrongUsage(hint, "--changed-from %s: the list cannot be read: %v", f.changedFrom, bareReason(err))
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, source.MaxList+1))
	if err != nil {
		return 0, nil, wrongUsage(hint, "--changed-from %s: the list cannot be read: %v", f.changedFrom, bareReason(err))
	}
	if len(data) > source.MaxList {
		return 0, nil, wrongUsage("leave it out: then every file is checked", "--changed-from %s: the list is larger than %d MiB", f.changedFrom, source.MaxList>>20)
	}
	return workspace.ByList, source.ParseList(data), nil
}

// bareReason is the reason of a file error, without the path.
func bareReason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// build runs a build and reports it. Messages and summary are also written for an interrupted build.
func (a *app) build(ctx context.Context, f buildFlags, patterns []string) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	patterns = a.origins(ctx, p, patterns)
	detect, changed, err := f.detect(a.in)
	if err != nil {
		return err
	}
	trace, err := newTrace(f.trace)
	if err != nil {
		return err
	}
	if f.keep {
		if err := clearKept(p); err != nil {
			return err
		}
	}
	show := a.newProgress(p.Workers(a.workers))
	told := a.newTeller(show)
	if err := told.start(p, patterns, f.dryRun); err != nil {
		show.stop()
		return err
	}
	r, err := a.buildIn(ctx, p, f, build.Request{
		Patterns: patterns, Platforms: a.platforms, Workers: a.workers, Force: f.force || f.keep && len(patterns) > 0, Strict: f.strict, Keep: f.keep, FailFast: f.failFast, DryRun: f.dryRun, Order: f.order, Pull: f.pull,
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
	a.formatted.built(r)
	if err != nil {
		a.failWith(diag.Messages(err, codeOf(err)))
	}
	if f.dryRun {
		return a.tellPlan(r)
	}
	if f.keep && !a.json {
		for _, dir := range kept(p) {
			fmt.Fprintf(a.errs, "kept %s: run.sh in it runs the command again\n", dir)
		}
	}
	if terr := a.tellBuild(ctx, r, told); terr != nil {
		return terr
	}
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	// The cause may also be something other than an asset: a link to nothing.
	case err != nil || r.Summary.Failed > 0 || r.Messages.Err() != nil:
		return exitFailed
	}
	return nil
}

// buildIn builds, or has the kiln build that watches the project; there, failed assets keep their last good products by
// default.
func (a *app) buildIn(ctx context.Context, p *build.Project, f buildFlags, req build.Request) (*report.Report, error) {
	if a.turn != nil {
		if !f.onErrorSet {
			req.OnError = results.LastGood
		}
		return a.turn.Build(ctx, req)
	}
	var err error
	if req.From, err = os.Getwd(); err != nil {
		req.From = "" // the folder was removed
	}
	if !f.dryRun {
		if err := a.lock(ctx, p, f.noWait); err != nil {
			return nil, err
		}
		defer p.Unlock()
		if f.adopt {
			if err := p.OwnFiles(p.MarkOutput()); err != nil {
				return nil, err
			}
		}
	}
	return p.Build(ctx, req)
}

// tellBuild writes the jobs that ran, if requested and not written before, and the summary.
func (a *app) tellBuild(ctx context.Context, r *report.Report, told *teller) error {
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
	if _, err := fmt.Fprintln(a.errs, a.summaryText(&r.Summary)); err != nil {
		return err
	}
	if a.json {
		return a.emit(newSummaryLine(r.Summary, 0))
	}
	return nil
}

// lookedAt writes how many jobs and parts a build compared or ran, and why.
func (a *app) lookedAt(s report.Summary) {
	switch {
	case s.LookedAt == 0:
	case s.Because == "":
		fmt.Fprintf(a.errs, "compared %s\n", count(s.LookedAt, "job or part", "jobs and parts"))
	default:
		fmt.Fprintf(a.errs, "compared all jobs and parts, %d: %s\n", s.LookedAt, s.Because)
	}
}

// tellPlan writes what a build would do.
func (a *app) tellPlan(r *report.Report) error {
	would := slices.DeleteFunc(slices.Clone(r.Jobs), func(j report.JobReport) bool {
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
			cells := []cell{styled(jobStyle(j.state), j.state), left(j.Name()), left(j.platforms), left(j.Processor), styled(dim, j.why)}
			if j.Place != nil {
				cells = append([]cell{right(strconv.Itoa(j.depth()))}, cells...)
			}
			t.row(cells...)
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
	if _, err := fmt.Fprintln(a.errs, a.planText(&r.Summary, would)); err != nil {
		return err
	}
	if a.json {
		return a.emit(newSummaryLine(r.Summary, maybe))
	}
	return nil
}

type jobLine struct {
	Type      string  `json:"type"`
	Asset     string  `json:"asset"`
	Platform  string  `json:"platform"`
	Part      string  `json:"part,omitempty"`
	Request   bool    `json:"request,omitempty"`
	Processor string  `json:"processor"`
	State     string  `json:"state"`
	Cache     string  `json:"cache,omitempty"` // state cached: which cache had the result, folder or server
	Why       string  `json:"why,omitempty"`
	Seconds   float64 `json:"seconds"`
	Remote    bool    `json:"remote,omitempty"` // it ran on another machine
	Worker    string  `json:"worker,omitempty"` // that one
	Queued    float64 `json:"queued,omitempty"` // seconds that it waited for it
	Sent      int64   `json:"sent,omitempty"`   // bytes
	Fetched   int64   `json:"fetched,omitempty"`

	*placeOfJob // with --order
}

type placeOfJob struct {
	Depth int       `json:"depth"`
	After []jobName `json:"after"`
	Cycle bool      `json:"cycle,omitempty"`
}

type jobName struct {
	Asset     string `json:"asset"`
	Platform  string `json:"platform"`
	Processor string `json:"processor"`
}

func newJobLine(j report.JobReport) jobLine {
	l := jobLine{Type: "job", Asset: j.Asset, Platform: j.Platform, Part: j.Part, Request: j.Request, Processor: j.Processor,
		State: jobState(j), Cache: j.Cache, Why: explain.Reason(j.Why), Seconds: j.Seconds, Remote: j.Remote != nil}
	if at := j.Remote; at != nil {
		l.Worker, l.Queued, l.Sent, l.Fetched = at.Worker, at.Queued.Seconds(), at.Sent, at.Fetched
	}
	if j.Place != nil {
		l.placeOfJob = &placeOfJob{j.Place.Depth, []jobName{}, j.Place.Cycle}
		for _, n := range j.Place.After {
			l.After = append(l.After, jobName{n.Asset, n.Platform, n.Processor})
		}
	}
	return l
}

// jobState is the result of a job or, in a dry run, the expected one.
func jobState(j report.JobReport) string {
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
		return string(view.UpToDate)
	case j.State == engine.Adopted:
		return "cached"
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

// mergedJob is the jobs of an asset that did the same for the same reason on several platforms.
type mergedJob struct {
	report.JobReport
	state, why, platforms string
}

// depth is that in the order; 0 if that was not asked for.
func (m *mergedJob) depth() int {
	if m.Place == nil {
		return 0
	}
	return m.Place.Depth
}

func mergeJobs(jobs []report.JobReport) []mergedJob {
	var merged []mergedJob
	for _, j := range jobs {
		m := mergedJob{j, jobState(j), explain.Reason(j.Why), j.Platform}
		if j.Remote != nil {
			m.why += ", on " + j.Remote.Worker
		}
		if j.Place != nil && j.Place.Cycle {
			m.why += "; in a dependency cycle"
		}
		i := slices.IndexFunc(merged[max(0, len(merged)-8):], func(o mergedJob) bool {
			return o.Asset == m.Asset && o.Part == m.Part && o.Processor == m.Processor && o.state == m.state && o.why == m.why &&
				o.depth() == m.depth()
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
