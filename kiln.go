// Package kiln is Kiln as a library. It builds the content of a game project, watches it, and answers questions about it:
//
//	p, err := kiln.Open("games/knights")
//	...
//	sum, err := p.Build(ctx, kiln.BuildOptions{Platforms: []string{"pc"}})
//
// A team also uses it to compile a kiln of its own, with processors written in Go:
//
//	func main() { kiln.Main(kiln.With(tilemap.New())) }
package kiln

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/secret"
	"github.com/kiln-pipeline/kiln/internal/cli"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/explain"
	"github.com/kiln-pipeline/kiln/internal/make/report"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	"github.com/kiln-pipeline/kiln/internal/store/contentdb"
	"github.com/kiln-pipeline/kiln/processor"
)

// Version of Kiln.
const Version = "0.1.0-dev"

// Option changes the processors of a kiln, or says how it reads projects.
type Option func(*config)

type config struct {
	builtin, team []processor.Processor
	set           map[string]string
	stages        []string
}

// Stages lets rules for these stages count, besides those for all.
func Stages(names ...string) Option {
	return func(c *config) { c.stages = append(c.stages, names...) }
}

// Set gives a value to a variable of the project file.
func Set(name, value string) Option {
	return func(c *config) {
		if c.set == nil {
			c.set = map[string]string{}
		}
		c.set[name] = value
	}
}

// With adds a processor to Kiln's own. It replaces a processor of the same name, built in or added before. It
// gets the files of its extensions before Kiln's own processors do, and after those that a project file
// declares.
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
	return cli.Config{Processors: c.builtin, Team: c.team, Version: cli.ReadVersion(Version), Source: source, Set: c.set, Stages: c.stages}
}

// Main is the kiln command: it runs the command line of this process and exits with its exit code.
func Main(opts ...Option) {
	secret.Hide() // before any program is started; `kiln doctor` reports why it failed
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OSStreams(), newConfig(opts)))
}

// Message is a problem: where it is, what is wrong, and what to do next. Its String method returns what the command prints.
type Message = diag.Message

// Project is an open project. Several goroutines may use it: builds run one after the other.
type Project struct {
	p   *build.Project
	cfg workspace.Config
}

// Open reads the project in dir, or in the nearest folder above it that has a kiln.toml. [Messages] splits the error into messages.
func Open(dir string, opts ...Option) (*Project, error) {
	c := newConfig(opts)
	dir, err := project.Find(dir)
	if err != nil {
		return nil, err
	}
	cfg := c.Project(dir)
	p, err := build.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Project{p, cfg}, nil
}

// Messages returns the messages in an error of this package.
func Messages(err error) []*Message { return diag.Messages(err, diag.Internal) }

// BuildOptions select what to build and how. The zero value builds everything that is out of date.
type BuildOptions struct {
	Patterns  []string // ids, paths, folders or globs of assets; all if empty
	Platforms []string // all if empty
	Workers   int      // number of jobs to run at once; 0: as the project says
	Force     bool     // run jobs although nothing changed
	FailFast  bool     // start no further jobs after the first failure
	NoWait    bool     // return ErrBusy, instead of waiting, while another kiln or goroutine uses the project
}

// ErrBusy reports that another kiln, or another goroutine, is using the project.
var ErrBusy = workspace.ErrBusy

// Summary is the result of a build.
type Summary struct {
	Assets   int
	Jobs     int           // one for each asset and platform
	Built    int           // jobs that ran
	Reused   int           // jobs that were up to date
	Failed   int           // jobs that failed, in this build or before
	Products int           // of all these jobs
	Bytes    int64         // of the products
	Took     time.Duration // wall time
	Messages []*Message    // root causes first
}

// Build brings products up to date. An asset that fails is not an error: Summary.Failed counts it and Summary.Messages has the reason.
// If ctx ends the build, finished work is kept, and the error is that of ctx.
func (p *Project) Build(ctx context.Context, o BuildOptions) (Summary, error) {
	if err := p.p.Lock(ctx, !o.NoWait, func() {}); err != nil {
		return Summary{}, err
	}
	defer p.p.Unlock()
	r, err := p.p.Build(ctx, o.request())
	if err == nil {
		err = ctx.Err()
	}
	return summary(r), err
}

func (o *BuildOptions) request() build.Request {
	return build.Request{
		Patterns: o.Patterns, Platforms: o.Platforms, Workers: o.Workers, Force: o.Force, FailFast: o.FailFast, Reporter: build.Silent{},
	}
}

func summary(r *report.Report) Summary {
	if r == nil {
		return Summary{}
	}
	s := r.Summary
	return Summary{
		Assets: s.Assets, Jobs: s.Jobs, Built: s.Built, Reused: s.Reused, Failed: s.Failed, Products: s.Products, Bytes: s.Bytes,
		Took: time.Duration(s.Seconds * float64(time.Second)), Messages: r.Messages,
	}
}

