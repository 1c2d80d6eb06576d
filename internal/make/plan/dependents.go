package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/task"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/store/state"
	"github.com/kiln-pipeline/kiln/processor"
)

// mostChanges is how many source files may differ: with more, a build of all tasks is about as fast.
const mostChanges = 1000

// FindChanges sorts the differences between the tables by their effect. It returns false if more than a few files
// differ.
func (s *Few) FindChanges(t *source.Table) bool {
	prev := s.prev.Sources
	if !slices.Equal(prev.Roots, t.Roots) {
		return false
	}
	entries, folders := t.Differences(prev)
	s.ByKeys = len(folders) > 0
	paths := folders // folders in which some root may have had a file
	for _, e := range entries {
		name := cmp.Or(e.Now, e.Was).Name
		paths = append(paths, path.Join(e.Folder, name))
		s.ByKeys = s.ByKeys || name == project.RulesFile || (e.Now == nil || e.Was == nil) && processors.SourceFormat(name) != ""
	}
	if len(paths) > 2*mostChanges {
		return false
	}
	s.prev.Ahead() // while outputs are compared
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		_, _, before := prev.Find(p)
		_, _, after := t.Find(p)
		switch {
		case before && after:
			s.Edited = append(s.Edited, p)
		case after:
			s.Added = append(s.Added, p)
		case before:
			s.Removed = append(s.Removed, p)
		}
	}
	names := map[string]bool{}
	for _, p := range slices.Concat(s.Added, s.Removed) {
		names[folderOf(p)] = true
	}
	for folder := range names { // whether a folder has files decides about folders as assets
		s.ByKeys = s.ByKeys || (len(prev.Names(folder)) == 0) != (len(t.Names(folder)) == 0)
	}
	return len(s.Edited)+len(s.Added)+len(s.Removed) <= mostChanges
}

