package ogg

import (
	"bytes"
	"fmt"
	"io"
)

// maxLinks limits the streams of a file that follow one another; each costs its headers in memory.
const maxLinks = 1024

// Links returns where the streams of a file begin that follow one another (RFC 3533, 4: chaining): a page that begins a
// stream, after a page that does not. Their serial numbers may be the same, as in files that were joined byte by byte.
// It reads the head of each page. It checks the checksum of a page before it returns the page's position.
func Links(in io.ReaderAt, size int64) (starts []int64, err error) {
	head := make([]byte, pageHead+255)
	begun := false // the last page begins a stream
	for at := int64(0); at < size; {
		n, err := in.ReadAt(head[:min(int64(len(head)), size-at)], at)
		if err != nil && err != io.EOF {
			return nil, err
		}
		whole := pageSize(head[:n])
		if whole == 0 {
			if at, err = nextPage(in, at+1, size); err != nil {
				return nil, err
			}
			continue
		}
		first := head[5]&2 != 0
		if first && !begun {
			valid, err := validAt(in, at, min(whole, size-at))
			if err != nil {
				return nil, err
			}
			if !valid {
				if at, err = nextPage(in, at+1, size); err != nil {
					return nil, err
				}
				continue
			}
			if starts = append(starts, at); len(starts) > maxLinks {
				return nil, fmt.Errorf("more than %d streams that follow one another: %w", maxLinks, ErrUnsupported)
			}
		}
		begun = first
		at += whole
	}
	return starts, nil
}

// pageSize returns the size of the page that begins with these bytes, or 0 if none does.
func pageSize(b []byte) int64 {
	if len(b) < pageHead || string(b[:4]) != "OggS" || b[4] != 0 || len(b) < pageHead+int(b[26]) {
		return 0
	}
	size := int64(pageHead) + int64(b[26])
	for _, s := range b[pageHead:][:b[26]] {
		size += int64(s)
	}
	return size
}

// validAt reports whether a page with a right checksum is at a position.
func validAt(in io.ReaderAt, at, size int64) (bool, error) {
	b := make([]byte, size)
	n, err := in.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return false, err
	}
	_, ok := parse(b[:n])
	return ok, nil
}

// nextPage returns the first position from at on where a page may begin, or the size of the file.
func nextPage(in io.ReaderAt, at, size int64) (int64, error) {
	const piece = 64 << 10
	b := make([]byte, piece)
	for ; at < size; at += piece - 3 {
		n, err := in.ReadAt(b[:min(piece, size-at)], at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.Index(b[:n], []byte("OggS")); i >= 0 {
			return at + int64(i), nil
		}
	}
	return size, nil
}
