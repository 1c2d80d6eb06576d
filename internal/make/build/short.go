package build

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// The short way of a build: a few source files are not as they were, and all else is. What it costs is in proportion to what these
// files reach, not to the project. From the files it follows the edges that the snapshot keeps, backwards: to the tasks that looked at
// them, to the tasks that looked at these, and so on; only these are asked for. All others hold, because nothing that they
// looked at differs.
//
// It does the same as the long way, or gives up before it has changed anything that the long way would not mend. Giving up is always
// right, so that whatever is not plain here is left to the long way.

// shortcut is one build that goes the short way.
type shortcut struct {
	*session
	tasks   *state.Tasks
	edited  []string // source paths with other content
	added   []string
	removed []string
	dirty   map[int]bool            // by number: tasks that may be concerned
	was     map[int]*engine.Trace   // by number: the trace that held
	stood   map[int]*engine.Trace   // by number: that whose products stood for the task
	numbers map[engine.Key]int      // of all tasks that this build met
	gone    map[string]*asset.Asset // assets that the project has no more, by id, as far as they are known

	byKeys   bool    // what changed concerns more than the assets of single files: jobs are compared by their keys
	fresh    []*task // jobs that the project had not
	goneJobs []int   // by number: jobs that it has no more; if byKeys, with their parts
}

// short builds the short way. If it cannot, it gives nothing, and the long way is to be gone.
func (s *session) short(ctx context.Context, t *source.Table) (*Report, error) {
	c := &shortcut{
		session: s, dirty: map[int]bool{}, was: map[int]*engine.Trace{}, stood: map[int]*engine.Trace{}, numbers: map[engine.Key]int{},
		gone: map[string]*asset.Asset{},
	}
	if s.because = c.whyAll(t); s.because != "" {
		return nil, nil
	}
	s.because = "what changed concerns more than the jobs that looked at it" // unless it turns out otherwise
	var err error
	if c.tasks, err = s.prev.Tasks(); err != nil {
		return nil, nil
	}
	s.held = c.tasks
	if !c.open(t) {
		s.undo()
		return nil, nil
	}
	var r *Report
	done := false
	if c.compare() && c.reach() && c.ask() {
		r, err = c.run(ctx)
		done = r != nil
	}
	if cerr := s.traces.Close(); done && err == nil {
		err = cerr
	}
	if !done {
		s.undo()
		return nil, nil
	}
	s.because = ""
	return r, err
}

// whyAll says why all tasks are to be looked at; "" if those will do that looked at what changed.
func (c *shortcut) whyAll(t *source.Table) string {
	prev := c.prev
	switch {
	case prev == nil:
		return "nothing is known of a build before"
	case c.killed:
		return "the build before did not come to its end"
	case c.blobsGone:
		return "the blobs in .kiln are gone"
	case c.req.Force || c.req.Compact || c.req.Outcomes == AllOutcomes || c.req.FailFast || c.req.Shuffle != 0 || !c.whole():
		return "it was asked for"
	case !c.sameRules():
		return "kiln.toml, a processor or Kiln itself changed"
	case !c.goesOn():
		return "the build before left something to be done"
	case !prev.Plain || len(c.messages) > 0:
		return "there is something to be said of the project, its rules or its files"
	case prev.Log.Wasteful():
		return "the log of traces is to be written again"
	case !c.findChanges(t):
		return "the source roots are others, or very many files changed"
	case !c.outputsSame():
		return "outputs are not as they were"
	case !c.worldSame():
		return "a program, a variable, a parcel or state of Kiln's own is not what it was"
	}
	return ""
}

// no says why all tasks are to be looked at after all.
func (c *shortcut) no(because string) bool {
	c.because = because
	return false
}

// damaged tells whether a blob was found damaged: outputs that this build does not look at may be the same file.
func (c *shortcut) damaged() bool {
	return len(c.w.spoilt) > 0 && !c.no("contents of products were damaged")
}

// undo takes back what the long way does itself. What jobs made stays.
func (s *session) undo() {
	if s.ran == nil {
		s.ran = map[engine.Key]*engine.Result{}
	}
	for _, r := range s.results {
		if r.State == engine.Ran && r.Trace != nil && r.Trace.ID != 0 {
			s.ran[r.Task.Key] = r
		}
	}
	if len(s.results) > 0 {
		s.pres = nil // outputs are not as they were
	}
	if s.w != nil {
		s.spoilt = s.w.spoilt
		s.w.blobs.Flush() // what is not written down is looked into again
	}
	s.w, s.traces, s.wanted, s.results, s.messages, s.holds = nil, nil, nil, nil, nil, nil
}

