// Package sound measures and changes sound: loudness by ITU-R BS.1770-4 and EBU R 128, sample rates, channels, silence, fades, and
// 16-bit samples.
//
// A sound is a [Source], read a piece at a time, so that an hour of it is never whole in memory. What changes a sound
// is a Source that reads from another. What must have seen the end of a sound first ([Measure], [Sounding], [LoopEdges]) reads a
// source to its end; the caller opens the file again for the next step.
//
//	loudness.go, weighting.go, peak.go   what a meter shows
//	resample.go, kernel.go, loop.go      another sample rate; loops stay whole
//	mix.go                               mono, stereo, and down from 5.1 and 7.1
//	edit.go, pcm.go                      cut, fade, gain, 16 bits
//
// The same input gives the same bytes on every machine, however it is cut into reads. No product is fused with a sum: each is
// converted to its own type first, which the language defines as a rounding. Sines, exponentials and logarithms are
// those of exact.go, built of the four operations, since those of package math may differ in the last bit by architecture.
package sound

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Limits of a [Format].
const (
	MaxChannels = 64
	MinRate     = 100
	MaxRate     = 6_144_000
)

// Format of a sound: frames of one sample per channel.
type Format struct {
	Rate     int // frames per second
	Channels int

	// Mask has a bit for each channel's speaker, in the order of the channels, as in the header of a WAV file. Zero means the
	// usual speakers of that number of channels. Channels beyond its bits have no speaker; bits beyond the channels do not count.
	Mask ChannelMask
}

// ChannelMask is a set of speakers.
type ChannelMask uint32

// The speakers of WAVE_FORMAT_EXTENSIBLE, those overhead left out.
const (
	FrontLeft ChannelMask = 1 << iota
	FrontRight
	FrontCentre
	LowFrequency
	BackLeft
	BackRight
	FrontLeftOfCentre
	FrontRightOfCentre
	BackCentre
	SideLeft
	SideRight
)

// usualMask has the speakers of 1 to 8 channels, as FLAC and Vorbis order them. More channels have no speakers.
var usualMask = [9]ChannelMask{
	1: FrontCentre,
	2: FrontLeft | FrontRight,
	3: FrontLeft | FrontRight | FrontCentre,
	4: FrontLeft | FrontRight | BackLeft | BackRight,
	5: FrontLeft | FrontRight | FrontCentre | BackLeft | BackRight,
	6: FrontLeft | FrontRight | FrontCentre | LowFrequency | BackLeft | BackRight,
	7: FrontLeft | FrontRight | FrontCentre | LowFrequency | BackCentre | SideLeft | SideRight,
	8: FrontLeft | FrontRight | FrontCentre | LowFrequency | BackLeft | BackRight | SideLeft | SideRight,
}

// Check reports what is wrong with a format, if anything is.
func (f Format) Check() error {
	if f.Channels < 1 || f.Channels > MaxChannels {
		return fmt.Errorf("%d channels; 1 to %d can be handled", f.Channels, MaxChannels)
	}
	if f.Rate < MinRate || f.Rate > MaxRate {
		return fmt.Errorf("sample rate %d; %d to %d can be handled", f.Rate, MinRate, MaxRate)
	}
	return nil
}

// Speakers has the speaker of each channel: one bit, or none if it has no speaker.
func (f Format) Speakers() []ChannelMask {
	mask := f.Mask
	if mask == 0 && f.Channels < len(usualMask) {
		mask = usualMask[f.Channels]
	}
	out := make([]ChannelMask, f.Channels)
	for i := range out {
		out[i] = mask & -mask
		mask &^= out[i]
	}
	return out
}

// Source is a sound that is read from its begin to its end.
type Source interface {
	// Format stays the same from the first read to the last.
	Format() Format

	// Read fills dst with samples, frame by frame, and returns how many frames these are. There may be fewer than dst has
	// room for, but not none without an error; after the last frame the error is [io.EOF]. With an error there are no frames.
	// All of dst may be overwritten. A dst with room for less than one frame is an error.
	Read(dst []float32) (frames int, err error)
}

var errShort = errors.New("sound: read with room for less than a frame")

// Samples is a source of what is in memory already. A rest that is less than a frame is left out.
func Samples(f Format, samples []float32) Source { return &memory{f, samples} }

type memory struct {
	format Format
	rest   []float32
}

func (m *memory) Format() Format { return m.format }

func (m *memory) Read(dst []float32) (int, error) {
	ch := m.format.Channels
	n := min(len(dst), len(m.rest)) / ch
	switch {
	case len(dst) < ch:
		return 0, errShort
	case n == 0:
		return 0, io.EOF
	}
	copy(dst, m.rest[:n*ch])
	m.rest = m.rest[n*ch:]
	return n, nil
}

// pieceFrames is how many frames are read at a time where the package chooses.
const pieceFrames = 2048

// each reads a source to its end and gives each piece to f.
func each(src Source, f func(samples []float32)) error {
	ch := src.Format().Channels
	buf := make([]float32, pieceFrames*ch)
	for {
		n, err := src.Read(buf)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		f(buf[:n*ch])
	}
}

// All reads a source to its end, for sounds that are known to be short.
func All(src Source) ([]float32, error) {
	var all []float32
	err := each(src, func(s []float32) { all = append(all, s...) })
	return all, err
}

// mulDiv is a*b/c for numbers of which the product may exceed 64 bits, with the remainder. The quotient must fit.
func mulDiv(a, b, c uint64) (quotient, remainder uint64) {
	hi, lo := bits.Mul64(a, b)
	return bits.Div64(hi, lo, c)
}
