package build

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// changed is what a build the short way did.
type changed struct {
	tasks     []state.TaskChange
	edges     []state.Edge
	globs     []state.Glob
	assets    []*asset.Asset            // with a task of another trace
	deleted   []string                  // ids of assets
	files     map[string]engine.Product // outputs of tasks that were looked at, now
	before    map[string]bool           // and before
	totals    state.Totals
	gone      []engine.Key
	left      map[int]bool                 // by number: tasks that are no more
	stays     map[string]bool              // subjects of tasks that are
	fewer     bool                         // some task asks no more for a part that it asked for
	others    map[engine.Key]bool          // tasks whose trace is another one
	touched   map[string]*asset.Asset      // assets of which some task is, or is no more, by UUID
	looked    map[string]bool              // their ids
	were      map[assetOn][]engine.Product // what stood for those tasks
	wasLost   map[assetOn]bool             // some of them had nothing that stood
	referring func() map[string][]string   // see findReferring
	outcomes  []Outcome
}

// changes compares the traces that hold with those that held. It is false if some task was stopped, or failed in a way that may pass.
func (c *shortcut) changes() (*changed, bool) {
	ch := &changed{
		totals: c.prev.Totals, files: map[string]engine.Product{}, before: map[string]bool{},
		left: map[int]bool{}, stays: map[string]bool{}, others: map[engine.Key]bool{}, touched: map[string]*asset.Asset{},
		looked: map[string]bool{}, were: map[assetOn][]engine.Product{}, wasLost: map[assetOn]bool{},
	}
	for _, res := range c.results {
		if res.Trace == nil || res.Trace.ID == 0 {
			return nil, c.no("a job was stopped, or failed in a way that may pass")
		}
	}
	next := c.tasks.Len()
	live := c.liveNow()
	var others []*task // that make other products than before, of assets with several processors
	known := map[string]int{}
	for _, t := range live {
		tr := t.result.Trace
		n, ok := c.numbers[t.Key]
		if !ok {
			n, ok = c.tasks.ByKey(t.Key)
		}
		if ok && !c.tasks.At(n).Gone && !c.dirty[n] {
			if c.tasks.At(n).Trace != tr.ID {
				return nil, c.no("contents of products were lost")
			}
			continue // looked at because another one needs it, and as it was
		}
		if !ok {
			n = next
			next++
		}
		was := c.was[n]
		before := c.stood[n]
		now, ok := c.standing(t, tr)
		if !ok {
			return nil, c.no("last good products of several parts stand for a job")
		}
		if t.among() != "" && !sameProducts(before, now) {
			others = append(others, t)
		}
		ch.count(t.part, was, before, -1)
		ch.count(t.part, tr, now, 1)
		if !ch.take(before, now) {
			return nil, c.no("two jobs want the same output")
		}
		if was != nil && was.ID == tr.ID {
			if speaks(tr) {
				ch.assets = append(ch.assets, t.asset) // its messages may be others
			}
			continue
		}
		ch.tasks = append(ch.tasks, state.TaskChange{Number: n, TaskState: state.TaskState{Subject: t.subject(), Key: t.Key, Trace: tr.ID, Speaks: speaks(tr)}})
		ch.outcomes = append(ch.outcomes, c.outcome(t, tr, now.Products))
		ch.edges, ch.globs = addEdges(ch.edges, ch.globs, known, tr, n)
		ch.assets = append(ch.assets, t.asset)
		ch.others[t.Key] = true
		ch.had(t.asset, t.platform, before)
		ch.fewer = ch.fewer || was != nil && c.asksForFewer(t, was, tr)
	}
	if slices.ContainsFunc(others, func(t *task) bool { return c.sameProduct(t) }) {
		return nil, c.no("two processors make the same product")
	}
	if !c.leaveGone(ch, live) {
		return nil, c.no("of what is gone it is not known what it made")
	}
	return ch, true
}

