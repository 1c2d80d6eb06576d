package soundfile

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/media/codec/flac"
	"github.com/kiln-pipeline/kiln/internal/media/codec/qoa"
	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
)

// Output has the settings for writing a sound.
type Output struct {
	Frames int64
	Notes  *Notes
	Finish func() // called after all samples are read, to set measured values in the notes; the size of the notes must not change
	Dither bool   // for 16 bits
	Block  int    // bytes of an ADPCM block for each channel
	Bits   int    // for FLAC
	Count  *Count
}

// Count is the number of changed samples.
type Count struct {
	Clipped int64 // beyond full scale
	Invalid int64 // not numbers
}

// pieceFrames is the number of frames that are read at a time: a frame of QOA, which is encoded without a copy.
const pieceFrames = qoa.FrameSamples

// pieces reads a source to its end.
func pieces(src sound.Source, each func(samples []float32) error) error {
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
		if err := each(buf[:n*ch]); err != nil {
			return err
		}
	}
}

func (o *Output) pieces16(src sound.Source, dither bool, each func(samples []int16) error) error {
	c := sound.Int16{Dither: dither}
	var out []int16
	err := pieces(src, func(samples []float32) error {
		if len(out) < len(samples) {
			out = make([]int16, len(samples))
		}
		n := c.Convert(out, samples)
		return each(out[:n])
	})
	o.counted(c.Clipped, c.Invalid)
	return err
}

func (o *Output) counted(clipped, invalid int64) {
	if o.Count != nil {
		o.Count.Clipped += clipped
		o.Count.Invalid += invalid
	}
}

// QOA writes a QOA file, with the notes after its last frame.
func (o *Output) QOA(to io.Writer, src sound.Source) error {
	f := src.Format()
	e, err := qoa.NewEncoder(to, f.Rate, f.Channels, o.Frames)
	if err != nil {
		return err
	}
	if err := o.pieces16(src, false, e.Write); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	b, err := o.notes()
	if err == nil {
		_, err = to.Write(b)
	}
	return err
}

func (o *Output) notes() ([]byte, error) {
	if o.Finish != nil {
		o.Finish()
	}
	return o.Notes.Append(nil)
}

// WAV writes a WAV file with a coding: PCM of 16 bits, float, or IMA ADPCM.
func (o *Output) WAV(to io.Writer, src sound.Source, coding wav.Coding, m wav.Metadata) error {
	f := src.Format()
	format := wav.Format{Rate: f.Rate, Channels: f.Channels, Coding: coding, Mask: uint32(f.Mask)}
	switch coding {
	case wav.PCM:
		format.Bits = 16
	case wav.Float:
		format.Bits = 32
	case wav.IMAADPCM:
		format.Bits, format.Block, format.Mask = 4, o.Block*f.Channels, 0
	}
	var err error
	if m.Private, err = o.Notes.Append(nil); err != nil { // only its size is needed, for the header
		return err
	}
	w, err := wav.NewWriter(to, format, m, o.Frames)
	if err != nil {
		return err
	}
	if coding == wav.Float {
		err = pieces(src, w.Write)
	} else {
		err = o.pieces16(src, o.Dither && coding == wav.PCM, w.Write16)
	}
	if err != nil {
		return err
	}
	if w.Private, err = o.notes(); err != nil {
		return err
	}
	return w.Close()
}

// Metadata returns loops and markers in the form of WAV.
func Metadata(loops []Loop, markers []Marker) (m wav.Metadata) {
	for _, l := range loops {
		m.Loops = append(m.Loops, wav.Loop{Begin: l.Begin, End: l.End, Type: wav.LoopType(l.Kind), Count: uint32(l.Count)})
	}
	for _, p := range markers {
		m.Markers = append(m.Markers, wav.Marker{Name: p.Name, Frame: p.Frame, Length: p.Length})
	}
	return m
}

// FLAC writes a FLAC file. Its notes are comments, which come before the samples, so they must be complete.
func (o *Output) FLAC(to io.WriteSeeker, src sound.Source) error {
	f := src.Format()
	var comments []flac.Comment
	for _, t := range o.Notes.tags(false) {
		comments = append(comments, flac.Comment{Name: t.name, Value: t.value})
	}
	points := int(min(o.Frames/int64(f.Rate)/10, 1000))
	e, err := flac.NewEncoder(to, flac.Format{Rate: f.Rate, Channels: f.Channels, Bits: o.Bits, Mask: uint32(f.Mask)},
		flac.Options{Comments: comments, Points: points}, o.Frames)
	if err != nil {
		return err
	}
	one := math.Ldexp(1, o.Bits-1)
	var out []int32
	var clipped, invalid int64
	err = pieces(src, func(samples []float32) error {
		out = out[:0]
		for _, v := range samples {
			x := math.RoundToEven(float64(v) * one)
			switch {
			case v != v:
				x = 0
				invalid++
			case x < -one || x > one-1:
				x = min(max(x, -one), one-1)
				clipped++
			}
			out = append(out, int32(x))
		}
		return e.Write(out)
	})
	o.counted(clipped, invalid)
	if err != nil {
		return err
	}
	return e.Close()
}

type tag struct{ name, value string }

// markerTag is the name of a marker in comments and tags. Its value is the frame, a plus and the length if there is
// one, a space, and the name.
const markerTag = "KILN_MARKER"

// tags returns the notes as comments of Vorbis, FLAC and Opus and as texts of MP3. It uses names that players know
// where there are any. In Opus the gain is in units of 1/256 dB.
func (n *Notes) tags(opus bool) (all []tag) {
	if n.Gain != 0 {
		if opus {
			all = append(all, tag{"R128_TRACK_GAIN", strconv.Itoa(int(math.Round(n.Gain * 256)))})
		} else {
			all = append(all, tag{"REPLAYGAIN_TRACK_GAIN", fmt.Sprintf("%.2f dB", n.Gain)})
		}
	}
	if !n.Silent && !opus {
		all = append(all, tag{"REPLAYGAIN_TRACK_PEAK", fmt.Sprintf("%.6f", sound.Amplitude(n.TruePeak))})
	}
	if len(n.Loops) > 0 {
		l := n.Loops[0]
		all = append(all, tag{"LOOPSTART", strconv.FormatInt(l.Begin, 10)}, tag{"LOOPLENGTH", strconv.FormatInt(l.End-l.Begin, 10)})
	}
	for _, m := range n.Markers {
		text := strconv.FormatInt(m.Frame, 10)
		if m.Length > 0 {
			text += "+" + strconv.FormatInt(m.Length, 10)
		}
		all = append(all, tag{markerTag, text + " " + m.Name})
	}
	return all
}
