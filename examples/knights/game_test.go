package knights

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/png"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/kiln-pipeline/kiln"
	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	builds "github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/workspace"
	"github.com/kiln-pipeline/kiln/internal/processors"
)

// Both tests show the scene half a second after its begin, and compare it with a picture that was checked by eye.
// Graphics drivers and browsers round differently, so a mean difference of 1 of 255 is allowed. The page has 0.09; a
// missing runner gives 1.8, and a sixtieth of a second more gives 2.6.
const (
	scenePicture = "game/testdata/scene.png"
	sceneMeans   = 1.0
)

// copyExample copies the files that a build of the example needs.
func copyExample(t *testing.T) string {
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
	return dir
}

// buildExample builds the example in its folder, and returns the path of the parcel.
func buildExample(t *testing.T, dir string) string {
	t.Helper()
	p, err := kiln.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := p.Build(t.Context(), kiln.BuildOptions{})
	if err != nil || len(sum.Messages) > 0 {
		t.Fatal(err, sum.Messages)
	}
	return filepath.Join(dir, "build", "parcels", "web", "scene.parcel")
}

// TestCommitted checks that the committed files of a build are the same after a new build.
func TestCommitted(t *testing.T) {
	dir := copyExample(t)
	buildExample(t, dir)
	for _, f := range []string{"kiln.ids", "game/assets/assets.go", "game/web/assets.mjs"} {
		got, _ := os.ReadFile(filepath.Join(dir, f))
		if want, _ := os.ReadFile(f); !bytes.Equal(got, want) {
			t.Errorf("%s is not what a build writes: kiln build -C examples/knights, and commit it", f)
		}
	}
}

// TestChecked checks that kiln check has nothing to say about the example: people copy from it.
func TestChecked(t *testing.T) {
	p, err := builds.Open(workspace.Config{Dir: copyExample(t), Version: "test", Processors: processors.All()})
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Check()
	if err != nil || len(found.Messages) > 0 {
		t.Fatal(err, found.Messages)
	}
}

// patience is the time limit for a whole test of a game or a page, including compiling kiln serve and building the
// example. The machine may be busy.
const patience = 20 * time.Minute

// save replaces a file of the example in one step. If the file were written in place, a busy machine might show an
// empty scene in the meantime.
func save(file string, data []byte) error {
	beside := filepath.Join(filepath.Dir(file), "..", "..", ".saved")
	return errors.Join(os.WriteFile(beside, data, 0o666), os.Rename(beside, file))
}

// player runs the game on a screen in memory.
type player struct {
	t    *testing.T
	xvfb string
	game string
}

func newPlayer(t *testing.T) *player {
	t.Helper()
	xvfb, err := exec.LookPath("xvfb-run")
	if err != nil {
		t.Skip("xvfb-run is not installed: the game is not run")
	}
	for _, header := range []string{"/usr/include/X11/extensions/Xrandr.h", "/usr/include/GL/gl.h"} {
		if _, err := os.Stat(header); err != nil {
			t.Skipf("%s is not there: the game cannot be compiled; its README says what it needs", header)
		}
	}
	p := &player{t, xvfb, filepath.Join(t.TempDir(), "game")}
	compile := exec.Command("go", "build", "-o", p.game, "-tags", soundTags(), ".")
	compile.Dir, compile.Env = "game", append(os.Environ(), "CGO_ENABLED=1")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

// soundTags returns the build tags of the game: without ALSA's headers it is compiled without a sound device.
func soundTags() string {
	if exec.Command("pkg-config", "--exists", "alsa").Run() != nil && runtime.GOOS == "linux" {
		return "nosound"
	}
	return ""
}

// onlySilent fails if the game printed more than one line, or something else than that there is no sound device.
func (p *player) onlySilent(errs string) {
	p.t.Helper()
	for i, line := range slices.Collect(strings.Lines(errs)) {
		text, ok := strings.CutPrefix(line, "knights: no sound: ")
		if i > 0 || !ok || !strings.HasPrefix(text, "oto: ") && !strings.Contains(text, "-tags nosound") {
			p.t.Errorf("the game printed:\n%s", errs)
			return
		}
	}
}

// play runs the game, and returns its screenshot. shown is called when it shows something.
func (p *player) play(shown func(), args ...string) []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	shot := filepath.Join(p.t.TempDir(), "shot.png")
	c := exec.CommandContext(ctx, p.xvfb, append([]string{"-a", p.game, "-screenshot", shot}, args...)...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "shown" && shown != nil {
			shown()
		}
	}
	if err := c.Wait(); err != nil {
		p.t.Fatalf("%v: %v\n%s", c.Args, err, errs.Bytes())
	}
	p.onlySilent(errs.String())
	data, err := os.ReadFile(shot)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// TestGameSounds runs the tests of the game's mixer, which compare what a sound device would get with the built sounds.
func TestGameSounds(t *testing.T) {
	thorough.Only(t, "a module of its own is compiled")
	parcel := filepath.Join(filepath.Dir(buildExample(t, copyExample(t))), "sounds.parcel")
	c := exec.Command("go", "test", "-vet=off", "-v", "./mix")
	c.Dir, c.Env = "game", append(os.Environ(), "KNIGHTS_SOUNDS="+parcel)
	out, err := c.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("--- SKIP")) || !bytes.Contains(out, []byte("--- PASS: TestTheme")) {
		t.Errorf("%v: %v\n%s", c.Args, err, out)
	}
}

