package dashboard

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"golang.org/x/image/font/gofont/goregular"
)

// call calls a method of the browser's protocol.
func call[P, R any](b *browser, method cdp.Command[P, R], params P) (out R) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		var err error
		out, err = cdp.Call(ctx, t, method, params)
		return err
	}))
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// scheme has the browser prefer "light" or "dark".
func (b *browser) scheme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// accessProject has something of every kind, problems, a game and names that are long.
func accessProject(t *testing.T) Config {
	p := newProject(t)
	p.write("assets/sounds/tone.wav", tone(4410))
	p.write("assets/fonts/Go-Regular.ttf", string(goregular.TTF))
	p.write("assets/data/items.csv", "id,name,price\nsword,Sword,120\nshield,Shield\n")
	p.write("assets/characters/knight/portrait.png", "no picture")
	p.write("assets/tools/mystery.bin", "\x00\x01")
	p.build()
	cfg := p.config()
	cfg.Release = t.TempDir()
	cfg.Games = &games{all: []Game{{ID: "1", Name: "knights", Platform: "pc", Address: "127.0.0.1:40122", Since: time.Now(), Resources: 3,
		Loaded: []Loaded{{Asset: "sprites/ui/", Name: "sprites/ui/#0", Refused: "the page is in use"}, {Asset: "textures/title/banner.png", Name: "textures/title/banner.png", Stale: true}},
		Log:    []LogLine{{time.Now(), "info", "hello"}, {time.Now(), "warning", "two channels"}, {time.Now(), "error", "no shader"}}}}}
	return cfg
}

// accessPages are every kind of page; until is what they wait for.
var accessPages = []struct{ path, until string }{
	{"/", "true"}, {"/builds/1", "true"}, {"/content", "true"}, {"/content?q=zzz", "true"}, {"/content?folder=textures/&state=up+to+date", "true"},
	{"/asset/textures/ground/grass.png?level=2", `document.querySelector("#picture")?.naturalWidth && document.querySelector(".origins")`},
	{"/asset/characters/knight/portrait.png", `document.querySelector(".broken")?.textContent.includes("cannot be shown")`},
	{"/asset/sprites/ui/", `document.querySelector(".paper img").naturalWidth`}, {"/asset/characters/paladin/paladin.gltf", `+document.querySelector("[data-model]").dataset.drawn > 1`},
	{"/asset/characters/shared/page.png?view=deps", "true"}, {"/asset/sounds/tone.wav", `document.querySelector(".wave [data-facts]").textContent`},
	{"/asset/fonts/Go-Regular.ttf", `document.querySelector(".specimen").style.fontFamily`}, {"/asset/data/waves.yaml", `document.querySelector(".origins")`},
	{"/asset/text/credits.txt", "true"}, {"/asset/tools/mystery.bin", "true"}, {"/file/schemas/waves.schema.json", "true"}, {"/problems", "true"},
	{"/parcels", "true"}, {"/parcels/pc/title", "true"}, {"/games", "true"}, {"/asset/nix", "true"},
}

// TestContrast: every text on every page can be read in both schemes.
func TestContrast(t *testing.T) {
	s := serve(t, accessProject(t))
	b := newBrowser(t, s.URL)
	script, err := os.ReadFile("testdata/contrast.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, page := range accessPages {
			b.open(page.path)
			b.until(page.until)
			b.value(`for (const e of document.querySelectorAll("details")) e.open = true`)
			var list []string
			if err := json.Unmarshal([]byte(b.value(string(script))), &list); err != nil {
				t.Fatal(err)
			}
			if n, _ := strconv.Atoi(list[0]); n < 15 {
				t.Errorf("%s: only %d texts were looked at", page.path, n)
			}
			slices.Sort(list[1:])
			for _, bad := range slices.Compact(list[1:]) {
				t.Errorf("%s, %s: %s", page.path, scheme, bad)
			}
		}
	}
}

// controls are roles of what can be operated.
var controls = []string{"link", "button", "searchbox", "textbox", "checkbox", "combobox", "DisclosureTriangle", "slider", "Audio", "region", "dialog", "Canvas", "img", "image"}

