package build

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// Failed tells whether anything went wrong: a job, or a source file that could not be taken in.
func (r *Report) Failed() bool { return r.Summary.Failed > 0 || r.Messages.Err() != nil }

// session is one build.
type session struct {
	p      *Project
	req    Request
	start  time.Time
	prev   *state.Snapshot // nil: none
	before before          // what is taken out of it
	few    *few            // nil: the build looks at all tasks, or at those that are asked for
	traces *state.Traces
	w      *job.World
	pres   map[string]source.Presence // outputs of prev that are not as they were; nil as long as nobody has looked

	wanted       []*job.Task                            // of this build
	holds        func(*engine.Task, *engine.Trace) bool // what is known to hold; nil: nothing is
	messages     diag.List                              // of the project, and not notices
	notices      notices                                // what stands from build to build of what is said
	spoilt       map[digest.Hash]bool                   // contents of which a build of few tasks found the blobs damaged
	notes        diag.List                              // of this build alone: the next one does not tell them again
	results      []*engine.Result
	ran          map[engine.Key]*engine.Result // by a build of few tasks, which then could not go on
	live         []*job.Task                   // that the project has: those of the world, and the parts that their traces ask for
	held         *state.Tasks                  // of the build before, if this one leaves any undecided
	lives        int                           // how often findLive looked
	parts        map[*job.Task][]*job.Task     // by the asset's own job
	yielding     map[job.ID]bool               // jobs that failed and whose last good products are in the way of others'
	good         map[*job.Task]*engine.Trace   // what stands for tasks that failed and their parts; nil: nothing, for a part that is newer than the others
	number       uint64
	stopped      bool
	looked       int                // how many tasks were compared or run
	because      string             // why these are all
	since        int64              // files written since then are not trusted for what they look like, in nanoseconds since 1970; 0: all are
	killed       bool               // the build before did not come to its end, or left something lying about
	blobsGone    bool               // somebody removed all of them: those of products that are in no file are to be made again
	upgrade      bool               // the snapshot is of another version of Kiln
	leftovers    bool               // something lies about that could not be removed
	leftBeside   bool               // beside an output something may lie that was to become it
	scanned      *source.Table      // a new one
	resumed      bool               // prev, as it is in memory, is what the disk says at the end
	hashes       []digest.Hash      // of prev.Sources as they were: a build goes on with that table if no file changed
	unplaced     map[*job.Task]bool // tasks whose outputs could not be written
	clashed      map[*job.Task]bool // tasks that want an output which another one wants too
	shipment     shipment
	placeholders map[*job.Task][]engine.Product // that stand for failed jobs
	known        map[string]bool                // files in the output tree that Kiln put there
}

// before is what there was of the assets that a build looks at.
type before struct {
	outputs []state.Output // of a build of few tasks only their names
	tasks   []state.TaskState
}

// Build builds. The caller holds the lock. Asset errors are in the report; the error is for what
// stops the build as a whole, and a diag.List where the project is to blame.
func (p *Project) Build(ctx context.Context, req Request) (*Report, error) {
	r, lost, err := p.build(ctx, req)
	if lost && err == nil && ctx.Err() == nil { // what is lost, or damaged, is known now, and made before those that need it
		first := r
		if r, _, err = p.build(ctx, req); err == nil {
			if r.After(first); req.Outcomes == ChangedOutcomes {
				r.Outcomes = append(first.Outcomes, r.Outcomes...)
			}
		}
	}
	return r, p.ownFiles(err)
}

// build is one build. Lost tells that it could not read what another job had made.
func (p *Project) build(ctx context.Context, req Request) (r *Report, lost bool, err error) {
	s := &session{p: p, req: req, start: time.Now(), unplaced: map[*job.Task]bool{}}
	r, err = s.run(ctx)
	if gone := p.stateGone(); gone != nil { // which is why jobs failed
		return nil, false, gone
	}
	if r != nil {
		r.Messages = append(s.notes, r.Messages...)
	}
	if p.resident != nil && err == nil && r != nil && s.resumed {
		p.resident.put(p, s.prev)
		if s.scanned != nil {
			p.resident.spare = s.scanned.Files // what it says is in prev now
		}
	}
	return r, s.w != nil && s.w.Lost && r != nil && r.Passing, err
}

