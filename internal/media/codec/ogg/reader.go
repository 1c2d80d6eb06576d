package ogg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Reader reads the packets of a stream.
type Reader struct {
	Stream
	Last     int64    // granule position of the last page
	Warnings []string // in plain words

	in    io.ReaderAt
	size  int64
	first int64 // start of the first page of audio

	at      int64 // position of the next page
	buf     []byte
	page    page
	pending []byte // start of a packet that continues
	lost    bool   // the start of the continued packet is damaged
	next    int    // next segment
	body    int    // start of that segment
	done    bool
	mixed   bool // sound begins on a page with headers
}

// Packet is a packet of audio.
type Packet struct {
	Data    []byte // valid until the next call
	Granule int64  // frames up to the end of the packet, if it is the last one that ends in its page; else -1
	End     bool   // it is the last of the stream
	Gap     bool   // packets before it are missing
}

type page struct {
	flags    byte
	granule  int64
	serial   uint32
	segments []byte
	data     []byte
	size     int64
}

// NewReader reads the headers, and finds the end of the stream.
func NewReader(in io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{in: in, size: size, buf: make([]byte, maxPage)}
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r, r.findLast()
}

func (r *Reader) warn(format string, args ...any) {
	const most = 20
	if len(r.Warnings) < most {
		r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
	}
}

// begin reads up to the first page of audio.
func (r *Reader) begin() error {
	found := false
	for !found {
		if err := r.read(); err != nil {
			if err == io.EOF {
				return fmt.Errorf("no stream of Vorbis or Opus: %w", ErrUnsupported)
			}
			return err
		}
		if r.page.flags&2 == 0 {
			return fmt.Errorf("no stream of Vorbis or Opus: %w", ErrUnsupported)
		}
		if len(r.page.segments) > 0 {
			r.Codec, found = codecOf(r.page.data[:min(len(r.page.data), int(r.page.segments[0]))])
		}
	}
	r.Serial = r.page.serial
	first := bytes.Clone(r.page.data[:r.page.segments[0]])
	r.Headers = append(r.Headers, first)
	if err := r.identify(first); err != nil {
		return err
	}
	r.next, r.body = len(r.page.segments), len(r.page.data)
	for len(r.Headers) < map[Codec]int{Vorbis: 3, Opus: 2}[r.Codec] {
		p, err := r.packet()
		if err != nil {
			if err == io.EOF {
				err = fmt.Errorf("the headers of %s: %w", r.Codec, ErrTruncated)
			}
			return err
		}
		r.Headers = append(r.Headers, bytes.Clone(p.Data))
	}
	if r.next != len(r.page.segments) { // the specifications require a separate page
		r.mixed = true
		r.warn("sound begins on the page of the headers; it is left out up to the next page")
	}
	r.first = r.at
	return r.comments(r.Headers[1])
}

// findLast finds the last page of the stream, from the end of the file.
func (r *Reader) findLast() error {
	r.Last = -1
	at, page, next, body := r.at, r.page, r.next, r.body
	for end, step := r.size, int64(maxPage); r.Last < 0 && end > r.first; end -= step {
		begin := max(r.first, end-step)
		tail := make([]byte, min(r.size, end+maxPage)-begin)
		if _, err := r.in.ReadAt(tail, begin); err != nil && err != io.EOF {
			return err
		}
		for i := int(end-begin) - 1; i >= 0; i-- {
			if tail[i] != 'O' || !bytes.HasPrefix(tail[i:], []byte("OggS")) {
				continue
			}
			p, ok := parse(tail[i:])
			if ok && p.serial == r.Serial && p.granule >= 0 {
				r.Last = p.granule
				break
			}
		}
	}
	r.at, r.page, r.next, r.body = at, page, next, body
	if r.Last < 0 {
		return fmt.Errorf("no sound in the file: %w", ErrTruncated)
	}
	return nil
}

