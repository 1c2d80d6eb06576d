package build

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/asset"
	"github.com/kiln-pipeline/kiln/internal/cas"
	"github.com/kiln-pipeline/kiln/internal/contentdb"
	"github.com/kiln-pipeline/kiln/internal/diag"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/project"
	"github.com/kiln-pipeline/kiln/internal/source"
	"github.com/kiln-pipeline/kiln/internal/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// The short way of a build: a few source files are not as they were, and all else is. What it costs is in proportion to what these
// files reach, not to the project. From the files it follows the edges that the snapshot keeps, backwards: to the tasks that looked at
// them, to the tasks that looked at these, and so on; only these are asked for. All others hold, because nothing that they
// looked at differs.
//
// It does the same as the long way, or gives up before it has changed anything that the long way would not mend. Giving up is always
// right, so that whatever is not plain here is left to the long way.

// mostChanges is how many source files may differ: with more of them the long way, which looks at all, is about as fast.
const mostChanges = 1000

// shortcut is one build that goes the short way.
type shortcut struct {
	*session
	tasks   *state.Tasks
	edited  []string // source paths with other content
	added   []string
	removed []string
	dirty   map[int]bool              // by number: tasks that may be concerned
	was     map[int]*engine.Trace     // by number: the trace that held
	numbers map[engine.Key]int        // of all tasks that this build met
	gone    map[*asset.Asset]struct{} // assets that the project has no more
	fresh   []*task                   // of assets that it had not
}

// short builds the short way. If it cannot, it gives nothing, and the long way is to be gone.
func (s *session) short(ctx context.Context, t *source.Table) (*Report, error) {
	c := &shortcut{session: s, dirty: map[int]bool{}, was: map[int]*engine.Trace{}, numbers: map[engine.Key]int{}, gone: map[*asset.Asset]struct{}{}}
	if !s.goesOn() || !s.prev.Plain || s.req.LastGood || s.req.FailFast || s.req.Shuffle != 0 || len(s.messages) > 0 || !c.findChanges(t) || !s.outputsSame() || !s.worldSame() {
		return nil, nil
	}
	var err error
	if c.tasks, err = s.prev.Tasks(); err != nil {
		return nil, nil
	}
	if !c.open(t) {
		s.undo()
		return nil, nil
	}
	var r *Report
	done := false
	if c.reach() && c.ask() {
		r, err = c.run(ctx)
		done = r != nil
	}
	waste := s.traces.Wasteful()
	if cerr := s.traces.Close(); done && err == nil {
		err = cerr
	}
	if !done {
		s.undo()
		return nil, nil
	}
	if waste {
		return r, errors.Join(err, s.compactLog())
	}
	return r, err
}

// compactLog reads the whole log, so that it is written anew.
func (s *session) compactLog() error {
	log, _, err := state.OpenTraces(s.p.tracesPath(), false)
	if err != nil {
		return err
	}
	return log.Close()
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
	s.w, s.traces, s.wanted, s.results, s.messages = nil, nil, nil, nil, nil
}

// findChanges sorts what differs between the tables by what it means. It is false if that is more than single files.
func (c *shortcut) findChanges(t *source.Table) bool {
	prev := c.prev.Sources
	folders, ok := t.Since(prev)
	if !ok {
		return false
	}
	for _, i := range folders {
		was, now := prev.Entries(i), t.Entries(i)
		if (len(was) == 0) != (len(now) == 0) {
			return false // which folders have files decides about folders as assets
		}
		for len(was) > 0 || len(now) > 0 {
			var a, b *source.File
			switch {
			case len(now) == 0 || len(was) > 0 && was[0].Name < now[0].Name:
				a, was = &was[0], was[1:]
			case len(was) == 0 || now[0].Name < was[0].Name:
				b, now = &now[0], now[1:]
			default:
				a, b, was, now = &was[0], &now[0], was[1:], now[1:]
			}
			if !c.change(t, prev.Folders[i].Path, a, b) {
				return false
			}
		}
	}
	return len(c.edited)+len(c.added)+len(c.removed) <= mostChanges
}

