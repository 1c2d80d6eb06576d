package soundfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/sound"
)

// The files in testdata contain two sines, 440 Hz on the left and 660 Hz on the right, 24,321 frames at 48 kHz and a
// quarter of full scale. They were encoded by oggenc, opusenc and lame, with a loop in their tags. The number of frames
// is odd on purpose, because every encoder pads.
const toneFrames = 24321

func read(t testing.TB, name string) []byte {
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func samples(t testing.TB, f *File) []float32 {
	t.Helper()
	src, err := f.Source()
	if err != nil {
		t.Fatal(err)
	}
	all, err := sound.All(src)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(all)) != f.Frames*int64(f.Format.Channels) {
		t.Fatalf("%d samples, of %d frames", len(all), f.Frames)
	}
	return all
}

// tone returns the sound that was encoded.
func tone(frames int) []float32 {
	all := make([]float32, 2*frames)
	for i := range frames {
		all[2*i] = float32(0.25 * math.Sin(2*math.Pi*440*float64(i)/48000))
		all[2*i+1] = float32(0.25 * math.Sin(2*math.Pi*660*float64(i)/48000))
	}
	return all
}

// ratio returns the ratio of a sound to its difference from another, in dB.
func ratio(want, got []float32) float64 {
	var power, noise float64
	for i, v := range want {
		d := float64(v) - float64(got[i])
		power, noise = power+float64(v)*float64(v), noise+d*d
	}
	return 10 * math.Log10(power/noise)
}

// TestToTheFrame checks that each format gives exactly the encoded frames, each in its place. If they were one frame
// off, the ratio would be at most 20 dB.
func TestToTheFrame(t *testing.T) {
	want := tone(toneFrames)
	for name, least := range map[string]float64{"tone.ogg": 35, "tone.opus": 25, "tone.mp3": 25} {
		f := open(t, read(t, name))
		if f.Frames != toneFrames || f.Format.Rate != 48000 || f.Format.Channels != 2 {
			t.Errorf("%s: %d frames, %+v", name, f.Frames, f.Format)
			continue
		}
		for range 2 { // a second time from the begin
			got := samples(t, f)
			if r := ratio(want[2000:len(want)-2000], got[2000:]); r < least {
				t.Errorf("%s: %.1f dB from what was encoded, want %.0f", name, r, least)
			}
			late := ratio(want[2000:len(want)-2000], got[2002:])
			if late > least-2 {
				t.Errorf("%s: one frame late is %.1f dB: this test cannot fail", name, late)
			}
		}
		if !slices.Equal(f.Loops, []Loop{{Begin: 1000, End: 21001}}) {
			t.Errorf("%s: loops %v", name, f.Loops)
		}
		if w := f.AllWarnings(); len(w) > 0 {
			t.Errorf("%s: %q", name, w)
		}
	}
}

// TestPass checks that other tags do not change the sound, and can be read back. A second pass changes nothing.
func TestPass(t *testing.T) {
	n := &Notes{Gain: -3.25, Loudness: -20, TruePeak: -12, Loops: []Loop{{Begin: 5, End: 24000}}, Markers: []Marker{{"hit", 7, 2}}}
	for _, name := range []string{"tone.ogg", "tone.opus", "tone.mp3"} {
		f := open(t, read(t, name))
		want := samples(t, f)
		var b, b2, b3 bytes.Buffer
		if err := f.Pass(&b, n); err != nil {
			t.Fatal(name, err)
		}
		g := open(t, b.Bytes())
		if got := samples(t, g); !slices.Equal(got, want) {
			t.Errorf("%s: the samples differ", name)
		}
		if !slices.Equal(g.Loops, n.Loops) {
			t.Errorf("%s: loops %v", name, g.Loops)
		}
		gain, _ := g.tag("REPLAYGAIN_TRACK_GAIN")
		if name == "tone.opus" {
			gain, _ = g.tag("R128_TRACK_GAIN")
		}
		if want := map[bool]string{true: "-832", false: "-3.25 dB"}[name == "tone.opus"]; gain != want {
			t.Errorf("%s: gain %q, want %q", name, gain, want)
		}
		if name != "tone.mp3" && !slices.Equal(g.Markers, n.Markers) {
			t.Errorf("%s: markers %v", name, g.Markers)
		}
		if _, ok := g.tag("TITLE"); name == "tone.ogg" && !ok {
			t.Errorf("%s: the title is lost", name)
		}
		if name == "tone.mp3" && !bytes.Contains(b.Bytes(), []byte("TIT2")) {
			t.Errorf("%s: the title is lost", name)
		}
		if err := f.Pass(&b2, n); err != nil || !bytes.Equal(b.Bytes(), b2.Bytes()) {
			t.Errorf("%s: another time, other bytes: %v", name, err)
		}
		if err := g.Pass(&b3, n); err != nil || !bytes.Equal(b.Bytes(), b3.Bytes()) {
			t.Errorf("%s: tags are not replaced: %v", name, err)
		}
	}
}