// order is that of the long way.
func (s *session) order(a, b *task) int {
	if c := cmp.Or(strings.Compare(a.asset.ID, b.asset.ID), strings.Compare(a.asset.Path, b.asset.Path)); c != 0 || a.platform == b.platform {
		return cmp.Or(c, strings.Compare(a.part, b.part))
	}
	platforms := s.p.PlatformNames()
	return cmp.Compare(slices.Index(platforms, a.platform), slices.Index(platforms, b.platform))
}

// run runs the engine, and brings everything up to date. It gives nothing if the long way has to.
func (c *shortcut) run(ctx context.Context) (*Report, error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	c.holds = c.untouched
	if err := c.runEngine(ctx); err != nil {
		c.no("it was stopped") // the long way stops as well, and keeps what is finished
		return nil, nil
	}
	if c.damaged() {
		return nil, nil
	}
	if c.w.untidy || c.traces.Damaged() || c.req.OnError >= Placeholders && slices.ContainsFunc(c.results, failed) {
		c.no("placeholders are to be made, or something could not be written")
		return nil, nil
	}
	c.noticeLearnt()
	ch, ok := c.changes()
	if !ok {
		return nil, nil
	}
	if !c.place(ch) {
		return nil, nil
	}
	if !c.ship(ctx, ch) {
		c.no("what changed concerns parcels, numbers or constants as a whole")
		return nil, nil
	}
	if c.damaged() {
		return nil, nil
	}
	if c.req.Placed != nil {
		c.req.Placed(ch.outcomes)
	}
	r := c.report(ch)
	if !c.save(r, ch) {
		return nil, nil
	}
	r.Summary.Seconds = time.Since(c.start).Seconds()
	r.Outcomes = ch.outcomes
	return r, nil
}

// untouched tells whether a trace is that which held before, of a task that nothing reaches: of an atlas of 2,000 images, those of 31 of 32 groups,
// and nothing is asked then of the images in them. If its products are lost, which 700 lstats would tell, 12 ms, a job that wants them finds out:
// it fails in a way that may pass, and the long way makes them again.
func (c *shortcut) untouched(t *engine.Task, tr *engine.Trace) bool {
	n, ok := c.tasks.ByKey(t.Key)
	return ok && !c.dirty[n] && !c.tasks.At(n).Gone && c.tasks.At(n).Trace == tr.ID
}

// report sums up.
func (c *shortcut) report(ch *changed) *Report {
	t := ch.totals
	t.Assets += len(c.assetsAdded()) - len(c.gone)
	if c.byKeys {
		t.Assets = len(c.w.assets.Assets)
	}
	ch.totals = t
	r := &Report{Short: true, Summary: Summary{Assets: t.Assets, Jobs: t.Jobs, Failed: t.Failed, Products: t.Products, Bytes: t.Bytes}}
	for _, res := range c.results {
		if res.State == engine.Ran {
			r.Jobs = append(r.Jobs, c.jobReport(res))
		}
	}
	r.Summary.Built, r.Summary.LookedAt = len(c.jobsRun()), c.looked
	r.Summary.Reused = t.Jobs - r.Summary.Built
	r.Messages = c.collect(ch)
	r.Summary.Seconds = time.Since(c.start).Seconds()
	return r
}

func (c *shortcut) assetsAdded() map[*asset.Asset]bool {
	all := map[*asset.Asset]bool{}
	for _, t := range c.fresh {
		all[t.asset] = true
	}
	return all
}

// collect gathers the messages of all tasks that have any.
func (c *shortcut) collect(ch *changed) diag.List {
	said := c.spoken(c.results)
	met := map[engine.Key]bool{}
	for _, res := range c.results {
		met[res.Task.Key] = true
	}
	for _, n := range c.tasks.Speaking() {
		at := c.tasks.At(n)
		if met[at.Key] || c.dirty[n] || ch.left[n] {
			continue
		}
		if t := c.w.taskFor(at.Subject); t != nil {
			if tr := c.traceByID(at.Key, at.Trace); tr != nil {
				said = append(said, spoken{t, tr})
			}
		}
	}
	return c.sortMessages(said)
}

func failed(r *engine.Result) bool {
	return r != nil && r.Trace != nil && r.Trace.Outcome != engine.Succeeded
}
