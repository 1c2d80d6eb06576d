package build

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// desiredOutput is an output as it should be.
type desiredOutput struct {
	t       *job.Task
	product *engine.Product
	settled bool // of a task that this build was not about: left as it is
}

// bringOutputs brings the output tree in line with what stands for the tasks. It is false if a build of few tasks finds that it has to do
// with others.
func (s *session) bringOutputs() bool {
	desired, clashes := s.desiredOutputs()
	if s.few != nil && (len(clashes) > 0 || s.inTheWay(desired)) {
		return s.no("an output is in the way of another one")
	}
	s.clashed = make(map[*job.Task]bool, len(clashes))
	for _, t := range s.live {
		if l := clashes[t]; l != nil {
			s.messages = append(s.messages, l...)
			s.clashed[t] = true
		}
	}
	s.removeStale(desired)
	s.placeAll(desired)
	return s.few == nil || len(s.messages) == 0 || s.no("an output could not be removed or put in place")
}

// inTheWay tells whether an output that is new has the name of one of an asset that is not concerned, but for case, or is where that needs
// a folder, or the other way round; and whether a job put a file in the place of such an output, and then, when it ran again, did not.
func (s *session) inTheWay(desired map[string]desiredOutput) bool {
	was := make(map[string]bool, len(s.before.outputs))
	for i := range s.before.outputs {
		was[s.before.outputs[i].File] = true
	}
	for f := range s.w.Outputs {
		if want, ok := desired[strings.ToLower(f)]; (!ok || want.product.File != f) && !was[f] {
			if _, others, err := s.prev.Outputs.Find(f); others || err != nil {
				return true
			}
		}
	}
	low, folders := map[string]bool{}, map[string]bool{} // new ones, and the folders that they need
	for f, want := range desired {
		if was[want.product.File] {
			continue
		}
		low[f] = true
		for d := path.Dir(f); d != "."; d = path.Dir(d) {
			folders[d] = true
		}
	}
	if len(low) == 0 {
		return false
	}
	found := false
	s.prev.Outputs.Paths(func(folder, name string) {
		if found {
			return
		}
		file := path.Join(folder, name)
		f := strings.ToLower(file)
		found = !was[file] && (low[f] || folders[f] || underAny(low, f))
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

// desiredOutputs are all files that the output tree should hold, by file in lower case; and the tasks that want a file which another one wants too.
func (s *session) desiredOutputs() (map[string]desiredOutput, map[*job.Task]diag.List) {
	desired := make(map[string]desiredOutput, len(s.live))
	clashes := map[*job.Task]diag.List{}
	made := map[productID]*job.Task{} // of assets that have several processors
	for _, t := range s.live {
		products, settled := s.productsOf(t)
		for i := range products {
			if products[i].File == "" {
				continue
			}
			if t.Among() != "" && s.sameProduct(made, t, &products[i], clashes) {
				continue
			}
			low := strings.ToLower(products[i].File)
			other, taken := desired[low]
			if !taken {
				desired[low] = desiredOutput{t, &products[i], settled}
				continue
			}
			if clashes[other.t] == nil {
				clashes[other.t] = diag.List{s.clash(other.t, t, products[i].File)}
			}
			clashes[t] = append(clashes[t], s.clash(t, other.t, products[i].File))
		}
	}
	s.folderClashes(desired, clashes)
	for low, want := range desired {
		if clashes[want.t] != nil {
			delete(desired, low)
		}
	}
	return desired, clashes
}

// productID is a product of an asset on a platform.
type productID struct {
	asset    *asset.Asset
	platform string
	sub      uint32
}

// sameProduct notes which processor makes a product, and tells whether another one of the same asset does. Then both have failed.
func (s *session) sameProduct(made map[productID]*job.Task, t *job.Task, p *engine.Product, clashes map[*job.Task]diag.List) bool {
	id := productID{t.Asset, t.Platform, p.SubID}
	other := made[id]
	if other == nil || other.On == t.On {
		made[id] = t
		return false
	}
	m := diag.Errorf(diag.ProductClash, diag.Pos{File: s.w.Display(t.Asset.Path)}, "processors %q and %q both make %s", other.On.Processor, t.On.Processor, job.ProductText(p.Name)).
		WithHint("have one of them give its product another name, or let the rule name only one of them")
	for _, t := range []*job.Task{other, t} {
		clashes[t] = append(clashes[t], m)
	}
	return true
}

// folderClashes finds outputs that stand where others need a folder.
func (s *session) folderClashes(desired map[string]desiredOutput, clashes map[*job.Task]diag.List) {
	folders := map[string]string{} // to one of the files below it, the first by name
	for low := range desired {
		for dir := path.Dir(low); dir != "."; dir = path.Dir(dir) {
			first, seen := folders[dir]
			if !seen || low < first {
				folders[dir] = low
			} else if seen {
				break
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		file, ok := desired[dir]
		if !ok {
			continue
		}
		below := desired[folders[dir]].t
		clashes[file.t] = append(clashes[file.t], s.clashError(file.t, "writes %s, where %s needs a folder", file.product.File, s.w.Display(below.Asset.Path)))
		for _, low := range slices.Sorted(maps.Keys(desired)) {
			if want := desired[low]; strings.HasPrefix(low, dir+"/") && want.t != file.t {
				clashes[want.t] = append(clashes[want.t], s.clashError(want.t, "needs the folder %s, where %s writes a file", file.product.File, s.w.Display(file.t.Asset.Path)))
			}
		}
	}
}

func (s *session) clash(t, other *job.Task, file string) *diag.Message {
	if t.Asset == other.Asset {
		return diag.Errorf(diag.OutputClash, diag.Pos{File: s.w.Display(t.Asset.Path)}, "processor %q writes %s, and so does processor %q", t.On.Processor, file, other.On.Processor).
			WithHint("have one of them give its product another name, or let the rule name only one of them")
	}
	return s.clashError(t, "writes %s, and so does %s", file, s.w.Display(other.Asset.Path))
}

func (s *session) clashError(t *job.Task, format string, args ...any) *diag.Message {
	return diag.Errorf(diag.OutputClash, diag.Pos{File: s.w.Display(t.Asset.Path)}, format, args...).WithHint("give one of them another id with a rule")
}

// heldBefore are the tasks of the build before, if this one leaves any undecided.
func (s *session) heldBefore() *state.Tasks {
	if s.few == nil && s.complete() {
		return nil
	}
	return s.tasksBefore()
}

// tasksBefore are the tasks of the build before; nil: none are known.
func (s *session) tasksBefore() *state.Tasks {
	if s.prev == nil {
		return nil
	}
	tasks, _ := s.prev.Tasks() // of a damaged snapshot nothing is taken: see readBefore
	return tasks
}

// complete tells whether this build decided every task of the project: it was asked for everything, nothing stopped it, and it did not only look.
func (s *session) complete() bool {
	return s.whole() && !s.stopped && !s.req.DryRun
}

// productsOf is what a task has in the output tree. Those of a job that this build did not decide stay as they are.
func (s *session) productsOf(t *job.Task) (ps []engine.Product, settled bool) {
	settled = !t.Decided() && !s.w.Task(t.Asset, t.On, "").Decided()
	return s.productsFor(t, s.traceOf(t)), settled
}

// removeStale removes outputs that no task wants any more. Which files are Kiln's is known from the snapshot, and from the
// traces that are newer than it: those of a build that was killed. What is left of them is noted in s.known.
func (s *session) removeStale(desired map[string]desiredOutput) {
	s.known = s.knownOutputs()
	open, files := s.undecided()
	var stale []string
	for f := range s.known {
		want, ok := desired[strings.ToLower(f)]
		platform, _, _ := strings.Cut(f, "/")
		if !(ok && want.product.File == f || open[platform] && !files[f]) {
			stale = append(stale, f)
		}
	}
	slices.Sort(stale)
	for _, f := range stale {
		want, ok := desired[strings.ToLower(f)]
		s.w.Forget(f)
		if err := s.removeOutput(f); err != nil {
			s.messages = append(s.messages, s.outputError(f, "removed", err))
			continue
		}
		delete(s.known, f)
		if ok { // where names that differ only in case are one file, it is gone now
			if _, err := os.Lstat(filepath.Join(s.p.OutputDir(), filepath.FromSlash(want.product.File))); err != nil {
				delete(s.w.Outputs, want.product.File)
			}
		}
	}
	s.w.Blobs.Forget()
}

// undecided tells on which platforms there are tasks that this build did not decide, and which files the others ever wrote. Nothing but
// those is removed there: what an undecided task wrote is its own, even if it is old.
func (s *session) undecided() (platforms, files map[string]bool) {
	if s.complete() {
		return nil, nil
	}
	platforms, files = map[string]bool{}, map[string]bool{}
	for _, t := range s.live {
		if !t.Decided() {
			platforms[t.Platform] = true
			continue
		}
		for _, tr := range s.traces.Traces(t.Key) {
			for i := range tr.Products {
				files[tr.Products[i].File] = true
			}
		}
	}
	return platforms, files
}

// removeOutputs removes all outputs, and tells how many there were.
func (s *session) removeOutputs() (int, error) {
	var errs error
	known := s.knownOutputs()
	n := 0
	for _, f := range slices.Sorted(maps.Keys(known)) {
		if _, err := os.Lstat(filepath.Join(s.p.OutputDir(), filepath.FromSlash(f))); err == nil {
			n++
		}
		errs = errors.Join(errs, s.removeOutput(f))
	}
	return n, errs
}

// removeOutput removes a file. A folder that somebody put in its place is theirs, and so is a file in place of a folder above it.
func (s *session) removeOutput(file string) error {
	abs := filepath.Join(s.p.OutputDir(), filepath.FromSlash(file))
	if info, err := os.Lstat(abs); err == nil && info.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return cas.RemoveOutput(s.p.OutputDir(), abs)
}

// knownOutputs are the files in the output tree that Kiln put there. After a build that was killed they may be of any trace: what an old
// one made was put back, and no snapshot tells of it. So they may after a change of kiln.toml: the output folder may be one of old.
func (s *session) knownOutputs() map[string]bool {
	known := map[string]bool{}
	for _, o := range s.before.outputs {
		known[o.File] = true
	}
	if s.w != nil {
		for f := range s.w.Outputs {
			known[f] = true
		}
	}
	defer delete(known, "") // hidden products
	if since := s.settled(); s.few == nil && s.traces.LastBuild() > since {
		for _, k := range s.traces.Keys() {
			for _, tr := range s.traces.Traces(k) {
				if tr.Build > since {
					for i := range tr.Products {
						known[tr.Products[i].File] = true
					}
				}
			}
		}
	}
	return known
}

// settled is the number of the build up to which the snapshot knows all outputs; what newer traces made may be in place too.
func (s *session) settled() uint64 {
	if s.prev == nil || s.killed || s.prev.Project != s.p.text {
		return 0
	}
	return s.prev.Build
}

// placeAll puts in place what is not, side by side.
func (s *session) placeAll(desired map[string]desiredOutput) {
	var missing []desiredOutput
	for _, want := range desired {
		if out, ok := s.w.Output(want.product.File); !want.settled && (!ok || out.Hash != want.product.Hash) {
			missing = append(missing, want)
		}
	}
	slices.SortFunc(missing, func(a, b desiredOutput) int { return strings.Compare(a.product.File, b.product.File) })
	errs := make([]error, len(missing))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(missing), s.p.workers(s.req.Workers)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(missing); i = int(next.Add(1)) - 1 {
				errs[i] = s.w.Place(missing[i].product)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			s.unplaced[missing[i].t] = true
			s.messages = append(s.messages, s.outputError(missing[i].product.File, "written", err))
		}
	}
}
