package atlas

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	table "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/bmfont"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

var black = color.NRGBA{0, 0, 0, 255}

// patch draws a nine-patch around a fill: guides from, up to but not including, at the top, left, bottom and right; 0, 0 for none.
func patch(w, h int, guides [4][2]int) []byte {
	return paint(w+2, h+2, func(x, y int) color.NRGBA {
		in := func(g [2]int, n int) bool { return g[0] <= n && n < g[1] }
		switch {
		case x > 0 && x <= w && y > 0 && y <= h:
			return color.NRGBA{uint8(40 + x), uint8(40 + y), 90, 255}
		case y == 0 && in(guides[0], x), x == 0 && in(guides[1], y), y == h+1 && in(guides[2], x), x == w+1 && in(guides[3], y):
			return black
		}
		return color.NRGBA{}
	})
}

func TestNinePatch(t *testing.T) {
	// Of 10 x 8 pixels, whose first is at 1: columns 4 to 7 are stretched, so 3 are at the left and 3 at the right.
	stretch, rows := [2]int{4, 8}, [2]int{3, 4}
	for _, c := range []struct {
		name   string
		guides [4][2]int
		want   *table.Patch
	}{
		{"none", [4][2]int{}, nil},
		{"splits", [4][2]int{stretch, rows}, &table.Patch{Split: table.Sides{3, 3, 2, 5}}},
		{"pads", [4][2]int{stretch, rows, {2, 11}, {1, 9}}, &table.Patch{Split: table.Sides{3, 3, 2, 5}, Pad: &table.Sides{1, 0, 0, 0}}},
		{"pads like splits", [4][2]int{stretch, rows, stretch, rows}, &table.Patch{Split: table.Sides{3, 3, 2, 5}}},
		{"one pad", [4][2]int{stretch, rows, {2, 11}}, &table.Patch{Split: table.Sides{3, 3, 2, 5}, Pad: &table.Sides{1, 0, -1, -1}}},
		{"one axis", [4][2]int{stretch}, &table.Patch{Split: table.Sides{3, 3, 0, 8}}},
		{"pads alone", [4][2]int{2: {3, 8}, 3: {2, 7}}, &table.Patch{Pad: &table.Sides{2, 3, 1, 2}}},
		{"one pad alone", [4][2]int{3: {2, 7}}, &table.Patch{Pad: &table.Sides{-1, -1, 1, 2}}},
		{"pads of all of it", [4][2]int{2: {1, 11}, 3: {1, 9}}, &table.Patch{Pad: &table.Sides{}}},
		{"all of it", [4][2]int{{1, 11}, {1, 9}}, &table.Patch{Split: table.Sides{0, 0, 0, 0}}},
	} {
		files := map[string][]byte{"ui/box.9.png": patch(10, 8, c.guides), "ui/dot.png": fill(1, 1, red)}
		r := run(t, files, settings(func(s *Settings) { s.Rotate = true }))
		f := frameOf(t, r, "box")
		if d := cmp.Diff(c.want, f.Patch); d != "" || f.SourceW != 10 || f.SourceH != 8 || f.Turn != table.Upright {
			t.Errorf("%s: %+v %s", c.name, f, d)
		}
		restores(t, files, frames(t, r), pagesOf(t, r))
	}
	r := run(t, map[string][]byte{"ui/box.9.png": patch(10, 8, [4][2]int{2: {3, 8}, 3: {2, 7}})}, settings(func(s *Settings) { s.Exports = []string{"libgdx"} }))
	if text := string(r.Products["libgdx"].Data); !strings.Contains(text, "  split: 0, 0, 0, 0\n  pad: 2, 3, 1, 2\n") {
		t.Errorf("for libGDX: %s", text) // as its TexturePacker writes it
	}
	half := frameOf(t, run(t, map[string][]byte{"ui/box@2x.9.png": patch(10, 8, [4][2]int{stretch, rows, {2, 11}})}, settings(func(*Settings) {})), "box")
	if want := (&table.Patch{Split: table.Sides{2, 2, 1, 3}, Pad: &table.Sides{1, 0, -1, -1}}); half.SourceW != 5 || half.SourceH != 4 || cmp.Diff(want, half.Patch) != "" {
		t.Errorf("at half its size: %+v, %+v %v", half, half.Patch, half.Patch.Pad)
	}
	off := run(t, map[string][]byte{"ui/box.9.png": patch(10, 8, [4][2]int{stretch})}, settings(func(s *Settings) { s.NinePatch = false }))
	if f := frameOf(t, off, "box.9"); f.Patch != nil || f.SourceW != 12 {
		t.Errorf("nine_patch = false: %+v", f)
	}
	hint := `delete it or rename it; or write in the rule of the atlas: settings.exclude = ["drafts/**", "box.png"], or allow = ["K1313"]`
	both := run(t, map[string][]byte{"ui/box.9.png": patch(10, 8, [4][2]int{stretch}), "ui/box.png": fill(3, 3, red)}, settings(func(*Settings) {}))
	if f := frameOf(t, both, "box"); f.Patch == nil || len(both.Parts["layout"].Warnings) != 1 || !strings.Contains(both.Parts["layout"].Warnings[0].Text, `"box.png"`) {
		t.Errorf("%+v, %v", f, both.Parts["layout"].Warnings)
	} else if got := both.Parts["layout"].Warnings[0].Hint; got != hint {
		t.Errorf("%s, want %s", got, hint)
	}
}

