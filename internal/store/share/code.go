package share

import (
	"errors"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/varint"
)

// errBad means that bytes are not an entry, or not the entry of this key.
var errBad = errors.New("share: not an entry of this key")

// Kinds of entry, as their first bytes; the last is the version.
const (
	hintMagic   = "KILN\x00hnt\x01"
	resultMagic = "KILN\x00res\x02"
)

// begin starts an entry of a key.
func begin(magic string, key Key) *varint.Encoder {
	e := &varint.Encoder{}
	e.Buf = append(append(e.Buf, magic...), key[:]...)
	return e
}

// end adds the checksum.
func end(e *varint.Encoder) []byte {
	sum := digest.Of(e.Buf)
	e.Raw(sum[:])
	return e.Buf
}

// open checks the magic number, key and checksum of an entry.
func open(magic string, key Key, value []byte) (*varint.Decoder, error) {
	head := len(magic) + len(key)
	if len(value) < head+digest.Size || len(value) > MaxValue || string(value[:len(magic)]) != magic || Key(value[len(magic):head]) != key {
		return nil, errBad
	}
	body := value[: len(value)-digest.Size : len(value)-digest.Size]
	if digest.Of(body) != digest.Hash(value[len(body):]) {
		return nil, errBad
	}
	return &varint.Decoder{Buf: body[head:]}, nil
}

// closed returns an error unless everything was read without one.
func closed(d *varint.Decoder) error {
	if d.Err != nil || len(d.Buf) > 0 {
		return errBad
	}
	return nil
}
