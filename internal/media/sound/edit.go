package sound

import (
	"fmt"
	"io"
	"math"
)

// Sounding reads a source to its end and returns the range that is not silent: the first frame in which a sample of any
// channel is louder than a threshold in dBFS, and the frame after the last such frame. The range is extended by margin
// frames on each side, as far as there are frames. For a silent source both are 0. A sample that is not a finite number
// counts as silent.
//
// It cuts nothing; see [Cut]. The margin keeps the soft begin of a sound and the end of its reverberation.
func Sounding(src Source, threshold float64, margin int64) (begin, end int64, err error) {
	least := float32(Amplitude(threshold))
	ch := src.Format().Channels
	first, last, at := int64(-1), int64(-1), int64(0)
	err = each(src, func(samples []float32) {
		for i, v := range samples {
			if v = magnitude(v); v > least && v <= math.MaxFloat32 {
				last = at + int64(i/ch)
				if first < 0 {
					first = last
				}
			}
		}
		at += int64(len(samples) / ch)
	})
	if err != nil || first < 0 {
		return 0, 0, err
	}
	margin = max(0, margin)
	return max(0, first-margin), last + 1 + min(margin, at-last-1), nil
}

// Cut returns the part of a sound from frame begin to before frame end, or to its end if that is earlier.
func Cut(src Source, begin, end int64) Source {
	return &cut{src: src, skip: max(0, begin), left: end - max(0, begin)}
}

type cut struct {
	src        Source
	skip, left int64
}

func (c *cut) Format() Format { return c.src.Format() }

func (c *cut) Read(dst []float32) (int, error) {
	ch := c.src.Format().Channels
	if len(dst) < ch {
		return 0, errShort
	}
	for c.left > 0 && c.skip > 0 {
		n, err := c.src.Read(dst[:min(int64(len(dst)/ch), c.skip)*int64(ch)])
		if err != nil {
			return 0, err
		}
		c.skip -= int64(n)
	}
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.src.Read(dst[:min(int64(len(dst)/ch), c.left)*int64(ch)])
	c.left -= int64(n)
	return n, err
}

// Gain multiplies a sound by a factor. [Amplitude] converts decibels to a factor.
func Gain(src Source, factor float64) Source {
	f := float32(factor)
	return &change{src, func(_ int64, samples []float32) {
		for i, v := range samples {
			samples[i] = float32(v * f)
		}
	}, 0}
}

// change alters samples in place. It gets the index of the first frame.
type change struct {
	src Source
	do  func(frame int64, samples []float32)
	at  int64
}

func (c *change) Format() Format { return c.src.Format() }

func (c *change) Read(dst []float32) (int, error) {
	n, err := c.src.Read(dst)
	c.do(c.at, dst[:n*c.src.Format().Channels])
	c.at += int64(n)
	return n, err
}

// Curve is the shape of a fade.
type Curve uint8

const (
	Linear     Curve = iota // linear: a crossfade between two equal sounds keeps their level
	EqualPower              // a quarter of a sine: a crossfade between two unrelated sounds keeps their level
)

// at returns the factor at a part of the fade, 0 to 1.
func (c Curve) at(part float64) float32 {
	if c == EqualPower {
		return float32(sinPi(part / 2))
	}
	return float32(part)
}

// Fades has the fades at the ends of a sound.
type Fades struct {
	In, Out int64 // in frames; the first frame of the fade in and the last of the fade out are silent
	Curve   Curve
	Frames  int64 // length of the sound, required for a fade out
}

// Fade fades a sound in and out. Where the fades overlap, both are applied.
func Fade(src Source, f Fades) (Source, error) {
	if f.In < 0 || f.Out < 0 || f.Out > f.Frames {
		return nil, fmt.Errorf("fades of %d and %d frames do not fit a sound of %d", f.In, f.Out, f.Frames)
	}
	ch := src.Format().Channels
	return &change{src, func(frame int64, samples []float32) {
		for i := range samples {
			at := frame + int64(i/ch)
			if at < f.In {
				samples[i] = float32(samples[i] * f.Curve.at(float64(at)/float64(f.In)))
			}
			if left := f.Frames - 1 - at; f.Out > 0 && left < f.Out {
				samples[i] = float32(samples[i] * f.Curve.at(float64(max(0, left))/float64(f.Out)))
			}
		}
	}, 0}, nil
}

// Join plays sounds of one format one after the other.
func Join(sounds ...Source) Source { return &join{sounds[0].Format(), sounds} }

type join struct {
	format Format
	rest   []Source
}

func (j *join) Format() Format { return j.format }

func (j *join) Read(dst []float32) (int, error) {
	for len(j.rest) > 0 {
		n, err := j.rest[0].Read(dst)
		if n > 0 || err != nil && err != io.EOF {
			return n, err
		}
		if err == io.EOF {
			j.rest = j.rest[1:]
		}
	}
	return 0, io.EOF
}
