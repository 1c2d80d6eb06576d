package flac

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMetadata is the number of bytes that are read of a block.
const maxMetadata = 1 << 22

const maskName = "WAVEFORMATEXTENSIBLE_CHANNEL_MASK"

// metadata reads all blocks, and finds the start of the frames.
func (d *Decoder) metadata(at int64) error {
	var comments, cue []byte
	for first, last := true, false; !last; first = false {
		head, err := d.bytes(at, 4)
		if err != nil {
			return err
		}
		kind, size := head[0]&0x7f, int64(binary.BigEndian.Uint32(head)&0xffffff)
		last = head[0] > 0x7f
		if at += 4; at+size > d.in.size {
			return fmt.Errorf("metadata of %d bytes at byte %d: %w", size, at, ErrTruncated)
		}
		if first != (kind == kindInfo) || first && size < infoSize || kind == kindInvalid {
			return fmt.Errorf("metadata of kind %d, %d bytes, at byte %d: %w", kind, size, at, ErrDamaged)
		}
		if kind == kindInfo || kind == kindSeek || kind == kindComments || kind == kindCue {
			b, err := d.bytes(at, int(min(size, maxMetadata)))
			if err != nil {
				return err
			}
			switch kind {
			case kindInfo:
				err = d.info(b)
			case kindSeek:
				d.seekTable(b)
			case kindComments:
				comments = b
			case kindCue:
				cue = b
			}
			if err != nil {
				return err
			}
		}
		at += size
	}
	d.start = at
	d.comments(comments)
	d.cueSheet(cue)
	return nil
}

// info reads STREAMINFO.
//
//	 0  u16  smallest frame in samples, u16 largest
//	 4  u24  smallest frame in bytes, u24 largest
//	10  20 bits rate, 3 bits channels less 1, 5 bits bits less 1, 36 bits samples; 0 if the writer did not know
//	18  MD5 of all samples
func (d *Decoder) info(b []byte) error {
	v := binary.BigEndian.Uint64(b[10:])
	d.Rate, d.Channels, d.Bits = int(v>>44), int(v>>41&7)+1, int(v>>36&31)+1
	d.says = int64(v & MaxSamples)
	d.block = int64(binary.BigEndian.Uint16(b[2:]))
	copy(d.md5[:], b[18:])
	d.Mask = masks[d.Channels]
	return d.check()
}

// seekTable reads the positions of frames: u64 sample, u64 bytes from the first frame, u16 samples.
func (d *Decoder) seekTable(b []byte) {
	for ; len(b) >= 18; b = b[18:] {
		p := point{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
		if p.sample >= 0 && p.sample <= MaxSamples && p.at >= 0 && p.at < d.in.size {
			d.points = append(d.points, p)
		}
	}
}

// comments reads texts: u32 size and text of the writer's name, u32 number of comments, each u32 size and text. These
// numbers are little-endian.
func (d *Decoder) comments(b []byte) {
	if b == nil {
		return
	}
	text := func() (string, bool) {
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return "", false
		}
		n := binary.LittleEndian.Uint32(b)
		s := string(b[4 : 4+n])
		b = b[4+n:]
		return s, true
	}
	if _, ok := text(); !ok || len(b) < 4 {
		d.warn("comments end before there is any")
		return
	}
	says := binary.LittleEndian.Uint32(b)
	b = b[4:]
	for i := range says {
		s, ok := text()
		if !ok {
			d.warn("%d comments of %d are there", i, says)
			break
		}
		name, value, ok := strings.Cut(s, "=")
		if !ok || !utf8.ValidString(s) {
			d.warn("comment %d, %q, is not a name and a value in UTF-8, and is not read", i, cut(s))
			continue
		}
		d.Comments = append(d.Comments, Comment{name, value})
	}
	if text, ok := d.comment(maskName); ok {
		if mask, err := strconv.ParseUint(text, 0, 32); err == nil {
			d.Mask = uint32(mask)
		} else {
			d.warn("comment %s=%s is not a number", maskName, cut(text))
		}
	}
}

func cut(s string) string { return s[:min(len(s), 80)] }

// comment returns the first comment of a name, ignoring case.
func (d *Decoder) comment(name string) (string, bool) {
	for _, c := range d.Comments {
		if strings.EqualFold(c.Name, name) {
			return strings.TrimSpace(c.Value), true
		}
	}
	return "", false
}

// loop reads the comments that games and trackers use for loops: LOOPSTART, and LOOPLENGTH or LOOPEND, in samples.
func (d *Decoder) loop() {
	values := map[string]int64{}
	for _, name := range []string{"LOOPSTART", "LOOPLENGTH", "LOOPEND"} {
		text, ok := d.comment(name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 || v > MaxSamples {
			d.warn("comment %s=%s is not a number of samples: there is no loop", name, cut(text))
			return
		}
		values[name] = v
	}
	if len(values) == 0 {
		return
	}
	l := Loop{values["LOOPSTART"], d.Samples}
	if length, ok := values["LOOPLENGTH"]; ok {
		l.End = l.Begin + length
	} else if end, ok := values["LOOPEND"]; ok {
		l.End = end
	}
	if l.Begin >= l.End || l.Begin >= d.Samples {
		d.warn("the loop from %d to %d is not among %d samples, and is not read", l.Begin, l.End, d.Samples)
		return
	}
	if l.End > d.Samples {
		d.warn("the loop ends before sample %d, and there are %d: it ends there", l.End, d.Samples)
		l.End = d.Samples
	}
	d.Loops = append(d.Loops, l)
}

// cueSheet reads markers.
//
//	  0  128 bytes catalogue number, u64 samples of leading silence, a bit that is set for a compact disc, and zeros
//	395  u8   number of tracks
//	396  each: u64 first sample, u8 number, 12 bytes code, 14 bytes flags and zeros, u8 number of points; each of these:
//	     u64 samples from the first, u8 number, 3 bytes zeros
//
// The last track marks the end of the sound, and has no points.
func (d *Decoder) cueSheet(b []byte) {
	if b == nil {
		return
	}
	if len(b) < 396 {
		d.warn("the cue sheet has %d bytes, and no tracks", len(b))
		return
	}
	tracks := int(b[395])
	b = b[396:]
	for i := range tracks {
		if len(b) < 36 || len(b) < 36+12*int(b[35]) {
			d.warn("%d tracks of %d are in the cue sheet", i, tracks)
			return
		}
		first, number, points := binary.BigEndian.Uint64(b), b[8], int(b[35])
		for p := range points {
			e := b[36+12*p:]
			sample := first + binary.BigEndian.Uint64(e)
			if first > MaxSamples || sample > MaxSamples || sample < first {
				d.warn("track %d begins with sample %d, and is not read", number, first)
				break
			}
			m := Marker{fmt.Sprintf("track %d", number), int64(sample)}
			if e[8] != 1 {
				m.Name += fmt.Sprintf(", point %d", e[8])
			}
			d.Markers = append(d.Markers, m)
		}
		b = b[36+12*points:]
	}
}

// places keeps the markers within the sound.
func (d *Decoder) places() {
	kept := d.Markers[:0]
	for _, m := range d.Markers {
		if m.Sample > d.Samples {
			d.warn("marker %q, at sample %d, is behind the last of %d, and is not read", m.Name, m.Sample, d.Samples)
			continue
		}
		kept = append(kept, m)
	}
	d.Markers = kept
}
