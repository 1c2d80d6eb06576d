// Knights is a small game that shows a scene out of one of Kiln's parcels, through constants that Kiln wrote.
//
//	kiln build -C ..        makes ../build/parcels/web/scene.parcel and assets/assets.go
//	go run .                needs a C compiler and the libraries that Ebitengine names
package main

import (
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"

	"github.com/hajimehoshi/ebiten/v2"

	"example.com/knights/assets"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// game is one that Ebitengine runs.
type game struct {
	scene      *scene
	ticks      int // sixtieths of a second
	screenshot string
	at         int  // the tick of the screenshot
	taken      bool // it has been
}

func (g *game) Update() error {
	switch {
	case g.taken:
		return ebiten.Termination
	case g.screenshot != "" && g.ticks == g.at: // on a busy machine some ticks are not drawn: this one waits until it is
		return nil
	}
	g.ticks++
	return nil
}

func (g *game) Draw(screen *ebiten.Image) {
	g.scene.draw(screen, float64(g.ticks)/ebiten.DefaultTPS)
	if g.screenshot != "" && g.ticks == g.at && !g.taken {
		if err := save(g.screenshot, screen); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		g.taken = true
	}
}

func (g *game) Layout(int, int) (int, int) { return g.scene.width, g.scene.height }

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
	flag.Parse()
	if err := run(*parcel, *screenshot, *at); err != nil {
		fmt.Fprintln(os.Stderr, "knights:", err)
		os.Exit(1)
	}
}

func run(file, screenshot string, at int) error {
	parcel, err := kilnrt.Open(file)
	if err != nil {
		return fmt.Errorf("%w (kiln build -C .. makes it)", err)
	}
	defer parcel.Close()
	lib := kilnrt.NewLibrary()
	lib.Mount(parcel)
	register(lib)
	handle, err := lib.Load(uint32(assets.SceneDataSceneYaml))
	if err != nil {
		return err
	}
	defer handle.Release()
	g := &game{scene: handle.Value().(*scene), screenshot: screenshot, at: at}
	ebiten.SetWindowTitle("Knights")
	ebiten.SetWindowSize(2*g.scene.width, 2*g.scene.height)
	return ebiten.RunGame(g)
}
