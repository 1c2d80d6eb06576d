package knights

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/png"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kiln-pipeline/kiln"
)

// Both tests show the scene half a second after it began, and compare it with the picture that somebody looked at. Graphics
// drivers and browsers round each in its own way, so some difference is allowed: 1 of 255 in the mean. The page has 0.09; a runner
// that is missing makes 1.8, a sixtieth of a second more 2.6.
const (
	scenePicture = "game/testdata/scene.png"
	sceneMeans   = 1.0
)

// parcels builds the example in a folder of its own, and says where its parcels are. What is committed of it must come out again.
func parcels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"assets", "game/web", "game/assets"} {
		if err := os.CopyFS(filepath.Join(dir, d), os.DirFS(d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"kiln.toml", "kiln.ids"} {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, err := kiln.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Build(t.Context(), kiln.BuildOptions{})
	if err != nil || len(sum.Messages) > 0 {
		t.Fatal(err, sum.Messages)
	}
	for _, f := range []string{"kiln.ids", "game/assets/assets.go", "game/web/assets.mjs"} {
		got, _ := os.ReadFile(filepath.Join(dir, f))
		if want, _ := os.ReadFile(f); !bytes.Equal(got, want) {
			t.Errorf("%s is not what a build writes: kiln build -C examples/knights, and commit it", f)
		}
	}
	return filepath.Join(dir, "build", "parcels")
}

// TestGame runs the game on a screen in memory.
func TestGame(t *testing.T) {
	xvfb, err := exec.LookPath("xvfb-run")
	if err != nil {
		t.Skip("xvfb-run is not installed: the game is not run")
	}
	for _, header := range []string{"/usr/include/X11/extensions/Xrandr.h", "/usr/include/GL/gl.h"} {
		if _, err := os.Stat(header); err != nil {
			t.Skipf("%s is not there: the game cannot be compiled; its README says what it needs", header)
		}
	}
	dir := t.TempDir()
	game, shot := filepath.Join(dir, "game"), filepath.Join(dir, "shot.png")
	compile := exec.Command("go", "build", "-o", game, ".")
	compile.Dir, compile.Env = "game", append(os.Environ(), "CGO_ENABLED=1")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, c := range []*exec.Cmd{compile, exec.CommandContext(ctx, xvfb, "-a", game, "-parcel", filepath.Join(parcels(t), "web", "scene.parcel"), "-screenshot", shot)} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c.Args, err, out)
		}
	}
	data, err := os.ReadFile(shot)
	if err != nil {
		t.Fatal(err)
	}
	compareScene(t, data)
}

// TestPage shows the page in Chromium.
func TestPage(t *testing.T) {
	tool, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium")
	}
	mime.AddExtensionType(".mjs", "text/javascript") // else it depends on the system's tables
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("../..")))
	mux.Handle("/examples/knights/build/parcels/", http.StripPrefix("/examples/knights/build/parcels/", http.FileServer(http.Dir(parcels(t)))))
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ctx, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(tool), chromedp.NoSandbox)...) // the page is ours
	defer stop()
	ctx, leave := chromedp.NewContext(ctx)
	defer leave()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
		t.Skipf("%s does not run here: %v", tool, err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Navigate(server.URL+"/examples/knights/game/web/?at=0.5")); err != nil {
		t.Fatal(err)
	}
	const shown = `new Promise((done) => (function look() {
		const state = document.body.dataset.state;
		state ? done(state === "shown" ? document.getElementById("scene").toDataURL() : document.getElementById("note").textContent) : setTimeout(look, 10);
	})())`
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](shown, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(got, "data:image/png;base64,")
	if !ok {
		t.Fatal(got)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	compareScene(t, data)
}

func compareScene(t *testing.T, data []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(scenePicture, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(scenePicture)
	if err != nil {
		t.Fatal(err)
	}
	a, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b, err := png.Decode(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if a.Bounds() != b.Bounds() {
		t.Fatalf("%v, not %v", a.Bounds(), b.Bounds())
	}
	if d := difference(a, b); d > sceneMeans {
		t.Errorf("differs by %.2f of 255 in the mean", d)
	} else {
		t.Logf("differs by %.3f of 255 in the mean", d)
	}
}

// difference is the mean over all pixels and colours, of 255.
func difference(a, b image.Image) float64 {
	sum, n := 0.0, 0
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			for _, c := range [][2]uint32{{r1, r2}, {g1, g2}, {b1, b2}} {
				sum += float64(max(c[0], c[1])-min(c[0], c[1])) / 257
				n++
			}
		}
	}
	return sum / float64(n)
}
