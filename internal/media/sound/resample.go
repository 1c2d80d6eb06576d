package sound

import (
	"fmt"
	"io"
)

// Ratio is the number of output frames for a number of input frames. The zero Ratio means none.
type Ratio struct{ Out, In int64 }

// RatioOf returns the ratio of two sample rates.
func RatioOf(from, to int) Ratio { return Ratio{int64(to), int64(from)}.lowest() }

func (r Ratio) lowest() Ratio {
	a, b := r.Out, r.In
	for b != 0 {
		a, b = b, a%b
	}
	return Ratio{r.Out / a, r.In / a}
}

// Frames returns the number of output frames for a sound, rounded up: every frame whose time is before the end of the
// sound.
func (r Ratio) Frames(in int64) int64 {
	q, rest := mulDiv(uint64(in), uint64(r.Out), uint64(r.In))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// ScaleFrame returns the output frame nearest in time to an input frame, or the later of two. It is used for markers.
// For loops see [FitLoop].
func (r Ratio) ScaleFrame(frame int64) int64 {
	q, rest := mulDiv(uint64(frame), uint64(r.Out), uint64(r.In))
	if rest >= uint64(r.In)-rest {
		q++
	}
	return int64(q)
}

// Conversion is a change of sample rate. The filter has a linear phase, and its delay is removed: frame n of the output
// is the sound at time n / rate.
//
// Frequencies up to 0.907 of half the lower rate (20 kHz of 44.1 kHz) are changed by less than 0.001 dB. Aliases and
// images are at least 120 dB below their origin, with one exception: if both rates are 44.1 kHz or more, frequencies
// above 20 kHz (0.907 of half the lower rate) may leave traces above 20 kHz. That halves the work and is inaudible.
type Conversion struct {
	Rate  int   // of the output
	Ratio Ratio // of frames; zero means that of the rates; it may differ slightly, to keep a loop whole (see FitLoop)

	// Frames before the first and after the last one, for a sound that continues there (see LoopEdges). The nearest
	// Reach frames are used; missing ones are silent.
	Before, After []float32
}

func (c Conversion) ratio(from int) Ratio {
	if c.Ratio == (Ratio{}) {
		return RatioOf(from, c.Rate)
	}
	return c.Ratio.lowest()
}

// Reach returns how many frames on each side of a position affect it, for an input of that sample rate.
func (c Conversion) Reach(from int) int { return halfKernel(c.ratio(from), from, c.Rate) }

// Limits of ratios: the largest factor up or down, and the length of a loop.
const (
	maxRatio = 256
	maxTerm  = 1 << 40
)

// Resampler is a source with another sample rate. If the rate is that of the input, it does not change the samples.
type Resampler struct {
	src    Source
	format Format
	ratio  Ratio
	kernel kernel
	after  []float32

	// buf begins half-1 frames before the next input frame, which is frame at of buf.
	buf   []float32
	at    int64
	phase int64 // offset of the next output from that frame, in units of 1/ratio.Out
	mix   []float32

	in, out int64 // number of frames read and returned
	ended   bool  // the source has ended
	err     error // error of the source, or io.EOF
}

// Resample returns a source with another rate.
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

// edge returns the begin or the end of samples, padded with silence.
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

// Format returns the format of the source with the new rate.
func (r *Resampler) Format() Format { return r.format }

// Ratio returns the ratio of frames.
func (r *Resampler) Ratio() Ratio { return r.ratio }

// Read returns resampled frames.
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

// make computes as many frames as the frames in buf allow.
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

// one computes a frame.
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

// fill removes frames that are no longer needed, and reads more. It returns an error if there are none.
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
