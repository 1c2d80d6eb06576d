package qoa

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Encoder writes a file.
type Encoder struct {
	to             io.Writer
	rate, channels int
	promise, done  int64 // samples of each channel
	state          []predictor
	scale          []int // of the previous slice
	pending        []int16
	out            []byte
	lanes          [1188]int16
}

// NewEncoder writes the head of a file with the given number of samples in each channel. A sound without samples has nothing
// else.
func NewEncoder(to io.Writer, rate, channels int, samples int64) (*Encoder, error) {
	switch {
	case rate < 1 || rate > MaxRate || channels < 1 || channels > MaxChannels:
		return nil, fmt.Errorf("%w: %d channels, %d samples a second", ErrUnsupported, channels, rate)
	case samples < 1 || samples > 1<<32-1:
		return nil, fmt.Errorf("%w: %d samples; it can have 1 to %d", ErrUnsupported, samples, int64(1<<32-1))
	}
	e := &Encoder{to: to, rate: rate, channels: channels, promise: samples, state: make([]predictor, channels), scale: make([]int, channels)}
	for c := range e.state {
		e.state[c].w2, e.state[c].w3 = -1<<13, 1<<14 // weights of a straight line
	}
	e.out = make([]byte, 0, frameSize(channels, int(min(samples, FrameSamples))))
	_, err := to.Write(binary.BigEndian.AppendUint32([]byte(magic), uint32(samples)))
	return e, err
}

// Write encodes samples, interleaved, always complete for all channels.
func (e *Encoder) Write(src []int16) error {
	if len(src)%e.channels != 0 {
		return fmt.Errorf("qoa: %d samples cannot be divided among %d channels", len(src), e.channels)
	}
	if e.done += int64(len(src) / e.channels); e.done > e.promise {
		return fmt.Errorf("%w: %d samples of %d", ErrTooLarge, e.done, e.promise)
	}
	for frame := FrameSamples * e.channels; len(src) > 0; {
		if len(e.pending) == 0 && len(src) >= frame {
			if err := e.frame(src[:frame]); err != nil {
				return err
			}
			src = src[frame:]
			continue
		}
		n := min(frame-len(e.pending), len(src))
		e.pending = append(e.pending, src[:n]...)
		src = src[n:]
		if len(e.pending) == frame {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Encoder) flush() error {
	if len(e.pending) == 0 {
		return nil
	}
	err := e.frame(e.pending)
	e.pending = e.pending[:0]
	return err
}

// Close writes the last frame. It does not close the underlying writer.
func (e *Encoder) Close() error {
	if e.done != e.promise {
		return fmt.Errorf("%w: %d samples of %d", ErrTruncated, e.done, e.promise)
	}
	return e.flush()
}

func (e *Encoder) frame(src []int16) error {
	samples := len(src) / e.channels
	size := frameSize(e.channels, samples)
	b := binary.BigEndian.AppendUint32(e.out[:0], uint32(e.channels)<<24|uint32(e.rate))
	b = binary.BigEndian.AppendUint32(b, uint32(samples)<<16|uint32(size))
	for c := range e.state {
		// The decoder continues with the values stored in the frame, which have 16 bits.
		p := &e.state[c]
		p.w0, p.w1, p.w2, p.w3 = clamp(p.w0), clamp(p.w1), clamp(p.w2), clamp(p.w3)
		b = p.append(b)
		e.scale[c] = 0
	}
	for at := 0; at < samples; at += sliceSamples {
		n := min(sliceSamples, samples-at)
		for c := range e.channels {
			var bits uint64
			bits, e.scale[c] = e.slice(&e.state[c], src[at*e.channels+c:], n, e.scale[c])
			b = binary.BigEndian.AppendUint64(b, bits)
		}
	}
	e.out = b
	_, err := e.to.Write(b)
	return err
}

// slice encodes n samples of a channel, the first of which is that of src, and updates the predictor.
func (e *Encoder) slice(p *predictor, src []int16, n, first int) (bits uint64, scale int) {
	if lanes && n == sliceSamples {
		if bits, scale, ok := p.sliceLanes(src, e.channels, first, &e.lanes); ok {
			return bits, scale
		}
	}
	return p.slice(gather(src, e.channels, n), first)
}

// slice finds the scale with the least error, starting with the scale of the previous slice, and updates the predictor. The
// error includes a penalty for large weights, because an unstable predictor makes clicks.
func (p *predictor) slice(want []int32, first int) (bits uint64, scale int) {
	best, least := *p, uint64(1<<64-1)
	for k := range 32 {
		try := first + (k+1)/2
		if k%2 == 0 {
			try = first - k/2
		}
		if try < 0 || try > 15 {
			continue
		}
		if end, b, rank := p.try(want, try, least); rank < least {
			best, bits, least, scale = end, b, rank, try
		}
	}
	*p = best
	return bits << (3 * (sliceSamples - len(want))), scale
}

// try encodes with a scale. It stops when it is not better than limit.
func (p *predictor) try(want []int32, scale int, limit uint64) (q predictor, bits, rank uint64) {
	bits = uint64(scale)
	h0, h1, h2, h3, w0, w1, w2, w3 := p.h0, p.h1, p.h2, p.h3, p.w0, p.w1, p.w2, p.w3
	t := &residuals[scale]
	// The limits between adjacent residuals: up to these, the smaller one is nearer.
	low, middle, high := (t[0]+t[2])>>1, (t[2]+t[4])>>1, (t[4]+t[6])>>1
	for _, w := range want {
		predicted := (h0*w0 + h1*w1 + h2*w2 + h3*w3) >> 13
		off := w - predicted
		sign := off >> 31
		size := (off ^ sign) - sign
		k := uint32(low-size)>>31 + uint32(middle-size)>>31 + uint32(high-size)>>31
		k = 2*k - uint32(sign)
		r := t[k&7]
		sample := predicted + r
		if uint32(sample+1<<15) > 1<<16-1 {
			sample = clamp(sample)
		}
		miss := int64(w - sample)
		rank += uint64(miss * miss)
		if square := int64(w0)*int64(w0) + int64(w1)*int64(w1) + int64(w2)*int64(w2) + int64(w3)*int64(w3); square >= 0x900<<18 {
			over := square>>18 - 0x8ff
			rank += uint64(over * over)
		}
		if rank >= limit {
			return q, 0, rank
		}
		d := r >> 4
		w0 += d ^ h0>>31 - h0>>31
		w1 += d ^ h1>>31 - h1>>31
		w2 += d ^ h2>>31 - h2>>31
		w3 += d ^ h3>>31 - h3>>31
		h0, h1, h2, h3 = h1, h2, h3, sample
		bits = bits<<3 | uint64(k)
	}
	return predictor{h0, h1, h2, h3, w0, w1, w2, w3}, bits, rank
}
