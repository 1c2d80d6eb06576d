// Package workspace is an open project: its project file, its processors, where its files are, its lock, and
// what stays in memory between builds. It compares what the last build left with the disk; it does not
// build.
package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/base/memory"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/command"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/processor"
)

// contractVersion is part of every fingerprint. It is raised when the meaning of processor.Job changes in a
// way that requires all products to be rebuilt.
const contractVersion = 1

// Config is the input of a build besides the project.
type Config struct {
	Dir        string                // the project folder
	Version    string                // of Kiln, for display
	Processors []processor.Processor // built-in processors
	Team       []processor.Processor // processors of a team's own kiln: they have precedence for files that both accept

	Set map[string]string // values of the project's variables, by name

	Stages []string // stages of the build: rules of other stages are ignored

	// State and Output are folders to use instead of the project's own; absolute, "" for the project's own. An audit
	// uses them.
	State, Output string

	// Outside are folders into which links in the project may lead, absolute: the user has allowed Kiln to write there.
	Outside []string

	// Cache returns where results are shared, given the project file's settings; nil, or a nil Place: nowhere.
	Cache func(project.Cache) (*sharing.Place, error)
	// Execution returns where jobs run besides this machine, in the same way.
	Execution func(project.Execution) (*farm.Place, error)
}

// Workspace is an open project.
type Workspace struct {
	*project.Project
	Config      Config
	Text        digest.Hash // hash of kiln.toml
	Procs       map[string]*job.Installed
	Builtin     []processor.Info // built-in processors
	TeamInfos   []processor.Info // processors of a team's own kiln
	CustomInfos []processor.Info // processors that the project file declares
	Warnings    diag.List
	lock        lock
	place       *sharing.Place // where results are shared; nil: nowhere
	farm        *farm.Farm     // nil: jobs run only here
	Resident    *resident      // nil: nothing stays in memory between builds

	programs *command.Programs // runs programs for jobs

	served   func() *cas.Store       // for reading
	teamCode func() map[string]*code // what the team's processors are made of, found when first needed
}

// Open reads the project file and prepares its processors. The error is a diag.List.
func Open(cfg Config) (*Workspace, error) {
	p := &Workspace{Config: cfg, Procs: map[string]*job.Installed{}, lock: lock{turn: make(chan struct{}, 1)}}
	p.served = sync.OnceValue(func() *cas.Store { return cas.OpenReadOnly(p.CasDir()) })
	p.teamCode = sync.OnceValue(p.findTeamCode)
	p.compiledIn()
	pf, l := project.Load(cfg.Dir, project.Given{Set: cfg.Set, Kiln: cfg.Version})
	if err := l.Err(); err != nil {
		return nil, l
	}
	p.Project, p.Warnings, p.Text = pf, l, digest.Of(pf.Text) // hash of what was read; the file may have changed since
	if err := p.checkState(); err != nil {                    // scripts and modules are kept there
		return nil, p.OwnFiles(err)
	}
	p.programs = command.NewPrograms(p.ownFolders())
	if l := p.customs(); len(l) > 0 {
		return nil, l
	}
	if cfg.Cache != nil {
		var err error
		if p.place, err = cfg.Cache(pf.Cache); err != nil {
			return nil, err
		}
		if p.place != nil {
			p.place.Remember(filepath.Join(p.StatePlace(), "cache-hidden"))
		}
	}
	if cfg.Execution != nil {
		place, err := cfg.Execution(pf.Execution)
		if err != nil {
			return nil, err
		}
		if place != nil {
			p.farm = farm.New(place, p.Config.Version, p.programHash(), p.carried)
		}
	}
	return p, nil
}

// compiledIn installs the processors that are compiled into this kiln.
func (p *Workspace) compiledIn() {
	for _, pr := range p.Config.Processors {
		p.Builtin = append(p.Builtin, p.install(pr, ""))
	}
	program := fingerprint.This()
	for _, pr := range p.Config.Team {
		code := fingerprint.Of(pr, program)
		p.TeamInfos = append(p.TeamInfos, p.install(pr, string(code.Way)+" "+code.Text))
		p.Procs[pr.Info().Name].Code = code.Way
	}
}

func (p *Workspace) install(pr processor.Processor, code string) processor.Info {
	info := pr.Info()
	fp := digest.Build("processor").Str("contract", fmt.Sprint(contractVersion)).Str("name", info.Name).Str("version", fmt.Sprint(info.Version)).Str("code", code).Sum()
	p.Procs[info.Name] = &job.Installed{Processor: pr, Info: info, Fingerprint: fp}
	return info
}

