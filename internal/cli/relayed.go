package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/running/relay"
	"github.com/kiln-pipeline/kiln/internal/running/session"
)

// While kiln watch runs, it runs some other commands for their callers: it has in memory what they would have to read,
// and does not block itself. Their output and exit codes are the same.

// relayed are these commands.
var relayed = []string{"build", "impact", "ls", "settings", "why"}

// ownFlags name files, or standard input, of the caller. The kiln that watches neither reads nor writes files for others: its
// callers may be programs in a sandbox, which can connect to its socket. With adopt, the caller locks the project.
var ownFlags = []string{"adopt", "changed", "changed-from", "trace"}

// givenOwn returns such a flag of a command line; "" if there is none.
func givenOwn(cmd *cobra.Command) string {
	for _, name := range ownFlags {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return name
		}
	}
	return ""
}

// relay runs a command in the kiln that watches the project, if there is one, or else in this one.
func (a *app) relay(cmd *cobra.Command) {
	alone := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		exit, ok, err := a.askWatcher(cmd)
		if err != nil {
			return err
		}
		if ok {
			a.formatted.ready = false // the watcher wrote it
			if exit == int(exitGood) {
				return nil
			}
			return exitCode(exit)
		}
		return alone(cmd, args)
	}
}

// askWatcher returns false if this process has to run the command. It is an error to build what a watcher with other stages keeps up to
// date: each of the two would remove what the other one makes.
func (a *app) askWatcher(cmd *cobra.Command) (exit int, ok bool, err error) {
	own := givenOwn(cmd) != ""
	dir, ferr := project.Find(a.dir)
	wd, werr := os.Getwd()
	if a.turn != nil || ferr != nil || werr != nil {
		return 0, false, nil
	}
	waits := cmd.Name() == "build" && !cmd.Flags().Changed("no-wait")
	accept := func(h relay.Hello) bool {
		if cmd.Name() == "build" && !cmd.Flags().Changed("dry-run") && !slices.Equal(h.Stages, a.cfg.stages()) {
			err = watchedStages(h.Stages)
		}
		return err == nil && !own && h.Kiln == a.cfg.identity() && (waits || !h.Busy) && workspace.SameVariables(h.Variables)
	}
	call := relay.Call{Args: a.args, Dir: wd, Env: map[string]string{}, Out: screenOf(a.out), Errors: screenOf(a.errs)}
	for _, name := range []string{"NO_COLOR", "TERM", stepSummary} {
		call.Env[name] = a.getenv(name)
	}
	exit, ok = relay.Ask(cmd.Context(), filepath.Join(dir, project.StateFolder), accept, call, a.out, a.errs)
	if ok && exit < 0 {
		if cmd.Context().Err() != nil {
			return int(exitInterrupted), true, nil
		}
		fmt.Fprintln(a.errs, "the kiln that watched the project went away; going on without it")
		return 0, false, nil
	}
	return exit, ok, err
}

// stages are those of builds, sorted.
func (c *Config) stages() []string { return slices.Compact(slices.Sorted(slices.Values(c.Stages))) }

// watchedStages is the error of a build beside a watcher with other stages.
func watchedStages(stages []string) error {
	with, hint := "without stages", "leave --stage out"
	if len(stages) > 0 {
		with = "with --stage " + strings.Join(stages, " --stage ")
		hint = "build " + with
	}
	return diag.Errorf(diag.WatchedStages, diag.Pos{}, "a kiln that watches this project builds it %s", with).
		WithHint("%s, or end that kiln first: the output folder has the products of one of the two", hint)
}

// identity distinguishes this program from any other kiln, and from an earlier version of itself.
func (c *Config) identity() string {
	h := sha256.New()
	fmt.Fprintln(h, c.Version.Identity())
	if exe, err := os.Executable(); err == nil {
		if info, err := os.Stat(exe); err == nil {
			fmt.Fprintln(h, exe, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, p := range slices.Concat(c.Processors, c.Team) {
		fmt.Fprintln(h, p.Info().Name, p.Info().Version)
	}
	fmt.Fprintf(h, "%q\n", c.stages())
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		fmt.Fprintf(h, "%s=%q\n", name, c.Set[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// answerOthers runs commands of other kilns until stop is called.
func (a *app) answerOthers(s *session.Session) (stop func(), err error) {
	dir, err := s.Project().StateDir()
	if err != nil {
		return nil, err
	}
	me := a.cfg.identity()
	hello := func() relay.Hello {
		return relay.Hello{Kiln: me, Variables: s.Variables(), Busy: s.Busy(), Stages: a.cfg.stages()}
	}
	server, err := relay.Listen(dir, hello, func(ctx context.Context, c *relay.Call, out, errs io.Writer) int {
		exit := int(exitInterrupted)
		s.Turn(ctx, func(t *session.Turn) { exit = a.answer(ctx, t, c, out, errs) })
		return exit
	})
	if errors.Is(err, relay.ErrTaken) {
		return nil, diag.Errorf(diag.ProjectBusy, diag.Pos{}, "another kiln watches this project").WithHint("use that one, or end it first")
	}
	if err != nil {
		return nil, diag.Errorf(diag.OutputUnwritable, diag.Pos{File: project.StateFolder}, "other kilns cannot be answered: %v", bareReason(err)).
			WithHint("check the permissions; the folder .kiln may be deleted: Kiln makes a new one")
	}
	leave := s.Follow(func(e session.Event) {
		switch e.(type) {
		case session.Planned, session.Ended: // the state folder exists
			server.Stay()
		}
	})
	return func() { leave(); server.Close() }, nil
}

// answer runs a command of another kiln.
func (a *app) answer(ctx context.Context, t *session.Turn, c *relay.Call, out, errs io.Writer) (exit int) {
	b := &app{
		cfg: a.cfg, args: c.Args, in: bytes.NewReader(nil), out: &elsewhere{out, c.Out}, errs: &elsewhere{errs, c.Errors},
		getenv: func(name string) string { return c.Env[name] }, wd: c.Dir, turn: t,
	}
	defer func() {
		if v := recover(); v != nil {
			exit = b.fail(internalError(v, debug.Stack()))
		}
	}()
	return b.run(ctx)
}

// elsewhere is a stream of another process.
type elsewhere struct {
	io.Writer
	screen relay.Screen
}

// screenOf describes where a stream is displayed.
func screenOf(w io.Writer) relay.Screen {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) || !enableEscapes(f) {
		return relay.Screen{}
	}
	columns, rows := screenSize(f)
	return relay.Screen{Terminal: true, Columns: columns, Rows: rows}
}

// mayRelay returns an error for a command that is not run for others.
func (a *app) mayRelay(cmd *cobra.Command) error {
	if a.turn != nil && !slices.Contains(relayed, cmd.Name()) {
		return wrongUsage("", "kiln %s is not done for others", cmd.Name())
	}
	if flag := givenOwn(cmd); a.turn != nil && flag != "" {
		return wrongUsage("", "--%s is not done for others", flag)
	}
	return nil
}
