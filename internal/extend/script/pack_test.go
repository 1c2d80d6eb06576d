package script

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// packer is a script that asks with these lines and writes with those.
func packer(pack, write string) string {
	lines := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") + "\n" }
	return "processor(\"p\", extensions = [\".p\"])\ndef pack(job):\n    " + lines(pack) + "def write(job, responses):\n    " + lines(write)
}

// someAtlas is an atlas as its processor leaves it, with these frames.
func someAtlas(t *testing.T, frames ...atlas.Frame) []processortest.OtherProduct {
	t.Helper()
	table := atlas.Table{Pages: []atlas.Page{{File: "ui.0.png", SubID: 1, Width: 64, Height: 32}}, Frames: frames}
	data, err := atlas.Write(&table)
	if err != nil {
		t.Fatal(err)
	}
	return []processortest.OtherProduct{{Product: processor.Product{Type: atlas.Type, File: "ui.atlas"}, Data: data}}
}

// TestPack: what is asked for is asked for in the form that atlases read, and answered in the order in which it was.
func TestPack(t *testing.T) {
	s := load(t, packer(`
m = image.new(2, 1, (1, 2, 3))
for name in ["z", "a", "gone"]:
    job.pack("ui/", name, m)
job.pack("hud/", "z", m)`, `
for r in responses:
    if r == None:
        print("none")
    else:
        print([r.atlas, r.name, r.page, r.x, r.y, r.width, r.height, r.offset_x, r.offset_y, r.source_width, r.source_height, r.turned, r.page_width, r.page_height])
job.write("done")`))
	if !s.Info().Packs {
		t.Error("it does not say that it packs")
	}
	r := processortest.Run(t, s, processortest.Case{
		Files: map[string][]byte{"a.p": nil}, Asset: "a.p",
		Others: map[string][]processortest.OtherProduct{
			"ui/": someAtlas(t,
				atlas.Frame{Name: "a", X: 4, Y: 5, W: 1, H: 2, Turn: atlas.Right, OffsetX: 1, OffsetY: 0, SourceW: 2, SourceH: 2},
				atlas.Frame{Name: "z", X: 7, Y: 8, W: 2, H: 1, SourceW: 2, SourceH: 1}),
			"hud/": someAtlas(t, atlas.Frame{Name: "z", X: 1, Y: 1, W: 2, H: 1, SourceW: 2, SourceH: 1}),
		},
	})
	if r.Err != nil || string(r.Products[""].Data) != "done" {
		t.Fatal(written1(r.Err))
	}
	var said []string
	for _, w := range r.Warnings {
		_, text, _ := strings.Cut(w.Text, ": ")
		said = append(said, text)
	}
	want := []string{
		`["ui/", "z", 0, 7, 8, 2, 1, 0, 0, 2, 1, 0, 64, 32]`, `["ui/", "a", 0, 4, 5, 1, 2, 1, 0, 2, 2, 1, 64, 32]`, "none",
		`["hud/", "z", 0, 1, 1, 2, 1, 0, 0, 2, 1, 0, 64, 32]`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("answers\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	asked := r.Parts["pack"].Products["ui/:z"]
	if !asked.Hidden || !bytes.Equal(asked.Data, []byte{2, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 255, 1, 2, 3, 255}) {
		t.Errorf("asked for %+v", asked)
	}
}

// TestPackWrong: each mistake has its words.
func TestPackWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"write in pack":    {packer(`job.write("x")`, "pass"), "p.star:3:14: error[K1453]: job.write: products are written in write(job, responses)"},
		"pack in write":    {packer("pass", `job.pack("ui/", "a", image.new(1, 1))`), "asked for in pack(job)"},
		"pack in process":  {body(`job.pack("ui/", "a", image.new(1, 1))`), "asked for in pack(job)"},
		"twice":            {packer(`job.pack("ui/", "a", image.new(1, 1))`+"\n"+`job.pack("ui/", "a", image.new(1, 2))`, "pass"), "asked for twice"},
		"no name":          {packer(`job.pack("ui/", "", image.new(1, 1))`, "pass"), "a frame has a name"},
		"a long name":      {packer(`job.pack("ui/", "a" * 2000, image.new(1, 1))`, "pass"), "more than 1024 bytes"},
		"no image":         {packer(`job.pack("ui/", "a", "b")`, "pass"), "got string, want image"},
		"no atlas":         {packer(`job.pack("nowhere/", "a", image.new(1, 1))`, "pass"), "nowhere/"},
		"fail":             {packer(`fail("no", line = 1)`, "pass"), "no"},
		"endless":          {packer("while True:\n    pass", "pass"), "steps"},
		"no write":         {"processor(\"p\")\ndef pack(job):\n    pass\n", `K1452]: the script has no function "write"`},
		"no pack":          {"processor(\"p\")\ndef write(job, responses):\n    pass\n", `K1452]: the script has no function "pack"`},
		"write takes one":  {"processor(\"p\")\ndef pack(job):\n    pass\ndef write(job):\n    pass\n", `K1452]: the function "write" takes two arguments`},
		"pack takes none":  {"processor(\"p\")\ndef pack():\n    pass\ndef write(job, r):\n    pass\n", `K1452]: the function "pack" takes one argument`},
		"pack is no image": {"processor(\"p\")\npack = 1\ndef write(job, r):\n    pass\n", `K1452]: the script has no function "pack"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Load(project(t, map[string]string{"p.star": c.text}), "p.star", "")
			if err == nil {
				s.Steps = 1_000_000
				r := processortest.Run(t, s, processortest.Case{Files: map[string][]byte{"a.p": nil}, Asset: "a.p"})
				err = r.Err
			}
			if got := written1(err); err == nil || !strings.Contains(got, c.want) {
				t.Errorf("got %q\nwant something with %q", got, c.want)
			}
		})
	}
}

// TestPackBesideProcess: a script with process may have any function of the other names.
func TestPackBesideProcess(t *testing.T) {
	s := load(t, "def pack(a, b):\n    return a + b\ndef write(job):\n    job.write(pack(\"a\", \"b\"))\n"+body("write(job)"))
	r := processortest.Run(t, s, processortest.Case{Files: map[string][]byte{"a.p": nil}, Asset: "a.p"})
	if s.Info().Packs || r.Err != nil || string(r.Products[""].Data) != "ab" {
		t.Errorf("%v, %q", r.Err, r.Products[""].Data)
	}
}
