package processor_test

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// Tilemap turns a map drawn with letters into bytes. Its first line names the file
// that says which letter is which tile.
type Tilemap struct{}

type TilemapSettings struct {
	Border int `toml:"border" doc:"Tile that is laid around the map; -1 is none." min:"-1" max:"255"`
}

func (Tilemap) Info() processor.Info {
	return processor.Info{
		Name: "tilemap", Version: 1, Summary: "A map of letters to a grid of tiles",
		Extensions: []string{".map"},
		Settings:   &TilemapSettings{Border: -1},
		Products:   []processor.ProductType{{Type: "tilemap", Extension: ".tiles", Doc: "width and height as 16 bits, then a byte a tile"}},
	}
}

//go:embed *.go
var source embed.FS

func (Tilemap) Source() fs.FS { return source }

var _ processor.Sourced = Tilemap{}

func (Tilemap) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	legend, err := readLegend(job, lines[0])
	if err != nil {
		return err
	}
	border := processor.SettingsOf[TilemapSettings](job).Border
	grid, err := tiles(lines[1:], legend, border)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	binary.Write(&out, binary.LittleEndian, [2]uint16{uint16(len(grid[0])), uint16(len(grid))})
	for _, row := range grid {
		out.Write(row)
	}
	return job.Write(processor.Output{Type: "tilemap", Extension: ".tiles"}, out.Bytes())
}

// readLegend reads lines such as "#=1". Reading the file is recorded: an edit of the legend builds every map that names it.
func readLegend(job processor.Job, name string) (map[rune]byte, error) {
	path, err := processor.Resolve(job.Asset().Path, name)
	if err != nil {
		return nil, &processor.Problem{Line: 1, Column: 1, Length: len(name), Text: err.Error(), Err: err}
	}
	text, err := job.ReadFile(path)
	if err != nil {
		return nil, &processor.Problem{
			Line: 1, Column: 1, Length: len(name), Err: err,
			Text: fmt.Sprintf("there is no legend %q", name), Hint: "the first line names the legend's file",
		}
	}
	legend := map[rune]byte{}
	for line := range strings.Lines(string(text)) {
		var letter rune
		var tile byte
		if _, err := fmt.Sscanf(line, "%c=%d", &letter, &tile); err == nil {
			legend[letter] = tile
		}
	}
	return legend, nil
}

func tiles(lines []string, legend map[rune]byte, border int) ([][]byte, error) {
	if len(lines) == 0 {
		return nil, &processor.Problem{Text: "the map has no rows"}
	}
	var grid [][]byte
	for y, line := range lines {
		var row []byte
		for x, letter := range line {
			tile, ok := legend[letter]
			if !ok {
				return nil, &processor.Problem{
					Line: y + 2, Column: x + 1, Length: 1,
					Text: fmt.Sprintf("letter %q is not in the legend", letter), Hint: "add it there, or fix the map",
				}
			}
			row = append(row, tile)
		}
		if y > 0 && len(row) != len(grid[0]) {
			return nil, &processor.Problem{Line: y + 2, Text: fmt.Sprintf("this row has %d tiles, the first one %d", len(row), len(grid[0]))}
		}
		grid = append(grid, row)
	}
	if border >= 0 {
		grid = frame(grid, byte(border))
	}
	return grid, nil
}

func frame(grid [][]byte, tile byte) [][]byte {
	edge := bytes.Repeat([]byte{tile}, len(grid[0])+2)
	out := [][]byte{edge}
	for _, row := range grid {
		out = append(out, append(append([]byte{tile}, row...), tile))
	}
	return append(out, edge)
}

