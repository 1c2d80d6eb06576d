package build

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/make/task"

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

// mostChanges is how many source files may differ: with more of them a build of all tasks is about as fast.
const mostChanges = 1000

// findChanges sorts what differs between the tables by what it means. It is false if that is more than a few files.
func (s *session) findChanges(t *source.Table) bool {
	prev := s.prev.Sources
	if !slices.Equal(prev.Roots, t.Roots) {
		return false
	}
	entries, folders := t.Differences(prev)
	s.few.byKeys = len(folders) > 0
	paths := folders // of which some root may have had a file
	for _, e := range entries {
		name := cmp.Or(e.Now, e.Was).Name
		paths = append(paths, path.Join(e.Folder, name))
		s.few.byKeys = s.few.byKeys || name == project.RulesFile
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
			s.few.edited = append(s.few.edited, p)
		case after:
			s.few.added = append(s.few.added, p)
		case before:
			s.few.removed = append(s.few.removed, p)
		}
	}
	names := map[string]bool{}
	for _, p := range slices.Concat(s.few.added, s.few.removed) {
		names[folderOf(p)] = true
	}
	for folder := range names { // which folders have files decides about folders as assets
		s.few.byKeys = s.few.byKeys || (len(prev.Names(folder)) == 0) != (len(t.Names(folder)) == 0)
	}
	return len(s.few.edited)+len(s.few.added)+len(s.few.removed) <= mostChanges
}

// keptNames are files that decide about others.
var keptNames = []string{project.File, project.RulesFile, source.IgnoreFile}

