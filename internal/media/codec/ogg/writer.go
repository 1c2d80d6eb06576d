package ogg

import (
	"encoding/binary"
	"fmt"
	"io"
)

// headers writes packets to as few pages as possible, with a separate page for the first packet.
func headers(serial uint32, packets [][]byte) (pages [][]byte) {
	pages = append(pages, appendPage(nil, 2, serial, 0, packets[:1]))
	var segments, data []byte
	goesOn := false
	flush := func() {
		flags, granule := byte(0), uint64(1<<64-1)
		if goesOn {
			flags = 1
		}
		for _, s := range segments {
			if s < 255 {
				granule = 0 // a packet ends here
			}
		}
		pages = append(pages, page{flags: flags, granule: int64(granule), serial: serial, segments: segments,
			data: data}.append(nil, uint32(len(pages))))
		goesOn = segments[len(segments)-1] == 255
		segments, data = nil, nil
	}
	for _, p := range packets[1:] {
		for done := false; !done; {
			n := min(len(p), 255)
			segments, data = append(segments, byte(n)), append(data, p[:n]...)
			p, done = p[n:], n < 255
			if len(segments) == 255 {
				flush()
			}
		}
	}
	if len(segments) > 0 {
		flush()
	}
	return pages
}

func appendPage(b []byte, flags byte, serial, number uint32, packets [][]byte) []byte {
	p := page{flags: flags, serial: serial}
	for _, data := range packets {
		for n := len(data); ; n -= 255 {
			p.segments = append(p.segments, byte(min(n, 255)))
			if n < 255 {
				break
			}
		}
		p.data = append(p.data, data...)
	}
	return p.append(b, number)
}

// append writes a page.
func (p page) append(b []byte, number uint32) []byte {
	le := binary.LittleEndian
	at := len(b)
	b = append(append(b, "OggS\x00"...), p.flags)
	b = le.AppendUint64(b, uint64(p.granule))
	b = le.AppendUint32(le.AppendUint32(b, p.serial), number)
	b = append(append(b, 0, 0, 0, 0), byte(len(p.segments)))
	b = append(append(b, p.segments...), p.data...)
	le.PutUint32(b[at+22:], crc(0, b[at:]))
	return b
}

// Rewrite copies a stream with other comments and another serial number. Its pages of audio are unchanged except for their
// numbers; other streams are left out.
func Rewrite(to io.Writer, r *Reader, serial uint32, vendor string, comments []string) error {
	if r.mixed {
		return fmt.Errorf("sound begins on the page of the headers: %w", ErrUnsupported)
	}
	packets := append([][]byte{r.Headers[0], r.Codec.commentPacket(vendor, comments)}, r.Headers[2:]...)
	number := uint32(0)
	for _, page := range headers(serial, packets) {
		if _, err := to.Write(page); err != nil {
			return err
		}
		number++
	}
	var b []byte
	r.Rewind()
	for ended := false; ; number++ {
		err := r.turn()
		if err == io.EOF {
			if ended {
				return nil
			}
			r.page = page{granule: r.Last} // cut off: an empty page ends the stream
			r.page.flags = 4
			err = nil
		}
		if err != nil {
			return err
		}
		r.page.serial = serial
		ended = r.page.flags&4 != 0
		b = r.page.append(b[:0], number)
		if _, err := to.Write(b); err != nil {
			return err
		}
		if ended {
			return nil
		}
	}
}
