package wav

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/adpcm"
)

// Writer writes a file.
type Writer struct {
	Private []byte // may be set until [Writer.Close], and replaces that of the metadata

	format  Format
	to      io.Writer
	seek    io.WriteSeeker // if the number of frames is not yet known
	start   int64          // in seek
	frames  int64          // number of frames written
	promise int64          // expected number of frames; below 0 if unknown
	meta    Metadata
	head    int // bytes before the samples
	buf     []byte
	blocks  *adpcm.Encoder
	pending []int16 // incomplete block
}

// NewWriter writes the head of a file of PCM with 16 or 24 bits, of floats with 32, or of IMA ADPCM, whose Block must be
// set. If Mask is 0, one or two channels have the default speakers. If frames is below 0, the number of frames is unknown:
// to must then be an [io.WriteSeeker], in which Close completes the head.
func NewWriter(to io.Writer, f Format, m Metadata, frames int64) (*Writer, error) {
	if f.Coding != IMAADPCM {
		f.Block = f.Channels * f.Bits / 8
	}
	w := &Writer{format: f, to: to, promise: frames, meta: m, Private: m.Private}
	switch {
	case f.Channels < 1 || f.Channels > MaxChannels || f.Rate < 1 || f.Rate > MaxRate:
		return nil, fmt.Errorf("%d channels, %d frames a second: %w", f.Channels, f.Rate, ErrUnsupported)
	case f.Coding == PCM && (f.Bits == 16 || f.Bits == 24) || f.Coding == Float && f.Bits == 32:
	case f.Coding == IMAADPCM:
		var err error
		if w.blocks, err = adpcm.NewEncoder(f.Channels, f.Block); err != nil {
			return nil, fmt.Errorf("%w: %w", err, ErrUnsupported)
		}
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

// check checks that loops and markers are within the frames, if the number of frames is known.
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
			return fmt.Errorf("%q is not an id of four letters: %w", t.ID, ErrDamaged)
		}
	}
	return nil
}

// data returns the size of frames in bytes. The number of frames is capped at 1<<40: the result does not overflow, and is
// still too large for a file.
func (w *Writer) data(frames int64) int64 {
	frames = min(frames, 1<<40)
	if w.blocks != nil {
		n := int64(w.blocks.Frames())
		return (frames + n - 1) / n * int64(w.format.Block)
	}
	return frames * int64(w.format.Block)
}

func (w *Writer) trailer() []byte {
	w.meta.Private = w.Private
	return w.meta.trailer(max(w.format.Rate, 1))
}

// size returns the size of the RIFF chunk.
func (w *Writer) size(frames int64) int64 {
	data := w.data(frames)
	return int64(w.head) - 8 + data + data%2 + int64(len(w.trailer()))
}

// header returns everything before the samples.
func (w *Writer) header(frames int64) []byte {
	o, f := binary.LittleEndian, w.format
	plain := f.Mask == 0 || f.Channels == 1 && f.Mask == 4 || f.Channels == 2 && f.Mask == 3
	extensible := (f.Channels > 2 || !plain) && w.blocks == nil
	tag, body := tags[f.Coding], 16
	if extensible {
		tag, body = tagExtensible, 40
	} else if f.Coding == Float {
		body = 18
	} else if w.blocks != nil {
		body = 20
	}
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), byte(body), 0, 0, 0)
	b = o.AppendUint16(b, uint16(tag))
	b = o.AppendUint16(b, uint16(f.Channels))
	b = o.AppendUint32(b, uint32(f.Rate))
	b = o.AppendUint32(b, w.bytesPerSecond())
	b = o.AppendUint16(b, uint16(f.Block))
	b = o.AppendUint16(b, uint16(f.Bits))
	if extensible {
		b = o.AppendUint16(b, 22)
		b = o.AppendUint16(b, uint16(f.Bits))
		b = o.AppendUint32(b, f.Mask)
		b = append(o.AppendUint16(b, uint16(tags[f.Coding])), guidRest...)
	} else if f.Coding == Float {
		b = o.AppendUint16(b, 0)
	} else if w.blocks != nil {
		b = o.AppendUint16(o.AppendUint16(b, 2), uint16(w.blocks.Frames()))
	}
	if f.Coding == Float || w.blocks != nil {
		b = o.AppendUint32(append(b, "fact\x04\x00\x00\x00"...), uint32(frames))
	}
	b = o.AppendUint32(append(b, "data"...), uint32(w.data(frames)))
	w.head = len(b)
	o.PutUint32(b[4:], uint32(w.size(frames)))
	return b
}

