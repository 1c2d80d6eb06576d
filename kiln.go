// Package kiln is Kiln as a library. It builds the content of a game project:
//
//	p, err := kiln.Open("games/knights")
//	...
//	sum, err := p.Build(ctx, kiln.BuildOptions{Platforms: []string{"pc"}})
//
// And it is how a team makes a kiln of its own, with processors written in Go:
//
//	func main() { kiln.Main(kiln.With(tilemap.New())) }
package kiln

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/cli"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// Version of Kiln.
const Version = "0.1.0-dev"

// Option changes what a kiln is made of.
type Option func(*config)

type config struct {
	builtin, team []processor.Processor
}

// With adds a processor to Kiln's own. If one of these, or one that was added before, has the same name, it takes its place. It gets the
// files of its extensions before Kiln's own processors do, and after those that a project file declares.
func With(p processor.Processor) Option {
	name := p.Info().Name
	same := func(other processor.Processor) bool { return other.Info().Name == name }
	return func(c *config) {
		c.builtin, c.team = slices.DeleteFunc(c.builtin, same), append(slices.DeleteFunc(c.team, same), p)
	}
}

func newConfig(opts []Option) cli.Config {
	c := config{builtin: processors.All()}
	for _, o := range opts {
		o(&c)
	}
	return cli.Config{Processors: c.builtin, Team: c.team, Version: cli.ReadVersion(Version), Source: source}
}

// Main is the kiln command: it runs the command line of this process and ends it with the exit code.
func Main(opts ...Option) {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OSStreams(), newConfig(opts)))
}

// Message tells of something that is wrong: where, what, and what to do next. Its String is what the command prints.
type Message = diag.Message

// Project is an opened project. Several goroutines may use it: they take turns.
type Project struct{ p *build.Project }

// Open reads the project in dir, or in the nearest folder above it that has a kiln.toml. [Messages] takes the
// error apart.
func Open(dir string, opts ...Option) (*Project, error) {
	c := newConfig(opts)
	dir, err := project.Find(dir)
	if err != nil {
		return nil, err
	}
	p, err := build.Open(c.Project(dir))
	if err != nil {
		return nil, err
	}
	return &Project{p}, nil
}

// Messages are what an error of this package tells people.
func Messages(err error) []*Message { return diag.Messages(err, diag.Internal) }

// BuildOptions say what to build and how. The zero value builds everything that is out of date.
type BuildOptions struct {
	Patterns  []string // ids, paths, folders or globs of assets; all if empty
	Platforms []string // all if empty
	Workers   int      // jobs at once; 0: as the project says
	Force     bool     // run jobs although nothing changed
	FailFast  bool     // start nothing more after the first failure
	NoWait    bool     // fail with ErrBusy, instead of waiting, while another kiln or goroutine is at work in the project
}

// ErrBusy says that another kiln, or another goroutine, is at work in the project.
var ErrBusy = build.ErrBusy

// Summary is what became of a build.
type Summary struct {
	Assets   int
	Jobs     int           // an asset on a platform each
	Built    int           // jobs that ran
	Reused   int           // jobs whose last run still holds
	Failed   int           // jobs that failed, now or before
	Products int           // of all these jobs
	Bytes    int64         // of the products
	Took     time.Duration // wall time
	Messages []*Message    // root causes first
}

// Build brings products up to date. Assets that fail are no error: Summary.Failed counts them, Summary.Messages tells of
// them. If the context ends the build, what was finished is kept, and the error is the context's.
func (p *Project) Build(ctx context.Context, o BuildOptions) (Summary, error) {
	if err := p.p.Lock(ctx, !o.NoWait, func() {}); err != nil {
		return Summary{}, err
	}
	defer p.p.Unlock()
	r, err := p.p.Build(ctx, build.Request{
		Patterns: o.Patterns, Platforms: o.Platforms, Workers: o.Workers, Force: o.Force, FailFast: o.FailFast, Reporter: silent{},
	})
	if err == nil {
		err = ctx.Err()
	}
	if r == nil {
		return Summary{}, err
	}
	s := r.Summary
	return Summary{
		Assets: s.Assets, Jobs: s.Jobs, Built: s.Built, Reused: s.Reused, Failed: s.Failed, Products: s.Products, Bytes: s.Bytes,
		Took: time.Duration(s.Seconds * float64(time.Second)), Messages: r.Messages,
	}, err
}

// silent tells nobody.
type silent struct{}

func (silent) Planned(int)                             {}
func (silent) JobStarted(string)                       {}
func (silent) JobSuspended(string, []string, bool)     {}
func (silent) JobFinished(string, bool, time.Duration) {}
