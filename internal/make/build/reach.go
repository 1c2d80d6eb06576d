package build

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// mostChanges is how many source files may differ: with more of them the long way, which looks at all, is about as fast.
const mostChanges = 1000

// findChanges sorts what differs between the tables by what it means. It is false if that is more than a few files.
func (c *shortcut) findChanges(t *source.Table) bool {
	prev := c.prev.Sources
	if !slices.Equal(prev.Roots, t.Roots) {
		return false
	}
	entries, folders := t.Differences(prev)
	c.byKeys = len(folders) > 0
	paths := folders // of which some root may have had a file
	for _, e := range entries {
		name := cmp.Or(e.Now, e.Was).Name
		paths = append(paths, path.Join(e.Folder, name))
		c.byKeys = c.byKeys || name == project.RulesFile
	}
	if len(paths) > 2*mostChanges {
		return false
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		_, _, before := prev.Find(p)
		_, _, after := t.Find(p)
		switch {
		case before && after:
			c.edited = append(c.edited, p)
		case after:
			c.added = append(c.added, p)
		case before:
			c.removed = append(c.removed, p)
		}
	}
	names := map[string]bool{}
	for _, p := range slices.Concat(c.added, c.removed) {
		names[folderOf(p)] = true
	}
	for folder := range names { // which folders have files decides about folders as assets
		c.byKeys = c.byKeys || (len(prev.Names(folder)) == 0) != (len(t.Names(folder)) == 0)
	}
	return len(c.edited)+len(c.added)+len(c.removed) <= mostChanges
}

// keptNames are files that decide about others.
var keptNames = []string{project.File, project.RulesFile, source.IgnoreFile}

// open makes the world: one in which assets are found one by one, or, if what changed concerns more than the assets of single files, one
// with all.
func (c *shortcut) open(t *source.Table) bool {
	s := c.session
	blobs, err := cas.Open(s.p.casDir())
	if err != nil {
		return false
	}
	w := newWorld(s.p, t, blobs)
	w.before, w.reporter = s.prev.Outputs, s.req.Reporter
	finder, ok := c.finder(t)
	if c.byKeys || !ok || !c.notice(t, finder.Would) || !c.othersAlike(t, finder) {
		c.byKeys = true
		set, paths, l := s.p.evaluate(t)
		if l.Err() != nil {
			return c.no("the rules have mistakes")
		}
		before, ok := decodeNotices(s.prev.Notices)
		if !ok {
			return false
		}
		s.notice(t, set, l, before)
		collide := slices.ContainsFunc(set.Assets, func(a asset.Asset) bool { return a.Collides != "" })
		if collide || source.Messages(s.notices.Folders).Err() != nil && ship.Wanted(s.p.Project) {
			return c.no("source files cannot be read, or their names collide")
		}
		w.addAll(set)
		w.paths = func() []string { return paths }
	} else {
		w.finder = finder
		w.names = sync.OnceValue(func() *asset.Table { all, _, _ := s.p.evaluate(t); return all })
		w.paths = sync.OnceValue(func() []string { paths, _ := sourcePaths(t); return paths })
	}
	find := func(k engine.Key) int64 {
		if i, ok := c.tasks.ByKey(k); ok {
			return c.tasks.At(i).Head
		}
		return 0
	}
	s.number = s.prev.Build + 1
	if s.traces, ok, err = state.OpenTracesAt(s.p.tracesPath(), s.prev.Log, s.prev.Build, find); err != nil || !ok {
		return false
	}
	s.w = w
	s.knownTools()
	return true
}

// finder reads the rules, and finds assets by them.
func (c *shortcut) finder(t *source.Table) (*asset.Finder, bool) {
	s := c.session
	in := asset.Input{Project: s.p.Project, Processors: s.p.builtin, Team: s.p.team, Custom: s.p.own}
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
	return finder, finder != nil
}

