package build

import (
	"context"
	"errors"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/task"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// A project that is kept open between builds holds the snapshot in memory: as the last build left it, and what the file on disk says. Nothing is
// read again then, as long as nobody else has written that file. Whoever keeps it watches the files, so that builds need not look at them
// (ByWatch).

// resident is what a project holds between builds.
type resident struct {
	snap *state.Snapshot
	stat source.Stat // of the file, when snap was what it said

	spare []source.File // of a table that is not used any more: 9 MB at 100,000 files, which would be garbage of each build
}

// Keep has the project hold what it knows from build to build.
func (p *Project) Keep() {
	if p.resident == nil {
		p.resident = &resident{}
	}
}

// Holds tells whether the next build can go on with what is held: somebody else may have built since.
func (p *Project) Holds() bool {
	if p.resident == nil || p.resident.snap == nil {
		return false
	}
	st, _, err := source.StatPath(p.snapshotPath())
	return err == nil && st == p.resident.stat
}

// take hands out the snapshot that is held, for one build: if that does not come to its end it is read anew.
func (p *Project) take() *state.Snapshot {
	if !p.Holds() {
		return nil
	}
	snap := p.resident.snap
	p.resident.snap = nil
	return snap
}

// peek gives a copy of what is held, for a look: it may learn hashes, which what is held must not know before the disk does.
func (p *Project) peek() *state.Snapshot {
	if !p.Holds() {
		return nil
	}
	snap, t := *p.resident.snap, p.resident.snap.Sources
	snap.Sources = &source.Table{Roots: t.Roots, Folders: t.Folders, Files: slices.Clone(t.Files)}
	return &snap
}

func (k *resident) put(p *Project, snap *state.Snapshot) {
	if st, _, err := source.StatPath(p.snapshotPath()); err == nil {
		k.snap, k.stat = snap, st
	}
}

// Writes reports whether a build may write a path itself: its outputs, and what is in the state folder.
func (p *Project) Writes(file string) bool {
	rel, err := filepath.Rel(p.stateDir(), file)
	return err == nil && filepath.IsLocal(rel) || p.isOutput(file)
}

// isOutput reports whether a path is the output folder, or below it, or a file that is shipped elsewhere.
func (p *Project) isOutput(file string) bool {
	if rel, err := filepath.Rel(p.OutputDir(), file); err == nil && filepath.IsLocal(rel) {
		return true
	}
	return slices.ContainsFunc(p.shippedOutside(), func(f string) bool {
		at := p.shippedPath(f)
		return file == at || file == disk.Temp(at)
	})
}

// OwnSame tells whether paths are files that builds write, below the output folder and elsewhere, and as what is held says: then it was
// that build which changed them. Of the output folder they may be folders, too. It needs no lock.
func (p *Project) OwnSame(paths []string) bool {
	if !p.Holds() || slices.ContainsFunc(paths, func(path string) bool { return !p.isOutput(path) }) {
		return false
	}
	s := &session{p: p, prev: p.resident.snap, req: Request{Outputs: paths}}
	return len(s.compareNamed(paths)) == 0 && s.shippedSame(func(file string) bool {
		at := p.shippedPath(file)
		return slices.ContainsFunc(paths, func(path string) bool { return at == path || strings.HasPrefix(at, path+string(filepath.Separator)) })
	})
}

// LinkTargets are the files and folders that symbolic links below the source roots lead to, as of the build that is held: absolute, sorted. Those
// that are ignore files by it are told once more; they need not be there yet.
func (p *Project) LinkTargets() (targets, ignore []string) {
	if p.resident == nil || p.resident.snap == nil {
		return nil, nil
	}
	for _, link := range p.resident.snap.Sources.Links() {
		link = filepath.FromSlash(link)
		isIgnore := filepath.Base(link) == source.IgnoreFile
		real, err := filepath.EvalSymlinks(link)
		ok := err == nil
		if !ok && isIgnore {
			real, ok = source.Dangles(link)
		}
		if !ok || real == link {
			continue
		}
		targets = append(targets, real)
		if isIgnore {
			ignore = append(ignore, real)
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets), ignore
}

// OthersSame tells whether all that jobs looked at besides files is as what is held says.
func (p *Project) OthersSame() bool {
	return p.Holds() && (&session{p: p, prev: p.resident.snap}).worldSame()
}

// Unfinished tells whether a file in the output folder is one that a build is about to give its name. It is a rule for package watch.
func (p *Project) Unfinished(path string, dir bool) bool {
	return !dir && strings.HasPrefix(filepath.Base(path), disk.TempPrefix)
}

// Variables are the hashes of the environment variables that matter, by name: PATH, and those that jobs looked at in the build that is held. The map is
// the caller's.
func (p *Project) Variables() map[string]string {
	all := map[string]string{"PATH": job.EnvHash("PATH").String()}
	if p.resident != nil && p.resident.snap != nil {
		for _, v := range p.resident.snap.Variables {
			all[v.Name] = job.EnvHash(v.Name).String()
		}
	}
	return all
}

// SameVariables tells whether this process sees the same as one that has these hashes.
func SameVariables(hashes map[string]string) bool {
	for name, h := range hashes {
		if job.EnvHash(name).String() != h {
			return false
		}
	}
	return true
}

// StatePlace is where the folder for Kiln's state is, or was.
func (p *Project) StatePlace() string { return p.stateDir() }

// StateDir is the folder for Kiln's state, which is there then.
func (p *Project) StateDir() (string, error) { return p.stateDir(), p.ownFiles(p.makeStateDir()) }

// Untidy tells whether Tidy has something to do.
func (p *Project) Untidy() bool {
	return p.resident != nil && p.resident.snap != nil && p.resident.snap.Full()
}

// Tidy writes the snapshot anew if much was appended to it, so that no build need do it: at 100,000 assets that takes 0.15 s. If another kiln is at
// work it does nothing.
func (p *Project) Tidy(ctx context.Context) error {
	if !p.Untidy() || p.Lock(ctx, false, func() {}) != nil {
		return nil
	}
	defer p.Unlock()
	snap := p.take()
	if snap == nil {
		return p.Read()
	}
	im, err := snap.Image()
	if err == nil {
		err = state.WriteSnapshot(p.snapshotPath(), im)
	}
	return errors.Join(err, p.Read())
}

// Read reads what builds want to hold, so that the next one need not.
func (p *Project) Read() error {
	if p.resident == nil || p.Holds() {
		return nil
	}
	before, _, err := source.StatPath(p.snapshotPath())
	if err != nil {
		return err
	}
	snap, _, err := state.ReadSnapshot(p.snapshotPath())
	if snap == nil || err != nil {
		return err
	}
	if _, err := snap.Tasks(); err != nil {
		return err
	}
	if p.resident.put(p, snap); p.resident.stat != before { // somebody wrote it meanwhile
		p.resident.snap = nil
	}
	return nil
}

// trusting tells whether the build goes by what was watched. It does not if the build before is not the one since which was watched: then, and if there
// is none, everything is looked at.
func (s *session) trusting() bool {
	return s.req.Detect == ByWatch && s.prev != nil && !s.killed && s.prev.Project == s.p.text
}

// compareNamed compares those outputs that absolute paths name: files, and folders with all below.
func (s *session) compareNamed(paths []string) map[string]source.Presence {
	o := s.prev.Outputs
	names, named := map[string]map[string]bool{}, map[string]bool{} // files by folder; all
	for _, p := range paths {
		rel, err := filepath.Rel(s.p.OutputDir(), p)
		if rel = filepath.ToSlash(rel); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		named[rel] = true
		dir, name := path.Split(rel)
		if dir = strings.TrimSuffix(dir, "/"); names[dir] == nil {
			names[dir] = map[string]bool{}
		}
		names[dir][name] = true
	}
	var folders []int
	whole := map[int]bool{}
	for i := range o.Folders() {
		at := o.Path(i)
		if isIn(named, at) {
			folders, whole[i] = append(folders, i), true
		} else if names[at] != nil {
			folders = append(folders, i)
		}
	}
	return source.Compare(s.p.OutputDir(), len(folders), func(k int) (string, iter.Seq2[string, source.Stat]) {
		at, all := o.Folder(folders[k])
		if whole[folders[k]] {
			return at, all
		}
		return at, func(yield func(string, source.Stat) bool) {
			for name, st := range all {
				if names[at][name] && !yield(name, st) {
					return
				}
			}
		}
	}, s.p.workers(s.req.Workers))
}

// isIn tells whether a folder, or one that holds it, is in a set.
func isIn(set map[string]bool, folder string) bool {
	for ; folder != "." && folder != ""; folder = path.Dir(folder) {
		if set[folder] {
			return true
		}
	}
	return set["."]
}

// Inputs is what a project is made of besides its source files: kiln.toml, the code of its processors, the programs that jobs run.
type Inputs struct {
	Files   []string // absolute
	Folders []string // with all below
	Others  []string // files that the project is not read anew for: programs that jobs run, kiln.ids, what is made of products
}

// And is both.
func (in Inputs) And(other Inputs) Inputs {
	return Inputs{slices.Concat(in.Files, other.Files), slices.Concat(in.Folders, other.Folders), slices.Concat(in.Others, other.Others)}
}

// Has tells whether others are among these.
func (in Inputs) Has(others Inputs) bool {
	all := func(has, want []string) bool {
		return !slices.ContainsFunc(want, func(p string) bool { return !slices.Contains(has, p) })
	}
	return all(in.Files, others.Files) && all(in.Folders, others.Folders) && all(in.Others, others.Others)
}

// NamedInputs are what a project's kiln.toml names, whether or not the project can be opened.
func NamedInputs(dir string) Inputs {
	pf, _ := project.Load(dir)
	if pf == nil {
		file, _ := filepath.Abs(filepath.Join(dir, project.File))
		return Inputs{Files: []string{file}}
	}
	return (&Project{Project: pf}).Inputs()
}

// Inputs are the project's. Others are those of the build that is held.
func (p *Project) Inputs() Inputs {
	in := Inputs{Files: []string{filepath.Join(p.Dir, project.File)}}
	for _, name := range p.rootNames() { // one that is a link may be made to lead elsewhere
		if target, err := os.Readlink(name); err == nil && target != "" {
			in.Files = append(in.Files, name)
		}
	}
	abs := func(path string) string { return filepath.Join(p.Dir, filepath.FromSlash(path)) }
	for _, c := range p.Project.Processors {
		switch {
		case c.Script != "":
			if pr := p.procs[c.Name]; pr != nil {
				for _, m := range modules(pr.Processor) {
					in.Files = append(in.Files, abs(m))
				}
			}
			in.Files = append(in.Files, abs(c.Script))
			if dir := filepath.Dir(abs(c.Script)); dir != p.Dir {
				in.Folders = append(in.Folders, dir)
			}
		case c.Wasm != "":
			in.Files = append(in.Files, abs(c.Wasm))
		case c.WasmGo != "":
			in.Folders = append(in.Folders, abs(c.WasmGo))
		}
	}
	if p.resident != nil && p.resident.snap != nil {
		for _, f := range p.resident.snap.Shipped {
			in.Others = append(in.Others, p.shippedPath(f.File))
		}
		for _, t := range p.resident.snap.Tools {
			if file, _, ok := command.CachedLibrary(t.Path); ok {
				in.Others = append(in.Others, file)
				continue
			}
			if t.Path == "" {
				continue // there is none
			}
			in.Others = append(in.Others, t.Path)
			if real, err := filepath.EvalSymlinks(t.Path); err == nil && real != t.Path {
				in.Others = append(in.Others, real)
			}
		}
	}
	return in
}

// SourceRoots are the source roots, absolute and without symbolic links in them, those included that are not there.
func (p *Project) SourceRoots() []string {
	roots := p.rootNames()
	for i := range roots {
		if real, err := filepath.EvalSymlinks(roots[i]); err == nil {
			roots[i] = real
		}
	}
	return roots
}

// Passes makes the rule of what a look at the source files passes over.
func (p *Project) Passes() *source.Passes {
	o, _ := p.scanOptions() // a root that is missing holds nothing
	return source.NewPasses(o)
}

// Outcomes says which outcomes a report is to have.
type Outcomes uint8

const (
	NoOutcomes      Outcomes = iota
	ChangedOutcomes          // those of jobs that are not what they were before this build
	AllOutcomes              // everything is gone through for it
)

// Outcome is what became of a job, or of a part of one. Of a request, Asset is a name for people.
type Outcome struct {
	Asset, UUID, Platform, Part string
	Processor                   string // of one of an asset's further jobs, or of a part; "" for the first job
	Gone                        bool   // the project has it no more
	Failed                      bool
	Messages                    diag.List        // of its last run
	Products                    []engine.Product // what it has now, hidden ones left out; of a job that failed the last good ones, if these stay
}

func (s *session) outcome(t *job.Task, tr *engine.Trace, products []engine.Product) Outcome {
	o := Outcome{
		Asset: task.AssetText(t.Asset.ID), UUID: t.Asset.UUID, Platform: t.Platform, Part: t.Part,
		Processor: task.ParseSubject(t.Subject()).Processor, Messages: append(s.w.MessagesOf(tr), s.placeholderMessage(t)...),
	}
	o.Failed = tr != nil && tr.Outcome != engine.Succeeded
	for i := range products {
		if products[i].File != "" {
			o.Products = append(o.Products, products[i])
		}
	}
	return o
}

// goneOutcome is that of a task which is no more.
func goneOutcome(subject string) Outcome {
	s := task.ParseSubject(subject)
	return Outcome{Asset: task.AssetText(s.Asset), Platform: s.Platform, Part: s.Part, Processor: s.Processor, Gone: true}
}

// outcomes are those that the request wants to be told.
func (s *session) outcomes() (list []Outcome) {
	if s.req.Outcomes == NoOutcomes {
		return nil
	}
	was := make(map[string]uint64, len(s.before.tasks)) // trace by subject
	for _, ts := range s.before.tasks {
		was[ts.Subject] = ts.Trace
	}
	live := make(map[string]bool, len(s.live))
	for _, t := range s.live {
		subject := t.Subject()
		live[subject] = true
		products, settled := s.productsOf(t)
		tr := s.traceOf(t)
		if !t.Decided() && !settled {
			tr = s.good[t]
		}
		if tr == nil {
			continue // not built yet
		}
		if before, ok := was[subject]; s.req.Outcomes == AllOutcomes || !ok || before != tr.ID || tr.Outcome != engine.Succeeded {
			list = append(list, s.outcome(t, tr, products))
		}
	}
	for _, ts := range s.before.tasks {
		if !live[ts.Subject] {
			list = append(list, goneOutcome(ts.Subject))
		}
	}
	return list
}
