package dashboard

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
	"github.com/kiln-pipeline/kiln/internal/store/cas/castest"
)

var (
	// Screenshots are written with -screenshots DIR, for the documentation.
	screenshots = flag.String("screenshots", "", "write pictures of the pages to this `folder`")
	// A slow server shows what depends on the order in which parts of a page arrive.
	slow = flag.Duration("slow", 0, "each answer of the server takes this much longer")
)

// patient is how long something may take to come true on a page. A machine may be busy.
const patient = time.Minute

// browser is a Chromium with one page.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	thorough.Only(t, "a browser takes seconds to start")
	var tool string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			tool = found
			break
		}
	}
	if tool == "" {
		t.Skip("there is no Chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	t.Cleanup(cancel)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(tool), chromedp.NoSandbox, // the page is ours
		chromedp.Flag("use-angle", "swiftshader"), chromedp.Flag("enable-unsafe-swiftshader", true), chromedp.WindowSize(1280, 860))
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	b := &browser{t, ctx, base}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
		t.Skipf("%s does not run here: %v", tool, err)
	}
	if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 860)); err != nil {
		t.Fatal(err)
	}
	return b
}

// open opens a page and waits until it is alive.
func (b *browser) open(path string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Navigate(b.base+path)); err != nil {
		b.t.Fatal(err)
	}
	b.until("true")
}

// until waits until something is true on the page, or on the one that comes after it: a page that goes is no error. A page that is
// not complete may lack its style yet, and everything measured on it is wrong then.
func (b *browser) until(expression string) {
	b.t.Helper()
	var err error
	for end := time.Now().Add(patient); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var is bool
		if is, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+expression+`)`)); is {
			return
		}
	}
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.querySelector("main").innerText.slice(0, 2000)`))
	b.t.Fatalf("%s never became true: %v\nthe page says:\n%s", expression, err, text)
}

// value is that of an expression, as JSON.
func (b *browser) value(expression string) string {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[json.RawMessage](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return string(v)
}

// keys presses keys.
func (b *browser) keys(text string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.KeyEvent(text)); err != nil {
		b.t.Fatal(err)
	}
}

// picture takes a picture of the page, if that is wanted.
func (b *browser) picture(name string, dark bool) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.value(fmt.Sprintf(`document.documentElement.style.colorScheme = %q; scrollTo(0, 0); new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))`, scheme))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// TestServerGone: a page says that its server does not answer, and goes on when it does.
func TestServerGone(t *testing.T) {
	p := newProject(t)
	cfg := p.config()
	pages := serve(t, cfg)
	var gone atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		pages.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	b := newBrowser(t, s.URL)
	b.open("/")
	b.until(`document.querySelector("#now h1").textContent === "Up to date" && document.querySelector("#pulse").textContent.includes("Watching")`)
	gone.Store(true)
	s.CloseClientConnections()
	b.until(`document.querySelector("#now h1").textContent.includes("does not answer") && document.querySelector("#pulse").textContent.includes("Not connected")`)
	gone.Store(false)
	b.until(`document.querySelector("#now h1").textContent === "Up to date" && document.querySelector("#pulse").textContent.includes("Watching")`)
}

// TestBrowser walks through all pages, with the project broken and mended meanwhile.
func TestBrowser(t *testing.T) {
	p := newProject(t)
	s := serve(t, p.config())
	b := newBrowser(t, s.URL)

	b.open("/")
	b.until(`document.querySelector("#pulse").textContent.includes("Watching")`)
	b.picture("builds", false)

	b.open("/content")
	b.until(`[...document.querySelectorAll(".thumb img")].every(i => i.complete && i.naturalWidth > 0)`)
	b.picture("content", false)
	b.keys("/")
	b.until(`document.activeElement === document.querySelector(".search input")`)
	b.value(`document.activeElement.value = ""`) // the protocol sends the character by itself, which a keyboard does not
	b.keys("knight gltf")
	b.until(`location.search === "?q=knight+gltf" && document.querySelectorAll("#results tbody tr").length === 1`)

	b.open("/content?folder=textures/&sort=size")
	b.keys("j") // the folders are lines, too
	b.keys("j")
	b.until(`document.activeElement === document.querySelectorAll("[data-row]")[1].querySelector("a") && document.activeElement.matches(":focus-visible")`)
	to := b.value(`document.activeElement.href`)
	b.keys("\r")
	b.until(`location.href === ` + to)

	b.open("/asset/characters/knight/knight.gltf")
	b.until(`+document.querySelector("[data-model]").dataset.drawn > 3`)
	b.until(`document.querySelector("[data-model]").dataset.textures === "1"`)
	b.picture("model", true)

	b.open("/asset/characters/knight/knight.gltf?view=deps")
	b.until(`document.querySelectorAll(".column li").length > 1`)
	b.picture("dependencies", false)
	b.keys("l")
	b.until(`document.querySelector(".column:last-child li.at")`)

	b.open("/asset/sprites/ui/")
	b.until(`document.querySelectorAll(".paper rect").length > 5 && document.querySelector(".paper img").naturalWidth > 0`)
	b.value(`document.querySelector("rect[data-name=shield]").dispatchEvent(new PointerEvent("pointermove", {bubbles: true})); document.querySelector("rect[data-name=shield]").classList.add("at")`)
	if got := b.value(`document.querySelector(".sheet output").textContent`); !strings.HasPrefix(got, `"shield   `) {
		t.Errorf("the frame under the pointer is %s", got)
	}
	b.picture("atlas", false)

	b.open("/asset/textures/title/banner.png")
	b.until(`document.querySelector("#picture").naturalWidth > 0 && document.querySelectorAll(".origins").length > 0`)
	b.picture("texture", true)

	b.open("/asset/data/waves.yaml")
	b.until(`document.querySelectorAll(".origins").length > 0`)
	b.picture("data", false)

	b.open("/parcels")
	b.picture("parcels", false)
	b.open("/parcels/pc/heroes")
	b.picture("parcel", false)
	b.open("/games")
	b.picture("nogames", false)
	b.open("/builds/1")
	b.picture("build", false)
	b.keys("?")
	b.picture("keys", true)
}