func TestTurned(t *testing.T) {
	files := map[string][]byte{}
	for i := range 8 {
		files[fmt.Sprintf("ui/%d.png", i)] = paint(8+i, 40-3*i, func(x, y int) color.NRGBA { return color.NRGBA{uint8(9 * x), uint8(6 * y), uint8(30 * i), 255} })
	}
	for _, export := range [][]string{nil, {"json-hash"}, {"libgdx"}} {
		r := run(t, files, settings(func(s *Settings) { s.Rotate, s.PowerOfTwo, s.Exports, s.Extrude = true, false, export, 1 }))
		tab := frames(t, r)
		want, n := table.Right, 0
		if slices.Contains(export, "libgdx") {
			want = table.Left
		}
		for _, f := range tab.Frames {
			if f.Turn != table.Upright {
				n++
				if f.Turn != want {
					t.Errorf("%v: %q is turned to %d", export, f.Name, f.Turn)
				}
			}
		}
		if n == 0 {
			t.Error("nothing is turned")
		}
		restores(t, files, tab, pagesOf(t, r))
	}
}

func TestNumbers(t *testing.T) {
	files := map[string][]byte{}
	for i, name := range []string{"run_00", "run_01", "run_10", "jump_2", "jump_1", "jump_02", "walk", "a/_3", "b_12345"} {
		files["ui/"+name+".png"] = fill(4+i, 4, red)
	}
	tab := frames(t, run(t, files, settings(func(*Settings) {})))
	got := map[string]string{}
	for _, a := range tab.Animations {
		for _, f := range a.Frames {
			got[a.Name] += fmt.Sprintf(" %s:%d", tab.Frames[f].Name, tab.Frames[f].Number-1)
		}
	}
	// jump_02 and jump_2 are the same number: the first by name is in the animation, the other is an image by itself.
	want := map[string]string{"run": " run_00:0 run_01:1 run_10:10", "jump": " jump_1:1 jump_02:2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if tab := frames(t, run(t, files, settings(func(s *Settings) { s.Numbers = false }))); len(tab.Animations) != 0 {
		t.Errorf("%v", tab.Animations)
	}
}

func TestSheet(t *testing.T) {
	colours := []color.NRGBA{red, gold, blue, {}, red, {1, 2, 3, 255}}
	files := map[string][]byte{
		"ui/tiles.png": paint(26, 17, func(x, y int) color.NRGBA { // 3 x 2 frames of 8 x 8, and a rest
			if x >= 24 || y >= 16 {
				return black
			}
			return colours[y/8*3+x/8]
		}),
		"ui/icon.png": fill(5, 5, gold),
	}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Sheets = map[string]string{"tiles.*": "8x8", "*": ""} },
		func(s *Settings) { s.Sheet, s.Sheets = "8x8", map[string]string{"icon.*": "5x5"} },
	} {
		r := run(t, files, settings(change))
		tab := frames(t, r)
		var names []string
		for _, f := range tab.Frames {
			names = append(names, f.Name)
			if f.Name[0] == 't' {
				page := pagesOf(t, r)[0]
				if p := page.Pix[4*(f.Y*page.Width+f.X):]; (color.NRGBA{p[0], p[1], p[2], p[3]}) != colours[f.Number-1] {
					t.Errorf("%s is %v", f.Name, p[:4])
				}
			}
		}
		if s := strings.Join(names, " "); !strings.HasSuffix(s, "tiles_0 tiles_1 tiles_2 tiles_4 tiles_5") {
			t.Errorf("frames %s", s)
		}
		if i := slices.IndexFunc(tab.Animations, func(a table.Animation) bool { return a.Name == "tiles" }); i < 0 || len(tab.Animations[i].Frames) != 5 {
			t.Errorf("%v", tab.Animations)
		}
		if a, b := frameOf(t, r, "tiles_0"), frameOf(t, r, "tiles_4"); a.X != b.X || a.Y != b.Y {
			t.Error("equal frames of a sheet have places of their own")
		}
	}
}