func (s *session) run(ctx context.Context) (*Report, error) {
	if !s.req.DryRun {
		if err := s.p.makeStateDir(); err != nil {
			return nil, err
		}
	}
	notes, err := s.p.knowTeam(s.req.DryRun)
	if err != nil {
		return nil, err
	}
	s.notes = append(s.notes, notes...)
	if s.req.DryRun {
		return s.dryRun(ctx)
	}
	s.tidy()
	_, gone := os.Lstat(s.p.casDir())
	s.blobsGone = gone != nil
	if err := s.suspect(); err != nil {
		return nil, err
	}
	r, err := s.bring(ctx)
	if s.w != nil {
		err = errors.Join(err, s.w.Blobs.Flush())
	}
	return r, err
}

// bring brings everything up to date, by the shortest way that will do.
func (s *session) bring(ctx context.Context) (*Report, error) {
	if err := s.readSnapshot(); err != nil {
		return nil, err
	}
	table, contents, stats, err := s.scan()
	if err != nil {
		return nil, err
	}
	if r := s.nothingToDo(table, contents, stats); r != nil {
		return r, nil
	}
	if s.req.Detect == ByList { // if this build fails before it changes anything, the list is lost all the same
		if err := s.begin(); err != nil {
			return nil, err
		}
	}
	defer s.closeTraces() // where that is not done yet
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

// tidy removes what a build that was killed left lying about, scratch folders and outputs that had no name yet, and ends what it left running.
func (s *session) tidy() {
	if !s.p.underWay() {
		return
	}
	s.killed = true
	command.EndOrphans(s.p.scratchDir())
	s.leftovers = errors.Join(os.RemoveAll(s.p.scratchDir()), s.p.removeTemps()) != nil
}

// removeTemps removes outputs that had no name yet.
func (p *Project) removeTemps() error {
	var errs error
	filepath.WalkDir(p.OutputDir(), func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil // where Kiln may not look it has not written
		case err == nil && !e.IsDir() && strings.HasPrefix(e.Name(), disk.TempPrefix):
			err = os.Remove(path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
		return nil
	})
	for _, f := range p.shippedOutside() {
		disk.RemoveLeft(p.shippedPath(f))
	}
	return errs
}

func (s *session) readSnapshot() error {
	if s.prev = s.p.take(); s.prev != nil {
		return nil
	}
	snap, why, err := state.ReadSnapshot(s.p.snapshotPath())
	if why != "" {
		s.warnState(why)
	}
	s.prev, s.upgrade = snap, strings.Contains(why, "version")
	return err
}

func (s *session) warnState(why string) {
	s.messages = append(s.messages, diag.Warningf(diag.StateDamaged, diag.Pos{File: ".kiln"}, "%s", why))
}

// sameRules tells whether all that decides what is built besides files is as it was. What becomes of assets that fail matters only if there are some.
func (s *session) sameRules() bool {
	if s.prev.Signature == s.signature(s.req.OnError) {
		return true
	}
	for o := OnError(0); o < onErrors && s.prev.Totals.Failed == 0; o++ {
		if s.prev.Signature == s.signature(o) {
			return true
		}
	}
	return false
}

// signature is of all that decides what is built besides files.
func (s *session) signature(o OnError) digest.Hash {
	b := digest.Build("signature").Str("kiln", s.p.cfg.Version).Hash("project", s.p.text)
	for _, i := range s.p.Processors() {
		b.Str("processor", i.Name).Hash("fingerprint", s.p.procs[i.Name].Fingerprint)
	}
	if o != Fail {
		b.Str("on-error", o.String())
	}
	if s.req.Locked {
		b.Str("ids", "locked")
	}
	return b.Sum()
}

// nothingToDo answers a build of everything in which nothing at all differs from the snapshot, and nothing else:
// no rule is evaluated, no trace read.
func (s *session) nothingToDo(t *source.Table, contents, stats bool) *Report {
	prev := s.prev
	if contents || !s.resumable() || s.req.Outcomes == AllOutcomes {
		return nil
	}
	if !s.outputsSame() || !s.worldSame() {
		return nil
	}
	if stats {
		changes, ok := folderChanges(prev.Sources, t)
		if !ok || s.append(&state.Delta{Head: prev.Head, Folders: changes}) != nil {
			return nil // a build of all writes everything, or says what is wrong
		}
	}
	tt := prev.Totals
	s.resumed = s.resumed || !stats
	return &Report{
		Messages: append(s.messages, diag.Decode[*diag.Message](prev.Messages)...),
		Summary: Summary{Assets: tt.Assets, Jobs: tt.Jobs, Reused: tt.Jobs, Requests: tt.Requests,
			Failed: tt.Failed, Products: tt.Products, Bytes: tt.Bytes, Seconds: time.Since(s.start).Seconds()},
	}
}

// resumable tells whether the build before this one was of everything and came to its end, and this one is of everything again, by the same
// rules and processors.
func (s *session) resumable() bool {
	prev := s.prev
	return !s.killed && !s.blobsGone && prev != nil && prev.Whole && prev.Mirrored == prev.Build &&
		!s.req.Force && !s.req.Compact && s.whole() && s.sameRules()
}

// outputsSame tells whether all outputs are as the build before left them.
func (s *session) outputsSame() bool {
	if s.pres == nil {
		s.pres = s.compareOutputs()
	}
	return len(s.pres) == 0
}

// worldSame tells whether all else that jobs looked at, besides files, is as it was, and the trace log and the database there.
func (s *session) worldSame() bool {
	for _, v := range s.prev.Variables {
		if job.EnvHash(v.Name) != v.Value {
			return false
		}
	}
	for _, in := range s.prev.Tools {
		if !toolSame(s.p.Dir, in) {
			return false
		}
	}
	return s.shippedSame(nil) && s.prev.Log.Holds(s.p.tracesPath()) && contentdb.Intact(s.p.DatabasePath(), s.prev.Journal)
}

func (s *session) compareOutputs() map[string]source.Presence {
	if s.trusting() {
		if named := s.compareNamed(s.req.Outputs); len(named) == 0 {
			return named
		} // one that was edited may have other names, of which the system tells nothing: products of the same content are one file
	}
	o := s.prev.Outputs
	pres := source.Compare(s.p.OutputDir(), o.Folders(), o.Folder, s.p.workers(s.req.Workers))
	s.lookInto(pres)
	return pres
}

// readBefore takes everything out of the snapshot. If it turns out to be damaged, there was none, but for the names of the outputs.
func (s *session) readBefore() {
	if s.prev == nil {
		return
	}
	outputs, err := s.prev.Outputs.All()
	var tasks *state.Tasks
	if err == nil {
		tasks, err = s.prev.Tasks()
	}
	if err != nil {
		s.warnState(err.Error())
		outputs = outputs[:0] // which files are Kiln's own is still known
		s.prev.Outputs.Paths(func(folder, name string) { outputs = append(outputs, state.Output{File: path.Join(folder, name)}) })
		s.prev, s.before.outputs = nil, outputs
		return
	}
	s.before = before{outputs: outputs}
	for _, t := range tasks.All() {
		if !t.Gone {
			s.before.tasks = append(s.before.tasks, t)
		}
	}
}

// planAll makes the world for a build of all tasks, or of those that are asked for.
func (s *session) planAll(t *source.Table) error {
	s.readBefore()
	if s.prev != nil {
		for i := range s.prev.Sources.Files {
			s.hashes = append(s.hashes, s.prev.Sources.Files[i].Hash)
		}
	}
	if err := s.openTraces(false); err != nil {
		return err
	}
	blobs, err := cas.Open(s.p.casDir())
	if err != nil {
		return err
	}
	if err := s.makeWorld(t, blobs); err != nil {
		return err
	}
	return s.choose()
}

// make runs the jobs of what was planned, and brings everything else up to date with what they made: first outputs, then what is made of
// products, then what is remembered. It gives nothing if a few tasks turn out not to be enough.
func (s *session) make(ctx context.Context) (*Report, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	if s.few == nil {
		s.verifyBlobs(ctx)
		s.tell(s.said())
	}
	if err := s.runEngine(ctx); err != nil {
		if s.few != nil { // a build of all stops as well, and keeps what is finished
			s.no("it was stopped")
			return nil, nil
		}
		if ctx.Err() == nil {
			return nil, err
		}
	}
	s.stopped = slices.ContainsFunc(s.results, func(r *engine.Result) bool { return r.Trace == nil })
	if !s.enough() {
		return nil, nil
	}
	s.noticeLearnt()
	s.findLive()
	s.yield()
	s.makePlaceholders(ctx)
	if !s.bringOutputs() || !s.ship(ctx) || s.few != nil && s.damaged() {
		return nil, nil
	}
	outcomes := s.outcomes()
	if s.req.Placed != nil && s.few != nil {
		s.req.Placed(outcomes)
	}
	s.strangersOfOld()
	if s.few != nil {
		s.because = ""
	}
	r := s.report()
	r.Outcomes = outcomes
	s.tell(slices.Concat(s.notes, s.said()))
	if ok, err := s.save(r); !ok || err != nil {
		return nil, err
	}
	err := s.closeTraces()
	r.Summary.Seconds = time.Since(s.start).Seconds() // of a folder of 100,000 files that got another name, a quarter is spent on writing it down
	return r, err
}

// closeTraces closes the traces, if they are open.
func (s *session) closeTraces() error {
	t := s.traces
	if s.traces = nil; t == nil {
		return nil
	}
	return t.Close()
}

// begin leaves a mark that a build is under way, which stays if it does not come to its end.
func (s *session) begin() error {
	if s.w != nil {
		s.w.Mark = s.p.underWayPath()
	}
	return os.WriteFile(s.p.underWayPath(), nil, 0o666)
}

func (s *session) openTraces(readOnly bool) error {
	tr, why, err := state.OpenTraces(s.p.tracesPath(), readOnly)
	if why != "" {
		s.warnState(why)
	}
	s.traces = tr
	if s.prev != nil {
		s.number = s.prev.Build
	}
	if err == nil {
		s.number = max(s.number, tr.LastBuild()) + 1
	}
	return err
}

// makeWorld evaluates the rules over the files, and makes the tasks.
func (s *session) makeWorld(t *source.Table, blobs *cas.Store) error {
	set, paths, l := s.p.evaluate(t)
	if err := l.Err(); err != nil {
		return append(s.p.warnings, l...)
	}
	s.notice(t, set, l, notices{})
	blobs.Workers = s.p.workers(s.req.Workers)
	w := s.p.world(t, blobs)
	w.AddAll(set)
	w.Reporter = s.req.Reporter
	w.Paths = func() []string { return paths }
	s.w = w
	if s.prev != nil {
		s.outputsSame()
		for _, o := range s.before.outputs {
			p := s.pres[o.File]
			if s.spoilt[o.Hash] { // it may be the same file as its blob
				p = source.Differs
			}
			if p == source.Same {
				w.Outputs[o.File] = o
			} else {
				w.Edited[o.File] = p
			}
		}
		s.knownTools()
	}
	return nil
}

// knownTools tells the world which programs were found in the build before.
func (s *session) knownTools() {
	for _, in := range s.prev.Tools {
		s.w.Tools[in.Name] = &job.Tool{Path: in.Path, Stat: in.Stat, Hash: in.Hash}
	}
}

// choose picks the tasks that are asked for.
func (s *session) choose() error {
	if err := s.p.checkPlatforms(s.req.Platforms); err != nil {
		return err
	}
	match, err := s.p.matcher(s.w.Assets, s.req.Patterns)
	if err != nil {
		return err
	}
	for k := range s.w.Assets.Assets {
		a := &s.w.Assets.Assets[k]
		if !match(a) {
			continue
		}
		for i := range a.Resolved {
			if len(s.req.Platforms) == 0 || slices.Contains(s.req.Platforms, a.Resolved[i].Platform) {
				s.wanted = append(s.wanted, s.w.Task(a, &a.Resolved[i], ""))
			}
		}
	}
	if seed := s.req.Shuffle; seed != 0 {
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(s.wanted), func(i, j int) { s.wanted[i], s.wanted[j] = s.wanted[j], s.wanted[i] })
	}
	return nil
}

