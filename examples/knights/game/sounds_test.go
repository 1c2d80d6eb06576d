package main

import (
	"encoding/binary"
	"math"
	"testing"

	"example.com/knights/assets"
	"example.com/knights/mix"
	"github.com/kiln-pipeline/kiln/kilnrt/sound"
)

// saved is a resource that a watcher replaces.
type saved struct{ value any }

func (s *saved) Value() any { return s.value }
func (s *saved) Release()   {}

// constant returns a sound of a second in which all samples have a value: WAV of floats.
func constant(t *testing.T, value float32) *sound.Sound {
	t.Helper()
	le := binary.LittleEndian
	b := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x03\x00\x01\x00"), make([]byte, 12)...)
	le.PutUint32(b[24:], deviceRate)
	le.PutUint16(b[32:], 4)
	le.PutUint16(b[34:], 32)
	b = le.AppendUint32(append(b, "data"...), 4*deviceRate)
	for range deviceRate {
		b = le.AppendUint32(b, math.Float32bits(value))
	}
	s, err := sound.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	s.Loops = []sound.Loop{{Begin: 0, End: s.Frames}}
	return s
}

// What a device would play: the theme, the steps in it, and a theme that was saved while it plays.
func TestSounds(t *testing.T) {
	theme := &saved{constant(t, 0.25)}
	step := constant(t, 0.125)
	steps := &saved{variations{step, step, step}}
	s, err := loadSounds(func(id uint32) (handle, error) {
		if assets.ID(id) == assets.SoundsSoundsStep01WavVariations {
			return steps, nil
		}
		return theme, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want float32) {
		t.Helper()
		got := make([]float32, mix.Channels*100)
		s.mixer.Mix(got)
		for _, x := range got[mix.Channels*2:] {
			if x != want {
				t.Fatalf("%s: %v, want %v", what, x, want)
			}
		}
	}
	expect("before the theme", 0)
	s.toggle()
	expect("the theme", 0.25)
	s.update(2)
	expect("two steps", 0.5)
	theme.value = constant(t, 0.5)
	s.update(0)
	expect("another theme", 0.75)
	s.toggle()
	expect("without the theme", 0.25)
}

// A foot touches the ground twice in each run of an animation.
func TestSteps(t *testing.T) {
	s := &scene{runners: []runner{{frames: make([]frame, 8), rate: 12}, {frames: make([]frame, 8), rate: 8, begins: 0.25}}}
	n := 0
	for tick := range 600 { // ten seconds
		n += s.steps(float64(tick)/60, float64(tick+1)/60)
	}
	if n != 30+20 {
		t.Errorf("%d steps, want 50", n)
	}
}