// gifOf is an animation of squares in these colours.
func gifOf(t testing.TB, side int, colours ...color.NRGBA) []byte {
	t.Helper()
	g := gif.GIF{}
	for _, c := range colours {
		m := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{c, color.NRGBA{}})
		g.Image, g.Delay = append(g.Image, m), append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnimatedImage(t *testing.T) {
	colours := []color.NRGBA{red, gold, red}
	files := map[string][]byte{"ui/walk.gif": gifOf(t, 6, colours...), "ui/still.gif": gifOf(t, 4, blue), "ui/icon.png": fill(5, 5, gold)}
	r := run(t, files, settings(func(s *Settings) { s.Frames = "all" }))
	tab := frames(t, r)
	var names []string
	for _, f := range tab.Frames {
		names = append(names, f.Name)
		if f.Number > 0 {
			page := pagesOf(t, r)[0]
			if p := page.Pix[4*(f.Y*page.Width+f.X):]; (color.NRGBA{p[0], p[1], p[2], p[3]}) != colours[f.Number-1] {
				t.Errorf("%s is %v", f.Name, p[:4])
			}
		}
	}
	if s := strings.Join(names, " "); s != "icon still walk_0 walk_1 walk_2" {
		t.Errorf("frames %s", s)
	}
	if len(tab.Animations) != 1 || tab.Animations[0].Name != "walk" || len(tab.Animations[0].Frames) != 3 {
		t.Errorf("%v", tab.Animations)
	}
	if a, b := frameOf(t, r, "walk_0"), frameOf(t, r, "walk_2"); a.X != b.X || a.Y != b.Y {
		t.Error("equal frames have places of their own")
	}
	if r = run(t, files, settings(func(*Settings) {})); len(frames(t, r).Frames) != 3 || frameOf(t, r, "walk").W != 6 {
		t.Error("without the setting it is not the first frame")
	}
}

func TestScales(t *testing.T) {
	files := map[string][]byte{
		"ui/a.png":     fill(8, 8, red),
		"ui/a@2x.png":  fill(16, 16, blue),
		"ui/b@2x.png":  fill(20, 12, gold),
		"ui/c@0.5.png": fill(4, 4, black), // no density: there is no x
	}
	r := run(t, files, settings(func(s *Settings) { s.Scale, s.Exports = []float64{1, 2, 0.5}, []string{"libgdx"} }))
	var got []string
	for _, name := range []string{"", "2x", "0.5x"} {
		tab, err := table.Read(r.Products[name].Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tab.Frames {
			got = append(got, fmt.Sprintf("%d %s %s %dx%d", tab.Scale, tab.Pages[f.Page].File, f.Name, f.W, f.H))
		}
	}
	want := []string{
		"1000 ui.0.ktx2 a 8x8", "1000 ui.0.ktx2 b 10x6", "1000 ui.0.ktx2 c@0.5 4x4",
		"2000 ui.2x.0.ktx2 a 16x16", "2000 ui.2x.0.ktx2 b 20x12", "2000 ui.2x.0.ktx2 c@0.5 8x8",
		"500 ui.0.5x.0.ktx2 a 4x4", "500 ui.0.5x.0.ktx2 b 5x3", "500 ui.0.5x.0.ktx2 c@0.5 2x2",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var names []string
	for name := range r.Products {
		names = append(names, name)
	}
	slices.Sort(names)
	if d := cmp.Diff([]string{"", "0", "0.5x", "0.5x.0", "0.5x.libgdx", "2x", "2x.0", "2x.libgdx", "libgdx"}, names); d != "" {
		t.Error(d)
	}
	// At scale 1 a.png is taken as it is, though a@2x.png is there.
	page := pagesOf(t, r)[0]
	f := frameOf(t, r, "a")
	if p := page.Pix[4*(f.Y*page.Width+f.X):]; p[0] != red.R {
		t.Errorf("a is %v", p[:4])
	}
}

func TestFixedPages(t *testing.T) {
	files := map[string][]byte{}
	for i := range 6 {
		files[fmt.Sprintf("ui/big%d.png", i)] = fill(30, 30-i, red)
		files[fmt.Sprintf("ui/hud/%d.png", i)] = fill(10, 10+i, blue)
		files[fmt.Sprintf("ui/map/%d.png", i)] = fill(12, 10+i, gold)
	}
	r := run(t, files, settings(func(s *Settings) {
		s.MaxSize, s.Pages = 64, map[string]string{"map/*": "b", "hud/**": "a"}
	}))
	on := map[string]int{}
	for _, f := range frames(t, r).Frames {
		kind := f.Name[:3]
		if page, ok := on[kind]; ok && page != f.Page && kind != "big" {
			t.Errorf("%q is on page %d, others on %d", f.Name, f.Page, page)
		}
		on[kind] = f.Page
	}
	if on["hud"] != 0 || on["map"] != 1 {
		t.Errorf("%v", on)
	}
	restores(t, files, frames(t, r), pagesOf(t, r))
}

func TestDroppedAndThreshold(t *testing.T) {
	files := icons()
	r := run(t, files, settings(func(s *Settings) { s.DropBlank, s.TrimAlpha = true, 128 }))
	tab := frames(t, r)
	for _, name := range []string{"nothing", "nowhere"} {
		if _, ok := tab.Find(name); ok {
			t.Errorf("%s is there", name)
		}
	}
	// Of the disc of radius 10 only what is more than half covered stays on the edges.
	if f := frameOf(t, r, "coin"); f.W >= frameOf(t, run(t, files, settings(func(*Settings) {})), "coin").W+1 || f.W == 0 {
		t.Errorf("%+v", f)
	}
	apart := frames(t, run(t, files, settings(func(s *Settings) { s.Aliases = false })))
	a, _ := apart.Find("coin")
	b, _ := apart.Find("coin-corner")
	if a.X == b.X && a.Y == b.Y {
		t.Error("aliases = false, and equal images share a place")
	}
}

func TestPackJSON(t *testing.T) {
	files := icons()
	files["ui/pack.json"] = []byte(`{
	// libGDX's own dialect
	maxWidth: 128, maxHeight: 64
	pot: false, multipleOfFour: true,
	paddingX: 1, paddingY: 3, edgePadding: true
	stripWhitespaceX: true, stripWhitespaceY: false
	filterMin: MipMapLinearNearest, filterMag: Nearest, wrapX: Repeat
	fast: true, scaleSuffix: [ "" ], scale: [ 0.5 ]
}`)
	files["ui/button/pack.json"] = []byte("{ stripWhitespaceX: false, ignoreBlankImages: true, gridd: true }")
	r := run(t, files, settings(func(s *Settings) { s.Exports = []string{"libgdx"} }))
	tab := frames(t, r)
	coin := frameOf(t, r, "coin")
	if tab.Scale != 500 || coin.SourceW != 16 || coin.H != 16 || coin.OffsetX == 0 || coin.X < 1 || coin.Y < 3 {
		t.Errorf("scale %d, coin %+v", tab.Scale, coin)
	}
	pages := map[int]bool{}
	for _, f := range tab.Frames {
		if strings.HasPrefix(f.Name, "button/") {
			pages[f.Page] = true
		} else if pages[f.Page] {
			t.Errorf("%q shares a page with images of another plan", f.Name)
		}
	}
	for _, p := range tab.Pages {
		if p.Width > 128 || p.Height > 64 || p.Width%4 != 0 || p.Height%4 != 0 {
			t.Errorf("page %+v", p)
		}
	}
	text := string(r.Products["libgdx"].Data)
	if !strings.Contains(text, "filter: MipMapLinearNearest,Nearest\nrepeat: x\n") {
		t.Errorf("%s", text)
	}
	var warned []string
	for _, w := range r.Parts["layout"].Warnings {
		warned = append(warned, fmt.Sprintf("%s:%d: %s", w.Path, w.Line, w.Text))
	}
	want := []string{
		`ui/pack.json:8: setting "scaleSuffix" of libGDX is not understood and makes no difference`,
		`ui/button/pack.json:1: setting "gridd" of libGDX is not understood and makes no difference`,
	}
	if d := cmp.Diff(want, warned); d != "" {
		t.Error(d)
	}
	off := run(t, files, settings(func(s *Settings) { s.PackJSON = false }))
	if tab := frames(t, off); tab.Scale != 1000 || len(off.Parts["layout"].Warnings) != 0 {
		t.Errorf("pack_json = false: scale %d", tab.Scale)
	}
}

func TestDuplicatePadding(t *testing.T) {
	files := map[string][]byte{"ui/tile.png": fill(8, 8, red), "ui/pack.json": []byte("{ duplicatePadding: true, paddingX: 4, paddingY: 4 }")}
	page := pagesOf(t, run(t, files, settings(func(*Settings) {})))[0]
	n := 0
	for i := 3; i < len(page.Pix); i += 4 {
		if page.Pix[i] == 255 {
			n++
		}
	}
	if n != 12*12 {
		t.Errorf("%d pixels are red, want the tile and two around it", n)
	}
}

func TestExports(t *testing.T) {
	files := icons()
	for i := range 3 {
		files[fmt.Sprintf("ui/run_%02d.png", i)] = disc(20, 20, 10, float64(8+i), 6, gold)
	}
	r := run(t, files, settings(func(s *Settings) { s.MaxSize, s.Exports = 64, []string{"libgdx", "json-hash", "json-array"} }))
	tab := frames(t, r)
	if len(tab.Pages) < 2 {
		t.Fatalf("%d pages", len(tab.Pages))
	}
	gdx, err := table.ReadLibGDX(r.Products["libgdx"].Data)
	if err != nil || len(gdx.Pages) != len(tab.Pages) || len(gdx.Regions) != len(tab.Frames) {
		t.Errorf("%v: %d pages, %d regions", err, len(gdx.Pages), len(gdx.Regions))
	}
	n := 0
	for i := range tab.Pages {
		name := "hash"
		if i > 0 {
			name = fmt.Sprintf("hash-%d", i)
		}
		var doc struct {
			Frames map[string]any
			Meta   struct {
				Image   string
				Related []string `json:"related_multi_packs"`
			}
		}
		if err := json.Unmarshal(r.Products[name].Data, &doc); err != nil || doc.Meta.Image != tab.Pages[i].File {
			t.Errorf("%s: %v %+v", name, err, doc.Meta)
		}
		n += len(doc.Frames)
		if i == 0 && (len(doc.Meta.Related) != len(tab.Pages)-1 || doc.Meta.Related[0] != "ui.hash-1.json") {
			t.Errorf("%v", doc.Meta.Related)
		}
		if !bytes.Contains(r.Products[strings.Replace(name, "hash", "array", 1)].Data, []byte(`{"filename":"`)) {
			t.Errorf("array of page %d", i)
		}
	}
	if n != len(tab.Frames) {
		t.Errorf("%d frames in all, want %d", n, len(tab.Frames))
	}
}

func TestMoreProblems(t *testing.T) {
	dot := fill(1, 1, red)
	odd := patch(6, 6, [4][2]int{{2, 4}})
	bad := paint(8, 8, func(x, y int) color.NRGBA {
		if y == 0 && x == 3 {
			return red
		}
		return color.NRGBA{}
	})
	for _, c := range []struct {
		name   string
		files  map[string][]byte
		change func(*Settings)
		want   []string
	}{
		{"red guide", map[string][]byte{"ui/a.9.png": bad, "ui/b.9.png": odd}, func(*Settings) {},
			[]string{"K1307 ui/a.9.png: pixel at 3,0 is in a guide line"}},
		{"no room for guides", map[string][]byte{"ui/a.9.png": dot}, func(*Settings) {}, []string{"K1307 ui/a.9.png: nine-patch of 1 x 1"}},
		{"pack.json", map[string][]byte{"ui/a.png": dot, "ui/pack.json": []byte("{ maxWidth: big\n pot: 3 }"), "ui/b/c.png": dot, "ui/b/pack.json": []byte("[")}, func(*Settings) {},
			[]string{"K1308 ui/pack.json: maxWidth cannot be big", "K1308 ui/pack.json: pot cannot be 3", "K1308 ui/b/pack.json:"}},
		{"no settings", map[string][]byte{"ui/a.png": dot, "ui/pack.json": []byte("7")}, func(*Settings) {}, []string{"K1308 ui/pack.json: it holds no settings"}},
		{"small sheet", map[string][]byte{"ui/a.png": dot}, func(s *Settings) { s.Sheet = "2x1" }, []string{"K1310 ui/a.png: sheet of 1 x 1 pixels is smaller than one of its frames of 2 x 1"}},
		{"too many cells", map[string][]byte{"ui/a.png": fill(300, 300, red)}, func(s *Settings) { s.Sheet = "1x1" }, []string{"K1310 ui/a.png: sheet of 300 x 300 pixels has 90000 frames of 1 x 1, more than 65535"}},
		{"crowded", map[string][]byte{"ui/a.png": fill(8, 8, red), "ui/b.png": fill(8, 8, blue)}, func(s *Settings) { s.MaxSize, s.Pages = 8, map[string]string{"*": "x"} },
			[]string{`K1311 ui/b.png: image does not fit on page "x"`}},
		{"sheet is not a size", map[string][]byte{"ui/a.png": dot}, func(s *Settings) { s.Sheets = map[string]string{"*": "0x3"} }, []string{`K1312 : sheet "0x3" is not a size`}},
		{"two scales", map[string][]byte{"ui/a.png": dot}, func(s *Settings) { s.Scale = []float64{1, 2, 1} }, []string{"K1312 : scale 1 is there twice"}},
		{"too close scales", map[string][]byte{"ui/a.png": dot}, func(s *Settings) { s.Scale = []float64{0.5001, 0.5002} }, []string{"K1312 : scale 0.5 is there twice"}},
		{"enlarged too much", map[string][]byte{"ui/a.png": fill(5000, 1, red)}, func(s *Settings) { s.Scale = []float64{16} }, []string{"K1303 ui/a.png: image of 5000 x 1 pixels would have 80000 x 16 at this scale"}},
		{"two ways to turn", map[string][]byte{"ui/a.png": dot}, func(s *Settings) { s.Rotate, s.Exports = true, []string{"libgdx", "json-hash"} }, []string{"K1312 : libGDX turns images counter-clockwise"}},
		{"glob of pages", map[string][]byte{"ui/a.png": dot}, func(s *Settings) { s.Pages = map[string]string{"[": "x"} }, []string{`K1304 : pattern "["`}},
		{"name in libGDX", map[string][]byte{"ui/a:b.png": dot}, func(s *Settings) { s.Exports = []string{"libgdx"} }, []string{`K1314 : the name "a:b"`}},
		{"cell and image", map[string][]byte{"ui/a.png": fill(2, 1, red), "ui/a_0.png": dot}, func(s *Settings) { s.Sheets = map[string]string{"a.png": "1x1"} }, []string{`K1302 ui/a_0.png: "ui/a.png" and "ui/a_0.png" would both be the frame "a_0"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := processortest.Run(t, New(), processortest.Case{Files: c.files, Asset: "ui/", Settings: settings(c.change)})
			problems := processortest.Problems(r.Err)
			if len(problems) != len(c.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(problems), len(c.want), r.Err)
			}
			for i, p := range problems {
				if s := fmt.Sprintf("%s %s: %s", p.Code, p.Path, p.Text); !strings.HasPrefix(s, c.want[i]) || p.Hint == "" {
					t.Errorf("%s (%s)\nwant %s", s, p.Hint, c.want[i])
				}
			}
		})
	}
}

// Settings that mean what they mean for a texture have its values, and come to it.
func TestTextureSettings(t *testing.T) {
	ours, theirs := reflect.TypeFor[Settings](), reflect.TypeFor[texture.Options]()
	for _, name := range []string{"Format", "Family", "Quality", "Container", "Compress", "Mips", "Filter", "SRGB", "Premultiply", "AlphaCutoff", "Bleed"} {
		a, _ := ours.FieldByName(name)
		b, ok := theirs.FieldByName(name)
		if !ok || a.Type != b.Type {
			t.Errorf("%s is %v, and of a texture %v", name, a.Type, b.Type)
			continue
		}
		for _, tag := range []string{"toml", "values", "min", "max"} {
			want := b.Tag.Get(tag)
			if name == "Quality" {
				want = strings.TrimSuffix(want, ",draft-then-final") // the pages of an atlas have no draft
			}
			if a.Tag.Get(tag) != want && !(name == "Container" && a.Tag.Get(tag) == want+",png") {
				t.Errorf("%s: %s is %q, and of a texture %q", name, tag, a.Tag.Get(tag), b.Tag.Get(tag))
			}
		}
		s := Defaults()
		switch f := reflect.ValueOf(&s).Elem().FieldByName(name); f.Kind() {
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.String:
			f.SetString("other")
		case reflect.Int:
			f.SetInt(7)
		case reflect.Float64:
			f.SetFloat(0.7)
		}
		if got := reflect.ValueOf(s.options()).FieldByName(name); !got.Equal(reflect.ValueOf(s).FieldByName(name)) {
			t.Errorf("%s does not come to the texture", name)
		}
	}
	r := run(t, icons(), settings(func(s *Settings) { s.Family, s.Quality, s.Container = "bc", "fast", "dds" }))
	asPNG := run(t, icons(), settings(func(s *Settings) { s.Container, s.Exports = "png", []string{"libgdx"} }))
	img, err := pixel.Decode("0.png", asPNG.Products["0"].Data, pixel.DefaultLimits())
	if err != nil || asPNG.Products["0"].Extension != ".png" || !bytes.Contains(asPNG.Products["libgdx"].Data, []byte("\nui.0.png\n")) {
		t.Fatalf("as PNG: %v, %+v", err, asPNG.Products["0"].Output)
	}
	restores(t, icons(), frames(t, asPNG), []*pixel.Image{img})
	if f, err := texture.Open(r.Products["0"].Data, pixel.DefaultLimits()); err != nil || f.Format != "BC7 sRGB" {
		t.Errorf("%v %+v", err, f)
	}
}

func TestFonts(t *testing.T) {
	files := map[string][]byte{
		"ui/big/A.png":      disc(10, 14, 5, 7, 4, gold),
		"ui/big/U+0042.png": fill(8, 12, red),
		"ui/big/logo.png":   fill(30, 30, blue), // no glyph
		// A font of two glyphs side by side; the picture is empty around x 4 to 20, y 2 to 10.
		"ui/f/small.png": paint(24, 12, func(x, y int) color.NRGBA {
			if x >= 4 && x < 20 && y >= 2 && y < 10 {
				return color.NRGBA{uint8(x), uint8(y), 7, 255}
			}
			return color.NRGBA{}
		}),
		"ui/f/small.fnt": []byte("info face=\"Small\" size=10\ncommon lineHeight=12 base=9 scaleW=24 scaleH=12 pages=1\npage id=0 file=\"small.png\"\n" +
			"char id=66 x=12 y=0 width=12 height=12 xoffset=1 yoffset=0 xadvance=11 page=0\nchar id=65 x=0 y=0 width=12 height=12 xoffset=1 yoffset=0 xadvance=11 page=0\n" +
			"char id=32 x=0 y=0 width=3 height=1 xoffset=0 yoffset=0 xadvance=5 page=0\nkerning first=65 second=66 amount=-1\n"),
	}
	r := run(t, files, settings(func(s *Settings) { s.Exports = []string{"bmfont"} }))
	small, err := bmfont.Read(r.Products["f-small"].Data)
	if err != nil {
		t.Fatal(err)
	}
	at := frameOf(t, r, "f/small")
	page := r.Products["0"]
	want := &bmfont.Font{
		Face: "Small", Size: 10, LineHeight: 12, Base: 9, ScaleW: small.ScaleW, ScaleH: small.ScaleH, Pages: []string{"ui.0.ktx2"},
		Chars: []bmfont.Char{
			{ID: 32, X: at.X, Y: at.Y, XAdvance: 5, XOffset: 4, YOffset: 2},
			{ID: 65, X: at.X, Y: at.Y, Width: 8, Height: 8, XOffset: 5, YOffset: 2, XAdvance: 11},
			{ID: 66, X: at.X + 8, Y: at.Y, Width: 8, Height: 8, XOffset: 1, YOffset: 2, XAdvance: 11},
		},
		Kernings: []bmfont.Kerning{{First: 65, Second: 66, Amount: -1}},
	}
	if d := cmp.Diff(want, small); d != "" || page.Data == nil {
		t.Error(d)
	}
	big, err := bmfont.Read(r.Products["big"].Data)
	if err != nil {
		t.Fatal(err)
	}
	a, b := frameOf(t, r, "big/A"), frameOf(t, r, "big/U+0042")
	want = &bmfont.Font{
		Face: "big", Size: 14, LineHeight: 14, Base: 14, ScaleW: big.ScaleW, ScaleH: big.ScaleH, Pages: []string{"ui.0.ktx2"},
		Chars: []bmfont.Char{
			{ID: 'A', X: a.X, Y: a.Y, Width: a.W, Height: a.H, XOffset: a.OffsetX, YOffset: a.OffsetY, XAdvance: 10},
			{ID: 'B', X: b.X, Y: b.Y, Width: 8, Height: 12, YOffset: 2, XAdvance: 8},
		},
	}
	if d := cmp.Diff(want, big); d != "" {
		t.Error(d)
	}
	delete(files, "ui/f/small.png")
	lost := processortest.Run(t, New(), processortest.Case{Files: files, Asset: "ui/", Settings: settings(func(s *Settings) { s.Exports = []string{"bmfont"} })})
	if p := processortest.Problems(lost.Err); len(p) != 1 || p[0].Code != "K1314" || p[0].Path != "ui/f/small.fnt" || !strings.Contains(p[0].Text, "small.png") {
		t.Errorf("%v", lost.Err)
	}
}

// BenchmarkAtlas is all the work on 5,000 sprites, one part after the other: in a build they go side by side. Each image is read once
// as a file and once as pixels for its page.
func BenchmarkAtlas(b *testing.B) {
	files := map[string][]byte{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		base := 8 << r.IntN(4)
		files[fmt.Sprintf("ui/%04d_x.png", i)] = paint(base+r.IntN(base), base+r.IntN(base), func(x, y int) color.NRGBA {
			return color.NRGBA{uint8(x * i), uint8(3*y + i), uint8(x), 255}
		})
	}
	for b.Loop() {
		r := processortest.Run(b, New(), processortest.Case{Files: files, Asset: "ui/"})
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		reads := map[string]int{}
		for _, part := range r.Parts {
			for _, o := range part.Observations {
				if strings.HasPrefix(o, "file ") || strings.HasSuffix(o, "product pixels@1000") {
					reads[o]++
				}
			}
		}
		for o, n := range reads {
			if n != 1 {
				b.Fatalf("%q happens %d times", o, n)
			}
		}
	}
}

// Other assets have images packed, and their own files are not looked at.
func TestRequests(t *testing.T) {
	raw := func(w, h int, c color.NRGBA) []byte {
		data := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(w)), uint32(h))
		return append(data, bytes.Repeat([]byte{c.R, c.G, c.B, c.A}, w*h)...)
	}
	request := func(name string, data []byte) processortest.OtherProduct {
		return processortest.OtherProduct{Product: processor.Product{Name: name, Part: "pack"}, Data: data}
	}
	c := processortest.Case{
		Files: map[string][]byte{"ui/dot.png": fill(3, 3, red)}, Asset: "ui/", Settings: settings(func(*Settings) {}),
		Others: map[string][]processortest.OtherProduct{
			"big.ttf":   {request("ui/:font/A", raw(9, 12, gold)), request("ui/:font/B", raw(7, 12, blue)), request("hud/:font/A", nil)},
			"small.ttf": {request("ui/:same", raw(3, 3, red))},
		},
	}
	r := processortest.Run(t, New(), c)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	page, tab := pagesOf(t, r)[0], frames(t, r)
	for name, want := range map[string]color.NRGBA{"font/A": gold, "font/B": blue, "dot": red, "same": red} {
		f := frameOf(t, r, name)
		if p := page.Pix[4*(f.Y*page.Width+f.X):]; (color.NRGBA{p[0], p[1], p[2], p[3]}) != want {
			t.Errorf("%s is %v", name, p[:4])
		}
	}
	if a, b := frameOf(t, r, "dot"), frameOf(t, r, "same"); len(tab.Frames) != 4 || a.X != b.X || a.Y != b.Y {
		t.Errorf("%d frames; a request that looks like an image: %+v, %+v", len(tab.Frames), a, b)
	}
	want := []string{"missing ui/pack.json", "product big.ttf ui/:font/A"}
	if d := cmp.Diff(want, r.Parts["request:big.ttf|font/A"].Observations); d != "" {
		t.Error(d)
	}
	c.Files = map[string][]byte{}
	if r := processortest.Run(t, New(), c); r.Err != nil {
		t.Errorf("an atlas of requests alone: %v", r.Err)
	}
	c.Files["ui/same.png"] = fill(3, 3, red)
	c.Others["small.ttf"] = append(c.Others["small.ttf"], request("ui/:cut", raw(2, 2, red)[:11]))
	problems := processortest.Problems(processortest.Run(t, New(), c).Err)
	if len(problems) != 1 || problems[0].Code != "K1302" || problems[0].Path != "small.ttf" {
		t.Errorf("%v", problems)
	}
	delete(c.Files, "ui/same.png")
	problems = processortest.Problems(processortest.Run(t, New(), c).Err)
	if len(problems) != 1 || problems[0].Path != "small.ttf" || !strings.Contains(problems[0].Text, `image "cut" for the atlas: 2 x 2 pixels are not 3 bytes`) {
		t.Errorf("%v", problems)
	}
}
