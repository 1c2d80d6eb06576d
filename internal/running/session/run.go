package session

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/running/watch"
)

// run is a running session, on one goroutine.
type run struct {
	*Session
	p      *build.Project
	w      *watch.Watcher
	inputs workspace.Inputs
	number int

	// What the next build has to do. It is kept until a build has finished.
	sources map[string]bool // paths below the source roots
	outputs map[string]bool // paths below the output folder
	own     map[string]bool // paths that the last build wrote elsewhere: they are checked with the next changes
	full    bool            // check everything
	all     bool            // report everything
	reopen  bool            // open the project again
	seen    time.Time       // when the first of these changes was noticed
	broken  error           // what stopped the last build as a whole
	toldAll bool            // the last build reported everything
	again   bool            // the last build was not of everything
	// Everything was checked: the memory for that, 0.8 GB at 100,000 assets, is returned to the system when the
	// session is idle.
	large   bool
	ready   bool             // a build has ended
	passing bool             // a job failed in the last build in a way that may pass
	tries   int              // number of builds for that reason
	fresh   bool             // some of these changes came after the last build had begun
	named   workspace.Inputs // files that kiln.toml names, if the project cannot be opened
	over    <-chan struct{}  // closed when the session should end
	relink  bool             // symbolic links below the source roots may have changed
	onError results.OnError  // for the session's own builds: as in the last requested build of everything, until a file changes
	targets []string         // targets of symbolic links
	ignore  []string         // those targets that are ignore files
}

// watch starts watching the project's files and ends the watch before. again means that the project was opened after
// the watch before began.
func (r *run) watch(again bool) error {
	o := watch.Options{Quiet: r.cfg.Quiet, Poll: r.cfg.Poll}
	pass, roots := r.p.Passes(), r.p.SourceRoots()
	covered := func(path string) bool {
		return slices.ContainsFunc(o.Trees, func(t watch.Tree) bool { return within(path, t.Path) && !passed(t, path) })
	}
	slices.SortFunc(roots, func(a, b string) int { return len(a) - len(b) }) // parents first
	for _, root := range roots {
		if !covered(root) {
			o.Trees = append(o.Trees, watch.Tree{Path: root, Pass: pass.Over, Lists: true, Forget: pass.Forget})
		}
	}
	out := r.p.OutputDir()
	if r.p.CheckOutput() == nil && r.p.BelowProject().MkdirAll(out) == nil {
		o.Trees = append(o.Trees, watch.Tree{Path: out, Pass: r.p.Unfinished})
	}
	r.inputs = r.p.Inputs().And(r.named)
	o.Files = append(append(o.Files, r.p.StatePlace()), r.ignore...) // Pass reads ignore files, and single files are watched before trees
	for _, dir := range r.inputs.Folders {
		if !covered(dir) {
			o.Trees = append(o.Trees, watch.Tree{Path: dir, Lists: true})
		}
	}
	for _, f := range slices.Concat(r.inputs.Files, r.inputs.Others, r.targets) {
		switch info, err := os.Stat(f); {
		case covered(f):
		case err == nil && info.IsDir() && slices.Contains(r.targets, f):
			o.Trees = append(o.Trees, watch.Tree{Path: f, Lists: true})
		default:
			o.Files = append(o.Files, f)
		}
	}
	w, err := watch.New(o)
	if err != nil {
		return err
	}
	if old := r.w; old != nil {
		r.w = w
		b := old.Flush(context.Background())
		if b.Unsure && again { // the project was opened while old was watching: opening it again would never end
			b.Lost, r.full, r.relink = false, true, true
		}
		r.take(&b)
		old.Close()
	}
	r.w = w
	return nil
}

// rewatch also watches what the last build found that the project depends on. It may have changed between the build and
// the watch, so it is checked once more: again reports whether that is necessary.
func (r *run) rewatch() (again bool, err error) {
	targets := r.targets
	if r.relink && r.p.Holds() {
		r.relink = false
		targets, r.ignore = r.p.LinkTargets()
	}
	again = !slices.Equal(targets, r.targets)
	if !again && r.inputs.Has(r.p.Inputs()) {
		return false, nil
	}
	was := r.targets
	r.targets = targets
	if err := r.watch(false); err != nil {
		r.targets = was
		return again, err
	}
	return again || r.p.Holds() && !r.p.OthersSame(), nil
}

