// Package share is what machines share of the results of jobs: two kinds of entry, and blobs.
//
// A hint says what runs of a task observed, without results. Its key is made of all that is known of a task
// before it runs. Who has the hint looks at the same things, and the hash of what is seen there, with the
// hint's key, is the key of the result. So an entry is found by its inputs alone, and a result never has to
// be believed to fit: it is looked for under a key that only these inputs have.
//
// Every entry names its own key and ends in a checksum, and every blob is known by its hash. What a cache
// gives that is not what was asked for is a miss. No absolute path, user, host, or clock is in a key;
// operating system and architecture are only in those of external programs (see docs/formats/cache.md).
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

// Key is what an entry is found by.
type Key [sha256.Size]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Blob is what is known of the bytes of a product. Servers know them by their SHA-256, Kiln by its own hash.
type Blob struct {
	Hash   digest.Hash
	SHA256 [sha256.Size]byte
	Size   int64
}

// MaxValue is how many bytes an entry may have. Larger ones are not shared: servers take messages of 4 MiB.
const MaxValue = 3 << 20

// Cache is where entries and blobs are. Its methods may be called by several goroutines. Package sharetest has the tests that every
// cache has to pass.
type Cache interface {
	// Get gives the value of an entry. One that is not there is fs.ErrNotExist. The value may be any bytes: the caller decodes it, and finds
	// out then whether it is the entry of that key.
	Get(ctx context.Context, key Key) ([]byte, error)

	// Put stores an entry, in place of one that is there. The blobs are those that it is worth nothing without; they are there already.
	Put(ctx context.Context, key Key, value []byte, blobs []Blob) error

	// Missing are those of the blobs that are not there.
	Missing(ctx context.Context, blobs []Blob) ([]Blob, error)

	// Fetch writes a blob. If its bytes cannot be had, or are not the right ones, it fails, with fs.ErrNotExist or ErrDamaged where that is
	// the cause; some of them may have been written by then.
	Fetch(ctx context.Context, blob Blob, to io.Writer) error

	// Store stores a blob. open gives its bytes, from the first, each time that it is called. Of other bytes than the blob's nothing is kept.
	Store(ctx context.Context, blob Blob, open func() (io.ReadCloser, error)) error

	// Close ends what the cache does in the background.
	Close() error
}

// ErrDamaged says that bytes are not those of a blob.
var ErrDamaged = errors.New("the bytes are not those of the blob")

// IsMiss reports whether an error says that the cache works, and has nothing of use under what was asked for.
func IsMiss(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) }
