package soundfile

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/media/codec/ogg"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
)

// chain is a sound in several parts that follow one another, as Ogg allows: internet radio and joined files. All of it has the
// rate and the channels of the first part.
type chain struct {
	f     *File
	parts []*File // that can be read
	links []link
	at    int          // the part that is read
	src   sound.Source // of that part; nil: it has not begun
}

// link is a part of the file.
type link struct {
	begin, end int64 // its bytes
	file       *File // nil: it cannot be read
}

// openChain opens the parts of an Ogg file that begin at these positions. What follows the last part that can be read is left
// out with a warning.
func (f *File) openChain(starts []int64) error {
	c := &chain{f: f}
	var parts []string // warnings
	for i, start := range starts {
		end := f.Size
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		if i == 0 {
			start = 0 // with what may be before it
		}
		p := &File{Container: Ogg, in: io.NewSectionReader(f.in, start, end-start), Size: end - start}
		err := p.openLink()
		switch {
		case err != nil && i == 0:
			return err
		case err == nil && i > 0 && p.Format != c.parts[0].Format && c.parts[0].Format.Channels > 2:
			err = fmt.Errorf("it has another number of channels or another rate: %w", ogg.ErrUnsupported)
		case err == nil && p.Opaque != nil && i > 0:
			err = p.Opaque
		}
		if err != nil {
			c.links = append(c.links, link{start, end, nil})
			parts = append(parts, fmt.Sprintf(
				"the sound continues at byte %d in another stream, which cannot be read (%v): it is left out", start, err))
			continue
		}
		c.links = append(c.links, link{start, end, p})
		c.parts = append(c.parts, p)
	}
	first := c.parts[0]
	*f = File{Container: Ogg, in: f.in, Size: f.Size, Codec: first.Codec, Format: first.Format, Opaque: first.Opaque,
		Tags: first.Tags, ogg: first.ogg}
	for _, p := range c.parts {
		if p.Format != f.Format && !f.Mixed {
			f.Mixed = true
			parts = append(parts, fmt.Sprintf(
				"after %d frames the sound has %s in place of %s: all of it gets the latter", f.Frames, shape(p.Format), shape(f.Format)))
		}
		f.Frames += sound.RatioOf(p.Format.Rate, f.Format.Rate).Frames(p.Frames)
	}
	f.chain, f.Warnings = c, parts
	f.rewind, f.read = c.rewind, c.read
	f.late = c.warnings
	return nil
}

func shape(f sound.Format) string { return fmt.Sprintf("%d Hz and %d channels", f.Rate, f.Channels) }

func (c *chain) warnings() (all []string) {
	for _, p := range c.parts {
		all = append(all, p.AllWarnings()...)
	}
	return slices.Compact(all)
}

func (c *chain) rewind() error {
	c.at, c.src = 0, nil
	return nil
}

func (c *chain) read(dst []float32) (int, error) {
	for c.at < len(c.parts) {
		if c.src == nil {
			if err := c.begin(); err != nil {
				return 0, err
			}
		}
		n, err := c.src.Read(dst)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, io.EOF):
			c.at, c.src = c.at+1, nil
		case err != nil:
			return 0, err
		}
	}
	return 0, io.EOF
}

// begin opens the part that is next, with the rate and channels of the first.
func (c *chain) begin() error {
	p := c.parts[c.at]
	src, err := p.Source()
	if err != nil {
		return err
	}
	if p.Format.Channels != c.f.Format.Channels {
		if c.f.Format.Channels == 1 {
			src = sound.Mono(src)
		} else {
			src = sound.Stereo(src)
		}
	}
	if p.Format.Rate != c.f.Format.Rate {
		if src, err = sound.Resample(src, sound.Conversion{Rate: c.f.Format.Rate}); err != nil {
			return err
		}
	}
	c.src = src
	return nil
}

// pass writes each part with other tags: those that notes replace are in all of them, since players read them with each part,
// but for loops and markers, which are in the first. A part that cannot be read stays as it is.
func (c *chain) pass(to io.Writer, n *Notes) error {
	for i, l := range c.links {
		p := l.file
		if p == nil {
			if _, err := io.Copy(to, io.NewSectionReader(c.f.in, l.begin, l.end-l.begin)); err != nil {
				return err
			}
			continue
		}
		var tags []tag
		for _, t := range n.tags(p.Codec == "opus") {
			if i == 0 || isGain(t.name) {
				tags = append(tags, t)
			}
		}
		if err := ogg.Rewrite(to, p.ogg, p.ogg.Serial, p.ogg.Vendor, p.comments(tags)); err != nil {
			return err
		}
	}
	return nil
}
