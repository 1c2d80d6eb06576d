package build

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
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