// TestViewer looks at a texture from near, by keys, buttons and the wheel, and at its channels and levels.
func TestViewer(t *testing.T) {
	p := newProject(t)
	p.write("assets/textures/title/banner.png", flat(t, 8, 255, 0, 0))
	p.build()
	s := serve(t, p.config())
	b := newBrowser(t, s.URL)
	shown := func(percent int) string {
		return fmt.Sprintf(`document.querySelector("#readout").textContent === "%d %%"`, percent)
	}
	side := `Math.round(document.querySelector("#picture").getBoundingClientRect().width)`
	b.open("/asset/textures/title/banner.png")
	b.until(`document.querySelector("#picture").naturalWidth === 8 && ` + shown(3200) + ` && ` + side + ` === 256`) // all of it, by a whole number
	b.keys("+")
	b.until(shown(6400) + ` && ` + side + ` === 512`)
	if got := b.value(`getComputedStyle(document.querySelector("#picture")).imageRendering`); got != `"pixelated"` {
		t.Errorf("a pixel is drawn %s", got)
	}
	b.value(`document.querySelector("[data-zoom=out]").click(), document.querySelector("[data-zoom=out]").click()`)
	b.until(shown(1600))
	b.value(`document.querySelector(".canvas").dispatchEvent(new WheelEvent("wheel", {deltaY: -300 * Math.LN2, clientX: 400, clientY: 400, cancelable: true}))`)
	b.until(shown(3200))
	b.keys("+")
	b.keys("0")
	b.until(shown(3200) + ` && document.querySelector("#picture").style.transform === ""`)
	b.until(`(() => { const r = document.querySelector("#picture").getBoundingClientRect(); // the pointer stays there, whatever else the page does
		document.querySelector(".canvas").dispatchEvent(new PointerEvent("pointermove", {clientX: r.left + 100, clientY: r.top + 40}));
		return document.querySelector("#readout").textContent === "3, 1   255 0 0 255   3200 %"; })()`)
	if got := b.value(`getComputedStyle(document.querySelector(".canvas")).backgroundImage.startsWith("repeating-conic-gradient")`); got != "true" {
		t.Error("there are no checks behind what is transparent")
	}
	b.value(`[...document.querySelectorAll("[aria-label=Channels] a")].find(a => a.textContent === "G").click()`)
	b.until(`location.search.includes("channels=g") && document.querySelector("[aria-label=Channels] [aria-current]").textContent === "G" && document.querySelector("#picture").src.includes("show=g")`)

	p.write("assets/textures/title/banner.png", "no picture")
	p.build("assets/textures/title/banner.png")
	b.open("/asset/textures/title/banner.png?show=source")
	b.until(`document.querySelector(".canvas").textContent === "This picture cannot be shown: not an image of a known format\n" && document.querySelector(".zoom").hidden`)

	b.open("/asset/sprites/ui/")
	b.until(`document.querySelectorAll(".paper rect").length > 5`)
	b.value(`document.querySelector(".frames").open = true, document.querySelector("[data-frame=coin]").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}))`)
	b.until(`document.querySelector("rect.at")?.dataset.name === "coin"`)
}

