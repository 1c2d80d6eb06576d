package workspace

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/state"
)

// A project that is kept open between builds holds the snapshot in memory: as the last build left it, which
// is what the file on disk says. Nothing is read again then, as long as no other process has written that
// file. The caller that keeps it watches the files, so that builds need not check them (ByWatch).

// resident is what a project holds between builds.
type resident struct {
	snap *state.Snapshot
	stat source.Stat // of the file, when snap was what it said

	Spare []source.File // of a table that is not used any more: 9 MB at 100,000 files, which would be garbage of each build
}

// Keep has the project hold what it knows from build to build.
func (p *Workspace) Keep() {
	if p.Resident == nil {
		p.Resident = &resident{}
	}
}

// Holds reports whether the next build can use the snapshot that is held: another process may have built
// since.
func (p *Workspace) Holds() bool {
	if p.Resident == nil || p.Resident.snap == nil {
		return false
	}
	st, _, err := source.StatPath(p.SnapshotPath())
	return err == nil && st == p.Resident.stat
}

// Take returns the snapshot that is held, for one build: if that does not finish, it is read again.
func (p *Workspace) Take() *state.Snapshot {
	if !p.Holds() {
		return nil
	}
	snap := p.Resident.snap
	p.Resident.snap = nil
	return snap
}

// Peek gives a copy of what is held, for a look: it may learn hashes, which what is held must not know before the disk does.
func (p *Workspace) Peek() *state.Snapshot {
	if !p.Holds() {
		return nil
	}
	snap, t := *p.Resident.snap, p.Resident.snap.Sources
	snap.Sources = &source.Table{Roots: t.Roots, Folders: t.Folders, Files: slices.Clone(t.Files)}
	return &snap
}

func (k *resident) Put(p *Workspace, snap *state.Snapshot) {
	if st, _, err := source.StatPath(p.SnapshotPath()); err == nil {
		k.snap, k.stat = snap, st
	}
}

// Writes reports whether a build may write a path itself: its outputs, and what is in the state folder.
func (p *Workspace) Writes(file string) bool {
	rel, err := filepath.Rel(p.StatePlace(), file)
	return err == nil && filepath.IsLocal(rel) || p.isOutput(file)
}

// isOutput reports whether a path is the output folder, or below it, or a file that is shipped elsewhere.
func (p *Workspace) isOutput(file string) bool {
	if rel, err := filepath.Rel(p.OutputDir(), file); err == nil && filepath.IsLocal(rel) {
		return true
	}
	return slices.ContainsFunc(p.ShippedOutside(), func(f string) bool {
		at := p.ShippedPath(f)
		return file == at || file == disk.Temp(at)
	})
}

// OwnSame reports whether paths are files that builds write, below the output folder and elsewhere, and are
// as the snapshot that is held says: then it was that build which changed them. Of the output folder they may
// be folders, too. It needs no lock.
func (p *Workspace) OwnSame(paths []string) bool {
	if !p.Holds() || slices.ContainsFunc(paths, func(path string) bool { return !p.isOutput(path) }) {
		return false
	}
	snap := p.Resident.snap
	return len(p.CompareNamed(snap, paths, 0)) == 0 && p.shippedSame(snap, func(file string) bool {
		at := p.ShippedPath(file)
		return slices.ContainsFunc(paths, func(path string) bool { return at == path || strings.HasPrefix(at, path+string(filepath.Separator)) })
	})
}

