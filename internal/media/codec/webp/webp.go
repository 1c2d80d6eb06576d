// Package webp reads WebP images: lossy and lossless, with alpha, and animations.
//
// It follows RFC 9649 for the container and for alpha. It reads lossless images itself: golang.org/x/image/vp8l gives
// two symbols of a code the wrong bits if the greater one comes first. Package vp8 of golang.org/x/image decodes the luma and
// chroma of lossy images. Colours are made of these as in libwebp, to the last bit: by ITU-R BT.601 with the range of video (black
// is 16, white 235), from chroma that is interpolated between its samples.
//
//	 0  "RIFF", u32 size, "WEBP"
//	12  chunks: four letters, u32 size, bytes, padded to an even size
//
// An image is "VP8 ", or "VP8L". With "VP8X" (u8 flags, 3 unused bytes, u24 width-1, u24 height-1) there may be "ALPH" before
// "VP8 ". An animation has "ANIM" (u32 background, u16 plays), and "ANMF" for each frame: u24 x/2, y/2, width-1, height-1,
// milliseconds, u8 flags, and the chunks of its image.
//
// Memory is allocated only by [Frame.Decode], for the pixels that the caller has seen in [Frame].
package webp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"time"

	"golang.org/x/image/vp8"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// File is a parsed file.
type File struct {
	Width, Height int
	Plays         int     // of an animation; 0: for ever
	Frames        []Frame // one if it is no animation; none if the file ends before it
}

// Frame is an image, or one frame of an animation.
type Frame struct {
	X, Y, Width, Height int
	Delay               time.Duration
	Over                bool // it is blended over what is there; otherwise it replaces it
	Clear               bool // its area becomes transparent black after it was shown

	Lossy bool
	Size  int // of its data without alpha, in bytes

	alpha []byte // the body of ALPH, or nil
	data  []byte
}

// Flags of VP8X and of ANMF.
const (
	animation = 2
	dispose   = 1
	replace   = 2
)

// losslessHead is the size of the head of a lossless image.
const losslessHead = 5

// maxFrames is far above the frames of any real animation; each frame takes at least 32 bytes.
const maxFrames = 1 << 16

// Parse reads everything but pixels. What follows the image of a file that is no animation is ignored.
func Parse(data []byte) (*File, error) {
	if len(data) < 12 {
		return nil, input.ErrTruncated
	}
	if string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return nil, fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	f := &File{}
	var flags byte
	var still Frame
	for rest := data[12:]; len(rest) >= 8; {
		name, body, whole := chunk(&rest)
		switch name {
		case "VP8X":
			if len(body) < 10 {
				return nil, input.ErrTruncated
			}
			flags, f.Width, f.Height = body[0], u24(body[4:])+1, u24(body[7:])+1
			if err := input.CheckSize(f.Width, f.Height); err != nil {
				return nil, err
			}
		case "ANIM":
			if len(body) >= 6 {
				f.Plays = int(binary.LittleEndian.Uint16(body[4:]))
			}
		case "ANMF":
			if flags&animation != 0 && len(f.Frames) < maxFrames {
				frame, err := f.frame(body, whole)
				if err != nil {
					return nil, fmt.Errorf("frame %d: %w", len(f.Frames), err)
				}
				f.Frames = append(f.Frames, frame)
			}
		default:
			if found, err := still.take(name, body); err != nil || found {
				return f.still(still, err)
			}
		}
	}
	if f.Width == 0 {
		return nil, input.ErrTruncated
	}
	return f, nil
}

// chunk cuts the next chunk off. whole is false if its end is missing.
func chunk(rest *[]byte) (name string, body []byte, whole bool) {
	b := *rest
	size := uint64(binary.LittleEndian.Uint32(b[4:]))
	there := min(size, uint64(len(b)-8))
	*rest = b[min(8+there+size&1, uint64(len(b))):]
	return string(b[:4]), b[8 : 8+there], there == size
}

func u24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// still makes a file of an image that is no animation. An image of another size than the canvas is refused, as in libwebp.
func (f *File) still(frame Frame, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	if f.Width == 0 {
		f.Width, f.Height = frame.Width, frame.Height
	}
	if f.Width != frame.Width || f.Height != frame.Height {
		return nil, fmt.Errorf("an image of %d x %d on a canvas of %d x %d: %w", frame.Width, frame.Height, f.Width, f.Height, input.ErrDamaged)
	}
	f.Frames = []Frame{frame}
	return f, nil
}

// frame reads the body of an ANMF.
func (f *File) frame(b []byte, whole bool) (Frame, error) {
	if len(b) < 16 || !whole {
		return Frame{}, input.ErrTruncated
	}
	frame := Frame{X: 2 * u24(b), Y: 2 * u24(b[3:]), Delay: time.Duration(u24(b[12:])) * time.Millisecond,
		Over: b[15]&replace == 0, Clear: b[15]&dispose != 0}
	width, height := u24(b[6:])+1, u24(b[9:])+1
	for rest := b[16:]; len(rest) >= 8; {
		name, body, _ := chunk(&rest)
		found, err := frame.take(name, body)
		if err != nil {
			return Frame{}, err
		}
		if !found {
			continue
		}
		if frame.Width != width || frame.Height != height || frame.X+width > f.Width || frame.Y+height > f.Height {
			return Frame{}, fmt.Errorf("an image of %d x %d, where %d x %d at %d, %d belong: %w",
				frame.Width, frame.Height, width, height, frame.X, frame.Y, input.ErrDamaged)
		}
		return frame, nil
	}
	return Frame{}, input.ErrTruncated
}