func (w *Writer) bytesPerSecond() uint32 {
	if w.blocks != nil {
		return uint32(int64(w.format.Rate) * int64(w.format.Block) / int64(w.blocks.Frames()))
	}
	return uint32(w.format.Rate * w.format.Block)
}

// Write16 writes frames of 16 bits, interleaved, as PCM of 16 bits or ADPCM.
func (w *Writer) Write16(src []int16) error {
	if err := w.take(len(src)); err != nil {
		return err
	}
	if w.blocks == nil {
		for len(src) > 0 {
			n := min(len(src), 1<<13)
			b := slices.Grow(w.buf[:0], 2*n)[:2*n]
			w.buf = b
			for i, v := range src[:n] {
				binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
			}
			if _, err := w.to.Write(b); err != nil {
				return err
			}
			src = src[n:]
		}
		return nil
	}
	for block := w.blocks.Frames() * w.format.Channels; len(src) > 0; {
		n := min(block-len(w.pending), len(src))
		w.pending, src = append(w.pending, src[:n]...), src[n:]
		if len(w.pending) == block {
			if err := w.block(); err != nil {
				return err
			}
		}
	}
	return nil
}

// block writes the pending samples.
func (w *Writer) block() (err error) {
	if len(w.pending) == 0 {
		return nil
	}
	if w.buf, err = w.blocks.Encode(w.buf[:0], w.pending); err == nil {
		_, err = w.to.Write(w.buf)
	}
	w.pending = w.pending[:0]
	return err
}

// take checks and counts samples.
func (w *Writer) take(samples int) error {
	if samples%w.format.Channels != 0 {
		return fmt.Errorf("%d samples cannot be divided among %d channels", samples, w.format.Channels)
	}
	frames := w.frames + int64(samples/w.format.Channels)
	if w.promise >= 0 && frames > w.promise {
		return fmt.Errorf("%d frames of %d: %w", frames, w.promise, ErrTooLarge)
	}
	if w.size(frames) > 1<<32-1 {
		return fmt.Errorf("%d frames: %w", frames, ErrTooLarge)
	}
	w.frames = frames
	return nil
}

// Write writes frames, interleaved. For PCM, 1 is 2^(bits-1), rounded to nearest, ties to even. Values beyond the limits
// become the limits, and NaN becomes 0.
func (w *Writer) Write(src []float32) error {
	if w.blocks != nil {
		return fmt.Errorf("ADPCM takes samples of 16 bits: %w", ErrUnsupported)
	}
	if err := w.take(len(src)); err != nil {
		return err
	}
	for len(src) > 0 {
		n := min(len(src), 1<<13)
		w.buf = w.format.encode(w.buf[:0], src[:n])
		if _, err := w.to.Write(w.buf); err != nil {
			return err
		}
		src = src[n:]
	}
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

// Close writes everything after the samples. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.promise >= 0 && w.frames != w.promise {
		return fmt.Errorf("%d frames of %d: %w", w.frames, w.promise, ErrTruncated)
	}
	if err := w.meta.check(w.frames); err != nil {
		return err
	}
	if err := w.block(); err != nil {
		return err
	}
	pad := make([]byte, w.data(w.frames)%2)
	if _, err := w.to.Write(append(pad, w.trailer()...)); err != nil || w.seek == nil {
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
