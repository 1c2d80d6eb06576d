// Package live is the game's side of `kiln serve`: a Library with a project's content as it is built, without parcels. Changes on disk are
// fetched while the game runs, and put in place between two frames.
//
//	lib, err := live.Connect(ctx, live.Options{Address: "http://127.0.0.1:7171", Game: "knights", Platform: "pc"})
//	lib.Register("texture", loadTexture)
//	tank, err := lib.LoadName("sprites/tank.png")
//	for running {
//		lib.Poll() // once a frame: changes are in place when it returns
//		draw(tank.Value().(*Texture))
//	}
//
// docs/formats/live.md is the protocol. Look-ups and loading have the names and the behaviour of those of kilnrt.Library.
//
// The rules of the package:
//
//   - Loaded values change only in Poll, and related ones change together: contents are fetched before, on another goroutine, and the old
//     ones stay until the last of the new ones has arrived.
//   - A resource that cannot be loaded again keeps its old value, and the watcher gets the reason.
//   - When the connection breaks, the game continues with what it has. The library reconnects, and then nothing has been missed.
//   - What a loaded value was made with is unloaded after it, whatever the watcher has by then.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Version of the protocol.
const Version = 1

// DefaultAddress is the default address of `kiln serve`.
const DefaultAddress = "http://127.0.0.1:7171"

// Options have the address of the watcher and describe the game.
type Options struct {
	Address  string       // of the watcher; if empty, KILN_LIVE_ADDRESS, which `kiln serve --run` sets, or else DefaultAddress
	Token    string       // if it listens beyond this machine; if empty, KILN_LIVE_TOKEN
	Game     string       // name, for the dashboard
	Platform string       // of the content; if empty, the first of the project
	Parcels  []string     // that the game also has open, for the dashboard
	HTTP     *http.Client // if nil, a client of its own
	Notify   func(Event)  // called on a goroutine of the library; must return at once; may be nil

	// Patience is how long nothing may come from the watcher, not even its sign of life, until the connection counts as broken; 0: a minute.
	Patience time.Duration
}

// Event is one of Connected, Disconnected, Arrived, Failed, Mended.
type Event interface{ event() }

// Connected reports a connection. Resumed is set if the watcher knew the state of the game; otherwise everything was compared.
type Connected struct {
	Project, Platform string
	Resumed           bool
}

// Disconnected reports that the connection ended, and why. The library reconnects.
type Disconnected struct{ Err error }

// Arrived reports that the next Poll has changes.
type Arrived struct{}

// Failed reports that an asset does not build. Its last good products stay.
type Failed struct {
	Asset    string
	Messages []Message
}

// Mended reports that an asset builds again.
type Mended struct{ Asset string }

func (Connected) event()    {}
func (Disconnected) event() {}
func (Arrived) event()      {}
func (Failed) event()       {}
func (Mended) event()       {}

// Message is a message of Kiln.
type Message struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Text     string `json:"text"`
	Hint     string `json:"hint"`
}

// Errors to check with errors.Is. Those of kilnrt are used, too: ErrNotFound, ErrNoLoader, ErrCycle.
var (
	ErrRefused = errors.New("live: the watcher refuses the game")
	ErrClosed  = errors.New("live: the library is closed")
)

// Limits. Numbers of the watcher are not trusted more than those of a parcel.
const (
	maxMessage   = 16 << 20
	maxResources = 1 << 24
	maxContent   = 1 << 31 // bytes of one resource
	maxBeat      = 1 << 31 // milliseconds
)

// Resource is a resource of the watcher. It is a value.
type Resource struct {
	ID       uint32
	SubID    uint32   // of the product within its asset; 0 for the main one
	UUID     [16]byte // of the asset
	Size     int64    // number of bytes of the content
	Hash     [32]byte
	Required int // number of resources that it requires
	Optional int // number of further resources that it would use

	lib   *Library
	name  string
	asset string
	kind  string
	needs []uint32

	content []byte // for its loader
}

// Name returns its name: the asset's id, and "ID#NAME" for a product with a name of its own.
func (r *Resource) Name() string { return r.name }

// Asset returns the id of its asset.
func (r *Resource) Asset() string { return r.asset }

// Type returns the product type, such as "texture".
func (r *Resource) Type() string { return r.kind }

// Need returns the id of the i-th resource that it needs: the required ones first, in load order, then the optional ones. i is below
// Required + Optional.
func (r *Resource) Need(i int) uint32 { return r.needs[i] }

// Bytes returns the complete content, checked against its hash. Do not write to it.
func (r *Resource) Bytes() ([]byte, error) { return r.lib.content(r) }

// Loader converts a resource to what the game uses. Its result is shared by all handles of the resource; if
// it has a method Unload(), that is called when it is replaced, or when the last handle is released. A loader
// must not call the library; it gets what its resource needs.
type Loader func(*Loading) (any, error)

// Loading is the argument of a loader.
type Loading struct {
	Resource Resource
	Needs    []kilnrt.Need // the required ones first, in load order
	Old      any           // the value that it will replace; nil the first time; stays if the loader returns an error
}

// Rebinder may be implemented by a loader's value that can replace something that it needs without being loaded again. After an error it is
// loaded again.
type Rebinder interface {
	Rebind(needs []kilnrt.Need) error
}

func (o *Options) url(scheme, path string) (string, error) {
	address := o.Address
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("live: %q is not an address of a watcher, as %s is", address, DefaultAddress)
	}
	u.Scheme = strings.Replace(u.Scheme, "http", scheme, 1)
	u.Path, u.RawQuery = path, ""
	return u.String(), nil
}

func (o *Options) patience() time.Duration { return cmp.Or(o.Patience, time.Minute) }

// patient is a reader that ends when nothing arrives for too long.
type patient struct {
	io.Reader
	late *time.Timer
	most time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.late.Reset(p.most)
	return n, err
}

// fetch fetches content by its hash.
func (l *Library) fetch(hash [32]byte, size int64) ([]byte, error) {
	if size < 0 || size > maxContent {
		return nil, fmt.Errorf("live: content of %d bytes; %d is the limit", size, int64(maxContent))
	}
	address, err := l.options.url("http", fmt.Sprintf("/live/v1/blob/%x", hash))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	late := time.AfterFunc(l.options.patience(), cancel)
	defer late.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if l.options.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.options.Token)
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, errGone
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("live: the watcher answers %s", resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(&patient{resp.Body, late, l.options.patience()}, size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != size || sum(b) != hash {
		return nil, fmt.Errorf("live: content came other than its hash says")
	}
	return b, nil
}

// errGone means that the content has been replaced, and that the change will follow.
var errGone = errors.New("live: nobody has this content any more")

const (
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Second
)
