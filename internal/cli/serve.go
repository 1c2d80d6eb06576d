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

	"github.com/spf13/cobra"

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
}

// gameFlags say where games find the watcher.
type gameFlags struct {
	listen  string
	token   string
	hosts   []string
	origins []string
}

func (f *gameFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", serve.DefaultListen, "`ADDRESS` to listen on; port 0 is any that is free")
	fl.StringVar(&f.token, "token", "", "`TOKEN` that everybody must have (default none on this machine, else a new one)")
	fl.StringArrayVar(&f.hosts, "host", nil, "a `NAME` by which this server may be called, besides its address; may be given several times")
	fl.StringArrayVar(&f.origins, "origin", nil, "an `ORIGIN` whose pages may connect as games, as https://game.example; may be given several times")
}

// listenFor opens the listener of a session.
func (a *app) listenFor(s *session.Session, f *gameFlags) (*serve.Server, error) {
	if f.token == "" && !live.Loopback(f.listen) {
		f.token = rand.Text()
	}
	return serve.Listen(serve.Config{Session: s, Platforms: a.platforms, Listen: f.listen, Guard: live.Guard{Token: f.token, Hosts: f.hosts, Origins: f.origins}})
}

func newServeCommand(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch, and serve running games and the dashboard",
		Long: `Do what kiln watch does, and answer on one address: running games get what changes while they run, a
browser shows builds, content, dependencies, problems, parcels and games. It listens on this machine alone;
with --listen on another address, whoever asks needs the token that is printed.`,
		GroupID: groupMake,
		Example: `  kiln serve                            games and browsers of this machine
  kiln serve --listen 192.168.1.5:7171  a phone or a console, too`,
		Args:    atMost(0),
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	f.watchFlags.add(cmd)
	f.gameFlags.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.editor, "editor", dashboard.DefaultEditor, "`ADDRESS` that opens a file, with {path}, {line} and {column}")
	fl.StringVar(&f.release, "release", "", "`WHERE` the last release is, to tell what changed since: what kiln parcel release wrote, or a folder with its parcels, laid out as the output folder")
	return cmd
}

// serve watches and answers until it is interrupted.
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
	defer s.Follow(newWatchTeller(a, s).tell)()
	if err := a.tellServing(server.Addresses(), f.token); err != nil {
		return err
	}
	return a.runSession(ctx, s, server, pages)
}

// runSession watches, and answers with server if there is one, until it is interrupted. Pages answers browsers; nil: nobody does.
func (a *app) runSession(ctx context.Context, s *session.Session, server *serve.Server, pages http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
	return exitInterrupted
}

type servingLine struct {
	Type    string `json:"type"`
	Address string `json:"address"`
	Token   string `json:"token,omitempty"`
}

// tellServing says where to look.
func (a *app) tellServing(addresses []string, token string) error {
	if a.json {
		return a.emit(servingLine{"serving", addresses[0], token})
	}
	for _, address := range addresses {
		if token != "" {
			address += "/?token=" + url.QueryEscape(token)
		}
		if _, err := fmt.Fprintf(a.errs, "serving %s\n", address); err != nil {
			return err
		}
	}
	return nil
}

// listenError says why an address cannot be listened on.
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
