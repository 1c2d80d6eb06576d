package main

import (
	"fmt"
	"math"

	"github.com/hajimehoshi/ebiten/v2"
)

// scene is assets/data/scene.yaml with the resources in place of their names.
type scene struct {
	width, height int
	backdrop      []*texture
	ground        *texture
	groundY       float64
	groundSpeed   float64 // pixels per second
	runners       []runner
	portraits     []portrait
	hud           *atlas
	hearts        []string
	coins         int
}

type runner struct {
	frames []frame
	at     [2]float64
	rate   float64 // frames per second
	begins float64 // in seconds
}

type portrait struct {
	*texture
	at, size [2]float64
}

// loadScene reads the scene's data. The build has checked it with a schema, so an error here is a bug in the game.
func loadScene(all resources, in *thing) (any, error) {
	var data struct {
		Size     [2]int
		Backdrop []string
		Ground   struct {
			Texture  string
			Y, Speed float64
		}
		Runners []struct {
			Atlas, Animation string
			At               [2]float64
			Rate, Begins     float64
		}
		Portraits []struct {
			Texture  string
			At, Size [2]float64
		}
		HUD struct {
			Atlas  string
			Hearts []string
			Coins  int
		}
	}
	if err := decode(in, &data); err != nil {
		return nil, err
	}
	get := getter{all: all, needs: in.needs}
	s := &scene{
		width: data.Size[0], height: data.Size[1], ground: named[*texture](&get, data.Ground.Texture), groundY: data.Ground.Y, groundSpeed: data.Ground.Speed,
		hud: named[*atlas](&get, data.HUD.Atlas), hearts: data.HUD.Hearts, coins: data.HUD.Coins,
	}
	for _, name := range data.Backdrop {
		s.backdrop = append(s.backdrop, named[*texture](&get, name))
	}
	for _, r := range data.Runners {
		run := runner{at: r.At, rate: r.Rate, begins: r.Begins}
		if a := named[*atlas](&get, r.Atlas); a != nil {
			for _, name := range a.animations[r.Animation] {
				run.frames = append(run.frames, a.frames[name])
			}
		}
		if len(run.frames) == 0 && get.err == nil {
			return nil, fmt.Errorf("%s has no animation %q", r.Atlas, r.Animation)
		}
		s.runners = append(s.runners, run)
	}
	for _, p := range data.Portraits {
		s.portraits = append(s.portraits, portrait{named[*texture](&get, p.Texture), p.At, p.Size})
	}
	return s, get.err
}

// getter finds loaded resources that the scene requires, by name.
type getter struct {
	all   resources
	needs map[uint32]any
	err   error
}

func named[T any](g *getter, name string) (value T) {
	id, err := g.all.byName(name)
	if err == nil {
		var ok bool
		if value, ok = g.needs[id].(T); !ok {
			err = fmt.Errorf("%s is a %T", name, g.needs[id])
		}
	}
	if g.err == nil {
		g.err = err
	}
	return value
}

// steps returns how often a foot touches the ground from one time to another: twice in each run of an animation.
func (s *scene) steps(from, to float64) (n int) {
	for _, r := range s.runners {
		feet := func(seconds float64) int { return int((seconds + r.begins) * r.rate * 2 / float64(len(r.frames))) }
		n += feet(to) - feet(from)
	}
	return n
}

// draw draws the scene at a time after its begin. The page in web/ draws the same.
func (s *scene) draw(screen *ebiten.Image, seconds float64) {
	at := func(img *ebiten.Image, x, y, scaleX, scaleY float64) {
		o := &ebiten.DrawImageOptions{}
		o.GeoM.Scale(scaleX, scaleY)
		o.GeoM.Translate(x, y)
		screen.DrawImage(img, o)
	}
	for _, b := range s.backdrop {
		at(b.Image, 0, 0, 1, 1)
	}
	w := float64(s.ground.Bounds().Dx())
	for x := -math.Floor(math.Mod(seconds*s.groundSpeed, w)); x < float64(s.width); x += w {
		at(s.ground.Image, x, s.groundY, 1, 1)
	}
	for _, r := range s.runners {
		f := r.frames[int((seconds+r.begins)*r.rate)%len(r.frames)]
		at(f.image, r.at[0]+float64(f.offset.X), r.at[1]+float64(f.offset.Y), 1, 1)
	}
	for _, p := range s.portraits {
		b := p.Bounds()
		at(p.Image, p.at[0], p.at[1], p.size[0]/float64(b.Dx()), p.size[1]/float64(b.Dy()))
	}
	x := 8.0
	for _, name := range s.hearts {
		f := s.hud.frames[name]
		at(f.image, x+float64(f.offset.X), 8+float64(f.offset.Y), 1, 1)
		x += 34
	}
	s.drawCoins(at)
}

// digitWidth is the width of a digit in the picture "digits", which has ten of them side by side.
const digitWidth = 12

func (s *scene) drawCoins(at func(img *ebiten.Image, x, y, scaleX, scaleY float64)) {
	text := fmt.Sprint(s.coins)
	x := float64(s.width - 8 - digitWidth*len(text))
	coin, digits := s.hud.frames["coin"], s.hud.frames["digits"]
	at(coin.image, x-30+float64(coin.offset.X), 8+float64(coin.offset.Y), 1, 1)
	min := digits.image.Bounds().Min
	for _, c := range text {
		left := min.X + int(c-'0')*digitWidth - digits.offset.X
		at(cut(digits.image, left, digitWidth), x, 11+float64(digits.offset.Y), 1, 1)
		x += digitWidth
	}
}
