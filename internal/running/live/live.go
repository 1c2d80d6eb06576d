// Package live serves running games with content as it is built: what changed goes out over a WebSocket, contents over HTTP by their
// hash. docs/formats/live.md is the protocol, package kilnrt/live a client of it.
//
// The rules of the package:
//
//   - A game never holds a build. For each one a number is kept, how far it has been told; when it can take something it gets all that came
//     after, as it is by then.
//   - Nothing that a game or a web page says is trusted: every number has a limit, and who asks is looked at before what is asked.
//   - It knows no project: whoever builds hands in what became different (Update), and answers two questions (Content).
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

// Content is what a hub asks of whoever builds.
type Content interface {
	// Open opens a blob. That there is none (any more) is fs.ErrNotExist.
	Open(hash digest.Hash) (io.ReadSeekCloser, error)

	// Want has an asset built before all else, and returns when what came of it has been handed to Hub.Update, a failure too. The
	// error is for what keeps it from being built at all, in words for people.
	Want(ctx context.Context, platform, asset string) error
}

// Key is a resource's identity for good.
type Key struct {
	UUID string // of the asset, in lower case
	Sub  uint32 // of the product within it
}

// Ref is a resource that another one needs at run time.
type Ref struct {
	Key
	Required bool
}

// Product is one product of an asset on a platform. Refs are in load order, as the processor gave them.
type Product struct {
	Key
	Asset string // its id
	Name  string // of the product; "" is the main one
	Kind  string // its type, as "texture"
	Hash  digest.Hash
	Size  int64 // bytes
	Refs  []Ref
}

// Failure is an asset that fails. Messages may be none: all is said of one that it needs.
type Failure struct {
	Asset    string
	Messages diag.List
}

// Update is what became different on a platform.
type Update struct {
	Products []Product // that are new or other than they were
	Gone     []Key     // products that are no more
	Failed   []Failure // assets that fail, and did not, or in another way
	Mended   []string  // assets that fail no longer
	Whole    bool      // Products and Failed are all there are
	Saved    time.Time // when the first file was saved that this comes from; zero: unknown. For measuring only.
}

// resource is a product with a number; it is not changed once it is made.
type resource struct {
	Product
	id uint32
}

// name is what a game finds it by.
func (r *resource) name() string {
	if r.Name == "" {
		return r.Asset
	}
	return r.Asset + "#" + r.Name
}
