package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/pack"
)

// asker has a square packed for each line of its file, "NAME SIDE GREY", and writes where they are.
type asker struct{}

func (asker) Info() processor.Info {
	return processor.Info{
		Name: "asker", Version: 1, Summary: "for tests", Extensions: []string{".ask"}, Packs: true,
		Products: []processor.ProductType{{Type: "text", Extension: ".txt"}},
	}
}

func squares(job processor.Job) ([][]string, error) {
	b, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return nil, err
	}
	var list [][]string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 {
			list = append(list, f)
		}
	}
	return list, nil
}

func (asker) Part(_ context.Context, job processor.Job, name string) error {
	list, err := squares(job)
	if err != nil || name != pack.Part {
		return err
	}
	for _, f := range list {
		side, err := strconv.Atoi(f[1])
		if err != nil {
			return &processor.Problem{Text: f[1] + " is no side"}
		}
		grey, _ := strconv.Atoi(f[2])
		if err := pack.Image(job, "ui/", f[0], side, side, bytes.Repeat([]byte{byte(grey), byte(grey), byte(grey), 255}, side*side)); err != nil {
			return err
		}
	}
	return nil
}

func (asker) Process(_ context.Context, job processor.Job) error {
	list, err := squares(job)
	if err != nil {
		return err
	}
	frames, err := pack.Open(job, "ui/")
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, f := range list {
		at, ok := frames.Find(f[0])
		fmt.Fprintln(&out, f[0], ok, at.W, at.H)
	}
	return job.Write(processor.Output{Type: "text", Extension: ".txt"}, []byte(out.String()))
}

// TestPackers has one asset's images packed into another, the atlas, and edits both.
func TestPackers(t *testing.T) {
	var square bytes.Buffer
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	img.SetNRGBA(3, 3, color.NRGBA{9, 9, 9, 255})
	if err := png.Encode(&square, img); err != nil {
		t.Fatal(err)
	}
	p := newProject(t, "-- assets/a.ask --\none 4 10\ntwo 5 20\n-- assets/b.ask --\nthree 6 30\n-- assets/other.bin --\nx\n"+
		"-- assets/rules.toml --\n[[rules]]\nmatch = \"ui/\"\nprocessor = \"atlas\"\n")
	p.procs = append(processors.All(), asker{})
	p.write("assets/ui/square.png", square.String())
	p.age()
	b := p.build()
	if b.Failed > 0 || p.read("build/pc/a.ask.txt") != "one true 4 4\ntwo true 5 5\n" || p.read("build/pc/b.ask.txt") != "three true 6 6\n" {
		t.Fatalf("%+v\n%s\n%q", b.Summary, b.messages, p.read("build/pc/a.ask.txt"))
	}
	p.nothing()
	p.write("assets/other.bin", "y")
	p.wants("other.bin")
	// Another colour: the request and its image, the page, and the asset itself, which reads its file. The layout is as it was.
	p.write("assets/a.ask", "one 4 11\ntwo 5 20\n")
	if b := p.build(); b.Failed > 0 || strings.Contains(b.ran, "b.ask") || strings.Contains(b.ran, "ui/#layout") || !strings.Contains(b.ran, "ui/#page:0") {
		t.Errorf("another colour: ran %s\n%s", b.ran, b.messages)
	}
	p.nothing()
	// One image more: whoever looks at the frames is built.
	p.write("assets/b.ask", "three 6 30\nfour 7 40\n")
	if b := p.build(); b.Failed > 0 || !strings.Contains(b.ran, "a.ask") || p.read("build/pc/b.ask.txt") != "three true 6 6\nfour true 7 7\n" {
		t.Errorf("one more: ran %s\n%s", b.ran, b.messages)
	}
	p.nothing()
	p.write("assets/c.ask", "five 3 50\n")
	if b := p.build(); b.Failed > 0 || p.read("build/pc/c.ask.txt") != "five true 3 3\n" {
		t.Errorf("another that asks: ran %s\n%s", b.ran, b.messages)
	}
	p.nothing()
	p.remove("assets/c.ask")
	if b := p.build(); b.Failed > 0 {
		t.Errorf("it is gone: ran %s\n%s", b.ran, b.messages)
	}
	p.nothing()
	p.write("assets/b.ask", "three wide 30\n")
	if b := p.build(); b.Failed == 0 || !strings.Contains(b.messages, "wide is no side") {
		t.Errorf("a request fails: %+v\n%s", b.Summary, b.messages)
	}
	p.write("assets/b.ask", "three 6 30\n")
	if b := p.build(); b.Failed > 0 {
		t.Errorf("mended: ran %s\n%s", b.ran, b.messages)
	}
	p.nothing()
}