// change takes in one entry of a folder, as it was and as it is; nil where it is not.
func (c *shortcut) change(t *source.Table, folder string, was, now *source.File) bool {
	if was != nil && now != nil && was.Trouble == now.Trouble && was.Hash == now.Hash && (!was.Hash.IsZero() || was.Stat == now.Stat) {
		return true
	}
	one := cmp.Or(now, was)
	if slices.Contains(keptNames, one.Name) || was != nil && (!was.Visible() || was.Stat.Size == 0) || now != nil && (!now.Visible() || now.Stat.Size == 0) {
		return false
	}
	p := path.Join(folder, one.Name)
	_, _, before := c.prev.Sources.Find(p)
	_, _, after := t.Find(p)
	switch {
	case before && after:
		c.edited = append(c.edited, p)
	case after:
		c.added = append(c.added, p)
	case before:
		c.removed = append(c.removed, p)
	}
	return true
}

// keptNames are files that decide about others.
var keptNames = []string{project.File, project.RulesFile, source.IgnoreFile}

// open makes the world, in which assets are found one by one.
func (c *shortcut) open(t *source.Table) bool {
	s := c.session
	finder, ok := c.finder(t)
	if !ok {
		return false
	}
	find := func(k engine.Key) int64 {
		if i, ok := c.tasks.ByKey(k); ok {
			return c.tasks.At(i).Head
		}
		return 0
	}
	s.number = s.prev.Build + 1
	var err error
	if s.traces, ok, err = state.OpenTracesAt(s.p.tracesPath(), s.prev.Log, s.prev.Build, find); err != nil || !ok {
		return false
	}
	blobs, err := cas.Open(s.p.casDir())
	if err != nil {
		s.traces.Close()
		return false
	}
	w := newWorld(s.p, t, blobs)
	w.finder, w.before, w.reporter = finder, s.prev.Outputs, s.req.Reporter
	w.names = sync.OnceValue(func() *asset.Table { all, _, _ := s.p.evaluate(t); return all })
	w.paths = sync.OnceValue(func() []string { paths, _ := sourcePaths(t); return paths })
	s.w = w
	s.knownTools()
	return true
}

// finder reads the rules, and finds assets by them.
func (c *shortcut) finder(t *source.Table) (*asset.Finder, bool) {
	s := c.session
	in := asset.Input{Project: s.p.Project, Processors: s.p.builtin, Custom: s.p.own}
	withRules := map[string]bool{}
	for i := range t.Folders {
		f := &t.Folders[i]
		for _, e := range t.Entries(i) {
			if e.Visible() && e.Name != project.File && e.Name != project.RulesFile {
				in.Files = append(in.Files, path.Join(f.Path, e.Name))
				break
			}
		}
		if _, ok := t.FindIn(f.Root, path.Join(f.Path, project.RulesFile)); !ok || withRules[f.Path] {
			continue
		}
		withRules[f.Path] = true
		rules, l := s.p.folderRules(t, cmp.Or(f.Path, "."))
		if len(l) > 0 {
			return nil, false
		}
		in.Rules = append(in.Rules, rules...)
	}
	finder := asset.NewFinder(in, func(p string) bool {
		_, _, ok := t.Find(p)
		return ok && !slices.Contains(keptNames, path.Base(p))
	})
	if finder == nil || len(c.added)+len(c.removed) > 0 && !c.othersAlike(t, finder) {
		return nil, false
	}
	return finder, true
}

// othersAlike tells whether nothing but their own assets comes and goes with the files that come and go: not what rules, parcels and the names of
// other files have to say.
func (c *shortcut) othersAlike(t *source.Table, finder *asset.Finder) bool {
	for _, p := range c.added {
		a := finder.Would(p)
		if a != nil && (len(c.p.Parcels) > 0 || slices.ContainsFunc(finder.IDs(), func(id string) bool { return asset.Fold(id) == asset.Fold(p) })) {
			return false
		}
		fold := asset.Fold(p)
		for _, name := range t.Names(folderOf(p)) {
			if other := path.Join(folderOf(p), name); other != p && asset.Fold(other) == fold {
				return false
			}
		}
		if t.HasFolder(p) {
			return false
		}
	}
	for _, p := range slices.Concat(c.added, c.removed) {
		if len(c.p.Parcels) > 0 && finder.Would(p) != nil || !c.oneAlike(t, finder, p) {
			return false
		}
	}
	return true
}

