package outputs

import (
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// desiredOutput is an output that should exist.
type desiredOutput struct {
	t       *job.Task
	product *engine.Product
	settled bool // of a task that is not part of this build: it is not changed
}

// Tree is the output tree: its files, and those that it should have.
type Tree struct {
	*results.Set
	Prev     *state.Snapshot // nil: there was no build before
	Before   []state.Output  // outputs of the build before; in a build of few tasks only those of these tasks, without stats
	Complete bool            // every task of the project has a result
	Settled  uint64          // number of the build up to which the snapshot knows all outputs: outputs of newer traces may exist too
	Workers  int

	Messages diag.List               // about outputs that clash, or that could not be removed or written
	Unplaced map[*job.Task]diag.List // tasks whose outputs could not be written, and why
	clashed  map[*job.Task]diag.List // tasks that want the same output as another task
	Known    map[string]bool         // files in the output tree that Kiln wrote
	below    *disk.Bounds            // nil: nothing was removed yet
}

// Bring updates the output tree to the results of the tasks. If a build of few tasks finds that other
// tasks are concerned, it returns the reason; otherwise "".
func (s *Tree) Bring() string {
	desired, clashes := s.desiredOutputs()
	if s.Scope != nil && (len(clashes) > 0 || s.inTheWay(desired)) {
		return "an output is in the way of another one"
	}
	s.Unplaced, s.clashed = map[*job.Task]diag.List{}, clashes
	for _, t := range s.Live {
		s.Messages = append(s.Messages, clashes[t]...)
	}
	s.removeStale(desired)
	s.placeAll(desired)
	if s.Scope != nil && len(s.Messages) > 0 {
		return "an output could not be removed or put in place"
	}
	return ""
}

// Fails reports whether a task's products are not in the tree.
func (s *Tree) Fails(t *job.Task) bool {
	return s != nil && (s.clashed[t] != nil || s.Unplaced[t] != nil)
}

// Failures are the jobs with tasks whose products are not in the tree although no run of theirs failed, by subject, and
// the messages about that.
func (s *Tree) Failures() map[string]diag.List {
	all := map[string]diag.List{}
	for _, t := range s.Live {
		if !s.Fails(t) || t.Request() {
			continue
		}
		main := s.W.Task(t.Asset, t.On, "")
		if tr := s.TraceOf(main); tr != nil && tr.Outcome == engine.Succeeded {
			all[main.Subject()] = slices.Concat(all[main.Subject()], s.clashed[t], s.Unplaced[t])
		}
	}
	return all
}

// inTheWay reports whether a new output has the name of an output of an asset that is not concerned,
// ignoring case, or is a file where the other needs a folder, or the reverse. It also reports whether a job
// replaced such an output in a first run, and did not make it in the run after that.
func (s *Tree) inTheWay(desired map[string]desiredOutput) bool {
	was := make(map[string]bool, len(s.Before))
	for i := range s.Before {
		was[s.Before[i].File] = true
	}
	for f := range s.W.Outputs {
		if want, ok := desired[strings.ToLower(f)]; (!ok || want.product.File != f) && !was[f] {
			if _, others, err := s.Prev.Outputs.Find(f); others || err != nil {
				return true
			}
		}
	}
	low, folders := map[string]bool{}, map[string]bool{} // new outputs, and the folders that they need
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
	for i := range s.Prev.Outputs.Folders() {
		dir, files := s.Prev.Outputs.Folder(i)
		d := strings.ToLower(dir)
		above := low[d] || underAny(low, d)
		if !above && d != "" && !folders[d] {
			continue // no new output is below it, nor it below one
		}
		for name := range files {
			file := path.Join(dir, name)
			f := strings.ToLower(file)
			if !was[file] && (above || low[f] || folders[f]) {
				return true
			}
		}
	}
	return false
}

// underAny reports whether the set has a folder above a file.
func underAny(set map[string]bool, file string) bool {
	for d := path.Dir(file); d != "."; d = path.Dir(d) {
		if set[d] {
			return true
		}
	}
	return false
}

// desiredOutputs returns all files that the output tree should have, by file in lower case, and the tasks that want the
// same file as another task.
func (s *Tree) desiredOutputs() (map[string]desiredOutput, map[*job.Task]diag.List) {
	desired := make(map[string]desiredOutput, len(s.Live))
	clashes := map[*job.Task]diag.List{}
	made := map[productID]*job.Task{} // for assets that have several processors
	for _, t := range s.Live {
		products, settled := s.ProductsOf(t)
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

// sameProduct records which processor makes a product, and reports whether another one of the same asset
// makes it too. Then both have failed.
func (s *Tree) sameProduct(made map[productID]*job.Task, t *job.Task, p *engine.Product, clashes map[*job.Task]diag.List) bool {
	id := productID{t.Asset, t.Platform, p.SubID}
	other := made[id]
	if other == nil || other.On == t.On {
		made[id] = t
		return false
	}
	m := diag.Errorf(diag.ProductClash, diag.Pos{File: s.W.DisplayAsset(t.Asset)}, "processors %q and %q both make %s", other.On.Processor, t.On.Processor, job.ProductText(p.Name)).
		WithHint("have one of them give its product another name, or let the rule name only one of them")
	for _, t := range []*job.Task{other, t} {
		clashes[t] = append(clashes[t], m)
	}
	return true
}

// folderClashes finds outputs that are files where others need a folder.
func (s *Tree) folderClashes(desired map[string]desiredOutput, clashes map[*job.Task]diag.List) {
	folders := map[string]string{} // with a file below each, the first by name
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
		clashes[file.t] = append(clashes[file.t], s.clashError(file.t, "writes %s, where %s needs a folder", file.product.File, s.W.DisplayAsset(below.Asset)))
		for _, low := range slices.Sorted(maps.Keys(desired)) {
			if want := desired[low]; strings.HasPrefix(low, dir+"/") && want.t != file.t {
				clashes[want.t] = append(clashes[want.t], s.clashError(want.t, "needs the folder %s, where %s writes a file", file.product.File, s.W.DisplayAsset(file.t.Asset)))
			}
		}
	}
}

func (s *Tree) clash(t, other *job.Task, file string) *diag.Message {
	if t.Asset == other.Asset {
		return diag.Errorf(diag.OutputClash, diag.Pos{File: s.W.DisplayAsset(t.Asset)}, "processor %q writes %s, and so does processor %q", t.On.Processor, file, other.On.Processor).
			WithHint("have one of them give its product another name, or let the rule name only one of them")
	}
	return s.clashError(t, "writes %s, and so does %s", file, s.W.DisplayAsset(other.Asset))
}

func (s *Tree) clashError(t *job.Task, format string, args ...any) *diag.Message {
	return diag.Errorf(diag.OutputClash, diag.Pos{File: s.W.DisplayAsset(t.Asset)}, format, args...).
		WithHint("give one of them another id with a rule")
}

// removeStale removes outputs that no task wants any more. The snapshot lists Kiln's files; newer traces, those of a
// killed build, list more. What remains is recorded in s.known.
func (s *Tree) removeStale(desired map[string]desiredOutput) {
	s.Known = s.knownOutputs()
	open, files := s.undecided()
	var stale []string
	for f := range s.Known {
		want, ok := desired[strings.ToLower(f)]
		platform, _, _ := strings.Cut(f, "/")
		if !(ok && want.product.File == f || open[platform] && !files[f]) {
			stale = append(stale, f)
		}
	}
	slices.Sort(stale)
	for _, f := range stale {
		want, ok := desired[strings.ToLower(f)]
		s.W.Forget(f)
		if err := s.removeOutput(f); err != nil {
			s.Messages = append(s.Messages, s.outputError(f, "removed", err))
			continue
		}
		delete(s.Known, f)
		if ok { // where names that differ only in case mean one file, it was removed
			if _, err := os.Lstat(filepath.Join(s.P.OutputDir(), filepath.FromSlash(want.product.File))); err != nil {
				delete(s.W.Outputs, want.product.File)
			}
		}
	}
	s.W.Bounds.Forget() // folders that are empty are gone
}

// undecided returns the platforms with tasks that have no result in this build, and the files that the
// other tasks ever wrote. On these platforms only those files are removed: what a task without a result
// wrote is kept, even if it is old.
func (s *Tree) undecided() (platforms, files map[string]bool) {
	if s.Complete {
		return nil, nil
	}
	platforms, files = map[string]bool{}, map[string]bool{}
	for _, t := range s.Live {
		if !t.Decided() {
			platforms[t.Platform] = true
			continue
		}
		for _, tr := range s.Traces.Traces(t.Key) {
			for i := range tr.Products {
				files[tr.Products[i].File] = true
			}
		}
	}
	return platforms, files
}

// RemoveOutputs removes all outputs, and returns their number.
func (s *Tree) RemoveOutputs(dryRun bool) (int, error) {
	var errs error
	known := s.knownOutputs()
	n := 0
	for _, f := range slices.Sorted(maps.Keys(known)) {
		if _, err := os.Lstat(filepath.Join(s.P.OutputDir(), filepath.FromSlash(f))); err == nil {
			n++
		}
		if !dryRun {
			errs = errors.Join(errs, s.removeOutput(f))
		}
	}
	return n, errs
}

// removeOutput removes a file. If a user replaced it by a folder, or a folder above it by a file, it does
// nothing.
func (s *Tree) removeOutput(file string) error {
	if s.below == nil {
		s.below = s.P.BelowOutput()
	}
	abs := filepath.Join(s.below.Root(), filepath.FromSlash(file))
	if info, err := os.Lstat(abs); err == nil && info.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return cas.RemoveOutput(s.below, abs)
}

// knownOutputs returns the files in the output tree that Kiln wrote. After a killed build they may be of any
// trace, because outputs of old traces may be in place again without a snapshot. The same holds after a
// change of kiln.toml, because the output folder may be an earlier one.
func (s *Tree) knownOutputs() map[string]bool {
	known := map[string]bool{}
	for _, o := range s.Before {
		known[o.File] = true
	}
	if s.W != nil {
		for f := range s.W.Outputs {
			known[f] = true
		}
	}
	defer delete(known, "") // hidden products
	if since := s.Settled; s.Scope == nil && s.Traces.LastBuild() > since {
		for _, k := range s.Traces.Keys() {
			for _, tr := range s.Traces.Traces(k) {
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

// placeAll writes missing and wrong outputs, in parallel.
func (s *Tree) placeAll(desired map[string]desiredOutput) {
	var missing []desiredOutput
	for _, want := range desired {
		if out, ok := s.W.Output(want.product.File); !want.settled && (!ok || out.Hash != want.product.Hash) {
			missing = append(missing, want)
		}
	}
	slices.SortFunc(missing, func(a, b desiredOutput) int { return strings.Compare(a.product.File, b.product.File) })
	errs := make([]error, len(missing))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(missing), s.Workers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(missing); i = int(next.Add(1)) - 1 {
				errs[i] = s.W.Place(missing[i].product)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			if cas.Lost(err) { // the jobs that make it run in the next build
				s.W.Lose(missing[i].product.Hash)
			}
			m := s.outputError(missing[i].product.File, "written", err)
			s.Messages = append(s.Messages, m)
			s.Unplaced[missing[i].t] = append(s.Unplaced[missing[i].t], m)
		}
	}
}

// outputError is the message for a file that could not be "written" or "removed". The file is below the output folder.
func (s *Tree) outputError(file, done string, err error) *diag.Message {
	if m := project.LinkMessage(s.P.Dir, err); m != nil {
		m.Text = fmt.Sprintf("%s/%s cannot be %s: %s", s.P.Output, file, done, m.Text)
		return m
	}
	why, hint := fmt.Sprint(disk.Reason(err)), "check that the output folder can be written to and nothing stands in the way"
	switch {
	case disk.Full(err):
		hint = "make room on the disk, then build again; what was built is kept"
	case disk.InUse(err):
		hint = "another program may have it open: close it, and build again"
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EISDIR):
		why, hint = "a folder stands in its place", "move it away, and build again"
	case errors.Is(err, syscall.ENOTDIR):
		why, hint = "a file stands where a folder should be", "move it away, and build again"
	case errors.Is(err, syscall.ENAMETOOLONG):
		hint = "give the source file a shorter name, or its asset a shorter id in a rule: match = \"...\" and id = \"...\""
	}
	return diag.Errorf(diag.OutputUnwritable, diag.Pos{File: s.P.Output + "/" + file}, "the output cannot be %s: %s", done, why).
		WithHint("%s", hint)
}

// Clashes reports whether a task wants the same output as another task.
func (s *Tree) Clashes(t *job.Task) bool { return s.clashed[t] != nil }

// Save records all outputs. Those that should not exist, or have wrong content, are recorded without a stat, which
// never equals that of a file.
func (s *Tree) Save(next *state.Image) {
	next.Outputs = make([]state.Output, 0, len(s.W.Outputs))
	for _, o := range s.W.Outputs {
		next.Outputs = append(next.Outputs, o)
	}
	for f := range s.Known {
		if _, ok := s.W.Outputs[f]; !ok {
			next.Outputs = append(next.Outputs, state.Output{File: f})
		}
	}
	slices.SortFunc(next.Outputs, state.CompareOutputs)
}
