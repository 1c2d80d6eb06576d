package build

import (
	"context"
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
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// wish is an output as it should be.
type wish struct {
	t       *task
	product *engine.Product
	settled bool // of a task that this build was not about: left as it is
}

// finish brings the output tree in line with the results, and sums up.
func (s *session) finish(ctx context.Context) *Report {
	r := &Report{Stopped: s.stopped}
	s.noticeLearnt()
	wishes, clashes := s.wishes()
	for _, t := range s.live {
		s.messages = append(s.messages, clashes[t]...)
	}
	s.removeStale(wishes)
	s.placeAll(wishes)
	s.clashed = make(map[*task]bool, len(clashes))
	for t := range clashes {
		s.clashed[t] = true
	}
	s.ship(ctx)
	r.Stopped = s.stopped
	s.strangersOfOld()
	s.count(r)
	r.Jobs = make([]JobReport, 0, r.Summary.Built)
	for _, res := range s.results {
		t := taskOf(res)
		if clashes[t] != nil || s.unplaced[t] {
			if res.Trace != nil && res.Trace.Outcome == engine.Succeeded {
				r.Summary.Failed++
				products, bytes := countProducts(s.productsFor(t, res.Trace))
				r.Summary.Products -= products
				r.Summary.Bytes -= bytes
			}
		}
		if res.State == engine.Ran || res.State == engine.Stopped {
			r.Jobs = append(r.Jobs, s.jobReport(res))
		}
	}
	r.Summary.Placeholders = len(s.placeholders)
	if r.Summary.LookedAt = s.looked; s.whole() {
		r.Summary.Because = s.because
	}
	r.Summary.Assets = s.countAssets()
	r.Messages = s.collect()
	r.Summary.Seconds = time.Since(s.start).Seconds()
	return r
}

// wishes are all files that the output tree should hold, by file in lower case; and the tasks that want a file which another one wants too.
func (s *session) wishes() (map[string]wish, map[*task]diag.List) {
	wishes := make(map[string]wish, len(s.live))
	clashes := map[*task]diag.List{}
	made := map[productID]*task{} // of assets that have several processors
	for _, t := range s.live {
		products, settled := s.productsOf(t)
		for i := range products {
			if products[i].File == "" {
				continue
			}
			if t.among() != "" && s.sameProduct(made, t, &products[i], clashes) {
				continue
			}
			low := strings.ToLower(products[i].File)
			other, taken := wishes[low]
			if !taken {
				wishes[low] = wish{t, &products[i], settled}
				continue
			}
			if clashes[other.t] == nil {
				clashes[other.t] = diag.List{s.clash(other.t, t, products[i].File)}
			}
			clashes[t] = append(clashes[t], s.clash(t, other.t, products[i].File))
		}
	}
	s.folderClashes(wishes, clashes)
	for low, wi := range wishes {
		if clashes[wi.t] != nil {
			delete(wishes, low)
		}
	}
	return wishes, clashes
}

// productID is a product of an asset on a platform.
type productID struct {
	asset    *asset.Asset
	platform string
	sub      uint32
}

// sameProduct notes which processor makes a product, and tells whether another one of the same asset does. Then both have failed.
func (s *session) sameProduct(made map[productID]*task, t *task, p *engine.Product, clashes map[*task]diag.List) bool {
	id := productID{t.asset, t.platform, p.SubID}
	other := made[id]
	if other == nil || other.on == t.on {
		made[id] = t
		return false
	}
	m := diag.Errorf(diag.ProductClash, diag.Pos{File: s.w.display(t.asset.Path)}, "processors %q and %q both make %s", other.on.Processor, t.on.Processor, productText(p.Name)).
		WithHint("have one of them give its product another name, or let the rule name only one of them")
	for _, t := range []*task{other, t} {
		clashes[t] = append(clashes[t], m)
	}
	return true
}

// folderClashes finds outputs that stand where others need a folder.
func (s *session) folderClashes(wishes map[string]wish, clashes map[*task]diag.List) {
	folders := map[string]string{} // to one of the files below it, the first by name
	for low := range wishes {
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
		file, ok := wishes[dir]
		if !ok {
			continue
		}
		below := wishes[folders[dir]].t
		clashes[file.t] = append(clashes[file.t], s.clashError(file.t, "writes %s, where %s needs a folder", file.product.File, s.w.display(below.asset.Path)))
		for _, low := range slices.Sorted(maps.Keys(wishes)) {
			if wi := wishes[low]; strings.HasPrefix(low, dir+"/") && wi.t != file.t {
				clashes[wi.t] = append(clashes[wi.t], s.clashError(wi.t, "needs the folder %s, where %s writes a file", file.product.File, s.w.display(file.t.asset.Path)))
			}
		}
	}
}

func (s *session) clash(t, other *task, file string) *diag.Message {
	if t.asset == other.asset {
		return diag.Errorf(diag.OutputClash, diag.Pos{File: s.w.display(t.asset.Path)}, "processor %q writes %s, and so does processor %q", t.on.Processor, file, other.on.Processor).
			WithHint("have one of them give its product another name, or let the rule name only one of them")
	}
	return s.clashError(t, "writes %s, and so does %s", file, s.w.display(other.asset.Path))
}

func (s *session) clashError(t *task, format string, args ...any) *diag.Message {
	return diag.Errorf(diag.OutputClash, diag.Pos{File: s.w.display(t.asset.Path)}, format, args...).WithHint("give one of them another id with a rule")
}

// heldBefore are the tasks of the build before, if this one leaves any undecided.
func (s *session) heldBefore() *state.Tasks {
	if s.complete() {
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

// productsOf is what a task put into the output tree. A task that this build did not decide keeps what it had.
func (s *session) productsOf(t *task) (ps []engine.Product, settled bool) {
	if ps, ok := s.instead(t); ok {
		return ps, false
	}
	if tr := s.traceOf(t); tr != nil {
		ps = tr.Products
	}
	return ps, !t.decided()
}

// removeStale removes outputs that no task wants any more. Which files are Kiln's is known from the snapshot, and from the
// traces that are newer than it: those of a build that was killed. What is left of them is noted in s.known.
func (s *session) removeStale(wishes map[string]wish) {
	s.known = s.knownOutputs()
	open, files := s.undecided()
	var stale []string
	for f := range s.known {
		wi, ok := wishes[strings.ToLower(f)]
		platform, _, _ := strings.Cut(f, "/")
		if !(ok && wi.product.File == f || open[platform] && !files[f]) {
			stale = append(stale, f)
		}
	}
	slices.Sort(stale)
	for _, f := range stale {
		wi, ok := wishes[strings.ToLower(f)]
		delete(s.w.outputs, f)
		if err := s.removeOutput(f); err != nil {
			s.messages = append(s.messages, s.outputError(f, "removed", err))
			continue
		}
		delete(s.known, f)
		if ok { // where names that differ only in case are one file, it is gone now
			if _, err := os.Lstat(filepath.Join(s.p.OutputDir(), filepath.FromSlash(wi.product.File))); err != nil {
				delete(s.w.outputs, wi.product.File)
			}
		}
	}
	s.w.blobs.Forget()
}

// undecided tells on which platforms there are tasks that this build did not decide, and which files the others ever wrote. Nothing but
// those is removed there: what an undecided task wrote is its own, even if it is old.
func (s *session) undecided() (platforms, files map[string]bool) {
	if s.complete() {
		return nil, nil
	}
	platforms, files = map[string]bool{}, map[string]bool{}
	for _, t := range s.live {
		if !t.decided() {
			platforms[t.platform] = true
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
		for f := range s.w.outputs {
			known[f] = true
		}
	}
	defer delete(known, "") // hidden products
	if since := s.settled(); s.traces.LastBuild() > since {
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
func (s *session) placeAll(wishes map[string]wish) {
	var missing []wish
	for _, wi := range wishes {
		if out, ok := s.w.outputs[wi.product.File]; !wi.settled && (!ok || out.Hash != wi.product.Hash) {
			missing = append(missing, wi)
		}
	}
	slices.SortFunc(missing, func(a, b wish) int { return strings.Compare(a.product.File, b.product.File) })
	errs := make([]error, len(missing))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(missing), s.p.workers(s.req.Workers)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(missing); i = int(next.Add(1)) - 1 {
				errs[i] = s.w.place(missing[i].product)
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

// spoken is a trace with something to tell, and whose it is.
type spoken struct {
	t  *task
	tr *engine.Trace
}

// spoken are the results that have something to tell.
func (s *session) spoken(results []*engine.Result) []spoken {
	var said []spoken
	for _, res := range results {
		if res.Trace != nil && len(res.Trace.Messages) > 0 {
			said = append(said, spoken{taskOf(res), res.Trace})
		}
	}
	return said
}

// collect gathers all messages.
func (s *session) collect() diag.List { return s.sortMessages(s.spoken(s.results)) }

// sortMessages puts first what is wrong with the project and its files, then failures, root causes first, then warnings; those of jobs in the order
// of assets and platforms. What is said of several platforms alike is said once.
func (s *session) sortMessages(said []spoken) diag.List {
	var own, needs, warnings diag.List
	seen := map[string]bool{}
	sort := func(l diag.List) {
		for _, m := range l {
			if id := m.ID(); seen[id] {
				continue
			} else {
				seen[id] = true
			}
			switch {
			case m.Severity != diag.Error:
				warnings = append(warnings, m)
			case m.Code == diag.NeedsFailed, m.Code == diag.ParcelLacks:
				needs = append(needs, m)
			default:
				own = append(own, m)
			}
		}
	}
	sort(s.said())
	slices.SortStableFunc(said, func(a, b spoken) int { return s.order(a.t, b.t) })
	better := map[string]bool{} // files of which a job says what is wrong; a team's processor may not know that it is their being empty
	for _, x := range said {
		before := len(own)
		sort(s.messagesOf(x.tr))
		for _, m := range own[before:] {
			better[m.File] = better[m.File] || s.p.isBuiltin(x.t.proc.info.Name)
		}
	}
	warnings = slices.DeleteFunc(warnings, func(m *diag.Message) bool { return m.Code == diag.EmptyFile && better[m.File] })
	if what := s.w.changed; what != "" {
		warnings = append(warnings, diag.Warningf(diag.SourceChanged, diag.Pos{}, "%s changed while it was used", what).WithHint("build again"))
	}
	return append(append(own, needs...), warnings...)
}

// save writes snapshot and database.
func (s *session) save(r *Report) error {
	next := &state.Image{Head: s.head(r), Sources: s.w.table}
	next.Whole = s.complete() && !r.Stopped && s.w.changed == "" && len(s.unplaced) == 0 && !s.goods.again && !s.passing() &&
		len(s.placeholders) == 0 // the next build looks whether they still have to stand
	next.Plain = s.plain()
	next.Notices = s.notices.encode()
	next.Pinned = slices.ContainsFunc(s.w.assets.Assets, func(a asset.Asset) bool { return a.Pinned() })
	s.saveOutputs(next)
	for _, name := range slices.Sorted(maps.Keys(s.w.tools)) {
		t := s.w.tools[name]
		if s.complete() && !t.found {
			continue // nobody looks for it any more
		}
		next.Tools = append(next.Tools, t.state(name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.w.vars)) {
		next.Variables = append(next.Variables, state.Variable{Name: name, Value: s.w.vars[name]})
	}
	s.saveTasks(next)
	s.leave()
	compacted := s.traces.Compact() // before the snapshot notes where traces are
	s.saveHeads(next)
	encoded := make(chan state.Tables, 1)                  // while the database is written
	s.w.outputs, s.known, s.before.outputs = nil, nil, nil // of a million assets, 300 MB
	go func() {
		t := state.EncodeTables(next)
		next.Outputs, next.Tasks, next.Edges = nil, nil, nil
		encoded <- t
	}()
	if r.Stopped {
		next.Mirrored = 0 // the database tells of a build before, and what it lacks is not kept track of
	} else {
		s.mirror(r, next)
	}
	tables, gone := <-encoded, s.p.stateGone()
	if gone != nil {
		return gone
	}
	if err := errors.Join(tables.Write(s.p.snapshotPath(), &next.Head), compacted); err != nil {
		return err
	}
	return s.end()
}

// head is what the snapshot says of a build besides its tables.
func (s *session) head(r *Report) state.Head {
	h := state.Head{
		Signature: s.signature(s.req.OnError), Project: s.p.text, Build: s.number,
		Totals: state.Totals{Assets: r.Summary.Assets, Jobs: r.Summary.Jobs, Failed: r.Summary.Failed, Products: r.Summary.Products, Bytes: r.Summary.Bytes},
	}
	if s.prev != nil {
		h.Mirrored = s.prev.Mirrored
	}
	h.Shipped = s.goods.files
	h.Messages = encode(slices.DeleteFunc(slices.Clone(r.Messages), func(m *diag.Message) bool { return m.Code == diag.StateDamaged }))
	return h
}

// end takes away the mark that a build is under way.
func (s *session) end() error {
	if s.w.untidy && s.p.removeTemps() != nil || s.untidy {
		return nil // the next build tries again
	}
	if s.p.booted() {
		if err := os.WriteFile(s.p.bootPath(), []byte(disk.BootID()), 0o666); err != nil {
			return err
		}
	}
	return removeAll(s.p.underWayPath())
}

// plain tells whether nothing is to be said but by jobs, kiln.toml and notices, and no two assets' ids collide.
func (s *session) plain() bool {
	collide := slices.ContainsFunc(s.w.assets.Assets, func(a asset.Asset) bool { return a.Collides != "" })
	return len(s.messages)+len(s.yielding) == 0 && !collide
}

func (t *tool) state(name string) state.Tool {
	return state.Tool{Name: name, Path: t.path, Stat: t.stat, Hash: t.hash}
}

// passing tells whether some job failed in a way that may pass, so that it must be tried again although nothing changes.
func (s *session) passing() bool {
	return slices.ContainsFunc(s.results, func(r *engine.Result) bool {
		return r.Trace != nil && r.Trace.ID == 0
	})
}

// saveOutputs notes all outputs as they are now. Those that are there although they should not be, or not as they should be, are
// noted without a stat, which none is equal to.
func (s *session) saveOutputs(next *state.Image) {
	next.Outputs = make([]state.Output, 0, len(s.w.outputs))
	for _, o := range s.w.outputs {
		next.Outputs = append(next.Outputs, o)
	}
	for f := range s.known {
		if _, ok := s.w.outputs[f]; !ok {
			next.Outputs = append(next.Outputs, state.Output{File: f})
		}
	}
	slices.SortFunc(next.Outputs, state.CompareOutputs)
}

// saveTasks notes which trace of each task holds now, and what these looked at. Keys of tasks that are no more, but of which there are traces,
// come last.
func (s *session) saveTasks(next *state.Image) {
	next.Tasks = make([]state.TaskState, 0, len(s.live))
	globs := map[string]int{}
	for _, t := range s.live {
		tr := s.traceOf(t)
		id, ok := s.held.Held(t.Key)
		if t.decided() {
			id, ok = tr.ID, true
		}
		if !ok {
			continue
		}
		t.kept = true
		number := len(next.Tasks)
		next.Tasks = append(next.Tasks, state.TaskState{Subject: t.subject(), Key: t.Key, Trace: id, Speaks: speaks(tr)})
		if tr != nil {
			next.Edges, next.Globs = addEdges(next.Edges, next.Globs, globs, tr, number)
		}
	}
	for _, k := range s.traces.Keys() {
		if t := s.w.byKey[k]; t == nil || !t.kept {
			next.Tasks = append(next.Tasks, state.TaskState{Key: k, Gone: true})
		}
	}
}

// saveHeads notes where in the log the traces are.
func (s *session) saveHeads(next *state.Image) {
	for i := range next.Tasks {
		next.Tasks[i].Head = s.traces.Head(next.Tasks[i].Key)
	}
	next.Log = s.traces.Mark()
}

// speaks tells whether a trace has something to say, or tells of a failure.
func speaks(tr *engine.Trace) bool {
	return tr != nil && (tr.Outcome != engine.Succeeded || len(tr.Messages) > 0)
}

// packersSubject stands for all assets that ask to have images packed: it is no name of any.
const packersSubject = "\x00packers"

// addEdges adds what a trace looked at.
func addEdges(edges []state.Edge, globs []state.Glob, known map[string]int, tr *engine.Trace, number int) ([]state.Edge, []state.Glob) {
	for i := range tr.Observations {
		o := &tr.Observations[i]
		switch o.Kind {
		case sawFile, sawExists:
			edges = append(edges, state.Edge{Subject: state.Subject(state.PathSubject, o.Subject), Task: number})
		case sawAsset:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, o.Subject), Task: number})
		case sawPackers:
			edges = append(edges, state.Edge{Subject: state.Subject(state.AssetSubject, packersSubject), Task: number})
		case engine.Outline:
			edges = append(edges, state.Edge{Subject: state.Subject(state.TaskSubject, o.Subject), Task: number})
		case sawGlob:
			at, ok := known[o.Subject]
			if !ok {
				at = len(globs)
				known[o.Subject] = at
				globs = append(globs, state.Glob{Pattern: o.Subject})
			}
			globs[at].Tasks = append(globs[at].Tasks, number)
		}
	}
	return edges, globs
}

// leave notes that the traces of tasks which the project has no more were used until now.
func (s *session) leave() {
	for _, was := range s.before.tasks {
		if !s.isLive(s.w.byKey[was.Key]) {
			if traces := s.traces.Traces(was.Key); len(traces) > 0 {
				s.traces.Use(was.Key, traces[0])
			}
		}
	}
}

// toolSame tells whether a program is where and what it was.
func toolSame(dir string, t state.Tool) bool {
	path := findTool(dir, t.Name)
	if path != t.Path || path == "" {
		return path == t.Path
	}
	st, err := statTool(path)
	return err == nil && st == t.Stat
}

func envHash(name string) digest.Hash {
	return valueHash(os.LookupEnv(name))
}

func valueHash(value string, ok bool) digest.Hash {
	if !ok {
		return digest.Hash{}
	}
	return digest.Build("env").Str("value", value).Sum()
}

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
