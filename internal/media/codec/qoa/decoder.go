package qoa

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"
)

// Decoder reads a file.
type Decoder struct {
	Channels, Rate int
	Samples        int64 // of each channel
	Warnings       []string

	from   io.ReaderAt
	frames []frame
	next   int64   // next sample
	at     int     // number of the frame in pcm; below 0 if none
	pcm    []int16 // of a frame
	buf    []byte
}

type frame struct {
	at, first int64 // byte; sample
	size      int
}

// NewDecoder reads the heads of all frames. Of a file that is cut off, it reads the complete frames. Errors wrap
// [ErrTruncated], [ErrDamaged] or [ErrUnsupported], or are those of r.
func NewDecoder(r io.ReaderAt, size int64) (*Decoder, error) {
	d := &Decoder{from: r, at: -1}
	if size < 8 {
		return nil, fmt.Errorf("%w: %d bytes", ErrTruncated, size)
	}
	var head [8]byte
	if err := d.fill(head[:], 0); err != nil {
		return nil, err
	}
	if string(head[:4]) != magic {
		return nil, fmt.Errorf("%w: %q at byte 0, where a QOA file has %q", ErrDamaged, head[:4], magic)
	}
	says := int64(binary.BigEndian.Uint32(head[4:]))
	at := int64(8)
	for at < size && (says == 0 || d.Samples < says) {
		if at+8 > size {
			break
		}
		if err := d.fill(head[:], at); err != nil {
			return nil, err
		}
		h, err := ParseHeader(head[:])
		switch {
		case err != nil && len(d.frames) > 0:
			d.warn("at byte %d: %v", at, err)
			size = at
			continue
		case err != nil:
			return nil, fmt.Errorf("at byte %d: %w", at, err)
		case len(d.frames) > 0 && (h.Channels != d.Channels || h.Rate != d.Rate):
			return nil, fmt.Errorf("at byte %d: %w: %d channels, %d samples a second after %d and %d", at, ErrUnsupported, h.Channels, h.Rate,
				d.Channels, d.Rate)
		}
		if at+int64(h.Size) > size {
			break
		}
		d.Channels, d.Rate = h.Channels, h.Rate
		d.frames = append(d.frames, frame{at, d.Samples, h.Size})
		d.Samples += int64(h.Samples)
		at += int64(h.Size)
	}
	switch {
	case len(d.frames) == 0:
		return nil, fmt.Errorf("%w: no whole frame in %d bytes", ErrTruncated, size)
	case says != 0 && d.Samples > says:
		d.warn("the head says %d samples, and frames have %d: the rest is not read", says, d.Samples)
		d.Samples = says
	case d.Samples < says:
		d.warn("the head says %d samples, and whole frames have %d: the file is cut off", says, d.Samples)
	case says == 0 && at < size:
		d.warn("the last frame, at byte %d, is cut off", at)
	}
	return d, nil
}

func (d *Decoder) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

func (d *Decoder) fill(b []byte, at int64) error {
	n, err := d.from.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%w: %d bytes at byte %d", ErrTruncated, len(b), at)
	}
	return fmt.Errorf("qoa: %d bytes at byte %d: %w", len(b), at, err)
}

// SeekSample moves to a sample. The next [Decoder.Read] starts there.
func (d *Decoder) SeekSample(sample int64) error {
	if sample < 0 || sample > d.Samples {
		return fmt.Errorf("qoa: no sample %d: there are %d", sample, d.Samples)
	}
	d.next = sample
	return nil
}

// Read reads samples into dst, interleaved, and returns their number for each channel. At the end it returns io.EOF. Other
// errors come with the samples before the error.
func (d *Decoder) Read(dst []int16) (samples int, err error) {
	if d.next == d.Samples {
		return 0, io.EOF
	}
	if len(dst) < d.Channels {
		return 0, io.ErrShortBuffer
	}
	for len(dst) >= d.Channels && d.next < d.Samples {
		i := sort.Search(len(d.frames), func(i int) bool { return d.frames[i].first > d.next }) - 1
		if err := d.load(i); err != nil {
			return samples, err
		}
		skip := int(d.next-d.frames[i].first) * d.Channels
		left := int(min(d.Samples-d.next, FrameSamples)) * d.Channels
		n := copy(dst[:min(len(dst)/d.Channels*d.Channels, left)], d.pcm[skip:])
		dst = dst[n:]
		samples += n / d.Channels
		d.next += int64(n / d.Channels)
	}
	return samples, nil
}

// load decodes frame i.
func (d *Decoder) load(i int) error {
	if d.at == i {
		return nil
	}
	d.at = -1
	f := d.frames[i]
	if cap(d.buf) < f.size {
		d.buf = make([]byte, f.size)
	}
	d.buf = d.buf[:f.size]
	if err := d.fill(d.buf, f.at); err != nil {
		return err
	}
	h, err := ParseHeader(d.buf)
	if err != nil {
		return err
	}
	if n := h.Samples * h.Channels; cap(d.pcm) < n {
		d.pcm = make([]int16, n)
	}
	d.pcm = d.pcm[:h.Samples*h.Channels]
	if h.Channels != d.Channels || h.Size != f.size {
		return fmt.Errorf("%w: the frame at byte %d has changed", ErrDamaged, f.at)
	}
	if _, err := DecodeFrame(d.pcm, d.buf); err != nil {
		return err
	}
	d.at = i
	return nil
}
