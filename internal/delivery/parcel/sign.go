package parcel

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"aead.dev/minisign"

	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// ErrKey is wrapped by all errors about invalid keys and signatures.
var ErrKey = errors.New("key")

// Key is a secret key of minisign.
type Key struct{ key minisign.PrivateKey }

// ReadKey reads the text of a secret key made by `minisign -G`. password is called if the key has one.
func ReadKey(text []byte, password func() (string, error)) (*Key, error) {
	text = bytes.TrimSpace(text)
	k := new(Key)
	if !minisign.IsEncrypted(text) {
		if err := k.key.UnmarshalText(text); err != nil {
			return nil, fmt.Errorf("%w: it is not a secret key of minisign", ErrKey)
		}
		return k, nil
	}
	word, err := password()
	if err != nil {
		return nil, err
	}
	if k.key, err = minisign.DecryptKey(word, text); err != nil {
		return nil, fmt.Errorf("%w: the password is wrong, or the key is damaged", ErrKey)
	}
	return k, nil
}

// Sign signs a digest: the signature is that of a file with its 32 bytes, prehashed as by minisign. It contains no
// time, so a key has one signature for a digest.
func (k *Key) Sign(digest [32]byte) ([]byte, error) {
	r := minisign.NewReader(bytes.NewReader(digest[:]))
	if _, err := r.Read(make([]byte, len(digest))); err != nil {
		return nil, err
	}
	return r.SignWithComments(k.key, "digest of a parcel: "+hex.EncodeToString(digest[:]), fmt.Sprintf("signature by the key %016X", k.key.ID())), nil
}

// Sign replaces the signature of the parcel at a path: sign returns the signature of its digest; if sign is nil, the
// old one is removed. Only the signature is written, as in Update.
func Sign(path string, sign func(digest [32]byte) ([]byte, error)) error {
	p, err := kilnrt.Open(path)
	if err != nil {
		return err
	}
	defer p.Close()
	text, err := sign(p.Digest())
	if err != nil || bytes.Equal(text, p.Signature()) {
		return err
	}
	if err := checkSignature(text); err != nil {
		return err
	}
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	h := p.Header()
	h.Generation++
	h.Waste += h.Sections[kilnrt.SectionSignature].Size
	w := &writer{f: f, pos: h.End, begun: h.End}
	if err := w.section(&h, kilnrt.SectionSignature, text); err != nil {
		return err
	}
	h.End = w.pos
	if err := w.slot(&h, 1-h.Slot); err != nil {
		return err
	}
	return f.Close()
}

// checkSignature returns an error for an invalid signature, before readers see it.
func checkSignature(text []byte) error {
	var s minisign.Signature
	switch {
	case len(text) == 0:
		return nil
	case len(text) > kilnrt.MaxSignature:
		return fmt.Errorf("%w: a signature of %d bytes is longer than %d", ErrKey, len(text), kilnrt.MaxSignature)
	case s.UnmarshalText(text) != nil:
		return fmt.Errorf("%w: it is not a signature of minisign", ErrKey)
	}
	return nil
}

// signature is the signature section of a parcel with a digest.
func (o *Options) signature(digest [32]byte) ([]byte, error) {
	if o.Sign == nil {
		return nil, nil
	}
	text, err := o.Sign(digest)
	if err == nil {
		err = checkSignature(text)
	}
	return text, err
}

// keepSignature returns the parcel's signature as long as the digest is the same.
func keepSignature(old *kilnrt.Parcel) func(digest [32]byte) ([]byte, error) {
	return func(digest [32]byte) ([]byte, error) {
		if old.Digest() == digest {
			return old.Signature(), nil
		}
		return nil, nil
	}
}
