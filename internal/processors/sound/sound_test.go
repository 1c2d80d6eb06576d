package sound

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ogg"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tracker"
	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/placeholder"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// sine is a WAV file of a sine of 16 bits.
func sine(t testing.TB, rate, channels, frames int, hz, amplitude float64, m wav.Metadata) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := wav.NewWriter(&b, wav.Format{Rate: rate, Channels: channels, Coding: wav.PCM, Bits: 16}, m, int64(frames))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float32, 0, frames*channels)
	for i := range frames {
		for range channels {
			all = append(all, float32(amplitude*math.Sin(2*math.Pi*hz*float64(i)/float64(rate))))
		}
	}
	if err := w.Write(all); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func with(change func(*Settings)) *Settings {
	s := Defaults()
	if change != nil {
		change(&s)
	}
	return &s
}

// run makes a sound of a file, and opens it.
func run(t testing.TB, name string, data []byte, s *Settings) (*soundfile.File, processortest.Result) {
	t.Helper()
	if s == nil {
		s = with(nil)
	}
	r := processortest.Run(t, New(), processortest.Case{Asset: name, Files: map[string][]byte{name: data}, Settings: s})
	if r.Err != nil {
		t.Fatalf("%s: %v", name, r.Err)
	}
	p := r.Products[""].Data
	f, err := soundfile.Open(bytes.NewReader(p), int64(len(p)))
	if err != nil {
		t.Fatalf("%s: product: %v", name, err)
	}
	return f, r
}

func number(t testing.TB, r processortest.Result, fact string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r.Products[""].Facts["sound."+fact], 64)
	if err != nil {
		t.Fatalf("fact %s: %v of %v", fact, err, r.Products[""].Facts)
	}
	return v
}

