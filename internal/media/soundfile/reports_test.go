package soundfile

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReports makes what people reported about decoders of MP3, Vorbis and Opus, and states what becomes of it here.
// docs/internals/proof.md has the list.
func TestReports(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := func(channels, frames int) clip { return clip{channels, music(r, channels, frames)} }
	s := func(channels, frames int) clip { return clip{channels, speech(r, channels, frames)} }
	mp3, ogg, opus := encoder("mp3"), encoder("ogg"), encoder("opus")
	like := func(least float64, decoder ...string) func(*testing.T, string) {
		return func(t *testing.T, file string) { agree(t, file, file, ffmpeg(t, file, decoder...), least) }
	}
	for _, c := range []struct {
		name  string
		make  func(t *testing.T) string
		check func(t *testing.T, file string)
	}{
		{"go-mp3-12 22 kHz", mp3(m(2, 30000), "-ar", "22050", "-b:a", "64k"), like(100)},
		{"go-mp3-39 low bit rates", mp3(m(2, 60000), "-ar", "32000", "-b:a", "40k"), like(100)},
		{"go-mp3-48 8 kHz", mp3(s(1, 60000), "-ar", "8000", "-b:a", "8k"), like(100)},
		{"beep-195 silence at 11 kHz", mp3(clip{1, make([]float32, 60000)}, "-ar", "11025"), silent(13782)},
		{"go-mp3-10 speech, mono, 22 kHz", mp3(s(1, 60000), "-ar", "22050", "-b:a", "48k"), like(100)},
		{"go-mp3-19 glitches", mp3(m(1, 60000), "-q:a", "9"), like(100)},
		{"go-mp3-11 without tags", mp3(m(2, 30000), "-write_xing", "0", "-id3v2_version", "0"), like(100)},
		{"dr_libs-263 length", mp3(m(2, 7207)), frames(7207)},
		{"cut begin", cutBegin(mp3(m(2, 60000), "-b:a", "64k")), warned("silence in its place")},
		{"go-mp3-9 layer II", mp3(m(2, 30000), "-f", "mp2", "-c:a", "mp2"), refused("layer 2: not supported")},
		{"ESP32-audioI2S-4 a picture of 300 kB", pictured(mp3(m(2, 30000))), frames(30000)},
		{"free bit rate", free(mp3(m(2, 30000), "-b:a", "128k")), frames(30000)},
		{"go-mp3-51 damage, MPEG-2", damaged(mp3(m(2, 60000), "-ar", "22050", "-b:a", "48k")), warned("silence in its place")},
		{"go-mp3-24 damage, MPEG-1", damaged(mp3(m(2, 60000), "-b:a", "96k")), warned("silence in its place")},
		{"oggvorbis-2 values above 1", ogg(scaled(m(2, 60000), 2.4), "-q", "0"), near(60)},
		{"freac-190 a short file", ogg(m(1, 300)), frames(300)},
		{"vorbis of one frame", ogg(m(1, 1)), frames(1)},
		{"pion-opus-18 10 ms of speech", opus(s(1, 60000), "--speech", "--bitrate", "10", "--framesize", "10"), like(30, "-c:a", "libopus")},
		{"pion-opus-24 speech in stereo", opus(s(2, 60000), "--speech", "--bitrate", "20"), like(30, "-c:a", "libopus")},
		{"opus-rs-5 60 ms of speech", opus(s(2, 60000), "--speech", "--bitrate", "16", "--framesize", "60"), like(30, "-c:a", "libopus")},
		{"pion-opus-251 speech, then music", opus(clip{1, slices.Concat(s(1, 60000).all, m(1, 60000).all, s(1, 60000).all)}, "--bitrate", "20"),
			like(25, "-c:a", "libopus")},
		{"hraban-opus-60 not all zeros", opus(m(2, 30000)), like(60, "-c:a", "libopus")},
		{"opus of 2.5 ms", opus(m(2, 30000), "--framesize", "2.5"), like(60, "-c:a", "libopus")},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, c.make(t)) })
	}
	for i, text := range crashers {
		t.Run(fmt.Sprintf("go-mp3-3 crasher %d", i), func(t *testing.T) {
			data := []byte(text + strings.Repeat("0", 3000))
			f, err := Open(bytes.NewReader(data), int64(len(data)))
			if err == nil {
				t.Errorf("%d frames of sound in what is none", f.Frames)
			} else if err != ErrFormat && !Bad(err) && !Truncated(err) && !Unsupported(err) {
				t.Error(err)
			}
		})
	}
}

// crashers are the begins of files that a fuzzer found, with one frame of MP3 at most.
var crashers = []string{
	"\xff\xfa500000000000\xff\xff0000", "\xff\xfb\x100004000094\xff000000", "\xff\xfa\x1000000000000000000",
	"\xff\xfb0x000000\xf9000\x00\x030000000000000000\xf70000000", "\xff\xfa%00000000000000000000000000000s0000000",
}

