// Package live is the game's side of `kiln serve`: a Library that has a project's content as it is built, without parcels. What changes
// on disk is fetched while the game runs, and put in its place between two frames.
//
//	lib, err := live.Connect(ctx, live.Options{Address: "http://127.0.0.1:7171", Game: "knights", Platform: "pc"})
//	lib.Register("texture", loadTexture)
//	tank, err := lib.LoadName("sprites/tank.png")
//	for running {
//		lib.Poll() // once a frame: what has changed is in place when it returns
//		draw(tank.Value().(*Texture))
//	}
//
// docs/formats/live.md is the protocol. Look-ups and loading are named and behave as those of kilnrt.Library.
//
// The rules of the package:
//
//   - What is loaded changes in Poll and nowhere else, and everything that belongs together at once: contents are fetched before, on
//     another goroutine, and the old ones stay until the last of the new ones is there.
//   - A resource that cannot be loaded anew stays as it was, and the watcher is told why.
//   - When the connection breaks, the game goes on with what it has; it is tried again until it succeeds, and then nothing has been missed.
package live

import (
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

// DefaultAddress is where `kiln serve` listens if nobody says otherwise.
const DefaultAddress = "http://127.0.0.1:7171"

// Options say where the watcher is, and who asks.
type Options struct {
	Address  string       // of the watcher; "": DefaultAddress
	Token    string       // if it listens beyond this machine
	Game     string       // name for people
	Platform string       // whose content is wanted; "": the project's first
	Parcels  []string     // that the game has open besides, for people
	HTTP     *http.Client // nil: one of its own
	Notify   func(Event)  // is called on a goroutine of the library, and must return at once; nil: nobody is told
}

// Event is one of Connected, Disconnected, Arrived, Failed, Mended.
type Event interface{ event() }

// Connected tells that the watcher is there; Resumed that it knew where the game had been, else all was compared.
type Connected struct {
	Project, Platform string
	Resumed           bool
}

// Disconnected tells that it is not, and why. It is tried again.
type Disconnected struct{ Err error }

// Arrived tells that the next Poll has something to do.
type Arrived struct{}

// Failed tells that an asset does not build. What it made before stays.
type Failed struct {
	Asset    string
	Messages []Message
}

// Mended tells that an asset builds again.
type Mended struct{ Asset string }

func (Connected) event()    {}
func (Disconnected) event() {}
func (Arrived) event()      {}
func (Failed) event()       {}
func (Mended) event()       {}

// Message is what Kiln has to say to people.
type Message struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Text     string `json:"text"`
	Hint     string `json:"hint"`
}

// Errors that callers tell apart. Those of kilnrt are used too: ErrNotFound, ErrNoLoader, ErrCycle.
var (
	ErrRefused = errors.New("live: the watcher refuses the game")
	ErrClosed  = errors.New("live: the library is closed")
)

// Limits. Numbers of the watcher are not trusted more than those of a parcel.
const (
	maxMessage   = 16 << 20
	maxResources = 1 << 24
	maxContent   = 1 << 31 // bytes of one resource
)

// Resource is one thing as the watcher has it. It is a value.
type Resource struct {
	ID       uint32
	SubID    uint32   // of the product within its asset; 0: the main one
	UUID     [16]byte // of the asset
	Size     int64    // bytes of the content
	Hash     [32]byte
	Required int // how many resources it needs
	Optional int // how many more it would use

	lib   *Library
	name  string
	asset string
	kind  string
	needs []uint32

	content []byte // for its loader
}

// Name is its name: the asset's id, and "ID#NAME" for a product with a name of its own.
func (r *Resource) Name() string { return r.name }

// Asset is the id of the asset that it was made of.
func (r *Resource) Asset() string { return r.asset }

// Type is the product type, as "texture".
func (r *Resource) Type() string { return r.kind }

// Need is the id of the i-th resource that it needs: the required ones first, in the order in which to load them, then the optional ones. i
// is below Required + Optional.
func (r *Resource) Need(i int) uint32 { return r.needs[i] }

// Bytes gives the content, whole and compared with its hash. Do not write to it.
func (r *Resource) Bytes() ([]byte, error) { return r.lib.content(r) }

// Loader makes what the game uses of a resource. What it returns is shared by all who load the resource; if it has a method Unload(), that
// is called when it is replaced, or when the last one has released it. A loader must not call the library; what its resource needs is given
// to it.
type Loader func(*Loading) (any, error)

// Loading is what a loader is given.
type Loading struct {
	Resource Resource
	Needs    []kilnrt.Need // the required ones first, in load order
	Old      any           // what it will replace; nil if this is the first time. If the loader returns an error, that stays.
}

// Rebinder is what a loader's value may be, if it can take another value for something that it needs without being loaded anew. An
// error has it loaded anew after all.
type Rebinder interface {
	Rebind(needs []kilnrt.Need) error
}

func (o *Options) url(scheme, path string) (string, error) {
	address := o.Address
	if address == "" {
		address = DefaultAddress
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("live: %q is no address of a watcher, as %s is", address, DefaultAddress)
	}
	u.Scheme = strings.Replace(u.Scheme, "http", scheme, 1)
	u.Path, u.RawQuery = path, ""
	return u.String(), nil
}

// fetch gets content by its hash.
func (l *Library) fetch(hash [32]byte, size int64) ([]byte, error) {
	if size < 0 || size > maxContent {
		return nil, fmt.Errorf("live: content of %d bytes; %d is the limit", size, int64(maxContent))
	}
	address, err := l.options.url("http", fmt.Sprintf("/live/v1/blob/%x", hash))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, address, nil)
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
	b, err := io.ReadAll(io.LimitReader(resp.Body, size+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != size || sum(b) != hash {
		return nil, fmt.Errorf("live: content came other than its hash says")
	}
	return b, nil
}

// errGone: the content has been replaced meanwhile, and news of that are on their way.
var errGone = errors.New("live: nobody has this content any more")

const (
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Second
)
