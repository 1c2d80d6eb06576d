package pixel

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/media/codec/gif"
	fast "github.com/kiln-pipeline/kiln/internal/media/codec/png"
	"github.com/kiln-pipeline/kiln/internal/media/codec/webp"
)

// The decoders of the standard library and golang.org/x/image allocate memory for a picture before they read what
// follows its header. If a file claims far more than its size suggests, its data is therefore checked first, and
// impossible claims are refused at no cost. Kiln's own decoders do this themselves.

// dense is the number of bytes of memory for each byte of a file up to which no check is made. Only files with large
// areas of one colour and files with false claims exceed it.
const dense = 64

// flat is the number of pixels up to which a picture of one colour is accepted, in formats where such pixels take no
// bytes. It is 64 MiB of memory.
const flat = 1 << 24

// atMost returns a check for formats where a byte holds at most pixelsPerByte pixels.
func atMost(pixelsPerByte int64) func([]byte, Config) error {
	return func(data []byte, c Config) error {
		return fits(c, int64(c.Width)*int64(c.Height)/pixelsPerByte, int64(len(data)))
	}
}

// fits returns an error if there are fewer bytes than needed.
func fits(c Config, needed, there int64) error {
	if needed <= there {
		return nil
	}
	return &Error{Fault: Truncated, Format: c.Format, Detail: fmt.Sprintf("%d bytes cannot hold %d x %d pixels", there, c.Width, c.Height)}
}

// holdsPNG inflates as many bytes as the pixels need, without keeping them. Depths are 1 to 16 bits; there are 1 to 4
// channels.
func holdsPNG(data []byte, c Config) error {
	// Deflate expands a byte to at most 1032 bytes, which hold at most 8 pixels each.
	if err := atMost(1032*8)(data, c); err != nil {
		return err
	}
	channels := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[data[25]]
	return fast.Holds(data, int64(c.Width)*int64(c.Height)*channels*int64(data[24])/8)
}

// holdsGIF checks the first frame, which may be smaller than the screen. An LZW code of 12 bits stands for at most 4096
// pixels. A screen of more than flat pixels has the same limit, because only the frame fills it.
func holdsGIF(data []byte, c Config) error {
	f, err := gif.Parse(data)
	if err != nil {
		return err
	}
	if n := int64(c.Width) * int64(c.Height); n > flat {
		if err := fits(c, n*12/8/4096, int64(len(data))); err != nil {
			return err
		}
	}
	return holdsGIFFrames(f.Frames[:1])
}

func holdsGIFFrames(frames []gif.Frame) error {
	for i := range frames {
		f := &frames[i]
		n := int64(f.Width) * int64(f.Height)
		if err := fits(Config{Width: f.Width, Height: f.Height, Format: "gif"}, n*12/8/4096, int64(f.Size)); err != nil {
			return err
		}
	}
	return nil
}

// holdsWebP uses these limits. In lossy pictures the mode of 16 x 16 pixels has fixed probabilities and takes at least
// two bits (RFC 6386, section 11.2). In lossless ones a copy takes at least 11 bits for 4096 places (RFC 9649, section
// 5.2.2) of at most 8 pixels each, and only areas of one colour take nothing; 65536 pixels a byte is more than any
// picture has that is not flat. The canvas of an animation has the same limit, because its frames may be smaller.
func holdsWebP(data []byte, c Config) error {
	f, err := webp.Parse(data)
	if err != nil {
		return err
	}
	n := int64(c.Width) * int64(c.Height)
	if len(f.Frames) == 0 {
		return fits(c, n, 0)
	}
	return holdsFrames(f, f.Frames[:1])
}

func holdsFrames(f *webp.File, frames []webp.Frame) error {
	c := Config{Width: f.Width, Height: f.Height, Format: "webp"}
	var there, area int64
	for i := range frames {
		frame := &frames[i]
		n := int64(frame.Width) * int64(frame.Height)
		there += int64(frame.Size)
		area = max(area, n)
		most := int64(1 << 16)
		if frame.Lossy {
			most = 4 * 16 * 16
		} else if n <= flat {
			continue
		}
		if err := fits(Config{Width: frame.Width, Height: frame.Height, Format: "webp"}, n/most, int64(frame.Size)); err != nil {
			return err
		}
	}
	if n := int64(c.Width) * int64(c.Height); n > flat && area < n {
		return fits(c, n>>16, there)
	}
	return nil
}