func (s *session) runEngine(ctx context.Context) error {
	if !s.req.DryRun {
		defer os.RemoveAll(s.w.Scratch)
	}
	tasks := make([]*engine.Task, len(s.wanted))
	for i, t := range s.wanted {
		tasks[i] = &t.Task
	}
	opts := engine.Options{
		Workers: s.p.workers(s.req.Workers), Extra: s.p.extra(s.req.Workers), Memory: s.p.memoryLimit(), Force: s.forced(), FailFast: s.req.FailFast, DryRun: s.req.DryRun,
		Build: s.number, First: s.first(), Holds: s.holds,
	}
	if s.req.Control != nil {
		opts.Control = &s.req.Control.engine
		s.req.Control.reach(s)
		defer s.req.Control.reach(nil)
	}
	if s.req.Done != nil || s.req.Tell != nil {
		s.w.Done = s.ended
	}
	s.hashUnknown()
	var err error
	s.results, err = engine.Build(ctx, s.w, s.w.Keep(s.traces), opts, tasks)
	s.looked += len(s.results)
	for i, r := range s.results {
		job.TaskOf(r).Result = r
		if ran := s.ran[r.Task.Key]; ran != nil && (r.State == engine.Stopped || r.State == engine.Held && r.Trace.ID == ran.Trace.ID) {
			ran.Task = r.Task // and not that of the world in which it ran
			s.results[i], job.TaskOf(r).Result = ran, ran
		}
	}
	return err
}

