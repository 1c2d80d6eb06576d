package internal_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/wings.svg again")

// place is where a wing stands in the picture: its floor, and its columns of twelve.
type place struct {
	wing     string
	floor    int
	from, to int
}

// places put wings so that each arrow is a straight line down, past the boxes between.
var places = []place{
	{"proof", 9, 0, 6}, {"kiln", 9, 6, 12},
	{"cli", 8, 0, 9},
	{"ask", 7, 0, 4}, {"running", 7, 4, 9},
	{"make", 6, 0, 12},
	{"store", 5, 0, 3}, {"delivery", 5, 3, 6}, {"extend", 5, 6, 9}, {"processors", 5, 9, 12},
	{"content", 4, 2, 10},
	{"engine", 3, 0, 2}, {"media", 3, 2, 12},
	{"base", 2, 0, 12},
	{"processor", 1, 0, 8}, {"kilnrt", 1, 8, 12},
}

// public are the packages outside internal that stand in the picture, and what is said of them.
var public = map[string]string{
	"kiln":      "the library, and the program",
	"processor": "what a processor is written against",
	"kilnrt":    "the game's side",
}

// Lengths in the picture, in pixels.
const (
	wingsWidth  = 920
	wingsLeft   = 64 // room for the numbers of floors
	wingsRight  = 20
	wingsTop    = 66
	wingsGap    = 26 // between floors, for arrows
	wingsGutter = 12 // between boxes beside each other
	wingsPad    = 12 // inside a box
	chipHeight  = 22
	chipSpace   = 6
	chipLetter  = 6.92 // of a monospaced letter at 11.5 pixels
)

// box is a wing, laid out.
type box struct {
	place
	says   []string // in lines
	beside bool     // what is said stands beside the name
	rooms  []string
	chips  []chip
	x, y   int
	w, h   int
}

type chip struct {
	name    string
	x, y, w int // in the box; without a width it is a name without a frame
}

