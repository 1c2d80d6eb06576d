package wav

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Writer writes a file.
type Writer struct {
	format  Format
	to      io.Writer
	seek    io.WriteSeeker // if the number of frames is not known yet
	start   int64          // in seek
	frames  int64          // written
	promise int64          // below 0 if there is none
	trailer []byte
	meta    Metadata
	head    int // bytes before samples
	buf     []byte
}

// NewWriter writes the head of a file of PCM of 16 or 24 bits, or floats of 32. Speakers of one or two channels go without saying if Mask
// is 0. If frames is below 0, nobody knows how many will come, and to is an [io.WriteSeeker], in which the head is put right at the end.
func NewWriter(to io.Writer, f Format, m Metadata, frames int64) (*Writer, error) {
	f.Block = f.Channels * f.Bits / 8
	w := &Writer{format: f, to: to, promise: frames, meta: m, trailer: m.trailer(max(f.Rate, 1))}
	switch {
	case f.Channels < 1 || f.Channels > MaxChannels || f.Rate < 1 || f.Rate > MaxRate:
		return nil, fmt.Errorf("%d channels, %d frames a second: %w", f.Channels, f.Rate, ErrUnsupported)
	case f.Coding == PCM && (f.Bits == 16 || f.Bits == 24) || f.Coding == Float && f.Bits == 32:
	default:
		return nil, fmt.Errorf("%s of %d bits is not written: %w", f.Coding, f.Bits, ErrUnsupported)
	}
	if err := m.check(max(frames, -1)); err != nil {
		return nil, err
	}
	if frames < 0 {
		seek, ok := to.(io.WriteSeeker)
		if !ok {
			return nil, fmt.Errorf("the number of frames must be known: %w", ErrUnsupported)
		}
		start, err := seek.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		w.seek, w.start = seek, start
	}
	head := w.header(max(frames, 0))
	w.head = len(head)
	if w.size(max(frames, 0)) > 1<<32-1 {
		return nil, fmt.Errorf("%d frames: %w", frames, ErrTooLarge)
	}
	_, err := to.Write(head)
	return w, err
}

// check holds loops and markers to the frames there are, as far as these are known.
func (m *Metadata) check(frames int64) error {
	if frames < 0 {
		frames = 1<<32 - 1
	}
	if m.UnityNote < 0 || m.UnityNote > 127 {
		return fmt.Errorf("MIDI note %d: %w", m.UnityNote, ErrDamaged)
	}
	for i, l := range m.Loops {
		if l.Begin < 0 || l.Begin >= l.End || l.End > frames || l.Type < Forward || l.Type > Backward {
			return fmt.Errorf("loop %d, from %d to before %d of %d frames, type %d: %w", i, l.Begin, l.End, frames, l.Type, ErrDamaged)
		}
	}
	for i, p := range m.Markers {
		if p.Frame < 0 || p.Frame > frames || p.Length < 0 || p.Length > frames-p.Frame {
			return fmt.Errorf("marker %d, %d frames from %d on of %d: %w", i, p.Length, p.Frame, frames, ErrDamaged)
		}
	}
	for _, t := range m.Info {
		if len(t.ID) != 4 || !letters(t.ID) {
			return fmt.Errorf("%q is no id of four letters: %w", t.ID, ErrDamaged)
		}
	}
	return nil
}

// size of the RIFF chunk; frames are so few that it does not overflow, or it is far too large.
func (w *Writer) size(frames int64) int64 {
	data := min(frames, 1<<40) * int64(w.format.Block)
	return int64(w.head) - 8 + data + data%2 + int64(len(w.trailer))
}

// header is all that comes before the samples.
func (w *Writer) header(frames int64) []byte {
	o, f := binary.LittleEndian, w.format
	plain := f.Mask == 0 || f.Channels == 1 && f.Mask == 4 || f.Channels == 2 && f.Mask == 3
	extensible := f.Channels > 2 || !plain
	tag, body := tags[f.Coding], 16
	if extensible {
		tag, body = tagExtensible, 40
	} else if f.Coding == Float {
		body = 18
	}
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), byte(body), 0, 0, 0)
	b = o.AppendUint16(b, uint16(tag))
	b = o.AppendUint16(b, uint16(f.Channels))
	b = o.AppendUint32(b, uint32(f.Rate))
	b = o.AppendUint32(b, uint32(f.Rate*f.Block))
	b = o.AppendUint16(b, uint16(f.Block))
	b = o.AppendUint16(b, uint16(f.Bits))
	if extensible {
		b = o.AppendUint16(b, 22)
		b = o.AppendUint16(b, uint16(f.Bits))
		b = o.AppendUint32(b, f.Mask)
		b = append(o.AppendUint16(b, uint16(tags[f.Coding])), guidRest...)
	} else if f.Coding == Float {
		b = o.AppendUint16(b, 0)
	}
	if f.Coding == Float {
		b = o.AppendUint32(append(b, "fact\x04\x00\x00\x00"...), uint32(frames))
	}
	b = o.AppendUint32(append(b, "data"...), uint32(frames*int64(f.Block)))
	w.head = len(b)
	o.PutUint32(b[4:], uint32(w.size(frames)))
	return b
}

// Write takes frames, interleaved. Of PCM, 1 is 2^(bits-1), rounded to the nearest, and to the even of two; what is beyond the limits is at
// the limit, and what is no number is 0.
func (w *Writer) Write(src []float32) error {
	if len(src)%w.format.Channels != 0 {
		return fmt.Errorf("%d samples are no frames of %d channels", len(src), w.format.Channels)
	}
	frames := w.frames + int64(len(src)/w.format.Channels)
	if w.promise >= 0 && frames > w.promise {
		return fmt.Errorf("%d frames of %d: %w", frames, w.promise, ErrTooLarge)
	}
	if w.size(frames) > 1<<32-1 {
		return fmt.Errorf("%d frames: %w", frames, ErrTooLarge)
	}
	for len(src) > 0 {
		n := min(len(src), 1<<13)
		w.buf = w.format.encode(w.buf[:0], src[:n])
		if _, err := w.to.Write(w.buf); err != nil {
			return err
		}
		src = src[n:]
	}
	w.frames = frames
	return nil
}

func (f Format) encode(b []byte, src []float32) []byte {
	o := binary.LittleEndian
	for _, v := range src {
		switch {
		case f.Coding == Float:
			b = o.AppendUint32(b, math.Float32bits(v))
		case f.Bits == 16:
			b = o.AppendUint16(b, uint16(integer(v, 1<<15)))
		default:
			n := integer(v, 1<<23)
			b = append(b, byte(n), byte(n>>8), byte(n>>16))
		}
	}
	return b
}

func integer(v float32, one float64) int32 {
	if v != v {
		return 0
	}
	return int32(min(max(math.RoundToEven(float64(v)*one), -one), one-1))
}

// Close writes what comes after the samples. It does not close what is written to.
func (w *Writer) Close() error {
	if w.promise >= 0 && w.frames != w.promise {
		return fmt.Errorf("%d frames of %d: %w", w.frames, w.promise, ErrTruncated)
	}
	if err := w.meta.check(w.frames); err != nil {
		return err
	}
	pad := make([]byte, w.frames*int64(w.format.Block)%2)
	if _, err := w.to.Write(append(pad, w.trailer...)); err != nil || w.seek == nil {
		return err
	}
	if _, err := w.seek.Seek(w.start, io.SeekStart); err != nil {
		return err
	}
	if _, err := w.seek.Write(w.header(w.frames)); err != nil {
		return err
	}
	_, err := w.seek.Seek(w.start+8+w.size(w.frames), io.SeekStart)
	return err
}
