package sound

import (
	"errors"
	"io"
)

// LoopFit is a loop after resampling.
type LoopFit struct {
	Ratio      Ratio   // to resample the sound by
	Begin, End int64   // first frame of the loop, and that after its last one
	Cents      float64 // how much higher than before the sound is, in hundredths of a semitone
}

// FitLoop says how to resample a sound that has a loop, from its frame begin to before its frame end, so that the loop stays whole.
//
// A loop of 1000 frames at 44.1 kHz would have 1088.4 at 48 kHz. A player can repeat whole frames alone, and each time around would
// be off by 0.4 frames, which is heard as a click or a drift. Of the ways out, moving one end of the loop has just that click,
// and moving frames within it a wow. So the whole sound is resampled by a ratio that makes the loop 1088 frames, and is played
// a little too high or low. That is under 0.02 cents for a loop of a second; nobody hears 1. Only loops of a few periods of a
// tone are off by more: they are better repeated some times before.
//
// The begin goes to the nearest frame, and the end as far from it as the loop is long, so both are moved by the same part of a frame.
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

// LoopEdges reads a source to the end of a loop and returns n frames that a player gives before and after that: what
// [Conversion] needs to resample a sound whose end is that of the loop without a click there. After the end comes the begin of the loop.
// Before the sound comes the end of the loop, if the loop begins with the sound; else nothing (nil): the sound itself begins
// there, and where the loop begins in it, it goes on as before the loop's end if it was cut well.
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