// hashUnknown hashes the files that are new and that traces of what is asked for looked at, side by side: the engine would one after the
// other. After a branch is switched these are the files that it brings.
func (s *session) hashUnknown() {
	var unknown []source.Index
	for _, t := range s.wanted {
		i, _, ok := s.w.Table.Find(t.Asset.Path)
		if ok && s.w.Table.At(i).Hash.IsZero() && len(s.traces.Traces(t.Key)) > 0 {
			unknown = append(unknown, i)
		}
	}
	slices.Sort(unknown)
	s.w.Table.HashAll(slices.Compact(unknown), s.p.workers(s.req.Workers))
}

// forced tells which tasks run although nothing changed: those that are asked for, with all their parts; nil: none.
func (s *session) forced() func(*engine.Task) bool {
	if !s.req.Force {
		return nil
	}
	jobs := make(map[job.ID]bool, len(s.wanted))
	for _, t := range s.wanted {
		jobs[t.ID()] = true
	}
	return func(et *engine.Task) bool {
		t := et.World.(*job.Task)
		return jobs[t.ID()] || t.Request()
	}
}

// ended tells of a job that was just done.
func (s *session) ended(r *engine.Result) {
	if s.req.Done != nil {
		s.req.Done(s.outcomeOf(r))
	}
	if s.req.Tell != nil {
		j := s.jobReport(r)
		s.req.Tell(&j, s.w.MessagesOf(r.Trace))
	}
}

