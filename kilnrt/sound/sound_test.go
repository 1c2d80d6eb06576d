package sound

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	media "github.com/kiln-pipeline/kiln/internal/media/sound"
	"github.com/kiln-pipeline/kiln/internal/media/soundfile"
)

// made returns a sound of a codec, as Kiln makes it.
func made(t testing.TB, codec string, rate, channels, frames int, n *soundfile.Notes) []byte {
	t.Helper()
	all := make([]float32, frames*channels)
	for i := range all {
		all[i] = float32(0.4*math.Sin(float64(i/channels)*0.05*float64(1+i%channels)) + 0.3*math.Sin(float64(i)*float64(i)*1e-6))
	}
	src := media.Samples(media.Format{Rate: rate, Channels: channels}, all)
	o := &soundfile.Output{Frames: int64(frames), Notes: n, Block: 64}
	var b bytes.Buffer
	var err error
	switch codec {
	case "qoa":
		err = o.QOA(&b, src)
	default:
		coding := map[string]wav.Coding{"pcm": wav.PCM, "float": wav.Float, "adpcm": wav.IMAADPCM}[codec]
		err = o.WAV(&b, src, coding, soundfile.Metadata(n.Loops, n.Markers))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var codecs = []string{"qoa", "pcm", "float", "adpcm"}

// whole returns all samples, by Kiln's own decoders.
func whole(t testing.TB, data []byte) []float32 {
	t.Helper()
	f, err := soundfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	src, err := f.Source()
	if err != nil {
		t.Fatal(err)
	}
	all, err := media.All(src)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func notes() *soundfile.Notes {
	return &soundfile.Notes{Gain: -6, Loudness: -17.5, TruePeak: -1.5, Stream: true, Momentary: true,
		Loops:   []soundfile.Loop{{Begin: 700, End: 9000}, {Begin: 1, End: 2, Kind: soundfile.PingPong, Count: 3}},
		Markers: []soundfile.Marker{{Name: "ä", Frame: 5, Length: 6}, {Frame: 9}}}
}

// TestDecode checks that decoding gives exactly the samples of Kiln's own decoders.
func TestDecode(t *testing.T) {
	for _, codec := range codecs {
		for _, channels := range []int{1, 2, 6} {
			for _, frames := range []int{1, 19, 5120, 12345} {
				n := &soundfile.Notes{Gain: -6}
				data := made(t, codec, 22050, channels, frames, n)
				s, err := Open(data)
				if err != nil || s.Frames != int64(frames) || s.Channels != channels || s.Rate != 22050 || s.Gain != -6 {
					t.Fatalf("%s: %v, %+v", codec, err, s)
				}
				want := whole(t, data)
				got := make([]float32, len(want)+channels)
				p := s.Play()
				p.gain = 1
				if k := p.ReadFloat(got); k != frames || !slices.Equal(got[:len(want)], want) {
					t.Errorf("%s, %d channels, %d frames: %d frames, or they differ", codec, channels, frames, k)
				}
				if k := p.Read(make([]int16, channels)); k != 0 {
					t.Errorf("%s: %d frames behind the end", codec, k)
				}
			}
		}
	}
}

func TestNotes(t *testing.T) {
	for _, codec := range codecs {
		s, err := Open(made(t, codec, 44100, 2, 10000, notes()))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Loops, []Loop{{700, 9000, Forward, 0}, {1, 2, PingPong, 3}}) || !slices.Equal(s.Markers,
			[]Marker{{"ä", 5, 6}, {"", 9, 0}}) ||
			s.Gain != -6 || s.Loudness != -17.5 || s.TruePeak != -1.5 || !s.Stream || !s.Momentary || s.Silent {
			t.Errorf("%s: %+v", codec, s)
		}
		p := s.Play()
		one, two := make([]int16, 200), make([]float32, 200)
		p.Read(one)
		p.SeekFrame(0)
		p.ReadFloat(two)
		for i := range one {
			if want := float64(one[i]) / 32768 * math.Pow(10, -6.0/20); math.Abs(want-float64(two[i])) > 1e-4 {
				t.Fatalf("%s: sample %d with gain is %v, want %v", codec, i, two[i], want)
			}
		}
	}
}

// model returns the frames in the order in which a player plays them from a position.
func model(l *Loop, at, frames int64, n int) (order []int64) {
	times := int64(0)
	for at < frames && len(order) < n {
		order = append(order, at)
		at++
		for l != nil && at == l.End && len(order) < n {
			times++
			if l.Count > 0 && times >= l.Count {
				l = nil
				break
			}
			switch l.Kind {
			case Forward:
				at = l.Begin
			case PingPong:
				at = max(l.End-2, l.Begin)
				for ; at >= l.Begin; at-- {
					order = append(order, at)
				}
				times++
				at = min(l.Begin+1, l.End-1)
				if l.Count > 0 && times >= l.Count {
					at, l = l.End, nil
				}
			case Backward:
				for l != nil && len(order) < n {
					for at = l.End - 1; at >= l.Begin; at-- {
						order = append(order, at)
					}
					if times++; l.Count > 0 && times >= l.Count {
						at, l = l.End, nil
					}
				}
			}
			break
		}
	}
	return order[:min(n, len(order))]
}

// TestPlay checks that a player plays what the model says, with reads of any size.
func TestPlay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, codec := range codecs {
		const frames = 11000
		data := made(t, codec, 44100, 2, frames, &soundfile.Notes{})
		all := whole(t, data)
		s, err := Open(data)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 60 {
			begin := r.Int64N(frames)
			l := Loop{begin, begin + 1 + r.Int64N(min(frames-begin, 3000)), LoopKind(round % 3), r.Int64N(4)}
			if round%10 == 9 {
				l.End = l.Begin + 1
			}
			at := r.Int64N(frames)
			order := model(&l, at, frames, 20000)
			p := s.Play()
			p.LoopOver(l)
			p.SeekFrame(at)
			var got []int16
			buf := make([]int16, 2*5000)
			for len(got) < 2*len(order) {
				n := p.Read(buf[:2*min(1+r.IntN(5000), len(order)-len(got)/2)])
				if n == 0 {
					break
				}
				got = append(got, buf[:2*n]...)
			}
			want := make([]int16, 0, 2*len(order))
			for _, f := range order {
				want = append(want, toInt(all[2*f]), toInt(all[2*f+1]))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, round %d: loop %+v from %d: %d frames of %d, or they differ", codec, round, l, at, len(got)/2, len(order))
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, codec := range codecs {
		data := made(f, codec, 8000, 2, 300, &soundfile.Notes{Loops: []soundfile.Loop{{Begin: 10, End: 200, Kind: soundfile.PingPong}}})
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Open(data)
		if err != nil {
			return
		}
		p := s.Play()
		p.Loop(true)
		buf := make([]int16, 4096*s.Channels)
		for range 4 {
			p.Read(buf)
		}
		p.SeekFrame(s.Frames - 1)
		p.Loop(false)
		if n := p.Read(buf); s.Frames > 0 && n != 1 {
			t.Errorf("%d frames from the last of %d on", n, s.Frames)
		}
	})
}

// script is a test for the other readers: seek, loop and read commands that each of them understands.
const script = "r 1000 s 6000 r 500 l 1 r 20000 s 2 r 12 l 0 s 8990 r 4000 s 0 r 5 "

// spoken returns the output of this package for the script: the properties of the file, then samples.
func spoken(t testing.TB, data []byte) string {
	s, err := Open(data)
	if err != nil {
		return "error\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %d %d %d %d\n", s.Rate, s.Channels, s.Frames, len(s.Loops), len(s.Markers), int(math.Round(s.Gain*100)))
	for _, l := range s.Loops {
		fmt.Fprintf(&b, "loop %d %d %d %d\n", l.Begin, l.End, l.Kind, l.Count)
	}
	for _, m := range s.Markers {
		fmt.Fprintf(&b, "marker %d %d %s\n", m.Frame, m.Length, m.Name)
	}
	p := s.Play()
	words := strings.Fields(script)
	for i := 0; i < len(words); i += 2 {
		var n int64
		fmt.Sscan(words[i+1], &n)
		switch words[i] {
		case "s":
			p.SeekFrame(n)
		case "l":
			p.Loop(n == 1)
		case "r":
			buf := make([]int16, n*int64(s.Channels))
			got := p.Read(buf)
			hash := uint32(2166136261)
			for _, v := range buf[:got*s.Channels] {
				for _, c := range []byte{byte(v), byte(uint16(v) >> 8)} {
					hash = (hash ^ uint32(c)) * 16777619
				}
			}
			fmt.Fprintf(&b, "read %d at %d: %08x\n", got, p.Frame(), hash)
		}
	}
	return b.String()
}

// files are sounds for testing all readers, some of them damaged.
func files(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for _, codec := range codecs {
		for _, channels := range []int{1, 2, 5} {
			for kind := range soundfile.Backward + 1 {
				n := notes()
				n.Loops[0].Kind, n.Loops[0].Count = kind, int64(channels%3)
				data := made(t, codec, 44100, channels, 10000, n)
				name := fmt.Sprintf("%s-%d-%d", codec, channels, kind)
				all[name] = data
				if kind == 0 && channels == 2 {
					r := rand.New(rand.NewPCG(uint64(len(data)), 1))
					for i := range 12 {
						bad := slices.Clone(data)
						for range 1 + i {
							bad[r.IntN(min(len(bad), 1<<r.IntN(14)))] = byte(r.Uint32())
						}
						all[fmt.Sprintf("%s-bad-%d", codec, i)] = bad[:r.IntN(len(bad)/4)+len(bad)*3/4]
					}
				}
			}
		}
	}
	return all
}

// held runs a program on all files, and compares its output.
func held(t *testing.T, command ...string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files(t) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(command[0], append(command[1:], append([]string{file}, strings.Fields(script)...)...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if want := spoken(t, data); err != nil || strings.ReplaceAll(string(out), "\r\n", "\n") != want {
			t.Errorf("%s: %v %s\ngot\n%s\nwant\n%s", name, err, said.String(), out, want)
		}
	}
}

// TestC tests the reader in C, with memory checks if the compiler has them.
func TestC(t *testing.T) {
	tried := false
	for _, c := range [][]string{{"gcc", "-std=c99", "-fsanitize=address,undefined"}, {"clang", "-std=c99",
		"-fsanitize=address,undefined"}, {"g++", "-x", "c++", "-std=c++17"}} {
		compiler, err := exec.LookPath(c[0])
		if err != nil {
			continue
		}
		tried = true
		program := filepath.Join(t.TempDir(), "check")
		args := append(c[1:], "-O1", "-Wall", "-Wextra", "-Werror", "-I", "../c", "testdata/check.c", "-lm", "-o", program)
		if said, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c[0], err, said)
			continue
		}
		held(t, program)
	}
	if !tried {
		t.Skip("there is no C compiler; gcc, clang and g++ would compile kiln_sound.h")
	}
}

// TestJS tests the reader in JavaScript.
func TestJS(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node; it would run kiln_sound.mjs")
	}
	held(t, node, "testdata/check.mjs")
}

func BenchmarkQOA(b *testing.B) {
	s, err := Open(made(b, "qoa", 44100, 2, 441000, &soundfile.Notes{}))
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]int16, 2*4096)
	b.SetBytes(int64(binary.Size(make([]int16, 2*441000))))
	for b.Loop() {
		p := s.Play()
		for p.Read(buf) > 0 {
		}
	}
}
