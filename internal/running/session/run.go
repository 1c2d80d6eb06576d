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

// run is a session at work, on one goroutine.
type run struct {
	*Session
	p      *build.Project
	w      *watch.Watcher
	inputs workspace.Inputs
	number int

	// What is to be done in the next build. It stays until a build has come to its end.
	sources map[string]bool  // paths below the source roots
	outputs map[string]bool  // paths below the output folder
	own     map[string]bool  // what the last build wrote elsewhere: it is checked with what changes next
	full    bool             // look at everything
	all     bool             // report everything
	reopen  bool             // read the project again
	seen    time.Time        // when the first of these changes was seen
	broken  error            // why the last build stopped as a whole
	toldAll bool             // the last build reported everything
	again   bool             // the last build was not of everything
	large   bool             // everything was checked: the memory for that, 0.8 GB at 100,000 assets, is returned to the system when there is nothing else to do
	ready   bool             // a build has ended
	passing bool             // a job failed in the last build in a way that may pass
	tries   int              // how many builds there were for that
	fresh   bool             // something of this came since the last build began, which knows nothing of it
	named   workspace.Inputs // what kiln.toml names, if the project cannot be read
	over    <-chan struct{}  // closed when the session is to end
	relink  bool             // there may be other symbolic links below the source roots
	onError results.OnError  // in builds of the session's own: as in the last build of everything that somebody asked for, until a file changes
	targets []string         // of the symbolic links
	ignore  []string         // those of them that are ignore files
}

// watch begins to watch what the project is made of, and ends what was watched before. again says that the project was opened since that
// began.
func (r *run) watch(again bool) error {
	o := watch.Options{Quiet: r.cfg.Quiet, Poll: r.cfg.Poll}
	pass, roots := r.p.Passes(), r.p.SourceRoots()
	covered := func(path string) bool {
		return slices.ContainsFunc(o.Trees, func(t watch.Tree) bool { return within(path, t.Path) && !passed(t, path) })
	}
	slices.SortFunc(roots, func(a, b string) int { return len(a) - len(b) }) // what holds others first
	for _, root := range roots {
		if !covered(root) {
			o.Trees = append(o.Trees, watch.Tree{Path: root, Pass: pass.Over, Lists: true, Forget: pass.Forget})
		}
	}
	out := r.p.OutputDir()
	if err := os.MkdirAll(out, 0o777); err == nil {
		o.Trees = append(o.Trees, watch.Tree{Path: out, Pass: r.p.Unfinished})
	}
	r.inputs = r.p.Inputs().And(r.named)
	o.Files = append(append(o.Files, r.p.StatePlace()), r.ignore...) // pass reads ignore files, and single files are watched before trees
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
		if b.Unsure && again { // the project was opened while old was watching already: opening it once more would never end
			b.Lost, r.full, r.relink = false, true, true
		}
		r.take(&b)
		old.Close()
	}
	r.w = w
	return nil
}

// rewatch watches what the last build found that the project depends on, besides what is watched. What of it changed after the build looked
// at it, and before it was watched, is found by looking once more: again tells whether that is needed.
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

// due tells whether there is something to build.
func (r *run) due() bool {
	return r.full || r.all || r.reopen || r.again || len(r.sources) > 0 || len(r.outputs) > 0
}

// builds tells whether the session builds next. What could not be built is not tried again before something changes.
func (r *run) builds() bool { return r.due() && (r.broken == nil || r.fresh) }

// passed tells whether a tree passes over a path or a folder on the way to it.
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

// largeBuild is from how many jobs on a build's memory is worth giving back.
const largeBuild = 5000

// idleAfter is how long nothing must have changed before what can wait is done.
const idleAfter = 2 * time.Second

// retryAfter is how long to wait before a build is tried again that the disk, not the project, stopped, or in which jobs failed in a way
// that may pass. It is twice as long each time; for jobs, mostTries are enough: a file that may not be read may be so for good.
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
			r.p.Tidy(ctx) // if it cannot, a build does it
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

