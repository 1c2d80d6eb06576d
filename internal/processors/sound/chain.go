package sound

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
)

// task is the work on one sound.
type task struct {
	job processor.Job
	ctx context.Context
	f   *soundfile.File
	s   *Settings

	codec   string
	by      *encoder     // the program that encodes it; nil: Kiln does
	format  sound.Format // of the product
	frames  int64
	loops   []soundfile.Loop // of the product
	markers []soundfile.Marker

	begin, end int64   // range of the source that is kept
	applied    float64 // gain applied to the samples, in dB
	limited    string  // what true_peak did not allow; empty: nothing
	conversion sound.Conversion
}

func (t *task) run() error {
	t.codec = t.s.codec(t.f)
	standsIn := byProgram(t.codec) && stoodFor(t.job)
	if standsIn {
		var err error
		if t.f, err = silence(t.codec); err != nil {
			return err
		}
	}
	if err := t.setLoops(); err != nil {
		return err
	}
	if t.codec == "keep" || standsIn {
		return t.keep()
	}
	if byProgram(t.codec) {
		var err error
		if t.by, err = t.encoder(); err != nil {
			return err
		}
	}
	if err := t.plan(); err != nil {
		return err
	}
	return t.write()
}

// setLoops sets the loops from the file or from the settings.
func (t *task) setLoops() error {
	t.format, t.frames, t.begin, t.end = t.f.Format, t.f.Frames, 0, t.f.Frames
	t.loops, t.markers = slices.Clone(t.f.Loops), slices.Clone(t.f.Markers)
	kinds := map[string]soundfile.LoopKind{"forward": soundfile.Forward, "ping-pong": soundfile.PingPong, "backward": soundfile.Backward}
	kind, own := kinds[t.s.Loop]
	switch {
	case t.s.Loop == "none":
		t.loops = nil
	case own:
		l := soundfile.Loop{Begin: t.s.LoopBegin, End: t.s.LoopEnd, Kind: kind}
		if stoodFor(t.job) {
			l.Begin, l.End = 0, t.frames
		} else if l.End == 0 {
			l.End = t.frames
		}
		if l.Begin >= l.End || l.End > t.frames {
			return &processor.Problem{Code: string(diag.SoundLoop),
				Text: fmt.Sprintf("the loop from frame %d to before %d is not in a sound of %d frames", l.Begin, l.End, t.frames),
				Hint: "correct loop_begin and loop_end; they count frames of the source"}
		}
		t.loops = []soundfile.Loop{l}
	case t.s.LoopBegin != 0 || t.s.LoopEnd != 0:
		t.job.Warn(processor.Problem{Code: string(diag.SoundLoop), Text: "loop_begin and loop_end do nothing without loop",
			Hint: `set loop = "forward"`})
	}
	return nil
}

// plan decides which frames are kept and how.
func (t *task) plan() error {
	if t.s.Trim {
		if err := t.trim(); err != nil {
			return err
		}
	}
	t.frames = t.end - t.begin
	for i := range t.loops {
		t.loops[i].Begin, t.loops[i].End = t.loops[i].Begin-t.begin, t.loops[i].End-t.begin
	}
	t.markers = slices.DeleteFunc(t.markers, func(m soundfile.Marker) bool { return m.Frame < t.begin || m.Frame > t.end })
	for i := range t.markers {
		m := &t.markers[i]
		m.Length = min(m.Length, t.end-m.Frame)
		m.Frame -= t.begin
	}
	src, err := t.mixed()
	if err != nil {
		return err
	}
	t.format = src.Format()
	if t.format.Channels > 8 && (t.codec == "qoa" || t.codec == "flac" || t.by != nil) {
		return &processor.Problem{Code: string(diag.SoundLimit), Text: fmt.Sprintf("%d channels, and %s has 8 at most",
			t.format.Channels, t.codec),
			Hint: `set channels = "stereo", or codec = "pcm"`}
	}
	return t.resampled()
}

const opusRate = 48000

// resampled decides the rate, and the new positions of loops and markers.
func (t *task) resampled() error {
	rate := t.format.Rate
	if t.s.Rate > 0 {
		rate = t.s.Rate
	}
	if t.s.MaxRate > 0 {
		rate = min(rate, t.s.MaxRate)
	}
	if t.codec == "opus" {
		rate = opusRate // it is played at this rate in any case
	}
	if rate == t.format.Rate {
		return nil
	}
	if rate < sound.MinRate {
		return &processor.Problem{Code: string(diag.SoundLimit), Text: fmt.Sprintf("rate %d is below %d", rate, sound.MinRate),
			Hint: "set a rate, such as 48000"}
	}
	t.conversion = sound.Conversion{Rate: rate, Ratio: sound.RatioOf(t.format.Rate, rate)}
	toEnd := len(t.loops) > 0 && t.loops[0].End == t.frames
	if len(t.loops) > 0 {
		if err := t.fitLoop(rate); err != nil {
			return err
		}
	}
	scale := t.conversion.Ratio.ScaleFrame
	frames := t.conversion.Ratio.Frames(t.frames)
	if toEnd {
		frames = min(frames, t.loops[0].End) // which was rounded, and still is the end
	}
	for i := range t.loops[min(1, len(t.loops)):] {
		l := &t.loops[i+1]
		l.Begin = min(scale(l.Begin), frames-1)
		l.End = min(max(scale(l.End), l.Begin+1), frames)
	}
	for i := range t.markers {
		m := &t.markers[i]
		end := min(scale(m.Frame+m.Length), frames)
		m.Frame = min(scale(m.Frame), frames)
		m.Length = max(0, end-m.Frame)
	}
	t.frames, t.format.Rate = frames, rate
	return nil
}