// joined splits an error of errors.Join.
func joined(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// Team are the processors of a team's own kiln.
func (p *Workspace) Team() []processor.Processor { return p.Config.Team }

// Processors lists the processors of the project, with their settings.
func (p *Workspace) Processors() []processor.Info {
	return slices.Concat(p.Builtin, p.TeamInfos, p.CustomInfos)
}

// Clashes are the extensions that two processors of the same rank accept.
func (p *Workspace) Clashes() []asset.Clash {
	return asset.Clashes(p.CustomInfos, p.TeamInfos, p.Builtin)
}

// IsBuiltin reports whether a processor is built in.
func (p *Workspace) IsBuiltin(name string) bool {
	return slices.ContainsFunc(p.Builtin, func(i processor.Info) bool { return i.Name == name })
}

// OwnProcessor reports whether the project file declares a processor.
func (p *Workspace) OwnProcessor(name string) bool {
	return slices.ContainsFunc(p.Project.Processors, func(c project.CustomProcessor) bool { return c.Name == name })
}

// Code returns how the code of a processor of a team's own kiln is fingerprinted; "" for other
// processors.
func (p *Workspace) Code(name string) fingerprint.Way {
	if pr := p.Procs[name]; pr != nil {
		return pr.Code
	}
	return ""
}

// Fingerprint is the hash of a processor's code in this project.
func (p *Workspace) Fingerprint(name string) digest.Hash {
	if pr := p.Procs[name]; pr != nil {
		return pr.Fingerprint
	}
	return digest.Hash{}
}

// PlatformNames in the order of the project file.
func (p *Workspace) PlatformNames() []string {
	names := make([]string, len(p.Platforms))
	for i := range p.Platforms {
		names[i] = p.Platforms[i].Name
	}
	return names
}

// Beside returns the project with its state and output in other folders.
func (p *Workspace) Beside(state, output string) *Workspace {
	q := *p
	q.Config.State, q.Config.Output = state, output
	return &q
}

// Kiln's own files in the project.

// StatePlace is the folder of Kiln's state, whether it exists or not.
func (p *Workspace) StatePlace() string {
	if p.Config.State != "" {
		return p.Config.State
	}
	return filepath.Join(p.Dir, project.StateFolder)
}

func (p *Workspace) CasDir() string       { return filepath.Join(p.StatePlace(), "cas") }
func (p *Workspace) TracesPath() string   { return filepath.Join(p.StatePlace(), "traces") }
func (p *Workspace) SnapshotPath() string { return filepath.Join(p.StatePlace(), "snapshot") }
func (p *Workspace) HeldPath() string     { return filepath.Join(p.StatePlace(), "held.json") } // see job.Held
func (p *Workspace) lockPath() string     { return filepath.Join(p.StatePlace(), "lock") }
func (p *Workspace) KeptDir() string      { return filepath.Join(p.StatePlace(), "kept") } // folders of commands that failed
func (p *Workspace) ScratchDir() string   { return filepath.Join(p.StatePlace(), "tmp") }

// OpenBlob opens the stored content of a product, by its hash. If the content was changed, it
// returns an error.
func (p *Workspace) OpenBlob(h digest.Hash) (*os.File, error) {
	return p.served().OpenFile(h)
}

// BlobFile is the path of a blob, relative to the project folder, whether the blob exists or not.
func (p *Workspace) BlobFile(h digest.Hash) string {
	rel, err := filepath.Rel(p.Dir, p.served().Path(h))
	if err != nil {
		return p.served().Path(h)
	}
	return filepath.ToSlash(rel)
}

// UnderWayPath is a file that exists while a build changes outputs. If it exists at the start of a build, the build
// before was killed.
func (p *Workspace) UnderWayPath() string { return filepath.Join(p.StatePlace(), "underway") }

// BootPath is a file with the start of the system during which builds finished. What was written before another start
// may not all be on disk.
func (p *Workspace) BootPath() string { return filepath.Join(p.StatePlace(), "boot") }

// UnderWay reports whether the build before may not have finished writing.
func (p *Workspace) UnderWay() bool {
	_, err := os.Lstat(p.UnderWayPath())
	return err == nil || p.Booted()
}

// versionPath is a file with the version of the Kiln that built last.
func (p *Workspace) versionPath() string { return filepath.Join(p.StatePlace(), "version") }

// Before returns the version of the Kiln that built last, if it is another than this; "" if it is not, or not known.
func (p *Workspace) Before() string {
	text, err := disk.ReadText(p.versionPath(), 1<<10)
	if was := strings.TrimSpace(string(text)); err == nil && was != p.Config.Version {
		return was
	}
	return ""
}

// SaveVersion records the version of this Kiln.
func (p *Workspace) SaveVersion() error {
	if text, err := disk.ReadText(p.versionPath(), 1<<10); err == nil && string(text) == p.Config.Version {
		return nil
	}
	return os.WriteFile(p.versionPath(), []byte(p.Config.Version), 0o666)
}

// Booted reports whether the system has started again since the build before.
func (p *Workspace) Booted() bool {
	since, err := disk.ReadFile(p.BootPath())
	return err != nil || string(since) != disk.BootID()
}

// DatabasePath is the path of the content database.
func (p *Workspace) DatabasePath() string { return filepath.Join(p.StatePlace(), "content.db") }

// OutputDir is the output folder, absolute.
func (p *Workspace) OutputDir() string {
	if p.Config.Output != "" {
		return p.Config.Output
	}
	return filepath.Join(p.Dir, filepath.FromSlash(p.Output))
}

// realRoots are the source roots, absolute, with symbolic links resolved.
func (p *Workspace) realRoots() ([]string, diag.List) {
	var roots []string
	var l diag.List
	for i, r := range p.Roots {
		abs := r.Dir(p.Dir)
		real, err := filepath.EvalSymlinks(abs)
		if info, serr := os.Stat(abs); err != nil || serr != nil || !info.IsDir() {
			l = append(l, p.NoRoot(i))
			continue
		}
		roots = append(roots, filepath.ToSlash(real))
	}
	if len(l) == 0 {
		l = p.apart(roots)
	}
	return roots, l
}

// apart returns errors for named roots that contain other roots, or are in them or in the output folder. For roots
// without a name, their paths are checked elsewhere.
func (p *Workspace) apart(roots []string) (l diag.List) {
	in := func(a, b string) bool { return a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/") }
	for i := range p.Roots {
		r := &p.Roots[i]
		for k := range p.Roots {
			other := &p.Roots[k]
			if i != k && (r.Name != "" && k < i || r.Name != "" && other.Name == "") && (in(roots[i], roots[k]) || in(roots[k], roots[i])) {
				l = append(l, r.Span.Errorf(diag.FoldersOverlap, "source root %q overlaps source root %q", r.Path, other.Path).
					WithHint("roots overlay each other file by file, so they lie side by side"))
			}
		}
		if output := allNames(p.OutputDir()); in(roots[i], filepath.ToSlash(output[len(output)-1])) {
			l = append(l, r.Span.Errorf(diag.FoldersOverlap, "source root %q lies in the output", r.Path).WithHint("put source files in a folder of their own"))
		}
	}
	return l
}

// NoRoot returns the message for a source root that is not a folder.
func (p *Workspace) NoRoot(i int) *diag.Message {
	r := &p.Roots[i]
	return r.Span.Errorf(diag.RootMissing, "source root %q is not a folder", r.Path).WithHint("make the folder, or change `roots`")
}

// Prefixes returns the prefix of displayed source paths, by root.
func (p *Workspace) Prefixes() []string {
	out := make([]string, len(p.Roots))
	for i, r := range p.Roots {
		out[i] = r.Prefix()
	}
	return out
}

// MakeStateDir creates the folder for Kiln's state, and has git ignore it. It returns an error if a link leads out of it.
func (p *Workspace) MakeStateDir() error {
	if err := p.checkState(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.StatePlace(), 0o777); err != nil {
		return err
	}
	return ignoreAll(p.StatePlace())
}

// ignoreAll has git ignore everything in a folder.
func ignoreAll(dir string) error {
	ignore := filepath.Join(dir, ".gitignore")
	if _, err := os.Lstat(ignore); err == nil {
		return nil
	}
	return disk.Save(ignore, []byte("*\n"))
}

// Workers returns how many jobs run at once if this number is requested; 0 leaves it to the project.
func (p *Workspace) Workers(wanted int) int {
	if wanted > 0 {
		return wanted
	}
	if p.Project.Build.Workers > 0 {
		return p.Project.Build.Workers
	}
	return cores
}

// cores is Go's initial number of processors, which this process may use. Builds that run programs give Go
// more.
var cores = runtime.GOMAXPROCS(0)

// Extra returns how many more jobs run while programs do, if no number was requested. A program waits, for
// its disk or for Kiln to take what it made, and its core waits with it: 10,000 `cp`s on two cores left
// 14% of the time unused, and 7% with one job more.
func (p *Workspace) Extra(wanted int) int {
	if wanted > 0 || p.Project.Build.Workers > 0 {
		return 0
	}
	return 1
}

// MemoryLimit is how much memory running jobs may need together: the project's setting, or three quarters of the
// machine's memory.
func (p *Workspace) MemoryLimit() int64 {
	if p.Project.Build.Memory > 0 {
		return p.Project.Build.Memory
	}
	return memory.Physical() / 4 * 3
}

// Signature is a hash of everything that decides what is built, except files.
func (p *Workspace) Signature(onError string, locked bool) digest.Hash {
	b := digest.Build("signature").Str("kiln", p.Config.Version).Hash("project", p.Text)
	for _, s := range slices.Sorted(slices.Values(p.Config.Stages)) {
		b.Str("stage", s)
	}
	for _, v := range p.Names.Vars() {
		b.Str("variable", v.String())
	}
	for _, i := range p.Processors() {
		b.Str("processor", i.Name).Hash("fingerprint", p.Procs[i.Name].Fingerprint)
	}
	if onError != "" {
		b.Str("on-error", onError)
	}
	if locked {
		b.Str("ids", "locked")
	}
	return b.Sum()
}
