// Package sound decodes the sounds that Kiln makes: QOA, and WAV of 16 bits, floats or IMA ADPCM, with their loops,
// markers and gain. It has no dependencies. docs/sounds.md describes its use, docs/formats/sound.md the files.
//
//	s, err := sound.Open(data)
//	p := s.Play()
//	p.Loop(true)
//	n := p.ReadFloat(buffer) // interleaved frames, gain applied
//
// A Sound has the bytes and the header of its file. Any number of Players can read it at the same time, each at its own
// position. Seeking is exact to the frame. Broken or hostile bytes give at worst an error or noise.
package sound

import (
	"encoding/binary"
	"errors"
	"math"
)

var (
	ErrFormat  = errors.New("sound: not QOA, and not WAV of 16 bits, floats or IMA ADPCM")
	ErrDamaged = errors.New("sound: damaged")
)

// LoopKind is the direction of a loop.
type LoopKind uint32

const (
	Forward  LoopKind = iota
	PingPong          // forward, backward, and so on; the frames at both ends are played once
	Backward          // backward from its end, repeatedly, after its end was reached for the first time
)

// Loop is a range of frames; End is the first frame after it. Count is the number of times it is played; 0 is forever.
type Loop struct {
	Begin, End int64
	Kind       LoopKind
	Count      int64
}

// Marker is a named frame, or a named range of Length frames.
type Marker struct {
	Name          string
	Frame, Length int64
}

// Sound is an open file. It is safe for concurrent use by many players.
type Sound struct {
	Rate, Channels int
	Frames         int64
	Loops          []Loop
	Markers        []Marker

	Gain      float64 // in dB; ReadFloat applies it
	Loudness  float64 // in LUFS, before the gain; 0 if Silent
	TruePeak  float64 // in dBTP, before the gain
	Momentary bool    // Loudness is the momentary maximum, because the sound is shorter than 0.4 s
	Silent    bool
	Stream    bool // should be read while it plays

	coding coding
	data   []byte // samples
	block  int64  // frames that are decoded together
	size   int64  // bytes of a block
}

type coding uint8

const (
	qoa coding = iota
	pcm
	float
	adpcm
)

// Limits for files.
const (
	maxChannels = 64
	pcmBlock    = 1024
)

// Open reads everything except the samples. It keeps data, which must not change.
func Open(data []byte) (*Sound, error) {
	if len(data) >= 16 && string(data[:4]) == "qoaf" {
		return openQOA(data)
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WAVE" {
		return openWAV(data)
	}
	return nil, ErrFormat
}

// openQOA reads "qoaf", u32 samples, and the first frame's u8 channels, u24 rate; big-endian.
func openQOA(data []byte) (*Sound, error) {
	be := binary.BigEndian
	s := &Sound{Frames: int64(be.Uint32(data[4:])), Channels: int(data[8]), Rate: int(be.Uint32(data[8:]) & 0xffffff),
		coding: qoa, block: 5120}
	if s.Frames == 0 || s.Channels == 0 || s.Channels > 8 || s.Rate == 0 {
		return nil, ErrDamaged
	}
	frame := func(n int64) int64 { return 8 + int64(s.Channels)*(16+8*((n+19)/20)) }
	s.size = frame(s.block)
	end := 8 + s.Frames/s.block*s.size
	if rest := s.Frames % s.block; rest > 0 {
		end += frame(rest)
	}
	if end > int64(len(data)) {
		return nil, ErrDamaged
	}
	s.data = data[8:end]
	s.notes(data[end:])
	return s, nil
}