// TestGame runs the game with the parcel, and the game's own tests.
func TestGame(t *testing.T) {
	thorough.Only(t, "a game is compiled, or a browser started")
	p := newPlayer(t)
	c := exec.Command(p.xvfb, "-a", "go", "test", "-vet=off", "-tags", soundTags(), ".")
	c.Dir, c.Env = "game", append(os.Environ(), "CGO_ENABLED=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", c.Args, err, out)
	}
	compareScene(t, p.play(nil, "-parcel", buildExample(t, copyExample(t))))
}

// TestGameLive runs the game without a parcel, connected to kiln serve, and saves the scene while it runs: the picture
// must be that of a parcel with the saved scene.
func TestGameLive(t *testing.T) {
	thorough.Only(t, "a game is compiled, or a browser started")
	p := newPlayer(t)
	dir := copyExample(t)
	address := serve(t, dir)
	compareScene(t, p.play(nil, "-live", "-address", address))

	scene := filepath.Join(dir, "assets", "data", "scene.yaml")
	text, err := os.ReadFile(scene)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(text, []byte("coins: 1240"), []byte("coins: 8888"), 1)
	edited = bytes.Replace(edited, []byte("[heart, heart, heart_half, heart_empty]"), []byte("[heart, heart, heart, heart]"), 1)
	got := p.play(func() {
		if err := save(scene, edited); err != nil {
			t.Error(err)
		}
	}, "-live", "-address", address, "-reload")
	other := copyExample(t)
	if err := os.WriteFile(filepath.Join(other, "assets", "data", "scene.yaml"), edited, 0o666); err != nil {
		t.Fatal(err)
	}
	if want := p.play(nil, "-parcel", buildExample(t, other)); !bytes.Equal(got, want) {
		t.Errorf("the picture is not that of a parcel with what was saved: %.3f of 255 in the mean", difference(decode(t, got), decode(t, want)))
	}
	if want, _ := os.ReadFile(scenePicture); difference(decode(t, got), decode(t, want)) < 0.05 {
		t.Error("nothing has changed on the screen")
	}
}

// serve runs kiln serve in a project until the test ends, and returns its address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "kiln")
	if out, err := exec.Command("go", "build", "-o", tool, "../../cmd/kiln").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(tool, "serve", "-C", dir, "--listen", "127.0.0.1:0")
	said, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			go io.Copy(io.Discard, said)
			return address
		}
	}
	t.Fatal("kiln serve does not serve")
	return ""
}

// page is a browser that can show the page.
type page struct {
	t      *testing.T
	ctx    context.Context
	server *httptest.Server
}

// newPage opens a browser. dir is the folder where the example was built.
func newPage(t *testing.T, dir string) *page {
	t.Helper()
	tool, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium")
	}
	mime.AddExtensionType(".mjs", "text/javascript") // otherwise it depends on the system's tables
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("../..")))
	mux.Handle("/examples/knights/build/", http.StripPrefix("/examples/knights/", http.FileServer(http.Dir(dir))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(tool), chromedp.NoSandbox)...) // our page
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
		t.Skipf("%s does not run here: %v", tool, err)
	}
	return &page{t, ctx, server}
}

// open shows the page, and returns its picture.
func (p *page) open(query string) []byte {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Navigate(p.server.URL+"/examples/knights/game/web/?at=0.5"+query)); err != nil {
		p.t.Fatal(err)
	}
	return p.picture(`document.body.dataset.state === "failed" ? document.getElementById("note").textContent : document.body.dataset.state && shown`)
}

// picture waits until an expression over the shown picture, a PNG file as a data URL, is true. The expression returns
// the URL, or an error.
func (p *page) picture(when string) []byte {
	p.t.Helper()
	got, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`new Promise((done) => (function look() {
		const shown = document.getElementById("scene").toDataURL();
		const is = `+when+`;
		is ? done(is) : requestAnimationFrame(look);
	})())`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	text, ok := strings.CutPrefix(got, "data:image/png;base64,")
	if !ok {
		p.t.Fatal(got)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// TestPage shows the page in Chromium.
func TestPage(t *testing.T) {
	thorough.Only(t, "a game is compiled, or a browser started")
	dir := copyExample(t)
	p := newPage(t, dir)
	buildExample(t, dir)
	compareScene(t, p.open(""))
}

// TestPageLive shows the page connected to kiln serve, and saves the scene: the picture must change while the page is
// open.
func TestPageLive(t *testing.T) {
	thorough.Only(t, "a game is compiled, or a browser started")
	dir := copyExample(t)
	p := newPage(t, dir)
	before := p.open("&live=" + serve(t, dir))
	compareScene(t, before)
	scene := filepath.Join(dir, "assets", "data", "scene.yaml")
	text, err := os.ReadFile(scene)
	if err != nil {
		t.Fatal(err)
	}
	if err := save(scene, bytes.Replace(text, []byte("coins: 1240"), []byte("coins: 8888"), 1)); err != nil {
		t.Fatal(err)
	}
	after := p.picture(`shown !== "data:image/png;base64,` + base64.StdEncoding.EncodeToString(before) + `" && shown`)
	if d := difference(decode(t, before), decode(t, after)); d == 0 || d > 1 {
		t.Errorf("differs by %.3f of 255 in the mean: only the coins should", d)
	}
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
	a, b := decode(t, data), decode(t, want)
	if a.Bounds() != b.Bounds() {
		t.Fatalf("%v, not %v", a.Bounds(), b.Bounds())
	}
	if d := difference(a, b); d > sceneMeans {
		t.Errorf("differs by %.2f of 255 in the mean", d)
	} else {
		t.Logf("differs by %.3f of 255 in the mean", d)
	}
}

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// difference returns the mean difference over all pixels and colours, in units of 1/255.
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