// tell tells of messages that belong to no job. That files are empty is told at the end: a job may know better.
func (s *session) tell(l diag.List) {
	if s.req.Tell != nil {
		s.req.Tell(nil, slices.DeleteFunc(slices.Clone(l), func(m *diag.Message) bool { return m.Code == diag.EmptyFile }))
	}
}

// whole tells whether the build was asked for everything.
func (s *session) whole() bool { return len(s.req.Patterns) == 0 && len(s.req.Platforms) == 0 }

// dryRun tells what a build would do. It takes no lock and writes nothing.
func (s *session) dryRun(ctx context.Context) (*Report, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	r := &Report{Messages: s.said()}
	for _, res := range s.results {
		r.Jobs = append(r.Jobs, s.jobReport(res))
	}
	s.count(r)
	r.Summary.Assets = s.countAssets()
	if r.Summary.LookedAt = s.looked; s.whole() {
		r.Summary.Because = "it was asked for"
	}
	r.Summary.Seconds = time.Since(s.start).Seconds()
	return r, nil
}

// look sweeps without running anything.
func (s *session) look(ctx context.Context) error {
	if s.prev = s.p.peek(); s.prev == nil {
		if err := s.readSnapshot(); err != nil {
			return err
		}
	}
	t, _, _, err := s.scan()
	if err != nil {
		return err
	}
	s.readBefore()
	if err := s.openTraces(true); err != nil {
		return err
	}
	if err := s.makeWorld(t, cas.OpenReadOnly(s.p.casDir())); err != nil {
		return err
	}
	if err := s.choose(); err != nil {
		return err
	}
	s.req.DryRun = true
	return s.runEngine(ctx)
}
