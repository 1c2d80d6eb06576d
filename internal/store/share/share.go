// Package share defines how machines share results of jobs: two kinds of entry, and blobs.
//
// A hint has the observations of a task's runs, without results. Its key contains everything that is known
// about a task before it runs. A reader of the hint looks at the same things. The hash of their values
// here, together with the hint's key, is the key of the result. So an entry is found by its inputs alone,
// and a result need not be trusted to belong to them: only these inputs have its key.
//
// Every entry contains its own key and ends in a checksum, and every blob is identified by its hash. If a
// cache returns anything else, that is a miss. No absolute path, user, host, or clock is in a key;
// operating system and architecture are only in the keys of external programs (see docs/formats/cache.md).
package share

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// Key identifies an entry.
type Key [sha256.Size]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Blob identifies the bytes of a product. Servers use SHA-256, Kiln its own hash.
type Blob struct {
	Hash   digest.Hash
	SHA256 [sha256.Size]byte
	Size   int64
}

// MaxValue is the maximum size of an entry, in bytes. Larger ones are not shared, because servers accept
// messages of 4 MiB.
const MaxValue = 3 << 20

// Cache stores entries and blobs. Its methods may be called by several goroutines. Package sharetest has the tests that
// every cache must pass.
type Cache interface {
	// Get returns the value of an entry, or fs.ErrNotExist. The value may be any bytes: the caller decodes it and
	// checks that it is the entry of this key.
	Get(ctx context.Context, key Key) ([]byte, error)

	// Put stores an entry, and replaces an existing one. The entry is useless without these blobs, which are stored
	// already.
	Put(ctx context.Context, key Key, value []byte, blobs []Blob) error

	// Missing returns which of the blobs are not stored.
	Missing(ctx context.Context, blobs []Blob) ([]Blob, error)

	// Fetch writes a blob. If its bytes are not available or wrong, it fails, with fs.ErrNotExist or ErrDamaged if that
	// is the cause; some bytes may have been written by then.
	Fetch(ctx context.Context, blob Blob, to io.Writer) error

	// Store stores a blob. Each call of open returns its bytes from the beginning. If they are not the blob's, nothing
	// is stored.
	Store(ctx context.Context, blob Blob, open func() (io.ReadCloser, error)) error

	// Close ends background work of the cache.
	Close() error
}

// ErrDamaged means that bytes are not those of a blob.
var ErrDamaged = errors.New("the bytes are not those of the blob")

// IsMiss reports whether an error means that the cache works, but has nothing usable for the request.
func IsMiss(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) }
