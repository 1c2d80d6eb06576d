//go:build wasip1

// Command voxel is a processor in WebAssembly. It turns a height map drawn with digits into columns of blocks.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
	"github.com/kiln-pipeline/kiln/processor/wasmguest"
)

var _ = wasmguest.Serve(Voxel{})

func main() {}

// Voxel turns rows of digits into the heights of columns.
type Voxel struct{}

type settings struct {
	Scale int `toml:"scale" doc:"How many blocks a step is high." min:"1" max:"25"`
}

// Info returns the description of the processor.
func (Voxel) Info() processor.Info {
	return processor.Info{
		Name: "voxel", Version: 1, Summary: "A map of heights to columns of blocks",
		Extensions: []string{".heights"},
		Settings:   &settings{Scale: 1},
		Products:   []processor.ProductType{{Type: "voxel", Extension: ".vox", Doc: "width and depth as 16 bits, then a byte a column"}},
	}
}

// Process reads the map and writes the columns.
func (Voxel) Process(_ context.Context, job processor.Job) error {
	text, err := job.ReadFile(job.Asset().Path)
	if err != nil {
		return err
	}
	scale := byte(processor.SettingsOf[settings](job).Scale)
	rows := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	out := binary.LittleEndian.AppendUint16(nil, uint16(len(rows[0])))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(rows)))
	for y, row := range rows {
		if len(row) != len(rows[0]) {
			return &processor.Problem{Line: y + 1, Text: fmt.Sprintf("this row has %d columns, the first one %d", len(row), len(rows[0]))}
		}
		for x, c := range []byte(row) {
			if c < '0' || c > '9' {
				return &processor.Problem{Line: y + 1, Column: x + 1, Length: 1, Text: fmt.Sprintf("%q is not a height", c), Hint: "heights are digits"}
			}
			out = append(out, (c-'0')*scale)
		}
	}
	return job.Write(processor.Output{Type: "voxel", Extension: ".vox"}, out)
}
