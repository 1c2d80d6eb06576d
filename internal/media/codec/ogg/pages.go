package ogg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// timing computes the number of frames of each packet.
type timing struct {
	codec  Codec
	blocks [2]int64 // Vorbis: sizes of the short and the long block
	long   []bool   // for each mode, whether its block is long
	bits   uint     // bits of a mode number
	last   int64    // size of the previous block; 0 at the start
}

func newTiming(s *Stream) (*timing, error) {
	t := &timing{codec: s.Codec}
	if s.Codec == Opus {
		return t, nil
	}
	head := s.Headers[0]
	if len(head) < 30 {
		return nil, fmt.Errorf("the first header of Vorbis: %w", ErrDamaged)
	}
	t.blocks = [2]int64{1 << (head[28] & 15), 1 << (head[28] >> 4)}
	if t.long = modes(s.Headers[2]); t.long == nil {
		return nil, fmt.Errorf("the modes of Vorbis: %w", ErrDamaged)
	}
	for 1<<t.bits < len(t.long) {
		t.bits++
	}
	return t, nil
}

// modes returns for each mode of Vorbis whether it has long blocks. Modes are at the end of the third header (Vorbis I,
// 4.2.4): six bits with their number less one; for each, a bit for the size, 16 and 16 bits that are 0, and 8; a bit that is
// set ends the header. The data before them is not parsed, so modes are searched from the end: as many as fit and match
// their number.
func modes(header []byte) (long []bool) {
	const size = 41
	header = bytes.TrimRight(header, "\x00")
	if len(header) == 0 {
		return nil
	}
	end := len(header)*8 - 1
	bit := func(at int) int { return int(header[at>>3]>>(at&7)) & 1 }
	for bit(end) == 0 {
		end--
	}
	number := func(at, bits int) (v int) {
		for i := range bits {
			v |= bit(at+i) << i
		}
		return v
	}
	best := 0
	for n := 1; n <= 64 && end-n*size-6 >= 0; n++ {
		at := end - n*size
		if number(at+1, 16) != 0 || number(at+17, 16) != 0 || number(at+33, 8) >= 64 {
			break
		}
		if number(at-6, 6)+1 == n {
			best = n
		}
	}
	for i := range best {
		long = append(long, bit(end-(best-i)*size) == 1)
	}
	return long
}

// frames returns the number of frames that a packet adds.
func (t *timing) frames(packet []byte) int64 {
	if t.codec == Opus {
		return OpusFrames(packet)
	}
	if len(packet) == 0 || packet[0]&1 != 0 {
		return 0
	}
	mode := int(packet[0]>>1) & (1<<t.bits - 1)
	if mode >= len(t.long) {
		return 0
	}
	size := t.blocks[0]
	if t.long[mode] {
		size = t.blocks[1]
	}
	n := (t.last + size) / 4
	if t.last == 0 {
		n = 0
	}
	t.last = size
	return n
}

// Cut rewrites a stream with other comments and another serial number so that it has exactly the given number of frames,
// after skip frames, which only Opus has. It leaves out later packets. The stream must have at least that number of frames,
// and its sound must begin with its first packet.
//
// The first packet has its own page. Players find the start of the sound by the first page, and some fail if that is also
// the last one: they lose frames at the end of short sounds.
func Cut(to io.Writer, r *Reader, serial uint32, vendor string, comments []string, skip, frames int64) error {
	t, err := newTiming(&r.Stream)
	if err != nil {
		return err
	}
	head := bytes.Clone(r.Headers[0])
	if r.Codec == Opus {
		if skip < 0 || skip > 1<<16-1 {
			return fmt.Errorf("%d frames cannot be left out: %w", skip, ErrUnsupported)
		}
		binary.LittleEndian.PutUint16(head[10:], uint16(skip))
	}
	w := &pager{to: to, serial: serial, most: int64(r.Rate)}
	for _, page := range headers(serial, slices.Concat([][]byte{head, r.Codec.commentPacket(vendor, comments)}, r.Headers[2:])) {
		if _, err := to.Write(page); err != nil {
			return err
		}
		w.number++
	}
	end, at := skip+frames, int64(0)
	r.Rewind()
	for at < end {
		p, err := r.Next()
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || p.Gap {
			return fmt.Errorf("%d frames of %d: %w", at-skip, frames, ErrTruncated)
		}
		at += t.frames(p.Data)
		if p.Granule >= 0 && p.Granule != at && !p.End {
			return fmt.Errorf("granule position %d after %d frames: %w", p.Granule, at, ErrUnsupported)
		}
		if err := w.packet(p.Data, min(at, end)); err != nil {
			return err
		}
	}
	return w.flush(4)
}

// pager writes packets to pages of at most a second.
type pager struct {
	to      io.Writer
	serial  uint32
	most    int64 // frames per page
	number  uint32
	page    page
	begin   int64 // granule position before the page
	packets int   // in previous pages, and in this one
	buf     []byte
}

const pageBytes = 16 << 10 // size of a full page

func (w *pager) packet(data []byte, granule int64) error {
	segments := len(data)/255 + 1
	if w.packets == 1 || len(w.page.segments)+segments > 255 || len(w.page.data) > pageBytes || granule-w.begin > w.most {
		if err := w.flush(0); err != nil {
			return err
		}
	}
	if segments > 255 {
		return fmt.Errorf("a packet of %d bytes: %w", len(data), ErrUnsupported)
	}
	for n := len(data); ; n -= 255 {
		w.page.segments = append(w.page.segments, byte(min(n, 255)))
		if n < 255 {
			break
		}
	}
	w.page.data = append(w.page.data, data...)
	w.page.granule = granule
	w.packets++
	return nil
}

func (w *pager) flush(flags byte) error {
	if len(w.page.segments) == 0 {
		return nil
	}
	w.page.flags, w.page.serial = flags, w.serial
	w.buf = w.page.append(w.buf[:0], w.number)
	w.number++
	w.begin = w.page.granule
	w.page.segments, w.page.data = w.page.segments[:0], w.page.data[:0]
	_, err := w.to.Write(w.buf)
	return err
}