// TestNames: the browser finds a name for every control and picture, headings that do not skip a level, and the landmarks that
// readers of screens go by.
func TestNames(t *testing.T) {
	s := serve(t, accessProject(t))
	b := newBrowser(t, s.URL)
	for _, page := range accessPages {
		b.open(page.path)
		b.until(page.until)
		landmarks, named := map[string]int{}, 0
		for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
			role, name := text(n.Role), text(n.Name)
			landmarks[role]++
			if n.Ignored || !slices.Contains(controls, role) {
				continue
			}
			if named++; strings.TrimSpace(name) == "" {
				t.Errorf("%s: a %s has no name", page.path, role)
			}
		}
		if landmarks["main"] != 1 || landmarks["banner"] != 1 || landmarks["navigation"] < 1 || landmarks["search"] != 1 {
			t.Errorf("%s: landmarks are %d main, %d banner, %d navigation, %d search", page.path, landmarks["main"], landmarks["banner"], landmarks["navigation"], landmarks["search"])
		}
		if named < 8 {
			t.Errorf("%s: only %d controls", page.path, named)
		}
		if got := b.value(`[...document.querySelectorAll("main :is(h1, h2, h3, h4)")].map(h => h.tagName[1]).join("")`); !strings.HasPrefix(got, `"1`) || strings.Count(got, "1") != 1 || strings.Contains(got, "13") {
			t.Errorf("%s: levels of headings are %s", page.path, got)
		}
	}
}

// text is a value of the tree of accessibility that is a string.
func text(v *accessibility.Value) (s string) {
	if v != nil {
		json.Unmarshal(v.Value, &s) // no string: no text
	}
	return s
}

// TestTabKey: each stop of the tab key can be seen, and the first leads past the links.
func TestTabKey(t *testing.T) {
	s := serve(t, accessProject(t))
	b := newBrowser(t, s.URL)
	b.open("/asset/textures/ground/grass.png")
	b.until(`document.querySelector("#picture")?.naturalWidth && !document.querySelector(".zoom").hidden && document.querySelector(".origins")`)
	seen := map[string]bool{}
	for i := range 40 {
		b.keys("\t")
		got := b.value(`(() => { const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
			return [e.matches(":focus-visible") && (parseFloat(s.outlineWidth) > 0 && s.outlineStyle !== "none" || s.boxShadow !== "none") && r.top >= 0 && r.bottom <= innerHeight && r.width > 0, e.className, e.textContent.trim().slice(0, 20) || e.name].join("|"); })()`)
		if i == 0 && !strings.Contains(got, "skip") {
			t.Errorf("the first stop is %s", got)
		}
		if !strings.HasPrefix(got, `"true|`) {
			t.Errorf("stop %d cannot be seen: %s", i, got)
		}
		seen[got] = true
	}
	for _, want := range []string{"|skip|To the content", "||q", "||Open in the editor", "||2", "||Fit"} {
		if !seen[`"true`+want+`"`] {
			t.Errorf("no stop at %s: %v", want, seen)
		}
	}
	// A mip level is chosen, and the focus stays where it was although the picture is drawn anew.
	b.open("/asset/textures/ground/grass.png")
	b.until(`document.querySelector("#picture")?.naturalWidth`)
	b.value(`document.querySelector("[data-steps] a:nth-child(3)").focus()`)
	b.keys("\r")
	b.until(`location.search.includes("level=2") && document.querySelector("[data-steps] [aria-current]").textContent === "2" && document.activeElement.textContent === "2"`)
}

// TestWithoutScripts: pages are read, links followed and the search sent by a browser that runs none.
func TestWithoutScripts(t *testing.T) {
	s := serve(t, accessProject(t))
	b := newBrowser(t, s.URL)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for _, tt := range []struct{ path, says string }{
		{"/", "2 problems"}, {"/content", "characters/knight.toml"}, {"/asset/sprites/ui/", "13 frames"}, {"/asset/data/waves.yaml", "Goblins! Only a few."}, {"/problems", "not an image of a known format"},
		{"/parcels/pc/title", "What fills it"}, {"/games", "Reload all"},
	} {
		if _, err := chromedp.Run(b.ctx, chromedp.Navigate(b.base+tt.path)); err != nil {
			t.Fatal(err)
		}
		html, err := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("main")))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(html, tt.says) {
			t.Errorf("%s does not say %q", tt.path, tt.says)
		}
	}
	for _, keys := range []string{"knight gltf", "\r"} {
		if _, err := chromedp.Run(b.ctx, chromedp.SendKeys(chromedp.CSS(".search input"), keys)); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		at, err := chromedp.Run(b.ctx, chromedp.Location())
		if err == nil && strings.HasSuffix(at, "/content?q=knight+gltf") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the search leads to %s, %v", at, err)
		}
	}
}
