package soundfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/kiln-pipeline/kiln/internal/media/codec/qoa"
)

// Notes are the data about a sound that a game needs besides its samples. A WAV file has them in a chunk "kiln". A QOA
// file has them after the last frame, which decoders of QOA ignore. All numbers are little-endian.
// docs/formats/sound.md describes the format for readers:
//
//	 0  "KSND"
//	 4  u32  size in bytes, of all of it
//	 8  u16  version, 1
//	10  u16  flags: 1 the game should stream it, 2 the loudness is the momentary maximum, 4 it is silent
//	12  f32  gain in dB, which the game applies
//	16  f32  loudness in LUFS, without the gain; 0 if it is silent
//	20  f32  true peak in dBTP, without the gain; 0 if it is silent
//	24  u32  number of loops, u32 of markers
//	32  loops: u32 begin, u32 end, u32 kind (0 forward, 1 ping-pong, 2 backward), u32 times, 0 for ever
//	    markers: u32 frame, u32 length, u32 bytes of the name, the name in UTF-8, zeros up to a multiple of 4
type Notes struct {
	Gain      float64 // in dB
	Loudness  float64 // in LUFS
	TruePeak  float64 // in dBTP
	Momentary bool
	Silent    bool
	Stream    bool
	Loops     []Loop
	Markers   []Marker
}

const (
	notesMagic = "KSND"
	notesHead  = 32
	maxNotes   = 1 << 20 // in bytes
	maxNote    = 1 << 12 // bytes of a name
)

const (
	noteStream = 1 << iota
	noteMomentary
	noteSilent
)

// Append appends the encoded notes.
func (n *Notes) Append(b []byte) ([]byte, error) {
	le := binary.LittleEndian
	begin := len(b)
	var flags uint16
	for bit, set := range map[uint16]bool{noteStream: n.Stream, noteMomentary: n.Momentary, noteSilent: n.Silent} {
		if set {
			flags |= bit
		}
	}
	b = append(b, notesMagic+"\x00\x00\x00\x00"...)
	b = le.AppendUint16(le.AppendUint16(b, 1), flags)
	for _, v := range []float64{n.Gain, n.Loudness, n.TruePeak} {
		b = le.AppendUint32(b, math.Float32bits(float32(v)))
	}
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(n.Loops))), uint32(len(n.Markers)))
	for _, l := range n.Loops {
		if l.Begin < 0 || l.Begin >= l.End || l.End > math.MaxUint32 || l.Kind > Backward || l.Count < 0 || l.Count > math.MaxUint32 {
			return nil, fmt.Errorf("loop from %d to %d", l.Begin, l.End)
		}
		for _, v := range []uint32{uint32(l.Begin), uint32(l.End), uint32(l.Kind), uint32(l.Count)} {
			b = le.AppendUint32(b, v)
		}
	}
	for _, m := range n.Markers {
		if m.Frame < 0 || m.Frame > math.MaxUint32 || m.Length < 0 || m.Length > math.MaxUint32 {
			return nil, fmt.Errorf("marker at %d", m.Frame)
		}
		name := m.Name[:min(len(m.Name), maxNote)]
		for !utf8.ValidString(name) && len(name) > 0 {
			name = name[:len(name)-1]
		}
		b = le.AppendUint32(le.AppendUint32(b, uint32(m.Frame)), uint32(m.Length))
		b = append(le.AppendUint32(b, uint32(len(name))), name...)
		for (len(b)-begin)%4 != 0 {
			b = append(b, 0)
		}
	}
	if len(b)-begin > maxNotes {
		return nil, fmt.Errorf("%d loops and %d markers are more than %d bytes", len(n.Loops), len(n.Markers), maxNotes)
	}
	le.PutUint32(b[begin+4:], uint32(len(b)-begin))
	return b, nil
}

var errNotes = errors.New("no notes of Kiln")

// ParseNotes reads notes at the start of b.
func ParseNotes(b []byte) (*Notes, error) {
	le := binary.LittleEndian
	if len(b) < notesHead || string(b[:4]) != notesMagic || le.Uint16(b[8:]) != 1 {
		return nil, errNotes
	}
	size := le.Uint32(b[4:])
	if size < notesHead || uint64(size) > uint64(len(b)) || size > maxNotes {
		return nil, errNotes
	}
	b = b[:size]
	float := func(at int) float64 { return float64(math.Float32frombits(le.Uint32(b[at:]))) }
	flags := le.Uint16(b[10:])
	n := &Notes{Gain: float(12), Loudness: float(16), TruePeak: float(20),
		Stream: flags&noteStream != 0, Momentary: flags&noteMomentary != 0, Silent: flags&noteSilent != 0}
	loops, markers := le.Uint32(b[24:]), le.Uint32(b[28:])
	b = b[notesHead:]
	if uint64(loops)*16+uint64(markers)*12 > uint64(len(b)) {
		return nil, errNotes
	}
	for range loops {
		l := Loop{int64(le.Uint32(b)), int64(le.Uint32(b[4:])), LoopKind(le.Uint32(b[8:])), int64(le.Uint32(b[12:]))}
		if l.Begin >= l.End || l.Kind > Backward {
			return nil, errNotes
		}
		n.Loops, b = append(n.Loops, l), b[16:]
	}
	for range markers {
		if len(b) < 12 {
			return nil, errNotes
		}
		size := uint64(le.Uint32(b[8:]))
		whole := 12 + (size+3)/4*4
		if whole > uint64(len(b)) {
			return nil, errNotes
		}
		n.Markers = append(n.Markers, Marker{string(b[12 : 12+size]), int64(le.Uint32(b)), int64(le.Uint32(b[4:]))})
		b = b[whole:]
	}
	return n, nil
}

// qoaSize returns the size of a QOA file up to the end of its frames, computed from its header.
func qoaSize(channels int, samples int64) int64 {
	frame := func(n int64) int64 { return 8 + int64(channels)*(16+8*((n+19)/20)) }
	size := 8 + samples/qoa.FrameSamples*frame(qoa.FrameSamples)
	if rest := samples % qoa.FrameSamples; rest > 0 {
		size += frame(rest)
	}
	return size
}

// notesAfterQOA reads the notes after the last frame. It returns nil if there are none.
func notesAfterQOA(in io.ReaderAt, size int64) (*Notes, error) {
	var head [12]byte
	if _, err := in.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	at := qoaSize(int(head[8]), int64(binary.BigEndian.Uint32(head[4:])))
	if at >= size || size-at > maxNotes {
		return nil, nil
	}
	b := make([]byte, size-at)
	if _, err := in.ReadAt(b, at); err != nil && err != io.EOF {
		return nil, err
	}
	n, err := ParseNotes(b)
	if err != nil {
		return nil, nil
	}
	return n, nil
}
