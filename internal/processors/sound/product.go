package sound

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
)

// keep copies the file, with its loudness measured. If that or the settings require a gain or another loop, tags are
// written.
func (t *task) keep() error {
	t.ignored()
	notes := t.notes()
	src, err := t.f.Source()
	var m *sound.Meter
	if err == nil {
		m, err = sound.NewMeter(watched{src, t.ctx}, sound.MeterOptions{DualMono: t.s.DualMono})
	}
	if err == nil {
		err = drain(m)
	}
	switch {
	case err == nil:
		t.fill(notes, m.Loudness())
	case t.ctx.Err() != nil:
		return err
	case t.f.Opaque != nil:
		t.job.Warn(processor.Problem{Code: string(diag.SoundUnmeasured), Text: fmt.Sprintf("its loudness is not known: %v", err),
			Hint: "it reaches the game without a gain; where that matters, export it as WAV"})
	default:
		return err
	}
	out := processor.Output{Type: Type, Extension: t.extension(), Facts: t.facts(notes, m, t.f.Codec)}
	w, err := t.job.Create(out)
	if err != nil {
		return err
	}
	to := stopping{w, t.ctx}
	changed := notes.Gain != 0 || !slices.Equal(t.loops, t.f.Loops)
	if changed && (t.f.Container == soundfile.Ogg || t.f.Container == soundfile.MP3) {
		err = t.f.Pass(to, notes)
	} else {
		if changed {
			t.job.Warn(processor.Problem{Code: string(diag.SoundAsItIs),
				Text: fmt.Sprintf("%s is copied unchanged, without gain and loop of its settings", t.f.Container),
				Hint: `they are in the content database; with another codec, such as "qoa", the product has them`})
		}
		err = t.f.Copy(to)
	}
	return errors.Join(err, w.Close())
}

// ignored warns about settings that would change samples.
func (t *task) ignored() {
	if idle := t.s.changes(t.f); len(idle) > 0 {
		t.job.Warn(processor.Problem{Code: string(diag.SoundAsItIs),
			Text: fmt.Sprintf("%s is copied unchanged; without effect: %s", t.f.Codec, strings.Join(idle, ", ")),
			Hint: `to have the sound changed, set a codec, such as "qoa"`})
	}
}

