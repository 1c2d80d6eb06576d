package kilnrt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

// keys returns a pair of keys that is the same in every run.
func keys(t testing.TB) (*parcel.Key, kilnrt.PublicKey) {
	t.Helper()
	pub, priv, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("not random"), 10)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := priv.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	key, err := parcel.ReadKey(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := kilnrt.ParsePublicKey(pub.String())
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// signedKinds returns a signed parcel with resources of all kinds.
func signedKinds(t testing.TB, key *parcel.Key) ([]byte, []parcel.Resource) {
	t.Helper()
	packed := resource(4, "packed", "data", bytes.Repeat([]byte("over and over "), 100))
	packed.Compress = true
	rs := []parcel.Resource{resource(1, "one", "data", []byte("one")), resource(2, "two", "model", []byte("another one"), 1, 4),
		resource(3, "", "data", nil), packed}
	return written(t, parcel.Options{Sign: key.Sign}, rs...), rs
}

func TestTrust(t *testing.T) {
	key, public := keys(t)
	data, _ := signedKinds(t, key)
	if err := opened(t, data).Trust(public); err != nil {
		t.Error(err)
	}
	if err := opened(t, data).Trust(kilnrt.PublicKey{}); !errors.Is(err, kilnrt.ErrSignature) {
		t.Errorf("by no key: %v", err)
	}
	unsigned := opened(t, written(t, parcel.Options{}))
	if err := unsigned.Trust(public); !errors.Is(err, kilnrt.ErrNotSigned) {
		t.Errorf("not signed: %v", err)
	}
	path := filepath.Join(t.TempDir(), "p")
	os.WriteFile(path, data, 0o644)
	p, err := kilnrt.OpenSigned(path, public)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := kilnrt.OpenSigned(path, kilnrt.PublicKey{}); !errors.Is(err, kilnrt.ErrSignature) {
		t.Errorf("a file, by no key: %v", err)
	}
	if _, err := kilnrt.ParsePublicKey("no key"); err == nil {
		t.Error("anything is a key")
	}
}

// TestForged changes signed parcels and corrects their checksums. Nothing unsigned may be returned.
func TestForged(t *testing.T) {
	key, public := keys(t)
	good, rs := signedKinds(t, key)
	contents := map[uint32][]byte{}
	for _, r := range rs {
		found, err := opened(t, good).ByID(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if contents[r.ID], err = found.Bytes(); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(9, 9))
	refused, passed := 0, 0
	for range 2000 {
		b := judge.Damage(rng, good)
		p, err := kilnrt.OpenReaderAt(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			err = p.Trust(public)
		}
		if err != nil {
			refused++
			continue
		}
		passed++
		for id, content := range contents {
			r, err := p.ByID(id)
			if err != nil {
				t.Fatalf("a trusted parcel does not have %d: %v", id, err)
			}
			if got, err := r.Bytes(); err == nil && !bytes.Equal(got, content) {
				t.Fatalf("another content of %d is trusted", id)
			}
		}
	}
	if refused < 500 || passed < 20 {
		t.Errorf("%d are refused, %d are not: that tries little", refused, passed)
	}
}

// TestForgedContent replaces a content by one with a correct CRC and another hash.
func TestForgedContent(t *testing.T) {
	key, public := keys(t)
	data, _ := signedKinds(t, key)
	e := editor(data)
	r := e.record(0)
	content := e[binary.LittleEndian.Uint64(r[32:]):][:binary.LittleEndian.Uint64(r[40:])]
	copy(content, "ONE")
	binary.LittleEndian.PutUint32(r[28:], crc32.ChecksumIEEE(content))
	e.fix(true)
	for _, trust := range []bool{false, true} {
		p := opened(t, data)
		if trust {
			if err := p.Trust(public); err != nil {
				t.Fatal(err)
			}
		}
		one, err := p.ByID(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Bytes(); (err != nil) != trust {
			t.Errorf("trusted %v, read at once: %v", trust, err)
		}
		s, err := one.Reader()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(bytes.Buffer).ReadFrom(s); (err != nil) != trust {
			t.Errorf("trusted %v, read as a stream: %v", trust, err)
		}
		two, err := p.ByID(4)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := two.Bytes(); err != nil {
			t.Errorf("trusted %v, a good one: %v", trust, err)
		}
	}
}
