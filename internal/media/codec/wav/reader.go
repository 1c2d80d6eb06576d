package wav

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/kiln-pipeline/kiln/internal/media/codec/adpcm"
)

// Reader reads a file.
type Reader struct {
	Format
	Metadata
	Frames   int64
	Warnings []string // in plain words; [Reader.Read] adds one for damage in ADPCM

	riff
	data   chunk
	sample int   // size in bytes, except for ADPCM
	next   int64 // next frame to read
	buf    []byte

	// For ADPCM:
	coefficients [][2]int16
	blockFrames  int64
	pcm          []int16 // samples of a block
	block        int64   // number of that block; below 0 if none
	damage       bool    // damage was reported
}

// NewReader reads everything in a file except the samples. Errors wrap [ErrTruncated], [ErrDamaged] or [ErrUnsupported], or
// are those of r.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	w := &Reader{block: -1, riff: riff{from: r, size: size, order: binary.LittleEndian}}
	w.warned = &w.Warnings
	if size < 12 {
		return nil, fmt.Errorf("%d bytes are not a WAV file: %w", size, ErrTruncated)
	}
	head, err := w.bytes(0, 12)
	if err != nil {
		return nil, err
	}
	switch string(head[:4]) {
	case "RIFF":
	case "RIFX":
		w.order = binary.BigEndian
	case "RF64", "BW64":
		w.sizes = map[string]int64{}
	default:
		return nil, fmt.Errorf("%q at byte 0, where a WAV file has \"RIFF\": %w", head[:4], ErrDamaged)
	}
	if string(head[8:]) != "WAVE" {
		return nil, fmt.Errorf("%q at byte 8, where a WAV file has \"WAVE\": %w", head[8:], ErrDamaged)
	}
	if w.end = int64(w.order.Uint32(head[4:])) + 8; w.end == 8 || w.end >= 1<<32-256 || w.end == 0x7ffff024+8 {
		w.end = -1
	}
	chunks, err := w.chunks(12)
	if err != nil {
		return nil, err
	}
	if n := len(chunks); w.end > w.size+8 && (n == 0 || chunks[n-1].whole) { // many programs include the 8 bytes of the head in the size
		w.warn("the file is cut off: it says that it ends at byte %d, and %d bytes are there", w.end, w.size)
	}
	if err := w.another(); err != nil {
		return nil, err
	}
	if err := w.format(chunks); err != nil {
		return nil, err
	}
	if err := w.metadata(chunks); err != nil {
		return nil, err
	}
	w.buf = make([]byte, max(w.Block, 1<<15/w.Block*w.Block))
	return w, nil
}

// another warns of a WAV file that follows the first, as in files that were joined byte by byte.
func (r *Reader) another() error {
	if r.end < 0 || r.size < r.end+12 {
		return nil
	}
	b, err := r.bytes(r.end, 12)
	if err == nil && (string(b[:4]) == "RIFF" || string(b[:4]) == "RIFX") && string(b[8:]) == "WAVE" {
		r.warn("another WAV file begins at byte %d: its sound is not read", r.end)
	}
	return err
}

// find returns the first chunk with an id.
func (r *Reader) find(chunks []chunk, id string) (c chunk, ok bool) {
	for _, found := range chunks {
		switch {
		case found.id != id:
		case !ok:
			c, ok = found, true
		default:
			r.warn("%s is a duplicate, and is ignored", found)
			return c, ok
		}
	}
	return c, ok
}

// need is find for required chunks.
func (r *Reader) need(chunks []chunk, id string) (chunk, error) {
	c, ok := r.find(chunks, id)
	switch {
	case ok:
		return c, nil
	case r.size < r.end || r.end < 0:
		return c, fmt.Errorf("no %q chunk in the %d bytes that are there: %w", id, r.size, ErrTruncated)
	}
	return c, fmt.Errorf("no %q chunk: %w", id, ErrDamaged)
}

// format reads the fmt chunk, and computes the number of frames.
func (r *Reader) format(chunks []chunk) error {
	c, err := r.need(chunks, "fmt ")
	if err != nil {
		return err
	}
	if c.size < 14 {
		if !c.whole {
			return fmt.Errorf("%s: %w", c, ErrTruncated)
		}
		return fmt.Errorf("%s of %d bytes: %w", c, c.size, ErrDamaged)
	}
	b, err := r.bytes(c.at, int(min(c.size, maxMetadata)))
	if err != nil {
		return err
	}
	if err := r.parseFormat(b, c); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if r.data, err = r.need(chunks, "data"); err != nil {
		return err
	}
	if r.Coding == IMAADPCM || r.Coding == MSADPCM {
		return r.countBlocks(chunks)
	}
	r.Frames = r.data.size / int64(r.Block)
	if rest := r.data.size % int64(r.Block); rest != 0 && r.data.whole {
		r.warn("%s ends with %d bytes of a frame that has %d", r.data, rest, r.Block)
	}
	return nil
}

