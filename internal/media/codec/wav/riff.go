package wav

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Limits of data that is read into memory.
const (
	maxChunks   = 1 << 16 // in a file, and in a LIST
	maxMetadata = 1 << 22 // bytes of a chunk, except for samples
	maxWarnings = 20
)

// chunk is a chunk of a file, without its head.
type chunk struct {
	id       string
	at, size int64 // the part that is in the file
	whole    bool
}

func (c chunk) String() string { return fmt.Sprintf("%q chunk at byte %d", c.id, c.at-8) }

// riff reads chunks.
type riff struct {
	from   io.ReaderAt
	order  binary.ByteOrder
	base   int64            // position of byte 0 in the file, for messages
	size   int64            // size of the data
	end    int64            // end of the chunks, as the file says; below 0 if unknown, as in a stream
	sizes  map[string]int64 // from ds64
	warned *[]string
}

// warn records a warning. After a maximum of warnings it only counts.
func (r *riff) warn(format string, args ...any) {
	switch n := len(*r.warned); {
	case n < maxWarnings:
		*r.warned = append(*r.warned, fmt.Sprintf(format, args...))
	case n == maxWarnings:
		*r.warned = append(*r.warned, "and more of the like")
	}
}

// bytes reads n bytes at a position.
func (r *riff) bytes(at int64, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, r.fill(b, at)
}

func (r *riff) fill(b []byte, at int64) error {
	n, err := r.from.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF || err == nil:
		return fmt.Errorf("%d bytes at byte %d: %w", len(b), r.base+at, ErrTruncated)
	}
	return fmt.Errorf("%d bytes at byte %d: %w", len(b), r.base+at, err)
}

// head reads the head of a chunk.
func (r *riff) head(at int64) (id string, size int64, err error) {
	b, err := r.bytes(at, 8)
	if err != nil {
		return "", 0, err
	}
	return string(b[:4]), int64(r.order.Uint32(b[4:])), nil
}

// plausible reports whether a chunk may begin at a position: letters, and a size that fits.
func (r *riff) plausible(at int64) bool {
	if at+8 > r.size {
		return false
	}
	id, size, err := r.head(at)
	return err == nil && letters(id) && (at+8+size <= r.size || r.sizes != nil && size == 1<<32-1)
}

func letters(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// known are chunks that are also read after the end of the RIFF chunk.
var known = map[string]bool{"fmt ": true, "data": true, "fact": true, "smpl": true, "cue ": true, "LIST": true}

// chunks lists all chunks from a position on.
func (r *riff) chunks(at int64) (all []chunk, err error) {
	beyond := false
	for at+8 <= r.size {
		id, size, err := r.head(at)
		if err != nil {
			return nil, err
		}
		outside := r.end >= 0 && at >= r.end
		switch {
		case outside && !known[id]:
			return all, nil // data that some programs append
		case !letters(id):
			r.warn("no chunk at byte %d: the rest is not read", r.base+at)
			return all, nil
		case outside && !beyond:
			beyond = true
			r.warn("the RIFF chunk says that it ends at byte %d, but chunks go on", r.base+r.end)
		case len(all) == maxChunks:
			r.warn("more than %d chunks: the rest is not read", maxChunks)
			return all, nil
		}
		c := r.chunk(id, at, size)
		if all = append(all, c); c.id == "ds64" && r.sizes != nil {
			if err := r.ds64(c); err != nil {
				return nil, err
			}
		}
		at = r.after(c)
	}
	return all, nil
}

// chunk returns the part of a chunk that is in the file.
func (r *riff) chunk(id string, at, size int64) chunk {
	c := chunk{id, r.base + at + 8, size, true}
	rest := r.size - at - 8
	if size == 1<<32-1 {
		if long, ok := r.sizes[id]; ok {
			c.size = long
		}
	}
	if id == "data" && r.stream(c, rest) {
		c.size = rest
	}
	if c.size > rest {
		r.warn("%s is cut off: it says %d bytes, and %d are there", c, c.size, rest)
		c.size, c.whole = rest, false
	}
	return c
}

// stream reports whether a data chunk extends to the end of the file, because its writer did not know the size, or was
// stopped before it wrote the size.
func (r *riff) stream(c chunk, rest int64) bool {
	if c.size > rest {
		// sox writes 0x7ffff000; others subtract the size of their head.
		return c.size >= 1<<32-256 && c.size < 1<<32 || c.size == 0x7ffff000 || r.end < 0
	}
	if c.size > 0 || rest == 0 || r.plausible(c.at-r.base) {
		return false
	}
	if r.end >= 0 {
		r.warn("%s says 0 bytes; the %d that follow are read", c, rest)
	}
	return true
}

// after returns the start of the next chunk: some programs omit the padding byte after an odd size.
func (r *riff) after(c chunk) int64 {
	next := c.at - r.base + c.size
	if c.size%2 == 0 {
		return next
	}
	if !r.plausible(next+1) && r.plausible(next) {
		r.warn("%s has an odd size, and no padding byte", c)
		return next
	}
	return next + 1
}

// ds64 reads sizes of 64 bits.
//
//	 0  u64  size of the RIFF chunk, u64 of the data chunk, u64 number of frames
//	24  u32  number of other sizes; then each: 4 bytes id, u64 size
func (r *riff) ds64(c chunk) error {
	if c.size < 24 {
		return fmt.Errorf("%s of %d bytes: %w", c, c.size, ErrDamaged)
	}
	b, err := r.bytes(c.at-r.base, int(min(c.size, maxMetadata)))
	if err != nil {
		return err
	}
	size := func(at int) int64 { return int64(min(r.order.Uint64(b[at:]), 1<<62)) }
	r.end = 8 + size(0)
	r.sizes["data"] = size(8)
	for at, n := 28, 0; at+12 <= len(b) && n < int(r.order.Uint32(b[24:])); at, n = at+12, n+1 {
		r.sizes[string(b[at:at+4])] = size(at + 4)
	}
	return nil
}
