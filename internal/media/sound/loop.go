package sound

import (
	"errors"
	"io"
)

// LoopFit is a loop after resampling.
type LoopFit struct {
	Ratio      Ratio   // for resampling the sound
	Begin, End int64   // first frame of the loop, and the frame after its last one
	Cents      float64 // change of pitch, in hundredths of a semitone; positive is higher
}

// FitLoop returns how to resample a sound with a loop, so that the loop has a whole number of frames. The loop is from
// frame begin to before frame end.
//
// A loop of 1000 frames at 44.1 kHz has 1088.4 frames at 48 kHz. A player can only repeat whole frames, so each
// repetition would be off by 0.4 frames, which is heard as a click or a drift. Moving one end of the loop causes that
// click; moving frames inside it changes the pitch audibly. Therefore the whole sound is resampled by a ratio that
// makes the loop 1088 frames long, and plays slightly too high or low: less than 0.02 cents for a loop of a second. 1
// cent is inaudible. Only loops of a few periods of a tone are off by more; it is better to repeat these a few times
// first.
//
// The begin is moved to the nearest frame. The end follows at the length of the loop, so both are moved by the same
// part of a frame.
func FitLoop(begin, end int64, from, to int) (LoopFit, error) {
	if begin < 0 || end <= begin || end > maxTerm {
		return LoopFit{}, errors.New("the loop has no frames")
	}
	rates := RatioOf(from, to)
	length := max(1, rates.ScaleFrame(end-begin))
	fit := LoopFit{Ratio: Ratio{length, end - begin}.lowest()}
	fit.Begin = fit.Ratio.ScaleFrame(begin)
	fit.End = fit.Begin + length
	is, should := float64(float64(length)*float64(from)), float64(float64(end-begin)*float64(to))
	if is != should {
		const centsPerE = 1731.2340490667562 // 1200 / ln 2
		fit.Cents = float64(ln(should/is) * centsPerE)
	}
	return fit, nil
}

// LoopEdges reads a source to the end of a loop. It returns n frames that a player plays before and after that part.
// With them, [Conversion] resamples a sound that ends with its loop without a click there. After the end come the first
// frames of the loop. Before the sound come the last frames of the loop, if the loop begins with the sound. Otherwise
// before is nil, because the sound begins there: the frames before the loop's begin are then part of the sound, and in
// a well-cut loop equal those before its end.
func LoopEdges(src Source, begin, end int64, n int) (before, after []float32, err error) {
	if begin < 0 || end <= begin {
		return nil, nil, errors.New("the loop has no frames")
	}
	ch := src.Format().Channels
	part := int(min(int64(n), end-begin))
	var head, tail []float32 // the first and last frames of the loop
	buf := make([]float32, pieceFrames*ch)
	for at := int64(0); at < end; {
		got, err := src.Read(buf[:int(min(pieceFrames, end-at))*ch])
		if err == io.EOF {
			err = errors.New("the sound ends before its loop")
		}
		if err != nil {
			return nil, nil, err
		}
		in := buf[min(max(begin-at, 0), int64(got))*int64(ch) : got*ch]
		head = append(head, in[:min(len(in), part*ch-len(head))]...)
		tail = append(tail, in...)
		tail = append(tail[:0], tail[max(0, len(tail)-part*ch):]...)
		at += int64(got)
	}
	after = make([]float32, n*ch)
	for i := range after {
		after[i] = head[i%len(head)]
	}
	if begin == 0 {
		before = make([]float32, n*ch)
		for i := range before {
			before[len(before)-1-i] = tail[len(tail)-1-i%len(tail)]
		}
	}
	return before, after, nil
}
