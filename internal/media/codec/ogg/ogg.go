// Package ogg reads and writes the container of Vorbis and Opus sound as a stream: pages, packets, comments, and which
// decoded frames belong to the sound. It does not parse the content of audio packets.
//
// It follows RFC 3533 (Ogg), RFC 7845 (Opus in Ogg) and the Vorbis I specification. Numbers are little-endian. A file is
// pages:
//
//	 0  "OggS", u8 0
//	 5  u8   flags: 1 the first packet continues from the previous page, 2 first page, 4 last page
//	 6  i64  granule position: for Vorbis and Opus, frames up to the end of the last packet that ends in this page; -1 if none ends
//	14  u32  serial number of the stream, u32 number of the page, u32 CRC-32 (0x04c11db7, not reflected)
//	26  u8   number of segments, as many u8 sizes; a packet ends with the first segment of less than 255 bytes
//
// A Reader reads the first stream of Vorbis or Opus. Pages of other streams are ignored; where streams begin that follow its
// end is found by Links. Pages with a wrong checksum are skipped with a warning.
package ogg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// File name extensions: Vorbis, any sound, and Opus.
const (
	Extension      = ".ogg"
	AudioExtension = ".oga"
	OpusExtension  = ".opus"
)

var (
	ErrTruncated   = errors.New("data ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
)

// Codec is the codec of a stream.
type Codec int

const (
	Vorbis Codec = iota
	Opus
)

func (c Codec) String() string { return [...]string{"Vorbis", "Opus"}[c] }

const (
	pageHead  = 27
	maxPage   = pageHead + 255 + 255*255
	maxPacket = 16 << 20 // a header may be large, with images in its comments
	maxTexts  = 4096
)

// Stream has the content of the headers.
type Stream struct {
	Codec    Codec
	Rate     int // decoded frames per second: 48000 for Opus
	Channels int
	Input    int    // Opus: rate before encoding, for information; 0 if unknown
	Skip     int64  // Opus: decoded frames before the sound
	Gain     int    // Opus: gain to apply to the decoded sound, in 1/256 dB
	Mapping  byte   // Opus: 0 for one or two channels
	Table    []byte // Opus: for other mappings: number of streams, of pairs, and the channel of each output
	Serial   uint32
	Vendor   string
	Comments []string // "NAME=value"
	Headers  [][]byte // packets: two for Opus, three for Vorbis
}

var crcTable = func() (t [256]uint32) {
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&(1<<31) != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

func crc(sum uint32, b []byte) uint32 {
	for _, v := range b {
		sum = sum<<8 ^ crcTable[byte(sum>>24)^v]
	}
	return sum
}

// codecOf returns the codec of a stream by its first packet.
func codecOf(packet []byte) (Codec, bool) {
	switch {
	case len(packet) >= 30 && string(packet[:7]) == "\x01vorbis":
		return Vorbis, true
	case len(packet) >= 19 && string(packet[:8]) == "OpusHead":
		return Opus, true
	}
	return 0, false
}

// identify parses the first packet.
func (s *Stream) identify(b []byte) error {
	le := binary.LittleEndian
	if s.Codec == Vorbis {
		s.Channels, s.Rate = int(b[11]), int(le.Uint32(b[12:]))
		short, long := b[28]&15, b[28]>>4
		if le.Uint32(b[7:]) != 0 || s.Channels == 0 || s.Rate == 0 || short < 6 || long > 13 || short > long || b[29]&1 == 0 {
			return fmt.Errorf("the header of Vorbis: %w", ErrDamaged)
		}
		return nil
	}
	s.Rate, s.Channels, s.Skip = 48000, int(b[9]), int64(le.Uint16(b[10:]))
	s.Input, s.Gain, s.Mapping = int(le.Uint32(b[12:])), int(int16(le.Uint16(b[16:]))), b[18]
	if b[8] > 15 || s.Channels == 0 {
		return fmt.Errorf("the header of Opus: %w", ErrDamaged)
	}
	if s.Mapping == 0 {
		if s.Channels > 2 {
			return fmt.Errorf("the header of Opus, %d channels without a mapping: %w", s.Channels, ErrDamaged)
		}
		return nil
	}
	if len(b) < 21+s.Channels {
		return fmt.Errorf("the header of Opus: %w", ErrTruncated)
	}
	s.Table = b[19 : 21+s.Channels]
	return nil
}

// commentHead returns the first bytes of a packet of comments.
func (c Codec) commentHead() string { return [...]string{"\x03vorbis", "OpusTags"}[c] }

// comments parses the second packet: u32 size and text of the writer's name, u32 number, each u32 size and text.
func (s *Stream) comments(b []byte) error {
	rest, ok := bytes.CutPrefix(b, []byte(s.Codec.commentHead()))
	b = rest
	if !ok {
		return fmt.Errorf("no comments follow the header of %s: %w", s.Codec, ErrDamaged)
	}
	text := func() (string, bool) {
		if len(b) < 4 {
			return "", false
		}
		n := binary.LittleEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-4) {
			return "", false
		}
		t := string(b[4 : 4+n])
		b = b[4+n:]
		return t, true
	}
	if s.Vendor, ok = text(); !ok || len(b) < 4 {
		return fmt.Errorf("comments: %w", ErrTruncated)
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	for range min(n, maxTexts) {
		t, ok := text()
		if !ok {
			return fmt.Errorf("comments: %w", ErrTruncated)
		}
		s.Comments = append(s.Comments, t)
	}
	return nil
}

// Comment returns the first comment of a name, ignoring case.
func (s *Stream) Comment(name string) (string, bool) {
	for _, c := range s.Comments {
		if n, v, ok := strings.Cut(c, "="); ok && strings.EqualFold(n, name) {
			return v, true
		}
	}
	return "", false
}

// commentPacket returns a packet of comments. In Vorbis it ends with a framing bit.
func (c Codec) commentPacket(vendor string, comments []string) []byte {
	le := binary.LittleEndian
	b := []byte(c.commentHead())
	b = append(le.AppendUint32(b, uint32(len(vendor))), vendor...)
	b = le.AppendUint32(b, uint32(len(comments)))
	for _, t := range comments {
		b = append(le.AppendUint32(b, uint32(len(t))), t...)
	}
	if c == Vorbis {
		b = append(b, 1)
	}
	return b
}

// OpusFrames returns the number of frames of 48,000 Hz in a packet of Opus, by its first byte or two (RFC 6716, 3.1), or 0
// if it is damaged.
func OpusFrames(packet []byte) int64 {
	if len(packet) == 0 {
		return 0
	}
	var frame int64
	switch c := packet[0] >> 3; {
	case c < 12:
		frame = []int64{480, 960, 1920, 2880}[c&3]
	case c < 16:
		frame = []int64{480, 960}[c&1]
	default:
		frame = 120 << (c & 3)
	}
	switch packet[0] & 3 {
	case 0:
		return frame
	case 1, 2:
		return 2 * frame
	}
	if len(packet) < 2 {
		return 0
	}
	if n := frame * int64(packet[1]&63); n <= 5760 {
		return n
	}
	return 0
}
