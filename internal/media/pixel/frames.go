package pixel

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"
	"time"

	"github.com/kiln-pipeline/kiln/internal/media/codec/apng"
	"github.com/kiln-pipeline/kiln/internal/media/codec/gif"
	"github.com/kiln-pipeline/kiln/internal/media/codec/input"
	fast "github.com/kiln-pipeline/kiln/internal/media/codec/png"
	"github.com/kiln-pipeline/kiln/internal/media/codec/psd"
	"github.com/kiln-pipeline/kiln/internal/media/codec/webp"
)

// Document is an image file with all its frames and layers. A plain image has one frame and no layers.
type Document struct {
	Format        string // as in [Sniff]
	Width, Height int
	Plays         int     // how often an animation plays; 0 means forever
	Layers        []Layer // from the bottom up
	Frames        []Frame // at least one
}

// Layer is a layer or a group of layers. It exists in all frames.
type Layer struct {
	Name    string
	Parent  int // index in Layers of the group that contains it; -1 for none
	Group   bool
	Visible bool
	Clipped bool   // drawn only where the layer below is
	Opacity byte   // 255 is opaque
	Blend   string // "normal", "multiply", ...: CSS names where CSS has the mode
}

// Frame is one frame of an animation.
type Frame struct {
	Picture  *Picture // all visible layers together: Width x Height
	Duration time.Duration
	Cels     []Cel // the content of the layers in this frame, in the order of the layers; empty without layers
}

// Cel is the content of one layer in one frame.
type Cel struct {
	Layer   int // index in Layers
	X, Y    int // position of its first pixel in the frame; it may extend beyond the edges
	Opacity byte
	Image   *Image
}

// Frames returns the number of frames of a GIF, PNG or WebP without decoding them. It returns 1 for all other images.
func Frames(name string, data []byte) int {
	switch Sniff(name, data) {
	case "gif":
		if f, err := gif.Parse(data); err == nil {
			return len(f.Frames)
		}
	case "png":
		return max(1, apng.Count(data))
	case "webp":
		if f, err := webp.Parse(data); err == nil {
			return max(1, len(f.Frames))
		}
	}
	return 1
}

// LayersIn returns the number of layers and groups that a Photoshop document states. It returns 0 for all other images.
func LayersIn(name string, data []byte) int {
	if Sniff(name, data) != "psd" {
		return 0
	}
	return psd.CountLayers(data)
}

// maxFrames is the limit for the frames of an animation, more than any real one has.
const maxFrames = 1 << 16

// DecodeDocument reads all frames and layers of an image. If there are several, they have 8 bits a channel. The limits
// apply to all of them together. The name is used only to recognize a TGA. Errors are an [*Error].
func DecodeDocument(name string, data []byte, lim Limits) (*Document, error) {
	f, err := open(name, data)
	if err != nil {
		return nil, err
	}
	c, err := f.size(data)
	if err != nil {
		return nil, err
	}
	n := Frames(name, data)
	if n > 1 && (n >= maxFrames || lim.under(c, 4*int64(n))) {
		return nil, &Error{Fault: TooLarge, Format: f.id, Width: c.Width, Height: c.Height, Limits: lim,
			Detail: fmt.Sprintf("%d frames of %d x %d pixels", n, c.Width, c.Height)}
	}
	d := &Document{Format: f.id, Width: c.Width, Height: c.Height}
	switch {
	case f.id == "gif" && n > 1:
		err = f.within(func() error { return d.gif(data, lim) })
	case f.id == "png" && n > 0 && apng.Count(data) > 0:
		err = f.within(func() error { return d.png(data, lim) })
	case f.id == "webp" && n > 1:
		err = f.within(func() error { return d.webp(data, lim) })
	default:
		err = d.still(name, data, lim)
		if err == nil && f.id == "psd" {
			err = f.within(func() error { return d.psd(data, lim) })
		}
	}
	if err != nil {
		return nil, err
	}
	d.colours(data)
	return d, nil
}

// within calls a decoder and converts its error to an [*Error].
func (f format) within(decode func() error) (err error) {
	defer f.recovered(&err)
	if err = decode(); err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return f.fault(err)
}

// still reads an image that has only one frame.
func (d *Document) still(name string, data []byte, lim Limits) error {
	p, err := DecodePicture(name, data, lim)
	if err != nil {
		return err
	}
	d.Width, d.Height = p.Size()
	d.Frames = []Frame{{Picture: p}}
	return nil
}

// colours sets the colour information of the file on the composed pictures.
func (d *Document) colours(data []byte) {
	m := metaOf(d.Format, data)
	for i := range d.Frames {
		if p := d.Frames[i].Picture; p.Space == "" && p.Gamma == 0 && d.Format != "gif" {
			p.Space, p.Gamma = m.colours()
		}
	}
}

// add appends the current canvas as a frame.
func (d *Document) add(canvas *Image, duration time.Duration) {
	copied := New(canvas.Width, canvas.Height)
	copy(copied.Pix, canvas.Pix)
	d.Frames = append(d.Frames, Frame{Picture: &Picture{Format: d.Format, Eight: copied}, Duration: duration})
}

func (d *Document) gif(data []byte, lim Limits) error {
	f, err := gif.Parse(data)
	if err != nil {
		return err
	}
	if f.End != nil {
		return f.End
	}
	if err := holdsGIFFrames(f.Frames); err != nil {
		return err
	}
	area := int64(0)
	for i := range f.Frames {
		area += int64(f.Frames[i].Width) * int64(f.Frames[i].Height)
	}
	if area > lim.MaxBytes {
		return fmt.Errorf("frames of %d pixels in all: %w", area, input.ErrTooLarge)
	}
	d.Plays = f.Plays
	return d.drawGIF(f)
}

