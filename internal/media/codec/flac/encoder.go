package flac

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	encodeBlock = 4096 // samples of a frame
	vendor      = "kiln"
	seekPoint   = 18 // bytes
)

// Options are the parts of a file besides samples.
type Options struct {
	Comments []Comment
	Points   int // size of the seek table, evenly spaced; only if the number of samples is known
}

// Encoder writes a file.
type Encoder struct {
	format  Format
	to      io.WriteSeeker
	start   int64 // in to
	promise int64 // samples; below 0 if unknown
	head    []byte
	points  int // entries of the seek table
	tableAt int // in head

	samples, bytes  int64 // of frames
	smallest, large int   // size of the smallest and largest frame in bytes
	point           int   // next entry
	table           []byte
	hash            hash.Hash

	pending [MaxChannels][]int32
	subs    [4]subframe // left, right, middle and difference of stereo; otherwise only the first is used
	spare   []uint32
	rice    parameters
	floats  []float64
	window  []float64
	out     bitWriter
	raw     []byte
}

// NewEncoder writes the head of a file with the given number of samples in each channel; below 0, the number is unknown.
// Close fills in the sum of the samples and other fields that are only known at the end.
func NewEncoder(to io.WriteSeeker, f Format, o Options, samples int64) (*Encoder, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if samples > MaxSamples {
		return nil, fmt.Errorf("%d samples; it can have %d: %w", samples, int64(MaxSamples), ErrTooLarge)
	}
	if o.Points < 0 || o.Points > 1<<16 || o.Points > 0 && samples < 0 {
		return nil, fmt.Errorf("a table of %d places in %d samples: %w", o.Points, samples, ErrUnsupported)
	}
	e := &Encoder{format: f, to: to, promise: samples, hash: md5.New(), spare: make([]uint32, encodeBlock)}
	e.floats = make([]float64, encodeBlock)
	for c := range f.Channels {
		e.pending[c] = make([]int32, 0, encodeBlock)
	}
	for i := range e.subs {
		e.subs[i].u = make([]uint32, encodeBlock)
	}
	if err := e.header(o); err != nil {
		return nil, err
	}
	var err error
	if e.start, err = to.Seek(0, io.SeekCurrent); err != nil {
		return nil, err
	}
	_, err = to.Write(e.head)
	return e, err
}

// header builds everything before the frames, with space for unknown values.
func (e *Encoder) header(o Options) error {
	block := func(kind byte, body []byte) error {
		if len(body) >= 1<<24 {
			return fmt.Errorf("metadata of %d bytes: %w", len(body), ErrTooLarge)
		}
		e.head = binary.BigEndian.AppendUint32(e.head, uint32(kind)<<24|uint32(len(body)))
		e.head = append(e.head, body...)
		return nil
	}
	e.head = []byte(magic)
	if err := block(kindInfo, make([]byte, infoSize)); err != nil {
		return err
	}
	if o.Points > 0 {
		nowhere := append(bytes.Repeat([]byte{0xff}, 8), make([]byte, seekPoint-8)...)
		if err := block(kindSeek, bytes.Repeat(nowhere, o.Points)); err != nil {
			return err
		}
		e.points, e.tableAt = o.Points, len(e.head)-seekPoint*o.Points
	}
	comments := o.Comments
	if e.format.Mask != 0 && e.format.Mask != masks[e.format.Channels] {
		comments = append(comments[:len(comments):len(comments)], Comment{maskName, fmt.Sprintf("0x%04X", e.format.Mask)})
	}
	text := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	b := binary.LittleEndian.AppendUint32(text(nil, vendor), uint32(len(comments)))
	for i, c := range comments {
		odd := func(r rune) bool { return r < ' ' || r > '}' || r == '=' }
		if c.Name == "" || strings.ContainsFunc(c.Name, odd) || !utf8.ValidString(c.Value) {
			return fmt.Errorf("comment %d, %q=%q, is not a name in ASCII and a value in UTF-8: %w", i, cut(c.Name), cut(c.Value), ErrUnsupported)
		}
		if b = text(b, c.Name+"="+c.Value); len(b) >= 1<<24 {
			break
		}
	}
	last := len(e.head)
	if err := block(kindComments, b); err != nil {
		return err
	}
	e.head[last] |= 0x80
	return nil
}

