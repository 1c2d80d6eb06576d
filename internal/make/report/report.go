package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/references"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Summary is the last line of a build.
type Summary struct {
	Assets       int     `json:"assets"`
	Jobs         int     `json:"jobs"`
	Built        int     `json:"built"`        // jobs that ran
	Reused       int     `json:"reused"`       // jobs whose trace held
	Requests     int     `json:"requests"`     // requests that jobs made to other processors; they are not counted as jobs
	RequestsRun  int     `json:"requests_run"` // requests that ran
	Failed       int     `json:"failed"`
	Placeholders int     `json:"placeholders,omitempty"`   // jobs that failed, and for which placeholders stand
	HeldByIgnore int     `json:"held_by_ignore,omitempty"` // assets that were not built, and hold only by what rules say under ignore
	Products     int     `json:"products"`
	Bytes        int64   `json:"bytes"`
	LookedAt     int     `json:"looked_at"` // jobs and parts whose traces were compared, or that ran
	Because      string  `json:"because"`   // why all were checked; "" if not all were
	Seconds      float64 `json:"seconds"`

	Stopped      int      `json:"stopped"`                  // jobs that were interrupted, or not started after the first failure
	AssetsBuilt  int      `json:"assets_built"`             // assets with a job that ran and none that failed
	AssetsFailed int      `json:"assets_failed"`            // assets with a job that failed
	Unbuilt      int      `json:"assets_stopped,omitempty"` // assets with a stopped job, and none that ran or failed
	Warnings     int      `json:"warnings"`
	Wrote        []string `json:"wrote"`            // files besides products: parcels, kiln.ids, constants; below the project, sorted
	Commit       []string `json:"commit,omitempty"` // those outside the output folder, which belong in version control

	Remote     int     `json:"remote,omitempty"` // jobs, parts and requests that ran on other machines
	FromCache  int     `json:"from_cache"`       // jobs whose results came from other builds
	Downloaded int64   `json:"downloaded"`       // bytes, from caches
	Uploaded   int64   `json:"uploaded"`         // bytes, to caches
	Saved      float64 `json:"saved,omitempty"`  // seconds that adopted results took where they ran
}

// NoteWritten lists the files besides products that were written.
func (s *Summary) NoteWritten(files map[string]bool, output string) {
	s.Wrote = slices.Sorted(maps.Keys(files))
	for _, f := range s.Wrote {
		if !strings.HasPrefix(f, output+"/") {
			s.Commit = append(s.Commit, f)
		}
	}
}

// JobReport is the outcome of one job.
type JobReport struct {
	Asset, Platform, Processor string
	Among                      string // Processor, if the asset has several on the platform; else ""
	Part                       string // of the job; "" for the job itself
	Request                    bool   // it belongs to no asset; Asset is a display name
	State                      engine.State
	Failed                     bool
	Cache                      string         // Adopted: where its result came from; "" if that is not known
	Remote                     *engine.Remote // it ran on another machine
	Why                        *engine.Reason
	Seconds                    float64
	Place                      *Place // in the order, if that was asked for
}

// Name returns the display name of the job, without its platform.
func (j *JobReport) Name() string { return task.Name(j.Asset, j.Among, j.Part) }

// Report is the outcome of a build.
type Report struct {
	Summary  Summary
	Messages diag.List   // root causes first
	Once     diag.List   // those of them that the next build does not report again
	Jobs     []JobReport // that ran, or would; all if the request was a dry run
	Stopped  bool        // by the context or FailFast; what was finished is kept
	Passing  bool        // a job failed in a way that may pass by itself: to build again may help although nothing changes
	Short    bool        // only what a few changed files reach was checked
	Held     int         // assets that are held by ignore, those included of which something was built
	Outcomes []Outcome   // as wanted, in no order
}

// After adds the jobs of a build that came before this one for the same request, and the messages that only that one had.
func (r *Report) After(first *Report) {
	name := func(j *JobReport) string { return task.FullName(task.Name(j.Asset, j.Among, ""), j.Platform) }
	again := map[string]bool{}
	for i := range r.Jobs {
		again[name(&r.Jobs[i])] = true
	}
	for i := range first.Jobs {
		n := name(&first.Jobs[i])
		if again[n] {
			continue
		}
		again[n] = true
		r.Jobs = append(r.Jobs, first.Jobs[i])
		if first.Jobs[i].Request {
			r.Summary.RequestsRun++
			continue
		}
		if r.Summary.Reused--; first.Jobs[i].State == engine.Adopted {
			r.Summary.FromCache++
		} else {
			r.Summary.Built++
		}
	}
	for _, m := range slices.Backward(first.Once) {
		if !slices.ContainsFunc(r.Messages, func(x *diag.Message) bool { return x.ID() == m.ID() }) {
			r.Messages, r.Once = append(diag.List{m}, r.Messages...), append(diag.List{m}, r.Once...)
			if m.Code == diag.StateDamaged {
				r.Summary.Warnings++
			}
		}
	}
	r.Summary.AssetsBuilt = max(r.Summary.AssetsBuilt, r.assetsRun())
	r.Summary.Wrote = union(r.Summary.Wrote, first.Summary.Wrote)
	r.Summary.Commit = union(r.Summary.Commit, first.Summary.Commit)
	r.Summary.Remote += first.Summary.Remote
	r.Summary.Downloaded += first.Summary.Downloaded
	r.Summary.Uploaded += first.Summary.Uploaded
	r.Summary.LookedAt += first.Summary.LookedAt
	r.Summary.Seconds += first.Summary.Seconds
}