// openWAV reads the chunks: 4 letters, u32 size, body, a padding byte if the size is odd; little-endian.
func openWAV(data []byte) (*Sound, error) {
	le := binary.LittleEndian
	s := &Sound{}
	var notes []byte
	frames := int64(-1)
	format := false
	for at := int64(12); at+8 <= int64(len(data)); {
		id, size := string(data[at:at+4]), int64(le.Uint32(data[at+4:]))
		at += 8
		body := data[at:min(at+size, int64(len(data)))]
		at += size + size&1
		switch id {
		case "fmt ":
			if format = s.format(body); !format {
				return nil, ErrFormat
			}
		case "fact":
			if len(body) >= 4 {
				frames = int64(le.Uint32(body))
			}
		case "data":
			s.data = body
		case "kiln":
			notes = body
		}
	}
	if !format || s.data == nil {
		return nil, ErrDamaged
	}
	whole := int64(len(s.data)) / s.size * s.block
	if s.coding == pcm || s.coding == float {
		whole = int64(len(s.data)) / (s.size / s.block)
	}
	if s.Frames = whole; frames >= 0 && s.coding == adpcm {
		s.Frames = min(frames, whole)
	}
	s.notes(notes)
	return s, nil
}

// format reads u16 coding, u16 channels, u32 rate, u32, u16 bytes of a block, u16 bits. In the extensible form the
// coding is at offset 24.
func (s *Sound) format(b []byte) bool {
	le := binary.LittleEndian
	if len(b) < 16 {
		return false
	}
	tag, bits, align := le.Uint16(b), le.Uint16(b[14:]), int64(le.Uint16(b[12:]))
	s.Channels, s.Rate = int(le.Uint16(b[2:])), int(le.Uint32(b[4:]))
	if tag == 0xfffe && len(b) >= 26 {
		tag = le.Uint16(b[24:])
	}
	ch := int64(s.Channels)
	if ch == 0 || ch > maxChannels || s.Rate == 0 {
		return false
	}
	switch {
	case tag == 1 && bits == 16 && align == 2*ch:
		s.coding, s.block = pcm, pcmBlock
	case tag == 3 && bits == 32 && align == 4*ch:
		s.coding, s.block = float, pcmBlock
	case tag == 0x11 && bits == 4 && align >= 8*ch && align%(4*ch) == 0:
		s.coding, s.block, s.size = adpcm, (align/ch-4)*2+1, align
		return true
	default:
		return false
	}
	s.size = s.block * align
	return true
}

// notes reads the notes as docs/formats/sound.md describes them. A file without notes has no loops and no gain.
func (s *Sound) notes(b []byte) {
	le := binary.LittleEndian
	if len(b) < 32 || string(b[:4]) != "KSND" || le.Uint16(b[8:]) != 1 {
		return
	}
	size := le.Uint32(b[4:])
	if size < 32 || uint64(size) > uint64(len(b)) {
		return
	}
	b = b[:size]
	flags := le.Uint16(b[10:])
	s.Stream, s.Momentary, s.Silent = flags&1 != 0, flags&2 != 0, flags&4 != 0
	value := func(at int) float64 {
		v := float64(math.Float32frombits(le.Uint32(b[at:])))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0
		}
		return v
	}
	s.Gain, s.Loudness, s.TruePeak = value(12), value(16), value(20)
	loops, markers := le.Uint32(b[24:]), le.Uint32(b[28:])
	for b = b[32:]; loops > 0 && len(b) >= 16; loops-- {
		l := Loop{int64(le.Uint32(b)), int64(le.Uint32(b[4:])), LoopKind(le.Uint32(b[8:])), int64(le.Uint32(b[12:]))}
		if l.Begin < l.End && l.End <= s.Frames && l.Kind <= Backward {
			s.Loops = append(s.Loops, l)
		}
		b = b[16:]
	}
	for ; markers > 0 && len(b) >= 12; markers-- {
		n := uint64(le.Uint32(b[8:]))
		whole := 12 + (n+3)/4*4
		if whole > uint64(len(b)) {
			return
		}
		s.Markers = append(s.Markers, Marker{string(b[12 : 12+n]), int64(le.Uint32(b)), int64(le.Uint32(b[4:]))})
		b = b[whole:]
	}
}
