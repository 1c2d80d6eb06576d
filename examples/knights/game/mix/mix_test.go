package mix

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"

	"example.com/knights/assets"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/sound"
)

// open returns a sound of the parcel that KNIGHTS_SOUNDS names. `go test ./examples/knights`, in the module above, builds
// it and runs these tests.
func open(t *testing.T, id assets.ID) *sound.Sound {
	t.Helper()
	file := os.Getenv("KNIGHTS_SOUNDS")
	if file == "" {
		t.Skip("KNIGHTS_SOUNDS does not name a sounds.parcel")
	}
	parcel, err := kilnrt.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parcel.Close() })
	lib := kilnrt.NewLibrary()
	lib.Mount(parcel)
	r, err := lib.Find(uint32(id))
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sound.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// frames returns all frames of a sound, left and right: its 16 bits, and its gain.
func frames(t *testing.T, s *sound.Sound) []float32 {
	t.Helper()
	ints := make([]int16, s.Frames*int64(s.Channels))
	if n := s.Play().Read(ints); int64(n) != s.Frames {
		t.Fatalf("%d frames of %d", n, s.Frames)
	}
	gain := float32(math.Pow(10, s.Gain/20))
	out := make([]float32, 0, 2*s.Frames)
	for i := range s.Frames {
		at := i * int64(s.Channels)
		left, right := ints[at], ints[at+int64(min(1, s.Channels-1))]
		out = append(out, float32(left)/32768*gain, float32(right)/32768*gain)
	}
	return out
}

// mixed returns the next frames of a mix, read in pieces of many sizes.
func mixed(m *Mixer, count int) []float32 {
	out := make([]float32, Channels*count)
	size := 1
	for at := 0; at < count; size = size*3%1021 + 1 {
		n := min(size, count-at)
		m.Mix(out[Channels*at : Channels*(at+n)])
		at += n
	}
	return out
}

func equal(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d samples, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-6 { // less than a twentieth of a step of 16 bits
			t.Fatalf("%s: frame %d is %v, want %v", what, i/Channels, got[i], want[i])
		}
	}
}

// The theme repeats its loop to the frame, as loud as the build has decided.
func TestTheme(t *testing.T) {
	s := open(t, assets.SoundsSoundsThemeWav)
	if len(s.Loops) != 1 || s.Gain == 0 {
		t.Fatalf("the theme has loops %v, gain %v", s.Loops, s.Gain)
	}
	once, loop := frames(t, s), s.Loops[0]
	var want []float32
	for i := range 3 * s.Frames {
		if i >= loop.End {
			i = loop.Begin + (i-loop.End)%(loop.End-loop.Begin)
		}
		want = append(want, once[2*i], once[2*i+1])
	}
	m := New(s.Rate)
	m.Play(s, true)
	equal(t, "the theme", mixed(m, int(3*s.Frames)), want)

	// At twice the rate, each frame is followed by the mean of it and the next one.
	m = New(2 * s.Rate)
	m.Play(s, true)
	double := mixed(m, int(5*s.Frames))
	for i := range double {
		frame, c := i/2, i%2
		expect := want[frame/2*2+c]
		if frame%2 == 1 {
			expect = (expect + want[(frame/2+1)*2+c]) / 2
		}
		if math.Abs(float64(double[i]-expect)) > 1e-6 {
			t.Fatalf("at twice the rate, frame %d is %v, want %v", frame, double[i], expect)
		}
	}
}

// Without a loop a sound ends, and sounds that play at the same time are added.
func TestSum(t *testing.T) {
	horn, step := open(t, assets.SoundsSoundsHornWav), open(t, assets.SoundsSoundsStep02Wav)
	const later = 777
	want := append(frames(t, horn), make([]float32, 2*(step.Frames+later))...)
	for i, x := range frames(t, step) {
		want[2*later+i] += x
	}
	for i, x := range want {
		want[i] = min(max(x, -1), 1)
	}
	m := New(horn.Rate)
	m.Play(horn, false)
	got := mixed(m, later)
	m.Play(step, false)
	got = append(got, mixed(m, len(want)/2-later)...)
	equal(t, "the horn and a step", got, want)
	if len(m.voices) != 0 {
		t.Errorf("%d voices play after their end", len(m.voices))
	}
}

