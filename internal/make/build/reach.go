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
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// mostChanges is how many source files may differ: with more of them the long way, which looks at all, is about as fast.
const mostChanges = 1000

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
	if slices.Contains(keptNames, one.Name) {
		return false
	}
	p := path.Join(folder, one.Name)
	if t.HasFolder(p) { // of another root
		return false
	}
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
		return c.no("assets cannot be found one by one by these rules")
	}
	if !c.notice(t, finder.Would) || !c.othersAlike(t, finder) {
		return c.no("what changed concerns rules, or the names of other files")
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
		if !c.oneAlike(t, finder, p) || finder.Concerned(p, c.notices.Rules) {
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
				for _, platform := range c.p.PlatformNames() { // whoever asks for its further jobs asks for the first as well
					push(state.TaskSubject, subject{platform: platform, asset: name}.String())
				}
			}
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
		if c.was[i] = c.traceByID(at.Key, at.Trace); c.was[i] == nil || !c.findStood(i) {
			return c.no("it is not known what stood for a job that failed")
		}
		t := c.w.taskFor(at.Subject)
		if t == nil || t.Key != at.Key { // its asset is gone, or has another processor now
			if !slices.Contains(c.removed, c.pathOf(at.Subject)) {
				return c.no("an asset became another one")
			}
			continue
		}
		c.numbers[t.Key] = i
		if t.part == "" {
			c.wanted = append(c.wanted, t)
		}
	}
	for _, p := range c.added {
		a := c.w.find(p)
		if a == nil {
			continue
		}
		for i := range a.Resolved {
			t := c.w.task(a, &a.Resolved[i], "")
			if n, ok := c.tasks.ByKey(t.Key); ok && !c.tasks.At(n).Gone {
				return c.no("an asset became another one")
			}
			c.fresh = append(c.fresh, t)
			c.wanted = append(c.wanted, t)
		}
	}
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

// pathOf is the path of a file that has no asset any more, by the subject of its task.
func (c *shortcut) pathOf(subject string) string {
	return parseSubject(subject).asset
}
