// Package build is where everything meets: it makes tasks of assets, has the engine bring them up to date,
// and keeps output tree, state and content database in step with what came of it. It only
// connects; what there is to know lives in the rooms it connects.
package build

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/memory"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/base/fingerprint"
	"github.com/kiln-pipeline/kiln/internal/content/asset"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/processor"
)

// contractVersion is part of every fingerprint: raised when the meaning of processor.Job changes so that all products
// must be made anew.
const contractVersion = 1

// Config is what a build is made of besides the project.
type Config struct {
	Dir        string                // of the project
	Version    string                // of Kiln, for people
	Processors []processor.Processor // Kiln's own
	Team       []processor.Processor // of a team's own kiln: files that both would have are theirs

	// State and Output are folders to use instead of the project's own; absolute, "" for the project's own. An audit builds beside them.
	State, Output string
}

// Project is an opened project.
type Project struct {
	*project.Project
	cfg      Config
	text     digest.Hash // of kiln.toml
	procs    map[string]*job.Installed
	builtin  []processor.Info // Kiln's own
	team     []processor.Info // of a team's own kiln
	own      []processor.Info // of the project file
	warnings diag.List
	lock     lock
	resident *resident // nil: nothing is kept between builds

	served func() *cas.Store // to look into
}

// Open reads the project file and makes ready its processors. The error is a diag.List.
func Open(cfg Config) (*Project, error) {
	p := &Project{cfg: cfg, procs: map[string]*job.Installed{}, lock: lock{turn: make(chan struct{}, 1)}}
	p.served = sync.OnceValue(func() *cas.Store { return cas.OpenReadOnly(p.casDir()) })
	for _, pr := range cfg.Processors {
		p.builtin = append(p.builtin, p.install(pr, ""))
	}
	program := fingerprint.This()
	for _, pr := range cfg.Team {
		code := fingerprint.Of(pr, program)
		p.team = append(p.team, p.install(pr, string(code.Way)+" "+code.Text))
		p.procs[pr.Info().Name].Code = code.Way
	}
	pf, l := project.Load(cfg.Dir)
	if err := l.Err(); err != nil {
		return nil, l
	}
	p.Project, p.warnings, p.text = pf, l, digest.Of(pf.Text) // of what was read, and not of what the file is by now
	if l := p.customs(); len(l) > 0 {
		return nil, l
	}
	return p, nil
}

func (p *Project) install(pr processor.Processor, code string) processor.Info {
	info := pr.Info()
	fp := digest.Build("processor").Str("contract", fmt.Sprint(contractVersion)).Str("name", info.Name).Str("version", fmt.Sprint(info.Version)).Str("code", code).Sum()
	p.procs[info.Name] = &job.Installed{Processor: pr, Info: info, Fingerprint: fp}
	return info
}