// union merges sorted lists and removes duplicates.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// assetsRun counts the assets with a job that ran and none that failed.
func (r *Report) assetsRun() int {
	ran, failed := map[string]bool{}, map[string]bool{}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; !j.Request && j.State == engine.Ran {
			ran[j.Asset] = true
			failed[j.Asset] = failed[j.Asset] || j.Failed
		}
	}
	n := 0
	for name := range ran {
		if !failed[name] {
			n++
		}
	}
	return n
}

// Source is the input of a report.
type Source struct {
	*results.Set
	Few    *plan.Few       // nil: the build checked everything that was requested
	Prev   *state.Snapshot // nil: there was no build before
	Before *plan.Before
	Tree   *outputs.Tree // nil: nothing was put in place
	Wanted []*job.Task   // what the build was asked for
	Said   diag.List     // messages that are not of jobs
	Some   bool          // the build was asked for some assets, by patterns

	Failures []references.Failure // jobs that failed although their runs succeeded
}

// CountAssets counts the requested assets.
func (s *Source) CountAssets() int {
	switch {
	case s.Few == nil:
	case s.Few.ByKeys:
		return len(s.W.Assets.Assets)
	default:
		seen := map[*asset.Asset]bool{}
		for _, t := range s.Few.Fresh {
			seen[t.Asset] = true
		}
		return s.Prev.Totals.Assets + len(seen) - len(s.Few.Gone)
	}
	seen := map[*asset.Asset]bool{}
	for _, t := range s.Wanted {
		seen[t.Asset] = true
	}
	return len(seen)
}

// JobOf returns the report of one job.
func JobOf(r *engine.Result) JobReport {
	t := r.Task.World.(*job.Task)
	j := JobReport{
		Asset: task.AssetText(t.Asset.ID), Request: t.Request(), Platform: t.Platform, Among: t.Among(), Part: t.Part,
		Processor: t.Proc.Info.Name, State: r.State, Why: r.Why, Remote: r.Remote,
	}
	if r.Trace != nil {
		j.Failed, j.Seconds, j.Cache = r.Trace.Outcome != engine.Succeeded, r.Trace.Seconds, r.Trace.Origin
	}
	return j
}

// Count sums up the requested tasks. In a build of few tasks this is everything: the totals before, and the
// outcomes of the concerned assets. A job counts as built if a part of it ran.
func (s *Source) Count(r *Report) {
	sum := &r.Summary
	sum.Assets = s.CountAssets()
	if s.Few != nil {
		t := s.Few.Totals(s.Prev.Totals)
		sum.Jobs, sum.Requests, sum.Failed, sum.Products, sum.Bytes = t.Jobs, t.Requests, t.Failed, t.Products, t.Bytes
	}
	failed := s.failedAssets()
	for _, t := range s.Live {
		if main := s.W.Task(t.Asset, t.On, ""); s.Few != nil || main.Result != nil {
			s.countTask(sum, t, failed)
		}
	}
	s.countFailures(sum, failed)
	ran := s.JobsRun()
	sum.RequestsRun = s.CountRequests(ran)
	built := map[*asset.Asset]bool{}
	for id := range ran {
		built[id.Asset()] = !failed[id.Asset()]
	}
	for a := range built {
		if built[a] {
			sum.AssetsBuilt++
		}
	}
	sum.AssetsFailed = len(failed)
	s.countHeld(r, built, failed)
	adopted := s.adopted(ran)
	stopped := map[*asset.Asset]bool{}
	for _, res := range s.Results {
		r.Stopped = r.Stopped || res.State == engine.Stopped
		if res.State == engine.Ran && res.Remote != nil {
			sum.Remote++
		}
		if t := job.TaskOf(res); t.Part == "" && !t.Request() && !ran[t.ID()] && !adopted[t.ID()] {
			switch res.State {
			case engine.Held, engine.Shared:
				sum.Reused++
			case engine.Stopped:
				sum.Stopped++
				stopped[t.Asset] = true
			}
		}
	}
	for a := range stopped {
		if !built[a] && !failed[a] {
			sum.Unbuilt++
		}
	}
	sum.Built, sum.FromCache = len(ran), len(adopted)
	if s.Few != nil {
		sum.Reused = sum.Jobs - sum.Built - sum.FromCache
	}
}

