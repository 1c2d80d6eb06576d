package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/secret"
	"github.com/kiln-pipeline/kiln/internal/running/dashboard"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/serve"
	"github.com/kiln-pipeline/kiln/internal/running/session"
)

type serveFlags struct {
	watchFlags
	gameFlags
	editor  string
	release string
	open    bool
	run     bool
	anyway  bool
}

// gameFlags say at which address games find the watcher.
type gameFlags struct {
	listen  string
	token   string
	hosts   []string
	origins []string
}

func (f *gameFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", serve.DefaultListen, "`ADDRESS` to listen on; if its port is in use, the next one that is free is taken; port 0 is any")
	fl.StringVar(&f.token, "token", "", "`TOKEN` that everybody must have (default none on this machine, else a new one)")
	fl.StringArrayVar(&f.hosts, "host", nil, "also accept requests for host `NAME` (repeatable)")
	fl.StringArrayVar(&f.origins, "origin", nil, "also let pages of `ORIGIN` connect as games, such as https://game.example (repeatable)")
}

// listenFor opens the listener of a session.
func (a *app) listenFor(s *session.Session, f *gameFlags) (*serve.Server, error) {
	if f.token == "" && !live.Loopback(f.listen) {
		f.token = rand.Text()
	}
	c := serve.Config{Session: s, Platforms: a.platforms, Listen: f.listen, Guard: live.Guard{Token: f.token, Hosts: f.hosts, Origins: f.origins}}
	server, err := serve.Listen(c)
	host, port, perr := net.SplitHostPort(f.listen)
	n, nerr := strconv.Atoi(port)
	if perr != nil || nerr != nil || n == 0 {
		return server, err
	}
	for next := n + 1; addressInUse(err) && next < n+morePorts && next < 1<<16; next++ {
		c.Listen = net.JoinHostPort(host, strconv.Itoa(next))
		server, err = serve.Listen(c)
	}
	if err == nil && c.Listen != f.listen && !a.json && !a.quiet {
		fmt.Fprintf(a.errs, "%s is in use; %s is taken in its place\n", f.listen, c.Listen)
	}
	return server, err
}

// morePorts is how many ports are tried, starting with the requested one.
const morePorts = 10

func newServeCommand(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch, and serve running games and the dashboard",
		Long: `Do what kiln watch does, and answer on one address: running games get what changes while they run, a
browser shows builds, content, dependencies, problems, parcels and games. It listens on this machine alone;
with --listen on another address, every request needs the token that is printed.`,
		GroupID: groupMake,
		Example: `  kiln serve                            games and browsers of this machine
  kiln serve --run                      start the game of kiln.toml, too
  kiln serve --listen 192.168.1.5:7171  a phone or a console, too`,
		Args:    atMost(0),
		PreRunE: func(*cobra.Command, []string) error { return errors.Join(f.check(), f.checkRun()) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	f.watchFlags.add(cmd)
	f.gameFlags.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.open, "open", false, "open the dashboard in the browser")
	fl.BoolVar(&f.lazy, "lazy", false, "build what the game opens first, then what games used before, then the rest")
	fl.BoolVar(&f.run, "run", false, "start the game after the first build, and restart it for what it cannot reload")
	fl.BoolVar(&f.anyway, "anyway", false, "with --run: start the game although the build failed")
	fl.StringVar(&f.editor, "editor", dashboard.DefaultEditor, "`ADDRESS` that opens a file, with {path}, {line} and {column}")
	fl.StringVar(&f.release, "release", "", "`WHERE` the last release is, to show what changed since: "+
		"what kiln parcel release wrote, or a folder with its parcels, laid out as the output folder")
	return cmd
}

// serve watches and serves until it is interrupted.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	if f.release != "" {
		if _, err := os.Stat(f.release); err != nil {
			return wrongUsage("`kiln parcel release -o FILE` writes one", "--release %s: the release cannot be read: %v", f.release, bareReason(err))
		}
	}
	s, err := a.openSession(f.watchFlags)
	if err != nil {
		return err
	}
	stopAnswers, err := a.answerOthers(s)
	if err != nil {
		return err
	}
	defer stopAnswers()
	server, err := a.listenFor(s, &f.gameFlags)
	if err != nil {
		return listenError(f.listen, err)
	}
	pages, stop, err := server.Dashboard(dashboard.Config{Editor: f.editor, Release: f.release, Project: a.open})
	if err != nil {
		return wrongUsage("it is an address like "+dashboard.DefaultEditor, "--editor: %v", err)
	}
	defer pages.Close()
	defer stop()
	teller := newWatchTeller(a, s)
	defer s.Follow(teller.tell)()
	if f.run {
		after, end, err := a.keepGame(ctx, s, server, &f)
		if err != nil {
			return err
		}
		defer end()
		ctx = after
	}
	if err := a.tellServing(server.Addresses(), f.token); err != nil {
		return err
	}
	page := func(ctx context.Context) error {
		return openBrowser(ctx, pageAddress(server.Addresses()[0], f.token))
	}
	if f.open {
		if err := page(ctx); err != nil && !a.quiet {
			fmt.Fprintf(a.errs, "the browser cannot be opened: %v\n", err)
		}
	}
	return a.runSession(ctx, s, server, pages, &keys{a: a, s: s, teller: teller, page: page})
}

// openBrowser asks the system to open an address, and does not wait.
func openBrowser(ctx context.Context, address string) error {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = secret.Environ()
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	return nil
}

// pageAddress is an address with its token.
func pageAddress(address, token string) string {
	if token == "" {
		return address
	}
	return address + "/?token=" + url.QueryEscape(token)
}

// runSession watches, and serves if there is a server, until it is interrupted or a key ends it. pages answers
// browsers.
func (a *app) runSession(ctx context.Context, s *session.Session, server *serve.Server, pages http.Handler, k *keys) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var quit atomic.Bool
	if in, restore, ok := a.keysOf(); ok {
		defer restore()
		k.quit = func() { quit.Store(true); cancel() }
		k.teller.keys = k.help()
		go k.follow(ctx, in) // reading from a terminal cannot be cancelled: it ends with the process
	}
	ended := make(chan error, 1)
	if server == nil {
		ended <- nil
	} else {
		go func() {
			defer cancel()
			ended <- server.Run(ctx, pages)
		}()
	}
	err := s.Run(ctx)
	cancel()
	if served := <-ended; served != nil {
		return served
	}
	if !errors.Is(err, context.Canceled) {
		return err
	}
	if quit.Load() {
		return nil
	}
	return exitInterrupted
}

type servingLine struct {
	Type    string `json:"type"`
	Address string `json:"address"`
	Token   string `json:"token,omitempty"`
}

// tellServing prints the addresses.
func (a *app) tellServing(addresses []string, token string) error {
	if a.json {
		return a.emit(servingLine{"serving", addresses[0], token})
	}
	for _, address := range addresses {
		if _, err := fmt.Fprintf(a.errs, "serving %s\n", pageAddress(address, token)); err != nil {
			return err
		}
	}
	return nil
}

// listenError explains why listening on an address failed.
func listenError(address string, err error) error {
	var op *net.OpError
	switch {
	case addressInUse(err):
		return wrongUsage("another kiln serve may have it; --listen 127.0.0.1:0 takes any that is free", "%s is in use", address)
	case errors.As(err, &op):
		return wrongUsage("it is an address of this machine and a port, as "+serve.DefaultListen, "--listen %s: %v", address, op.Err)
	}
	return wrongUsage("it is an address of this machine and a port, as "+serve.DefaultListen, "--listen %s: %v", address, err)
}
