// Package gif reads GIF images and animations.
//
// It follows "Graphics Interchange Format, Version 89a" (1990), and like other readers it passes over faults of writers: data
// after the last pixel of a frame, extensions that are unknown or have another size, zeros between blocks, a missing trailer.
// A frame that reaches beyond the screen is cut there; if it is the first, the screen is enlarged instead, as in browsers.
//
//	0  "GIF87a" or "GIF89a"
//	6  u16 width, height of the screen; u8 flags, background, aspect; then the palette, if there is one
//	   blocks: "!", u8 kind, parts: an extension
//	           ",", u16 x, y, width, height, u8 flags, a palette of its own, u8 bits, parts: a frame
//	           ";"  the trailer
//
// Parts are a length byte and as many bytes, up to an empty one. Those of a frame are packed by LZW. Memory is allocated only by
// [Frame.Decode], for the pixels that the caller has seen in [Frame].
package gif

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
)

// File is a parsed file.
type File struct {
	Width, Height int // of the screen
	Plays         int // 0: for ever
	Frames        []Frame
	Flaw          string // what was wrong with the file and could be passed over, or ""
	End           error  // why blocks after the last frame could not be read, or nil
}

// Frame is one image of the file.
type Frame struct {
	X, Y, Width, Height int
	Delay               time.Duration
	Dispose             byte
	Size                int // of its packed data in bytes

	palette     []byte
	transparent int // index of a colour, or -1
	interlaced  bool
	bits        byte
	parts       []byte // with their lengths
}

// What happens to a frame's area before the next frame is drawn. Other values mean Keep.
const (
	Keep       = 1
	Background = 2 // it becomes transparent
	Previous   = 3 // it is restored to its content before the frame
)

// maxFrames is far above the frames of any real animation; each frame takes at least 12 bytes.
const maxFrames = 1 << 16

const (
	hasPalette = 0x80
	interlace  = 0x40
	screenSize = 13
	frameSize  = 10
)

// Parse reads everything but pixels. It returns an error if there is no frame.
func Parse(data []byte) (*File, error) {
	p := parser{rest: data}
	if err := p.screen(); err != nil {
		return nil, err
	}
	for len(p.f.Frames) < maxFrames {
		end, err := p.block()
		if err != nil && len(p.f.Frames) == 0 {
			return nil, err
		}
		if err != nil || end {
			p.f.End = err
			break
		}
	}
	if len(p.f.Frames) == 0 {
		return nil, fmt.Errorf("no frame: %w", input.ErrDamaged)
	}
	first := p.f.Frames[0]
	if first.X+first.Width > p.f.Width || first.Y+first.Height > p.f.Height {
		p.f.Flaw = fmt.Sprintf("its frame of %d x %d at %d, %d reaches beyond the screen of %d x %d, which was enlarged",
			first.Width, first.Height, first.X, first.Y, p.f.Width, p.f.Height)
		p.f.Width, p.f.Height = max(p.f.Width, first.X+first.Width), max(p.f.Height, first.Y+first.Height)
	}
	for i, f := range p.f.Frames {
		if p.f.Flaw == "" && (f.X+f.Width > p.f.Width || f.Y+f.Height > p.f.Height) {
			p.f.Flaw = fmt.Sprintf("frame %d reaches beyond the screen, and was cut", i+1)
		}
	}
	return &p.f, nil
}

type parser struct {
	f       File
	rest    []byte
	palette []byte

	// Of the graphic control extension before a frame.
	delay       time.Duration
	dispose     byte
	transparent int
}