// TestTextureChanges holds a page open while the texture on it is painted over: it changes on screen by itself.
func TestTextureChanges(t *testing.T) {
	p := newProject(t)
	p.write("assets/textures/title/banner.png", flat(t, 8, 255, 0, 0))
	p.build()
	s := serve(t, p.config())
	b := newBrowser(t, s.URL)
	b.open("/asset/textures/title/banner.png")
	const middle = `(() => { const i = document.querySelector("#picture"); if (!i?.complete || !i.naturalWidth) return "";
		const g = document.createElement("canvas").getContext("2d"); g.drawImage(i, 0, 0); return [...g.getImageData(4, 4, 1, 1).data].join(" "); })()`
	b.until(middle + ` === "255 0 0 255"`)
	b.value(`window.same = true`)
	p.write("assets/textures/title/banner.png", flat(t, 8, 0, 0, 255))
	p.build("assets/textures/title/banner.png")
	b.until(middle + ` === "0 0 255 255"`)
	if b.value(`!!window.same`) != "true" {
		t.Error("the page was loaded anew")
	}
}

// TestBrowserBusy shows a build under way, problems, games, and names that are too long.
func TestBrowserBusy(t *testing.T) {
	p := newProject(t)
	long := "assets/" + strings.Repeat("a_folder_with_a_long_name/", 4) + strings.Repeat("very_long_", 12) + "name.json"
	p.write(long, `{"quite": "short"}`)
	p.write("assets/data/items.csv", "id,name,price\nsword,Sword,120\nshield,Shield\n")
	p.write("assets/characters/knight/portrait.png", "no picture")
	p.write("assets/data/dialogue.json", "{\n  \"start\": {\"says\": \"Who goes there?\", \"next\": gate}\n}\n")
	p.build()
	now := time.Now()
	cfg := p.config()
	cfg.Games = &games{all: []Game{
		{ID: "1", Name: "knights", Platform: "pc", Address: "127.0.0.1:40122", Since: now.Add(-7 * time.Minute), Parcels: []string{"title", "heroes"}, Resources: 14, Swapped: now.Add(-9 * time.Second),
			Latency: 41 * time.Millisecond, Loaded: []Loaded{{Asset: "characters/knight.toml"}, {Asset: "characters/knight/knight.gltf"}, {Asset: "characters/shared/page.png"}, {Asset: "sprites/ui/", Name: "0", Refused: "the page is in use"}, {Asset: "textures/title/banner.png", Stale: true}},
			Log: []LogLine{{now.Add(-8 * time.Second), "info", "swapped characters/shared/page.png"}, {now.Add(-4 * time.Second), "warning", "sprites/ui/ kept: the page is in use"}}},
	}}
	s := serve(t, cfg)
	b := newBrowser(t, s.URL)

	b.open("/problems")
	b.until(`document.querySelectorAll(".message mark").length > 0`)
	b.picture("problems", false)
	b.keys("j")
	b.until(`document.querySelector(".message.at")`)

	b.open("/games")
	b.until(`document.querySelectorAll(".game button").length > 2`)
	b.picture("games", false)

	b.open("/content?q=long")
	b.until(`document.querySelectorAll(".assets tbody tr").length === 1`)
	if b.value(`document.documentElement.scrollWidth > innerWidth`) != "false" {
		t.Error("a long name makes the page wider than the window")
	}
	b.value(`document.querySelector(".assets a").click()`)
	b.until(`location.pathname.startsWith("/asset/") && !!document.querySelector(".tree")`)
	b.picture("long", false)
	if b.value(`document.documentElement.scrollWidth > innerWidth`) != "false" {
		t.Error("a long name makes its own page wider than the window")
	}

	b.open("/")
	b.until(`document.querySelector("#pulse").textContent.includes("problems")`)
	f := p.feed
	f.Begin(2, []string{"assets/characters/shared/page.png", "kiln.toml"})
	f.Planned(128)
	for i := range 46 {
		f.JobStarted(fmt.Sprint("textures/ground/tile_", i, ".png [pc]"))
		f.JobFinished(fmt.Sprint("textures/ground/tile_", i, ".png [pc]"), i == 43, time.Duration(30+i*7)*time.Millisecond)
	}
	f.JobStarted("characters/shared/page.png [mobile]")
	f.JobStarted("sprites/ui/ ▸ page 0 [mobile]")
	f.JobStarted("characters/knight/knight.gltf [mobile]")
	f.JobSuspended("characters/knight/knight.gltf [mobile]", []string{"characters/shared/page.png"}, true)
	f.JobStarted("characters/paladin/paladin.gltf [mobile]")
	f.JobSuspended("characters/paladin/paladin.gltf [mobile]", []string{"characters/shared/page.png", "characters/paladin/portrait.png", "sprites/ui/"}, true)
	b.until(`document.querySelectorAll(".lane:nth-child(2) li").length === 2 && document.querySelector("#pulse").textContent.includes("46")`)
	b.picture("building", true)
	f.End(nil)
	b.until(`document.querySelector("#now h1").textContent.includes("problems") && document.querySelector("#pulse a")`)

	b.value(`window.was = document.querySelector("#pulse a"), was.focus(), document.dispatchEvent(new Event("visibilitychange"))`) // the stream begins anew
	b.until(`document.querySelector("#pulse a") !== was`)
	if b.value(`document.activeElement === document.querySelector("#pulse a")`) != "true" {
		t.Error("the focus is lost where the head of the page is drawn anew")
	}
}