// TestCodebooks: a header of 3 kB that has the library make 256 trees of 16 million codes is refused at once, and so are codes that are
// not unique.
func TestCodebooks(t *testing.T) {
	make := func(books, entries, size int) []byte {
		data, n := []byte("\x05vorbis"), 0
		put := func(v, bits int) {
			for i := range bits {
				if n%8 == 0 {
					data = append(data, 0)
				}
				data[len(data)-1] |= byte(v >> i & 1 << (n % 8))
				n++
			}
		}
		put(books-1, 8)
		for range books {
			put(0x564342, 24)
			put(1, 16)
			put(entries, 24)
			put(1, 1)
			put(size-1, 5)
			put(entries, bits.Len(uint(entries)))
			put(0, 4)
		}
		put(0, 6+16+6+16) // a floor of type 0
		return append(data, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	}
	for _, c := range []struct {
		books, entries, size int
		want                 bool
	}{{256, 1<<24 - 1, 24, false}, {1, 5, 2, false}, {2, 4, 2, true}, {1, 8000, 13, true}, {1, 1 << 20, 20, false}} {
		header := make(c.books, c.entries, c.size)
		if got, ok := withClasses(header); ok != c.want || ok && !bytes.Equal(got, header) {
			t.Errorf("%+v: %t", c, ok)
		}
	}
}

// clip is sound at 48 kHz.
type clip struct {
	channels int
	all      []float32
}

func scaled(c clip, by float32) clip {
	for i := range c.all {
		c.all[i] *= by
	}
	return c
}

type maker func(t *testing.T) string

// encoder returns a function that gives the maker of a file, by the usual program for its format.
func encoder(ext string) func(c clip, args ...string) maker {
	return func(c clip, args ...string) maker {
		return func(t *testing.T) string {
			from, to := waveFile(t, c.channels, c.all), filepath.Join(t.TempDir(), "a."+ext)
			switch ext {
			case "mp3":
				need(t, "ffmpeg")
				run(t, "ffmpeg", append(append([]string{"-nostdin", "-v", "error", "-i", from, "-c:a", "libmp3lame"}, args...), to)...)
			case "ogg":
				need(t, "oggenc", "oggdec")
				run(t, "oggenc", append(args, "-Q", "-o", to, from)...)
			case "opus":
				need(t, "opusenc", "ffmpeg")
				run(t, "opusenc", append(args, "--quiet", from, to)...)
			}
			return to
		}
	}
}

// changed returns the maker of a file with other bytes.
func changed(of maker, change func(data []byte) []byte) maker {
	return func(t *testing.T) string {
		file := of(t)
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, change(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
}

// cutBegin cuts off the tags and the first ten frames, whose bytes the next ones need.
func cutBegin(of maker) maker {
	return changed(of, func(data []byte) (rest []byte) {
		eachFrame(data, func(n int, frame []byte) {
			if n > 10 {
				rest = append(rest, frame...)
			}
		})
		return rest
	})
}

// pictured puts a tag with 300 kB of picture before the others.
func pictured(of maker) maker {
	return changed(of, func(data []byte) []byte {
		const size = 300000
		tag := append([]byte("ID3\x04\x00\x00"), size>>21, size>>14&127, size>>7&127, size&127)
		return slices.Concat(tag, bytes.Repeat([]byte("\xff\xfb\x90\x64"), size/4), data)
	})
}

// free gives all frames of a constant bit rate the bit rate 0.
func free(of maker) maker {
	return changed(of, func(data []byte) []byte {
		eachFrame(data, func(_ int, frame []byte) { frame[2] &= 0x0f })
		return data
	})
}

// damaged changes bytes behind the head of every other frame.
func damaged(of maker) maker {
	r := rand.New(rand.NewPCG(5, 6))
	return changed(of, func(data []byte) []byte {
		eachFrame(data, func(n int, frame []byte) {
			if n > 2 && n%2 == 0 {
				for range 12 {
					frame[4+r.IntN(len(frame)-4)] ^= byte(1 + r.IntN(255))
				}
			}
		})
		return data
	})
}

// frames checks that there are exactly so many, with sound in them.
func frames(want int64) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		f := openFile(t, file)
		got := samples(t, f)
		if w := f.AllWarnings(); f.Frames != want || len(w) > 0 {
			t.Errorf("%d frames, want %d; %q", f.Frames, want, w)
		}
		if want > 100 && ratio(got, make([]float32, len(got))) != 0 {
			t.Error("there is no sound")
		}
	}
}

func openFile(t *testing.T, file string) *File {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, data)
}

func silent(want int64) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		f := openFile(t, file)
		for i, v := range samples(t, f) {
			if v > 1e-4 || v < -1e-4 {
				t.Fatalf("sample %d is %v", i, v)
			}
		}
		if f.Frames != want {
			t.Errorf("%d frames, want %d", f.Frames, want)
		}
	}
}

// warned checks that a file is read to its end, with a warning.
func warned(want string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		f := openFile(t, file)
		if got := samples(t, f); len(got) < 40000 {
			t.Errorf("%d samples", len(got))
		}
		if w := strings.Join(f.AllWarnings(), "; "); !strings.Contains(w, want) {
			t.Errorf("warnings %q, want %q", w, want)
		}
	}
}

func refused(want string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Open(bytes.NewReader(data), int64(len(data))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// near compares with oggdec, which cuts off values beyond 1.
func near(least float64) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		got, theirs := samples(t, openFile(t, file)), oggdec(t, file)
		if len(got) != len(theirs) {
			t.Fatalf("%d samples, want %d", len(got), len(theirs))
		}
		for i, v := range got {
			got[i] = max(-1, min(v, 32767.0/32768))
		}
		if r := ratio(theirs, got); r < least {
			t.Errorf("%.1f dB", r)
		}
	}
}