// Stale is a job that is out of date: an asset on a platform.
type Stale struct {
	Asset, Platform, Processor string
	Reason                     string // in words: "a.txt changed: ..."
	Maybe                      bool   // the job runs only if the products of another stale job change
}

// NeedsRebuild lists the jobs that [Project.Build] would run with the same options, sorted by asset and platform. It runs nothing, writes
// nothing and does not wait for other users of the project. FailFast and NoWait have no effect.
func (p *Project) NeedsRebuild(ctx context.Context, o BuildOptions) ([]Stale, error) {
	q, err := build.Open(p.cfg) // of its own: a build of p may be running
	if err != nil {
		return nil, err
	}
	req := o.request()
	req.DryRun = true
	r, err := q.Build(ctx, req)
	if err != nil {
		return nil, err
	}
	var stale []Stale
	for _, j := range r.Jobs {
		if (j.State == engine.WouldRun || j.State == engine.Undecided) && j.Part == "" && !j.Request {
			stale = append(stale, Stale{j.Asset, j.Platform, j.Processor, explain.Reason(j.Why), j.State == engine.Undecided})
		}
	}
	slices.SortStableFunc(stale, func(a, b Stale) int {
		return cmp.Or(cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Platform, b.Platform))
	})
	return stale, ctx.Err()
}

// WatchOptions select what [Project.Watch] builds and how.
type WatchOptions struct {
	Platforms []string      // all if empty
	Workers   int           // number of jobs to run at once; 0: as the project says
	Quiet     time.Duration // how long a file must be unchanged before it is built; 0: 25 ms
	Poll      time.Duration // if not 0, compare all files this often instead of using the notifications of the system
}

// Update is the result of a build in [Project.Watch].
type Update struct {
	Summary          // zero if Err is set
	Paths   []string // the files that changed, relative to the project folder; empty for the first build, and when everything was checked
	Changed []string // output files that were written or removed, relative to the output folder
	Err     error    // why there was no build, for example a mistake in kiln.toml; [Messages] splits it
}

// Watch builds, then builds again whenever a file of the project changes, until ctx ends; the error is then
// that of ctx. An asset that fails keeps its last good products. Watch calls f once for each build, in order,
// from one goroutine; f may use the project.
func (p *Project) Watch(ctx context.Context, o WatchOptions, f func(Update)) error {
	s, err := session.Open(session.Config{Build: p.cfg, Platforms: o.Platforms, Workers: o.Workers, Quiet: o.Quiet, Poll: o.Poll})
	if err != nil {
		return err
	}
	updates := make(chan Update)
	var calling sync.WaitGroup
	calling.Go(func() { deliver(updates, f) })
	stop := s.Follow(func(e session.Event) {
		if end, ok := e.(session.Ended); ok {
			updates <- newUpdate(&end)
		}
	})
	err = s.Run(ctx)
	stop()
	close(updates)
	calling.Wait()
	return err
}

// deliver calls f with updates. It always takes the next one at once, so that a slow f does not hold up builds.
func deliver(updates <-chan Update, f func(Update)) {
	next := make(chan Update)
	var calling sync.WaitGroup
	calling.Go(func() {
		for u := range next {
			f(u)
		}
	})
	var queue []Update
	for updates != nil || len(queue) > 0 {
		var out chan Update
		var first Update
		if len(queue) > 0 {
			out, first = next, queue[0]
		}
		select {
		case u, ok := <-updates:
			if !ok {
				updates = nil
				continue
			}
			queue = append(queue, u)
		case out <- first:
			queue = queue[1:]
		}
	}
	close(next)
	calling.Wait()
}

func newUpdate(e *session.Ended) Update {
	u := Update{Summary: summary(e.Report), Paths: e.Paths, Err: e.Err}
	for i := range e.Products {
		if file := e.Products[i].File; file != "" {
			u.Changed = append(u.Changed, file)
		}
	}
	return u
}

// Table is the answer to a query.
type Table struct {
	Columns []string
	Rows    [][]any // int64, float64, string, []byte or nil
}

// Query runs a query of the content database, which describes the last finished build: a named query with its arguments, such as
// "asset-products", or one SQL statement that reads. It does not wait for a build that is running.
func (p *Project) Query(ctx context.Context, query string, args ...string) (Table, error) {
	db, err := contentdb.OpenReadOnly(p.p.DatabasePath())
	if err != nil {
		return Table{}, err
	}
	defer db.Close()
	var r *contentdb.Result
	if strings.ContainsAny(query, " \t\r\n(") { // a name has none of these
		r, err = db.RunSQL(ctx, query, 0)
	} else {
		r, err = db.Run(ctx, query, args, 0)
	}
	if err != nil {
		return Table{}, err
	}
	return Table{r.Columns, r.Rows}, nil
}
