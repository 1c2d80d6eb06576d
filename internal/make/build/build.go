// Package build runs a build: it makes tasks of assets, has the engine bring them up to date, and updates
// output tree, state and content database to match the results. It only connects the packages that know how
// each of these is done.
package build

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/control"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/notices"
	"github.com/kiln-pipeline/kiln/internal/make/outputs"
	"github.com/kiln-pipeline/kiln/internal/make/parcels"
	"github.com/kiln-pipeline/kiln/internal/make/plan"
	"github.com/kiln-pipeline/kiln/internal/make/previous"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// session is one build.
type session struct {
	*results.Set
	*previous.Build
	tree  *outputs.Tree // nil: not read yet
	req   Request
	start time.Time
	few   *plan.Few // nil: the build checks all tasks, or those that were requested

	wanted     []*job.Task                            // of this build
	holds      func(*engine.Task, *engine.Trace) bool // what is known to hold; nil: nothing is
	messages   diag.List                              // of the project, and not notices
	notices    notices.Notices                        // what stands from build to build of what is said
	spoilt     map[digest.Hash]bool                   // contents of which a build of few tasks found the blobs damaged
	notes      diag.List                              // of this build alone: the next one does not report them again
	ran        map[engine.Key]*engine.Result          // by a build of few tasks, which then could not go on
	number     uint64
	stopped    bool
	looked     int    // how many tasks were compared or run
	because    string // why these are all
	leftBeside bool   // beside an output something may lie that was to become it
	resumed    bool   // prev, as it is in memory, is what the disk says at the end
	shipment   parcels.Shipment
	wrote      map[string]bool  // files besides products that were written, relative to the project folder
	sharing    sharing.Account  // with other builds
	dispatcher *farm.Dispatcher // other machines that run jobs; nil: there are none
}

// Build runs a build. The caller holds the lock. Errors of assets are in the report; the error is
// what stopped the build as a whole, and a diag.List if the cause is in the project.
func (p *Project) Build(ctx context.Context, req Request) (*report.Report, error) {
	req.lost = map[digest.Hash]bool{}
	r, due, err := p.build(ctx, req)
	for due != 0 && err == nil && ctx.Err() == nil {
		first := r
		req.done |= due & -due
		req.Force = false // what was forced has run
		if r, due, err = p.build(ctx, req); err == nil {
			if r.After(first); req.Outcomes == report.ChangedOutcomes {
				r.Outcomes = append(first.Outcomes, r.Outcomes...)
			}
		}
	}
	return r, p.OwnFiles(err)
}

// again is why a build is followed by another one for the same request.
type again uint8

const (
	lostContent again = 1 << iota // it could not read what a job had made: that is known now, and made before the jobs that need it
	otherHeld                     // jobs saw that parcels hold other assets than they do at its end: with these come products without ids
	otherIDs                      // jobs saw other resource ids than kiln.ids has at its end
)

const otherIDsBecause = "jobs asked for resource ids that have just been assigned"

// build runs one build. due are the reasons for another one.
func (p *Project) build(ctx context.Context, req Request) (r *report.Report, due again, err error) {
	s := p.newSession(req)
	r, err = s.run(ctx)
	if gone := p.StateGone(); gone != nil { // the reason why jobs failed
		return nil, 0, gone
	}
	if r != nil {
		r.Messages = append(s.notes, r.Messages...)
		r.Once = slices.DeleteFunc(slices.Clone(r.Messages), func(m *diag.Message) bool { return m.Code != diag.StateDamaged && !slices.Contains(s.notes, m) })
	}
	if p.Resident != nil && err == nil && r != nil && s.resumed {
		p.Resident.Put(p.Workspace, s.Prev)
		if s.Scanned != nil {
			p.Resident.Spare = s.Scanned.Files // prev has its content now
		}
	}
	due = s.due()
	if s.W != nil {
		maps.Copy(req.lost, s.W.Lost)
	}
	return r, due, err
}

// due are the reasons for another build: once for each reason, and for each content that is lost, because what is made again may need
// others.
func (s *session) due() (why again) {
	if s.shipment.Reheld {
		why |= otherHeld
	}
	if s.shipment.Renumbered {
		why |= otherIDs
	}
	why &^= s.req.done
	if s.loses() {
		why |= lostContent
	}
	return why
}

// loses reports whether contents are lost that were there in the builds before for the same request.
func (s *session) loses() bool {
	if s.W == nil || !s.W.AnyLost() {
		return false
	}
	for h := range s.W.Lost {
		if !s.req.lost[h] {
			return true
		}
	}
	return false
}

