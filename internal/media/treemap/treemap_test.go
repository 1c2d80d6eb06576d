package treemap

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

var update = flag.Bool("update", false, "write golden files")

// TestSquarify is the example of the paper (figures 4 and 5): areas 6, 6, 4, 3, 2, 2 and 1 in a rectangle of 6 by 4.
func TestSquarify(t *testing.T) {
	got := squarify([]int64{6, 6, 4, 3, 2, 2, 1}, rect{0, 0, 6, 4})
	want := []rect{
		{0, 0, 3, 2}, {0, 2, 3, 2}, // the first two form a column
		{3, 0, 12.0 / 7, 7.0 / 3}, {3 + 12.0/7, 0, 9.0 / 7, 7.0 / 3}, // the next two form a row at the top of the rest
		{3, 7.0 / 3, 6.0 / 5, 5.0 / 3}, // the next is alone at the left
		{4.2, 7.0 / 3, 6.0 / 5, 5.0 / 3}, {5.4, 7.0 / 3, 3.0 / 5, 5.0 / 3},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rect{}), cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Error(diff)
	}
}

// TestSquarifyAny checks random sizes: each rectangle has its area, lies inside the whole, and overlaps no other.
func TestSquarifyAny(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		r := rect{rng.Float64() * 10, rng.Float64() * 10, 1 + rng.Float64()*1000, 1 + rng.Float64()*1000}
		sizes := make([]int64, 1+rng.IntN(40))
		var total float64
		for i := range sizes {
			sizes[i] = 1 + rng.Int64N(1<<rng.IntN(40)+1)
			total += float64(sizes[i])
		}
		slices.SortFunc(sizes, func(a, b int64) int { return int(max(-1, min(1, b-a))) })
		cells := squarify(sizes, r)
		near := 1e-6 * (r.w + r.h)
		for i, c := range cells {
			if want := float64(sizes[i]) / total * r.w * r.h; math.Abs(c.w*c.h-want) > near*(r.w+r.h) {
				t.Fatalf("%d of %v has an area of %g, not %g", i, sizes, c.w*c.h, want)
			}
			if c.x < r.x-near || c.y < r.y-near || c.x+c.w > r.x+r.w+near || c.y+c.h > r.y+r.h+near {
				t.Fatalf("%v is not in %v", c, r)
			}
			for _, o := range cells[:i] {
				if c.x+near < o.x+o.w && o.x+near < c.x+c.w && c.y+near < o.y+o.h && o.y+near < c.y+c.h {
					t.Fatalf("%v and %v lie over each other", c, o)
				}
			}
		}
	}
}

// sample has folders, kinds, an item too small to see, a chain of folders, and names that contain markup.
func sample() Node {
	root := Node{Children: []Node{}}
	for _, leaf := range []struct {
		path, kind string
		size       int64
	}{
		{"textures/hero.png", "texture", 400_000}, {"textures/ui/deep/button.png", "texture", 90_000}, {"textures/ui/deep/frame.png", "texture", 60_000},
		{"models/knight.glb", "model", 300_000}, {"models/<b>&\"'.glb", "model", 120_000}, {"music/größe 地図.ogg", "sound", 500_000},
		{"data/a.json", "data", 40}, {"data/b.json", "data", 30}, {"data/c.json", "data", 20}, {"data/empty.json", "data", 0}, {"readme", "", 8_000},
	} {
		root.Add(leaf.path, Node{Size: leaf.size, Kind: leaf.kind, Note: "a note"})
	}
	return root
}

func svg(t testing.TB, n Node, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, n, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	o := Options{Title: "a <parcel>, 10 resources", Width: 600, Height: 400}
	var page bytes.Buffer
	if err := HTML(&page, sample(), o); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"sample.svg": svg(t, sample(), o), "sample.html": page.String(), "nothing.svg": svg(t, Node{}, Options{Title: "nothing"})} {
		golden := filepath.Join("testdata", name)
		if *update {
			os.MkdirAll("testdata", 0o755)
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	want := svg(t, sample(), Options{})
	var turn func(n *Node)
	turn = func(n *Node) {
		slices.Reverse(n.Children)
		for i := range n.Children {
			turn(&n.Children[i])
		}
	}
	n := sample()
	turn(&n)
	if got := svg(t, n, Options{}); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// TestMany draws 100,000 items: the picture is small enough for a browser to open at once, and includes all of them.
func TestMany(t *testing.T) {
	root := Node{Children: []Node{}}
	rng := rand.New(rand.NewPCG(2, 2))
	var total int64
	for i := range 100_000 {
		size := rng.Int64N(1 << rng.IntN(24))
		total += size
		root.Add(fmt.Sprintf("f%02d/g%d/file%d", i%50, i%7, i), Node{Size: size, Kind: fmt.Sprint("k", i%13)})
	}
	got := svg(t, root, Options{Title: "many"})
	if len(got) > 2<<20 {
		t.Errorf("it has %d bytes", len(got))
	}
	if !strings.Contains(got, ">"+diag.Size(total)+"<") || !strings.Contains(got, " smaller") || !strings.Contains(got, "3 others") {
		t.Error("it lacks the whole size, what is drawn together, or the kinds that share a colour")
	}
}

// TestDeep draws a thousand nested folders with two items in each.
func TestDeep(t *testing.T) {
	root := Node{Children: []Node{}}
	for i := range 1000 {
		root.Add(strings.Repeat("d/", i)+"file", Node{Size: 1000, Kind: "x"})
	}
	wellFormed(t, svg(t, root, Options{}))
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		text string
		room float64
		want string
	}{{"hero.png", 100, "hero.png"}, {"a-long-name.png", 70, "a-long-na…"}, {"a-long-name.png", 36, ""}, {"größe-größe", 60, "größe-gr…"}, {"", 0, ""}} {
		if got := fit(c.text, c.room, 11, 5); got != c.want || width(got, 11) > c.room {
			t.Errorf("%q in %g is %q, not %q", c.text, c.room, got, c.want)
		}
	}
}

func wellFormed(t testing.TB, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}

// FuzzSVG checks that any name gives a valid picture.
func FuzzSVG(f *testing.F) {
	f.Add("a/b.png", "</title>", int64(10), int64(1<<62))
	f.Fuzz(func(t *testing.T, path, kind string, a, b int64) {
		root := Node{Children: []Node{}}
		root.Add(path, Node{Size: a, Kind: kind, Note: path})
		root.Add(kind, Node{Size: b / 2, Kind: path})
		wellFormed(t, svg(t, root, Options{Title: path}))
	})
}

// TestInline checks that an element for a page has links and no style of its own.
func TestInline(t *testing.T) {
	var b bytes.Buffer
	root := Node{Children: []Node{{Name: "a & b.png", Size: 700, Kind: "texture", Link: "/asset/a%20&b.png"}, {Name: "plain", Size: 300}}}
	if err := Inline(&b, root, Options{Title: "What <fills> it", Width: 400, Height: 200}); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	for _, want := range []string{`<a href="/asset/a%20&amp;b.png" tabindex="-1">`, `aria-label="What &lt;fills&gt; it"`, `viewBox="0 0 400 `} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "style") || strings.Count(b.String(), "<a ") != 1 {
		t.Errorf("it has styles, or links from nowhere:\n%s", &b)
	}
}