// sameProduct tells whether another of an asset's processors makes a product that a task makes as well.
func (c *shortcut) sameProduct(t *task) bool {
	made := map[uint32]*asset.Resolved{}
	var clash bool
	var visit func(t *task)
	visit = func(t *task) {
		tr, ok := c.standing(t, c.traceOf(t))
		clash = clash || !ok // maybe: the long way tells
		if tr == nil {
			return
		}
		for i := range tr.Products {
			if p := &tr.Products[i]; p.File != "" {
				clash = clash || made[p.SubID] != nil && made[p.SubID] != t.on
				made[p.SubID] = t.on
			}
		}
		for _, p := range c.w.partsIn(t, tr) {
			visit(p)
		}
	}
	all := t.asset.On(t.platform)
	for i := range all {
		visit(c.w.task(t.asset, &all[i], ""))
	}
	return clash
}

// sameProducts tells whether two traces have products of the same sub ids and files.
func sameProducts(a, b *engine.Trace) bool {
	return a != nil && b != nil && slices.EqualFunc(a.Products, b.Products, func(x, y engine.Product) bool { return x.SubID == y.SubID && x.File == y.File })
}

// standing is the trace whose products stand for a task that has this one: itself, or, if it failed and the last good products are to stay, that of these.
// It is false if these are of several tasks.
func (c *shortcut) standing(t *task, tr *engine.Trace) (*engine.Trace, bool) {
	if tr == nil || tr.Outcome == engine.Succeeded || c.req.OnError == Fail {
		return tr, true
	}
	good := c.lastGood(t, c.traces)
	return cmp.Or(good[t], tr), len(good) <= 1 && len(c.w.partsIn(t, tr)) == 0
}

// liveNow are the tasks among the results that the project has, parts included.
func (c *shortcut) liveNow() (live []*task) {
	c.lives++
	var visit func(t *task)
	visit = func(t *task) {
		if t.decided() && !c.isLive(t) {
			t.lives = c.lives
			live = append(live, t)
			for _, p := range c.w.partsIn(t, t.result.Trace) {
				visit(p)
			}
		}
	}
	for _, res := range c.results {
		if t := taskOf(res); t.part == "" || t.part == processor.PackPart {
			visit(t)
		}
	}
	c.results = slices.DeleteFunc(c.results, func(r *engine.Result) bool { return !c.isLive(taskOf(r)) })
	return live
}

// asksForFewer tells whether there is a part that a task asked for by one trace, and does not by another.
func (c *shortcut) asksForFewer(t *task, was, now *engine.Trace) bool {
	asks := map[*task]bool{}
	for _, p := range c.w.partsIn(t, now) {
		asks[p] = true
	}
	return slices.ContainsFunc(c.w.partsIn(t, was), func(p *task) bool { return !asks[p] })
}

// leaveGone takes in the tasks that are no more: those of files that are gone, and parts that nobody asks for.
func (c *shortcut) leaveGone(ch *changed, live []*task) bool {
	if !ch.fewer && len(c.goneJobs) == 0 {
		return true // all that was asked for still is
	}
	is := c.partsAfter(live)
	for _, t := range live {
		ch.stays[t.subject()] = true
	}
	jobs := slices.DeleteFunc(slices.Clone(live), func(t *task) bool { _, was := c.numbers[t.Key]; return !was || t.part != "" })
	for _, n := range c.goneJobs {
		if !c.leave(ch, n) {
			return false
		}
		if !c.byKeys {
			continue
		}
		if id := parseSubject(c.tasks.At(n).Subject).asset; c.w.assets.ByID(id) == nil {
			ch.deleted = append(ch.deleted, id)
		} else {
			ch.assets = append(ch.assets, c.w.assets.ByID(id))
		}
	}
	for _, a := range c.gone {
		ch.deleted = append(ch.deleted, a.ID)
		for i := range a.Resolved {
			t := c.w.task(a, &a.Resolved[i], "")
			c.numbers[t.Key], _ = c.tasks.ByKey(t.Key)
			jobs = append(jobs, t)
			if !t.proc.info.Packs {
				continue
			}
			if p := c.w.task(a, t.on, processor.PackPart); p != nil {
				if n, ok := c.tasks.ByKey(p.Key); ok && !c.tasks.At(n).Gone && !c.leave(ch, n) {
					return false
				}
			}
		}
	}
	for n := range c.partsBefore(jobs) {
		if at := c.tasks.At(n); !is[at.Key] && !c.leave(ch, n) {
			return false
		}
	}
	return true
}