// othersAlike tells whether nothing but their own assets comes and goes with the files that come and go: not what rules, parcels and the names of
// other files have to say.
func (c *shortcut) othersAlike(t *source.Table, finder *asset.Finder) bool {
	for _, p := range c.added {
		a := finder.Would(p)
		if a != nil && slices.ContainsFunc(finder.IDs(), func(id string) bool { return asset.Fold(id) == asset.Fold(p) }) {
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
		if !c.oneAlike(t, finder, p) || !c.namedStill(t, finder, p) || finder.Concerned(p, c.notices.Rules) {
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

// namedStill tells whether whatever parcels name an asset by names another one, too, so that it matches something when the file is gone. It
// looks at the files beside it.
func (c *shortcut) namedStill(t *source.Table, finder *asset.Finder, p string) bool {
	a := finder.Would(p)
	if _, _, is := t.Find(p); a == nil || is {
		return true
	}
	for i := range c.p.Parcels {
		for _, pat := range c.p.Parcels[i].Assets {
			uuid, _ := processor.UUIDOf(pat.Text)
			if name := strings.TrimSuffix(pat.Text, "/"); !a.MeantBy(name) && name != a.ID && name != a.Path && uuid != a.UUID {
				continue
			}
			another := func(name string) bool {
				other := finder.Would(path.Join(folderOf(p), name))
				return other != nil && other.Path != p && other.MeantBy(pat.Text)
			}
			if !slices.ContainsFunc(t.Names(folderOf(p)), another) {
				return false
			}
		}
	}
	return true
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
	}
	if len(c.fresh)+len(c.goneJobs) > 0 && c.w.anyPacks() {
		push(state.AssetSubject, packersSubject)
	}
	for _, name := range c.names() {
		push(state.AssetSubject, name)
		for _, platform := range c.p.PlatformNames() { // whoever asks for its further jobs asks for the first as well
			push(state.TaskSubject, subject{platform: platform, asset: name}.String())
		}
	}
	for len(queue) > 0 {
		at := c.tasks.At(queue[0])
		queue = queue[1:]
		if at.Gone {
			continue
		}
		s := parseSubject(at.Subject)
		for _, s.asset = range c.namesOf(s.asset) {
			push(state.TaskSubject, s.String())
		}
		if len(c.dirty) > mostChanges+c.tasks.Len()/8 {
			return c.no("very many jobs looked at what changed")
		}
	}
	return true
}

// namesOf are all by which an asset may be asked for.
func namesOf(a *asset.Asset) []string {
	list := []string{a.ID, a.Path, a.Path + "/", processor.ByUUID(a.UUID)}
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

// compare finds the jobs that the project has and had not, and those that it has no more. It is false if what these may be asked for by is
// not known.
func (c *shortcut) compare() bool {
	if !c.byKeys {
		return c.compareFiles()
	}
	is := make([]bool, c.tasks.Len())
	for _, t := range c.w.all {
		n, ok := c.tasks.ByKey(t.Key)
		if !ok || c.tasks.At(n).Gone {
			c.fresh = append(c.fresh, t)
			continue
		}
		if is[n] = true; c.tasks.At(n).Subject != t.subject() {
			return c.no("processors of an asset changed places")
		}
	}
	for n, at := range c.tasks.All() {
		switch {
		case at.Gone || is[n]:
		case parseSubject(at.Subject).part == "":
			c.goneJobs = append(c.goneJobs, n)
		default: // a part that nothing in its key changed for stays if its job does
			if t := c.w.taskFor(at.Subject); t == nil || t.Key != at.Key {
				c.goneJobs = append(c.goneJobs, n)
			}
		}
		if len(c.goneJobs)+len(c.fresh) > 2*mostChanges+c.tasks.Len()/8 {
			return c.no("very many assets changed")
		}
	}
	if c.prev.Pinned && (len(c.goneJobs) > 0 || ship.Wanted(c.p.Project)) { // a rule that has assets follow is in no key
		return c.no("assets with ids or UUIDs of their own may have changed")
	}
	if ship.Wanted(c.p.Project) && slices.ContainsFunc(c.w.assets.Assets, func(a asset.Asset) bool { return a.Follows }) {
		return c.no("assets follow others into parcels")
	}
	return true
}

// compareFiles is compare where each file that came or went is an asset of its own, or none.
func (c *shortcut) compareFiles() bool {
	for _, p := range c.removed {
		a := c.w.finder.Would(p)
		if a == nil {
			continue
		}
		c.gone[a.ID] = a
		for i := range a.Resolved {
			t := c.w.task(a, &a.Resolved[i], "")
			n, ok := c.tasks.ByKey(t.Key)
			if !ok {
				return false
			}
			c.goneJobs = append(c.goneJobs, n)
		}
	}
	for _, p := range c.added {
		if a := c.w.find(p); a != nil {
			for i := range a.Resolved {
				c.fresh = append(c.fresh, c.w.task(a, &a.Resolved[i], ""))
			}
		}
	}
	for _, t := range c.fresh {
		if n, ok := c.tasks.ByKey(t.Key); ok && !c.tasks.At(n).Gone {
			return c.no("an asset became another one")
		}
	}
	return true
}

// names are all by which assets whose jobs came or went may be asked for.
func (c *shortcut) names() (list []string) {
	for _, t := range c.fresh {
		list = append(list, namesOf(t.asset)...)
	}
	for _, a := range c.gone {
		list = append(list, namesOf(a)...)
	}
	if c.byKeys {
		for _, n := range c.goneJobs {
			id := parseSubject(c.tasks.At(n).Subject).asset
			list = append(list, namesOf(&asset.Asset{ID: id, Path: strings.TrimSuffix(id, "/"), UUID: asset.UUID(id)})...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ask picks what the engine is asked for: the jobs that may be concerned, and new ones. Parts are asked for by their jobs, or they are not
// wanted any more.
func (c *shortcut) ask() bool {
	left := map[int]bool{}
	for _, n := range c.goneJobs {
		left[n] = true
	}
	for i := range c.dirty {
		at := c.tasks.At(i)
		if at.Gone {
			continue
		}
		if c.was[i] = c.traceByID(at.Key, at.Trace); c.was[i] == nil || !c.findStood(i) {
			return c.no("it is not known what stood for a job that failed")
		}
		t := c.w.taskFor(at.Subject)
		if t == nil || t.Key != at.Key { // its asset is gone, or has another processor now
			if !left[i] && !slices.Contains(c.removed, parseSubject(at.Subject).asset) {
				return c.no("an asset became another one")
			}
			continue
		}
		c.numbers[t.Key] = i
		if t.part == "" {
			c.wanted = append(c.wanted, t)
		}
	}
	c.wanted = append(c.wanted, c.fresh...)
	slices.SortFunc(c.wanted, c.order)
	return !c.traces.Damaged()
}

// findStood finds the trace whose products stood for a task, before anything runs: an older trace that holds again, or one more, changes which is the last
// good one. It is false if their contents are lost, so that there is no telling which that was, and if parts stood for it as well.
func (c *shortcut) findStood(n int) bool {
	c.stood[n] = c.was[n]
	if c.was[n].Outcome == engine.Succeeded || c.req.OnError == Fail {
		return true
	}
	at := c.tasks.At(n)
	traces := c.traces.Traces(at.Key)
	if asksForParts(at.Subject, c.was[n]) {
		return false
	}
	if i := slices.IndexFunc(traces, func(t *engine.Trace) bool { return t.Outcome == engine.Succeeded }); i >= 0 {
		c.stood[n] = traces[i]
		_, ok := c.w.Available(traces[i])
		return ok && !asksForParts(at.Subject, traces[i])
	}
	return true
}

// asksForParts tells whether a task of this subject asked for parts of its own job.
func asksForParts(of string, tr *engine.Trace) bool {
	me := parseSubject(of)
	return slices.ContainsFunc(tr.Observations, func(o engine.Observation) bool {
		s := parseSubject(o.Subject)
		return o.Kind == engine.Outline && s.part != "" && s.asset == me.asset
	})
}
