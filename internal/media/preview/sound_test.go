package preview

import (
	"bytes"
	"math"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// loud returns a second of a sine as QOA, with a gain, a loop and a marker.
func loud(t testing.TB) []byte {
	all := make([]float32, 2*48000)
	for i := range all {
		all[i] = float32(0.1 * math.Sin(2*math.Pi*1000*float64(i/2)/48000))
	}
	o := soundfile.Output{Frames: 48000, Notes: &soundfile.Notes{Gain: 6, Loops: []soundfile.Loop{{Begin: 5, End: 40000}},
		Markers: []soundfile.Marker{{Name: "hit", Frame: 9}}}}
	var b bytes.Buffer
	if err := o.QOA(&b, sound.Samples(sound.Format{Rate: 48000, Channels: 2}, all)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSound checks the facts for a page, and what it plays: with the gain noted in the file, and at a given level.
func TestSound(t *testing.T) {
	data := loud(t)
	s, err := SoundOf(data)
	if err != nil || s.Codec != "qoa" || s.Frames != 48000 || s.Gain != 6 || len(s.Curve) != 10 || s.Loops[0].End != 40000 ||
		s.Markers[0].Name != "hit" ||
		math.Abs(s.LUFS+20) > 0.2 {
		t.Fatalf("%v, %+v", err, s)
	}
	for level, want := range map[float64]float64{0: s.LUFS + 6, -30: -30} {
		wav, err := Listen(data, level)
		if err != nil {
			t.Fatal(err)
		}
		f, err := soundfile.Open(bytes.NewReader(wav), int64(len(wav)))
		if err != nil || f.Codec != "pcm" || f.Frames != 48000 {
			t.Fatalf("%v, %+v", err, f)
		}
		src, _ := f.Source()
		if l, err := sound.Measure(src, sound.MeterOptions{}); err != nil || math.Abs(l.LUFS-want) > 0.1 {
			t.Errorf("at level %v it is %v LUFS, want %v; %v", level, l.LUFS, want, err)
		}
	}
	if _, err := Listen([]byte("no sound"), 0); err == nil {
		t.Error("what is no sound is played")
	}
}
