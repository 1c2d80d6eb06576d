// Package apng splits an animated PNG into its frames. Each frame becomes a PNG file that any decoder can read.
//
// It follows "Portable Network Graphics (PNG) Specification (Third Edition)" of the W3C, 11.3.6. A PNG is a sequence of
// chunks: u32 size, four letters, bytes, u32 CRC of letters and bytes; all numbers are big-endian. An animation adds
//
//	acTL  before IDAT: u32 frames, u32 plays (0: for ever)
//	fcTL  before each frame: u32 sequence, u32 width, height, x, y, u16 delay, u16 fractions per second (0: 100), u8 dispose, u8 blend
//	fdAT  u32 sequence, then the same data as IDAT
//
// The image in IDAT is the first frame if an fcTL precedes it. Otherwise it is only for readers that do not support
// animations. Sequence numbers count up from 0. Memory is never allocated from a number in the file: a frame's bytes are
// slices of the data.
package apng

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

const signature = "\x89PNG\r\n\x1a\n"

// What happens to a frame's area before the next frame is drawn.
const (
	Keep       = iota // it is kept
	Background        // it becomes transparent black
	Previous          // it is restored to its content before the frame
)

// How a frame is drawn.
const (
	Source = iota // it replaces the pixels of its area
	Over          // it is blended over them
)

// Animation is a decoded file.
type Animation struct {
	Width, Height int
	Plays         int // 0: for ever
	Frames        []Frame
}

// Frame is one image of an animation.
type Frame struct {
	X, Y, Width, Height int
	Delay               time.Duration
	Dispose, Blend      byte

	shared, data [][]byte // chunks: complete ones that all frames share, such as the palette; the bodies of the frame's own IDAT
	head         []byte   // body of IHDR
}