// take reads a chunk that belongs to an image. found is true for the one with the pixels, the last.
//
//	VP8   u24 of which bit 0 is 0 for a key frame, 9d 01 2a, u16 width and height, of which 14 bits count
//	VP8L  2f, 14 bits width-1, 14 bits height-1, 1 bit alpha, 3 bits version
func (f *Frame) take(name string, body []byte) (found bool, err error) {
	switch name {
	case "ALPH":
		f.alpha = body
		return false, nil
	case "VP8 ":
		if len(body) < 10 {
			return false, input.ErrTruncated
		}
		if body[0]&1 != 0 || string(body[3:6]) != "\x9d\x01\x2a" {
			return false, fmt.Errorf("the head of the lossy image: %w", input.ErrDamaged)
		}
		f.Lossy = true
		f.Width, f.Height = int(binary.LittleEndian.Uint16(body[6:]))&0x3fff, int(binary.LittleEndian.Uint16(body[8:]))&0x3fff
	case "VP8L":
		if len(body) < losslessHead {
			return false, input.ErrTruncated
		}
		v := binary.LittleEndian.Uint32(body[1:])
		if body[0] != 0x2f || v>>29 != 0 {
			return false, fmt.Errorf("the head of the lossless image: %w", input.ErrDamaged)
		}
		f.Width, f.Height = int(v&0x3fff)+1, int(v>>14&0x3fff)+1
	default:
		return false, nil
	}
	f.data, f.Size = body, len(body)
	return true, input.CheckSize(f.Width, f.Height)
}

// Decode returns the pixels as RGBA, 8 bits a channel, straight alpha, rows top down, 4*Width*Height bytes.
func (f *Frame) Decode() ([]byte, error) {
	if !f.Lossy {
		pix, err := lossless(f.data[losslessHead:], f.Width, f.Height)
		if err != nil {
			return nil, err
		}
		out := make([]byte, 4*len(pix))
		for i, v := range pix {
			binary.BigEndian.PutUint32(out[4*i:], v<<8|v>>24)
		}
		return out, nil
	}
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(f.data), len(f.data))
	if _, err := d.DecodeFrameHeader(); err != nil {
		return nil, fault(err)
	}
	m, err := d.DecodeFrame()
	if err != nil {
		return nil, fault(err)
	}
	if err := f.fits(m.Rect, m.SubsampleRatio == image.YCbCrSubsampleRatio420); err != nil {
		return nil, err
	}
	pix := rgba(m)
	if f.alpha == nil {
		return pix, nil
	}
	alpha, err := f.plane()
	if err != nil {
		return nil, fmt.Errorf("alpha: %w", err)
	}
	for i, a := range alpha {
		pix[4*i+3] = a
	}
	return pix, nil
}

// fits compares a decoded image with the head of the file.
func (f *Frame) fits(r image.Rectangle, ok bool) error {
	if !ok || r != image.Rect(0, 0, f.Width, f.Height) {
		return fmt.Errorf("an image of %d x %d instead of %d x %d: %w", r.Dx(), r.Dy(), f.Width, f.Height, input.ErrDamaged)
	}
	return nil
}

// fault gives an error of a decoder its kind.
func fault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return input.ErrTruncated
	}
	return fmt.Errorf("%v: %w", err, input.ErrDamaged)
}

// plane decodes the body of ALPH: u8 of which bits 0 and 1 are the compression, and bits 2 and 3 the filter; then the
// values, or a lossless image without its head, whose green they are.
func (f *Frame) plane() ([]byte, error) {
	if len(f.alpha) < 1 {
		return nil, input.ErrTruncated
	}
	flags, body := f.alpha[0], f.alpha[1:]
	n := f.Width * f.Height
	alpha := make([]byte, n)
	switch flags & 3 {
	case 0:
		if len(body) < n {
			return nil, input.ErrTruncated
		}
		copy(alpha, body)
	case 1:
		pix, err := lossless(body, f.Width, f.Height)
		if err != nil {
			return nil, err
		}
		for i := range alpha {
			alpha[i] = byte(pix[i] >> 8)
		}
	default:
		return nil, fmt.Errorf("compression %d: %w", flags&3, input.ErrDamaged)
	}
	unfilter(alpha, f.Width, flags>>2&3)
	return alpha, nil
}

// Filters of alpha: what is added to a value.
const (
	leftward = 1 // the value to the left
	upward   = 2 // the one above
	gradient = 3 // both, less the one above the left, within 0 and 255
)

// unfilter reverses a filter. The first row has only values to the left, and the first column only values above.
func unfilter(alpha []byte, width int, filter byte) {
	if filter == 0 {
		return
	}
	for i := 1; i < min(width, len(alpha)); i++ {
		alpha[i] += alpha[i-1]
	}
	for y := width; y < len(alpha); y += width {
		above, row := alpha[y-width:y], alpha[y:y+width]
		row[0] += above[0]
		for x := 1; x < width; x++ {
			switch filter {
			case leftward:
				row[x] += row[x-1]
			case upward:
				row[x] += above[x]
			case gradient:
				row[x] += byte(min(max(0, int(row[x-1])+int(above[x])-int(above[x-1])), 255))
			}
		}
	}
}
