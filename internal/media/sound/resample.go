package sound

import (
	"fmt"
	"io"
)

// Ratio is how many frames come out for how many that go in. The zero Ratio is none.
type Ratio struct{ Out, In int64 }

// RatioOf two sample rates.
func RatioOf(from, to int) Ratio { return Ratio{int64(to), int64(from)}.lowest() }

func (r Ratio) lowest() Ratio {
	a, b := r.Out, r.In
	for b != 0 {
		a, b = b, a%b
	}
	return Ratio{r.Out / a, r.In / a}
}

// Frames is how many frames come out for a sound of so many, rounded up: every frame whose time lies before the end of the sound.
func (r Ratio) Frames(in int64) int64 {
	q, rest := mulDiv(uint64(in), uint64(r.Out), uint64(r.In))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// ScaleFrame is the frame that is nearest in time to a frame of the input, the later one of two that are as near: where a
// marker goes. For loops see [FitLoop].
func (r Ratio) ScaleFrame(frame int64) int64 {
	q, rest := mulDiv(uint64(frame), uint64(r.Out), uint64(r.In))
	if rest >= uint64(r.In)-rest {
		q++
	}
	return int64(q)
}

// Conversion is a change of sample rate, by a filter of linear phase whose delay is taken out: frame n of the output is
// the sound at time n / rate.
//
// What lies below 0.907 of half the lower rate (20 kHz of 44.1 kHz) passes within 0.001 dB. What would be an alias or an image of
// something else is at least 120 dB below it, with one exception: if both rates are 44.1 kHz or more, what lies above 20 kHz
// (0.907 of half the lower rate) may leave a trace that is above 20 kHz, too. That halves the work and cannot be heard.
type Conversion struct {
	Rate  int   // of the output
	Ratio Ratio // of frames; zero means that of the rates. It may differ from that a little, to make a loop whole (see FitLoop).

	// Frames before the first and after the last one, for a sound that goes on there (see LoopEdges). Those nearest to the sound
	// count, as many as Reach says; where there are none, there is silence.
	Before, After []float32
}

func (c Conversion) ratio(from int) Ratio {
	if c.Ratio == (Ratio{}) {
		return RatioOf(from, c.Rate)
	}
	return c.Ratio.lowest()
}

// Reach is how many frames on each side of a place count for it, at that sample rate of the input.
func (c Conversion) Reach(from int) int { return halfKernel(c.ratio(from), from, c.Rate) }

// Limits of ratios: how many times more or fewer frames may come out, and how long a loop may be.
const (
	maxRatio = 256
	maxTerm  = 1 << 40
)

// A Resampler is a source at another sample rate. If that is the rate of the input, the samples stay as they are.
type Resampler struct {
	src    Source
	format Format
	ratio  Ratio
	kernel kernel
	after  []float32

	// The frames in buf begin half-1 frames before that frame of the input which is next; it is at buf's frame at.
	buf   []float32
	at    int64
	phase int64 // how far the next output is behind that frame, of ratio.Out
	mix   []float32

	in, out int64 // frames read, and given
	ended   bool  // the source has no more
	err     error // that of the source, or io.EOF
}

// Resample makes a source at another rate.
func Resample(src Source, c Conversion) (*Resampler, error) {
	f := src.Format()
	if err := f.Check(); err != nil {
		return nil, err
	}
	r := &Resampler{src: src, format: f}
	r.format.Rate = c.Rate
	if err := r.format.Check(); err != nil {
		return nil, err
	}
	if c.Ratio != (Ratio{}) && (c.Ratio.Out < 1 || c.Ratio.In < 1 || c.Ratio.Out > maxTerm || c.Ratio.In > maxTerm) {
		return nil, fmt.Errorf("%d frames for %d: no ratio to resample by", c.Ratio.Out, c.Ratio.In)
	}
	r.ratio = c.ratio(f.Rate)
	if r.ratio.Out > maxRatio*r.ratio.In || r.ratio.In > maxRatio*r.ratio.Out {
		return nil, fmt.Errorf("from %d to %d frames: more than %d times as many or as few", r.ratio.In, r.ratio.Out, maxRatio)
	}
	if r.ratio.Out == r.ratio.In {
		return r, nil
	}
	r.kernel = newKernel(r.ratio, f.Rate, c.Rate)
	ch := f.Channels
	r.after = edge(c.After, r.kernel.half*ch, false)
	r.buf = append(make([]float32, 0, (r.kernel.taps()+pieceFrames)*ch), edge(c.Before, (r.kernel.half-1)*ch, true)...)
	r.mix = make([]float32, 2*ch)
	return r, nil
}

// edge is the begin or the end of samples, filled up with silence.
func edge(samples []float32, length int, end bool) []float32 {
	out := make([]float32, length)
	n := min(length, len(samples))
	if end {
		copy(out[length-n:], samples[len(samples)-n:])
	} else {
		copy(out, samples[:n])
	}
	return out
}

// Format is that of the source at the new rate.
func (r *Resampler) Format() Format { return r.format }

// Ratio is that of frames.
func (r *Resampler) Ratio() Ratio { return r.ratio }

// Read gives resampled frames.
func (r *Resampler) Read(dst []float32) (int, error) {
	if r.kernel.half == 0 {
		return r.src.Read(dst)
	}
	ch := r.format.Channels
	if len(dst) < ch {
		return 0, errShort
	}
	for {
		if n := r.make(dst[:len(dst)/ch*ch]); n > 0 {
			r.out += int64(n)
			return n, nil
		}
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
}

// make gives as many frames as what was read allows.
func (r *Resampler) make(dst []float32) int {
	ch := r.format.Channels
	want := len(dst) / ch
	if r.ended {
		want = int(min(int64(want), r.ratio.Frames(r.in)-r.out))
	}
	taps := int64(r.kernel.taps())
	have := int64(len(r.buf)/ch) - taps
	whole, part := r.ratio.In/r.ratio.Out, r.ratio.In%r.ratio.Out
	n := 0
	for ; n < want && r.at <= have; n++ {
		r.one(r.buf[int(r.at)*ch:int(r.at+taps)*ch], dst[n*ch:(n+1)*ch])
		r.at += whole
		if r.phase += part; r.phase >= r.ratio.Out {
			r.phase -= r.ratio.Out
			r.at++
		}
	}
	return n
}

// one makes a frame.
func (r *Resampler) one(frames, dst []float32) {
	if r.kernel.count == r.ratio.Out {
		apply(r.kernel.row(r.phase), frames, dst)
		return
	}
	row, rest := mulDiv(uint64(r.phase), uint64(r.kernel.count), uint64(r.ratio.Out))
	a, b := r.mix[:len(dst)], r.mix[len(dst):]
	apply(r.kernel.row(int64(row)), frames, a)
	apply(r.kernel.row(int64(row)+1), frames, b)
	t := float32(float64(rest) / float64(r.ratio.Out))
	for c := range dst {
		dst[c] = a[c] + float32(t*(b[c]-a[c]))
	}
}

// fill leaves out frames that are done with, and reads more. It ends with an error if there are none.
func (r *Resampler) fill() {
	if r.ended {
		r.err = io.EOF
		return
	}
	ch := r.format.Channels
	skip := min(int(r.at), len(r.buf)/ch)
	r.buf = r.buf[:copy(r.buf, r.buf[skip*ch:])]
	r.at -= int64(skip)
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	switch err {
	case nil:
		r.in += int64(n)
		r.buf = r.buf[:len(r.buf)+n*ch]
	case io.EOF:
		r.ended = true
		r.buf = append(r.buf, r.after...)
	default:
		r.err = err
	}
}
