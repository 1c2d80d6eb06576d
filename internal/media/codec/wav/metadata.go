package wav

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// metadata reads everything besides samples. Only chunks that cannot be read at all give an error.
func (r *Reader) metadata(chunks []chunk) error {
	points, loops := map[uint32]int{}, map[uint32][]int{} // indices in Markers and Loops, by id
	type parse func(b []byte, c chunk)
	for _, kind := range []struct {
		id    string
		parse parse
	}{
		{"smpl", func(b []byte, c chunk) { r.smpl(b, c, loops) }},
		{"cue ", func(b []byte, c chunk) { r.cue(b, c, points) }},
		{"kiln", func(b []byte, _ chunk) { r.Private = b }},
	} {
		if c, ok := r.find(chunks, kind.id); ok {
			b, err := r.small(c)
			if err != nil {
				return err
			}
			kind.parse(b, c)
		}
	}
	for _, c := range chunks {
		if c.id != "LIST" || c.size < 4 {
			continue
		}
		b, err := r.bytes(c.at, 4)
		if err != nil {
			return err
		}
		if kind := string(b); kind == "adtl" || kind == "INFO" {
			if b, err = r.small(c); err != nil {
				return err
			}
			if err := r.list(b, c, points, loops); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(r.Markers, func(a, b Marker) int { return cmp.Compare(a.Frame, b.Frame) })
	return nil
}

// small reads the first maxMetadata bytes of a chunk.
func (r *Reader) small(c chunk) ([]byte, error) {
	if c.size > maxMetadata {
		r.warn("%s has %d bytes, of which %d are read", c, c.size, maxMetadata)
	}
	return r.bytes(c.at, int(min(c.size, maxMetadata)))
}

// entries returns the complete entries of a table, at most as many as it says.
func (r *Reader) entries(b []byte, says uint32, size int, c chunk) (all [][]byte) {
	for ; len(b) >= size && len(all) < int(min(says, 1<<30)); b = b[size:] {
		all = append(all, b[:size])
	}
	if len(all) < int(min(says, 1<<30)) {
		r.warn("%s says %d entries, and %d are there", c, says, len(all))
	}
	return all
}

// smpl reads loops.
//
//	 0  u32  maker, u32 product, u32 nanoseconds per frame
//	12  u32  MIDI note, u32 and a fraction of a semitone
//	20  u32  format of time, u32 time
//	28  u32  number of loops, u32 bytes after them
//	36  then each: u32 id, u32 type, u32 first frame, u32 last frame, u32 fraction, u32 times
func (r *Reader) smpl(b []byte, c chunk, places map[uint32][]int) {
	if len(b) < 36 {
		r.warn("%s has %d bytes, and no loops", c, len(b))
		return
	}
	u32 := func(b []byte, at int) uint32 { return r.order.Uint32(b[at:]) }
	if note := u32(b, 12); note > 127 {
		r.warn("%s: %d is not a MIDI note", c, note)
	} else {
		r.UnityNote = int(note)
	}
	for i, e := range r.entries(b[36:], u32(b, 28), 24, c) {
		l := Loop{Begin: int64(u32(e, 8)), End: int64(u32(e, 12)) + 1, Count: u32(e, 20)}
		switch {
		case l.Begin >= l.End || l.Begin >= r.Frames:
			r.warn("%s: loop %d, from %d to %d, is not among %d frames, and is not read", c, i, l.Begin, l.End-1, r.Frames)
			continue
		case l.End > r.Frames:
			r.warn("%s: loop %d ends with frame %d, and the last one is %d: it ends there", c, i, l.End-1, r.Frames-1)
			l.End = r.Frames
		}
		if kind := u32(e, 4); kind > uint32(Backward) {
			r.warn("%s: loop %d has the unknown type %d: it is played forward", c, i, kind)
		} else {
			l.Type = LoopType(kind)
		}
		id := u32(e, 0)
		places[id] = append(places[id], len(r.Loops))
		r.Loops = append(r.Loops, l)
	}
}

// cue reads markers: u32 number of points, then each: u32 id, u32 position in the order of playing, 4 bytes chunk, u32 its
// start, u32 start of the block in it, u32 frame. Some programs set only the position.
func (r *Reader) cue(b []byte, c chunk, places map[uint32]int) {
	if len(b) < 4 {
		r.warn("%s has %d bytes, and no markers", c, len(b))
		return
	}
	points := r.entries(b[4:], r.order.Uint32(b), 24, c)
	at := 4
	for _, e := range points {
		if r.order.Uint32(e[20:]) != 0 {
			at = 20
		}
	}
	for i, e := range points {
		m := Marker{Frame: int64(r.order.Uint32(e[at:]))}
		if m.Frame > r.Frames {
			r.warn("%s: marker %d, at frame %d, is behind the last of %d, and is not read", c, i, m.Frame, r.Frames)
			continue
		}
		if id := r.order.Uint32(e); places[id] == 0 {
			places[id] = len(r.Markers) + 1
		} else {
			r.warn("%s: marker %d has the id of an earlier one, %d, so it has no name", c, i, id)
		}
		r.Markers = append(r.Markers, m)
	}
}

// list reads texts. Those of "adtl" begin with the u32 id of a marker or loop. An ltxt makes a marker a region; it continues
// with u32 frames, 4 bytes purpose, u16 country, u16 language, u16 dialect, u16 code page.
func (r *Reader) list(b []byte, c chunk, points map[uint32]int, loops map[uint32][]int) error {
	m := r.memory(b, c.at)
	texts, err := m.chunks(4)
	if err != nil {
		return err
	}
	for _, t := range texts {
		body := b[t.at-c.at:][:t.size]
		if string(b[:4]) == "INFO" {
			r.Info = append(r.Info, Text{t.id, text(body)})
			continue
		}
		if len(body) < 4 {
			continue
		}
		id := r.order.Uint32(body)
		marker := &Marker{}
		if p := points[id]; p > 0 {
			marker = &r.Markers[p-1]
		}
		switch t.id {
		case "labl":
			marker.Name = text(body[4:])
			for _, l := range loops[id] {
				r.Loops[l].Name = marker.Name
			}
		case "note":
			marker.Note = text(body[4:])
		case "ltxt":
			r.region(marker, body, t)
		}
	}
	return nil
}

func (r *Reader) region(m *Marker, body []byte, c chunk) {
	if len(body) < 8 {
		r.warn("%s has %d bytes, and no length", c, len(body))
		return
	}
	if m.Length = int64(r.order.Uint32(body[4:])); m.Length > r.Frames-m.Frame {
		r.warn("%s: a region of %d frames from %d on goes beyond the last of %d: it ends there", c, m.Length, m.Frame, r.Frames)
		m.Length = r.Frames - m.Frame
	}
	if m.Name == "" && len(body) > 20 {
		m.Name = text(body[20:])
	}
}

// western has the characters of Windows-1252 from 0x80 to 0x9f; all others are as in Unicode.
const western = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

var westernRunes = []rune(western)

// text returns the text up to the first 0, decoded as UTF-8 if that is valid, else as Windows-1252.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		if c := rune(s[i]); c >= 0x80 && c < 0xa0 {
			out.WriteRune(westernRunes[c-0x80])
		} else {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// The functions below are for the writer. Ids count from 1: markers first, then loops.

// trailer returns the chunks after the samples.
func (m *Metadata) trailer(rate int) []byte {
	o := binary.LittleEndian
	var out, list []byte
	put := func(b []byte, v ...uint32) []byte {
		for _, n := range v {
			b = o.AppendUint32(b, n)
		}
		return b
	}
	chunk := func(b []byte, id string, body []byte) []byte {
		b = append(put(append(b, id...), uint32(len(body))), body...)
		return append(b, make([]byte, len(body)%2)...)
	}
	if len(m.Loops) > 0 || m.UnityNote > 0 {
		b := put(nil, 0, 0, uint32((1e9+rate/2)/rate), uint32(m.UnityNote), 0, 0, 0, uint32(len(m.Loops)), 0)
		for i, l := range m.Loops {
			id := uint32(len(m.Markers) + i + 1)
			b = put(b, id, uint32(l.Type), uint32(l.Begin), uint32(l.End-1), 0, l.Count)
			if l.Name != "" {
				list = chunk(list, "labl", append(put(nil, id), l.Name+"\x00"...))
			}
		}
		out = chunk(out, "smpl", b)
	}
	if len(m.Markers) > 0 {
		b := put(nil, uint32(len(m.Markers)))
		for i, p := range m.Markers {
			id := uint32(i + 1)
			b = put(append(put(b, id, uint32(p.Frame)), "data"...), 0, 0, uint32(p.Frame))
			if p.Name != "" {
				list = chunk(list, "labl", append(put(nil, id), p.Name+"\x00"...))
			}
			if p.Note != "" {
				list = chunk(list, "note", append(put(nil, id), p.Note+"\x00"...))
			}
			if p.Length > 0 {
				list = chunk(list, "ltxt", put(append(put(nil, id, uint32(p.Length)), "rgn "...), 0, 0))
			}
		}
		out = chunk(out, "cue ", b)
	}
	if len(list) > 0 {
		out = chunk(out, "LIST", append([]byte("adtl"), list...))
	}
	if len(m.Private) > 0 {
		out = chunk(out, "kiln", m.Private)
	}
	if len(m.Info) > 0 {
		list = []byte("INFO")
		for _, t := range m.Info {
			list = chunk(list, t.ID, []byte(t.Text+"\x00"))
		}
		out = chunk(out, "LIST", list)
	}
	return out
}