// drawGIF draws the frames in order, by the GIF89a specification.
func (d *Document) drawGIF(f *gif.File) error {
	canvas, before := New(d.Width, d.Height), &Image{}
	damage := f.Flaw
	for i := range f.Frames {
		frame := &f.Frames[i]
		pix, strange, err := frame.Decode()
		if err != nil {
			return err
		}
		if strange && damage == "" {
			damage = "colours that are not in its palette are black"
		}
		if frame.Dispose == gif.Previous {
			before = &Image{canvas.Width, canvas.Height, bytes.Clone(canvas.Pix)}
		}
		at := image.Rect(frame.X, frame.Y, frame.X+frame.Width, frame.Y+frame.Height)
		canvas.draw(&Image{frame.Width, frame.Height, pix}, at, true)
		d.add(canvas, frame.Delay)
		switch frame.Dispose {
		case gif.Background:
			canvas.clear(at)
		case gif.Previous:
			copy(canvas.Pix, before.Pix)
		}
	}
	d.Frames[0].Picture.Damage = damage
	return nil
}

// png draws the frames in order, by the APNG part of the PNG specification.
func (d *Document) png(data []byte, lim Limits) error {
	fixed, damage := fast.Repair(data)
	a, err := apng.Read(fixed)
	if err != nil {
		return err
	}
	d.Plays = a.Plays
	canvas, before := New(d.Width, d.Height), New(d.Width, d.Height)
	for i := range a.Frames {
		f := &a.Frames[i]
		m, err := Decode("frame.png", f.PNG(), lim)
		if err != nil {
			return err
		}
		if f.Dispose == apng.Previous {
			copy(before.Pix, canvas.Pix)
		}
		at := image.Rect(f.X, f.Y, f.X+f.Width, f.Y+f.Height)
		canvas.draw(m, at, f.Blend == apng.Over)
		d.add(canvas, f.Delay)
		switch f.Dispose {
		case apng.Background:
			canvas.clear(at)
		case apng.Previous:
			copy(canvas.Pix, before.Pix)
		}
	}
	if len(d.Frames) > 0 {
		d.Frames[0].Picture.Damage = damage
	}
	return nil
}

// webp draws the frames in order, by RFC 9649. The background is transparent, as in libwebp, whatever the file says.
func (d *Document) webp(data []byte, lim Limits) error {
	f, err := webp.Parse(data)
	if err != nil {
		return err
	}
	if err := holdsFrames(f, f.Frames); err != nil {
		return err
	}
	d.Plays = f.Plays
	canvas := New(d.Width, d.Height)
	for i := range f.Frames {
		frame := &f.Frames[i]
		pix, err := frame.Decode()
		if err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		canvas.draw(&Image{frame.Width, frame.Height, pix}, areaOf(frame), frame.Over)
		d.add(canvas, frame.Delay)
		if frame.Clear {
			canvas.clear(areaOf(frame))
		}
	}
	return nil
}

// psd adds the layers. Layers that cannot be read are left out, because the composed picture is available.
func (d *Document) psd(data []byte, lim Limits) error {
	layers, err := psd.Layers(data, int(min(lim.MaxBytes/4, math.MaxInt)))
	if errors.Is(err, input.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, l := range layers {
		d.Layers = append(d.Layers, Layer{Name: l.Name, Parent: l.Parent, Group: l.Group, Visible: l.Visible, Clipped: l.Clipped,
			Opacity: l.Opacity, Blend: l.Blend})
		if !l.Group && l.Width > 0 && l.Height > 0 {
			d.Frames[0].Cels = append(d.Frames[0].Cels, Cel{Layer: i, X: l.X, Y: l.Y, Opacity: 255, Image: &Image{l.Width, l.Height, l.Pix}})
		}
	}
	return nil
}

// draw puts an image on m: over what is there if over is set, else in its place. Parts outside of m are left out.
func (m *Image) draw(from *Image, at image.Rectangle, over bool) {
	in := at.Intersect(image.Rect(0, 0, m.Width, m.Height))
	for y := in.Min.Y; y < in.Max.Y; y++ {
		dst := m.Pix[4*(y*m.Width+in.Min.X):][:4*in.Dx()]
		src := from.Pix[4*((y-at.Min.Y)*from.Width+in.Min.X-at.Min.X):][:4*in.Dx()]
		if !over {
			copy(dst, src)
			continue
		}
		for i := 0; i < len(dst); i += 4 {
			blendOver(dst[i:i+4:i+4], src[i:i+4:i+4])
		}
	}
}

// blendOver blends a pixel over another one, with straight alpha and integers, as in the sample code of the APNG
// specification.
func blendOver(dst, src []byte) {
	switch a := uint32(src[3]); {
	case a == 0:
	case a == 255 || dst[3] == 0:
		copy(dst, src)
	default:
		u := a * 255
		v := (255 - a) * uint32(dst[3])
		all := u + v
		for c := range 3 {
			dst[c] = byte((uint32(src[c])*u + uint32(dst[c])*v) / all)
		}
		dst[3] = byte(all / 255)
	}
}

// clear fills an area with transparent black.
func (m *Image) clear(at image.Rectangle) {
	in := at.Intersect(image.Rect(0, 0, m.Width, m.Height))
	for y := in.Min.Y; y < in.Max.Y; y++ {
		clear(m.Pix[4*(y*m.Width+in.Min.X):][:4*in.Dx()])
	}
}