// TestNotes checks that notes are read as they were written, wherever they are stored.
func TestNotes(t *testing.T) {
	n := &Notes{Gain: -3.5, Loudness: -19.5, TruePeak: -0.25, Momentary: true, Stream: true,
		Loops:   []Loop{{100, 900, PingPong, 3}, {5, 6, Backward, 0}},
		Markers: []Marker{{"", 0, 0}, {"kick", 10, 5}, {"Pauke ä", 999, 1}}}
	check := func(name string, got *Notes) {
		t.Helper()
		if got == nil || got.Gain != n.Gain || got.Loudness != n.Loudness || got.TruePeak != n.TruePeak || got.Momentary != n.Momentary ||
			got.Stream != n.Stream || got.Silent != n.Silent || !slices.Equal(got.Loops, n.Loops) || !slices.Equal(got.Markers,
			n.Markers) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b, err := n.Append([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseNotes(append(b[6:], "behind"...))
	if err != nil {
		t.Fatal(err)
	}
	check("notes", got)
	for i := range b[6:] {
		if _, err := ParseNotes(b[6 : 6+i]); err == nil {
			t.Errorf("%d bytes of %d are taken for whole", i, len(b)-6)
		}
	}
	src := func() sound.Source { return sound.Samples(sound.Format{Rate: 44100, Channels: 2}, tone(1000)) }
	for name, write := range map[string]func(o *Output, to *bytes.Buffer) error{
		"qoa": func(o *Output, to *bytes.Buffer) error { return o.QOA(to, src()) },
		"pcm": func(o *Output, to *bytes.Buffer) error {
			return o.WAV(to, src(), wav.PCM, Metadata(n.Loops, n.Markers))
		},
		"float": func(o *Output, to *bytes.Buffer) error {
			return o.WAV(to, src(), wav.Float, Metadata(n.Loops, n.Markers))
		},
		"adpcm": func(o *Output, to *bytes.Buffer) error {
			return o.WAV(to, src(), wav.IMAADPCM, Metadata(n.Loops, n.Markers))
		},
	} {
		// Measured values are known at the end.
		o := &Output{Frames: 1000, Block: 256, Notes: &Notes{Loops: n.Loops, Markers: n.Markers}}
		o.Finish = func() { *o.Notes = *n }
		var b bytes.Buffer
		if err := write(o, &b); err != nil {
			t.Fatal(name, err)
		}
		if size := binary.LittleEndian.Uint32(b.Bytes()[4:]); name != "qoa" && int(size)+8 != b.Len() {
			t.Errorf("%s: the head says %d bytes, and there are %d", name, size+8, b.Len())
		}
		f := open(t, b.Bytes())
		check(name, f.Notes)
		if f.Codec != name || f.Frames != 1000 || len(f.AllWarnings()) > 0 {
			t.Errorf("%s: %s, %d frames, %q", name, f.Codec, f.Frames, f.AllWarnings())
		}
		if !slices.Equal(f.Loops, n.Loops) {
			t.Errorf("%s: loops %v", name, f.Loops)
		}
		if r := ratio(tone(1000), samples(t, f)); r < 25 {
			t.Errorf("%s: %.1f dB", name, r)
		}
	}
}

// TestDamage checks that damage gives an error or silence with a warning, and takes little memory and time.
func TestDamage(t *testing.T) {
	for _, name := range []string{"tone.ogg", "tone.opus", "tone.mp3"} {
		whole := read(t, name)
		half, err := Open(bytes.NewReader(whole[:len(whole)*4/5]), int64(len(whole)*4/5))
		if err != nil {
			if !Truncated(err) { // its only page is cut off
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if n := len(samples(t, half)); n == 0 || n >= 2*toneFrames {
			t.Errorf("%s: four fifths of it have %d samples", name, n)
		}
		holed := slices.Clone(whole)
		for i := range 200 {
			holed[len(holed)*2/3+i] ^= 0x55
		}
		f, err := Open(bytes.NewReader(holed), int64(len(holed)))
		if err != nil {
			continue
		}
		if src, err := f.Source(); err == nil {
			if _, err := sound.All(src); err == nil && len(f.AllWarnings()) == 0 && name != "tone.mp3" {
				t.Errorf("%s: nothing is said of a hole", name)
			}
		}
	}
	// A last page that claims a length of years.
	claims := slices.Clone(read(t, "tone.ogg"))
	last := bytes.LastIndex(claims, []byte("OggS"))
	binary.LittleEndian.PutUint64(claims[last+6:], 1<<40)
	f, err := Open(bytes.NewReader(claims), int64(len(claims)))
	if err == nil && f.Frames > 1<<32 {
		t.Errorf("a page with a wrong checksum is believed: %d frames", f.Frames)
	}
}

func TestUnknown(t *testing.T) {
	for _, text := range []string{"", "x", "RIFF\x00\x00\x00\x00AVI ", "<html><body>404</body></html>", "OggS",
		"ID3\x04\x00\x00\x00\x00\x00\x00", "qoaf", "fLaC"} {
		if f, err := Open(strings.NewReader(text), int64(len(text))); err == nil {
			t.Errorf("%q is taken for %s", text, f.Container)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"tone.ogg", "tone.opus", "tone.mp3"} {
		data := read(f, name)
		f.Add(data)
		f.Add(data[:len(data)/3])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil || file.Opaque != nil || file.Frames > 1<<22 {
			return
		}
		src, err := file.Source()
		if err != nil {
			return
		}
		all, err := sound.All(src)
		if err == nil && int64(len(all)) != file.Frames*int64(file.Format.Channels) {
			t.Errorf("%d samples of %d frames", len(all), file.Frames)
		}
		if file.Container == Ogg || file.Container == MP3 {
			var b bytes.Buffer
			if file.Pass(&b, &Notes{Gain: 1, Loops: []Loop{{Begin: 1, End: 2}}}) != nil {
				return
			}
			if _, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
				t.Errorf("other tags make it unreadable: %v", err)
			}
		}
	})
}

func FuzzNotes(f *testing.F) {
	b, _ := (&Notes{Loops: []Loop{{Begin: 1, End: 2}}, Markers: []Marker{{"a", 1, 2}}}).Append(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := ParseNotes(data)
		if err != nil {
			return
		}
		again, err := n.Append(nil)
		if err != nil {
			return // names longer than the limit for writing
		}
		if _, err := ParseNotes(again); err != nil {
			t.Errorf("%v of what was written of %q", err, data)
		}
	})
}

// TestFinish checks that an encoded file has the requested frames, with their samples.
func TestFinish(t *testing.T) {
	for name, lead := range map[string]int64{"tone.ogg": 0, "tone.opus": 700} {
		f := open(t, read(t, name))
		want := samples(t, f)[lead*int64(f.Format.Channels):]
		frames := f.Frames - lead - 1234
		var b bytes.Buffer
		if err := f.Finish(&b, &Notes{Gain: -2, TruePeak: -1, Loops: []Loop{{Begin: 5, End: 100}}}, lead, frames); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g := open(t, b.Bytes())
		if g.Frames != frames || !slices.Equal(g.Loops, []Loop{{Begin: 5, End: 100}}) || len(g.Warnings) > 0 {
			t.Errorf("%s: %d frames, loops %v, %v", name, g.Frames, g.Loops, g.Warnings)
		}
		if got := samples(t, g); !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%s: other samples", name)
		}
		var again bytes.Buffer
		err := open(t, read(t, name)).Finish(&again, &Notes{Gain: -2, TruePeak: -1, Loops: []Loop{{Begin: 5, End: 100}}}, lead, frames)
		if err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
			t.Errorf("%s: other bytes (%v)", name, err)
		}
	}
	if err := open(t, read(t, "tone.mp3")).Finish(io.Discard, &Notes{}, 0, 1); err == nil {
		t.Error("MP3 has no pages")
	}
}

// TestChain: a file of several streams is read whole, and keeps all of them with other tags. Its streams may have the same
// serial number, as in files that were joined byte by byte.
func TestChain(t *testing.T) {
	n := &Notes{Gain: -3.25, Loudness: -20, TruePeak: -12, Loops: []Loop{{Begin: 5, End: 24000}}}
	for name, kind := range map[string]string{"tone.ogg": "REPLAYGAIN_TRACK_GAIN", "tone.opus": "R128_TRACK_GAIN"} {
		one := read(t, name)
		want := samples(t, open(t, one))
		f := open(t, slices.Concat(one, one, one))
		if f.Frames != 3*toneFrames || f.Mixed || len(f.AllWarnings()) > 0 || !slices.Equal(f.Loops, open(t, one).Loops) {
			t.Errorf("%s: %d frames, %q, %v", name, f.Frames, f.AllWarnings(), f.Loops)
		}
		if got := samples(t, f); !slices.Equal(got, slices.Concat(want, want, want)) {
			t.Errorf("%s: the samples differ", name)
		}
		var b bytes.Buffer
		if err := f.Pass(&b, n); err != nil {
			t.Fatal(err)
		}
		g := open(t, b.Bytes())
		if g.Frames != f.Frames || len(g.chain.parts) != 3 || !slices.Equal(g.Loops, n.Loops) {
			t.Errorf("%s: with other tags %d frames, loops %v", name, g.Frames, g.Loops)
		}
		for i, p := range g.chain.parts {
			if _, ok := p.tag(kind); !ok {
				t.Errorf("%s: part %d has no gain: %q", name, i, p.Tags)
			}
			if _, ok := p.tag("LOOPSTART"); ok != (i == 0) {
				t.Errorf("%s: part %d: %q", name, i, p.Tags)
			}
		}
	}
}

// TestChainChanges: parts with another rate and codec get the rate of the first; parts that cannot be read are named, and kept.
func TestChainChanges(t *testing.T) {
	vorbis, opus := read(t, "tone.ogg"), read(t, "tone.opus")
	f := open(t, slices.Concat(vorbis, opus))
	if f.Frames != 2*toneFrames || len(samples(t, f)) != 4*toneFrames {
		t.Errorf("%d frames", f.Frames)
	}
	damaged := slices.Clone(opus)
	copy(damaged[bytes.Index(damaged, []byte("OpusTags")):], "WrongTag")
	f = open(t, slices.Concat(vorbis, sealed(damaged), vorbis))
	w := strings.Join(f.AllWarnings(), ";")
	if f.Frames != 2*toneFrames || !strings.Contains(w, "continues at byte") || !strings.Contains(w, "left out") {
		t.Errorf("%d frames, %q", f.Frames, w)
	}
	var b bytes.Buffer
	if err := f.Pass(&b, &Notes{}); err != nil || !bytes.Contains(b.Bytes(), []byte("WrongTag")) {
		t.Errorf("with other tags a part is lost: %v", err)
	}
	if src, err := f.Source(); err != nil || src.Format() != f.Format {
		t.Error(err)
	}
}

// sealed corrects the checksums of all pages.
func sealed(data []byte) []byte {
	var out []byte
	for at := 0; at < len(data); {
		size := 27 + int(data[at+26])
		for _, s := range data[at+27:][:data[at+26]] {
			size += int(s)
		}
		page := slices.Clone(data[at : at+size])
		clear(page[22:26])
		sum := uint32(0)
		for _, c := range page {
			sum ^= uint32(c) << 24
			for range 8 {
				top := sum >> 31
				sum = sum<<1 ^ top*0x04c11db7
			}
		}
		binary.LittleEndian.PutUint32(page[22:], sum)
		out, at = append(out, page...), at+size
	}
	return out
}

// TestPadding: sound that begins after zeros is read with a warning.
func TestPadding(t *testing.T) {
	mp3 := read(t, "tone.mp3")
	f := open(t, append(make([]byte, 3000), mp3[bytes.Index(mp3, []byte{0xff, 0xfb}):]...))
	if f.Container != MP3 || f.Frames < toneFrames || len(f.Warnings) == 0 || !strings.Contains(f.Warnings[0], "3000 bytes before") {
		t.Errorf("%+v", f)
	}
}
