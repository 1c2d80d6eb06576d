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

// A project that stays open between builds holds the snapshot in memory, equal to the file on disk. The
// snapshot is not read again as long as no other process has written that file. The caller that keeps the
// project open watches the files, so that builds need not check them (ByWatch).

// resident is what stays in memory between builds.
type resident struct {
	snap *state.Snapshot
	stat source.Stat // stat of the snapshot file that snap equals

	Spare []source.File // of an old table, to be reused: 9 MB at 100,000 files, which each build would otherwise allocate
}

// Keep makes the project keep state in memory from build to build.
func (p *Workspace) Keep() {
	if p.Resident == nil {
		p.Resident = &resident{}
	}
}

// Holds reports whether the next build can use the snapshot in memory: another process may have built
// since.
func (p *Workspace) Holds() bool {
	if p.Resident == nil || p.Resident.snap == nil {
		return false
	}
	st, _, err := source.StatPath(p.SnapshotPath())
	return err == nil && st == p.Resident.stat
}

// Take returns the snapshot in memory, for one build. If that build does not finish, the snapshot
// is read again.
func (p *Workspace) Take() *state.Snapshot {
	if !p.Holds() {
		return nil
	}
	snap := p.Resident.snap
	p.Resident.snap = nil
	return snap
}

// Peek returns a copy of the snapshot for inspection. An inspection may add hashes, which the snapshot in memory must
// not have before the disk does.
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

// Writes reports whether builds write a path themselves: outputs, and files in the state folder.
func (p *Workspace) Writes(file string) bool {
	rel, err := filepath.Rel(p.StatePlace(), file)
	return err == nil && filepath.IsLocal(rel) || p.isOutput(file)
}

// isOutput reports whether a path is the output folder, or below it, or a file that builds write
// elsewhere.
func (p *Workspace) isOutput(file string) bool {
	if rel, err := filepath.Rel(p.OutputDir(), file); err == nil && filepath.IsLocal(rel) {
		return true
	}
	return slices.ContainsFunc(p.ShippedOutside(), func(f string) bool {
		at := p.ShippedPath(f)
		return file == at || file == disk.Temp(at)
	})
}

// OwnSame reports whether paths are files that builds write, below the output folder or elsewhere, and equal
// the snapshot in memory: then that build changed them. Paths below the output folder may be folders. It
// needs no lock.
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

// LinkTargets returns the files and folders that symbolic links below the source roots lead to, from the
// snapshot in memory: absolute, sorted. Targets that are ignore files because of a link are also returned in
// ignore; they may not exist yet.
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

// OthersSame reports whether everything that jobs observed besides files equals the snapshot in memory.
func (p *Workspace) OthersSame() bool {
	return p.Holds() && p.WorldSame(p.Resident.snap)
}

// Unfinished reports whether a file in the output folder is a temporary file that a build will rename.
// Package watch uses it.
func (p *Workspace) Unfinished(path string, dir bool) bool {
	return !dir && strings.HasPrefix(filepath.Base(path), disk.TempPrefix)
}

// Variables returns the hashes of the relevant environment variables, by name: PATH, those that [vars] names, and those
// that jobs observed, from the snapshot in memory. The caller may change the map.
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

// StateDir creates the folder for Kiln's state if necessary, and returns it.
func (p *Workspace) StateDir() (string, error) { return p.StatePlace(), p.OwnFiles(p.MakeStateDir()) }

// Untidy reports whether Tidy has something to do.
func (p *Workspace) Untidy() bool {
	return p.Resident != nil && p.Resident.snap != nil && p.Resident.snap.Full()
}

// Tidy rewrites the snapshot if much was appended to it, so that builds need not: at 100,000 assets that
// takes 0.15 s. It does nothing while another kiln builds.
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

// Read reads the snapshot into memory, so that the next build need not.
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

// Inputs is what a project consists of besides its source files: kiln.toml, the code of its processors, the programs
// that jobs run.
type Inputs struct {
	Files   []string // absolute
	Folders []string // with everything below them
	Others  []string // files that do not require the project to be opened again: programs that jobs run, kiln.ids, files made from products
}

// And returns the union.
func (in Inputs) And(other Inputs) Inputs {
	return Inputs{slices.Concat(in.Files, other.Files), slices.Concat(in.Folders, other.Folders), slices.Concat(in.Others, other.Others)}
}

// Has reports whether all of others are among these.
func (in Inputs) Has(others Inputs) bool {
	all := func(has, want []string) bool {
		return !slices.ContainsFunc(want, func(p string) bool { return !slices.Contains(has, p) })
	}
	return all(in.Files, others.Files) && all(in.Folders, others.Folders) && all(in.Others, others.Others)
}

// NamedInputs are the inputs that a project's kiln.toml names. The project need not be valid.
func NamedInputs(cfg Config) Inputs {
	pf, _ := project.Load(cfg.Dir, project.Given{Set: cfg.Set, Kiln: cfg.Version})
	if pf == nil {
		file, _ := filepath.Abs(filepath.Join(cfg.Dir, project.File))
		return Inputs{Files: []string{file}}
	}
	return (&Workspace{Project: pf}).Inputs()
}

// Inputs are the project's inputs. Others come from the snapshot in memory.
func (p *Workspace) Inputs() Inputs {
	in := Inputs{Files: []string{filepath.Join(p.Dir, project.File)}}
	for _, name := range p.RootNames() { // if it is a link, the link may be changed
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

// SourceRoots are the source roots, absolute, with symbolic links resolved, including those that do not exist.
func (p *Workspace) SourceRoots() []string {
	roots := p.RootNames()
	for i := range roots {
		if real, err := filepath.EvalSymlinks(roots[i]); err == nil {
			roots[i] = real
		}
	}
	return roots
}

// Passes returns what a scan of the source files skips.
func (p *Workspace) Passes() *source.Passes {
	o, _ := p.ScanOptions() // a missing root contains nothing
	return source.NewPasses(o)
}

// LastMessages are the messages of the last build, root causes first.
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