func (p *parser) take(n int) ([]byte, error) {
	if len(p.rest) < n {
		p.rest = nil
		return nil, input.ErrTruncated
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b, nil
}

// colours reads the palette that flags say there is.
func (p *parser) colours(flags byte) ([]byte, error) {
	if flags&hasPalette == 0 {
		return nil, nil
	}
	return p.take(3 << (flags&7 + 1))
}

func (p *parser) screen() error {
	b, err := p.take(screenSize)
	if err != nil {
		return err
	}
	if s := string(b[:6]); s != "GIF87a" && s != "GIF89a" {
		return fmt.Errorf("no signature: %w", input.ErrDamaged)
	}
	p.f.Width, p.f.Height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	p.f.Plays, p.transparent = 1, -1
	p.palette, err = p.colours(b[10])
	return err
}

// block reads the next block.
func (p *parser) block() (end bool, err error) {
	for len(p.rest) > 0 && p.rest[0] == 0 {
		p.rest = p.rest[1:]
	}
	if len(p.rest) == 0 {
		return true, nil
	}
	kind := p.rest[0]
	p.rest = p.rest[1:]
	switch kind {
	case ';':
		return true, nil
	case '!':
		return false, p.extension()
	case ',':
		return false, p.frame()
	}
	return true, fmt.Errorf("a block of kind %#x: %w", kind, input.ErrDamaged)
}

// parts returns the parts that follow, with their lengths, without the empty one.
func (p *parser) parts() ([]byte, error) {
	from, n := p.rest, 0
	for n < len(from) && from[n] != 0 {
		n += 1 + int(from[n])
	}
	if n >= len(from) {
		p.rest = nil
		return from, input.ErrTruncated
	}
	p.rest = from[n+1:]
	return from[:n], nil
}

// extension reads the graphic control extension: u8 flags, u16 hundredths of a second, u8 transparent colour; and how often
// an animation is played: u8 1, u16 number, after a part with the name of the application.
func (p *parser) extension() error {
	kind, err := p.take(1)
	if err != nil {
		return err
	}
	parts, err := p.parts()
	if err != nil {
		return err
	}
	const control, application = 0xf9, 0xff
	switch {
	case kind[0] == control && len(parts) >= 5 && parts[0] >= 4:
		flags := parts[1]
		p.dispose, p.transparent = flags>>2&7, -1
		p.delay = time.Duration(binary.LittleEndian.Uint16(parts[2:])) * 10 * time.Millisecond
		if flags&1 != 0 {
			p.transparent = int(parts[4])
		}
	case kind[0] == application && bytes.HasPrefix(parts, []byte("\x0bNETSCAPE2.0")) && len(parts) >= 16 && parts[12] >= 3 && parts[13] == 1:
		if n := int(binary.LittleEndian.Uint16(parts[14:])); n > 0 {
			p.f.Plays = n + 1
		} else {
			p.f.Plays = 0
		}
	}
	return nil
}

func (p *parser) frame() error {
	b, err := p.take(frameSize - 1)
	if err != nil {
		return err
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	f := Frame{X: u16(0), Y: u16(2), Width: u16(4), Height: u16(6), Delay: p.delay, Dispose: p.dispose,
		transparent: p.transparent, interlaced: b[8]&interlace != 0}
	p.delay, p.dispose, p.transparent = 0, 0, -1
	if f.palette, err = p.colours(b[8]); err != nil {
		return err
	}
	if f.palette == nil {
		f.palette = p.palette
	}
	bits, err := p.take(1)
	if err != nil {
		return err
	}
	// A frame whose end is missing is one: decoding it tells.
	f.bits = bits[0]
	f.parts, _ = p.parts()
	f.Size = len(f.parts)
	switch {
	case f.Width == 0 || f.Height == 0:
		return fmt.Errorf("a frame of %d x %d: %w", f.Width, f.Height, input.ErrDamaged)
	case f.palette == nil:
		return fmt.Errorf("no palette: %w", input.ErrDamaged)
	case f.bits < 1 || f.bits > 8:
		return fmt.Errorf("codes of %d bits: %w", f.bits, input.ErrDamaged)
	}
	p.f.Frames = append(p.f.Frames, f)
	return nil
}

// joined returns the bytes of the parts.
func (f *Frame) joined() []byte {
	out := make([]byte, 0, len(f.parts))
	for rest := f.parts; len(rest) > 0; {
		n := min(1+int(rest[0]), len(rest))
		out = append(out, rest[1:n]...)
		rest = rest[n:]
	}
	return out
}

// Decode returns the pixels as RGBA, 8 bits a channel, rows top down, 4*Width*Height bytes. The transparent colour is
// transparent black. strange reports whether there are colours beyond the palette, which become opaque black.
func (f *Frame) Decode() (pix []byte, strange bool, err error) {
	indices := make([]byte, f.Width*f.Height)
	if err := input.LZW(indices, f.joined(), int(f.bits), false); err != nil {
		return nil, false, err
	}
	var table [256][4]byte
	for i := range table {
		if table[i][3] = 255; 3*i < len(f.palette) {
			copy(table[i][:3], f.palette[3*i:])
		}
		if i == f.transparent {
			table[i] = [4]byte{}
		}
	}
	pix = make([]byte, 4*f.Width*f.Height)
	for y := range f.rows() {
		dst := pix[4*f.Width*y:]
		row := indices[:f.Width]
		indices = indices[f.Width:]
		for x, v := range row {
			*(*[4]byte)(dst[4*x:]) = table[v]
			strange = strange || 3*int(v) >= len(f.palette) && int(v) != f.transparent
		}
	}
	return pix, strange, nil
}

// rows yields the rows in the order of the file: interlaced are every eighth, those between these, and so on.
func (f *Frame) rows() func(yield func(y int) bool) {
	passes := [][2]int{{0, 1}}
	if f.interlaced {
		passes = [][2]int{{0, 8}, {4, 8}, {2, 4}, {1, 2}}
	}
	return func(yield func(y int) bool) {
		for _, p := range passes {
			for y := p[0]; y < f.Height; y += p[1] {
				if !yield(y) {
					return
				}
			}
		}
	}
}
