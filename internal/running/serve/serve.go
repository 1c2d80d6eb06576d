// Package serve gives games and browsers access to an open project: one listener, on which package live answers games
// and another handler everything else.
//
// Its rules:
//
//   - Only requests that live.Guard allows are answered.
//   - It listens on the loopback address, unless there is a token.
//   - It decides nothing about content: it passes on what the session reports.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/delivery/ids"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/running/live"
	"github.com/kiln-pipeline/kiln/internal/running/session"
	"github.com/kiln-pipeline/kiln/internal/store/used"
)

// DefaultListen is the address at which games look for a watcher.
const DefaultListen = "127.0.0.1:7171"

// Config is what is served, and to whom.
type Config struct {
	Session   *session.Session
	Platforms []string // platforms that the session builds; all if empty
	Listen    string   // address to listen on; "": DefaultListen
	Guard     live.Guard
}

// Server is a listener and its handlers.
type Server struct {
	cfg      Config
	hub      *live.Hub
	listener net.Listener
	feed     feed
}

// ErrNoToken means that a token is required to listen on an address that other machines can reach.
var ErrNoToken = errors.New("an address beyond this machine needs a token")

// Listen opens the listener; requests are answered by Run.
func Listen(cfg Config) (*Server, error) {
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if !live.Loopback(cfg.Listen) && cfg.Guard.Token == "" {
		return nil, fmt.Errorf("%s: %w", cfg.Listen, ErrNoToken)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(cfg.Listen); err == nil && host != "" {
		cfg.Guard.Hosts = append(cfg.Guard.Hosts, host)
	}
	p := cfg.Session.Project()
	if len(cfg.Platforms) == 0 {
		cfg.Platforms = p.PlatformNames()
	}
	s := &Server{cfg: cfg, listener: l}
	numbers, err := ship.ReadNumbers(p.Dir, ids.FileName, false)
	if err != nil || len(numbers.Conflicts()) > 0 {
		numbers.File = nil // the build reports it; until it is fixed, numbers are assigned as if there were no file
	}
	s.hub = live.NewHub(live.Options{Project: p.Name, Platforms: cfg.Platforms, Content: content{s}, IDs: numbers.File,
		Used: used.NewLog(filepath.Join(p.Dir, ".kiln"))})
	s.feed = feed{hub: s.hub, dir: p.Dir, platforms: cfg.Platforms, wake: make(chan struct{}, 1), drafts: map[draft]bool{}}
	return s, nil
}

// Hub returns the hub with the games.
func (s *Server) Hub() *live.Hub { return s.hub }

// Address is its address on this machine, for example "http://127.0.0.1:7171".
func (s *Server) Address() string { return s.Addresses()[0] }

// Addresses are all its addresses, Address first: several if it listens on all interfaces.
func (s *Server) Addresses() []string {
	at, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() {
		return []string{"http://" + s.listener.Addr().String()}
	}
	hosts := []string{"127.0.0.1"}
	all, _ := net.InterfaceAddrs() // on error only the first address is known
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	for i, host := range hosts {
		hosts[i] = "http://" + net.JoinHostPort(host, strconv.Itoa(at.Port))
	}
	return hosts
}

// Run answers requests until the context ends. dashboard answers everything that is not for games;
// it may be nil.
func (s *Server) Run(ctx context.Context, dashboard http.Handler) error {
	stop := s.cfg.Session.Follow(s.feed.follow)
	defer stop()
	mux := http.NewServeMux()
	mux.Handle(live.Path, s.cfg.Guard.Wrap(live.Games, s.hub.Handler()))
	if dashboard != nil {
		mux.Handle("/", s.cfg.Guard.Wrap(live.Own, dashboard))
	}
	// There is no timeout for whole requests or answers, because games and pages that follow builds stay
	// connected. Headers must come at once.
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 2)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { ended <- s.feed.run(ctx, s.cfg.Session) }()
	go func() { ended <- srv.Serve(s.listener) }()
	var err error
	waiting := 2
	select {
	case <-ctx.Done():
	case err = <-ended:
		waiting--
	}
	cancel()
	srv.Close()
	s.hub.Hangup()
	for ; waiting > 0; waiting-- {
		<-ended
	}
	if errors.Is(err, ctx.Err()) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// content answers the hub's questions.
type content struct{ s *Server }

func (c content) Open(h digest.Hash) (io.ReadSeekCloser, error) { return c.s.cfg.Session.Blob(h) }

func (c content) Want(ctx context.Context, platform, asset string) error {
	made, err := c.s.cfg.Session.Want(ctx, platform, asset)
	u := &live.Update{Products: products(made)}
	var failed *session.FailedError
	switch {
	case errors.As(err, &failed):
		u.Failed = []live.Failure{{Asset: failed.Failure.Asset, Messages: failed.Failure.Messages}}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no asset %s", asset)
	case err != nil:
		return err
	}
	c.addNeeds(ctx, platform, u)
	return c.s.hub.Update(map[string]*live.Update{platform: u})
}

// addNeeds adds all products that others require and games do not have yet, so that games never have a product without
// what it needs. Assets that cannot be built are left out; games get their failure.
func (c content) addNeeds(ctx context.Context, platform string, u *live.Update) {
	asked := map[string]bool{} // UUIDs
	for done := 0; done < len(u.Products); {
		var wanted []string
		for ; done < len(u.Products); done++ {
			for _, ref := range u.Products[done].Refs {
				if ref.Required && !asked[ref.UUID] && !c.s.hub.Has(platform, ref.Key) {
					asked[ref.UUID] = true
					wanted = append(wanted, ref.UUID)
				}
			}
		}
		made := make([][]live.Product, len(wanted))
		var wg sync.WaitGroup
		for i, uuid := range wanted {
			wg.Go(func() {
				ps, _ := c.s.cfg.Session.Want(ctx, platform, uuid)
				made[i] = products(ps)
			})
		}
		wg.Wait()
		u.Products = append(u.Products, slices.Concat(made...)...)
	}
}

// products converts those that games can have to the hub's type.
func products(ps []session.Product) []live.Product {
	var all []live.Product
	for i := range ps {
		p := &ps[i]
		if p.File == "" || p.Gone { // hidden ones are only for other parts of the asset's job
			continue
		}
		out := live.Product{Key: live.Key{UUID: p.UUID, Sub: p.SubID}, Asset: p.Asset, Name: p.Name, Kind: p.Type, Hash: p.Hash, Size: p.Size}
		for _, r := range p.References {
			out.Refs = append(out.Refs, live.Ref{Key: live.Key{UUID: text(r.UUID), Sub: r.SubID}, Required: r.Required})
		}
		all = append(all, out)
	}
	return all
}

// text is the usual text of a UUID.
func text(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
