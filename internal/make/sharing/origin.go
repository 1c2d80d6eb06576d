package sharing

import (
	"context"
	"io"

	"github.com/kiln-pipeline/kiln/internal/store/share"
)

// What a result came from, as traces have it.
const (
	FromFolder = "folder"
	FromServer = "server"
)

// origin is a cache that notes in the context's noted value, if there is one, that it had what was asked for. It is around the guard: what
// a guard gave up on notes nothing.
type origin struct {
	share.Cache
	name string
}

type notedKey struct{}

// noting returns a context for one question, and where the name of the cache that answers it will be.
func noting(ctx context.Context) (context.Context, *string) {
	name := new(string)
	return context.WithValue(ctx, notedKey{}, name), name
}

func (o origin) note(ctx context.Context, err error) {
	if name, ok := ctx.Value(notedKey{}).(*string); ok && err == nil {
		*name = o.name
	}
}

// Get returns the value of an entry.
func (o origin) Get(ctx context.Context, key share.Key) ([]byte, error) {
	value, err := o.Cache.Get(ctx, key)
	o.note(ctx, err)
	return value, err
}

// Fetch writes a blob.
func (o origin) Fetch(ctx context.Context, b share.Blob, to io.Writer) error {
	err := o.Cache.Fetch(ctx, b, to)
	o.note(ctx, err)
	return err
}

// found is the value of an entry, and the cache that had it.
type found struct {
	value []byte
	from  string

	result *share.Result // of a result
	run    share.Run
}