// leave takes in that a task is no more. It is false if it is not known what it made.
func (c *shortcut) leave(ch *changed, n int) bool {
	if ch.left[n] {
		return true
	}
	at := c.tasks.At(n)
	of := parseSubject(at.Subject)
	a := c.gone[of.asset]
	if a == nil {
		a = c.w.find(of.asset)
	}
	if c.byKeys && (a == nil || a.ID != of.asset || a.UUID != asset.UUID(a.ID)) { // no rule had given it another UUID
		a = &asset.Asset{ID: of.asset, UUID: asset.UUID(of.asset)}
		c.gone[a.ID] = a
	}
	if c.was[n] == nil { // nothing reaches it
		if c.was[n] = c.traceByID(at.Key, at.Trace); c.was[n] == nil || !c.findStood(n) {
			return false
		}
	}
	if a == nil {
		return false
	}
	at.Gone, at.Speaks = true, false
	ch.left[n] = true
	ch.tasks = append(ch.tasks, state.TaskChange{Number: n, TaskState: at})
	ch.had(a, of.platform, c.stood[n])
	ch.count(of.part, c.was[n], c.stood[n], -1)
	ch.gone = append(ch.gone, at.Key)
	if !ch.stays[at.Subject] {
		ch.outcomes = append(ch.outcomes, goneOutcome(at.Subject))
	}
	return ch.take(c.stood[n], nil)
}

