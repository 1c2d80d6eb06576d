package share_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/sharetest"
)

// TestReceive: whoever hashes, only the right bytes are taken.
func TestReceive(t *testing.T) {
	store, err := cas.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 300 << 10} { // the last does not fit in a writer's buffer
		right := bytes.Repeat([]byte("x"), size)
		known := sharetest.BlobOf(right)
		unknown := known
		unknown.Hash = digest.Hash{}
		flipped := bytes.Clone(right)
		if size > 0 {
			flipped[size-1] ^= 1
		}
		for _, c := range []struct {
			name string
			sent []byte
			bad  bool
		}{
			{"right", right, false}, {"longer", append(bytes.Clone(right), 'x'), true},
			{"shorter", right[:max(0, size-1)], size > 0}, {"flipped", flipped, size > 0},
		} {
			for _, b := range []share.Blob{known, unknown} {
				w := store.Create()
				writers := map[string]io.Writer{"a store's": w, "one that does not hash": new(bytes.Buffer)}
				for name, to := range writers {
					if err := share.Receive(to, bytes.NewReader(c.sent), b); errors.Is(err, share.ErrDamaged) != c.bad || (err != nil) != c.bad {
						t.Errorf("%d bytes, %s, writer %s, hash %s: %v", size, c.name, name, b.Hash.Short(), err)
					}
				}
				w.Abort()
			}
		}
	}
}