// open makes the world: one in which assets are found one by one, or, if what changed concerns more than the assets of single files, one
// with all.
func (s *session) open(t *source.Table) bool {
	blobs, err := cas.Open(s.p.casDir())
	if err != nil {
		return false
	}
	w := s.p.world(t, blobs)
	w.Before, w.Reporter = s.prev.Outputs, s.req.Reporter
	finder, ok := s.finder(t)
	if s.few.byKeys || !ok || !s.keepNotices(t, finder.Would) || !s.othersAlike(t, finder) {
		s.few.byKeys = true
		set, paths, l := s.p.evaluate(t)
		if l.Err() != nil {
			return s.no("the rules have mistakes")
		}
		before, ok := decodeNotices(s.prev.Notices)
		if !ok {
			return false
		}
		s.notice(t, set, l, before)
		collide := slices.ContainsFunc(set.Assets, func(a asset.Asset) bool { return a.Collides != "" })
		if collide || source.Messages(s.notices.Folders).Err() != nil && ship.Wanted(s.p.Project) {
			return s.no("source files cannot be read, or their names collide")
		}
		w.AddAll(set)
		w.Paths = func() []string { return paths }
	} else {
		w.Finder = finder
		w.Names = sync.OnceValue(func() *asset.Table { all, _, _ := s.p.evaluate(t); return all })
		w.Paths = sync.OnceValue(func() []string { paths, _ := sourcePaths(t); return paths })
	}
	find := func(k engine.Key) int64 {
		if i, ok := s.few.tasks.ByKey(k); ok {
			return s.few.tasks.At(i).Head
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
func (s *session) finder(t *source.Table) (*asset.Finder, bool) {
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
func (s *session) othersAlike(t *source.Table, finder *asset.Finder) bool {
	for _, p := range s.few.added {
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
	for _, p := range slices.Concat(s.few.added, s.few.removed) {
		if !s.oneAlike(t, finder, p) || !s.namedStill(t, finder, p) || finder.Concerned(p, s.notices.Rules) {
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
func (s *session) namedStill(t *source.Table, finder *asset.Finder, p string) bool {
	a := finder.Would(p)
	if _, _, is := t.Find(p); a == nil || is {
		return true
	}
	for i := range s.p.Parcels {
		for _, pat := range s.p.Parcels[i].Assets {
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
func (s *session) oneAlike(t *source.Table, finder *asset.Finder, p string) bool {
	kind, is := finder.Kind(p), finder.Would(p) != nil
	const most = 200
	for i, name := range t.Names(folderOf(p)) {
		other := path.Join(folderOf(p), name)
		if i >= most {
			break
		}
		if slices.Contains(s.few.added, other) || slices.Contains(keptNames, name) {
			continue
		}
		if finder.Kind(other) == kind && (finder.Would(other) != nil) == is {
			return true
		}
	}
	return false
}

// dependents finds the tasks that may be concerned. It is false if they are many.
func (s *session) dependents() bool {
	var queue []int
	push := func(class byte, subject string) {
		for _, i := range s.few.tasks.Looked(state.Subject(class, subject)) {
			if !s.few.dirty[i] {
				s.few.dirty[i] = true
				queue = append(queue, i)
			}
		}
	}
	for _, p := range s.few.edited {
		push(state.PathSubject, p)
	}
	for _, p := range slices.Concat(s.few.added, s.few.removed) {
		push(state.PathSubject, p)
		for _, g := range s.few.tasks.Globs() {
			if doublestar.MatchUnvalidated(g.Pattern, p) {
				for _, i := range g.Tasks {
					if !s.few.dirty[i] && i < s.few.tasks.Len() {
						s.few.dirty[i] = true
						queue = append(queue, i)
					}
				}
			}
		}
	}
	if len(s.few.fresh)+len(s.few.goneJobs) > 0 && s.w.AnyPacks() {
		push(state.AssetSubject, packersSubject)
	}
	for _, name := range s.names() {
		push(state.AssetSubject, name)
		for _, platform := range s.p.PlatformNames() { // whoever asks for its further jobs asks for the first as well
			push(state.TaskSubject, task.Subject{Platform: platform, Asset: name}.String())
		}
	}
	for len(queue) > 0 {
		at := s.few.tasks.At(queue[0])
		queue = queue[1:]
		if at.Gone {
			continue
		}
		asked := task.ParseSubject(at.Subject)
		for _, asked.Asset = range s.namesOf(asked.Asset) {
			push(state.TaskSubject, asked.String())
		}
		if len(s.few.dirty) > mostChanges+s.few.tasks.Len()/8 {
			return s.no("very many jobs looked at what changed")
		}
	}
	return true
}

// namesOf are all by which an asset may be asked for.
func namesOf(a *asset.Asset) []string {
	if task.IsRequest(a.ID) {
		return []string{a.ID}
	}
	list := []string{a.ID, a.Path, a.Path + "/", processor.ByUUID(a.UUID)}
	if id := strings.TrimSuffix(a.ID, "/"); id != a.ID {
		list = append(list, id)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *session) namesOf(id string) []string {
	if a := s.w.Find(id); a != nil {
		return namesOf(a)
	}
	return []string{id, id + "/"}
}

// compare finds the jobs that the project has and had not, and those that it has no more. It is false if what these may be asked for by is
// not known.
func (s *session) compare() bool {
	if !s.few.byKeys {
		return s.compareFiles()
	}
	is := make([]bool, s.few.tasks.Len())
	for _, t := range s.w.All {
		n, ok := s.few.tasks.ByKey(t.Key)
		if !ok || s.few.tasks.At(n).Gone {
			s.few.fresh = append(s.few.fresh, t)
			continue
		}
		if is[n] = true; s.few.tasks.At(n).Subject != t.Subject() {
			return s.no("processors of an asset changed places")
		}
	}
	for n, at := range s.few.tasks.All() {
		switch {
		case at.Gone || is[n] || task.IsRequest(task.ParseSubject(at.Subject).Asset): // requests go with those who ask: see findRequests
		case task.ParseSubject(at.Subject).Part == "":
			s.few.goneJobs = append(s.few.goneJobs, n)
		default: // a part that nothing in its key changed for stays if its job does
			if t := s.w.TaskFor(at.Subject); t == nil || t.Key != at.Key {
				s.few.goneJobs = append(s.few.goneJobs, n)
			}
		}
		if len(s.few.goneJobs)+len(s.few.fresh) > 2*mostChanges+s.few.tasks.Len()/8 {
			return s.no("very many assets changed")
		}
	}
	if s.prev.Pinned && (len(s.few.goneJobs) > 0 || ship.Wanted(s.p.Project)) { // a rule that has assets follow is in no key
		return s.no("assets with ids or UUIDs of their own may have changed")
	}
	if ship.Wanted(s.p.Project) && slices.ContainsFunc(s.w.Assets.Assets, func(a asset.Asset) bool { return a.Follows }) {
		return s.no("assets follow others into parcels")
	}
	return true
}

// compareFiles is compare where each file that came or went is an asset of its own, or none.
func (s *session) compareFiles() bool {
	for _, p := range s.few.removed {
		a := s.w.Finder.Would(p)
		if a == nil {
			continue
		}
		s.few.gone[a.ID] = a
		for i := range a.Resolved {
			t := s.w.Task(a, &a.Resolved[i], "")
			n, ok := s.few.tasks.ByKey(t.Key)
			if !ok {
				return false
			}
			s.few.goneJobs = append(s.few.goneJobs, n)
		}
	}
	for _, p := range s.few.added {
		if a := s.w.Find(p); a != nil {
			for i := range a.Resolved {
				s.few.fresh = append(s.few.fresh, s.w.Task(a, &a.Resolved[i], ""))
			}
		}
	}
	for _, t := range s.few.fresh {
		if n, ok := s.few.tasks.ByKey(t.Key); ok && !s.few.tasks.At(n).Gone {
			return s.no("an asset became another one")
		}
	}
	return true
}

// names are all by which assets whose jobs came or went may be asked for.
func (s *session) names() (list []string) {
	for _, t := range s.few.fresh {
		list = append(list, namesOf(t.Asset)...)
	}
	for _, a := range s.few.gone {
		list = append(list, namesOf(a)...)
	}
	if s.few.byKeys {
		for _, n := range s.few.goneJobs {
			id := task.ParseSubject(s.few.tasks.At(n).Subject).Asset
			list = append(list, namesOf(&asset.Asset{ID: id, Path: strings.TrimSuffix(id, "/"), UUID: asset.UUID(id)})...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ask picks what the engine is asked for: the jobs that may be concerned, and new ones. Parts are asked for by their jobs, or they are not
// wanted any more.
func (s *session) ask() bool {
	left := map[int]bool{}
	for _, n := range s.few.goneJobs {
		left[n] = true
	}
	for i := range s.few.dirty {
		at := s.few.tasks.At(i)
		if at.Gone {
			continue
		}
		t := s.w.TaskFor(at.Subject)
		if t == nil || t.Key != at.Key { // its asset is gone, or has another processor now
			if !left[i] && !slices.Contains(s.few.removed, task.ParseSubject(at.Subject).Asset) {
				return s.no("an asset became another one")
			}
			continue
		}
		if t.Part == "" && !t.Request() {
			s.wanted = append(s.wanted, t)
		}
	}
	s.wanted = append(s.wanted, s.few.fresh...)
	slices.SortFunc(s.wanted, s.order)
	return !s.traces.Damaged()
}
