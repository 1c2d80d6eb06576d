package preview

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// Limits for sounds.
const (
	maxSoundBytes = 128 << 20 // size of the WAV file that a browser plays
	curvePoints   = 1500
)

// SoundFacts is what a page shows of a sound besides its waveform.
type SoundFacts struct {
	Codec    string        `json:"codec"`
	Rate     int           `json:"rate"`
	Channels int           `json:"channels"`
	Frames   int64         `json:"frames"`
	Loops    []SoundLoop   `json:"loops"`
	Markers  []SoundMarker `json:"markers"`
	Gain     float64       `json:"gain"` // in dB
	LUFS     float64       `json:"lufs"` // before the gain; -120 for silence
	TruePeak float64       `json:"true_peak"`
	Curve    []float64     `json:"curve"` // momentary loudness at equal steps, -120 for silence
}

// SoundLoop is a range of frames; End is the first frame after it. SoundMarker is a frame with a name.
type (
	SoundLoop   struct{ Begin, End int64 }
	SoundMarker struct {
		Name  string
		Frame int64
	}
)

var errLong = errors.New("the sound is too long to be shown")

// openSound opens a sound. It returns an error if the sound is too long.
func openSound(data []byte) (*soundfile.File, sound.Source, error) {
	f, err := soundfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	if f.Frames > maxSoundBytes/2/int64(f.Format.Channels) {
		return nil, nil, errLong
	}
	src, err := f.Source()
	return f, src, err
}

// finite returns a loudness that JSON can represent: at least -120.
func finite(v float64) float64 { return max(v, -120) }

// SoundOf measures a sound.
func SoundOf(data []byte) (*SoundFacts, error) {
	f, src, err := openSound(data)
	if err != nil {
		return nil, err
	}
	m, err := sound.NewMeter(src, sound.MeterOptions{})
	if err != nil {
		return nil, err
	}
	buf := make([]float32, 8192*f.Format.Channels)
	for err == nil {
		_, err = m.Read(buf)
	}
	if err != io.EOF {
		return nil, err
	}
	l := m.Loudness()
	s := &SoundFacts{
		Codec: f.Codec, Rate: f.Format.Rate, Channels: f.Format.Channels, Frames: f.Frames, Loops: []SoundLoop{}, Markers: []SoundMarker{},
		LUFS: finite(l.LUFS), TruePeak: finite(sound.Decibels(l.TruePeak)), Curve: []float64{},
	}
	if f.Notes != nil {
		s.Gain = f.Notes.Gain
	}
	for _, x := range f.Loops {
		s.Loops = append(s.Loops, SoundLoop{x.Begin, x.End})
	}
	for _, x := range f.Markers[:min(len(f.Markers), 200)] {
		s.Markers = append(s.Markers, SoundMarker{x.Name, x.Frame})
	}
	curve := m.MomentaryCurve()
	n := min(len(curve), curvePoints)
	for i := range n {
		loudest := math.Inf(-1)
		for _, v := range curve[i*len(curve)/n : max(i*len(curve)/n+1, (i+1)*len(curve)/n)] {
			loudest = max(loudest, float64(v))
		}
		s.Curve = append(s.Curve, math.Round(finite(loudest)*10)/10)
	}
	return s, nil
}

// Listen converts a sound to a WAV file that every browser plays. It applies the gain noted in the file; if level is
// below 0, it applies the gain that makes the sound as loud as level, in LUFS.
func Listen(data []byte, level float64) ([]byte, error) {
	f, src, err := openSound(data)
	if err != nil {
		return nil, err
	}
	gain := 0.0
	if f.Notes != nil {
		gain = f.Notes.Gain
	}
	if level < 0 {
		l, err := sound.Measure(src, sound.MeterOptions{})
		if err != nil {
			return nil, err
		}
		if gain = 0; l.Basis != sound.Silent {
			gain = level - l.LUFS
		}
		if src, err = f.Source(); err != nil {
			return nil, err
		}
	}
	if f.Format.Channels > 2 {
		src = sound.Stereo(src)
	}
	if gain != 0 {
		src = sound.Gain(src, sound.Amplitude(max(-60, min(gain, 60))))
	}
	var b bytes.Buffer
	o := soundfile.Output{Frames: f.Frames, Notes: &soundfile.Notes{}}
	err = o.WAV(&b, src, wav.PCM, wav.Metadata{})
	return b.Bytes(), err
}
