package dashboard

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/internal/delivery/ship"
	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/results"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// flat is a PNG file of one colour.
func flat(t *testing.T, side int, r, g, b byte) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := 0; i < side*side; i++ {
		img.Set(i%side, i/side, color.NRGBA{r, g, b, 255})
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// games is a stand-in for what is connected.
type games struct {
	all    []Game
	pushed []string
}

func (g *games) Connected() []Game { return g.all }

func (g *games) Push(_ context.Context, game, asset string) error {
	if asset == "" {
		return errors.New("which asset?")
	}
	g.pushed = append(g.pushed, game+" "+asset)
	return nil
}

func (g *games) Reload(_ context.Context, game string) error {
	g.pushed = append(g.pushed, game)
	return nil
}

func TestPages(t *testing.T) {
	p := newProject(t)
	p.write("assets/odd names/ümläut & #%41.txt", "<script>alert(1)</script>")
	p.write("assets/evil.html", "<script>alert(1)</script>")
	p.write("assets/broken.json", "{\"a\": 1,\n  \"b\": oops}\n")
	p.build()
	g := &games{all: []Game{{ID: "7", Name: "knights", Platform: "pc", Address: "127.0.0.1:5000", Since: time.Now(), Resources: 2,
		Loaded: []Loaded{{Asset: "sprites/ui/"}, {Asset: "text/credits.txt", Refused: "too old"}}, Log: []LogLine{{time.Now(), "error", "no sound"}}}}}
	cfg := p.config()
	cfg.Games = g
	s := serve(t, cfg)

	for _, tt := range []struct {
		path string
		says []string
	}{
		{"/", []string{"1 problem<", "Where bytes go", `href="/builds/2"`}},
		{"/builds/1", []string{"it was never built", "sprites/"}},
		{"/builds/2", []string{"it was never built", "broken.json"}},
		{"/content", []string{"characters/", "</b> assets", "odd names/"}},
		{"/content?q=knight+gltf", []string{"<b>1</b> asset", "knight.gltf"}},
		{"/content?q=*.png&type=texture&platform=mobile&processor=texture&sort=size", []string{"castle.png", "Clear"}},
		{"/content?state=failed", []string{"<b>1</b> asset", "broken.json"}},
		{"/content?state=built&sort=time", []string{"evil.html"}},
		{"/content?state=up+to+date&sort=time", []string{"grass.png"}},
		{"/content?state=up+to+date&type=file&platform=pc&q=evil", []string{"No asset is like that"}},
		{"/content?folder=textures/", []string{"ground/", "<b>7</b> assets"}},
		{"/content?q=100%25", []string{"<b>0</b> assets", "No asset is like that"}},
		{"/content?page=99", []string{"knight.gltf"}},
		{"/asset/characters/knight/knight.gltf", []string{"data-model", "Why it was built", "knight.gltf.glb"}},
		{"/asset/characters/knight/knight.gltf?view=deps", []string{"Needed by", "characters/knight/knight.bin", `class="k product"`}},
		{"/asset/sprites/ui/", []string{`data-name="coin"`, "13 frames"}},
		{"/asset/sprites/ui", []string{`data-name="coin"`}},
		{"/asset/textures/title/banner.png?channels=a&level=3", []string{"BC7 sRGB", "show=a"}},
		{"/asset/textures/title/banner.png?show=source", []string{`src="/source/textures/title/banner.png"`}},
		{"/asset/textures/ground/grass.png?platform=mobile&file=textures/ground/grass.png.ktx2&level=2", []string{"ASTC", "level=2", ">Mip</span>", "16 × 16"}},
		{"/asset/data/waves.yaml", []string{`class="tree"`, `class="v number"`}},
		{"/asset/data/waves.yaml?platform=mobile&file=data/waves.yaml.msgpack", []string{`class="tree"`}},
		{"/asset/odd%20names/%C3%BCml%C3%A4ut%20&%20%23%2541.txt", []string{"&lt;script&gt;", "ümläut &amp; #%41.txt"}},
		{"/asset/broken.json", []string{"K110", "oops", "vscode://file"}},
		{"/file/schemas/waves.schema.json", []string{"data/waves.yaml", "read it"}},
		{"/problems", []string{"1 root cause", "broken.json", "assets/broken.json:2:"}},
		{"/parcels", []string{"title", "heroes"}},
		{"/games", []string{"127.0.0.1:5000", "refused", "no sound", "Reload all"}},
		{"/settings/textures/title/banner.png", []string{"kiln.toml:", "max_size", "defaults</summary>", "mobile"}},
	} {
		page, h := get(t, s, tt.path, http.StatusOK)
		has(t, page, tt.says...)
		if t.Failed() {
			t.Fatalf("GET %s", tt.path)
		}
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self'") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: headers are %v", tt.path, h)
		}
		inline := regexp.MustCompile(`(?i)<[^>]* (style|on[a-z]+)=|<style|<script>|javascript:|ZgotmplZ|src="https?:|href="https?:`)
		if bad := inline.FindString(page); bad != "" {
			t.Errorf("GET %s: %q stands in the page", tt.path, bad)
		}
	}
	for _, path := range []string{"/asset/nix.png", "/builds/99", "/builds/x", "/file/nix", "/parcels/pc/nix", "/product/pc/nix", "/picture/pc/nix", "/source/../kiln.toml", "/source/kiln.toml",
		"/source/data/waves.yaml", "/static/nix", "/nix"} {
		get(t, s, path, http.StatusNotFound)
	}
}