// take sorts what changed by what it means. It is false if that is nothing.
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
			r.again = r.again || !r.p.Holds() // it was removed, most likely
		case filepath.Base(p) == source.IgnoreFile, slices.Contains(r.ignore, p):
			r.reopen = true // what is watched may be other folders
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

// bring brings everything up to date, if there is something to do.
func (r *run) bring(ctx context.Context) {
	if r.onlyOwn() {
		for p := range r.sources { // kiln.ids may lie in a source root
			add(&r.own, p)
		}
		r.sources, r.outputs, r.seen = nil, nil, time.Time{}
		r.wants.end()
		return
	}
	_, r.broken = r.build(ctx, r.request())
}

// request is for what the session builds by itself.
func (r *run) request() build.Request {
	return build.Request{Platforms: r.cfg.Platforms, Workers: r.cfg.Workers, OnError: r.onError, Reporter: r.reporter()}
}

// build builds, and tells of it.
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
		r.content.number = max(r.content.number, ended.Number) // nothing is content, too: what comes next is told to those who heard of that
	}
	r.mu.Unlock()
	r.wants.end()
	if ctx.Err() == nil || report != nil && !(report.Stopped && r.ends()) {
		r.tell(ended) // also of a build that somebody asked for and cancelled: what it made counts as told from now on
		if !r.ready && (report == nil || !report.Stopped) {
			r.ready = true
			close(r.first)
		}
	}
	return report, err
}

// ends tells whether the session is to end.
func (r *run) ends() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// open reads the project anew, if that is due. If it cannot be read, what kiln.toml names is watched as well: the mistake may be there.
// That is read once more then, as it may have been mended before it was watched.
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

// seeing sets how a build sees what changed.
func (r *run) seeing(req *build.Request) {
	changed := slices.AppendSeq(slices.Sorted(maps.Keys(r.sources)), maps.Keys(r.own))
	if req.Changed, req.Outputs = changed, slices.Sorted(maps.Keys(r.outputs)); req.Detect == workspace.ByStat && !r.full {
		req.Detect = workspace.ByWatch
	}
}

// attempt is one build.
func (r *run) attempt(ctx context.Context, req build.Request) (*report.Report, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.p.Lock(ctx, true, r.busy); err != nil {
		return nil, err
	}
	defer r.p.Unlock()
	if r.number > 1 && !r.p.Holds() {
		r.all = true // somebody else may have built
	}
	r.seeing(&req)
	r.fresh = false
	if req.Outcomes = report.ChangedOutcomes; r.all {
		req.Outcomes = report.AllOutcomes
	}
	r.toldAll = r.all
	req.Control, req.Done = &control.Control{}, r.wants.done
	req.Control.Prepared = r.wants.reach(req.Control)
	if r.cfg.Sooner != nil && (r.full || r.again) { // the order of few jobs is no matter
		req.Control.Sooner = r.cfg.Sooner()
	}
	if r.ready {
		req.Placed = r.placed
	}
	report, err := r.follow(func() (*report.Report, error) { return r.p.Build(ctx, req) }, req.Control)
	own := r.request()
	if err == nil { // else what was to be done again still is
		r.passing = report.Passing
		r.again = report.Stopped || len(req.Patterns) > 0 || !slices.Equal(req.Platforms, own.Platforms)
	}
	rewrote := !r.p.Holds() // the snapshot, for which all of it was taken apart
	r.large = r.large || err == nil && (!report.Short || rewrote) && report.Summary.Jobs > largeBuild
	r.p.Read() // now, and not when somebody waits; if it fails the next build says why
	r.mu.Lock()
	r.variables = r.p.Variables()
	r.mu.Unlock()
	return report, err
}

// placed tells of products that are in place.
func (r *run) placed(outcomes []report.Outcome) {
	r.mu.Lock()
	products, ok := r.content.contents(outcomes)
	r.mu.Unlock()
	if ok {
		r.tell(Placed{products})
	}
}