func samples(t testing.TB, f *soundfile.File) []float32 {
	t.Helper()
	src, err := f.Source()
	if err != nil {
		t.Fatal(err)
	}
	all, err := sound.All(src)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every codec keeps frames, loops and markers; the name is that of the codec.
func TestCodecs(t *testing.T) {
	m := wav.Metadata{Loops: []wav.Loop{{Begin: 1000, End: 20000}}, Markers: []wav.Marker{{Name: "hit", Frame: 77, Length: 3}}}
	data := sine(t, 44100, 2, 30011, 441, 0.5, m)
	for codec, ext := range map[string]string{"auto": ".qoa", "qoa": ".qoa", "pcm": "", "wav": "", "float": "", "adpcm": "",
		"flac": ".flac"} {
		f, r := run(t, "a.wav", data, with(func(s *Settings) { s.Codec = codec }))
		if p := r.Products[""]; p.Type != Type || p.Extension != ext {
			t.Errorf("%s: type %q, extension %q", codec, p.Type, p.Extension)
		}
		if f.Frames != 30011 || number(t, r, "frames") != 30011 {
			t.Errorf("%s: %d frames", codec, f.Frames)
		}
		if !slices.Equal(f.Loops, []soundfile.Loop{{Begin: 1000, End: 20000}}) || !slices.Equal(f.Markers,
			[]soundfile.Marker{{Name: "hit", Frame: 77, Length: 3}}) {
			t.Errorf("%s: loops %v, markers %v", codec, f.Loops, f.Markers)
		}
		if number(t, r, "loop_begin") != 1000 || number(t, r, "loop_end") != 20000 || len(r.Warnings) > 0 {
			t.Errorf("%s: facts %v, warnings %v", codec, r.Products[""].Facts, r.Warnings)
		}
		want := samples(t, must(t, data))
		got := samples(t, f)
		for i := range want {
			if d := math.Abs(float64(want[i] - got[i])); d > map[string]float64{"pcm": 0, "wav": 0, "float": 0, "flac": 0,
				"adpcm": 0.2}[codec] && d > 0.01 && codec != "adpcm" {
				t.Fatalf("%s: sample %d is off by %g", codec, i, d)
			}
		}
	}
}

func must(t testing.TB, data []byte) *soundfile.File {
	t.Helper()
	f, err := soundfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A sine of 997 Hz at -23 dBFS in both channels is -23 LUFS by definition (EBU Tech 3341, 1).
func TestGain(t *testing.T) {
	data := sine(t, 48000, 2, 48000*3, 1000, sound.Amplitude(-33), wav.Metadata{})
	f, r := run(t, "a.wav", data, nil)
	if l := number(t, r, "loudness"); math.Abs(l+33) > 0.1 || number(t, r, "gain") != 0 || f.Notes.Gain != 0 ||
		math.Abs(f.Notes.Loudness+33) > 0.1 {
		t.Errorf("loudness %v, notes %+v", l, f.Notes)
	}
	f, r = run(t, "a.wav", data, with(func(s *Settings) { s.Loudness = -23 }))
	if g := number(t, r, "gain"); math.Abs(g-10) > 0.1 || math.Abs(f.Notes.Gain-g) > 1e-5 {
		t.Errorf("gain %v, notes %+v", g, f.Notes)
	}
	if _, r = run(t, "a.wav", data, with(func(s *Settings) { s.Loudness, s.TruePeak = -3, -6 })); math.Abs(number(t, r,
		"gain")-27) > 0.1 {
		t.Errorf("gain %v: the peak is to be at -6 dBTP", number(t, r, "gain"))
	}
	f, r = run(t, "a.wav", data, with(func(s *Settings) { s.Loudness, s.Bake, s.Codec = -23, true, "float" }))
	l, err := func() (sound.Loudness, error) {
		src, _ := f.Source()
		return sound.Measure(src, sound.MeterOptions{})
	}()
	if err != nil || math.Abs(l.LUFS+23) > 0.1 || f.Notes.Gain != 0 || math.Abs(number(t, r, "loudness")+23) > 0.1 {
		t.Errorf("baked: %v LUFS, %v, notes %+v", l.LUFS, err, f.Notes)
	}
	// A gain by hand is not lifted beyond the peak, and not turned round.
	if _, r = run(t, "a.wav", sine(t, 48000, 1, 48000, 1000, 0.999, wav.Metadata{}),
		with(func(s *Settings) { s.Gain = 6 })); number(t, r, "gain") != 0 {
		t.Errorf("gain %v of a sound at full scale", number(t, r, "gain"))
	}
}

// A gain that true_peak limits is a fact, with the loudness that is asked and the one that is reached.
func TestLimited(t *testing.T) {
	quiet := sine(t, 48000, 2, 48000*3, 1000, sound.Amplitude(-33), wav.Metadata{}) // of -32.99 LUFS
	for _, c := range []struct {
		name, want string
		set        func(s *Settings)
	}{
		{"nothing asked", "", func(s *Settings) {}},
		{"reached", "", func(s *Settings) { s.Loudness = -23 }},
		{"softer", "", func(s *Settings) { s.Loudness = -40 }},
		{"loudness", "loudness -3 asked, -5.99 reached: limited by true_peak", func(s *Settings) { s.Loudness, s.TruePeak = -3, -6 }},
		{"with a gain", "loudness -23 and gain 20 asked, -5.99 reached: limited by true_peak",
			func(s *Settings) { s.Loudness, s.Gain, s.TruePeak = -23, 20, -6 }},
		{"baked", "loudness -3 asked, -5.99 reached: limited by true_peak",
			func(s *Settings) { s.Loudness, s.TruePeak, s.Bake = -3, -6, true }},
		{"a gain alone", "gain 30 asked, 27 reached: limited by true_peak", func(s *Settings) { s.Gain, s.TruePeak = 30, -6 }},
		{"a gain that does not lift", "", func(s *Settings) { s.Gain, s.TruePeak = -1, -20 }},
	} {
		if _, r := run(t, "a.wav", quiet, with(c.set)); r.Products[""].Facts["sound.limited"] != c.want || len(r.Warnings) > 0 {
			t.Errorf("%s: %q, want %q; gain %v, warnings %v", c.name, r.Products[""].Facts["sound.limited"], c.want, number(t, r, "gain"),
				r.Warnings)
		}
	}
	silent := sine(t, 48000, 1, 4800, 1000, 0, wav.Metadata{})
	if _, r := run(t, "a.wav", silent, with(func(s *Settings) { s.Loudness = -3 })); r.Products[""].Facts["sound.limited"] != "" {
		t.Errorf("silence: facts %v", r.Products[""].Facts)
	}
}

// What is shorter than 0.4 s is measured by its momentary maximum, and the product says so.
func TestShort(t *testing.T) {
	f, r := run(t, "a.wav", sine(t, 48000, 1, 4800, 1000, 0.5, wav.Metadata{}), nil)
	if r.Products[""].Facts["sound.basis"] != "momentary" || !f.Notes.Momentary {
		t.Errorf("facts %v, notes %+v", r.Products[""].Facts, f.Notes)
	}
	f, r = run(t, "a.wav", sine(t, 48000, 1, 4800, 1000, 0, wav.Metadata{}), with(func(s *Settings) { s.Loudness = -23 }))
	if r.Products[""].Facts["sound.basis"] != "silent" || !f.Notes.Silent || f.Notes.Gain != 0 ||
		r.Products[""].Facts["sound.loudness"] != "" {
		t.Errorf("silence: facts %v, notes %+v", r.Products[""].Facts, f.Notes)
	}
}

// Resampling moves a loop, keeps it whole, and its seam without a click.
func TestLoopResampled(t *testing.T) {
	const period = 100 // frames of 441 Hz
	data := sine(t, 44100, 1, 400*period, 441, 0.5, wav.Metadata{Loops: []wav.Loop{{Begin: 100 * period, End: 400 * period}},
		Markers: []wav.Marker{{Frame: 44100 / 2}}})
	f, r := run(t, "a.wav", data, with(func(s *Settings) { s.Rate, s.Codec = 48000, "float" }))
	if f.Format.Rate != 48000 || len(f.Loops) != 1 || len(r.Warnings) > 0 {
		t.Fatalf("rate %d, loops %v, %v", f.Format.Rate, f.Loops, r.Warnings)
	}
	l := f.Loops[0]
	if got, want := l.End-l.Begin, int64(math.Round(300*period*48000/44100.0)); got != want || l.End > f.Frames {
		t.Errorf("loop %v of %d frames is %d long, want %d", l, f.Frames, got, want)
	}
	if f.Markers[0].Frame != 24000 {
		t.Errorf("marker at %d", f.Markers[0].Frame)
	}
	all := samples(t, f)
	// Across the seam the sine goes on: what it would be by its last samples is what comes after the jump.
	w := 2 * math.Pi * 441 / 48000
	for k := range int64(200) {
		prev, this := all[l.End-2-k], all[l.End-1-k]
		if k == 0 {
			next := 2*math.Cos(w)*float64(this) - float64(prev)
			if d := math.Abs(next - float64(all[l.Begin])); sound.Decibels(d) > -90 {
				t.Errorf("the seam is off by %.1f dB", sound.Decibels(d))
			}
		}
	}
}

// The settings say what of a loop is so.
func TestLoopSettings(t *testing.T) {
	data := sine(t, 44100, 1, 1000, 441, 0.5, wav.Metadata{Loops: []wav.Loop{{Begin: 10, End: 20}}})
	if f, _ := run(t, "a.wav", data, with(func(s *Settings) { s.Loop = "none" })); len(f.Loops) != 0 {
		t.Errorf("none: %v", f.Loops)
	}
	f, r := run(t, "a.wav", data, with(func(s *Settings) { s.Loop, s.LoopBegin = "ping-pong", 100 }))
	if !slices.Equal(f.Loops, []soundfile.Loop{{Begin: 100, End: 1000, Kind: soundfile.PingPong}}) ||
		r.Products[""].Facts["sound.loop"] != "ping-pong" {
		t.Errorf("ping-pong: %v", f.Loops)
	}
	r = processortest.Run(t, New(), processortest.Case{Asset: "a.wav", Files: map[string][]byte{"a.wav": data},
		Settings: with(func(s *Settings) { s.Loop, s.LoopEnd = "forward", 1001 })})
	if p := processortest.Problems(r.Err); len(p) != 1 || p[0].Code != string(diag.SoundLoop) {
		t.Errorf("a loop beyond the end: %v", r.Err)
	}
	if _, r = run(t, "a.wav", data, with(func(s *Settings) { s.LoopEnd = 50 })); len(r.Warnings) != 1 ||
		r.Warnings[0].Code != string(diag.SoundLoop) {
		t.Errorf("loop_end without loop: %v", r.Warnings)
	}
}

// Silence goes from both ends, but nothing of a loop. Fades begin and end silent.
func TestTrimAndFade(t *testing.T) {
	body := sine(t, 48000, 1, 4800, 1000, 0.5, wav.Metadata{})
	tone := samples(t, must(t, body))
	all := append(append(make([]float32, 9600), tone...), make([]float32, 9600)...)
	make_ := func(m wav.Metadata) []byte {
		var b bytes.Buffer
		w, _ := wav.NewWriter(&b, wav.Format{Rate: 48000, Channels: 1, Coding: wav.PCM, Bits: 16}, m, int64(len(all)))
		w.Write(all)
		w.Close()
		return b.Bytes()
	}
	f, _ := run(t, "a.wav", make_(wav.Metadata{}), with(func(s *Settings) { s.Trim = true }))
	if n := f.Frames; n < 4800+2*230 || n > 4800+2*240 {
		t.Errorf("%d frames", n)
	}
	f, _ = run(t, "a.wav", make_(wav.Metadata{Loops: []wav.Loop{{Begin: 5000, End: 20000}}, Markers: []wav.Marker{{Frame: 4000},
		{Frame: 9600}}}), with(func(s *Settings) { s.Trim = true }))
	if l := f.Loops[0]; f.Frames != 15000 || l.Begin != 0 || l.End != 15000 || len(f.Markers) != 1 || f.Markers[0].Frame != 4600 {
		t.Errorf("%d frames, loop %v, markers %v", f.Frames, l, f.Markers)
	}
	f, _ = run(t, "a.wav", body, with(func(s *Settings) { s.FadeIn, s.FadeOut, s.Codec = 0.01, 0.02, "float" }))
	faded := samples(t, f)
	if faded[0] != 0 || faded[4799] != 0 || faded[2412] != tone[2412] || math.Abs(float64(faded[252])) > math.Abs(float64(tone[252])) {
		t.Errorf("fades: %v %v %v", faded[0], faded[4799], faded[2412])
	}
}

// Ogg, Opus and MP3 are handed on to the byte; with a gain or another loop only tags are other.
func TestKept(t *testing.T) {
	for _, name := range []string{"tone.ogg", "tone.opus", "tone.mp3"} {
		data, err := os.ReadFile("../../media/soundfile/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		f, r := run(t, name, data, nil)
		if p := r.Products[""]; !bytes.Equal(p.Data, data) || p.Extension != "" || len(r.Warnings) > 0 {
			t.Errorf("%s: %d bytes of %d, extension %q, %v", name, len(p.Data), len(data), p.Extension, r.Warnings)
		}
		want := samples(t, f)
		if number(t, r, "frames") != 24321 || number(t, r, "loop_end") != 21001 {
			t.Errorf("%s: facts %v", name, r.Products[""].Facts)
		}
		f, r = run(t, name, data, with(func(s *Settings) { s.Loudness, s.Loop, s.LoopBegin, s.LoopEnd = -30, "forward", 5, 500 }))
		if got := samples(t, f); !slices.Equal(got, want) || f.Loops[0] != (soundfile.Loop{Begin: 5, End: 500}) || number(t, r,
			"gain") >= 0 {
			t.Errorf("%s: loops %v, facts %v", name, f.Loops, r.Products[""].Facts)
		}
		_, r = run(t, name, data, with(func(s *Settings) { s.Channels, s.Trim = "mono", true }))
		if len(r.Warnings) != 1 || r.Warnings[0].Code != string(diag.SoundAsItIs) || !strings.Contains(r.Warnings[0].Text,
			"channels, trim") {
			t.Errorf("%s: %v", name, r.Warnings)
		}
		f, r = run(t, name, data, with(func(s *Settings) { s.Codec = "qoa" }))
		if f.Codec != "qoa" || f.Frames != 24321 || r.Products[""].Extension != ".qoa" {
			t.Errorf("%s: %s, %d frames", name, f.Codec, f.Frames)
		}
	}
}

// The first of several variations makes the list, in the order of numbers; the others look for none again when one comes.
func TestVariations(t *testing.T) {
	files := map[string][]byte{}
	data := sine(t, 8000, 1, 100, 441, 0.5, wav.Metadata{})
	for _, n := range []string{"a/step_1.wav", "a/step_2.wav", "a/step_10.wav", "a/step_x.wav", "a/stepping_3.wav",
		"a/step_3.ogg", "b/step_4.wav", "a/alone_1.wav", "a/2.wav"} {
		files[n] = data
	}
	for asset, want := range map[string][]string{"a/step_1.wav": {"a/step_1.wav", "a/step_2.wav", "a/step_10.wav"},
		"a/step_2.wav": nil, "a/alone_1.wav": nil, "a/2.wav": nil} {
		r := processortest.Run(t, New(), processortest.Case{Asset: asset, Files: files})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		p, ok := r.Products[listPart]
		if !ok && want == nil {
			continue
		}
		var list struct {
			Name       string
			Variations []struct{ Asset, UUID string }
		}
		if err := json.Unmarshal(p.Data, &list); err != nil {
			t.Fatalf("%s: %v of %q", asset, err, p.Data)
		}
		var got []string
		for _, v := range list.Variations {
			got = append(got, v.Asset)
		}
		if !slices.Equal(got, want) || list.Name != "step" || len(p.References) != len(want) || p.Type != ListType {
			t.Errorf("%s: %+v, references %v", asset, list, p.References)
		}
		if slices.ContainsFunc(r.Observations, func(o string) bool { return strings.HasPrefix(o, "glob") }) {
			t.Errorf("%s: the job itself lists files: %v", asset, r.Observations)
		}
	}
	if r := processortest.Run(t, New(), processortest.Case{Asset: "a/step_1.wav", Files: files,
		Settings: with(func(s *Settings) { s.Variations = false })}); len(r.Products) != 1 {
		t.Errorf("variations = false makes %d products", len(r.Products))
	}
}

// Every code comes of a file or a setting, with a hint.
func TestProblems(t *testing.T) {
	good := sine(t, 48000, 1, 4800, 1000, 0.5, wav.Metadata{})
	var loud bytes.Buffer
	w, _ := wav.NewWriter(&loud, wav.Format{Rate: 48000, Channels: 1, Coding: wav.Float, Bits: 32}, wav.Metadata{}, 2)
	w.Write([]float32{2, float32(math.NaN())})
	w.Close()
	many := sine(t, 48000, 10, 480, 1000, 0.5, wav.Metadata{})
	for _, c := range []struct {
		name  string
		data  []byte
		s     *Settings
		code  diag.Code
		fails bool
	}{
		{"a.wav", []byte("not a sound"), nil, diag.SoundUnreadable, true},
		{"a.wav", good[:20], nil, diag.SoundUnreadable, true},
		{"a.wav", good[:44], nil, diag.SoundUnreadable, true},
		{"a.ogg", []byte("OggS"), nil, diag.SoundUnreadable, true},
		{"a.wav", good[:len(good)-1000], nil, diag.SoundDamaged, false},
		{"a.ogg", good, nil, diag.SoundMisnamed, false},
		{"a.wav", loud.Bytes(), nil, diag.SoundClipped, false},
		{"a.wav", many, nil, diag.SoundLimit, true},
		{"a.wav", good, with(func(s *Settings) { s.Rate = 50 }), diag.SoundLimit, true},
	} {
		if c.s == nil {
			c.s = with(nil)
		}
		r := processortest.Run(t, New(), processortest.Case{Asset: c.name, Files: map[string][]byte{c.name: c.data}, Settings: c.s})
		var all []processor.Problem
		for _, p := range processortest.Problems(r.Err) {
			all = append(all, *p)
		}
		if (r.Err != nil) != c.fails {
			t.Errorf("%s of %d bytes: %v", c.name, len(c.data), r.Err)
		}
		all = append(all, r.Warnings...)
		if len(all) == 0 || all[0].Code != string(c.code) || all[0].Hint == "" || all[0].Text == "" {
			t.Errorf("%s of %d bytes: %+v, want %s", c.name, len(c.data), all, c.code)
		}
	}
	if f, _ := run(t, "a.wav", many, with(func(s *Settings) { s.Codec = "pcm" })); f.Format.Channels != 10 {
		t.Errorf("%d channels", f.Format.Channels)
	}
}

// Four minutes of 48 kHz stereo, 46 MB of PCM, take less than a fifth of that in all allocations together.
func TestStreams(t *testing.T) {
	head := sine(t, 48000, 2, 1, 1000, 0, wav.Metadata{})[:44]
	const frames = 48000 * 60 * 4
	size := int64(44 + frames*4)
	put := func(at int, v uint32) {
		head[at], head[at+1], head[at+2], head[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	put(4, uint32(size-8))
	put(40, uint32(frames*4))
	j := &streamJob{Job: nil, in: &long{head: head, size: size}, dir: t.TempDir(), s: with(nil)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := New().Process(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 9<<20 || j.written < 8<<20 {
		t.Errorf("allocated %d bytes in all, wrote %d", grew, j.written)
	}
}

type streamJob struct {
	processor.Job
	in      *long
	dir     string
	s       *Settings
	written int64
}

func (j *streamJob) Asset() processor.Asset                          { return processor.Asset{ID: "a.wav", Path: "a.wav"} }
func (j *streamJob) Settings() any                                   { return j.s }
func (j *streamJob) Source() (processor.File, error)                 { return j.in, nil }
func (j *streamJob) Scratch() (string, error)                        { return j.dir, nil }
func (j *streamJob) Warn(processor.Problem)                          {}
func (j *streamJob) Create(processor.Output) (io.WriteCloser, error) { return counting{j}, nil }

type counting struct{ j *streamJob }

func (c counting) Write(p []byte) (int, error) { c.j.written += int64(len(p)); return len(p), nil }
func (c counting) Close() error                { return nil }

// long is a file that is never in memory: a head, and then bytes that are some sound.
type long struct {
	processor.File
	head []byte
	size int64
}

func (l *long) Size() int64  { return l.size }
func (l *long) Close() error { return nil }
func (l *long) ReadAt(p []byte, at int64) (int, error) {
	n := int(min(int64(len(p)), l.size-at))
	for i := range p[:n] {
		if k := at + int64(i); k < int64(len(l.head)) {
			p[i] = l.head[k]
		} else if k&1 == 1 {
			p[i] = byte(k>>7) & 15
		} else {
			p[i] = byte(k)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := processortest.RunContext(t, ctx, New(), processortest.Case{Asset: "a.wav", Files: map[string][]byte{"a.wav": sine(t,
		48000, 1, 480000, 1000, 0.5, wav.Metadata{})}})
	if r.Err == nil {
		t.Error("it goes on after it was stopped")
	}
}

// fakes are programs that make silence with a random serial number and comments of their own, as real ones do.
func fakes(t *testing.T, programs ...string) processortest.Case {
	t.Helper()
	c := processortest.Case{Asset: "a.wav", Files: map[string][]byte{"a.wav": placeholder.WAV()},
		Tools: map[string]string{}, Programs: map[string]processortest.Program{}}
	for i, name := range programs {
		c.Tools[name] = "/bin/" + name
		c.Programs[name] = func(c processor.Command) (processor.Result, error) {
			if f := must(t, c.Files["a.wav"]); f.Codec != "float" {
				t.Errorf("%s was given %s", name, f.Codec)
			}
			data := placeholder.Vorbis()
			if strings.Contains(strings.Join(c.Args, " "), "opus") {
				data = placeholder.Opus()
			}
			r, err := ogg.NewReader(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				return processor.Result{}, err
			}
			var out bytes.Buffer
			err = ogg.Rewrite(&out, r, rand.Uint32(), name, []string{"ENCODER=" + strconv.Itoa(i)})
			return processor.Result{Files: map[string][]byte{made: out.Bytes()}}, err
		}
	}
	return c
}

// What a program makes of the same sound is the same file each time; its pages are Kiln's, with the notes.
func TestPrograms(t *testing.T) {
	for _, test := range []struct {
		codec     string
		installed []string
		run       string
		ext       string
	}{
		{"opus", []string{"opusenc", "ffmpeg"}, "opusenc --quiet --serial 0 --discard-comments --discard-pictures --bitrate 64 ./a.wav",
			".opus"},
		{"opus", []string{"ffmpeg"}, "-c:a libopus -b:a 64k -f ogg ../out/sound.ogg", ".opus"},
		{"vorbis", []string{"oggenc", "ffmpeg"}, "oggenc -Q --serial 0 -o ../out/sound.ogg -q 4 ./a.wav", ".ogg"},
		{"vorbis", []string{"ffmpeg"}, "-c:a libvorbis -q:a 4 -f ogg ../out/sound.ogg", ".ogg"},
	} {
		c := fakes(t, test.installed...)
		c.Settings = with(func(s *Settings) { s.Codec, s.Loop, s.LoopEnd = test.codec, "forward", 4000 })
		var first []byte
		for range 2 {
			r := processortest.Run(t, New(), c)
			if r.Err != nil || len(r.Warnings) > 0 {
				t.Fatalf("%s: %v, %v", test.codec, r.Err, r.Warnings)
			}
			p := r.Products[""]
			if first == nil {
				first = p.Data
			}
			if !bytes.Equal(p.Data, first) || p.Extension != test.ext || p.Facts["sound.codec"] != test.codec ||
				p.Facts["sound.loop_end"] != "4000" {
				t.Errorf("%s: %d bytes, %s, %v", test.codec, len(p.Data), p.Extension, p.Facts)
			}
			f := must(t, p.Data)
			if f.Frames != 4800 || !slices.Equal(f.Tags, []string{"LOOPSTART=0", "LOOPLENGTH=4000"}) {
				t.Errorf("%s: %d frames, %q", test.codec, f.Frames, f.Tags)
			}
			if seen := strings.Join(r.Observations, "\n"); !strings.Contains(seen, test.run) {
				t.Errorf("%s: observed %s", test.codec, seen)
			}
		}
	}
}

func TestProgramsFail(t *testing.T) {
	c := fakes(t)
	c.Settings = with(func(s *Settings) { s.Codec = "opus" })
	code := func() string {
		all := processortest.Problems(processortest.Run(t, New(), c).Err)
		if len(all) != 1 {
			return ""
		}
		return all[0].Code
	}
	if got := code(); got != string(diag.SoundEncoder) {
		t.Errorf("nothing is installed: %s", got)
	}
	c = fakes(t, "opusenc")
	c.Settings = with(func(s *Settings) { s.Codec = "opus" })
	c.Files["a.wav"] = sine(t, 48000, 1, 4801, 1000, 0.5, wav.Metadata{})
	if got := code(); got != string(diag.SoundEncoded) {
		t.Errorf("a frame too few: %s", got)
	}
	c.Files["a.wav"] = placeholder.WAV()
	c.Programs["opusenc"] = func(processor.Command) (processor.Result, error) { return processor.Result{}, nil }
	if got := code(); got != string(diag.SoundEncoded) {
		t.Errorf("no file: %s", got)
	}
	c.Programs["opusenc"] = func(processor.Command) (processor.Result, error) {
		return processor.Result{Files: map[string][]byte{made: placeholder.Vorbis()}}, nil
	}
	if got := code(); got != string(diag.SoundEncoded) {
		t.Errorf("another codec: %s", got)
	}
}

// A sound that has the codec already, and that nothing changes, is handed on: no program runs.
func TestSameCodec(t *testing.T) {
	for codec, data := range map[string][]byte{"opus": placeholder.Opus(), "vorbis": placeholder.Vorbis()} {
		f, r := run(t, "a.ogg", data, with(func(s *Settings) { s.Codec = codec }))
		if !bytes.Equal(r.Products[""].Data, data) || f.Codec != codec || r.Products[""].Extension != "" {
			t.Errorf("%s: %d bytes of %s, %q", codec, len(r.Products[""].Data), f.Codec, r.Products[""].Extension)
		}
		c := processortest.Case{Asset: "a.ogg", Files: map[string][]byte{"a.ogg": data}, Settings: with(func(s *Settings) {
			s.Codec, s.Channels = codec, "stereo"
		})}
		if all := processortest.Problems(processortest.Run(t, New(), c).Err); len(all) != 1 || all[0].Code != string(diag.SoundEncoder) {
			t.Errorf("%s in stereo: %v", codec, all)
		}
	}
}

// A tracker module is handed on with what it says of itself, whatever the settings; so is what is only called like one.
func TestModules(t *testing.T) {
	for _, f := range []tracker.Format{tracker.MOD, tracker.XM, tracker.S3M, tracker.IT} {
		data := tracker.Silent(f)
		for name, warnings := range map[string]int{"a." + string(f): 0, "a.wav": 1} {
			r := processortest.Run(t, New(), processortest.Case{Asset: name, Files: map[string][]byte{name: data},
				Settings: with(func(s *Settings) { s.Codec, s.Loudness = "opus", -23 })})
			p := r.Products[""]
			if r.Err != nil || !bytes.Equal(p.Data, data) || p.Extension != "" || len(r.Warnings) != warnings {
				t.Errorf("%s: %v, %d bytes, %q, %v", name, r.Err, len(p.Data), p.Extension, r.Warnings)
			}
			if p.Facts["sound.codec"] != string(f) || p.Facts["sound.title"] != "silence" || p.Facts["sound.patterns"] != "1" {
				t.Errorf("%s: %v", name, p.Facts)
			}
		}
	}
	other := []byte("module of a program")
	r := processortest.Run(t, New(), processortest.Case{Asset: "a.mod", Files: map[string][]byte{"a.mod": other}, Settings: with(nil)})
	if r.Err != nil || !bytes.Equal(r.Products[""].Data, other) || len(r.Warnings) != 1 || r.Warnings[0].Code != string(diag.SoundMisnamed) {
		t.Errorf("%v, %v", r.Err, r.Warnings)
	}
	cut := tracker.Silent(tracker.MOD)
	r = processortest.Run(t, New(), processortest.Case{Asset: "a.mod", Files: map[string][]byte{"a.mod": cut[:1500]}, Settings: with(nil)})
	if r.Err != nil || len(r.Warnings) != 1 || r.Warnings[0].Code != string(diag.SoundDamaged) {
		t.Errorf("%v, %v", r.Err, r.Warnings)
	}
	_, r = run(t, "a.xm", sine(t, 48000, 1, 4800, 1000, 0.5, wav.Metadata{}), nil)
	if r.Products[""].Extension != ".qoa" {
		t.Errorf("WAV: %q, %v", r.Products[""].Extension, r.Warnings)
	}
}