// fitLoop rounds the first loop to whole frames at another rate.
func (t *task) fitLoop(rate int) error {
	l := &t.loops[0]
	fit, err := sound.FitLoop(l.Begin, l.End, t.format.Rate, rate)
	if err != nil {
		return err
	}
	const audible = 5 // hundredths of a semitone
	if math.Abs(fit.Cents) > audible {
		t.job.Warn(processor.Problem{Code: string(diag.SoundLoop),
			Text: fmt.Sprintf("a loop of %d frames at %d Hz is %d whole ones at %d Hz: the sound is %.1f cents off",
				l.End-l.Begin, t.format.Rate, fit.End-fit.Begin, rate, fit.Cents),
			Hint: "make the loop longer by repeating it, or set rate = 0"})
	}
	t.conversion.Ratio = fit.Ratio
	if l.End == t.frames && l.Kind == soundfile.Forward {
		src, err := t.mixed()
		if err != nil {
			return err
		}
		if t.conversion.Before, t.conversion.After, err = sound.LoopEdges(src, l.Begin, l.End,
			t.conversion.Reach(t.format.Rate)); err != nil {
			return err
		}
	}
	l.Begin, l.End = fit.Begin, fit.End
	return nil
}

// trim decides how much silence at both ends is removed.
func (t *task) trim() error {
	src, err := t.f.Source()
	if err != nil {
		return err
	}
	margin := int64(t.s.TrimMargin * float64(t.f.Format.Rate))
	begin, end, err := sound.Sounding(watched{src, t.ctx}, t.s.TrimLevel, margin)
	if err != nil {
		return err
	}
	if begin == end {
		return nil // completely silent: keep everything, because an empty sound is worse
	}
	for _, l := range t.loops {
		begin, end = min(begin, l.Begin), max(end, l.End)
	}
	t.begin, t.end = begin, end
	return nil
}

// mixed is the kept part of the source, in the channels of the product.
func (t *task) mixed() (sound.Source, error) {
	src, err := t.f.Source()
	if err != nil {
		return nil, err
	}
	src = watched{src, t.ctx}
	if t.begin > 0 || t.end < t.f.Frames {
		src = sound.Cut(src, t.begin, t.end)
	}
	switch t.s.Channels {
	case "mono":
		src = sound.Mono(src)
	case "stereo":
		src = sound.Stereo(src)
	}
	return src, nil
}

// chain is the sound of the product without the gain.
func (t *task) chain() (sound.Source, error) {
	src, err := t.mixed()
	if err != nil {
		return nil, err
	}
	if t.conversion.Rate != 0 {
		if src, err = sound.Resample(src, t.conversion); err != nil {
			return nil, err
		}
		src = sound.Cut(src, 0, t.frames)
	}
	if t.s.FadeIn > 0 || t.s.FadeOut > 0 {
		fades := sound.Fades{Frames: t.frames, Curve: sound.Linear,
			In: min(int64(t.s.FadeIn*float64(t.format.Rate)), t.frames), Out: min(int64(t.s.FadeOut*float64(t.format.Rate)), t.frames)}
		if t.s.FadeCurve == "equal-power" {
			fades.Curve = sound.EqualPower
		}
		if src, err = sound.Fade(src, fades); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// watched is a source that ends with a context.
type watched struct {
	sound.Source
	ctx context.Context
}

func (w watched) Read(dst []float32) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.Source.Read(dst)
}

// gain is the gain that the settings require for a measured sound. If true_peak limits it, limited has what was asked
// and what is reached.
func (t *task) gain(m sound.Loudness) (g float64, limited string) {
	toLoudness := t.s.Loudness != 0 && m.Basis != sound.Silent
	asked := t.s.Gain
	if toLoudness {
		asked += t.s.Loudness - m.LUFS
	}
	g = asked
	if m.TruePeak > 0 {
		room := t.s.TruePeak - sound.Decibels(m.TruePeak)
		if toLoudness {
			g = min(g, room)
		} else if g > 0 {
			g = max(0, min(g, room))
		}
	}
	if g = round(g); g == round(asked) {
		return g, ""
	}
	wish, reached := "gain "+decimal(t.s.Gain), g
	if toLoudness {
		wish, reached = "loudness "+decimal(t.s.Loudness), m.LUFS+g
		if t.s.Gain != 0 {
			wish += " and gain " + decimal(t.s.Gain)
		}
	}
	return g, fmt.Sprintf("%s asked, %s reached: limited by true_peak", wish, decimal(reached))
}