// countFailures adds the jobs that failed although their runs succeeded, in place of those of the build before, which
// are counted.
func (s *Source) countFailures(sum *Summary, failed map[*asset.Asset]bool) {
	if s.Few != nil {
		sum.Failed -= len(notices.Failures(s.Prev))
	}
	for i := range s.Failures {
		a := s.Asset(task.ParseSubject(s.Failures[i].Job).Asset)
		if t := s.W.TaskFor(s.Failures[i].Job); s.Few == nil && (t == nil || !t.Decided()) {
			continue // it is not part of this build
		}
		if sum.Failed++; a != nil {
			failed[a] = true
		}
	}
}

// countHeld counts the assets that are held by ignore, among those that the build was asked for.
func (s *Source) countHeld(r *Report, built, failed map[*asset.Asset]bool) {
	held := map[string]bool{}
	for subject := range s.HeldByIgnore() {
		if t := s.W.TaskFor(subject); s.Few != nil || t != nil && t.Result != nil {
			held[task.ParseSubject(subject).Asset] = true
		}
	}
	if len(held) == 0 {
		return
	}
	for a := range failed {
		delete(held, a.ID)
	}
	r.Held = len(held)
	for a, whole := range built {
		if whole {
			delete(held, a.ID)
		}
	}
	r.Summary.HeldByIgnore = len(held)
}

// failedAssets are the assets that failed among those at which a build of few tasks does not look.
func (s *Source) failedAssets() map[*asset.Asset]bool {
	failed := map[*asset.Asset]bool{}
	if s.Few == nil {
		return failed
	}
	for _, n := range s.Scope.Tasks.Speaking() {
		at := s.Scope.Tasks.At(n)
		if t := s.W.TaskFor(at.Subject); t != nil && t.Key == at.Key && !t.Request() && !s.Scope.Concerned[t.Asset] {
			if tr := s.TraceOf(t); tr != nil && tr.Outcome != engine.Succeeded {
				failed[t.Asset] = true
			}
		}
	}
	return failed
}

// adopted returns the jobs with results from a cache, of which nothing ran.
func (s *Source) adopted(ran map[job.ID]bool) map[job.ID]bool {
	adopted := map[job.ID]bool{}
	for _, res := range s.Results {
		if t := job.TaskOf(res); res.State == engine.Adopted && !t.Request() && !ran[t.ID()] {
			adopted[t.ID()] = true
		}
	}
	return adopted
}

// countTask adds a task. Products that are not in the output tree do not count.
func (s *Source) countTask(sum *Summary, t *job.Task, failed map[*asset.Asset]bool) {
	tr := s.TraceOf(t)
	if s.Few == nil && !t.Decided() {
		tr = nil
	}
	fails := tr != nil && tr.Outcome != engine.Succeeded
	if t.Request() {
		if t.Part == "" {
			sum.Requests++
		}
		return
	}
	if t.Part == "" {
		sum.Jobs++
		if fails {
			sum.Failed++
			failed[t.Asset] = true
		}
	}
	if tr != nil && !fails && s.Tree.Fails(t) {
		return
	}
	products, bytes := results.CountProducts(s.ProductsFor(t, tr))
	sum.Products += products
	sum.Bytes += bytes
}

// JobNames returns "asset [platform]" for all results, for tests and dry runs.
func (r *Report) JobNames() []string {
	names := make([]string, len(r.Jobs))
	for i, j := range r.Jobs {
		names[i] = task.FullName(j.Name(), j.Platform)
	}
	slices.Sort(names)
	return names
}

// diagnostics is a trace with messages, and its task.
type diagnostics struct {
	t  *job.Task
	tr *engine.Trace
}

// diagnostics returns the results that have messages.
func (s *Source) diagnostics(results []*engine.Result) []diagnostics {
	var said []diagnostics
	for _, res := range results {
		if res.Trace != nil && len(res.Trace.Messages) > 0 {
			said = append(said, diagnostics{job.TaskOf(res), res.Trace})
		}
	}
	return said
}

// Collect returns the messages of all tasks, including those that a build of few tasks did not check.
func (s *Source) Collect() diag.List {
	said := s.diagnostics(s.Results)
	if s.Few == nil {
		return s.sortMessages(said)
	}
	met := map[engine.Key]bool{}
	for _, x := range said {
		met[x.t.Key] = true
	}
	for _, n := range s.Scope.Tasks.Speaking() {
		at := s.Scope.Tasks.At(n)
		if t := s.W.TaskFor(at.Subject); t != nil && t.Key == at.Key && !met[t.Key] && (!s.Scope.Concerned[t.Asset] || s.IsLive(t)) {
			if tr := s.TraceOf(t); tr != nil {
				said = append(said, diagnostics{t, tr})
			}
		}
	}
	return s.sortMessages(said)
}

