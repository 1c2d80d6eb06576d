package mp3

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// frame returns a frame of 128 kbit/s, 44,100 Hz, stereo: 417 bytes.
func frame(fill byte) []byte {
	return append([]byte{0xff, 0xfb, 0x90, 0x00}, bytes.Repeat([]byte{fill}, 413)...)
}

// info returns the frame with the LAME tag: number of frames, and of samples added before and after.
func info(frames, before, after int) []byte {
	b := frame(0)
	copy(b[36:], "Info\x00\x00\x00\x01")
	b[44], b[45], b[46], b[47] = byte(frames>>24), byte(frames>>16), byte(frames>>8), byte(frames)
	copy(b[48:], "LAME3.100")
	b[48+21], b[48+22], b[48+23] = byte(before>>4), byte(before<<4|after>>8), byte(after)
	return b
}

func read(t testing.TB, parts ...[]byte) *File {
	t.Helper()
	data := slices.Concat(parts...)
	f, err := Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func many(n int) []byte { return bytes.Repeat(frame(1), n) }

func TestLength(t *testing.T) {
	f := read(t, info(10, 576, 1000), many(10))
	if !f.Gapless || f.Frames != 10 || f.Skip != 576+DecoderDelay || f.Samples != 10*1152-576-1000 || f.Audio != 417 ||
		f.AudioEnd != 11*417 {
		t.Errorf("with the LAME tag: %+v", f)
	}
	if f.Rate != 44100 || f.Channels != 2 || f.Layer != 3 || f.BitRate/1000 != 127 {
		t.Errorf("%+v", f)
	}
	f = read(t, many(4))
	if f.Gapless || f.Skip != 0 || f.Samples != 4*1152 || f.Audio != 0 {
		t.Errorf("without a tag: %+v", f)
	}
	if f = read(t, info(10, 576, 1000), many(7)); f.Gapless || f.Samples != 7*1152 || len(f.Warnings) == 0 {
		t.Errorf("cut off: %+v", f)
	}
	if f = read(t, info(1, 4000, 4000), many(1)); f.Gapless || f.Samples != 1152 || len(f.Warnings) == 0 {
		t.Errorf("more added than there is: %+v", f)
	}
}

// Tags before and after the sound, and junk between frames, are ignored.
func TestAround(t *testing.T) {
	tag := Retag(nil, []Text{{"LOOPSTART", "12"}, {"Ä", "ö"}})
	id3v1 := append([]byte("TAG"), make([]byte, 125)...)
	ape := append([]byte("APETAGEX\xd0\x07\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), make([]byte, 8)...)
	f := read(t, tag, info(6, 576, 100), many(3), []byte("junk"), many(3), ape, id3v1)
	if f.Frames != 6 || !slices.Equal(f.Texts, []Text{{"LOOPSTART", "12"}, {"Ä", "ö"}}) || len(f.Warnings) != 1 ||
		!strings.Contains(f.Warnings[0], "4 bytes") {
		t.Errorf("%+v", f)
	}
	if f.Audio != int64(len(tag)+417) {
		t.Errorf("sound begins at %d", f.Audio)
	}
}

// Texts of all encodings and both versions are read, and kept by Retag.
func TestTexts(t *testing.T) {
	frame3 := func(body string) string { return "TXXX\x00\x00\x00" + string(rune(len(body))) + "\x00\x00" + body }
	body := frame3("\x00A\x00caf\xe9") + frame3("\x01\xff\xfeB\x00\x00\x00\xff\xfex\x00") + frame3("\x02\x00C\x00\x00\x00y") + "TIT2\x00\x00\x00\x03\x00\x00\x00hi"
	tag := []byte("ID3\x03\x00\x00\x00\x00\x00" + string(rune(len(body))) + body)
	f := read(t, tag, many(2))
	want := []Text{{"A", "café"}, {"B", "x"}, {"C", "y"}}
	if !slices.Equal(f.Texts, want) {
		t.Errorf("%q, want %q", f.Texts, want)
	}
	again := read(t, Retag(f.Tag, []Text{{"b", "new"}}), many(2))
	if !slices.Equal(again.Texts, []Text{{"A", "café"}, {"C", "y"}, {"b", "new"}}) || !bytes.Contains(again.Tag,
		[]byte("TIT2\x00\x00\x00\x03\x00\x00\x00hi")) {
		t.Errorf("%q", again.Texts)
	}
}

func TestErrors(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("hello, this is text"), "one byte": {0xff},
		"half a frame":             frame(1)[:200],
		"free bit rate, one frame": append([]byte{0xff, 0xfb, 0x00, 0x00}, make([]byte, 413)...), "a tag alone": Retag(nil, nil)} {
		if f, err := Read(bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestFree: frames of free bit rate are as long as it is from one to the next, but for padding.
func TestFree(t *testing.T) {
	free := func(padding byte) []byte {
		return append([]byte{0xff, 0xfb, padding << 1, 0x00}, make([]byte, 700+int(padding))...)
	}
	f := read(t, free(0), free(1), free(1), free(0), free(0))
	if f.Frames != 5 || f.AudioEnd != 5*704+2 || len(f.Warnings) > 0 || f.BitRate != 215722 {
		t.Errorf("%+v", f)
	}
	all := make([]float32, 2*1152)
	r := f.NewReader(bytes.NewReader(slices.Concat(free(0), free(1), free(1), free(0), free(0))))
	n := 0
	for {
		got, err := r.Read(all)
		if n += got; err != nil {
			break
		}
	}
	if n != 5*1152+1152 || r.Damage() != nil {
		t.Errorf("%d samples, %v", n, r.Damage())
	}
}

// FuzzDecode decodes whatever Read takes.
func FuzzDecode(f *testing.F) {
	f.Add(slices.Concat(info(3, 576, 100), many(3)))
	f.Add(slices.Concat(mono(), mono(), many(2)))
	f.Add(bytes.Repeat(append([]byte{0xff, 0xf3, 0x84, 0x44}, bytes.Repeat([]byte{0x5a, 0x13, 0xff, 0x80, 0x7e}, 50)...), 4))
	f.Add(bytes.Repeat(append([]byte{0xff, 0xfb, 0x94, 0x74}, bytes.Repeat([]byte{0x00, 0x13, 0xc4, 0x81}, 95)...), 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil || m.Layer != 3 || m.Frames > 1000 {
			return
		}
		r, buf, n := m.NewReader(bytes.NewReader(data)), make([]float32, 2000), int64(0)
		for {
			got, err := r.Read(buf)
			if n += int64(got); err != nil {
				break
			}
		}
		if want := m.Frames*int64(m.FrameSamples) + 1152; n != want {
			t.Errorf("%d samples, want %d", n, want)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(slices.Concat(Retag(nil, []Text{{"A", "b"}}), info(3, 576, 100), many(3)))
	f.Add(many(2))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		if m.Samples <= 0 || m.AudioEnd > int64(len(data)) || m.Audio > m.AudioEnd || m.Frames > int64(len(data)) {
			t.Errorf("%+v of %d bytes", m, len(data))
		}
		tag := Retag(m.Tag, []Text{{"A", "b"}})
		whole := append(tag, data[len(m.Tag):]...)
		if _, err := Read(bytes.NewReader(whole), int64(len(whole))); err != nil {
			t.Errorf("with another tag: %v", err)
		}
	})
}

// other returns a frame of 128 kbit/s, 48,000 Hz, stereo: 384 bytes; mono one of 44,100 Hz.
func other() []byte { return append([]byte{0xff, 0xfb, 0x94, 0x00}, make([]byte, 380)...) }
func mono() []byte  { return append([]byte{0xff, 0xfb, 0x90, 0xc0}, make([]byte, 413)...) }

// TestNothingIsLost: what is not read is said, and sound of another rate is an error.
func TestNothingIsLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		data   []byte
		frames int64
		warn   string
	}{
		{"zeros first", slices.Concat(make([]byte, 1000), many(5)), 5, "1000 bytes before the first frame"},
		{"another file", slices.Concat(Retag(nil, []Text{{"A", "b"}}), many(3), Retag(nil, []Text{{"A", "c"}}), info(3, 1, 1), many(3)),
			7, "bytes from"},
		{"junk at the end", slices.Concat(many(4), bytes.Repeat([]byte("junk"), 30)), 4, "120 bytes after the last frame"},
		{"padding at the end", slices.Concat(many(4), make([]byte, 5000)), 4, ""},
		{"a tag at the end", slices.Concat(many(4), []byte("LYRICSBEGIN000009LYRICS200 and more of it")), 4, ""},
		{"three heads by chance", slices.Concat(many(4), other(), other(), other(), many(4)), 8, "1152 bytes from 1668 on"},
	} {
		f := read(t, c.data)
		if got := strings.Join(f.Warnings, "; "); f.Frames != c.frames || !strings.Contains(got, c.warn) || c.warn == "" && got != "" {
			t.Errorf("%s: %d frames, %q", c.name, f.Frames, got)
		}
	}
	data := slices.Concat(many(5), bytes.Repeat(other(), 5))
	_, err := Read(bytes.NewReader(data), int64(len(data)))
	if err == nil || !strings.Contains(err.Error(), "from byte 2085 on the sound has 48000 Hz in place of 44100") {
		t.Errorf("another rate: %v", err)
	}
	if f := read(t, mono(), mono(), mono(), many(3)); f.Channels != 2 || f.Frames != 6 {
		t.Errorf("mono, then stereo: %+v", f)
	}
	for n, want := range map[int]bool{3: false, 4: true} {
		data := slices.Concat(make([]byte, 500), many(n))
		if got := Begins(bytes.NewReader(data), int64(len(data))); got != want {
			t.Errorf("%d frames: begins %t", n, got)
		}
	}
}