// TestBrowserMedia hears a sound and sets a text in a font.
func TestBrowserMedia(t *testing.T) {
	p := newProject(t)
	p.write("assets/sounds/tone.wav", tone(2*44100))
	p.write("assets/fonts/Go-Regular.ttf", string(goregular.TTF))
	p.write("assets/fonts/broken.ttf", "no font")
	p.build()
	s := serve(t, p.config())
	b := newBrowser(t, s.URL)

	b.open("/asset/sounds/tone.wav")
	// The project's rules want -20 LUFS of pc.
	b.until(`document.querySelector("[data-facts]").textContent === "qoa2.00\u00a0smono44100\u00a0Hz−13.1\u00a0LUFSpeak −6.0\u00a0dBTPgain −6.9\u00a0dB"`)
	b.until(`document.querySelector("audio").duration === 2`) // as WAV: it does not play QOA
	b.picture("sound", false)
	b.value(`document.querySelector("[data-play=source]").click()`)
	b.until(`document.querySelector("audio").src.includes("/listen-source/sounds/tone.wav?level=-")`)
	b.until(`document.querySelector("audio").duration === 2`)
	b.open("/asset/fonts/Go-Regular.ttf")
	b.until(`[...document.fonts].some(f => f.status === "loaded") && document.querySelector(".specimen").style.fontFamily === "specimen"`)
	b.picture("font", false)
	b.open("/asset/fonts/broken.ttf")
	b.until(`document.querySelector(".specimen").textContent.includes("cannot read this font")`)
}