// sortMessages puts problems of the project and its files first, then failures, root causes first, then warnings; those
// of jobs are in the order of assets and platforms. A message that is the same on several platforms appears once.
func (s *Source) sortMessages(said []diagnostics) diag.List {
	var own, needs, warnings diag.List
	seen := map[string]bool{}
	sort := func(l diag.List) {
		for _, m := range l {
			if id := m.ID(); seen[id] {
				continue
			} else {
				seen[id] = true
			}
			switch {
			case m.Severity != diag.Error:
				warnings = append(warnings, m)
			case m.Code == diag.NeedsFailed, m.Code == diag.ParcelLacks:
				needs = append(needs, m)
			default:
				own = append(own, m)
			}
		}
	}
	sort(s.Said)
	slices.SortStableFunc(said, func(a, b diagnostics) int { return s.Order(a.t, b.t) })
	askers := s.Askers()
	better := map[string]bool{} // files for which a job reports an error; a team's processor may not know that the cause is an empty file
	for _, x := range said {
		before := len(own)
		sort(s.messagesOf(x, askers))
		for _, m := range own[before:] {
			better[m.File] = better[m.File] || s.P.IsBuiltin(x.t.Proc.Info.Name)
		}
	}
	warnings = slices.DeleteFunc(warnings, func(m *diag.Message) bool { return m.Code == diag.EmptyFile && better[m.File] })
	if what := s.W.Changed; what != "" {
		warnings = append(warnings, diag.Warningf(diag.SourceChanged, diag.Pos{}, "%s changed while it was used", what).WithHint("build again"))
	}
	return append(append(own, needs...), warnings...)
}

// OnlyAsked removes from a report of some assets what is said about empty files that have nothing to do with them: those that no job
// of the build is for, or has read.
func (s *Source) OnlyAsked(r *Report) {
	isEmpty := func(m *diag.Message) bool { return m.Code == diag.EmptyFile }
	if !s.Some || !slices.ContainsFunc(r.Messages, isEmpty) {
		return
	}
	concerned := map[string]bool{}
	for _, res := range s.Results {
		concerned[s.W.DisplayAsset(job.TaskOf(res).Asset)] = true
		if res.Trace == nil {
			continue
		}
		for i := range res.Trace.Observations {
			if o := &res.Trace.Observations[i]; o.Kind == job.SawFile {
				concerned[s.W.Display(o.Subject)] = true
			}
		}
	}
	before := len(r.Messages)
	r.Messages = slices.DeleteFunc(slices.Clone(r.Messages), func(m *diag.Message) bool { return isEmpty(m) && !concerned[m.File] })
	r.Summary.Warnings -= before - len(r.Messages)
}

// messagesOf returns the messages of a trace. Those of a request on bytes name the requester, because the
// name of the bytes means nothing to users.
func (s *Source) messagesOf(x diagnostics, askers func(*job.Task) []string) diag.List {
	l := s.W.MessagesFor(x.t, x.tr)
	if !x.t.Request() || task.SourceBlob(x.t.Asset.ID).IsZero() {
		return l
	}
	names := askers(s.W.Task(x.t.Asset, x.t.On, ""))
	if len(names) == 0 {
		return l
	}
	others := ""
	switch n := len(names) - 1; n {
	case 0:
	case 1:
		others = " and 1 other"
	default:
		others = fmt.Sprintf(" and %d others", n)
	}
	for _, m := range l {
		m.WithNote("asked for by %s%s", names[0], others)
	}
	return l
}

// Failed reports whether anything went wrong: a job, or a source file that could not be read.
func (r *Report) Failed() bool { return r.Summary.Failed > 0 || r.Messages.Err() != nil }

// Unchanged is the report of a build in which nothing changed, with additional messages.
func Unchanged(prev *state.Snapshot, more diag.List, took time.Duration) *Report {
	t, failed, held := prev.Totals, 0, 0
	if n, ok := notices.Decode(prev.Notices); ok {
		if held = n.Held; t.Failed > 0 {
			failed = max(1, n.Failed)
		}
	}
	messages := append(more, diag.Decode[*diag.Message](prev.Messages)...)
	return &Report{Messages: messages, Held: held, Summary: Summary{
		Assets: t.Assets, Jobs: t.Jobs, Reused: t.Jobs, Requests: t.Requests, Failed: t.Failed, Products: t.Products, Bytes: t.Bytes,
		AssetsFailed: failed, HeldByIgnore: held, Warnings: messages.Total(diag.Warning), Seconds: took.Seconds(),
	}}
}