// follow takes in what changes while a build is under way: running jobs that read what changed run again. If much is left to do, the build
// is halted, so that the next one, which goes on where this one ends, has the changes first: at once if somebody waits for an asset that
// this one does not know.
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
			// What changed is known now, be it that the build was stopped; what came meanwhile is for the next one.
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

// A build goes on for at least leastBuild, however often something changes, so that much to do gets done at last: to begin anew takes up to
// a second at
// 100,000 assets. One that will take no longer than mostWait is not halted at all.
const (
	leastBuild = 2 * time.Second
	mostWait   = 500 * time.Millisecond
)

// foreign reports whether a batch has anything but what the build itself writes.
func (r *run) foreign(b *watch.Batch) bool {
	return b.Lost || slices.ContainsFunc(b.Paths, func(p string) bool { return !r.p.Writes(p) })
}

// busy says that another kiln has the project.
func (r *run) busy() {
	m := &diag.Message{Severity: diag.Note, Code: diag.ProjectBusy, Text: "another kiln is at work in this project; waiting for it to end"}
	r.tell(Noted{m})
}

// Turn is a time in which the session does nothing but what somebody asks of it. All that changed before is known.
type Turn struct {
	r   *run
	err error // why the project cannot be read
}

// turns gives everybody a turn who has asked for one.
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

// Project is the project as it is now. The error says what is wrong with its files.
func (t *Turn) Project() (*build.Project, error) { return t.r.p, t.err }

// Build builds what is asked for. If that is not everything, the session then builds the rest. What changed is seen as the session sees it,
// unless the request says otherwise; if it fails, assets keep their last good products if the request says so. The report's outcomes are
// the session's.
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

// Again has the session look at every file and build what is out of date when the turn ends, as if nothing had been watched.
func (t *Turn) Again() { t.r.full, t.r.all, t.r.reopen = true, true, true }

// unwatched watches what a build found, and tells whether some of that may have changed before it was watched. Who asked for the build has
// the second one, too, or the session would build the way it does by itself after the answer.
func (r *run) unwatched() bool {
	again, err := r.rewatch() // what went wrong is found once more by who ends the session for it
	r.again = r.again || again
	return again && err == nil
}

// mostAgain is how often a build that somebody waits for is made again because files changed below its jobs. Who saves and then asks is not
// to hear of that.
const mostAgain = 3

// changedMeanwhile tells whether a job failed because a file that it read changed, or changed just before, and so the same again would do.
func changedMeanwhile(r *report.Report) bool {
	return r.Passing && slices.ContainsFunc(r.Messages, func(m *diag.Message) bool { return m.Code == diag.CommandChanged || m.Code == diag.SourceChanged })
}

// Look looks at the project without building.
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

// both tells two reporters.
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

// mostPaths is how many of the paths that changed are told.
const mostPaths = 100

// names are the paths that changed, for people; a folder only if nothing else is known of what is in it.
func (r *run) names() []string {
	if r.full {
		return nil
	}
	var names []string
	set := r.sources
	if len(set) == 0 {
		set = r.outputs // otherwise these are what the build before wrote, most often
	}
	holds := map[string]bool{}
	for p := range set {
		holds[filepath.Dir(p)] = true
	}
	for p := range set {
		if holds[p] {
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

// reporter passes on what a build says while it runs.
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

// reporter is what the session's own builds report to. Nobody waits for a part of the first one.
func (r *run) reporter() build.Reporter {
	if r.ready {
		return drafting{reporter{r.Session}}
	}
	return reporter{r.Session}
}

// drafting is a reporter that wants drafts: of builds that somebody waits for.
type drafting struct{ reporter }

func (r drafting) Drafted(platform, asset, uuid string, p engine.Product) {
	r.s.tell(Drafted{Product{Platform: platform, Asset: asset, UUID: uuid, Product: p}})
}