func (s *session) run(ctx context.Context) (*report.Report, error) {
	if !s.req.DryRun {
		if err := s.P.MakeStateDir(); err != nil {
			return nil, err
		}
	}
	notes, err := s.P.KnowTeam(s.req.DryRun)
	if err != nil {
		return nil, err
	}
	s.notes = append(s.notes, notes...)
	if s.req.DryRun {
		return s.dryRun(ctx)
	}
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	r, err := s.bring(ctx)
	s.endSharing()
	return r, errors.Join(err, s.Set.Close())
}

// bring brings everything up to date, in the cheapest way that applies.
func (s *session) bring(ctx context.Context) (*report.Report, error) {
	if err := s.readSnapshot(); err != nil {
		return nil, err
	}
	table, contents, stats, err := s.Scan(&s.notes)
	if err != nil {
		return nil, err
	}
	if r := s.nothingToDo(table, contents, stats); r != nil {
		return r, nil
	}
	if s.req.Detect == workspace.ByList { // the list is lost even if this build fails before it changes anything
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	defer s.closeTraces() // if they are still open
	if s.planFew(table) {
		if r, err := s.make(ctx); r != nil || err != nil {
			return r, err
		}
		s.undo()
	}
	if err := s.planAll(table); err != nil {
		return nil, err
	}
	return s.make(ctx)
}

// readSnapshot reads what the last build left.
func (s *session) readSnapshot() error {
	why, err := s.Read()
	s.warnState(why)
	return err
}

// warnState adds a warning that state is damaged, if it is.
func (s *session) warnState(why string) {
	if why == "" {
		return
	}
	s.messages = append(s.messages, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln"}, "%s", why))
}

// nothingToDo handles a build of everything in which nothing differs from the snapshot; else it returns nil. It
// evaluates no rule and reads no trace.
func (s *session) nothingToDo(t *source.Table, contents, stats bool) *report.Report {
	prev := s.Prev
	if contents || !s.resumable() || s.req.Outcomes == report.AllOutcomes {
		return nil
	}
	if !s.OutputsSame() || !s.P.WorldSame(s.Prev) {
		return nil
	}
	if stats && !s.req.DryRun {
		changes, ok := plan.FolderChanges(prev.Sources, t)
		if !ok || s.append(&state.Delta{Head: prev.Head, Folders: changes}) != nil {
			return nil // a full build writes everything, or reports what is wrong
		}
	}
	s.resumed = s.resumed || !stats
	return report.Unchanged(prev, s.messages, time.Since(s.start))
}

// resumable reports whether the last build was a finished build of everything, and this one is again, with
// the same rules and processors.
func (s *session) resumable() bool {
	prev := s.Prev
	return !s.Killed && !s.BlobsGone && prev != nil && prev.Whole && prev.Mirrored == prev.Build &&
		!s.req.Force && !s.req.Strict && !s.req.Compact && s.whole() && s.SameRules()
}

// planAll makes the world for a build of all tasks, or of those that were requested.
func (s *session) planAll(t *source.Table) error {
	s.warnState(s.ReadAll())
	if err := s.openTraces(false); err != nil {
		return err
	}
	blobs, err := cas.Open(s.P.CasDir())
	if err != nil {
		return err
	}
	if err := s.makeWorld(t, blobs); err != nil {
		return err
	}
	return s.choose()
}

// make runs the planned jobs and then brings up to date, in this order: outputs, what is made from products (parcels,
// ids, constants), and the recorded state. It returns nil if few tasks turn out not to be enough.
func (s *session) make(ctx context.Context) (*report.Report, error) {
	if err := s.P.ClaimOutput(s.outputs().Any); err != nil { // only now that the rules are known to be right
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	s.share(ctx)
	if s.few == nil {
		outputs.VerifyBlobs(ctx, s.outputs(), s.Pres)
		s.tell(s.said())
	}
	if err := s.runWithParcels(ctx); err != nil {
		if s.few != nil { // a full build would stop too, and keeps what is finished
			s.no("it was stopped")
			return nil, nil
		}
		if ctx.Err() == nil {
			return nil, err
		}
	}
	s.stopped = slices.ContainsFunc(s.Results, func(r *engine.Result) bool { return r.Trace == nil })
	if !s.enough() {
		return nil, nil
	}
	s.noticeLearnt()
	s.findLive()
	s.Yield()
	s.standIn(ctx)
	if !s.bringOutputs() || !s.refer() || !s.ship(ctx) || s.few != nil && s.damaged() {
		return nil, nil
	}
	outcomes := s.source().Outcomes(s.req.Outcomes)
	if s.req.Placed != nil && s.few != nil {
		s.req.Placed(outcomes)
	}
	if s.Prev == nil && s.complete() && s.P.Config.Output == "" {
		s.notes = append(s.notes, s.strangers().OfOld(s.P)...)
	}
	if s.P.Config.Output == "" {
		s.notes = append(s.notes, s.source().Once(s.complete())...)
	}
	if s.few != nil {
		s.because = ""
	}
	r := s.report()
	r.Outcomes = outcomes
	if s.due() == 0 { // else, another build follows, in which what is lost is made, and is no failure
		s.tell(slices.Concat(s.notes, s.said()))
	}
	if ok, err := s.save(r); !ok || err != nil {
		return nil, err
	}
	s.source().OnlyAsked(r) // only now, because the content database has them all
	err := s.closeTraces()
	r.Summary.Seconds = time.Since(s.start).Seconds() // after 100,000 files were renamed, a quarter of the time is spent on recording
	return r, err
}

// closeTraces closes the traces, if they are open.
func (s *session) closeTraces() error {
	t := s.Traces
	if s.Traces = nil; t == nil {
		return nil
	}
	return t.Close()
}

// begin writes a mark that a build is under way. The mark stays if the build does not finish.
func (s *session) begin() error {
	if s.W != nil {
		s.W.Mark = s.P.UnderWayPath()
	}
	return os.WriteFile(s.P.UnderWayPath(), nil, 0o666)
}

func (s *session) openTraces(readOnly bool) error {
	tr, why, err := state.OpenTraces(s.P.TracesPath(), readOnly)
	if why != "" {
		s.warnState(why)
	}
	s.Traces = tr
	if s.Prev != nil {
		s.number = s.Prev.Build
	}
	if err == nil {
		s.number = max(s.number, tr.LastBuild()) + 1
	}
	return err
}

// makeWorld evaluates the rules over the files, and makes the tasks.
func (s *session) makeWorld(t *source.Table, blobs *cas.Store) error {
	set, paths, l := s.P.Evaluate(t)
	if err := l.Err(); err != nil {
		return append(s.P.Warnings, l...)
	}
	s.notices = notices.Of(s.P, t, set, l, notices.Notices{})
	blobs.Workers = s.P.Workers(s.req.Workers)
	w := s.P.World(t, blobs)
	w.AddAll(set)
	w.Reporter = s.req.Reporter
	w.Paths = func() []string { return paths }
	s.W = w
	if s.Prev != nil {
		s.OutputsSame()
		w.KnowOutputs(s.Before.Outputs, s.Pres, s.spoilt)
		w.KnowTools(s.Prev.Tools)
	}
	return nil
}

// choose selects the requested tasks.
func (s *session) choose() error {
	if err := s.P.CheckPlatforms(s.req.Platforms); err != nil {
		return err
	}
	match, err := s.P.Matcher(s.W.Assets, s.req.Patterns)
	if err != nil {
		return err
	}
	s.wanted = append(s.wanted, s.W.JobsOf(match, s.req.Platforms)...)
	if seed := s.req.Shuffle; seed != 0 {
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(s.wanted), func(i, j int) { s.wanted[i], s.wanted[j] = s.wanted[j], s.wanted[i] })
	}
	return nil
}

func (s *session) runEngine(ctx context.Context) error {
	if !s.req.DryRun {
		defer os.RemoveAll(s.W.Scratch)
	}
	if s.req.Keep {
		s.W.Kept = s.P.KeptDir()
	}
	tasks := make([]*engine.Task, len(s.wanted))
	for i, t := range s.wanted {
		tasks[i] = &t.Task
	}
	opts := engine.Options{
		Workers: s.P.Workers(s.req.Workers), Extra: s.P.Extra(s.req.Workers), Memory: s.P.MemoryLimit(), FailFast: s.req.FailFast, DryRun: s.req.DryRun,
		Build: s.number, First: s.first(), Holds: s.holds, Unsure: s.Unsure, NoRuns: s.req.Pull, Rekeyed: s.Rekeyed,
	}
	if s.req.Force {
		opts.Force = job.WithParts(s.wanted)
	}
	if !s.req.Strict {
		opts.Harmless = job.Harmless
	}
	if !s.req.DryRun {
		opts.Shared, opts.Away = s.sharing.Elsewhere(), s.dispatcher.Engine()
	}
	if opts.Control = s.req.Control.Reach(s.Set); opts.Control != nil {
		opts.Hurry = 1
	}
	defer s.req.Control.Reach(nil)
	if s.req.Done != nil || s.req.Tell != nil {
		s.W.Done = s.ended
	}
	s.LookAhead(s.wanted, s.P.Workers(s.req.Workers))
	var err error
	s.Results, err = engine.Build(ctx, s.W, s.W.Keep(s.Traces), opts, tasks)
	s.notes = append(s.notes, s.sharing.Settle()...)
	s.looked = max(s.looked, len(s.Results))
	for i, r := range s.Results {
		job.TaskOf(r).Result = r
		if ran := s.ran[r.Task.Key]; ran != nil && (r.State == engine.Stopped || r.State == engine.Held && r.Trace.ID == ran.Trace.ID) {
			ran.Task = r.Task // instead of the task of the world in which it ran
			s.Results[i], job.TaskOf(r).Result = ran, ran
		}
	}
	return err
}

// ended reports a job that has just finished, if its result is final. The others are in the report.
func (s *session) ended(r *engine.Result) {
	final := s.W.Final(r)
	if final && s.req.Done != nil {
		s.req.Control.Ended(s.Set, r, s.req.Done)
	}
	if final && s.req.Tell != nil {
		j := report.JobOf(r)
		s.req.Tell(&j, s.W.MessagesFor(job.TaskOf(r), r.Trace))
	}
}

// tell reports messages that belong to no job. Empty files are reported at the end, because a job may say
// more about them.
func (s *session) tell(l diag.List) {
	if s.req.Tell != nil {
		s.req.Tell(nil, slices.DeleteFunc(slices.Clone(l), func(m *diag.Message) bool { return m.Code == diag.EmptyFile }))
	}
}

// whole reports whether the build was asked for everything.
func (s *session) whole() bool { return len(s.req.Patterns) == 0 && len(s.req.Platforms) == 0 }

// dryRun reports what a build would do. It takes no lock and writes nothing.
func (s *session) dryRun(ctx context.Context) (*report.Report, error) {
	t, contents, stats, err := s.peek()
	if err != nil {
		return nil, err
	}
	if s.Trusting() {
		if r := s.nothingToDo(t, contents, stats); r != nil {
			return r, nil
		}
	}
	if err := s.lookAt(ctx, t); err != nil {
		return nil, err
	}
	r := &report.Report{Messages: s.said()}
	if s.req.Order {
		r.Jobs = s.source().Ordered()
	} else {
		for _, res := range s.Results {
			r.Jobs = append(r.Jobs, report.JobOf(res))
		}
	}
	s.source().Count(r)
	r.Summary.Assets = s.source().CountAssets()
	if r.Summary.LookedAt = s.looked; s.whole() {
		r.Summary.Because = "it was asked for"
	}
	r.Summary.Warnings = r.Messages.Total(diag.Warning)
	s.source().OnlyAsked(r)
	r.Summary.Seconds = time.Since(s.start).Seconds()
	return r, nil
}

// peek reads what the last build left, and compares source files with it.
func (s *session) peek() (t *source.Table, contents, stats bool, err error) {
	if s.Prev = s.P.Peek(); s.Prev == nil {
		if err := s.readSnapshot(); err != nil {
			return nil, false, false, err
		}
	}
	return s.Scan(&s.notes)
}

// look runs the engine without running any job.
func (s *session) look(ctx context.Context) error {
	t, _, _, err := s.peek()
	if err != nil {
		return err
	}
	return s.lookAt(ctx, t)
}

func (s *session) lookAt(ctx context.Context, t *source.Table) error {
	s.warnState(s.ReadAll())
	if err := s.openTraces(true); err != nil {
		return err
	}
	if err := s.makeWorld(t, cas.OpenReadOnly(s.P.CasDir())); err != nil {
		return err
	}
	s.P.Promising(s.W.Blobs)
	if err := s.choose(); err != nil {
		return err
	}
	s.req.DryRun = true
	if err := s.runWithParcels(ctx); err != nil {
		return err
	}
	return parcels.Foresee(s.Set, func() error { return s.runEngine(ctx) })
}

// first returns which tasks run before others: those that observed what changed.
func (s *session) first() func(*engine.Task, *engine.Reason) bool {
	if len(s.req.Changed) == 0 {
		return nil
	}
	changed := control.SourcePaths(s.W.Table, s.req.Changed)
	return func(t *engine.Task, why *engine.Reason) bool {
		return why.Cause == engine.InputDiffers && changed[why.Observation.Subject] || changed[t.World.(*job.Task).Asset.Path]
	}
}