// Write encodes samples, interleaved, always complete for all channels. They must fit the number of bits of the format.
func (e *Encoder) Write(src []int32) error {
	channels, unused := e.format.Channels, 32-e.format.Bits
	if len(src)%channels != 0 {
		return fmt.Errorf("%d samples cannot be divided among %d channels", len(src), channels)
	}
	now := e.samples + int64(len(e.pending[0])+len(src)/channels)
	if now > MaxSamples || e.promise >= 0 && now > e.promise {
		return fmt.Errorf("%d samples of %d: %w", now, e.promise, ErrTooLarge)
	}
	for i, v := range src {
		if v<<unused>>unused != v {
			return fmt.Errorf("%d, the sample at %d, has more than %d bits: %w", v, i, e.format.Bits, ErrTooLarge)
		}
	}
	for len(src) > 0 {
		had := len(e.pending[0])
		n := min(encodeBlock-had, len(src)/channels)
		for c := range channels {
			p := e.pending[c][:had+n]
			for i := range n {
				p[had+i] = src[i*channels+c]
			}
			e.pending[c] = p
		}
		e.sum(src[:n*channels])
		src = src[n*channels:]
		if had+n == encodeBlock {
			if err := e.frame(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sum adds samples to the MD5.
func (e *Encoder) sum(src []int32) {
	b := e.raw[:0]
	switch (e.format.Bits + 7) / 8 {
	case 1:
		for _, v := range src {
			b = append(b, byte(v))
		}
	case 2:
		for _, v := range src {
			b = append(b, byte(v), byte(v>>8))
		}
	case 3:
		for _, v := range src {
			b = append(b, byte(v), byte(v>>8), byte(v>>16))
		}
	default:
		for _, v := range src {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	e.hash.Write(b)
	e.raw = b
}

// frame writes the pending samples.
func (e *Encoder) frame() error {
	block := len(e.pending[0])
	w := &e.out
	w.b, w.acc, w.n = w.b[:0], 0, 0
	if e.format.Channels == 2 {
		e.stereo()
	} else {
		w.b = appendHead(w.b, e.format, e.samples/encodeBlock, block, e.format.Channels-1)
		for c := range e.format.Channels {
			s := &e.subs[0]
			s.x = append(s.x[:0], e.pending[c]...)
			s.plan(e, e.format.Bits)
			s.write(w)
		}
	}
	w.align()
	w.b = binary.BigEndian.AppendUint16(w.b, crc16(0, w.b))
	e.enter(block)
	if _, err := e.to.Write(w.b); err != nil {
		return err
	}
	if e.smallest == 0 || len(w.b) < e.smallest {
		e.smallest = len(w.b)
	}
	e.large = max(e.large, len(w.b))
	e.samples += int64(block)
	e.bytes += int64(len(w.b))
	for c := range e.format.Channels {
		e.pending[c] = e.pending[c][:0]
	}
	return nil
}

// stereo writes two channels with the stereo mode that takes the fewest bits.
func (e *Encoder) stereo() {
	f, w := e.format, &e.out
	left, right := e.pending[0], e.pending[1]
	l, r, m, s := &e.subs[0], &e.subs[1], &e.subs[2], &e.subs[3]
	l.x = append(l.x[:0], left...)
	r.x = append(r.x[:0], right...)
	kind, first, second := 1, l, r
	l.plan(e, f.Bits)
	r.plan(e, f.Bits)
	m.x, s.x = append(m.x[:0], left...), append(s.x[:0], right...)
	over := false // a difference exceeds 32 bits
	for i, v := range left {
		m.x[i] = int32((int64(v) + int64(right[i])) >> 1)
		difference := int64(v) - int64(right[i])
		s.x[i] = int32(difference)
		over = over || difference != int64(s.x[i])
	}
	if !over {
		m.plan(e, f.Bits)
		s.plan(e, f.Bits+1)
		best := l.size + r.size
		if size := m.size + s.size; size < best {
			best, kind, first, second = size, midSide, m, s
		}
		if size := l.size + s.size; size < best {
			best, kind, first, second = size, leftSide, l, s
		}
		if size := s.size + r.size; size < best {
			kind, first, second = sideRight, s, r
		}
	}
	w.b = appendHead(w.b, f, e.samples/encodeBlock, len(left), kind)
	first.write(w)
	second.write(w)
}

// enter adds the frame to the seek table if it has the sample of the next entry.
func (e *Encoder) enter(block int) {
	// If a frame has the samples of several entries, only one is added.
	entered := false
	for ; e.point < e.points && e.promise/int64(e.points)*int64(e.point) < e.samples+int64(block); e.point++ {
		if !entered {
			e.table = binary.BigEndian.AppendUint64(e.table, uint64(e.samples))
			e.table = binary.BigEndian.AppendUint64(e.table, uint64(e.bytes))
			e.table = binary.BigEndian.AppendUint16(e.table, uint16(block))
		}
		entered = true
	}
}

// Close writes the last frame, and completes the head. It does not close the underlying writer.
func (e *Encoder) Close() error {
	if len(e.pending[0]) > 0 {
		if err := e.frame(); err != nil {
			return err
		}
	}
	if e.promise >= 0 && e.samples != e.promise {
		return fmt.Errorf("%d samples of %d: %w", e.samples, e.promise, ErrTruncated)
	}
	info := e.head[len(magic)+4:]
	binary.BigEndian.PutUint16(info, encodeBlock)
	binary.BigEndian.PutUint16(info[2:], encodeBlock)
	binary.BigEndian.PutUint32(info[3:], uint32(encodeBlock&0xff)<<24|uint32(e.smallest))
	info[7], info[8], info[9] = byte(e.large>>16), byte(e.large>>8), byte(e.large)
	f := e.format
	binary.BigEndian.PutUint64(info[10:], uint64(f.Rate)<<44|uint64(f.Channels-1)<<41|uint64(f.Bits-1)<<36|uint64(e.samples))
	copy(info[18:], e.hash.Sum(nil))
	copy(e.head[e.tableAt:], e.table)
	if _, err := e.to.Seek(e.start, io.SeekStart); err != nil {
		return err
	}
	if _, err := e.to.Write(e.head); err != nil {
		return err
	}
	_, err := e.to.Seek(e.start+int64(len(e.head))+e.bytes, io.SeekStart)
	return err
}