// partsAfter are tasks that the project has, with all their parts, those that nothing reaches included.
func (c *shortcut) partsAfter(live []*task) map[engine.Key]bool {
	is := map[engine.Key]bool{}
	var visit func(t *task)
	visit = func(t *task) {
		if is[t.Key] {
			return
		}
		is[t.Key] = true
		if tr := c.traceOf(t); tr != nil {
			for _, p := range c.w.partsIn(t, tr) {
				visit(p)
			}
		}
	}
	for _, t := range live {
		visit(t)
	}
	return is
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

// count adds the trace of a job, or of a part of one, to the totals, with that whose products stand for it; or takes them away.
func (ch *changed) count(part string, tr, stands *engine.Trace, times int) {
	if tr == nil {
		return
	}
	if part == "" {
		ch.totals.Jobs += times
		if tr.Outcome != engine.Succeeded {
			ch.totals.Failed += times
		}
	}
	products, bytes := countProducts(stands.Products)
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
		return c.no("an output is in the way of another one")
	}
	for _, f := range sortedKeys(ch.before) {
		if _, still := ch.files[f]; !still {
			c.w.forget(f)
			if c.removeOutput(f) != nil {
				return false
			}
		}
	}
	for _, f := range sortedKeys(c.w.outputs) { // of a part that a job asked for that ran again then, and did not
		if _, wanted := ch.files[f]; wanted {
			continue
		}
		if _, was, err := c.prev.Outputs.Find(f); was || err != nil || c.removeOutput(f) != nil {
			return false
		}
		delete(c.w.outputs, f)
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

// save appends what changed to the snapshot, and tells the database.
func (c *shortcut) save(r *Report, ch *changed) bool {
	folders, ok := folderChanges(c.prev.Sources, c.w.table)
	d := &state.Delta{Head: c.head(r), Folders: folders, Tasks: ch.tasks, Edges: ch.edges, Globs: ch.globs}
	if !ok {
		d.Sources = c.w.table
	}
	d.Head.Pinned = c.prev.Pinned || slices.ContainsFunc(c.fresh, func(t *task) bool { return t.asset.Pinned() }) ||
		c.byKeys && slices.ContainsFunc(c.w.assets.Assets, func(a asset.Asset) bool { return a.Pinned() })
	d.Head.Whole, d.Head.Plain, d.Head.Notices = c.w.changed == "", true, c.notices.encode()
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
	if d.Head.Journal, ok = c.tell(r, ch); !ok {
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

// tell hands in to the database what changed. It gives the length of the database's log.
func (c *shortcut) tell(r *Report, ch *changed) (journal int64, ok bool) {
	db, opened, err := contentdb.Open(c.p.DatabasePath())
	if err != nil {
		return 0, false
	}
	defer db.Close()
	if opened.Reason != "" {
		return 0, false
	}
	b, err := db.Begin(c.mirrorStart(c.prev.Mirrored))
	if err != nil {
		return 0, false
	}
	if b.Everything() {
		b.Cancel()
		return 0, false
	}
	b.PutFiles(c.files())
	slices.Sort(ch.deleted)
	for _, id := range slices.Compact(ch.deleted) {
		b.Delete(id)
	}
	// What a name that nobody has was meant for depends on the names that there are, and a file may be in another root now.
	if len(c.added)+len(c.removed) > 0 || len(c.p.Roots) > 1 || c.byKeys {
		for _, n := range c.tasks.Speaking() {
			if t := c.w.taskFor(c.tasks.At(n).Subject); t != nil {
				ch.assets = append(ch.assets, t.asset)
			}
		}
	}
	of := lookup{
		asked: func(t *task) bool { return c.traceOf(t) != nil },
		fails: func(t *task) bool { return speaks(c.traceOf(t)) && c.traceOf(t).Outcome != engine.Succeeded },
	}
	c.parts, c.good = map[*task][]*task{}, map[*task]*engine.Trace{}
	b.TouchParcels(parcelRecords(c.goods.parcels))
	slices.SortFunc(ch.assets, func(a, b *asset.Asset) int { return strings.Compare(a.ID, b.ID) })
	for _, a := range slices.Compact(ch.assets) {
		for i := range a.Resolved {
			seen := map[*task]bool{}
			of.visit = func(t *task) bool {
				first := !seen[t]
				seen[t] = true
				return first
			}
			c.findParts(c.w.task(a, &a.Resolved[i], ""), of)
		}
		b.Put(c.assetRecord(a, false))
	}
	if b.Finish(c.mirrorSummary(r)) != nil {
		return 0, false
	}
	journal, err = db.Leave()
	return journal, err == nil
}

// files are the records of the source files that are not as they were, those included that a job found to be so by chance.
func (c *shortcut) files() []contentdb.File {
	t := c.w.table
	paths := slices.Concat(c.edited, c.added, c.removed)
	entries, _ := t.Differences(c.prev.Sources)
	for _, e := range entries {
		paths = append(paths, path.Join(e.Folder, cmp.Or(e.Now, e.Was).Name))
	}
	slices.Sort(paths)
	var files []contentdb.File
	for _, p := range slices.Compact(paths) {
		if i, root, ok := t.Find(p); ok {
			f := t.At(i)
			files = append(files, contentdb.File{Path: p, Root: root, Size: f.Stat.Size, Hash: f.Hash})
		} else if slices.Contains(c.removed, p) {
			files = append(files, contentdb.File{Path: p, Missing: true})
		}
	}
	return files
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
	if err := s.p.stateGone(); err != nil {
		return err
	}
	err := s.prev.Append(d)
	if !errors.Is(err, state.ErrWriteAnew) {
		s.goneOn = err == nil
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
