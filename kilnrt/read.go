package kilnrt

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"
)

// maxWindow is the largest distance that a frame may refer back, by the format. It limits the memory for a stream.
const maxWindow = 8 << 20

// newDecoder returns a decoder, of r if that is not nil. dict is a dictionary in the format of zstd or raw content.
func newDecoder(r io.Reader, dict []byte) (*zstd.Decoder, error) {
	opts := []zstd.DOption{
		zstd.WithDecoderMaxMemory(MaxCompressed), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true),
	}
	if r != nil {
		opts = append(opts, zstd.WithDecoderConcurrency(1)) // no goroutines
	}
	switch {
	case len(dict) >= 4 && le.Uint32(dict) == 0xec30a437:
		opts = append(opts, zstd.WithDecoderDicts(dict))
	case len(dict) > 0:
		opts = append(opts, zstd.WithDecoderDictRaw(0, dict))
	}
	return zstd.NewReader(r, opts...)
}

// Bytes returns the complete content, checked against its CRC, and after Trust against its hash. Uncompressed content
// of a mapped parcel is not copied: do not write to it, and do not use it after Close.
func (r *Resource) Bytes() ([]byte, error) {
	b, err := r.Raw()
	if err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(b) != r.CRC {
		return nil, fmt.Errorf("%w: the content of resource %d is not what it was", ErrDamaged, r.ID)
	}
	if r.Codec != None {
		if b, err = r.decompress(b); err != nil {
			return nil, err
		}
	}
	return b, r.authentic(b)
}

func (r *Resource) decompress(b []byte) ([]byte, error) {
	if r.Size > 64*r.Stored+1<<20 {
		return r.unfold(b)
	}
	get := r.p.plain
	if r.Codec == ZstdDict {
		get = r.p.withDict
	}
	d, err := get()
	if err != nil {
		return nil, r.undecodable(err)
	}
	out, err := d.DecodeAll(b, make([]byte, 0, r.Size))
	return out, r.whole(int64(len(out)), err)
}

// Raw returns the stored bytes without checking or decompressing them.
func (r *Resource) Raw() ([]byte, error) { return r.p.bytes(r.Offset, r.Stored) }

// unfold decompresses content in steps if it claims to expand more than 64 times: an empty texture may do so, and a
// false claim ends early.
func (r *Resource) unfold(stored []byte) ([]byte, error) {
	d, err := r.decoder(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(d, r.Size+1))
	return out.Bytes(), r.whole(n, err)
}

func (r *Resource) decoder(from io.Reader) (*zstd.Decoder, error) {
	var dict []byte
	if r.Codec == ZstdDict {
		dict = r.p.sections[SectionDictionary]
	}
	d, err := newDecoder(from, dict)
	if err != nil {
		return nil, r.undecodable(err)
	}
	return d, nil
}

// whole returns an error unless decompressing ended correctly.
func (r *Resource) whole(size int64, err error) error {
	if err == nil && size != r.Size {
		err = fmt.Errorf("%d bytes instead of %d", size, r.Size)
	}
	if err != nil {
		return r.undecodable(err)
	}
	return nil
}

func (r *Resource) undecodable(err error) error {
	return fmt.Errorf("%w: resource %d cannot be decompressed: %w", ErrDamaged, r.ID, err)
}

// Reader returns the content as a stream, for content that is too large for memory. The end of the stream is an error, and not io.EOF, if
// the CRC, the size or, after Trust, the hash is wrong: do not rely on the content before the end. Close the reader.
func (r *Resource) Reader() (io.ReadCloser, error) {
	s := &stream{r: r, stored: stored{from: io.NewSectionReader(r.p.src, r.Offset, r.Stored)}}
	if r.p.trusted.Load() {
		s.hash = blake3.New()
	}
	if r.Codec == None {
		s.content = &s.stored
		return s, nil
	}
	d, err := r.decoder(&s.stored)
	if err != nil {
		return nil, err
	}
	s.content, s.close = d, d.Close
	return s, nil
}

// stored reads the stored bytes of a resource, and computes the CRC of those that were read.
type stored struct {
	from io.Reader
	n    int64
	crc  uint32
}

func (s *stored) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	s.n += int64(n)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, b[:n])
	return n, err
}

type stream struct {
	r       *Resource
	stored  stored
	content io.Reader
	n       int64
	hash    *blake3.Hasher // of the content, after Trust
	close   func()
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.content.Read(b)
	s.n += int64(n)
	if s.hash != nil {
		s.hash.Write(b[:n])
	}
	switch {
	case s.n > s.r.Size:
		return n, s.r.whole(s.n, nil)
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, s.r.undecodable(err)
	}
	if s.stored.n != s.r.Stored || s.stored.crc != s.r.CRC {
		return n, fmt.Errorf("%w: the content of resource %d is not what it was", ErrDamaged, s.r.ID)
	}
	if err := s.r.whole(s.n, nil); err != nil {
		return n, err
	}
	if s.hash != nil && [32]byte(s.hash.Sum(nil)) != s.r.Hash {
		return n, s.r.forged()
	}
	return n, io.EOF
}

func (s *stream) Close() error {
	if s.close != nil {
		s.close()
		s.close = nil
	}
	return nil
}
