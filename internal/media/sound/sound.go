// Package sound measures and changes sound: loudness by ITU-R BS.1770-4 and EBU R 128, sample rates, channels, silence,
// fades, and 16-bit samples.
//
// A sound is a [Source], which is read in pieces, so that an hour of it is never in memory as a whole. A function that
// changes a sound returns a Source that reads from another. A function that needs the whole sound ([Measure],
// [Sounding], [LoopEdges]) reads a source to its end; the caller opens the file again for the next step.
//
//	loudness.go, weighting.go, peak.go   what a meter shows
//	resample.go, kernel.go, loop.go      change of the sample rate; loops stay whole
//	mix.go                               mono, stereo, and down from 5.1 and 7.1
//	edit.go, pcm.go                      cut, fade, gain, 16 bits
//
// The same input gives the same bytes on every machine, whatever the size of the reads. No product is fused with a sum:
// each is first converted to its own type, which the language defines as a rounding. Sines, exponentials and logarithms
// are those of exact.go, which use only the four basic operations, because the last bit of those in package math may
// depend on the architecture.
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

// Format is the format of a sound. A frame is one sample for each channel.
type Format struct {
	Rate     int // frames per second
	Channels int

	// Mask has a bit for each channel's speaker, in the order of the channels, as in the header of a WAV file. Zero
	// means the usual speakers for the number of channels. Channels without a bit have no speaker; bits without a
	// channel are ignored.
	Mask ChannelMask
}

// ChannelMask is a set of speakers.
type ChannelMask uint32

// The speakers of WAVE_FORMAT_EXTENSIBLE, without those overhead.
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

// usualMask has the speakers of 1 to 8 channels, in the order of FLAC and Vorbis. With more channels there are no
// speakers.
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

// Check returns an error if the format is not valid.
func (f Format) Check() error {
	if f.Channels < 1 || f.Channels > MaxChannels {
		return fmt.Errorf("%d channels; 1 to %d can be handled", f.Channels, MaxChannels)
	}
	if f.Rate < MinRate || f.Rate > MaxRate {
		return fmt.Errorf("sample rate %d; %d to %d can be handled", f.Rate, MinRate, MaxRate)
	}
	return nil
}

// Speakers returns the speaker of each channel: one bit, or 0 if it has none.
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

// Source is a sound that is read from begin to end.
type Source interface {
	// Format returns the format. It does not change between reads.
	Format() Format

	// Read fills dst with samples, frame by frame, and returns the number of frames. It may return fewer frames than
	// fit into dst, but at least one unless there is an error. After the last frame the error is [io.EOF]. With an
	// error the number is 0. All of dst may be overwritten. A dst that is smaller than one frame is an error.
	Read(dst []float32) (frames int, err error)
}

var errShort = errors.New("sound: read with room for less than a frame")

// Samples returns a source of samples in memory. An incomplete frame at the end is left out.
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

// pieceFrames is the number of frames that the package reads at a time.
const pieceFrames = 2048

// each reads a source to its end, and calls f for each piece.
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

// All reads a source to its end. It is for sounds that are known to be short.
func All(src Source) ([]float32, error) {
	var all []float32
	err := each(src, func(s []float32) { all = append(all, s...) })
	return all, err
}

// mulDiv returns a*b/c and the remainder. The product may exceed 64 bits; the quotient must fit.
func mulDiv(a, b, c uint64) (quotient, remainder uint64) {
	hi, lo := bits.Mul64(a, b)
	return bits.Div64(hi, lo, c)
}