// TestLinks follows every link from the first page, as far as they go.
func TestLinks(t *testing.T) {
	p := newProject(t)
	p.write("assets/broken.json", "{oops}")
	p.build()
	s := serve(t, p.config())
	link := regexp.MustCompile(`(?:href|src|data-model|data-settings)="(/[^"]*)"`)
	seen, next := map[string]bool{"/": true}, []string{"/"}
	for ; len(next) > 0 && len(seen) < 250; next = next[1:] {
		body, h := get(t, s, next[0], http.StatusOK)
		if !strings.HasPrefix(h.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			at := strings.ReplaceAll(m[1], "&amp;", "&")
			if u, err := url.Parse(at); err != nil || strings.Count(u.RawQuery, "&") > 2 { // filters go together in thousands of ways
				continue
			}
			if !seen[at] {
				seen[at] = true
				next = append(next, at)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d links", len(seen))
	}
}

func TestBytes(t *testing.T) {
	p := newProject(t)
	p.write("assets/evil.html", "<script>alert(1)</script>")
	p.build()
	s := serve(t, p.config())
	body, h := get(t, s, "/product/pc/evil.html", http.StatusOK)
	if body != "<script>alert(1)</script>" || h.Get("Content-Type") != "application/octet-stream" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%q, %v", body, h)
	}
	body, h = get(t, s, "/picture/pc/textures/ground/grass.png.ktx2?level=1&show=r", http.StatusOK)
	img, err := png.Decode(strings.NewReader(body))
	if err != nil || h.Get("Content-Type") != "image/png" || img.Bounds().Dx() != 32 {
		t.Fatalf("%v, %v, %v", err, img.Bounds(), h)
	}
	c := color.NRGBAModel.Convert(img.At(3, 3)).(color.NRGBA)
	if c.R != c.G || c.G != c.B || c.A != 255 {
		t.Errorf("one channel is %v", c)
	}
	get(t, s, "/picture/pc/textures/ground/grass.png.ktx2?level=99", http.StatusUnprocessableEntity)
	get(t, s, "/picture/pc/textures/ground/grass.png.ktx2?show=xyz", http.StatusUnprocessableEntity)
	get(t, s, "/picture/pc/evil.html", http.StatusUnprocessableEntity)

	page, _ := get(t, s, "/asset/textures/ground/grass.png", http.StatusOK)
	src := regexp.MustCompile(`id="picture" src="([^"]*)"`).FindStringSubmatch(page)[1]
	if _, h := get(t, s, src, http.StatusOK); !strings.Contains(h.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: Cache-Control %q", src, h.Get("Cache-Control"))
	}
	if _, h := get(t, s, "/picture/pc/textures/ground/grass.png.ktx2?h=0000000000000000", http.StatusOK); strings.Contains(h.Get("Cache-Control"), "immutable") {
		t.Error("a picture is kept for good under another hash")
	}
}

// TestPost does by hand what changes something, as this site's page, as another site's and as no page at all.
func TestPost(t *testing.T) {
	p := newProject(t)
	g := &games{}
	cfg := p.config()
	cfg.Games = g
	s := serve(t, cfg)
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, tt := range []struct {
		method, path, origin, site string
		form                       url.Values
		status                     int
	}{
		{"POST", "/games/push", s.URL, "same-origin", url.Values{"game": {"7"}, "asset": {"a.png"}}, http.StatusSeeOther},
		{"POST", "/games/reload", "", "", url.Values{"game": {"8"}}, http.StatusSeeOther}, // curl
		{"POST", "/games/push", "", "", url.Values{"game": {"7"}}, http.StatusUnprocessableEntity},
		{"POST", "/games/push", "http://evil.example", "cross-site", url.Values{"game": {"9"}, "asset": {"a.png"}}, http.StatusForbidden},
		{"POST", "/games/push", "http://evil.example", "", url.Values{"game": {"9"}, "asset": {"a.png"}}, http.StatusForbidden},
		{"POST", "/games/push", "null", "", url.Values{"game": {"9"}, "asset": {"a.png"}}, http.StatusForbidden},
		{"GET", "/games/push?game=9&asset=a.png", "", "", nil, http.StatusMethodNotAllowed},
		{"POST", "/content", "", "", nil, http.StatusMethodNotAllowed},
	} {
		req, err := http.NewRequest(tt.method, s.URL+tt.path, strings.NewReader(tt.form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		if tt.site != "" {
			req.Header.Set("Sec-Fetch-Site", tt.site)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status {
			t.Errorf("%s %s from %q: %s, want %d", tt.method, tt.path, tt.origin, res.Status, tt.status)
		}
	}
	if got := strings.Join(g.pushed, ", "); got != "7 a.png, 8" {
		t.Errorf("done: %s", got)
	}
}

// TestNothingBuilt is a project in which no build has finished.
func TestNothingBuilt(t *testing.T) {
	p := &project{t: t, dir: t.TempDir(), feed: NewFeed(2)}
	p.write("kiln.toml", "[project]\nname = \"new\"\nroots = [\"assets\"]\n[platforms.pc]\n")
	p.write("assets/first.json", "{}")
	cfg := Config{Dir: p.dir, Database: p.dir + "/.kiln/content.db", Blobs: cas.OpenReadOnly(p.dir + "/.kiln/cas")}
	s := serve(t, cfg)
	for _, path := range []string{"/", "/content", "/problems", "/parcels", "/asset/a.png"} {
		page, _ := get(t, s, path, http.StatusOK)
		has(t, page, "no build of this project has finished yet")
	}
	live := serve(t, p.config())
	p.feed.Begin(1, nil)
	p.feed.JobStarted("first.png [pc]")
	page, _ := get(t, live, "/", http.StatusOK)
	has(t, page, "Building", "first.png [pc]")
	p.build()
	page, _ = get(t, s, "/content", http.StatusOK)
	has(t, page, "first.json")
}

// TestPlaceholder: what stands for the products of an asset that failed is not taken for these.
func TestPlaceholder(t *testing.T) {
	p := newProject(t)
	s := serve(t, p.config())
	const marked = `<p class="placeholder">placeholder</p>`
	look := func() string {
		t.Helper()
		page, _ := get(t, s, "/asset/textures/title/banner.png", http.StatusOK)
		return page
	}
	if strings.Contains(look(), marked) {
		t.Error("the real thing is said to be a placeholder")
	}
	p.write("assets/textures/title/banner.png", "no picture")
	p.buildAs(build.Request{OnError: results.Placeholders})
	has(t, look(), marked, "not an image of a known format", "BC7 sRGB")
	page, _ := get(t, s, "/", http.StatusOK)
	has(t, page, "<h1>1 problem</h1>")
	p.write("assets/textures/title/banner.png", flat(t, 8, 255, 0, 0))
	p.build()
	if strings.Contains(look(), marked) {
		t.Error("it is mended, and still said to be a placeholder")
	}
}

// TestRelease compares parcels with those of a release, before and after a texture is painted over.
func TestRelease(t *testing.T) {
	p := newProject(t)
	cfg := p.config()
	cfg.Release = t.TempDir()
	s := serve(t, cfg)
	page, _ := get(t, s, "/parcels/pc/title", http.StatusOK)
	has(t, page, "The parcel is new.")
	if err := os.CopyFS(filepath.Join(cfg.Release), os.DirFS(filepath.Join(p.dir, "build"))); err != nil {
		t.Fatal(err)
	}
	page, _ = get(t, s, "/parcels/pc/title", http.StatusOK)
	has(t, page, "it holds the same")
	p.write("assets/textures/title/banner.png", flat(t, 8, 255, 0, 0))
	p.build()
	page, _ = get(t, s, "/parcels/pc/title", http.StatusOK)
	has(t, page, "<span>1 changed</span>", "<span>0 added</span>", `<a href="/asset/textures/title/banner.png" data-open>`)
	has(t, page, `<div class="treemap"`, `class="k0"`, `<a href="/asset/textures/title/banner.png?file=`)
	list, _ := get(t, s, "/parcels", http.StatusOK)
	has(t, list, "Since the last release", "<span>1 changed</span>", `<span class="faint">the same</span>`, "<b>3</b><span>resources changed</span>")
	patch := filepath.Join(t.TempDir(), "patch")
	if err := parcel.MakePatchFile(patch, filepath.Join(cfg.Release, "parcels/pc/title.parcel"), filepath.Join(p.dir, "build/parcels/pc/title.parcel")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(patch)
	if err != nil {
		t.Fatal(err)
	}
	has(t, page, "<span>"+bytesText(info.Size())+" of patch</span>")
}

// TestReleaseManifest compares parcels with what a release wrote down of them, without having its parcels.
func TestReleaseManifest(t *testing.T) {
	p := newProject(t)
	opened, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := ship.Released(opened.Project, opened.OutputDir(), []string{"pc", "mobile"})
	if err != nil {
		t.Fatal(err)
	}
	p.write("1.2.release", string(m.Format()))
	cfg := p.config()
	cfg.Release = filepath.Join(p.dir, "1.2.release")
	s := serve(t, cfg)
	page, _ := get(t, s, "/parcels", http.StatusOK)
	has(t, page, "<b>0</b><span>resources changed</span>", "<b>4</b><span>new parcels", "1.2.release", `<span class="faint">the same</span>`) // those of web are not in it
	p.write("assets/textures/title/banner.png", flat(t, 8, 255, 0, 0))
	p.build()
	page, _ = get(t, s, "/parcels", http.StatusOK)
	has(t, page, "<b>2</b><span>resources changed</span>", "at most", "<b>≤ ")
	page, _ = get(t, s, "/parcels/pc/title", http.StatusOK)
	has(t, page, "<span>1 changed</span>", "at most", `<a href="/asset/textures/title/banner.png" data-open>`)

	p.write("1.2.release", "<<<<<<< HEAD\n")
	page, _ = get(t, s, "/parcels/pc/title", http.StatusOK)
	has(t, page, `<p class="bad">the release: `, "1.2.release:1", "this is not a manifest of a release")
	if err := os.Remove(cfg.Release); err != nil {
		t.Fatal(err)
	}
	page, _ = get(t, s, "/parcels", http.StatusOK)
	has(t, page, "cannot be compared", "no such file")
}

func TestEditor(t *testing.T) {
	for _, tt := range []struct{ address, dir, want string }{
		{"", "/home/me/my game", "vscode://file/home/me/my%20game/assets/a%23b.json:3:5"},
		{"idea://open?file={path}&line={line}", "C:/games", "idea://open?file=/C:/games/assets/a%23b.json&line=3"},
	} {
		e, err := newEditor(tt.address, tt.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(e.link("assets/a#b.json", 3, 5)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	for _, bad := range []string{"javascript://{path}", "data://x{path}", "vscode://file", "{path}", "http:{path}", "JavaScript://{path}"} {
		if _, err := newEditor(bad, "/"); err == nil {
			t.Errorf("%q is taken for an editor's address", bad)
		}
	}
}
