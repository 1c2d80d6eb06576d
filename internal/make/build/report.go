package build

import (
	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
)

// What a build is asked for, and what it tells.

// Reporter is told what happens, from several goroutines.
type Reporter = job.Reporter

// Request says what to build and how.
type Request struct {
	Patterns  []string // assets; all if empty
	Platforms []string // all if empty
	Workers   int      // 0: as the project says
	Force     bool     // run jobs although nothing changed
	FailFast  bool
	DryRun    bool // tell what would be done
	Detect    Detect
	Changed   []string        // with ByList: files and folders, as source.ParseList gives them; else absolute paths, whose jobs go first, and with ByWatch all there are
	Outputs   []string        // with ByWatch: files and folders of the output folder that may not be as they were, absolute
	From      string          // with ByList: what paths may be relative to besides the project's folder and those that hold it; absolute or ""
	Locked    bool            // kiln.ids may not change
	Compact   bool            // leave no waste in parcels
	OnError   OnError         // what becomes of assets that fail
	Shuffle   uint64          // not 0: take the jobs in another order, by this seed
	Outcomes  Outcomes        // which to tell
	Control   *Control        // for who wants to reach in while it builds; may be nil
	Tell      Tell            // may be nil
	Done      func(Outcome)   // told of each job that ran, from several goroutines; may be nil
	Placed    func([]Outcome) // told of a build of few tasks once all outputs are in place, before that is written down: for those who cannot wait; may be nil
	Reporter  Reporter
}

// Tell is told of each job that ran, with what it has to say, as soon as it ends; and, without a job, of messages that belong to none, once
// they are known. It is called from several goroutines. The report of the build has all of them again, in order, and those of jobs that did
// not run.
type Tell func(*JobReport, diag.List)

// Summary is the last line of a build.
type Summary struct {
	Assets       int     `json:"assets"`
	Jobs         int     `json:"jobs"`
	Built        int     `json:"built"`        // jobs that ran
	Reused       int     `json:"reused"`       // jobs whose trace held
	Requests     int     `json:"requests"`     // what jobs asked other processors for; jobs are none
	RequestsRun  int     `json:"requests_run"` // those of them that ran
	Failed       int     `json:"failed"`
	Placeholders int     `json:"placeholders,omitempty"` // jobs that failed, and for which placeholders stand
	Products     int     `json:"products"`
	Bytes        int64   `json:"bytes"`
	LookedAt     int     `json:"looked_at"` // jobs and parts whose traces were compared, or that ran
	Because      string  `json:"because"`   // why these were all there are; "" if they were not
	Seconds      float64 `json:"seconds"`
}

// JobReport tells what became of one job.
type JobReport struct {
	Asset, Platform, Processor string
	Among                      string // Processor, where the asset has several on the platform; else ""
	Part                       string // of the job; "" for the job itself
	Request                    bool   // it is no asset's; Asset is a name for people
	State                      engine.State
	Failed                     bool
	Why                        *engine.Reason
	Seconds                    float64
}

// Name is the job for people, without its platform.
func (j *JobReport) Name() string { return task.Name(j.Asset, j.Among, j.Part) }

// Report is what became of a build.
type Report struct {
	Summary  Summary
	Messages diag.List   // root causes first
	Jobs     []JobReport // that ran, or would; all if the request was a dry run
	Stopped  bool        // by the context or FailFast; what was finished is kept
	Passing  bool        // a job failed in a way that may pass by itself: to build again may help although nothing changes
	Short    bool        // only what a few changed files reach was looked at
	Outcomes []Outcome   // as wanted, in no order
}

// After adds the jobs of a build that had to be followed by this one.
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
		r.Summary.Built++
		r.Summary.Reused--
	}
	r.Summary.LookedAt += first.Summary.LookedAt
	r.Summary.Seconds += first.Summary.Seconds
}

// countAssets counts the assets that the build was asked for.
func (s *session) countAssets() int {
	switch {
	case s.few == nil:
	case s.few.byKeys:
		return len(s.w.Assets.Assets)
	default:
		seen := map[*asset.Asset]bool{}
		for _, t := range s.few.fresh {
			seen[t.Asset] = true
		}
		return s.prev.Totals.Assets + len(seen) - len(s.few.gone)
	}
	seen := map[*asset.Asset]bool{}
	for _, t := range s.wanted {
		seen[t.Asset] = true
	}
	return len(seen)
}

func (s *session) jobReport(r *engine.Result) JobReport {
	t := r.Task.World.(*job.Task)
	j := JobReport{
		Asset: task.AssetText(t.Asset.ID), Request: t.Request(), Platform: t.Platform, Among: t.Among(), Part: t.Part,
		Processor: t.Proc.Info.Name, State: r.State, Why: r.Why,
	}
	if r.Trace != nil {
		j.Failed, j.Seconds = r.Trace.Outcome != engine.Succeeded, r.Trace.Seconds
	}
	return j
}

// count sums up what the build was asked for: of one of few tasks everything, as it was and with what became of the assets that are concerned. A
// job of which a part ran was built.
func (s *session) count(r *Report) {
	sum := &r.Summary
	sum.Assets = s.countAssets()
	if s.few != nil {
		t := s.few.totals(s.prev.Totals)
		sum.Jobs, sum.Requests, sum.Failed, sum.Products, sum.Bytes = t.Jobs, t.Requests, t.Failed, t.Products, t.Bytes
	}
	for _, t := range s.live {
		if main := s.w.Task(t.Asset, t.On, ""); s.few != nil || main.Result != nil {
			s.countTask(sum, t)
		}
	}
	ran := s.jobsRun()
	sum.RequestsRun = s.countRequests(ran)
	for _, res := range s.results {
		r.Stopped = r.Stopped || res.State == engine.Stopped
		if t := job.TaskOf(res); t.Part == "" && !t.Request() && res.State == engine.Held && !ran[t.ID()] {
			sum.Reused++
		}
	}
	if sum.Built = len(ran); s.few != nil {
		sum.Reused = sum.Jobs - sum.Built
	}
}

// countTask adds a task. One whose products could not be put in place has failed.
func (s *session) countTask(sum *Summary, t *job.Task) {
	tr := s.traceOf(t)
	if s.few == nil && !t.Decided() {
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
		}
	}
	if tr != nil && !fails && (s.clashed[t] || s.unplaced[t]) {
		sum.Failed++
		return
	}
	products, bytes := countProducts(s.productsFor(t, tr))
	sum.Products += products
	sum.Bytes += bytes
}

// jobsRun are the jobs that ran, or would, as a whole or in part.
func (s *session) jobsRun() map[job.ID]bool {
	ran := map[job.ID]bool{}
	for _, res := range s.results {
		if res.State == engine.Ran || res.State == engine.WouldRun {
			t := job.TaskOf(res)
			ran[t.ID()] = true
		}
	}
	return ran
}

// countProducts counts products, those that are not hidden.
func countProducts(ps []engine.Product) (products int, bytes int64) {
	for i := range ps {
		if ps[i].File != "" {
			products++
			bytes += ps[i].Size
		}
	}
	return products, bytes
}
