package kilnrt

import (
	"bytes"
	"fmt"

	"aead.dev/minisign"
	"github.com/zeebo/blake3"
)

// PublicKey is a public key of minisign, with which a game knows its own parcels.
type PublicKey struct{ key minisign.PublicKey }

// ParsePublicKey reads a public key: the text of a .pub file, or its second line alone.
func ParsePublicKey(text string) (PublicKey, error) {
	var k PublicKey
	err := k.key.UnmarshalText(bytes.TrimSpace([]byte(text)))
	return k, err
}

// OpenSigned opens a file as Open does, and trusts it only as far as its signature goes: see Trust.
func OpenSigned(path string, by PublicKey) (*Parcel, error) {
	p, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := p.Trust(by); err != nil {
		p.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Trust holds the parcel to a signature: that of its digest by the key, the digest to the index, and the index to itself, as Check does.
// From then on each content is compared with its hash when Bytes or Reader give it out, which takes a second for 1.5 GB; Raw stays
// unchecked. So nothing comes out that the key's owner has not signed, as long as nobody writes to the file meanwhile.
//
// The error is ErrNotSigned, ErrSignature, or one of Check. Reading the index of 100,000 resources takes 50 ms.
func (p *Parcel) Trust(by PublicKey) error {
	text := p.Signature()
	if len(text) == 0 {
		return ErrNotSigned
	}
	if !minisign.Verify(by.key, p.h.Digest[:], text) {
		return ErrSignature
	}
	if err := p.Check(); err != nil {
		return err
	}
	d, err := p.ComputeDigest()
	if err != nil {
		return err
	}
	if d != p.h.Digest {
		return fmt.Errorf("%w: the index is not the one that is signed", ErrDamaged)
	}
	p.trusted.Store(true)
	return nil
}

// ComputeDigest is the digest of what the index says, which is Digest() in a parcel that is whole.
func (p *Parcel) ComputeDigest() (d [32]byte, err error) {
	h := blake3.New()
	var b []byte
	for i := range p.Len() {
		r, err := p.At(i)
		if err != nil {
			return d, err
		}
		b = le.AppendUint32(b[:0], r.ID)
		b = le.AppendUint32(b, r.SubID)
		b = append(b, r.UUID[:]...)
		b = le.AppendUint64(b, uint64(r.Size))
		b = append(b, r.Hash[:]...)
		b = append(le.AppendUint16(b, uint16(len(r.Type()))), r.Type()...)
		b = append(le.AppendUint16(b, uint16(r.nameLen)), r.nameBytes()...)
		b = le.AppendUint32(b, uint32(r.Required))
		b = le.AppendUint32(b, uint32(r.Optional))
		needs := p.sections[SectionNeeds]
		h.Write(append(b, needs[4*int(r.needs):4*(int(r.needs)+r.Required+r.Optional)]...))
	}
	h.Sum(d[:0])
	return d, nil
}

// authentic compares content with its hash, in a parcel that has to be trusted.
func (r *Resource) authentic(content []byte) error {
	if r.p.trusted.Load() && blake3.Sum256(content) != r.Hash {
		return r.forged()
	}
	return nil
}

func (r *Resource) forged() error {
	return fmt.Errorf("%w: the content of resource %d is not the one that is signed", ErrDamaged, r.ID)
}
