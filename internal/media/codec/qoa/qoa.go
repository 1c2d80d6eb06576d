// Package qoa reads and writes QOA, the Quite OK Audio format, frame by frame.
//
// It follows the specification of 2023 (qoaformat.org). All numbers are big-endian:
//
//	0  "qoaf", u32 samples of each channel; 0 if the writer did not know
//	8  frames of up to 5120 samples of each channel; only the last may be shorter:
//	   u8 channels, u24 samples per second, u16 samples of each channel, u16 bytes of the frame
//	   for each channel: i16 the four previous samples, i16 the four weights of the predictor
//	   slices of 20 samples of a channel, channel by channel; 8 bytes: 4 bits scale, then 3 bits per sample
//
// A sample is the sum of a prediction, from the weights and the four previous samples, and a residual, one of eight for each
// scale. The residual also changes the weights by a sixteenth of it: up if the sample of a weight is not negative, down if
// it is negative. All arithmetic is on integers of 32 bits, which wrap around, so results are the same on every machine.
//
// Elsewhere in Kiln a frame is one sample of each channel. In this package that is a sample, and a frame is a frame of the
// specification. Invalid data gives an error, never a panic.
package qoa

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Extension is the file name extension.
const Extension = ".qoa"

var (
	ErrTruncated   = errors.New("qoa: data ends too early")
	ErrDamaged     = errors.New("qoa: damaged")
	ErrUnsupported = errors.New("qoa: not supported")
	ErrTooLarge    = errors.New("qoa: too large")
)

const (
	FrameSamples = 256 * sliceSamples // of a channel, in a frame
	MaxChannels  = 8                  // limit of other decoders
	MaxRate      = 1<<24 - 1

	magic        = "qoaf"
	sliceSamples = 20
	stateSize    = 16 // bytes per channel
)

// residuals has eight values for each scale: scale^2.75 times 0.75, 2.5, 4.5 and 7, each positive and negative.
var residuals = func() (t [16][8]int32) {
	for i, scale := range [16]int32{1, 7, 21, 45, 84, 138, 211, 304, 421, 562, 731, 928, 1157, 1419, 1715, 2048} {
		for k, quarters := range [4]int32{3, 10, 18, 28} {
			r := (scale*quarters + 2) / 4 // halves are rounded away from 0
			t[i][2*k], t[i][2*k+1] = r, -r
		}
	}
	return t
}()

// predictor is the state of a channel: the four previous samples, oldest first, and their weights.
type predictor struct {
	h0, h1, h2, h3 int32
	w0, w1, w2, w3 int32
}

func (p *predictor) predict() int32 { return (p.h0*p.w0 + p.h1*p.w1 + p.h2*p.w2 + p.h3*p.w3) >> 13 }

func (p *predictor) learn(sample, residual int32) {
	d := residual >> 4
	p.w0 += d ^ p.h0>>31 - p.h0>>31
	p.w1 += d ^ p.h1>>31 - p.h1>>31
	p.w2 += d ^ p.h2>>31 - p.h2>>31
	p.w3 += d ^ p.h3>>31 - p.h3>>31
	p.h0, p.h1, p.h2, p.h3 = p.h1, p.h2, p.h3, sample
}

func clamp(v int32) int32 { return min(max(v, -1<<15), 1<<15-1) }

// Header is the head of a frame.
type Header struct {
	Channels, Rate int
	Samples        int // per channel
	Size           int // bytes of the frame
}

// ParseHeader parses the head of a frame.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < 8 {
		return Header{}, ErrTruncated
	}
	first, second := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	h := Header{int(first >> 24), int(first & MaxRate), int(second >> 16), int(second & 0xffff)}
	if h.Channels < 1 || h.Rate < 1 || h.Samples < 1 || h.Samples > FrameSamples || h.Size != frameSize(h.Channels, h.Samples) {
		return h, fmt.Errorf("%w: a frame of %d channels, %d samples a second, %d samples, %d bytes",
			ErrDamaged, h.Channels, h.Rate, h.Samples, h.Size)
	}
	return h, nil
}

func frameSize(channels, samples int) int {
	return 8 + channels*(stateSize+(samples+sliceSamples-1)/sliceSamples*8)
}

// DecodeFrame decodes a frame into dst, interleaved. dst must have enough space for the frame.
func DecodeFrame(dst []int16, b []byte) (Header, error) {
	h, err := ParseHeader(b)
	switch {
	case err != nil:
		return h, err
	case len(b) < h.Size:
		return h, fmt.Errorf("%w: a frame of %d bytes, and %d are there", ErrTruncated, h.Size, len(b))
	case len(dst) < h.Samples*h.Channels:
		return h, fmt.Errorf("%w: %d samples, and there is room for %d", ErrTooLarge, h.Samples*h.Channels, len(dst))
	}
	body := b[8+stateSize*h.Channels : h.Size]
	for c := range h.Channels {
		p := readState(b[8+stateSize*c:])
		for at := 0; at < h.Samples; at += sliceSamples {
			slice := binary.BigEndian.Uint64(body[(at/sliceSamples*h.Channels+c)*8:])
			scale := &residuals[slice>>60]
			for i := at; i < min(at+sliceSamples, h.Samples); i++ {
				r := scale[slice>>57&7]
				slice <<= 3
				sample := clamp(p.predict() + r)
				p.learn(sample, r)
				dst[i*h.Channels+c] = int16(sample)
			}
		}
	}
	return h, nil
}

func readState(b []byte) predictor {
	v := func(i int) int32 { return int32(int16(binary.BigEndian.Uint16(b[2*i:]))) }
	return predictor{v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7)}
}

func (p *predictor) append(b []byte) []byte {
	for _, v := range [8]int32{p.h0, p.h1, p.h2, p.h3, p.w0, p.w1, p.w2, p.w3} {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return b
}