// Read reads an animation. It returns nil if the file is a PNG without one. Errors wrap those of package input.
func Read(data []byte) (*Animation, error) {
	if len(data) < 8 || string(data[:8]) != signature {
		return nil, fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	r := reader{rest: data[8:]}
	for {
		end, err := r.chunk()
		if err != nil {
			return nil, err
		}
		if end {
			break
		}
	}
	if r.a == nil {
		return nil, nil
	}
	if len(r.a.Frames) != r.frames {
		return nil, fmt.Errorf("%d frames of %d: %w", len(r.a.Frames), r.frames, input.ErrTruncated)
	}
	for i, f := range r.a.Frames {
		if len(f.data) == 0 {
			return nil, fmt.Errorf("frame %d has no picture: %w", i, input.ErrDamaged)
		}
	}
	return r.a, nil
}

// Count returns the number of frames in the header of a PNG, or 0 if it is not animated.
func Count(data []byte) int {
	if len(data) < 8 || string(data[:8]) != signature {
		return 0
	}
	for b := data[8:]; len(b) >= 12; {
		size := uint64(binary.BigEndian.Uint32(b))
		if size > uint64(len(b)-12) || string(b[4:8]) == "IDAT" {
			return 0
		}
		if string(b[4:8]) == "acTL" && size == 8 {
			return int(min(binary.BigEndian.Uint32(b[8:]), maxFrames+1))
		}
		b = b[12+size:]
	}
	return 0
}

// maxFrames is far above the frames of any real animation; each frame takes at least 38 bytes.
const maxFrames = 1 << 16

type reader struct {
	a      *Animation
	rest   []byte
	head   []byte
	shared [][]byte
	frames int // as acTL gives them
	next   uint32
	idat   bool
}

// chunk reads the next chunk.
func (r *reader) chunk() (end bool, err error) {
	if len(r.rest) < 12 {
		return false, input.ErrTruncated
	}
	size := uint64(binary.BigEndian.Uint32(r.rest))
	if size > uint64(len(r.rest)-12) {
		return false, input.ErrTruncated
	}
	whole, kind, body := r.rest[:12+size], string(r.rest[4:8]), r.rest[8:8+size]
	r.rest = r.rest[12+size:]
	if crc32.ChecksumIEEE(whole[4:8+size]) != binary.BigEndian.Uint32(whole[8+size:]) && kind != "IDAT" {
		return false, fmt.Errorf("checksum of %q: %w", kind, input.ErrDamaged)
	}
	switch {
	case r.head == nil && (kind != "IHDR" || size != 13):
		return false, fmt.Errorf("no IHDR: %w", input.ErrDamaged)
	case kind == "IHDR":
		r.head = body
	case kind == "IEND":
		return true, nil
	case kind == "acTL":
		return false, r.begin(body)
	case kind == "fcTL" && r.a != nil:
		return false, r.frame(body)
	case kind == "IDAT":
		r.idat = true
		if r.a != nil && len(r.a.Frames) == 1 {
			r.a.Frames[0].data = append(r.a.Frames[0].data, body)
		}
	case kind == "fdAT" && r.a != nil:
		return false, r.data(body)
	case !r.idat && (kind == "PLTE" || kind == "tRNS") && size <= 768 && len(r.shared) < 2: // what pixels depend on
		r.shared = append(r.shared, whole)
	}
	return false, nil
}

func (r *reader) begin(b []byte) error {
	if r.idat || r.a != nil { // ignored after the image
		return nil
	}
	if len(b) != 8 {
		return fmt.Errorf("acTL of %d bytes: %w", len(b), input.ErrDamaged)
	}
	frames, plays := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if frames == 0 || plays > 1<<31-1 {
		return fmt.Errorf("%d frames, played %d times: %w", frames, plays, input.ErrDamaged)
	}
	if frames > maxFrames {
		return fmt.Errorf("%d frames: %w", frames, input.ErrTooLarge)
	}
	r.frames = int(frames)
	r.a = &Animation{Width: int(binary.BigEndian.Uint32(r.head)), Height: int(binary.BigEndian.Uint32(r.head[4:])), Plays: int(plays)}
	return input.CheckSize(r.a.Width, r.a.Height)
}

// sequence checks the sequence number at the start of a chunk.
func (r *reader) sequence(b []byte) error {
	if n := binary.BigEndian.Uint32(b); n != r.next {
		return fmt.Errorf("chunk %d of the animation is where chunk %d belongs: %w", n, r.next, input.ErrDamaged)
	}
	r.next++
	return nil
}

func (r *reader) frame(b []byte) error {
	if len(b) != 26 {
		return fmt.Errorf("fcTL of %d bytes: %w", len(b), input.ErrDamaged)
	}
	if err := r.sequence(b); err != nil {
		return err
	}
	n := len(r.a.Frames)
	if n == r.frames {
		return fmt.Errorf("more than %d frames: %w", n, input.ErrDamaged)
	}
	u32 := func(i int) int { return int(binary.BigEndian.Uint32(b[i:])) }
	f := Frame{Width: u32(4), Height: u32(8), X: u32(12), Y: u32(16), Dispose: b[24], Blend: b[25], head: r.head, shared: r.shared}
	if err := input.CheckSize(f.Width, f.Height); err != nil {
		return fmt.Errorf("frame %d: %w", n, err)
	}
	if f.X > r.a.Width-f.Width || f.Y > r.a.Height-f.Height || f.Dispose > Previous || f.Blend > Over {
		return fmt.Errorf("frame %d is %d x %d at %d,%d, dispose %d, blend %d: %w",
			n, f.Width, f.Height, f.X, f.Y, f.Dispose, f.Blend, input.ErrDamaged)
	}
	if !r.idat && (n > 0 || f.Width != r.a.Width || f.Height != r.a.Height) { // for the image in IDAT
		return fmt.Errorf("frame %d is not the whole picture: %w", n, input.ErrDamaged)
	}
	part := time.Duration(binary.BigEndian.Uint16(b[22:]))
	if part == 0 {
		part = 100
	}
	f.Delay = time.Duration(binary.BigEndian.Uint16(b[20:])) * time.Second / part
	r.a.Frames = append(r.a.Frames, f)
	return nil
}

func (r *reader) data(b []byte) error {
	n := len(r.a.Frames)
	if len(b) < 4 || !r.idat || n == 0 {
		return fmt.Errorf("fdAT where it does not belong: %w", input.ErrDamaged)
	}
	if err := r.sequence(b); err != nil {
		return err
	}
	r.a.Frames[n-1].data = append(r.a.Frames[n-1].data, b[4:])
	return nil
}

// PNG returns the frame as a PNG file, with its own size and pixels, and the shared palette.
func (f *Frame) PNG() []byte {
	head := slices.Clone(f.head)
	binary.BigEndian.PutUint32(head, uint32(f.Width))
	binary.BigEndian.PutUint32(head[4:], uint32(f.Height))
	b := appendChunk([]byte(signature), "IHDR", head)
	for _, c := range f.shared {
		b = append(b, c...)
	}
	for _, d := range f.data {
		b = appendChunk(b, "IDAT", d)
	}
	return appendChunk(b, "IEND", nil)
}

func appendChunk(b []byte, kind string, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	at := len(b)
	b = append(append(b, kind...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[at:]))
}
