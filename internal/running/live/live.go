// Package live serves content to running games while it is built: changes go out over a WebSocket, contents over HTTP
// by their hash. docs/formats/live.md is the protocol, package kilnrt/live a client.
//
// The rules of the package:
//
//   - A game never blocks a build. The hub keeps a number for each game, the last change that was sent. When the game
//     can receive something, it gets all later changes in their current state.
//   - Nothing that a game or a web page sends is trusted: every number has a limit, and access is checked before the
//     request.
//   - It knows no project: its caller passes changes (Update) and answers two questions (Content).
package live

import (
	"context"
	"io"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Version of the protocol.
const Version = 1

// Content answers a hub's questions about the project.
type Content interface {
	// Open opens a blob, or returns fs.ErrNotExist.
	Open(hash digest.Hash) (io.ReadSeekCloser, error)

	// Want has an asset built before everything else, and returns when the result, which may be a failure, was passed
	// to Hub.Update. It returns an error, for display, if the asset cannot be built at all.
	Want(ctx context.Context, platform, asset string) error
}

// Key identifies a resource permanently.
type Key struct {
	UUID string // of the asset, in lower case
	Sub  uint32 // of the product within it
}

// Ref is a resource that another one needs at run time.
type Ref struct {
	Key
	Required bool
}

// Product is one product of an asset on a platform. Refs are in load order, as the processor returned
// them.
type Product struct {
	Key
	Asset string // id of the asset
	Name  string // of the product; "" is the main one
	Kind  string // its type, for example "texture"
	Hash  digest.Hash
	Size  int64 // bytes
	Refs  []Ref
}

// Failure is a failed asset. Messages may be empty if the messages are those of an asset that it
// needs.
type Failure struct {
	Asset    string
	Messages diag.List
}

// Update is the changes of a platform.
type Update struct {
	Products []Product // new or changed
	Gone     []Key     // removed products
	Failed   []Failure // assets that failed, and did not fail in this way before
	Mended   []string  // assets that no longer fail
	Whole    bool      // Products and Failed are complete lists
	Saved    time.Time // when the first of the changed files was saved; zero: unknown. Only for measurements
}

// resource is a product with a number. It is immutable.
type resource struct {
	Product
	id uint32
}

// name is the name by which games find it.
func (r *resource) name() string {
	if r.Name == "" {
		return r.Asset
	}
	return r.Asset + "#" + r.Name
}