// joined takes apart what errors.Join made.
func joined(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// Team are the processors of a team's own kiln.
func (p *Project) Team() []processor.Processor { return p.cfg.Team }

// Processors lists what the project can use, with their settings.
func (p *Project) Processors() []processor.Info { return slices.Concat(p.builtin, p.team, p.own) }

// Clashes are the extensions that two processors of one rank claim.
func (p *Project) Clashes() []asset.Clash { return asset.Clashes(p.own, p.team, p.builtin) }

// isBuiltin tells whether a processor is Kiln's own.
func (p *Project) isBuiltin(name string) bool {
	return slices.ContainsFunc(p.builtin, func(i processor.Info) bool { return i.Name == name })
}

// OwnProcessor tells whether a processor comes from the project file.
func (p *Project) OwnProcessor(name string) bool {
	return slices.ContainsFunc(p.Project.Processors, func(c project.CustomProcessor) bool { return c.Name == name })
}

// Code tells what stands for the code of a processor of a team's own kiln; "" for another.
func (p *Project) Code(name string) fingerprint.Way {
	if pr := p.procs[name]; pr != nil {
		return pr.Code
	}
	return ""
}

// Fingerprint is the hash of a processor's code as this project sees it.
func (p *Project) Fingerprint(name string) digest.Hash {
	if pr := p.procs[name]; pr != nil {
		return pr.Fingerprint
	}
	return digest.Hash{}
}

// PlatformNames in the order of the project file.
func (p *Project) PlatformNames() []string {
	names := make([]string, len(p.Platforms))
	for i := range p.Platforms {
		names[i] = p.Platforms[i].Name
	}
	return names
}

// Files of Kiln's own in the project.
func (p *Project) stateDir() string {
	if p.cfg.State != "" {
		return p.cfg.State
	}
	return filepath.Join(p.Dir, project.StateFolder)
}

func (p *Project) casDir() string       { return filepath.Join(p.stateDir(), "cas") }
func (p *Project) tracesPath() string   { return filepath.Join(p.stateDir(), "traces") }
func (p *Project) snapshotPath() string { return filepath.Join(p.stateDir(), "snapshot") }
func (p *Project) lockPath() string     { return filepath.Join(p.stateDir(), "lock") }
func (p *Project) scratchDir() string   { return filepath.Join(p.stateDir(), "tmp") }

// OpenBlob opens what is kept of a product, by its hash. What is not that any more is an error.
func (p *Project) OpenBlob(h digest.Hash) (*os.File, error) {
	return p.served().OpenFile(h)
}

// underWayPath is of a file that is there while a build changes outputs: if it is there before one, the build before was killed.
func (p *Project) underWayPath() string { return filepath.Join(p.stateDir(), "underway") }

// bootPath is of a file that says since which start of the system builds came to their ends: what one before wrote may not all be on the
// disk.
func (p *Project) bootPath() string { return filepath.Join(p.stateDir(), "boot") }

// underWay tells whether the build before may not have come to its end, on the disk.
func (p *Project) underWay() bool {
	_, err := os.Lstat(p.underWayPath())
	return err == nil || p.booted()
}

// booted tells whether the system was started anew since the build before.
func (p *Project) booted() bool {
	since, err := disk.ReadFile(p.bootPath())
	return err != nil || string(since) != disk.BootID()
}

// DatabasePath is where the content database is.
func (p *Project) DatabasePath() string { return filepath.Join(p.stateDir(), "content.db") }

// OutputDir is the output folder, absolute.
func (p *Project) OutputDir() string {
	if p.cfg.Output != "" {
		return p.cfg.Output
	}
	return filepath.Join(p.Dir, filepath.FromSlash(p.Output))
}

// roots are the source roots, absolute and without symbolic links in them.
func (p *Project) roots() ([]string, diag.List) {
	var roots []string
	var l diag.List
	for i, r := range p.Roots {
		abs := filepath.Join(p.Dir, filepath.FromSlash(r.Path))
		real, err := filepath.EvalSymlinks(abs)
		if info, serr := os.Stat(abs); err != nil || serr != nil || !info.IsDir() {
			l = append(l, p.noRoot(i))
			continue
		}
		roots = append(roots, filepath.ToSlash(real))
	}
	return roots, l
}

// noRoot says that a source root is no folder.
func (p *Project) noRoot(i int) *diag.Message {
	r := &p.Roots[i]
	return r.Span.Errorf(diag.RootMissing, "source root %q is not a folder", r.Path).WithHint("make the folder, or change `roots`")
}

// prefixes are what stands before a source path for people, by root.
func (p *Project) prefixes() []string {
	out := make([]string, len(p.Roots))
	for i, r := range p.Roots {
		if r.Path != "." {
			out[i] = strings.TrimSuffix(r.Path, "/") + "/"
		}
	}
	return out
}

// makeStateDir makes the folder for Kiln's state, which version control is told to pass over.
func (p *Project) makeStateDir() error {
	if err := os.MkdirAll(p.stateDir(), 0o777); err != nil {
		return err
	}
	ignore := filepath.Join(p.stateDir(), ".gitignore")
	if _, err := os.Lstat(ignore); err == nil {
		return nil
	}
	return disk.Save(ignore, []byte("*\n"))
}

func (p *Project) workers(wanted int) int {
	if wanted > 0 {
		return wanted
	}
	if p.Project.Build.Workers > 0 {
		return p.Project.Build.Workers
	}
	return cores
}

// cores is what Go found at first: the processors that this process may use. Who runs programs gives Go more of them.
var cores = runtime.GOMAXPROCS(0)

// extra is how many jobs more run while programs do, if nobody said how many. A program waits, for its disk or for Kiln to take what it made, and
// a core with it: 10,000 `cp`s on two cores left 14% of the time unused, and leave 7% with one job more.
func (p *Project) extra(wanted int) int {
	if wanted > 0 || p.Project.Build.Workers > 0 {
		return 0
	}
	return 1
}

// memoryLimit is what running jobs may need together: what the project says, or three quarters of the machine's memory.
func (p *Project) memoryLimit() int64 {
	if p.Project.Build.Memory > 0 {
		return p.Project.Build.Memory
	}
	return memory.Physical() / 4 * 3
}