// parseFormat reads the body of the fmt chunk.
//
//	 0  u16  coding, u16 channels, u32 rate, u32 bytes per second: ignored
//	12  u16  bytes of a frame, or of a block of ADPCM
//	14  u16  bits per sample
//	16  u16  bytes that follow; for ADPCM u16 frames of a block; for MS ADPCM u16 number of coefficients, then each: i16, i16
//	18  u16  for WAVEFORMATEXTENSIBLE: valid bits, u32 speakers, 16 bytes: u16 coding and a constant
func (r *Reader) parseFormat(b []byte, c chunk) error {
	u16 := func(at int) int {
		if at+2 > len(b) {
			return 0
		}
		return int(r.order.Uint16(b[at:]))
	}
	tag, rate := u16(0), r.order.Uint32(b[4:])
	r.Channels, r.Format.Block, r.Bits = u16(2), u16(12), u16(14)
	if r.Channels < 1 || r.Channels > MaxChannels {
		return fmt.Errorf("%d channels; the limits are 1 and %d: %w", r.Channels, MaxChannels, ErrUnsupported)
	}
	if rate < 1 || rate > MaxRate {
		return fmt.Errorf("%d frames a second; the limits are 1 and %d: %w", rate, MaxRate, ErrUnsupported)
	}
	r.Rate = int(rate)
	valid := 0
	if tag == tagExtensible {
		if len(b) < 40 {
			r.warn("%s is cut off before the coding of the samples: read as PCM", c)
			tag = tagPCM
		} else {
			valid, r.Mask = u16(18), r.order.Uint32(b[20:])
			ok := false
			if tag, ok = subFormat(b[24:40], r.order); !ok {
				return fmt.Errorf("coding %x: %w", b[24:40], ErrUnsupported)
			}
		}
	}
	for coding, t := range tags {
		if t == tag {
			r.Coding = Coding(coding)
			return r.parseSample(b, valid, c)
		}
	}
	if name := strangers[tag]; name != "" {
		return fmt.Errorf("coding 0x%x, which is %s: %w", tag, name, ErrUnsupported)
	}
	return fmt.Errorf("coding 0x%x: %w", tag, ErrUnsupported)
}

// parseSample determines the size of a sample in bytes. valid is the number of valid bits, or 0 for all.
func (r *Reader) parseSample(b []byte, valid int, c chunk) error {
	if r.Coding == IMAADPCM || r.Coding == MSADPCM {
		return r.parseADPCM(b, c)
	}
	r.sample = (r.Bits + 7) / 8
	if r.Bits == 0 {
		r.sample = r.Format.Block / r.Channels
		r.Bits = 8 * r.sample
	}
	if block := r.Format.Block; block != r.sample*r.Channels {
		// Samples of 24 bits may be stored in 32.
		if r.Coding == PCM && r.Bits > 16 && block == 4*r.Channels {
			r.sample = 4
		} else {
			r.warn("%s says %d bytes a frame; %d channels of %d bits have %d", c, block, r.Channels, r.Bits, r.sample*r.Channels)
		}
	}
	r.Format.Block = r.sample * r.Channels
	ok := r.Bits == 8
	switch r.Coding {
	case PCM:
		ok = r.sample >= 1 && r.sample <= 4
		if valid > 0 && valid < r.Bits {
			r.Bits = valid
		}
	case Float:
		ok = r.Bits == 32 || r.Bits == 64
	}
	if !ok {
		return fmt.Errorf("%s of %d bits: %w", r.Coding, r.Bits, ErrUnsupported)
	}
	return nil
}

func (r *Reader) parseADPCM(b []byte, c chunk) error {
	frames := 0
	if r.Coding == IMAADPCM {
		frames = adpcm.Frames(r.Format.Block, r.Channels)
	} else {
		frames = adpcm.MSFrames(r.Format.Block, r.Channels)
		if r.Channels > 2 {
			return fmt.Errorf("%s of %d channels: %w", r.Coding, r.Channels, ErrUnsupported)
		}
		for at := 22; len(b) >= 22 && at+4 <= len(b) && len(r.coefficients) < int(r.order.Uint16(b[20:])); at += 4 {
			r.coefficients = append(r.coefficients, [2]int16{int16(r.order.Uint16(b[at:])), int16(r.order.Uint16(b[at+2:]))})
		}
		if r.coefficients == nil {
			r.warn("%s has no coefficients: the standard ones are used", c)
			r.coefficients = adpcm.MSCoefficients()
		}
	}
	if r.Bits != 4 || r.order != binary.LittleEndian {
		return fmt.Errorf("%s of %d bits, %s: %w", r.Coding, r.Bits, r.order, ErrUnsupported)
	}
	if frames == 0 {
		return fmt.Errorf("%s, %d channels in blocks of %d bytes: %w", r.Coding, r.Channels, r.Format.Block, ErrDamaged)
	}
	if len(b) >= 20 {
		// Blocks may have unused bytes.
		switch says := int(r.order.Uint16(b[18:])); {
		case says > 0 && says < frames:
			frames = says
		case says > frames:
			r.warn("%s says %d frames a block; %d bytes have %d", c, says, r.Format.Block, frames)
		}
	}
	r.blockFrames = int64(frames)
	return nil
}

