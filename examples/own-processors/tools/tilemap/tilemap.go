// Package tilemap is the tile map processor in Go. It is compiled into tools/kiln, and into a WebAssembly module by the
// folder guest.
package tilemap

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/png"
	"io/fs"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// New returns the processor.
func New() processor.Processor { return tilemap{} }

type tilemap struct{}

type settings struct {
	Border int `toml:"border" doc:"Tile that is laid around the map; -1 is none." min:"-1" max:"65535"`
}

// Info returns the description of the processor.
func (tilemap) Info() processor.Info {
	return processor.Info{
		Name: "tilemap", Version: 1, Summary: "A map of letters to a grid of tiles, in Go",
		Settings: &settings{Border: -1},
		Products: []processor.ProductType{{
			Type: "tilemap", Extension: ".tiles", Doc: "width, height, size of a tile, tiles in a row of the sheet, then each tile; all in 16 bits",
		}},
	}
}

//go:embed *.go
var source embed.FS

// Source returns the source of this package: an edit of it builds its assets again.
func (tilemap) Source() fs.FS { return source }

// Process reads the map, its tile set and the size of the sheet, and writes the grid.
func (tilemap) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	name, rows, _ := strings.Cut(string(text), "\n")
	s, err := readSheet(job, name)
	if err != nil {
		return err
	}
	grid, err := s.grid(strings.Split(strings.TrimSuffix(rows, "\n"), "\n"))
	if err != nil {
		return err
	}
	if border := processor.SettingsOf[settings](job).Border; border >= 0 {
		grid = frame(grid, uint16(border))
	}
	out := binary.LittleEndian.AppendUint16(nil, uint16(len(grid[0])))
	for _, n := range []int{len(grid), s.Tile, s.columns} {
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
	}
	for _, row := range grid {
		out, _ = binary.Append(out, binary.LittleEndian, row)
	}
	return job.Write(processor.Output{Type: "tilemap", Extension: ".tiles"}, out)
}

// sheet is a tile set and the size of its picture in tiles.
type sheet struct {
	Image   string
	Tile    int
	Letters map[string]int
	columns int
	number  int
}

func readSheet(job processor.Job, name string) (s sheet, err error) {
	text, err := job.ReadFile(name)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, &processor.Problem{Path: name, Text: err.Error()}
	}
	if s.Tile <= 0 {
		return s, &processor.Problem{Path: name, Text: "the tile set does not say how large a tile is"}
	}
	picture, err := job.ReadFile(s.Image)
	if err != nil {
		return s, err
	}
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil {
		return s, &processor.Problem{Path: s.Image, Text: err.Error()}
	}
	s.columns = size.Width / s.Tile
	s.number = s.columns * (size.Height / s.Tile)
	return s, nil
}

// grid returns the number of each letter's tile.
func (s sheet) grid(rows []string) (grid [][]uint16, err error) {
	if rows[0] == "" {
		return nil, &processor.Problem{Line: 1, Text: "the map has no rows"}
	}
	for y, row := range rows {
		wrong := func(x int, format string, args ...any) error {
			return &processor.Problem{Line: y + 2, Column: x, Length: min(x, 1), Text: fmt.Sprintf(format, args...)}
		}
		if len(row) != len(rows[0]) {
			return nil, wrong(0, "the row has %d tiles, the first one %d", len(row), len(rows[0]))
		}
		line := make([]uint16, len(row))
		for x := range row {
			switch tile, ok := s.Letters[row[x:x+1]]; {
			case !ok:
				return nil, wrong(x+1, "letter %q is not in the tile set", row[x:x+1])
			case tile >= s.number:
				return nil, wrong(x+1, "letter %q is tile %d, and the sheet has %d", row[x:x+1], tile, s.number)
			default:
				line[x] = uint16(tile)
			}
		}
		grid = append(grid, line)
	}
	return grid, nil
}

// frame surrounds the grid with a tile.
func frame(grid [][]uint16, tile uint16) [][]uint16 {
	edge := make([]uint16, len(grid[0])+2)
	for i := range edge {
		edge[i] = tile
	}
	framed := [][]uint16{edge}
	for _, row := range grid {
		framed = append(framed, append(append([]uint16{tile}, row...), tile))
	}
	return append(framed, edge)
}