// tone is a WAV file: one channel, 44100 samples a second of 16 bits, a tone of 441 Hz that comes and goes, at half of what there is.
func tone(samples int) string {
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt ")
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, 44100)
	b = binary.LittleEndian.AppendUint32(b, 88200)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = binary.LittleEndian.AppendUint32(append(b, "data"...), uint32(2*samples))
	for i := range samples {
		loud := float64(min(i, samples-i, 40000)) / 40000
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(16384*loud*math.Sin(float64(i)*2*math.Pi/100))))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return string(b)
}

// TestBrowserLarge walks through 100,000 assets.
func TestBrowserLarge(t *testing.T) {
	thorough.Only(t, "100,000 assets take seconds to write")
	dir := t.TempDir()
	writeLarge(t, filepath.Join(dir, "content.db"), large)
	s := serve(t, Config{Dir: dir, Database: filepath.Join(dir, "content.db"), Blobs: new(castest.Memory)})
	b := newBrowser(t, s.URL)
	for _, page := range largePages {
		b.open(page.path)
		b.until(`document.querySelector("main").innerText.length > 20`)
	}
	b.open("/content")
	b.keys("l")
	b.until(`location.search.includes("page=2") && document.querySelectorAll(".assets tbody tr").length === 100`)
	b.open("/content")
	b.value(`document.querySelector(".search input").focus()`)
	b.keys("tile077777")
	b.until(`location.search === "?q=tile077777" && document.querySelectorAll(".assets tbody tr").length === 1`)
	b.picture("large", false)
}

// TestBrowserCorpus turns every model of real content for a moment.
func TestBrowserCorpus(t *testing.T) {
	thorough.Only(t, "all models of the corpus are built")
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS names no folder with real content")
	}
	dir := filepath.Join(corpus, "gltf-khronos-free")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the corpus has no glTF models")
	}
	p := &project{t: t, dir: t.TempDir(), feed: NewFeed(2)}
	p.write("kiln.toml", "[project]\nname = \"models\"\nroots = [\"assets\"]\n[platforms.pc]\n")
	if err := os.CopyFS(filepath.Join(p.dir, "assets"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	p.build()
	s := serve(t, p.config())
	b := newBrowser(t, s.URL)
	d, err := New(p.config())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	models, err := d.products(t.Context(), "WHERE x.file LIKE '%.glb' ORDER BY a.id", nil, 0)
	if err != nil || len(models) == 0 {
		t.Fatalf("%d models, %v", len(models), err)
	}
	seen := map[string]bool{} // most come in several forms, of which one is enough
	for i, m := range models {
		name, _, _ := strings.Cut(base(m.Asset), ".")
		if seen[name] {
			continue
		}
		seen[name] = true
		b.open(assetPath(m.Asset))
		b.until(`+document.querySelector("[data-model]").dataset.drawn > 0 || !document.querySelector("[data-model] .empty").hidden`)
		if b.value(`document.querySelector("[data-model] .empty").hidden`) != "true" {
			t.Errorf("%s: %s", m.Asset, b.value(`document.querySelector("[data-model] .empty").textContent`))
		}
		b.picture(fmt.Sprint("corpus", i), false)
	}
}