// countBlocks counts the frames of ADPCM. The last block may be short, or have fewer frames than its size allows, as the
// fact chunk says.
func (r *Reader) countBlocks(chunks []chunk) error {
	blocks, rest := r.data.size/int64(r.Format.Block), int(r.data.size%int64(r.Format.Block))
	last := r.blockFrames
	r.Frames = blocks * r.blockFrames
	if rest > 0 {
		if last = min(last, int64(r.framesIn(rest))); last == 0 && r.data.whole {
			r.warn("%s ends with %d bytes of a block that has %d", r.data, rest, r.Format.Block)
		}
		r.Frames += last
	}
	c, ok := r.find(chunks, "fact")
	if !ok || c.size < 4 {
		return nil
	}
	b, err := r.bytes(c.at, 4)
	if err != nil {
		return err
	}
	switch says := int64(r.order.Uint32(b)); {
	case says <= r.Frames && says > r.Frames-max(last, 1):
		r.Frames = says
	case says != r.Frames && says != 1<<32-1 && says != 0 && r.data.whole:
		r.warn("%s says %d frames, and there are %d", c, says, r.Frames)
	}
	return nil
}

func (r *Reader) framesIn(size int) int {
	if r.Coding == IMAADPCM {
		return adpcm.Frames(size, r.Channels)
	}
	return adpcm.MSFrames(size, r.Channels)
}

// SeekFrame moves to a frame. The next [Reader.Read] starts there.
func (r *Reader) SeekFrame(frame int64) error {
	if frame < 0 || frame > r.Frames {
		return fmt.Errorf("no frame %d: there are %d", frame, r.Frames)
	}
	r.next = frame
	return nil
}

// Read reads frames into dst, interleaved, and returns their number. Integers of n bits are divided by 2^(n-1), so they are
// at least -1 and below 1. Floats are unchanged, including larger values, infinities and NaN. At the end it returns io.EOF.
// Other errors come with the frames before the error.
func (r *Reader) Read(dst []float32) (frames int, err error) {
	if r.next == r.Frames {
		return 0, io.EOF
	}
	if len(dst) < r.Channels {
		return 0, io.ErrShortBuffer
	}
	want := int(min(int64(len(dst)/r.Channels), r.Frames-r.next))
	for frames < want && err == nil {
		var n int
		if r.blockFrames > 0 {
			n, err = r.readBlock(dst[frames*r.Channels : want*r.Channels])
		} else {
			n, err = r.readFrames(dst[frames*r.Channels : want*r.Channels])
		}
		frames += n
		r.next += int64(n)
	}
	return frames, err
}

// readFrames reads as many frames as fit the buffer.
func (r *Reader) readFrames(dst []float32) (int, error) {
	n := min(len(dst)/r.Channels, len(r.buf)/r.Format.Block)
	b := r.buf[:n*r.Format.Block]
	if err := r.fill(b, r.data.at+r.next*int64(r.Format.Block)); err != nil {
		return 0, err
	}
	r.convert(dst, b)
	return n, nil
}

// readBlock reads from one block of ADPCM.
func (r *Reader) readBlock(dst []float32) (int, error) {
	block := r.next / r.blockFrames
	if block != r.block {
		r.block = -1
		if r.pcm == nil {
			r.pcm = make([]int16, r.blockFrames*int64(r.Channels))
		}
		at := block * int64(r.Format.Block)
		b := r.buf[:min(int64(r.Format.Block), r.data.size-at)]
		if err := r.fill(b, r.data.at+at); err != nil {
			return 0, err
		}
		var err error
		if r.Coding == IMAADPCM {
			_, err = adpcm.Decode(r.pcm, b, r.Channels)
		} else {
			_, err = adpcm.DecodeMS(r.pcm, b, r.Channels, r.coefficients)
		}
		if err != nil && !r.damage {
			r.damage = true
			r.warn("block at byte %d: %v", r.data.at+at, err)
		}
		r.block = block
	}
	first := r.next % r.blockFrames
	n := min(len(dst)/r.Channels, int(r.blockFrames-first))
	for i, v := range r.pcm[first*int64(r.Channels):][:n*r.Channels] {
		dst[i] = float32(v) * (1.0 / (1 << 15))
	}
	return n, nil
}

// memory returns a reader of chunks in memory, which are at base in the file.
func (r *Reader) memory(b []byte, base int64) *riff {
	return &riff{from: bytes.NewReader(b), order: r.order, base: base, size: int64(len(b)), end: int64(len(b)), warned: r.warned}
}