func folderOf(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// oneAlike tells whether there is another file, which was there before, to which the same rules apply.
func (c *shortcut) oneAlike(t *source.Table, finder *asset.Finder, p string) bool {
	kind, is := finder.Kind(p), finder.Would(p) != nil
	const most = 200
	for i, name := range t.Names(folderOf(p)) {
		other := path.Join(folderOf(p), name)
		if i >= most {
			break
		}
		if slices.Contains(c.added, other) || slices.Contains(keptNames, name) {
			continue
		}
		if finder.Kind(other) == kind && (finder.Would(other) != nil) == is {
			return true
		}
	}
	return false
}

// reach finds the tasks that may be concerned. It is false if they are many.
func (c *shortcut) reach() bool {
	var queue []int
	push := func(class byte, subject string) {
		for _, i := range c.tasks.Looked(state.Subject(class, subject)) {
			if !c.dirty[i] {
				c.dirty[i] = true
				queue = append(queue, i)
			}
		}
	}
	for _, p := range c.edited {
		push(state.PathSubject, p)
	}
	for _, p := range slices.Concat(c.added, c.removed) {
		push(state.PathSubject, p)
		for _, g := range c.tasks.Globs() {
			if doublestar.MatchUnvalidated(g.Pattern, p) {
				for _, i := range g.Tasks {
					if !c.dirty[i] && i < c.tasks.Len() {
						c.dirty[i] = true
						queue = append(queue, i)
					}
				}
			}
		}
		if a := c.w.finder.Would(p); a != nil {
			if c.w.anyPacks() {
				push(state.AssetSubject, packersSubject)
			}
			for _, name := range namesOf(a) {
				push(state.AssetSubject, name)
				for _, platform := range c.p.PlatformNames() {
					push(state.TaskSubject, subject(platform, name, ""))
				}
			}
		}
	}
	for len(queue) > 0 {
		at := c.tasks.At(queue[0])
		queue = queue[1:]
		platform, id, part := splitSubject(at.Subject)
		if at.Gone {
			continue
		}
		for _, name := range c.namesOf(id) {
			push(state.TaskSubject, subject(platform, name, part))
		}
		if len(c.dirty) > mostChanges+c.tasks.Len()/8 {
			return false
		}
	}
	return true
}

// namesOf are all by which an asset may be asked for.
func namesOf(a *asset.Asset) []string {
	list := []string{a.ID, a.Path, a.Path + "/"}
	if id := strings.TrimSuffix(a.ID, "/"); id != a.ID {
		list = append(list, id)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (c *shortcut) namesOf(id string) []string {
	if a := c.w.find(id); a != nil {
		return namesOf(a)
	}
	return []string{id, id + "/"}
}

// ask picks what the engine is asked for: the jobs of assets that may be concerned, and those of new assets. Parts are asked for by their jobs, or
// they are not wanted any more.
func (c *shortcut) ask() bool {
	for _, p := range c.removed {
		if a := c.w.finder.Would(p); a != nil {
			c.gone[a] = struct{}{}
		}
	}
	for i := range c.dirty {
		at := c.tasks.At(i)
		if at.Gone {
			continue
		}
		if c.was[i] = c.traceByID(at.Key, at.Trace); c.was[i] == nil {
			return false
		}
		_, _, part := splitSubject(at.Subject)
		t := c.w.taskFor(at.Subject)
		if t == nil || t.Key != at.Key { // its asset is gone, or has another processor now
			if !slices.Contains(c.removed, c.pathOf(at.Subject)) {
				return false
			}
			continue
		}
		c.numbers[t.Key] = i
		if part == "" {
			c.wanted = append(c.wanted, t)
		}
	}
	for _, p := range c.added {
		a := c.w.find(p)
		if a == nil {
			continue
		}
		for i := range a.Platforms {
			t := c.w.task(a, a.Platforms[i].Platform, "")
			if n, ok := c.tasks.ByKey(t.Key); ok && !c.tasks.At(n).Gone {
				return false
			}
			c.fresh = append(c.fresh, t)
			c.wanted = append(c.wanted, t)
		}
	}
	slices.SortFunc(c.wanted, c.order)
	return !c.traces.Damaged()
}

// pathOf is the path of a file that has no asset any more, by the subject of its task.
func (c *shortcut) pathOf(subject string) string {
	_, id, _ := splitSubject(subject)
	return id
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
	if err := c.runEngine(ctx); err != nil {
		return nil, nil // the long way stops as well, and keeps what is finished
	}
	if c.w.untidy || c.traces.Damaged() {
		return nil, nil
	}
	ch, ok := c.changes()
	if !ok || !c.place(ch) {
		return nil, nil
	}
	r := c.report(ch)
	if !c.save(r, ch) {
		return nil, nil
	}
	return r, nil
}

// changed is what a build the short way did.
type changed struct {
	tasks   []state.TaskChange
	edges   []state.Edge
	globs   []state.Glob
	assets  []*asset.Asset            // with a task of another trace
	deleted []string                  // ids of assets
	files   map[string]engine.Product // outputs of tasks that were looked at, now
	before  map[string]bool           // and before
	totals  state.Totals
	traces  map[engine.Key]*engine.Trace
	gone    []engine.Key
	left    map[int]bool // by number: tasks that are no more
}

// changes compares the traces that hold with those that held. It is false if some task was stopped, or failed in a way that may pass.
func (c *shortcut) changes() (*changed, bool) {
	ch := &changed{files: map[string]engine.Product{}, before: map[string]bool{}, totals: c.prev.Totals, traces: map[engine.Key]*engine.Trace{}, left: map[int]bool{}}
	for _, res := range c.results {
		if res.Trace == nil || res.Trace.ID == 0 {
			return nil, false
		}
		ch.traces[res.Task.Key] = res.Trace
	}
	next := c.tasks.Len()
	live := c.liveNow(ch)
	known := map[string]int{}
	for _, t := range live {
		tr := ch.traces[t.Key]
		n, ok := c.numbers[t.Key]
		if !ok {
			n, ok = c.tasks.ByKey(t.Key)
		}
		if ok && !c.tasks.At(n).Gone && !c.dirty[n] {
			continue // looked at because another one needs it, and as it was
		}
		if !ok {
			n = next
			next++
		}
		was := c.was[n]
		ch.count(t.part, was, -1)
		ch.count(t.part, tr, 1)
		if !ch.take(was, tr) {
			return nil, false
		}
		if was != nil && was.ID == tr.ID {
			if tr.Outcome != engine.Succeeded {
				ch.assets = append(ch.assets, t.asset) // its messages may be others
			}
			continue
		}
		now := state.TaskState{Subject: t.subject(), Key: t.Key, Trace: tr.ID, Speaks: speaks(tr)}
		ch.tasks = append(ch.tasks, state.TaskChange{Number: n, TaskState: now})
		ch.edges, ch.globs = addEdges(ch.edges, ch.globs, known, tr, n)
		ch.assets = append(ch.assets, t.asset)
	}
	if !c.leaveGone(ch, live) {
		return nil, false
	}
	return ch, true
}

// liveNow are the tasks among the results that the project has, parts included.
func (c *shortcut) liveNow(ch *changed) []*task {
	var live []*task
	seen := map[*task]bool{}
	var visit func(t *task)
	visit = func(t *task) {
		if tr := ch.traces[t.Key]; tr != nil && !seen[t] {
			seen[t] = true
			live = append(live, t)
			for _, p := range c.w.partsIn(t, tr) {
				visit(p)
			}
		}
	}
	for _, res := range c.results {
		if t := c.w.byKey[res.Task.Key]; t.part == "" || t.part == processor.PackPart {
			visit(t)
		}
	}
	c.results = slices.DeleteFunc(c.results, func(r *engine.Result) bool { return !seen[c.w.byKey[r.Task.Key]] })
	return live
}

// leaveGone takes in the tasks that are no more: those of files that are gone, and parts that nobody asks for.
func (c *shortcut) leaveGone(ch *changed, live []*task) bool {
	is := make(map[engine.Key]bool, len(live))
	for _, t := range live {
		is[t.Key] = true
	}
	leave := func(n int) bool {
		at := c.tasks.At(n)
		was := c.was[n]
		if was == nil {
			was = c.traceByID(at.Key, at.Trace)
		}
		if was == nil {
			return false
		}
		at.Gone, at.Speaks = true, false
		ch.left[n] = true
		ch.tasks = append(ch.tasks, state.TaskChange{Number: n, TaskState: at})
		_, _, part := splitSubject(at.Subject)
		ch.count(part, was, -1)
		ch.gone = append(ch.gone, at.Key)
		return ch.take(was, nil)
	}
	jobs := slices.DeleteFunc(slices.Clone(live), func(t *task) bool { _, was := c.numbers[t.Key]; return !was || t.part != "" })
	for a := range c.gone {
		ch.deleted = append(ch.deleted, a.ID)
		for i := range a.Platforms {
			t := c.w.task(a, a.Platforms[i].Platform, "")
			n, ok := c.tasks.ByKey(t.Key)
			if !ok || !leave(n) {
				return false
			}
			c.numbers[t.Key] = n
			jobs = append(jobs, t)
			if !t.proc.info.Packs {
				continue
			}
			if p := c.w.task(a, t.platform, processor.PackPart); p != nil {
				if n, ok := c.tasks.ByKey(p.Key); ok && !c.tasks.At(n).Gone && !leave(n) {
					return false
				}
			}
		}
	}
	for n := range c.partsBefore(jobs) {
		if at := c.tasks.At(n); !is[at.Key] && !leave(n) {
			return false
		}
	}
	return true
}

// partsBefore are the numbers of all parts that the jobs had before, by the traces that held.
func (c *shortcut) partsBefore(jobs []*task) map[int]bool {
	parts := map[int]bool{}
	var visit func(t *task, n int)
	visit = func(t *task, n int) {
		was := c.was[n]
		if was == nil {
			at := c.tasks.At(n)
			was = c.traceByID(at.Key, at.Trace)
		}
		if was == nil {
			return
		}
		for _, p := range c.w.partsIn(t, was) {
			if k, ok := c.tasks.ByKey(p.Key); ok && !parts[k] && !c.tasks.At(k).Gone {
				parts[k] = true
				visit(p, k)
			}
		}
	}
	for _, t := range jobs {
		visit(t, c.numbers[t.Key])
	}
	return parts
}

// count adds the trace of a job, or of a part of one, to the totals, or takes it away.
func (ch *changed) count(part string, tr *engine.Trace, times int) {
	if tr == nil {
		return
	}
	if part == "" {
		ch.totals.Jobs += times
		if tr.Outcome != engine.Succeeded {
			ch.totals.Failed += times
		}
	}
	products, bytes := countProducts(tr)
	ch.totals.Products += times * products
	ch.totals.Bytes += int64(times) * bytes
}

// take takes in the outputs of a task, before and now. Two that want the same one are left to the long way.
func (ch *changed) take(was, now *engine.Trace) bool {
	if was != nil {
		for i := range was.Products {
			if f := was.Products[i].File; f != "" {
				ch.before[f] = true
			}
		}
	}
	if now != nil {
		for i := range now.Products {
			f := now.Products[i].File
			if _, twice := ch.files[f]; twice && f != "" {
				return false
			}
			if f != "" {
				ch.files[f] = now.Products[i]
			}
		}
	}
	return true
}

// place puts outputs in place, and removes those that nobody wants any more.
func (c *shortcut) place(ch *changed) bool {
	var added []string
	for f := range ch.files {
		if !ch.before[f] {
			added = append(added, f)
		}
	}
	if len(added) > 0 && c.inTheWay(ch, added) {
		return false
	}
	for _, f := range sortedKeys(ch.before) {
		if _, still := ch.files[f]; !still {
			c.w.forget(f)
			if c.removeOutput(f) != nil {
				return false
			}
		}
	}
	c.w.blobs.Forget()
	for _, f := range sortedKeys(ch.files) {
		p := ch.files[f]
		if c.w.place(&p) != nil {
			return false
		}
	}
	return true
}

// inTheWay tells whether a new output has the name of another one, but for case, or is where another one needs a folder.
func (c *shortcut) inTheWay(ch *changed, added []string) bool {
	low := map[string]bool{}
	for _, f := range added {
		if low[strings.ToLower(f)] {
			return true
		}
		low[strings.ToLower(f)] = true
	}
	folders := map[string]bool{} // that new outputs need
	for f := range low {
		for d := path.Dir(f); d != "."; d = path.Dir(d) {
			folders[d] = true
		}
	}
	found := false
	c.prev.Outputs.Paths(func(folder, name string) {
		if found {
			return
		}
		f := strings.ToLower(path.Join(folder, name))
		if !low[f] && !folders[f] && !underAny(low, f) {
			return
		}
		was := path.Join(folder, name)
		_, still := ch.files[was]
		found = still || !ch.before[was] // another's, or one of these that stays
	})
	return found
}

// underAny tells whether some folder above a file is in the set.
func underAny(set map[string]bool, file string) bool {
	for d := path.Dir(file); d != "."; d = path.Dir(d) {
		if set[d] {
			return true
		}
	}
	return false
}

// report sums up.
func (c *shortcut) report(ch *changed) *Report {
	t := ch.totals
	t.Assets += len(c.assetsAdded()) - len(c.gone)
	ch.totals = t
	r := &Report{Short: true, Summary: Summary{Assets: t.Assets, Jobs: t.Jobs, Failed: t.Failed, Products: t.Products, Bytes: t.Bytes}}
	for _, res := range c.results {
		if res.State == engine.Ran {
			r.Jobs = append(r.Jobs, c.jobReport(res))
		}
	}
	r.Summary.Built = len(c.jobsRun())
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

// save appends what changed to the snapshot, and tells the database.
func (c *shortcut) save(r *Report, ch *changed) bool {
	folders, ok := folderChanges(c.prev.Sources, c.w.table)
	if !ok {
		return false
	}
	d := &state.Delta{Head: c.head(r), Folders: folders, Tasks: ch.tasks, Edges: ch.edges, Globs: ch.globs}
	d.Head.Whole, d.Head.Plain = !c.w.unsettled, true
	d.Head.Tools, d.Head.Variables = c.tools(), c.variables()
	for _, f := range sortedKeys(c.w.outputs) {
		d.Outputs = append(d.Outputs, c.w.outputs[f])
	}
	for _, f := range sortedKeys(ch.before) {
		if _, still := ch.files[f]; !still {
			d.Removed = append(d.Removed, f)
		}
	}
	for _, k := range ch.gone {
		if traces := c.traces.Traces(k); len(traces) > 0 {
			c.traces.Use(k, traces[0])
		}
	}
	if !c.tell(r, ch, folders) {
		return false
	}
	d.Head.Mirrored = c.number
	for i := range d.Tasks {
		d.Tasks[i].Head = c.traces.Head(d.Tasks[i].Key)
	}
	// A trace that holds again without a change of the task's state may have been moved to the front of its key.
	for n := range c.dirty {
		at := c.tasks.At(n)
		if head := c.traces.Head(at.Key); head != at.Head && !slices.ContainsFunc(d.Tasks, func(t state.TaskChange) bool { return t.Number == n }) {
			at.Head = head
			d.Tasks = append(d.Tasks, state.TaskChange{Number: n, TaskState: at})
		}
	}
	slices.SortFunc(d.Tasks, func(a, b state.TaskChange) int { return cmp.Compare(a.Number, b.Number) })
	d.Head.Log = c.traces.Mark()
	return c.append(d) == nil && c.end() == nil
}

// tell hands in to the database what changed.
func (c *shortcut) tell(r *Report, ch *changed, folders []state.FolderChange) bool {
	db, opened, err := contentdb.Open(c.p.DatabasePath())
	if err != nil {
		return false
	}
	defer db.Close()
	if opened.Reason != "" {
		return false
	}
	b, err := db.Begin(c.mirrorStart(c.prev.Mirrored))
	if err != nil {
		return false
	}
	if b.Everything() {
		b.Cancel()
		return false
	}
	b.PutFiles(c.files(folders))
	slices.Sort(ch.deleted)
	for _, id := range ch.deleted {
		b.Delete(id)
	}
	if len(c.added)+len(c.removed) > 0 { // what a name that nobody has was meant for depends on the names that there are
		for _, n := range c.tasks.Speaking() {
			if t := c.w.taskFor(c.tasks.At(n).Subject); t != nil {
				ch.assets = append(ch.assets, t.asset)
			}
		}
	}
	trace := func(t *task) *engine.Trace {
		if tr := ch.traces[t.Key]; tr != nil {
			return tr
		}
		if n, ok := c.tasks.ByKey(t.Key); ok {
			return c.traceByID(t.Key, c.tasks.At(n).Trace)
		}
		return nil
	}
	slices.SortFunc(ch.assets, func(a, b *asset.Asset) int { return strings.Compare(a.ID, b.ID) })
	for _, a := range slices.Compact(ch.assets) {
		c.findParts(a, trace)
		b.Put(c.assetRecord(a, trace, false))
	}
	return b.Finish(c.mirrorSummary(r)) == nil
}

// files are the records of the source files that are not as they were, those included that a job found to be so by chance.
func (c *shortcut) files(folders []state.FolderChange) []contentdb.File {
	t := c.w.table
	var files []contentdb.File
	for k := range folders {
		for i := range folders[k].Files {
			now := &folders[k].Files[i]
			p := path.Join(t.Folders[folders[k].Number].Path, now.Name)
			_, root, ok := t.Find(p)
			if ok && root == t.Folders[folders[k].Number].Root {
				files = append(files, contentdb.File{Path: p, Root: root, Size: now.Stat.Size, Hash: now.Hash})
			}
		}
	}
	for _, p := range c.removed {
		files = append(files, contentdb.File{Path: p, Missing: true})
	}
	for _, p := range c.edited { // where a file that another one overlaid is gone or came
		if i, root, ok := t.Find(p); ok && len(t.Roots) > 1 {
			f := t.At(i)
			files = append(files, contentdb.File{Path: p, Root: root, Size: f.Stat.Size, Hash: f.Hash})
		}
	}
	return files
}

// findParts finds the parts of an asset's jobs, for its record.
func (c *shortcut) findParts(a *asset.Asset, trace func(*task) *engine.Trace) {
	if c.parts == nil {
		c.parts = map[*task][]*task{}
	}
	for i := range a.Platforms {
		main := c.w.task(a, a.Platforms[i].Platform, "")
		seen := map[*task]bool{main: true}
		var visit func(t *task)
		visit = func(t *task) {
			tr := trace(t)
			if tr == nil {
				return
			}
			for _, p := range c.w.partsIn(t, tr) {
				if !seen[p] {
					seen[p] = true
					c.parts[main] = append(c.parts[main], p)
					visit(p)
				}
			}
		}
		visit(main)
		if main.proc.info.Packs {
			if p := c.w.task(a, main.platform, processor.PackPart); p != nil && trace(p) != nil && !seen[p] {
				seen[p] = true
				c.parts[main] = append(c.parts[main], p)
				visit(p)
			}
		}
	}
}

// tools are the programs that some job looked for, in this build or before.
func (c *shortcut) tools() []state.Tool {
	var list []state.Tool
	for _, name := range sortedKeys(c.w.tools) {
		list = append(list, c.w.tools[name].state(name))
	}
	return list
}

func (c *shortcut) variables() []state.Variable {
	list := slices.DeleteFunc(slices.Clone(c.prev.Variables), func(v state.Variable) bool { _, again := c.w.vars[v.Name]; return again })
	for _, name := range sortedKeys(c.w.vars) {
		list = append(list, state.Variable{Name: name, Value: c.w.vars[name]})
	}
	slices.SortFunc(list, func(a, b state.Variable) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// append appends to the snapshot, or writes it anew when that is due.
func (s *session) append(d *state.Delta) error {
	err := s.prev.Append(d)
	if !errors.Is(err, state.ErrWriteAnew) {
		return err
	}
	im, err := s.prev.With(d)
	if err != nil {
		return err
	}
	return state.WriteSnapshot(s.p.snapshotPath(), im)
}

// folderChanges is what differs between two tables, in the words of the snapshot. ok is false if these are not of the same folders.
func folderChanges(prev, t *source.Table) (list []state.FolderChange, ok bool) {
	folders, ok := t.Since(prev)
	for _, i := range folders {
		was, now := prev.Entries(i), t.Entries(i)
		c := state.FolderChange{Number: i, Folder: t.Folders[i]}
		if len(was) == len(now) && slices.EqualFunc(was, now, func(a, b source.File) bool { return a.Name == b.Name }) {
			for k := range now {
				if was[k] != now[k] {
					c.At, c.Files = append(c.At, k), append(c.Files, now[k])
				}
			}
		} else {
			c.All, c.Files = true, slices.Clone(now)
		}
		list = append(list, c)
	}
	return list, ok
}
