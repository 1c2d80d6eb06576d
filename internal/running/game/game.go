// Package game starts the game of a project, following [run] in kiln.toml, and ends it.
//
// Its rules:
//
//   - The game has the terminal that Kiln has, and stays in its process group: Ctrl-C reaches both.
//   - A game is asked to end before it is killed.
//   - This package does not know what a build is; the caller of Keeper reports when builds end.
package game

import (
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/secret"
	"github.com/kiln-pipeline/kiln/internal/content/project"
)

// Environment variables that tell a game the address of the kiln that serves it.
const (
	AddressVariable = "KILN_LIVE_ADDRESS"
	TokenVariable   = "KILN_LIVE_TOKEN"
)

// Start is how a game is started.
type Start struct {
	Dir  string // the project folder, absolute
	Run  project.Run
	Args []string // appended to those of the command
	Env  []string // NAME=VALUE, in addition to those of this process and of Run
	In   io.Reader
	Out  io.Writer
	Errs io.Writer
}

// Game is a started game.
type Game struct {
	cmd  *exec.Cmd
	done chan struct{}
	exit int
}

// Program returns the file of a command. The error is a *diag.Message.
func Program(dir string, r *project.Run) (string, error) {
	if len(r.Command) == 0 {
		return "", diag.Errorf(diag.MissingKey, diag.Pos{File: project.File}, "there is no [run], so it is not known how the game is started").
			WithHint(`add to %s: [run] and command = ["./game"]`, project.File)
	}
	name := r.Command[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(filepath.FromSlash(name)) {
		name = filepath.Join(dir, filepath.FromSlash(name))
	}
	file, err := exec.LookPath(name)
	if err != nil {
		return "", notStarted(r, err)
	}
	return filepath.Abs(file)
}

// notStarted is the message for a game that does not start.
func notStarted(r *project.Run, err error) *diag.Message {
	if lookup := (*exec.Error)(nil); errors.As(err, &lookup) {
		err = lookup.Err
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return r.Span.Errorf(diag.GameNotStarted, "the game %s cannot be started: %v", r.Command[0], err).
		WithHint("check command and cwd below [run]; a program with a slash is relative to the project folder")
}

// New starts a game.
func New(s *Start) (*Game, error) {
	program, err := Program(s.Dir, &s.Run)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append(append([]string{}, s.Run.Command[1:]...), s.Args...)...)
	cmd.Args[0] = s.Run.Command[0]
	cmd.Dir = filepath.Join(s.Dir, filepath.FromSlash(s.Run.Dir))
	cmd.Env = secret.Environ()
	for _, v := range s.Run.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, s.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Errs
	cmd.WaitDelay = time.Second // programs that the game started may keep its streams open
	if err := cmd.Start(); err != nil {
		return nil, notStarted(&s.Run, err)
	}
	g := &Game{cmd: cmd, done: make(chan struct{})}
	go func() {
		cmd.Wait()
		g.exit = exitCode(cmd.ProcessState)
		close(g.done)
	}()
	return g, nil
}

// Done is closed when the game has ended.
func (g *Game) Done() <-chan struct{} { return g.done }

// Exit is the game's exit code once it has ended: 128 plus the signal's number if a signal ended
// it.
func (g *Game) Exit() int {
	<-g.done
	return g.exit
}

// Patience is how long a game may take to end.
const Patience = 5 * time.Second

// End ends the game, and returns when it has ended. With interrupted (Ctrl-C on the terminal that it shares with Kiln
// reached the game too), the game gets some time to end before it is asked to.
func (g *Game) End(interrupted bool) {
	if interrupted && g.within(Patience) {
		return
	}
	ask(g.cmd.Process)
	if !g.within(Patience) {
		g.cmd.Process.Kill()
	}
	<-g.done
}

// within reports whether the game ends within a time.
func (g *Game) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-g.done:
		return true
	case <-t.C:
		return false
	}
}
