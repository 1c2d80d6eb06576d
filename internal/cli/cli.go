// Package cli is the command line: one file for each command, no logic of its own.
//
// A function newXCommand(*app) *cobra.Command makes each command; root.go has the list. A command gets the
// project from app.open, writes its result to app.out and everything else to app.errs, and returns an error
// instead of printing one. The error decides the exit code; see exit.go.
//
// With --json, standard output contains one JSON object a line and nothing else, whatever happens; docs/json.md
// lists the objects.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/extend/own"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/farm"
	"github.com/kiln-pipeline/kiln/internal/make/sharing"
	"github.com/kiln-pipeline/kiln/internal/make/view"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	"github.com/kiln-pipeline/kiln/processor"
)

// Config is what a kiln consists of.
type Config struct {
	Processors []processor.Processor // built-in processors, in the order of display
	Team       []processor.Processor // processors of a team's own kiln
	Version    Version
	Source     fs.FS             // Kiln's source, for programs that are compiled with it
	Set        map[string]string // values of the project's variables, by name
	Stages     []string          // stages of the build
}

// Project returns the configuration of this kiln for the project in a folder. Only this function makes a
// workspace.Config, so that no part is forgotten.
func (c *Config) Project(dir string) workspace.Config {
	return workspace.Config{Dir: dir, Version: c.Version.Identity(), Processors: c.Processors, Team: c.Team, Set: c.Set, Stages: c.Stages,
		Outside:   outside(),
		Cache:     func(says project.Cache) (*sharing.Place, error) { return sharing.Choose(says, dir, os.Getenv) },
		Execution: func(says project.Execution) (*farm.Place, error) { return farm.Choose(says, dir, os.Getenv) }}
}

// outside are folders into which links in a project may lead: the user has allowed Kiln to write there.
func outside() []string { return filepath.SplitList(os.Getenv("KILN_OUTSIDE")) }

// Streams are the input and output of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// OSStreams are the streams of this process.
func OSStreams() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
}

// app is one invocation of the command.
type app struct {
	cfg    Config
	args   []string
	in     io.Reader
	out    io.Writer // the result of the command
	errs   io.Writer // messages, progress, the summary of a build
	getenv func(string) string
	wd     string        // the working folder of the caller, absolute; "": that of this process
	next   *own.Kiln     // the project's own kiln, if its source changed during the run and it must be started again
	turn   *session.Turn // set while a command of another process runs; nil: a command of this process

	// The flags that every command has.
	dir       string
	platforms []string
	sets      []string
	workers   int
	json      bool
	quiet     bool
	verbose   bool
	color     string

	formatted formatted // output of commands with --format
}

// Main runs a command line, without the program's name, and returns the exit code. The first interrupt cancels
// the command, a second one ends the process.
func Main(ctx context.Context, args []string, st Streams, cfg Config) (code int) {
	setCollector()
	ctx, stop := untilSignal(ctx)
	defer stop()
	a := &app{cfg: cfg, args: args, in: st.In, out: st.Out, errs: st.Err, getenv: st.Getenv}
	defer func() {
		if v := recover(); v != nil {
			code = a.fail(internalError(v, debug.Stack()))
		}
	}()
	return a.run(ctx)
}

// run runs the command line.
func (a *app) run(ctx context.Context) (code int) {
	root := newRootCommand(a)
	if a.turn == nil {
		a.args = a.withVariables(root)
	}
	root.SetArgs(a.args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	whole := ctx
	if a.turn == nil {
		var exit int
		var done bool
		if ctx, exit, done = a.handOver(whole, root); done {
			return exit
		}
	}
	err := root.ExecuteContext(ctx)
	if context.Cause(ctx) == errOwnChanged {
		return a.startAgain(whole)
	}
	if ctx.Err() != nil && !errors.As(err, new(exitCode)) {
		err = context.Canceled
	}
	code = a.fail(err)
	if err := a.writeFormatted(); err != nil {
		return max(code, a.fail(err))
	}
	return code
}

// open finds and reads the project. It does not show warnings yet: they come with the first check of the files.
func (a *app) open() (*build.Project, error) {
	if a.turn != nil {
		return a.turn.Project()
	}
	if info, err := os.Stat(a.dir); err != nil || !info.IsDir() {
		return nil, wrongUsage("", "there is no folder %q", a.dir)
	}
	dir, err := project.Find(a.dir)
	if err != nil {
		return nil, err
	}
	return build.Open(a.cfg.Project(dir))
}

// named converts names of assets and source files, and patterns, that were given in the current folder to their form in
// the project folder.
func (a *app) named(p *build.Project, names []string) []string { return a.namedIn(p, names) }

// namedFile is named for one name that may also be that of an output or a blob.
func (a *app) namedFile(p *build.Project, name string) string {
	return a.namedIn(p, []string{name}, p.Output, project.StateFolder)[0]
}

func (a *app) namedIn(p *build.Project, names []string, others ...string) []string {
	folder, all := p.Below(a.dir), make([]string, len(names))
	for i, name := range names {
		all[i] = p.From(folder, name, others...)
	}
	return all
}

// look inspects a project.
func (a *app) look(ctx context.Context, p *build.Project, patterns, platforms []string) (*view.View, error) {
	if a.turn != nil {
		return a.turn.Look(ctx, patterns, platforms)
	}
	return p.Look(ctx, patterns, platforms)
}

// lock locks the project, and says so if it has to wait.
func (a *app) lock(ctx context.Context, p *build.Project, noWait bool) error {
	err := p.Lock(ctx, !noWait, func() {
		fmt.Fprintln(a.errs, "another kiln is at work in this project; waiting for it to end")
	})
	if errors.Is(err, workspace.ErrBusy) {
		return diag.Errorf(diag.ProjectBusy, diag.Pos{}, "another kiln is at work in this project").
			WithHint("wait for it to end, or leave out --no-wait")
	}
	return err
}

// emit writes an object as a line of JSON.
func (a *app) emit(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// tell shows messages: with --json all of them on standard output; otherwise as text on standard error, with one line
// for many of one code. -q shows only errors, -v shows each message.
func (a *app) tell(l diag.List) error { return a.tellMore(l, nil, "-v lists all of them") }

// tellMore is tell without messages, by their IDs, that were shown already. all says how to see each
// message.
func (a *app) tellMore(l diag.List, shown map[string]bool, all string) error {
	left := func(m *diag.Message) bool { return shown[m.ID()] }
	if a.json {
		for _, m := range slices.DeleteFunc(slices.Clone(l), left) {
			if err := a.emit(messageLine{"message", m}); err != nil {
				return err
			}
		}
		return nil
	}
	a.formatted.note(l)
	if a.quiet {
		l = slices.DeleteFunc(slices.Clone(l), func(m *diag.Message) bool { return m.Severity != diag.Error })
	}
	if a.verbose {
		l = slices.DeleteFunc(slices.Clone(l), left)
	} else {
		l = diag.Condense(l, shown, all)
	}
	style := diag.Style{Color: a.colored(a.errs)}
	if isTerminal(a.errs) {
		style.Width, _ = screenSize(a.errs)
	}
	for _, m := range l {
		if err := m.Write(a.errs, style); err != nil {
			return err
		}
	}
	return nil
}

// messageLine is a message as JSON.
type messageLine struct {
	Type string `json:"type"`
	*diag.Message
}

// assetIDs completes the ids of assets, for the first n arguments; n < 0 means all.
func (a *app) assetIDs(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if n >= 0 && len(args) >= n {
			return nil, none
		}
		return a.completeAssets(cmd.Context(), toComplete), none
	}
}
