// Knights is a small game that shows a scene from one of Kiln's parcels, with constants that Kiln wrote.
//
//	kiln build -C ..        makes ../build/parcels/web/scene.parcel and assets/assets.go
//	go run . -live          loads everything from a running kiln serve -C .., and shows changes when they are saved
//	go run .                needs a C compiler and the libraries that Ebitengine names
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"time"

	"github.com/hajimehoshi/ebiten/v2"

	"example.com/knights/assets"
	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/live"
)

// game is a game for Ebitengine.
type game struct {
	scene      func() *scene // returns the current scene
	ticks      int           // sixtieths of a second
	screenshot string
	at         int  // the tick of the screenshot
	taken      bool // the screenshot was taken

	frame  func() bool // called before each frame; reports whether the scene has changed; nil if it never does
	reload bool        // time restarts when the scene changes
	shown  bool        // it was drawn at least once
	sounds *sounds     // nil: silent
}

func (g *game) Update() error {
	if g.frame != nil && g.frame() {
		g.reload = false
	}
	switch {
	case g.reload:
		return nil
	case g.taken:
		return ebiten.Termination
	case g.screenshot != "" && g.ticks == g.at: // on a busy machine some ticks are not drawn: wait until this one is
		return nil
	}
	if g.sounds != nil {
		g.sounds.update(g.scene().steps(g.seconds(g.ticks), g.seconds(g.ticks+1)))
	}
	g.ticks++
	return nil
}

func (g *game) seconds(ticks int) float64 { return float64(ticks) / ebiten.DefaultTPS }

func (g *game) Draw(screen *ebiten.Image) {
	g.scene().draw(screen, g.seconds(g.ticks))
	if !g.shown {
		g.shown = true
		fmt.Println("shown")
	}
	if g.screenshot != "" && g.ticks == g.at && !g.taken {
		if err := save(g.screenshot, screen); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		g.taken = true
	}
}

func (g *game) Layout(int, int) (int, int) { s := g.scene(); return s.width, s.height }

func save(file string, screen *ebiten.Image) error {
	b := screen.Bounds()
	img := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	screen.ReadPixels(img.Pix)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		return err
	}
	return f.Close()
}

func main() {
	parcel := flag.String("parcel", "../build/parcels/web/scene.parcel", "the parcel with the scene")
	screenshot := flag.String("screenshot", "", "write a picture to this file, and end")
	at := flag.Int("at", 30, "sixtieths of a second until the picture is taken")
	watch := flag.Bool("live", false, "take everything from kiln serve, not from a parcel")
	address := flag.String("address", live.DefaultAddress, "where kiln serve is")
	reload := flag.Bool("reload", false, "with -live, wait until something was saved before time begins")
	flag.Parse()
	g := &game{screenshot: *screenshot, at: *at, reload: *reload}
	var err error
	if *watch {
		err = g.watch(*address)
	} else {
		err = g.open(*parcel)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "knights:", err)
		os.Exit(1)
	}
}

// open runs the game with the content of a parcel.
func (g *game) open(file string) error {
	parcel, err := kilnrt.Open(file)
	if err != nil {
		return fmt.Errorf("%w (kiln build -C .. makes it)", err)
	}
	defer parcel.Close()
	all := []*kilnrt.Parcel{parcel}
	more, err := kilnrt.Open(filepath.Join(filepath.Dir(file), "sounds.parcel"))
	if err == nil {
		defer more.Close()
		all = append(all, more)
	}
	lib := openParcels(all...)
	handle, err := lib.Load(uint32(assets.SceneDataSceneYaml))
	if err != nil {
		return err
	}
	defer handle.Release()
	g.sounds = listen(lib.load)
	defer g.sounds.close()
	return g.run(handle.Value)
}

// watch runs the game with the current content of kiln serve.
func (g *game) watch(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the first build may still run
	defer cancel()
	lib, err := connect(ctx, address)
	if err != nil {
		return fmt.Errorf("%w (kiln serve -C .. has to run)", err)
	}
	defer lib.Close()
	handle, err := lib.Load(uint32(assets.SceneDataSceneYaml))
	if err != nil {
		return err
	}
	defer handle.Release()
	g.sounds = listen(lib.load)
	defer g.sounds.close()
	g.frame = func() bool { return len(lib.Poll()) > 0 }
	return g.run(handle.Value)
}

func (g *game) run(value func() any) error {
	g.scene = func() *scene { return value().(*scene) }
	ebiten.SetWindowTitle("Knights")
	ebiten.SetWindowSize(2*g.scene().width, 2*g.scene().height)
	return ebiten.RunGame(g)
}