// houseRooms finds the rooms of each wing, those with nothing but tests included.
func houseRooms(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	add := func(wing, room string) {
		if found[wing] == nil {
			found[wing] = map[string]bool{}
		}
		found[wing][room] = true
	}
	err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == "testdata" {
			return fs.SkipDir
		}
		if dir := filepath.ToSlash(filepath.Dir(file)); err == nil && strings.HasSuffix(file, ".go") && dir != "." {
			wing, _, _ := strings.Cut(dir, "/")
			add(wing, dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range importsOf(t, "..") {
		first, _, _ := strings.Cut(pkg, "/")
		switch {
		case pkg == "." || pkg == "cmd/kiln":
			add("kiln", pkg)
		case public[first] != "" && !strings.Contains(pkg, "/internal/") && path.Base(pkg) != "example":
			add(first, pkg)
		}
	}
	rooms := map[string][]string{}
	for wing, all := range found {
		rooms[wing] = slices.Sorted(maps.Keys(all))
		slices.SortStableFunc(rooms[wing], func(a, b string) int { // codecs stand together, below
			return strings.Count(a, codecs+"/") - strings.Count(b, codecs+"/")
		})
	}
	return rooms
}

// roomName is how a room is called in the box of its wing.
func roomName(wing, pkg string) string {
	if pkg == "." {
		return "kiln"
	}
	return strings.TrimPrefix(pkg, wing+"/")
}

// headings reads from ARCHITECTURE.md what each wing is, and on which floor.
func headings(t *testing.T) map[string][2]string {
	t.Helper()
	page, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	says := map[string][2]string{}
	for _, m := range regexp.MustCompile("(?m)^\\*\\*`(\\w+)`\\*\\*: (.+?)(?: \\(floor (\\d)\\))?$").FindAllStringSubmatch(string(page), -1) {
		says[m[1]] = [2]string{m[2], m[3]}
	}
	return says
}

// lay places what is in a box, and returns how high the box has to be. beside: what is said of it stands beside its name.
func (b *box) lay(beside bool) int {
	b.beside = beside
	y := wingsPad + 23
	if !beside {
		b.says = wrap(b.says[0], b.letters())
		y += 16*len(b.says) + 2
	}
	if len(b.rooms) == 1 && b.rooms[0] == b.wing {
		return y - 8 + wingsPad
	}
	x, left := wingsPad, wingsPad
	group := ""
	for _, room := range b.rooms {
		name := roomName(b.wing, room)
		above, rest, _ := strings.Cut(name, "/")
		if above != codecs {
			above = ""
		}
		if above != group && x > wingsPad {
			x, y = wingsPad, y+chipHeight+chipSpace
		}
		left = wingsPad
		if above != "" {
			left, name = wingsPad+56, rest
			if group == "" {
				b.chips = append(b.chips, chip{name: above + "/", x: wingsPad, y: y})
			}
			x = max(x, left)
		}
		group = above
		c := chip{name: name, w: int(float64(len(name))*chipLetter) + 15}
		if x > left && x+c.w > b.w-wingsPad {
			x, y = left, y+chipHeight+chipSpace
		}
		c.x, c.y = x, y
		x += c.w + chipSpace
		b.chips = append(b.chips, c)
	}
	return y + chipHeight + wingsPad
}

// codecs is the folder of a wing whose rooms stand together under its name.
const codecs = "codec"

// letters is how many letters of a line go into a box.
func (b *box) letters() int { return (b.w - 2*wingsPad) * 10 / 60 }

// fits tells whether what is said of a wing has room beside its name.
func (b *box) fits() bool { return len(b.wing)*3/2+len(b.says[0])+2 <= b.letters() }

// wrap breaks a text into lines of so many letters.
func wrap(text string, letters int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= letters:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// houseBoxes lays out all wings, from the top down.
func houseBoxes(t *testing.T) (boxes []*box, height int) {
	t.Helper()
	rooms, says := houseRooms(t), headings(t)
	floors := map[int][]*box{}
	for _, p := range places {
		b := &box{place: p, rooms: rooms[p.wing], says: []string{says[p.wing][0]}}
		if floor := says[p.wing][1]; floor != "" && floor != fmt.Sprint(p.floor) {
			t.Errorf("wing %s is on floor %s in ARCHITECTURE.md and on %d in the picture", p.wing, floor, p.floor)
		}
		if text := public[p.wing]; text != "" {
			b.says[0] = text
		}
		if b.says[0] == "" || len(b.rooms) == 0 {
			t.Fatalf("wing %s: no heading in ARCHITECTURE.md, or no rooms", p.wing)
		}
		delete(rooms, p.wing)
		unit := wingsWidth - wingsLeft - wingsRight + wingsGutter
		b.x = wingsLeft + p.from*unit/12
		b.w = wingsLeft + p.to*unit/12 - wingsGutter - b.x
		boxes = append(boxes, b)
		floors[p.floor] = append(floors[p.floor], b)
	}
	for wing := range rooms {
		t.Errorf("wing %s has no place in the picture", wing)
	}
	y := wingsTop
	for _, floor := range slices.Backward(slices.Sorted(maps.Keys(floors))) {
		high := 0
		beside := !slices.ContainsFunc(floors[floor], func(b *box) bool { return !b.fits() })
		for _, b := range floors[floor] {
			high = max(high, b.lay(beside))
		}
		for _, b := range floors[floor] {
			b.y, b.h = y, high
		}
		y += high + wingsGap
	}
	return boxes, y
}

// edges are pairs of wings of which the upper one imports the lower one, but for those that lead there by way of a third.
func edges(t *testing.T) [][2]string {
	t.Helper()
	wing := func(pkg string) string {
		if pkg == "." {
			return "kiln"
		}
		rest, inside := strings.CutPrefix(pkg, "internal/")
		name, _, _ := strings.Cut(rest, "/")
		if !inside || name == "proof" {
			return ""
		}
		return name
	}
	direct := map[string]map[string]bool{}
	for pkg, found := range importsOf(t, "..") {
		for im := range found {
			if from, to := wing(pkg), wing(im); from != "" && to != "" && from != to {
				if direct[from] == nil {
					direct[from] = map[string]bool{}
				}
				direct[from][to] = true
			}
		}
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		for next := range direct[from] {
			if next == to || reaches(next, to) {
				return true
			}
		}
		return false
	}
	var all [][2]string
	for from, tos := range direct {
		for to := range tos {
			around := false
			for next := range tos {
				around = around || next != to && reaches(next, to)
			}
			if !around {
				all = append(all, [2]string{from, to})
			}
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	return all
}

// straight finds where a line can go down from one box to another: in the middle of the widest way that no box between them stands in.
func straight(boxes []*box, from, to *box) (x int, ok bool) {
	widest, start := 0, -1
	low, high := max(from.x, to.x), min(from.x+from.w, to.x+to.w)
	for at := low; at <= high; at++ {
		free := at < high && !slices.ContainsFunc(boxes, func(b *box) bool {
			return b.floor < from.floor && b.floor > to.floor && at >= b.x-6 && at < b.x+b.w+6
		})
		if free && start < 0 {
			start = at
		}
		if !free && start >= 0 {
			if at-start > widest {
				widest, x = at-start, (start+at)/2
			}
			start = -1
		}
	}
	return x, widest >= 12
}

// house draws the wings.
func house(t *testing.T) string {
	t.Helper()
	boxes, height := houseBoxes(t)
	byName := map[string]*box{}
	var drawn strings.Builder
	said := 0
	for _, b := range boxes {
		byName[b.wing] = b
		if b.floor != said {
			said = b.floor
			fmt.Fprintf(&drawn, "<text class=\"floor\" x=\"%d\" y=\"%d\">%d</text>\n", wingsLeft-22, b.y+b.h/2+6, b.floor)
		}
		b.draw(&drawn)
	}
	for _, e := range edges(t) {
		from, to := byName[e[0]], byName[e[1]]
		x, ok := straight(boxes, from, to)
		if !ok {
			t.Errorf("no straight way from %s to %s: move them", e[0], e[1])
		}
		end := to.y - 2
		fmt.Fprintf(&drawn, "<path class=\"way\" d=\"M%d %dV%d\"/><path class=\"tip\" d=\"M%d %dl-4.5 -7.5h9z\"/>\n",
			x, from.y+from.h, end-6, x, end)
	}
	return fmt.Sprintf(houseFrame, wingsWidth, height, wingsLeft, strings.TrimSuffix(drawn.String(), "\n"))
}

// draw writes a box, what it is, and its rooms.
func (b *box) draw(w *strings.Builder) {
	class := "wing"
	switch {
	case b.wing == "proof":
		class = "wing proof"
	case public[b.wing] != "":
		class = "wing public"
	}
	fmt.Fprintf(w, "<g class=\"%s\" transform=\"translate(%d %d)\">\n<rect class=\"box\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
		class, b.x, b.y, b.w, b.h)
	fmt.Fprintf(w, "<text class=\"name\" x=\"%d\" y=\"%d\">%s", wingsPad, wingsPad+12, b.wing)
	if b.beside {
		fmt.Fprintf(w, "<tspan class=\"says\" dx=\"9\">%s</tspan></text>\n", b.says[0])
	} else {
		w.WriteString("</text>\n")
		for i, line := range b.says {
			fmt.Fprintf(w, "<text class=\"says\" x=\"%d\" y=\"%d\">%s</text>\n", wingsPad, wingsPad+29+16*i, line)
		}
	}
	for _, c := range b.chips {
		if c.w == 0 {
			fmt.Fprintf(w, "<text class=\"room group\" x=\"%d\" y=\"%d\">%s</text>\n", c.x, c.y+15, c.name)
			continue
		}
		fmt.Fprintf(w, "<rect class=\"chip\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>", c.x, c.y, c.w, chipHeight)
		fmt.Fprintf(w, "<text class=\"room\" x=\"%.1f\" y=\"%d\">%s</text>\n", float64(c.x)+float64(c.w)/2, c.y+15, c.name)
	}
	w.WriteString("</g>\n")
}

// houseFrame is what is around the boxes. It has a ground of its own, so that it serves on white and on black.
const houseFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img"
  aria-label="The layers of Kiln, with their packages">
<style>
  svg { --paper: #fff; --ink: #1f2328; --soft: #59636e; --edge: #c4ccd5; --box: #f6f8fa; --chip: #fff;
    --way: #6e7781; --hot: #b3440a; --open: #fff4eb;
    font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9ea7b3; --edge: #3d444d; --box: #161b22;
    --chip: #21262d; --way: #8b949e; --hot: #ff9d5c; --open: #261a12 } }
  .paper { fill: var(--paper) } text { fill: var(--soft) }
  .head { font-size: 17px; font-weight: 600; fill: var(--ink) }
  .floor { font-size: 18px; font-weight: 600; text-anchor: end }
  .box { fill: var(--box); stroke: var(--edge) } .public .box { fill: var(--open) } .proof .box { fill: none; stroke-dasharray: 4 4 }
  .name { font-size: 15px; font-weight: 600; fill: var(--hot) } .proof .name { fill: var(--ink) }
  .says { font-size: 12px; font-weight: 400; fill: var(--soft) }
  .chip { fill: var(--chip); stroke: var(--edge) }
  .room { font: 11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); text-anchor: middle }
  .group { text-anchor: start; fill: var(--soft) }
  .way { fill: none; stroke: var(--way); stroke-width: 1.2 } .tip { fill: var(--way) }
</style>
<rect class="paper" width="100%%" height="100%%" rx="8"/>
<text class="head" x="%[3]d" y="32">The house, floor by floor</text>
<text x="%[3]d" y="51">A room imports rooms of its own wing and of floors below.
  Arrows: what a wing imports and does not reach through another.</text>
%[4]s
</svg>
`

// TestPicture: docs/wings.svg is drawn of the folders and imports as they are.
func TestPicture(t *testing.T) {
	got := house(t)
	const file = "../docs/wings.svg"
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("%s is not as the imports are; run go test ./internal -run Picture -update, and look at it: %v", file, err)
	}
}