// LinkTargets returns the files and folders that symbolic links below the source roots lead to, as of the
// build that is held: absolute, sorted. Those that are ignore files because of that are returned in ignore as
// well; they need not be there yet.
func (p *Workspace) LinkTargets() (targets, ignore []string) {
	if p.Resident == nil || p.Resident.snap == nil {
		return nil, nil
	}
	for _, link := range p.Resident.snap.Sources.Links() {
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

// OthersSame reports whether all that jobs observed besides files is as the snapshot that is held says.
func (p *Workspace) OthersSame() bool {
	return p.Holds() && p.WorldSame(p.Resident.snap)
}

// Unfinished reports whether a file in the output folder is one that a build is about to rename to its final
// name. It is a rule for package watch.
func (p *Workspace) Unfinished(path string, dir bool) bool {
	return !dir && strings.HasPrefix(filepath.Base(path), disk.TempPrefix)
}

// Variables returns the hashes of the environment variables that matter, by name: PATH, those that [vars] names, and those that jobs
// observed in the build that is held. The caller may change the map.
func (p *Workspace) Variables() map[string]string {
	all := map[string]string{"PATH": job.EnvHash("PATH").String()}
	for _, v := range p.Names.Vars() {
		if v.Env != "" {
			all[v.Env] = job.EnvHash(v.Env).String()
		}
	}
	if p.Resident != nil && p.Resident.snap != nil {
		for _, v := range p.Resident.snap.Variables {
			all[v.Name] = job.EnvHash(v.Name).String()
		}
	}
	return all
}

// SameVariables reports whether the variables of this process have these hashes.
func SameVariables(hashes map[string]string) bool {
	for name, h := range hashes {
		if job.EnvHash(name).String() != h {
			return false
		}
	}
	return true
}

// StateDir is the folder for Kiln's state, which is there then.
func (p *Workspace) StateDir() (string, error) { return p.StatePlace(), p.OwnFiles(p.MakeStateDir()) }

// Untidy reports whether Tidy has something to do.
func (p *Workspace) Untidy() bool {
	return p.Resident != nil && p.Resident.snap != nil && p.Resident.snap.Full()
}

// Tidy rewrites the snapshot if much was appended to it, so that no build has to: at 100,000 assets that
// takes 0.15 s. If another kiln is at work it does nothing.
func (p *Workspace) Tidy(ctx context.Context) error {
	if !p.Untidy() || p.Lock(ctx, false, func() {}) != nil {
		return nil
	}
	defer p.Unlock()
	snap := p.Take()
	if snap == nil {
		return p.Read()
	}
	im, err := snap.Image()
	if err == nil {
		err = state.WriteSnapshot(p.SnapshotPath(), im)
	}
	return errors.Join(err, p.Read())
}

// Read reads what builds want to hold, so that the next one need not.
func (p *Workspace) Read() error {
	if p.Resident == nil || p.Holds() {
		return nil
	}
	before, _, err := source.StatPath(p.SnapshotPath())
	if err != nil {
		return err
	}
	snap, _, err := state.ReadSnapshot(p.SnapshotPath())
	if snap == nil || err != nil {
		return err
	}
	if _, err := snap.Tasks(); err != nil {
		return err
	}
	if p.Resident.Put(p, snap); p.Resident.stat != before { // another process wrote it meanwhile
		p.Resident.snap = nil
	}
	return nil
}

// Inputs is what a project is made of besides its source files: kiln.toml, the code of its processors, the programs that jobs run.
type Inputs struct {
	Files   []string // absolute
	Folders []string // with all below
	Others  []string // files that do not make the project be read again: programs that jobs run, kiln.ids, what is made of products
}

// And is both.
func (in Inputs) And(other Inputs) Inputs {
	return Inputs{slices.Concat(in.Files, other.Files), slices.Concat(in.Folders, other.Folders), slices.Concat(in.Others, other.Others)}
}

// Has reports whether others are among these.
func (in Inputs) Has(others Inputs) bool {
	all := func(has, want []string) bool {
		return !slices.ContainsFunc(want, func(p string) bool { return !slices.Contains(has, p) })
	}
	return all(in.Files, others.Files) && all(in.Folders, others.Folders) && all(in.Others, others.Others)
}

// NamedInputs are what a project's kiln.toml names, whether or not the project can be opened.
func NamedInputs(cfg Config) Inputs {
	pf, _ := project.Load(cfg.Dir, project.Given{Set: cfg.Set})
	if pf == nil {
		file, _ := filepath.Abs(filepath.Join(cfg.Dir, project.File))
		return Inputs{Files: []string{file}}
	}
	return (&Workspace{Project: pf}).Inputs()
}

// Inputs are the project's. Others are those of the build that is held.
func (p *Workspace) Inputs() Inputs {
	in := Inputs{Files: []string{filepath.Join(p.Dir, project.File)}}
	for _, name := range p.RootNames() { // one that is a link may be made to lead elsewhere
		if target, err := os.Readlink(name); err == nil && target != "" {
			in.Files = append(in.Files, name)
		}
	}
	abs := func(path string) string { return filepath.Join(p.Dir, filepath.FromSlash(path)) }
	for _, c := range p.Project.Processors {
		switch {
		case c.Script != "":
			if pr := p.Procs[c.Name]; pr != nil {
				for _, m := range slices.Sorted(maps.Keys(sources(pr.Processor))) {
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
	if p.Resident != nil && p.Resident.snap != nil {
		for _, f := range p.Resident.snap.Shipped {
			in.Others = append(in.Others, p.ShippedPath(f.File))
		}
		for _, t := range p.Resident.snap.Tools {
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
func (p *Workspace) SourceRoots() []string {
	roots := p.RootNames()
	for i := range roots {
		if real, err := filepath.EvalSymlinks(roots[i]); err == nil {
			roots[i] = real
		}
	}
	return roots
}

// Passes returns the rules of what a scan of the source files passes over.
func (p *Workspace) Passes() *source.Passes {
	o, _ := p.ScanOptions() // a root that is missing holds nothing
	return source.NewPasses(o)
}

// LastMessages are those of the last build, root causes first.
func (p *Workspace) LastMessages() (diag.List, error) {
	snap, why, err := state.ReadSnapshot(p.SnapshotPath())
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, diag.Errorf(diag.StateDamaged, diag.Pos{File: ".kiln"}, "%s", why).WithHint("run `kiln build`")
	case snap == nil || snap.Build == 0:
		return nil, diag.Errorf(diag.ContentDBMissing, diag.Pos{}, "nothing was built yet").WithHint("run `kiln build`")
	}
	return diag.Decode[*diag.Message](snap.Messages), nil
}