// parse parses a page if it is complete and valid.
func parse(b []byte) (p page, ok bool) {
	if len(b) < pageHead || string(b[:4]) != "OggS" || b[4] != 0 {
		return p, false
	}
	n := int(b[26])
	if len(b) < pageHead+n {
		return p, false
	}
	p.segments = b[pageHead:][:n]
	size := 0
	for _, s := range p.segments {
		size += int(s)
	}
	if len(b) < pageHead+n+size {
		return p, false
	}
	whole := b[:pageHead+n+size]
	sum := crc(crc(crc(0, whole[:22]), []byte{0, 0, 0, 0}), whole[26:])
	if sum != binary.LittleEndian.Uint32(b[22:]) {
		return p, false
	}
	p.flags, p.granule, p.serial = b[5], int64(binary.LittleEndian.Uint64(b[6:])), binary.LittleEndian.Uint32(b[14:])
	p.data, p.size = whole[pageHead+n:], int64(len(whole))
	return p, true
}

// read reads the next page of any stream.
func (r *Reader) read() error {
	for r.at < r.size {
		n, err := r.in.ReadAt(r.buf[:min(int64(len(r.buf)), r.size-r.at)], r.at)
		if err != nil && err != io.EOF {
			return err
		}
		if n == 0 {
			return io.EOF
		}
		p, ok := parse(r.buf[:n])
		if ok {
			r.page, r.next, r.body = p, 0, 0
			r.at += p.size
			return nil
		}
		skip := bytes.Index(r.buf[1:n], []byte("OggS")) + 1
		if skip == 0 {
			skip = max(1, n-3)
			if r.at+int64(n) >= r.size {
				skip = n
			}
		}
		r.warn("no complete page of Ogg at byte %d; the data up to the next page is skipped", r.at)
		r.lost, r.pending = true, r.pending[:0]
		r.at += int64(skip)
	}
	return io.EOF
}

// Rewind moves to the first packet of audio.
func (r *Reader) Rewind() {
	r.at, r.pending, r.lost, r.done = r.first, r.pending[:0], false, false
	r.page, r.next, r.body = page{}, 0, 0
}

// Next returns the next packet of audio, and [io.EOF] at the end.
func (r *Reader) Next() (Packet, error) { return r.packet() }

func (r *Reader) packet() (Packet, error) {
	for !r.done {
		if r.next == len(r.page.segments) {
			if err := r.turn(); err != nil {
				return Packet{}, err
			}
			continue
		}
		from := r.body
		ended := false
		for r.next < len(r.page.segments) && !ended {
			s := r.page.segments[r.next]
			r.next++
			r.body += int(s)
			ended = s < 255
		}
		part := r.page.data[from:r.body]
		if !ended || len(r.pending) > 0 {
			if len(r.pending)+len(part) > maxPacket {
				return Packet{}, fmt.Errorf("a packet of more than %d bytes: %w", maxPacket, ErrDamaged)
			}
			r.pending = append(r.pending, part...)
			part = r.pending
		}
		if !ended {
			continue
		}
		p := Packet{Data: part, Granule: -1, Gap: r.lost}
		r.lost, r.pending = false, r.pending[:0]
		if !r.more() {
			p.Granule, p.End = r.page.granule, r.page.flags&4 != 0
		}
		return p, nil
	}
	return Packet{}, io.EOF
}

// more reports whether another packet ends in this page.
func (r *Reader) more() bool {
	for _, s := range r.page.segments[r.next:] {
		if s < 255 {
			return true
		}
	}
	return false
}

// turn moves to the stream's next page.
func (r *Reader) turn() error {
	if len(r.page.segments) > 0 && r.page.serial == r.Serial && r.page.flags&4 != 0 {
		r.done = true
		return io.EOF
	}
	for {
		if err := r.read(); err != nil {
			return err
		}
		if r.page.serial == r.Serial {
			break
		}
		r.next, r.body = len(r.page.segments), len(r.page.data)
	}
	goesOn := r.page.flags&1 != 0
	if goesOn && len(r.pending) == 0 { // the start of the packet is missing
		for r.next < len(r.page.segments) {
			s := r.page.segments[r.next]
			r.next++
			r.body += int(s)
			if s < 255 {
				break
			}
		}
	}
	if !goesOn && len(r.pending) > 0 {
		r.pending, r.lost = r.pending[:0], true
	}
	return nil
}