// letterSheet is a picture of three letters of 8 x 8 pixels: filled squares of different sizes and greys, with transparent edges.
func letterSheet(t *testing.T, greys [3]byte) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 24, 8))
	for letter, grey := range greys {
		for y := 1; y < 4+letter; y++ {
			for x := 2; x < 5+letter; x++ {
				img.SetNRGBA(8*letter+x, y, color.NRGBA{grey, byte(x), byte(y), 255})
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lettersIn checks the product of docs/scripts.md's second example against the page of the atlas and the greys of the letters.
func lettersIn(t *testing.T, p *fixture, greys [3]byte) {
	t.Helper()
	table, page := p.read("build/pc/fonts/small.glyphs.font"), p.read("build/pc/ui.0.png")
	img, err := png.Decode(strings.NewReader(page))
	if err != nil || len(table) != 3*17 {
		t.Fatalf("%d bytes, %v", len(table), err)
	}
	for i := range 3 {
		letter, rest := table[17*i], []byte(table[17*i+1:])
		at := func(n int) int { return int(binary.LittleEndian.Uint16(rest[2*n:])) }
		x, y, w, h, left, top := at(1), at(2), at(3), at(4), at(5), at(6)
		if letter != "ABC"[i] || at(0) != 0 || w != 3+i || h != 3+i || left != 2 || top != 1 || at(7) != 8 {
			t.Fatalf("letter %d: % x", i, table[17*i:17*i+17])
		}
		for dy := range h {
			for dx := range w {
				want := color.NRGBA{greys[i], byte(left + dx), byte(top + dy), 255}
				if got := color.NRGBAModel.Convert(img.At(x+dx, y+dy)); got != want {
					t.Fatalf("letter %c has %v at (%d, %d), want %v", letter, got, dx, dy, want)
				}
			}
		}
	}
}

// TestPackersInScripts follows the second example of docs/scripts.md, and edits all that it reads.
func TestPackersInScripts(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "## Images for an atlas")
	section, _, _ = strings.Cut(section, "## Pictures")
	p := newProject(t, "")
	p.procs = processors.All()
	files := regexp.MustCompile("(?s)`([^`\n]+)`[^`\n]*(?:`[^`\n]+`[^`\n]*)*:\n\n```\\w+\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(files) != 3 {
		t.Fatalf("the page has %d files", len(files))
	}
	for _, f := range files {
		p.write(f[1], f[2])
	}
	p.write("assets/fonts/small.png", letterSheet(t, [3]byte{10, 20, 30}))
	p.write("assets/ui/frame.png", letterSheet(t, [3]byte{1, 2, 3}))
	p.age()
	if b := p.build(); b.Failed > 0 {
		t.Fatalf("%+v\n%s", b.Summary, b.messages)
	}
	lettersIn(t, p, [3]byte{10, 20, 30})
	p.nothing()

	// A letter is painted over: pack runs, and the page is drawn. What write reads is as it was.
	p.write("assets/fonts/small.png", letterSheet(t, [3]byte{10, 25, 30}))
	p.wants("fonts/small.glyphs#pack ui/#aliases ui/#group:0 ui/#page:0 ui/#request:fonts/small.glyphs|fonts/small.glyphs/B")
	lettersIn(t, p, [3]byte{10, 25, 30})
	p.nothing()
	// Another image in the atlas: the layout and the page, and write, which is told where things are now.
	p.write("assets/ui/other.png", letterSheet(t, [3]byte{1, 2, 4}))
	if b := p.build(); b.Failed > 0 || strings.Contains(b.ran, "#pack") || !strings.Contains(b.ran, "fonts/small.glyphs") {
		t.Errorf("another image: ran %s\n%s", b.ran, b.messages)
	}
	lettersIn(t, p, [3]byte{10, 25, 30})
	p.nothing()
	// A comment in the script: both functions, whose output is as it was, and nothing above.
	p.write("tools/glyphs.star", "# another\n"+p.read("tools/glyphs.star"))
	p.wants("fonts/small.glyphs fonts/small.glyphs#pack")
	p.nothing()
	// The asset goes, and its letters with it.
	letters := len(p.read("build/pc/ui.atlas"))
	p.remove("assets/fonts/small.glyphs")
	if b := p.build(); b.Failed > 0 || p.read("build/pc/fonts/small.glyphs.font") != "" || len(p.read("build/pc/ui.atlas")) >= letters {
		t.Errorf("it is gone: ran %s\n%s", b.ran, b.messages)
	}
	p.nothing()
}
