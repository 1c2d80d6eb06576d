package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/inpututil"

	"example.com/knights/assets"
	"example.com/knights/mix"
	"github.com/kiln-pipeline/kiln/kilnrt/sound"
)

// loadSound opens a sound. Its samples are decoded while they play.
func loadSound(_ resources, in *thing) (any, error) {
	b, err := in.content.Bytes()
	if err != nil {
		return nil, err
	}
	return sound.Open(b)
}

// variations are sounds for the same event.
type variations []*sound.Sound

// loadVariations returns all that the list needs. The list itself has their names, in order, which this game does not use.
func loadVariations(_ resources, in *thing) (any, error) {
	var sounds variations
	for _, id := range slices.Sorted(maps.Keys(in.needs)) {
		if s, ok := in.needs[id].(*sound.Sound); ok {
			sounds = append(sounds, s)
		}
	}
	if len(sounds) == 0 {
		return nil, errors.New("there are no variations")
	}
	return sounds, nil
}

// deviceRate is the rate of the mix: all devices have it.
const deviceRate = 44100

// handle keeps a resource loaded. Its value changes when a watcher swaps in a new one.
type handle interface {
	Value() any
	Release()
}

// sounds plays the sounds of the scene: the theme, which loops, a step for each foot of a knight that touches the ground,
// and the horn when H is pressed. M stops and starts the theme.
type sounds struct {
	mixer             *mix.Mixer
	theme, horn, step handle
	music             *mix.Voice // the theme; nil: stopped
	turn              mix.Turn   // of the variations of a step
}

// listen loads the sounds, and begins to play. A game without sounds, or without a device for them, is silent.
func listen(load func(id uint32) (handle, error)) *sounds {
	s, err := loadSounds(load)
	if err != nil {
		silent(err)
		return nil
	}
	openDevice(deviceRate, s.mixer, func(err error) {
		silent(err)
		s.close()
	})
	s.toggle()
	return s
}

// close ends all sounds: the device would read them, also when their parcel is closed.
func (s *sounds) close() {
	if s != nil {
		s.mixer.Close()
	}
}

func loadSounds(load func(id uint32) (handle, error)) (*sounds, error) {
	s := &sounds{mixer: mix.New(deviceRate)}
	for to, id := range map[*handle]assets.ID{&s.theme: assets.SoundsSoundsThemeWav, &s.horn: assets.SoundsSoundsHornWav,
		&s.step: assets.SoundsSoundsStep01WavVariations} {
		h, err := load(uint32(id))
		if err != nil {
			return nil, err
		}
		*to = h
	}
	return s, nil
}

// silent says why nothing is heard.
func silent(err error) { fmt.Fprintln(os.Stderr, "knights: no sound:", err) }

// toggle stops or starts the theme.
func (s *sounds) toggle() {
	if s.music != nil {
		s.music.Stop()
		s.music = nil
		return
	}
	s.music = s.mixer.Play(s.theme.Value().(*sound.Sound), true)
}

// update is called once a tick. The feet of knights touch the ground that many times in it.
func (s *sounds) update(steps int) {
	if inpututil.IsKeyJustPressed(ebiten.KeyM) {
		s.toggle()
	}
	if inpututil.IsKeyJustPressed(ebiten.KeyH) {
		s.mixer.Play(s.horn.Value().(*sound.Sound), false)
	}
	for range steps {
		all := s.step.Value().(variations)
		s.mixer.Play(all[s.turn.Next(len(all))], false)
	}
	if s.music != nil {
		if now := s.theme.Value().(*sound.Sound); now != s.music.Sound() { // saved while the game runs
			s.music.Swap(now)
		}
	}
}
