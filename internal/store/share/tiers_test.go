package share_test

import (
	"bytes"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/store/share"
	"github.com/kiln-pipeline/kiln/internal/store/share/folder"
	"github.com/kiln-pipeline/kiln/internal/store/share/sharetest"
)

// TestTiersIntact: a value of the near cache that is damaged, or not signed as it has to be, does not hide the far one's, and is replaced by
// it; a bad one of the far cache is not copied.
func TestTiersIntact(t *testing.T) {
	open := func() share.Cache {
		f, err := folder.Open(t.TempDir(), 0, false)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	near, far, ctx, key := open(), open(), t.Context(), sharetest.KeyOf("a")
	signed := func(text, signature []byte) bool { return bytes.Equal(signature, append([]byte("signed "), text...)) }
	both := share.Tiers(near, far, near, func(k share.Key, value []byte) bool { return share.Intact(k, value, signed) })
	good := result().Encode(key, share.Run{}, func(text []byte) []byte { return append([]byte("signed "), text...) })
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	for name, bad := range map[string][]byte{"empty": {}, "damaged": flipped, "unsigned": result().Encode(key, share.Run{}, nil)} {
		near.Put(ctx, key, bad, nil)
		far.Put(ctx, key, good, nil)
		if got, err := both.Get(ctx, key); err != nil || !bytes.Equal(got, good) {
			t.Errorf("%s in the near cache hides the far one's: %v", name, err)
		}
		if got, err := near.Get(ctx, key); err != nil || !bytes.Equal(got, good) {
			t.Errorf("%s in the near cache is not replaced: %v", name, err)
		}
		far.Put(ctx, key, bad, nil)
		if got, err := both.Get(ctx, key); err != nil || !bytes.Equal(got, good) {
			t.Errorf("%s in the far cache hides the near one's: %v", name, err)
		}
	}
}