// OthersAlike reports whether added and removed files affect only their own assets: not the messages about rules and
// parcels, nor the suggestions for other names.
func (s *Few) OthersAlike(t *source.Table, finder *asset.Finder, rules diag.List) bool {
	for _, p := range s.Added {
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
	for _, p := range slices.Concat(s.Added, s.Removed) {
		if finder.Named().Any() && (strings.Contains(p, asset.NameMark) || slices.ContainsFunc(t.Names(folderOf(p)), func(name string) bool {
			return strings.HasPrefix(name, path.Base(p)+asset.NameMark)
		})) {
			return false
		}
		if !s.oneAlike(t, finder, p) || !s.namedStill(t, finder, p) || finder.Concerned(p, rules) {
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

// namedStill reports whether each pattern that names an asset, in a parcel or in needs by hand, also names
// another one, so that it still matches something when the file is removed; the same for globs of files. It
// checks the files in the same folder.
func (s *Few) namedStill(t *source.Table, finder *asset.Finder, p string) bool {
	if _, _, is := t.Find(p); is {
		return true
	}
	beside := func(names func(name string) bool) bool {
		return slices.ContainsFunc(t.Names(folderOf(p)), func(name string) bool {
			other := path.Join(folderOf(p), name)
			return other != p && names(other)
		})
	}
	a := finder.Would(p)
	assetsStill := func(pattern string) bool {
		if a == nil {
			return true
		}
		if glob, _ := project.SplitPattern(pattern); !a.MeantBy(glob) && !a.Called(glob) {
			return true
		}
		return beside(func(path string) bool {
			other := finder.Would(path)
			return other != nil && other.Path != p && other.MeantBy(pattern)
		})
	}
	for i := range s.P.Parcels {
		if slices.ContainsFunc(s.P.Parcels[i].Assets, func(pat project.Pattern) bool { return !assetsStill(pat.Text) }) {
			return false
		}
	}
	for pat, ofAssets := range finder.ByHand() {
		matches := func(path string) bool { return asset.MatchesFile(pat.Text, path) }
		if ofAssets && !assetsStill(pat.Text) || !ofAssets && matches(p) && !beside(matches) {
			return false
		}
	}
	return true
}

// oneAlike reports whether another file, which existed before, has the same rules.
func (s *Few) oneAlike(t *source.Table, finder *asset.Finder, p string) bool {
	kind, is := finder.Kind(p), finder.Would(p) != nil
	const most = 200
	for i, name := range t.Names(folderOf(p)) {
		other := path.Join(folderOf(p), name)
		if i >= most {
			break
		}
		if slices.Contains(s.Added, other) || slices.Contains(workspace.KeptNames, name) {
			continue
		}
		if finder.Kind(other) == kind && (finder.Would(other) != nil) == is {
			return true
		}
	}
	return false
}

// dependents finds the tasks that may be concerned. It returns false if there are many.
func (s *Few) dependents() bool {
	var queue []int
	push := func(class byte, subject string) {
		for _, i := range s.Scope.Tasks.Looked(state.Subject(class, subject)) {
			if !s.Dirty[i] {
				s.Dirty[i] = true
				queue = append(queue, i)
			}
		}
	}
	for _, p := range s.Edited {
		push(state.PathSubject, p)
	}
	listed := func(g state.Glob) {
		for _, i := range g.Tasks {
			if !s.Dirty[i] && i < s.Scope.Tasks.Len() {
				s.Dirty[i] = true
				queue = append(queue, i)
			}
		}
	}
	for _, p := range slices.Concat(s.Added, s.Removed) {
		push(state.PathSubject, p)
		for _, g := range s.Scope.Tasks.Globs() {
			if asset.MatchesFile(g.Pattern, p) {
				listed(g)
			}
		}
	}
	names := s.names()
	for _, g := range s.Scope.Tasks.Globs() {
		pattern, is := strings.CutPrefix(g.Pattern, OfAssets)
		glob, _ := project.SplitPattern(pattern) // an excluded asset may have been named by the pattern before a rule changed its id
		matches := func(name string) bool {
			return name == glob || asset.Matches(glob, name) || strings.HasPrefix(pattern, job.ParcelMark) // a parcel may hold anything
		}
		if is && slices.ContainsFunc(names, matches) {
			listed(g)
		}
	}
	if len(s.Fresh)+len(s.goneJobs) > 0 && s.W.AnyPacks() {
		push(state.AssetSubject, PackersSubject)
	}
	if s.ByKeys { // the rules may have changed
		push(state.AssetSubject, NamedSubject)
		push(state.AssetSubject, ListedSubject)
	}
	for _, name := range names {
		push(state.AssetSubject, name)
		for _, platform := range s.P.PlatformNames() { // a task that asks for an asset's other jobs also asks for the first
			push(state.TaskSubject, task.Subject{Platform: platform, Asset: name}.String())
		}
	}
	for len(queue) > 0 {
		at := s.Scope.Tasks.At(queue[0])
		queue = queue[1:]
		if at.Gone {
			continue
		}
		asked := task.ParseSubject(at.Subject)
		for _, asked.Asset = range s.namesOf(asked.Asset) {
			push(state.TaskSubject, asked.String())
		}
		if len(s.Dirty) > mostChanges+s.Scope.Tasks.Len()/8 {
			return s.no("very many jobs looked at what changed")
		}
	}
	return true
}

// NamesOf returns all names by which an asset may be asked for.
func NamesOf(a *asset.Asset) []string {
	if task.IsRequest(a.ID) {
		return []string{a.ID}
	}
	list := []string{a.ID, processor.ByUUID(a.UUID)}
	if !a.Declared {
		list = append(list, a.Path, a.Path+"/")
	}
	if id := strings.TrimSuffix(a.ID, "/"); id != a.ID {
		list = append(list, id)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (s *Few) namesOf(id string) []string {
	if a := s.W.Find(id); a != nil {
		return NamesOf(a)
	}
	return []string{id, id + "/"}
}

// compare finds new and removed jobs. It returns false if it is not known which tasks may ask for them.
func (s *Few) compare() bool {
	if !s.ByKeys {
		return s.compareFiles()
	}
	is := make([]bool, s.Scope.Tasks.Len())
	for _, t := range s.W.All {
		n, ok := s.Scope.Tasks.ByKey(t.Key)
		if !ok || s.Scope.Tasks.At(n).Gone {
			s.Fresh = append(s.Fresh, t)
			continue
		}
		if is[n] = true; s.Scope.Tasks.At(n).Subject != t.Subject() {
			return s.no("processors of an asset changed places")
		}
	}
	for n, at := range s.Scope.Tasks.All() {
		switch {
		// Requests are removed with the tasks that make them: see findRequests.
		case at.Gone || is[n] || task.IsRequest(task.ParseSubject(at.Subject).Asset):
		case task.ParseSubject(at.Subject).Part == "":
			s.goneJobs = append(s.goneJobs, n)
		default: // a part with an unchanged key stays if its job does
			if t := s.W.TaskFor(at.Subject); t == nil || t.Key != at.Key {
				s.goneJobs = append(s.goneJobs, n)
			}
		}
		if len(s.goneJobs)+len(s.Fresh) > 2*mostChanges+s.Scope.Tasks.Len()/8 {
			return s.no("very many assets changed")
		}
	}
	if s.prev.Pinned && (len(s.goneJobs) > 0 || ship.Wanted(s.P.Project)) { // no key contains a rule that makes assets follow
		return s.no("assets with ids or UUIDs of their own may have changed")
	}
	if ship.Wanted(s.P.Project) && slices.ContainsFunc(s.W.Assets.Assets, func(a asset.Asset) bool { return a.Follows }) {
		return s.no("assets follow others into parcels")
	}
	return true
}

// compareFiles is compare for the case that each added or removed file is an asset of its own, or
// no asset.
func (s *Few) compareFiles() bool {
	for _, p := range s.Removed {
		a := s.W.Finder.Would(p)
		if a == nil {
			continue
		}
		s.Gone[a.ID] = a
		for i := range a.Resolved {
			t := s.W.Task(a, &a.Resolved[i], "")
			n, ok := s.Scope.Tasks.ByKey(t.Key)
			if !ok {
				return false
			}
			s.goneJobs = append(s.goneJobs, n)
		}
	}
	for _, p := range s.Added {
		if a := s.W.Find(p); a != nil {
			for i := range a.Resolved {
				s.Fresh = append(s.Fresh, s.W.Task(a, &a.Resolved[i], ""))
			}
		}
	}
	for _, t := range s.Fresh {
		if n, ok := s.Scope.Tasks.ByKey(t.Key); ok && !s.Scope.Tasks.At(n).Gone {
			return s.no("an asset became another one")
		}
	}
	return true
}

// names returns all names by which assets with added or removed jobs may be asked for.
func (s *Few) names() (list []string) {
	for _, t := range s.Fresh {
		list = append(list, NamesOf(t.Asset)...)
	}
	for _, a := range s.Gone {
		list = append(list, NamesOf(a)...)
	}
	if s.ByKeys {
		for _, n := range s.goneJobs {
			id := task.ParseSubject(s.Scope.Tasks.At(n).Subject).Asset
			list = append(list, NamesOf(&asset.Asset{ID: id, Path: strings.TrimSuffix(id, "/"), UUID: asset.UUID(id)})...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ask selects the tasks for the engine: jobs that may be concerned, and new ones. Parts are requested by their jobs, or
// are no longer needed.
func (s *Few) ask() bool {
	left := map[int]bool{}
	for _, n := range s.goneJobs {
		left[n] = true
	}
	for i := range s.Dirty {
		at := s.Scope.Tasks.At(i)
		if at.Gone {
			continue
		}
		t := s.W.TaskFor(at.Subject)
		if t == nil || t.Key != at.Key { // its asset was removed, or has another processor now
			if !left[i] && !slices.Contains(s.Removed, task.ParseSubject(at.Subject).Asset) {
				return s.no("an asset became another one")
			}
			continue
		}
		if t.Part == "" && !t.Request() {
			s.Wanted = append(s.Wanted, t)
		}
	}
	s.Wanted = append(s.Wanted, s.Fresh...)
	slices.SortFunc(s.Wanted, s.Order)
	return !s.Traces.Damaged()
}
