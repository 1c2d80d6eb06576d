// Package mix mixes the sounds that a game plays at the same time. It needs no sound device: a device, or a test, reads
// the samples.
package mix

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/kiln-pipeline/kiln/kilnrt/sound"
)

// Channels is the number of channels of the mix: left and right.
const Channels = 2

// Mixer is a mix of voices, as a stream of frames. Its methods may be called at any time, by several goroutines.
type Mixer struct {
	mu     sync.Mutex
	rate   int
	voices []*Voice
	floats []float32
	closed bool
}

// New returns a mixer of that many frames a second.
func New(rate int) *Mixer { return &Mixer{rate: rate} }

// Voice is a sound that is playing.
type Voice struct {
	m    *Mixer
	s    *sound.Sound
	p    *sound.Player
	loop bool
	read []float32

	// The mix is between two frames of the sound: part/rate of the way from now to next. Left is how many of them exist.
	now, next [Channels]float32
	part      int
	left      int
}

// Play starts a sound, with the gain that Kiln noted in it. With loop it repeats the loop of its file, if it has one.
func (m *Mixer) Play(s *sound.Sound, loop bool) *Voice {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &Voice{m: m, loop: loop}
	if v.s = s; m.closed {
		return v
	}
	v.from(s, 0)
	v.advance()
	v.advance()
	m.voices = append(m.voices, v)
	return v
}

// Close ends all sounds, and those that are played later. Afterwards no sound is read any more, so its parcel can be closed.
func (m *Mixer) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.voices = true, nil
}

func (v *Voice) from(s *sound.Sound, frame int64) {
	v.s, v.p, v.read = s, s.Play(), make([]float32, s.Channels)
	v.p.Loop(v.loop)
	v.p.SeekFrame(frame)
}

// advance reads a frame. After the last one there is silence.
func (v *Voice) advance() {
	v.now, v.next = v.next, [Channels]float32{}
	v.left = max(v.left-1, 0)
	if v.p.ReadFloat(v.read) == 1 {
		v.left = 2
		v.next = [Channels]float32{v.read[0], v.read[min(1, len(v.read)-1)]} // a sound of one channel is on both sides
	}
}

// Sound returns what is playing.
func (v *Voice) Sound() *sound.Sound {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	return v.s
}

// Swap continues with another sound where this one is: a new version of it, for example. A loop that is shorter begins
// again.
func (v *Voice) Swap(s *sound.Sound) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	if v.s = s; v.m.closed {
		return
	}
	at := v.p.Frame()
	if v.loop && len(s.Loops) > 0 && at >= s.Loops[0].End {
		at = s.Loops[0].Begin
	}
	v.from(s, at)
}

// Stop ends a sound.
func (v *Voice) Stop() {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	v.left = 0
}

// Mix fills dst with frames, left and right. Where nothing plays, there is silence.
func (m *Mixer) Mix(dst []float32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(dst)
	playing := m.voices[:0]
	for _, v := range m.voices {
		v.add(dst, m.rate)
		if v.left > 0 {
			playing = append(playing, v)
		}
	}
	clear(m.voices[len(playing):])
	m.voices = playing
	for i, x := range dst {
		dst[i] = min(max(x, -1), 1)
	}
}

func (v *Voice) add(dst []float32, rate int) {
	for i := 0; i+Channels <= len(dst) && v.left > 0; i += Channels {
		part := float32(v.part) / float32(rate)
		for c := range Channels {
			dst[i+c] += v.now[c] + (v.next[c]-v.now[c])*part
		}
		for v.part += v.s.Rate; v.part >= rate; v.part -= rate {
			v.advance()
		}
	}
}

// Read is Mix for a device that takes bytes: floats of 32 bits, little-endian. It always fills whole frames.
func (m *Mixer) Read(p []byte) (int, error) {
	n := len(p) / (4 * Channels) * Channels
	if len(m.floats) < n {
		m.floats = make([]float32, n)
	}
	m.Mix(m.floats[:n])
	for i, x := range m.floats[:n] {
		binary.LittleEndian.PutUint32(p[4*i:], math.Float32bits(x))
	}
	return 4 * n, nil
}

// Turn chooses one of several variations at random, never the same twice in a row.
type Turn struct{ last int }

// Next returns an index below n.
func (t *Turn) Next(n int) int {
	next := rand.IntN(n)
	if next+1 == t.last {
		next = (next + 1) % n
	}
	t.last = next + 1
	return next
}
