package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/running/game"
	"github.com/kiln-pipeline/kiln/internal/running/serve"
	"github.com/kiln-pipeline/kiln/internal/running/session"
)

func newRunCommand(a *app) *cobra.Command {
	var anyway bool
	cmd := &cobra.Command{
		Use:   "run [ARGS...]",
		Short: "Build, and start the game",
		Long: `Build everything that is out of date, then start the game that [run] in kiln.toml names, with these arguments after
its own. Its exit code is that of this command. If something fails, the game is not started.`,
		GroupID: groupMake,
		Example: `  kiln run                   build, then start the game
  kiln run level2            with an argument
  kiln run -- --windowed     with an argument that begins with a dash`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runGame(cmd.Context(), anyway, args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&anyway, "anyway", false, "start the game although the build failed")
	return cmd
}

// runGame builds, and starts the game if the build succeeded.
func (a *app) runGame(ctx context.Context, anyway bool, args []string) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	if _, err := game.Program(p.Dir, &p.Run); err != nil && len(p.Run.Command) == 0 {
		return err // before a long build
	}
	err = a.build(ctx, buildFlags{changedBy: "stat", onError: "fail"}, nil)
	if failed := errors.Is(err, exitFailed); err != nil && (!failed || !anyway) {
		if failed && !a.json {
			a.complain("the game is not started, because the build failed", "--anyway starts it")
		}
		return err
	}
	g, err := game.New(a.gameStart(p.Dir, p.Run, args))
	if err != nil {
		return err
	}
	if err := a.tellGame(game.Event{Started: true}); err != nil {
		g.End(false)
		return err
	}
	select {
	case <-g.Done():
	case <-ctx.Done():
		g.End(a.sharesTerminal())
		return exitInterrupted
	}
	if err := a.tellGame(game.Event{Exit: g.Exit()}); err != nil || g.Exit() == 0 {
		return err
	}
	return exitCode(g.Exit())
}

// gameStart returns how to start the game. With --json, standard output is only for JSON.
func (a *app) gameStart(dir string, r project.Run, args []string) *game.Start {
	s := &game.Start{Dir: dir, Run: r, Args: args, In: a.in, Out: a.out, Errs: a.errs}
	if a.json {
		s.Out = a.errs
	}
	return s
}

// checkRun returns an error for flags that need another one.
func (f *serveFlags) checkRun() error {
	if f.anyway && !f.run {
		return wrongUsage("add --run", "--anyway is for the game, and this starts none")
	}
	return nil
}

// sharesTerminal reports whether Ctrl-C reaches the game too.
func (a *app) sharesTerminal() bool {
	f, ok := a.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// keepGame keeps the game running beside a session until the context ends. The returned context, for the session, ends
// after the game has.
func (a *app) keepGame(ctx context.Context, s *session.Session, server *serve.Server, f *serveFlags) (_ context.Context, end func(), _ error) {
	p := s.Project()
	if len(p.Run.Command) == 0 {
		_, err := game.Program(p.Dir, &p.Run)
		return nil, nil, err
	}
	shared, interrupt := a.sharesTerminal(), ctx
	k := &game.Keeper{
		Start: *a.gameStart(p.Dir, p.Run, nil), Settings: func() project.Run { return s.Project().Run },
		Connected: func(since time.Time) bool { return connectedHere(server, since) },
		Anyway:    f.anyway || f.lazy, Tell: func(e game.Event) { a.tellGame(e) },
		Interrupted: func() bool { return shared && interrupt.Err() != nil },
	}
	k.Start.In = nil // keys are for the server
	k.Start.Env = []string{game.AddressVariable + "=" + server.Address()}
	if f.token != "" {
		k.Start.Env = append(k.Start.Env, game.TokenVariable+"="+f.token)
	}
	leave := s.Follow(func(e session.Event) {
		switch e := e.(type) {
		case session.Began:
			if f.lazy && e.Number == 1 { // it gets what it opens while that is built
				k.Built(true, false)
			}
		case session.Ended:
			if e.Report != nil {
				k.Built(e.Total == 0 && e.Report.Messages.Err() == nil, len(e.Products)+len(e.Report.Summary.Wrote) > 0)
			}
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	after, cancelAfter := context.WithCancel(context.WithoutCancel(ctx))
	var over sync.WaitGroup
	over.Go(func() {
		defer cancelAfter()
		k.Run(ctx)
	})
	return after, func() { leave(); cancel(); over.Wait() }, nil
}

// connectedHere reports whether a game on this machine has connected after a time.
func connectedHere(server *serve.Server, since time.Time) bool {
	for _, g := range server.Hub().Games() {
		host, _, err := net.SplitHostPort(g.Address)
		if ip := net.ParseIP(host); err == nil && !g.Since.Before(since) && ip != nil && ip.IsLoopback() {
			return true
		}
	}
	return false
}

// gameLine reports the state of the game.
type gameLine struct {
	Type  string `json:"type"`
	State string `json:"state"` // started, ended, failed
	Why   string `json:"why,omitempty"`
	Exit  *int   `json:"exit,omitempty"`
}

// tellGame reports that the game was started, has ended, or could not be started.
func (a *app) tellGame(e game.Event) error {
	switch {
	case e.Err != nil:
		return a.tell(diag.Messages(e.Err, diag.GameNotStarted))
	case a.json && e.Started:
		return a.emit(gameLine{Type: "game", State: "started", Why: e.Why})
	case a.json:
		return a.emit(gameLine{Type: "game", State: "ended", Exit: &e.Exit})
	case a.quiet:
	case e.Started && e.Why != "":
		fmt.Fprintf(a.errs, "the game is restarted: %s\n", e.Why)
	case !e.Started && e.Exit != 0:
		fmt.Fprintf(a.errs, "the game ended with exit code %d\n", e.Exit)
	}
	return nil
}