// due reports whether there is something to build.
func (r *run) due() bool {
	return r.full || r.all || r.reopen || r.again || len(r.sources) > 0 || len(r.outputs) > 0
}

// builds reports whether the session builds next. After an error of the whole build, it waits for a change.
func (r *run) builds() bool { return r.due() && (r.broken == nil || r.fresh) }

// passed reports whether a tree skips a path or one of its folders.
func passed(t watch.Tree, path string) bool {
	if t.Pass == nil {
		return false
	}
	for ; path != t.Path; path = filepath.Dir(path) {
		if t.Pass(path, true) {
			return true
		}
	}
	return false
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}

// largeBuild is the number of jobs from which on a build's memory is returned to the system.
const largeBuild = 5000

// idleAfter is how long nothing must have changed before postponed work is done.
const idleAfter = 2 * time.Second

// retryAfter is the wait before a build is repeated that the disk, not the project, stopped, or in which jobs failed in
// a way that may pass. It doubles each time. For jobs, mostTries are enough, because a file may be unreadable for good.
const (
	retryAfter = 2 * time.Second
	mostTries  = 5
)

// wait waits until there is something to build.
func (r *run) wait(ctx context.Context) error {
	if r.builds() {
		return nil
	}
	var retry <-chan time.Time
	if r.broken != nil && workspace.MayPass(r.broken) {
		retry = time.After(r.retryAfter << min(r.tries, mostTries))
	} else if r.passing && r.tries < mostTries {
		retry = time.After(r.retryAfter << r.tries)
	} else if !r.passing {
		r.tries = 0
	}
	var idle <-chan time.Time
	if r.p.Untidy() || r.large {
		idle = time.After(idleAfter)
	}
	for {
		select {
		case <-idle:
			tidied := r.p.Untidy()
			r.p.Tidy(ctx) // if it fails, a build does it
			if r.large || tidied {
				r.large = false
				debug.FreeOSMemory()
			}
		case b := <-r.w.Batches():
			if r.take(&b) {
				return nil
			}
		case <-r.wake:
			return nil
		case <-retry:
			r.tries++
			r.again = true
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take sorts changes by their effect. It returns false if they have none.
func (r *run) take(b *watch.Batch) bool {
	r.noted(b)
	if len(b.Paths) == 0 && !b.Lost {
		return false
	}
	r.fresh, r.tries = true, 0
	if r.seen.IsZero() {
		r.seen = b.Seen
	}
	if b.Lost {
		r.full, r.reopen, r.relink = true, true, true
	}
	out := r.p.OutputDir()
	for _, p := range b.Paths {
		if slices.Contains(r.inputs.Files, p) || slices.ContainsFunc(r.inputs.Folders, func(dir string) bool { return within(p, dir) }) {
			r.reopen = true
		}
		switch {
		case within(p, out):
			add(&r.outputs, p)
		case p == r.p.StatePlace():
			r.again = r.again || !r.p.Holds() // most likely it was removed
		case filepath.Base(p) == source.IgnoreFile, slices.Contains(r.ignore, p):
			r.reopen = true // the watched folders may have changed
			r.onError = results.LastGood
		default:
			r.onError = results.LastGood
			add(&r.sources, p)
			if info, err := os.Lstat(p); err == nil && !info.Mode().IsRegular() {
				r.relink = true
			}
		}
	}
	return true
}

func add(set *map[string]bool, p string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[p] = true
}

// bring builds, if there is something to do.
func (r *run) bring(ctx context.Context) {
	if r.onlyOwn() {
		for p := range r.sources { // kiln.ids may be in a source root
			add(&r.own, p)
		}
		r.sources, r.outputs, r.seen = nil, nil, time.Time{}
		r.wants.end()
		return
	}
	_, r.broken = r.build(ctx, r.request())
}

// request is the request of the session's own builds.
func (r *run) request() build.Request {
	return build.Request{Platforms: r.cfg.Platforms, Workers: r.cfg.Workers, OnError: r.onError, Reporter: r.reporter()}
}

// build builds, and reports it.
func (r *run) build(ctx context.Context, req build.Request) (*report.Report, error) {
	r.number++
	r.fresh = false
	began := Began{Number: r.number, Paths: r.names(), Seen: r.seen}
	r.tell(began)
	r.wants.begin()
	report, err := r.attempt(ctx, req)
	ended := Ended{Began: began, Report: report, Err: err}
	r.mu.Lock()
	if report != nil {
		r.content.take(&ended, r.toldAll)
	} else if ctx.Err() == nil {
		r.content.number = max(r.content.number, ended.Number) // an empty project is content too: later changes refer to this number
	}
	if ctx.Err() == nil {
		r.content.err = err
	}
	r.mu.Unlock()
	r.wants.end()
	if ctx.Err() == nil || report != nil && !(report.Stopped && r.ends()) {
		r.tell(ended) // even if the caller cancelled the build: what it made counts as reported from now on
		if !r.ready && (report == nil || !report.Stopped) {
			r.ready = true
			close(r.first)
		}
	}
	return report, err
}

// ends reports whether the session should end.
func (r *run) ends() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// open opens the project again, if that is necessary. If that fails, the files that kiln.toml names are watched as
// well, because one of them may have the error. The project is then opened once more, because a file may have been
// fixed before it was watched.
func (r *run) open() error {
	for again := false; r.reopen; again = true {
		p, err := build.Open(r.cfg.Build)
		if err != nil {
			if r.named = workspace.NamedInputs(r.cfg.Build); r.inputs.Has(r.named) {
				return err
			}
			if werr := r.watch(again); werr != nil {
				return werr
			}
			continue
		}
		p.Keep()
		r.p, r.named = p, workspace.Inputs{}
		r.mu.Lock()
		r.project = p
		r.mu.Unlock()
		r.full, r.reopen, r.relink = true, false, true
		if err := r.watch(again); err != nil {
			r.reopen = true
			return err
		}
	}
	return nil
}

// seeing sets how a build finds changes.
func (r *run) seeing(req *build.Request) {
	changed := slices.AppendSeq(slices.Sorted(maps.Keys(r.sources)), maps.Keys(r.own))
	if req.Changed, req.Outputs = changed, slices.Sorted(maps.Keys(r.outputs)); req.Detect == workspace.ByStat && !r.full {
		req.Detect = workspace.ByWatch
	}
}

// attempt runs one build.
func (r *run) attempt(ctx context.Context, req build.Request) (*report.Report, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.p.Lock(ctx, true, r.busy); err != nil {
		return nil, err
	}
	defer r.p.Unlock()
	if r.number > 1 && !r.p.Holds() {
		r.all = true // another process may have built
	}
	r.seeing(&req)
	r.fresh = false
	if req.Outcomes = report.ChangedOutcomes; r.all {
		req.Outcomes = report.AllOutcomes
	}
	r.toldAll = r.all
	req.Control, req.Done = &control.Control{}, r.wants.done
	req.Control.Prepared = r.wants.reach(req.Control)
	if r.cfg.Sooner != nil && (r.full || r.again) { // the order of few jobs does not matter
		req.Control.Sooner = r.cfg.Sooner()
	}
	if r.ready {
		req.Placed = r.placed
	}
	report, err := r.follow(func() (*report.Report, error) { return r.p.Build(ctx, req) }, req.Control)
	own := r.request()
	if err == nil { // else what had to be repeated still has to be
		r.passing = report.Passing
		r.again = report.Stopped || len(req.Patterns) > 0 || !slices.Equal(req.Platforms, own.Platforms)
	}
	rewrote := !r.p.Holds() // of the snapshot: the build had to decode all of it
	r.large = r.large || err == nil && (!report.Short || rewrote) && report.Summary.Jobs > largeBuild
	r.p.Read() // now, before somebody waits for it; if it fails, the next build reports why
	r.mu.Lock()
	r.variables = r.p.Variables()
	r.mu.Unlock()
	return report, err
}

// placed reports products that are in place.
func (r *run) placed(outcomes []report.Outcome) {
	r.mu.Lock()
	products, ok := r.content.contents(outcomes)
	r.mu.Unlock()
	if ok {
		r.tell(Placed{products})
	}
}

// follow receives changes during a build: running jobs that have read a changed file run again. If much is left to do,
// the build is halted, and the next one continues with the changes first. It is halted at once if somebody waits for an
// asset that this build does not know.
func (r *run) follow(do func() (*report.Report, error), c *control.Control) (report *report.Report, err error) {
	over := make(chan struct{})
	go func() {
		report, err = do()
		close(over)
	}()
	var later []watch.Batch
	start := time.Now()
	var halt <-chan time.Time
	awaited := false // somebody waits for an asset that the build does not know
	missing := r.wants.missing()
	for {
		select {
		case <-missing:
			awaited = true
			if slices.ContainsFunc(later, func(b watch.Batch) bool { return r.foreign(&b) }) {
				c.Halt()
			}
		case <-over:
			// The changes before the build are known now, even if the build was stopped; later ones are for the
			// next build.
			if err == nil {
				r.sources, r.outputs, r.own, r.full, r.all, r.seen = nil, nil, nil, false, false, time.Time{}
			}
			for i := range later {
				r.take(&later[i])
			}
			return report, err
		case b := <-r.w.Batches():
			later = append(later, b)
			if awaited && r.foreign(&b) {
				c.Halt()
			}
			if c.Invalidate(b.Paths) > 0 || halt == nil && r.foreign(&b) {
				halt = time.After(max(0, r.leastBuild-time.Since(start)))
			}
		case <-halt:
			halt = nil
			if c.Left() >= r.mostWait.Seconds()*float64(r.p.Workers(r.cfg.Workers)) {
				c.Halt()
			}
		}
	}
}

// A build runs for at least leastBuild, however often something changes, so that long work is finished at some time: a
// restart takes up to a second at 100,000 assets. A build that will end within mostWait is not halted.
const (
	leastBuild = 2 * time.Second
	mostWait   = 500 * time.Millisecond
)

// foreign reports whether a batch has paths that the build itself does not write.
func (r *run) foreign(b *watch.Batch) bool {
	return b.Lost || slices.ContainsFunc(b.Paths, func(p string) bool { return !r.p.Writes(p) })
}

// busy reports that another kiln has the lock.
func (r *run) busy() {
	m := &diag.Message{Severity: diag.Note, Code: diag.ProjectBusy, Text: "another kiln is at work in this project; waiting for it to end"}
	r.tell(Noted{m})
}

// Turn is a time in which the session works for one caller. All earlier changes are known.
type Turn struct {
	r   *run
	err error // why the project cannot be opened
}

// turns gives a turn to each caller that has asked for one.
func (r *run) turns(ctx context.Context) {
	r.mu.Lock()
	asked := r.asked
	r.asked = nil
	r.mu.Unlock()
	for _, a := range asked {
		b := r.w.Flush(ctx)
		r.take(&b)
		a.do(&Turn{r: r, err: r.open()})
		close(a.done)
	}
}

// Project returns the current project. The error says what is wrong with its files.
func (t *Turn) Project() (*build.Project, error) { return t.r.p, t.err }

// Build builds what is requested. If that is not everything, the session builds the rest afterwards. Changes are found
// as in the session's own builds, unless the request says otherwise; and failed assets keep their last good products if
// the request says so. The report's outcomes are for the session.
func (t *Turn) Build(ctx context.Context, req build.Request) (*report.Report, error) {
	if t.err != nil {
		return nil, t.err
	}
	if req.DryRun {
		t.r.seeing(&req)
		r, err := t.r.p.Build(ctx, req)
		t.r.large = t.r.large || r != nil && len(r.Jobs) > largeBuild
		return r, err
	}
	req.Reporter = both{req.Reporter, reporter{t.r.Session}}
	attempt := func() (*report.Report, error) {
		if len(req.Patterns)+len(req.Platforms) == 0 {
			t.r.onError = req.OnError
		}
		return t.r.build(ctx, req)
	}
	r, err := attempt()
	for again := 0; err == nil && ctx.Err() == nil && again < mostAgain && (changedMeanwhile(r) || t.r.unwatched()); again++ {
		b := t.r.w.Flush(ctx)
		t.r.take(&b)
		first := r
		if r, err = attempt(); err == nil {
			r.After(first)
		}
	}
	if err == nil {
		t.r.broken = nil
	}
	return r, err
}

// Again makes the session check every file and build what is out of date when the turn ends, as if nothing had been
// watched.
func (t *Turn) Again() { t.r.full, t.r.all, t.r.reopen = true, true, true }

// unwatched watches what a build found, and reports whether some of it may have changed before it was watched. Then the
// build is repeated for the same caller. Otherwise the session would build in its own way after the answer.
func (r *run) unwatched() bool {
	again, err := r.rewatch() // an error occurs again when the session ends because of it
	r.again = r.again || again
	return again && err == nil
}

// mostAgain is how often a requested build is repeated because files changed while jobs read them. Users who save just
// before should not see that.
const mostAgain = 3

// changedMeanwhile reports whether a job failed because a file changed while it was read, or just before, so that
// repeating the build helps.
func changedMeanwhile(r *report.Report) bool {
	return r.Passing && slices.ContainsFunc(r.Messages, func(m *diag.Message) bool { return m.Code == diag.CommandChanged || m.Code == diag.SourceChanged })
}

// Look inspects the project without building.
func (t *Turn) Look(ctx context.Context, patterns, platforms []string) (*view.View, error) {
	if t.err != nil {
		return nil, t.err
	}
	req := build.Request{Patterns: patterns, Platforms: platforms}
	t.r.seeing(&req)
	v, err := t.r.p.LookAt(ctx, req)
	t.r.large = t.r.large || v != nil && len(v.Assets) > largeBuild
	return v, err
}

// both calls two reporters.
type both [2]build.Reporter

func (b both) Planned(jobs int) {
	for _, r := range b {
		r.Planned(jobs)
	}
}

func (b both) JobStarted(job string) {
	for _, r := range b {
		r.JobStarted(job)
	}
}

func (b both) JobSuspended(job string, on []string, begins bool) {
	for _, r := range b {
		r.JobSuspended(job, on, begins)
	}
}

func (b both) JobMoved(job string, at *engine.Remote) {
	for _, r := range b {
		r.JobMoved(job, at)
	}
}

func (b both) JobFinished(job string, failed bool, took time.Duration) {
	for _, r := range b {
		r.JobFinished(job, failed, took)
	}
}

// Spanned is for those that want to know.
func (b both) Spanned(s build.Span) {
	for _, r := range b {
		if to, ok := r.(interface{ Spanned(build.Span) }); ok {
			to.Spanned(s)
		}
	}
}

// onlyOwn tells whether nothing changed but what builds write, and all of that is as the last one left it: it was that which changed it.
func (r *run) onlyOwn() bool {
	return !r.full && !r.all && !r.reopen && !r.again && r.broken == nil &&
		r.p.OwnSame(slices.AppendSeq(slices.Collect(maps.Keys(r.sources)), maps.Keys(r.outputs)))
}

// mostPaths is how many changed paths are reported.
const mostPaths = 100

// names returns the changed paths for display. A folder is included only if nothing in it is known; files that Kiln writes beside
// others to replace them are not.
func (r *run) names() []string {
	if r.full {
		return nil
	}
	var names []string
	set := r.sources
	if len(set) == 0 {
		set = r.outputs // otherwise these are usually what the build before wrote
	}
	holds := map[string]bool{}
	for p := range set {
		holds[filepath.Dir(p)] = true
	}
	for p := range set {
		if holds[p] || disk.IsTemp(p) {
			continue
		}
		if rel, err := filepath.Rel(r.p.Dir, p); err == nil && filepath.IsLocal(rel) {
			p = filepath.ToSlash(rel)
		}
		names = append(names, p)
	}
	slices.Sort(names)
	return names[:min(len(names), mostPaths)]
}

// reporter passes on the progress of a build.
type reporter struct{ s *Session }

func (r reporter) Planned(jobs int)      { r.s.tell(Planned{jobs}) }
func (r reporter) JobStarted(job string) { r.s.tell(JobStarted{job}) }
func (r reporter) JobSuspended(job string, on []string, begins bool) {
	r.s.tell(JobSuspended{job, on, begins})
}
func (r reporter) JobMoved(job string, at *engine.Remote) { r.s.tell(JobMoved{job, at}) }
func (r reporter) JobFinished(job string, failed bool, took time.Duration) {
	r.s.tell(JobFinished{job, failed, took})
}

// reporter is the reporter of the session's own builds. Nobody waits for a part of the first one.
func (r *run) reporter() build.Reporter {
	if r.ready {
		return drafting{reporter{r.Session}}
	}
	return reporter{r.Session}
}

// drafting is a reporter that wants drafts, for builds that somebody waits for.
type drafting struct{ reporter }

func (r drafting) Drafted(platform, asset, uuid string, p engine.Product) {
	r.s.tell(Drafted{Product{Platform: platform, Asset: asset, UUID: uuid, Product: p}})
}