func TestTilemap(t *testing.T) {
	files := map[string][]byte{
		"maps/cave.map":    []byte("cave.legend\n#.#\n"),
		"maps/cave.legend": []byte("#=1\n.=0\n"),
	}
	r := processortest.Run(t, Tilemap{}, processortest.Case{
		Files: files, Asset: "maps/cave.map", Settings: &TilemapSettings{Border: 9},
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := []byte{5, 0, 3, 0, 9, 9, 9, 9, 9, 9, 1, 0, 1, 9, 9, 9, 9, 9, 9}
	if got := r.Products[""].Data; !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := strings.Join(r.Observations, ", "); got != "file maps/cave.map, file maps/cave.legend" {
		t.Errorf("observed %s", got)
	}

	files["maps/cave.map"] = []byte("cave.legend\n#?#\n")
	r = processortest.Run(t, Tilemap{}, processortest.Case{Files: files, Asset: "maps/cave.map"})
	ps := processortest.Problems(r.Err)
	if len(ps) != 1 || ps[0].Line != 2 || ps[0].Column != 2 {
		t.Errorf("got %v", r.Err)
	}
}

// Poster draws a picture, and requests a texture of it with the settings of any picture of the project.
type Poster struct{}

func (Poster) Info() processor.Info {
	return processor.Info{Name: "poster", Version: 1, Summary: "A picture that is drawn", Products: []processor.ProductType{{Type: "texture", Extension: ".ktx2"}}}
}

func (Poster) Process(_ context.Context, job processor.Job) error {
	var drawn bytes.Buffer
	if err := png.Encode(&drawn, image.NewNRGBA(image.Rect(0, 0, 4, 4))); err != nil {
		return err
	}
	made, err := job.Request(processor.Request{
		Processor: "texture", Settings: map[string]any{"mips": false},
		Bytes: drawn.Bytes(), Extension: ".png",
	})
	if err != nil {
		return err // unchanged: it names the request that failed
	}
	return job.Adopt(made[0][0], processor.Output{Name: "poster"})
}

func TestPoster(t *testing.T) {
	r := processortest.Run(t, Poster{}, processortest.Case{
		Files: map[string][]byte{"a.poster": nil}, Asset: "a.poster", Processors: []processor.Processor{texture.New()},
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	made := r.Products["poster"]
	if made.Type != "texture" || made.Extension != ".ktx2" || !bytes.HasPrefix(made.Data, []byte("\xabKTX 20")) {
		t.Errorf("%+v", made.Output)
	}
	if got := strings.Join(r.Observations, ", "); got != "request texture, product of request " {
		t.Errorf("observed %q", got)
	}
}

// Graph draws a graph with Graphviz.
type Graph struct{}

func (Graph) Info() processor.Info {
	return processor.Info{Name: "graph", Version: 1, Summary: "A drawn graph", Products: []processor.ProductType{{Type: "picture", Extension: ".svg"}}}
}

func (Graph) Process(ctx context.Context, job processor.Job) error {
	drawn, err := job.Run(ctx, processor.Command{
		Args:   []string{"dot", "-Tsvg", "-o", "../out/graph.svg", job.Asset().Path},
		Inputs: []string{"graphs/icons/*.svg"},
	})
	if err != nil {
		return err // unchanged: it has the reason and the output of the program
	}
	return job.Write(processor.Output{Type: "picture", Extension: ".svg"}, drawn.Files["graph.svg"])
}

func TestGraph(t *testing.T) {
	r := processortest.Run(t, Graph{}, processortest.Case{
		Files: map[string][]byte{"graphs/a.dot": []byte("digraph {}"), "graphs/icons/i.svg": []byte("<svg/>")}, Asset: "graphs/a.dot",
		Programs: map[string]processortest.Program{
			"dot": func(c processor.Command) (processor.Result, error) {
				out := fmt.Appendf(nil, "%s with %d files", c.Files[c.Args[4]], len(c.Files))
				return processor.Result{Files: map[string][]byte{"graph.svg": out}}, nil
			},
		},
	})
	if r.Err != nil || string(r.Products[""].Data) != "digraph {} with 2 files" {
		t.Errorf("%v, %q", r.Err, r.Products[""].Data)
	}
	if r := processortest.Run(t, Graph{}, processortest.Case{Asset: "graphs/a.dot"}); r.Err == nil {
		t.Error("a program that is not there was run")
	}
}

// TestDocumentation compares the code in docs/processors.md with the code above.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/processors.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	checked := 0
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		if strings.HasPrefix(code, "// tools/kiln/main.go") {
			continue
		}
		if !strings.Contains(string(source), strings.TrimSpace(code)) {
			t.Errorf("docs/processors.md shows code that is not in example_test.go:\n%s", code)
		}
		checked++
	}
	if checked < 3 {
		t.Errorf("only %d pieces of code were checked", checked)
	}
}