// A sound that was replaced continues where it was, in its loop.
func TestSwap(t *testing.T) {
	old := made(1000, 0.25, sound.Loop{Begin: 100, End: 1000})
	for _, c := range []struct {
		with  *sound.Sound
		after int
		value float32
	}{
		{made(1000, 0.5, sound.Loop{Begin: 100, End: 1000}), 2, 0.5},
		{made(300, -0.5, sound.Loop{Begin: 100, End: 300}), 2, -0.5}, // it is shorter: its loop begins again
	} {
		m := New(old.Rate)
		v := m.Play(old, true)
		equal(t, "before", mixed(m, 600), slices.Repeat([]float32{0.25}, 1200))
		v.Swap(c.with)
		if v.Sound() != c.with {
			t.Error("the voice has the old sound")
		}
		equal(t, "after", mixed(m, 5000)[2*c.after:], slices.Repeat([]float32{c.value}, 2*(5000-c.after)))
		v.Stop()
		equal(t, "stopped", mixed(m, 100), make([]float32, 200))
	}
}

// made returns a sound of one channel with a constant value: WAV of floats, which has no loop of its own.
func made(count int, value float32, loop sound.Loop) *sound.Sound {
	le := binary.LittleEndian
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x03\x00\x01\x00"), make([]byte, 12)...)
	le.PutUint32(b[24:], 22050)
	le.PutUint32(b[28:], 4*22050)
	le.PutUint16(b[32:], 4)
	le.PutUint16(b[34:], 32)
	b = le.AppendUint32(append(b, "data"...), uint32(4*count))
	for range count {
		b = le.AppendUint32(b, math.Float32bits(value))
	}
	s, err := sound.Open(b)
	if err != nil {
		panic(err)
	}
	s.Loops = []sound.Loop{loop}
	return s
}

// A device gets whole frames of floats, and silence if nothing plays.
func TestRead(t *testing.T) {
	m := New(22050)
	m.Play(made(3, 0.5, sound.Loop{}), false)
	b := make([]byte, 8*5+3)
	n, err := m.Read(b)
	if n != 40 || err != nil {
		t.Fatal(n, err)
	}
	for i := range 10 {
		want := float32(0)
		if i < 6 {
			want = 0.5
		}
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != want {
			t.Errorf("sample %d is %v, want %v", i, got, want)
		}
	}
}

// A closed mix plays nothing, and keeps nothing.
func TestClose(t *testing.T) {
	m := New(22050)
	s := made(1000, 0.5, sound.Loop{Begin: 0, End: 1000})
	v := m.Play(s, true)
	equal(t, "before", mixed(m, 100), slices.Repeat([]float32{0.5}, 200))
	m.Close()
	m.Play(s, true).Swap(made(10, 1, sound.Loop{}))
	v.Swap(made(10, 1, sound.Loop{}))
	v.Stop()
	equal(t, "after", mixed(m, 100), make([]float32, 200))
	if len(m.voices) != 0 {
		t.Errorf("%d voices", len(m.voices))
	}
}

// All variations are played, and none twice in a row.
func TestTurn(t *testing.T) {
	var turn Turn
	count, last := [4]int{}, -1
	for range 1000 {
		next := turn.Next(4)
		if next == last {
			t.Fatal("the same variation twice in a row")
		}
		count[next], last = count[next]+1, next
	}
	if slices.Min(count[:]) < 100 {
		t.Errorf("how often each was played: %v", count)
	}
	if turn = (Turn{}); turn.Next(1)+turn.Next(1) != 0 {
		t.Error("of one variation, not the first")
	}
}