// drain reads a source to its end.
func drain(src sound.Source) error {
	buf := make([]float32, 8192*src.Format().Channels)
	for {
		if _, err := src.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// notes are the notes that are known before anything is measured.
func (t *task) notes() *soundfile.Notes {
	seconds := float64(t.frames) / float64(t.format.Rate)
	stream := t.s.Stream == "yes" || t.s.Stream == "auto" && seconds > t.s.StreamAbove
	return &soundfile.Notes{Stream: stream, Loops: t.loops, Markers: t.markers}
}

// fill adds measured values.
func (t *task) fill(n *soundfile.Notes, m sound.Loudness) {
	n.Gain, t.limited = t.gain(m)
	n.Momentary, n.Silent = m.Basis == sound.Momentary, m.Basis == sound.Silent
	if !n.Silent {
		n.Loudness = round(m.LUFS)
	}
	if m.TruePeak > 0 {
		n.TruePeak = round(sound.Decibels(m.TruePeak))
	}
}

func round(v float64) float64 { return math.Round(v*100) / 100 }

// decimal is a value as it stands in facts.
func decimal(v float64) string { return strconv.FormatFloat(round(v)+0, 'f', -1, 64) }

// baked is the sound with the gain applied to its samples, with the notes for that.
func (t *task) baked(src sound.Source, n *soundfile.Notes) sound.Source {
	if n.Gain == 0 {
		return src
	}
	t.applied = n.Gain
	src = sound.Gain(src, sound.Amplitude(n.Gain))
	if !n.Silent {
		n.Loudness = round(n.Loudness + n.Gain)
	}
	n.TruePeak = round(n.TruePeak + n.Gain)
	n.Gain = 0
	return src
}

// write makes the product. If a format has its notes at the end, the sound is measured while it is written; otherwise
// it is read twice.
func (t *task) write() error {
	around, err := t.around() // first, because it reads the source too
	if err != nil {
		return err
	}
	src, err := t.chain()
	if err != nil {
		return err
	}
	m, err := sound.NewMeter(src, sound.MeterOptions{DualMono: t.s.DualMono})
	if err != nil {
		return err
	}
	notes, count := t.notes(), &soundfile.Count{}
	o := &soundfile.Output{Frames: t.frames, Notes: notes, Dither: t.s.Dither, Block: t.s.blockFor(t.format.Rate),
		Bits: t.bits(), Count: count}
	src = m
	if t.s.Bake || t.codec == "flac" {
		if err := drain(m); err != nil {
			return err
		}
		t.fill(notes, m.Loudness())
		if src, err = t.chain(); err != nil {
			return err
		}
		if t.s.Bake {
			src = t.baked(src, notes)
		}
	} else {
		o.Finish = func() { t.fill(notes, m.Loudness()) }
	}
	if t.by != nil {
		src = around.join(src, t.applied)
		o.Frames += around.lead() + around.tail()
	}
	scratch, err := t.encode(o, src)
	if err != nil {
		return err
	}
	defer scratch.remove()
	t.clipped(count, m.Loudness().Invalid)
	var encoded *soundfile.File
	if t.by != nil {
		name, err := scratch.name()
		if err != nil {
			return err
		}
		if encoded, err = t.compressed(name, around); err != nil {
			return err
		}
	}
	w, err := t.job.Create(processor.Output{Type: Type, Extension: t.extension(), Facts: t.facts(notes, m, t.codec)})
	if err != nil {
		return err
	}
	to := stopping{w, t.ctx}
	if encoded != nil {
		err = encoded.Finish(to, notes, around.lead(), t.frames)
	} else {
		err = scratch.copy(to)
	}
	return errors.Join(err, w.Close())
}

// encode writes the sound aside: facts are known when it is complete, but a product gets its facts before its first byte.
func (t *task) encode(o *soundfile.Output, src sound.Source) (*aside, error) {
	bytes := 2*o.Frames*int64(t.format.Channels) + 1<<10
	if t.codec == "qoa" {
		bytes /= 4
	}
	b := newAside(t.job, bytes)
	var err error
	switch t.codec {
	case "qoa":
		err = o.QOA(b, src)
	case "flac":
		err = o.FLAC(b, src)
	case "opus", "vorbis": // for the program, which knows nothing else
		err = o.WAV(b, src, wav.Float, wav.Metadata{})
	default:
		coding := map[string]wav.Coding{"pcm": wav.PCM, "float": wav.Float, "adpcm": wav.IMAADPCM}[t.codec]
		err = o.WAV(b, src, coding, soundfile.Metadata(t.loops, t.markers))
	}
	if err != nil {
		b.remove()
		return nil, err
	}
	return b, nil
}

// bits of a FLAC product: those of the source, if they are integers.
func (t *task) bits() int {
	switch {
	case (t.f.Codec == "pcm" || t.f.Codec == "flac") && t.f.Bits > 16:
		return 24
	case t.f.Codec == "float":
		return 24
	}
	return 16
}

// extension is appended to the name of the source, unless that ends in it.
func (t *task) extension() string {
	ext := extensions[t.codec]
	if strings.EqualFold(path.Ext(t.job.Asset().Path), ext) {
		return ""
	}
	return ext
}

// clipped warns about samples that could not be kept unchanged.
func (t *task) clipped(c *soundfile.Count, invalid int64) {
	if c.Clipped > 0 {
		t.job.Warn(processor.Problem{Code: string(diag.SoundClipped),
			Text: fmt.Sprintf("%d samples are beyond full scale, and were cut to it", c.Clipped),
			Hint: `export it softer, or bake a loudness or a gain, or set codec = "float"`})
	}
	if invalid > 0 {
		t.job.Warn(processor.Problem{Code: string(diag.SoundClipped),
			Text: fmt.Sprintf("%d samples are not finite numbers, and became 0", invalid), Hint: "export it again"})
	}
}

// facts returns the facts of the product.
func (t *task) facts(n *soundfile.Notes, m *sound.Meter, codec string) map[string]string {
	seconds := float64(t.frames) / float64(t.format.Rate)
	f := map[string]string{
		"sound.codec": codec, "sound.channels": strconv.Itoa(t.format.Channels), "sound.rate": strconv.Itoa(t.format.Rate),
		"sound.frames": strconv.FormatInt(t.frames, 10), "sound.seconds": strconv.FormatFloat(math.Round(seconds*1000)/1000, 'f', -1, 64),
		"sound.gain": decimal(n.Gain), "sound.stream": strconv.FormatBool(n.Stream), "sound.markers": strconv.Itoa(len(n.Markers)),
	}
	if len(n.Loops) > 0 {
		l := n.Loops[0]
		f["sound.loop_begin"], f["sound.loop_end"], f["sound.loop"] = strconv.FormatInt(l.Begin, 10), strconv.FormatInt(l.End,
			10), l.Kind.String()
	}
	if m == nil || t.f.Opaque != nil {
		return f
	}
	l := m.Loudness()
	baked := 0.0
	if !n.Silent {
		baked = n.Loudness - round(l.LUFS)
	}
	f["sound.basis"] = l.Basis.String()
	for name, v := range map[string]float64{
		"sound.loudness": l.LUFS, "sound.momentary_max": l.MomentaryMax, "sound.short_term_max": l.ShortTermMax,
		"sound.true_peak": sound.Decibels(l.TruePeak), "sound.sample_peak": sound.Decibels(l.SamplePeak),
	} {
		if !math.IsInf(v, 0) {
			f[name] = decimal(v + baked)
		}
	}
	f["sound.range"] = decimal(l.Range)
	if t.limited != "" {
		f["sound.limited"] = t.limited
	}
	return f
}
