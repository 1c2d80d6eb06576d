package judge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/delivery/parcel"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// Order is a test case for the load order.
type Order struct {
	Name   string
	Layers []string // each "1:2,3;4 2 3": resource 1 requires 2 and 3, and has 4 as an optional need; later layers are on top
	Ask    string   // ids to load, in order; "?" before one includes optional needs
	Want   string   // a line for each: " 2@0 1@0", the ids with the number of the layer
}

// Orders returns the cases. The wanted orders follow from "Load order" in docs/formats/parcel.md.
func Orders() []Order {
	chain := func(n int, mark string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d:%s%d ", i, mark, i+1)
		}
		return b.String() + fmt.Sprint(n)
	}
	var whole strings.Builder
	for i := 1000; i >= 0; i-- {
		fmt.Fprintf(&whole, " %d@0", i)
	}
	return []Order{
		{"required ones come first", []string{"1:3,2 2:3 3"}, "1", " 3@0 2@0 1@0"},
		{"known ones are not loaded again", []string{"1:3,2 2:3 3 4:2"}, "2 4 4", " 3@0 2@0\n 4@0\n"},
		{"a layer lies over another", []string{"1:2 2 3", "2:3"}, "1", " 3@0 2@1 1@0"},
		{"missing", []string{"1:2 2:9 3"}, "1 3", " error missing\n 3@0"},
		{"a circle", []string{"1:2 2:3 3:1 4"}, "1 4", " error circle\n 4@0"},
		{"itself", []string{"1:1"}, "1", " error circle"},
		{"optional ones are asked for", []string{"1:2;3,9 2 3:4 4"}, "1 ?1 ?3", " 2@0 1@0\n\n 4@0 3@0"},
		{"optional ones come before, too", []string{"1:2;3,9 2 3:4;5 4 5"}, "?1", " 2@0 4@0 5@0 3@0 1@0"},
		{"optional ones after required ones", []string{"1:3;2 2 3"}, "?1", " 3@0 2@0 1@0"},
		{"an optional one that requires what is under way", []string{"1:2 2:;3 3:1"}, "?1 ?3", " 2@0 1@0\n 3@0"},
		{"an optional one that is under way", []string{"1:;2 2:;1"}, "?1", " 2@0 1@0"},
		{"optional ones in a circle, begun elsewhere", []string{"1:;2 2:;1"}, "?2", " 1@0 2@0"},
		{"an optional one that is not whole", []string{"1:;2,3 2:4,9 3 4"}, "?1 4", " 3@0 1@0\n 4@0"},
		{"what a failed attempt led to comes by another way", []string{"1:;2,4 2:4,9 4:;5 5"}, "?1", " 5@0 4@0 1@0"},
		{"a chain of 1000", []string{chain(1000, "")}, "0", whole.String()},
		{"a chain of 1001", []string{chain(1001, "")}, "0", " error circle"},
		{"an optional chain of 1001", []string{chain(1001, ";")}, "?0", whole.String()},
		{"attempts without end", []string{attempts(18)}, "?1", " error circle"},
	}
}

// attempts returns resources in n levels. Each has two optional needs, and each of these requires the resource of the
// next level and then resource 1, which is being loaded. So every attempt fails at its end, and each level doubles the
// attempts.
func attempts(n int) string {
	var b strings.Builder
	for i := range n {
		x := 1 + 3*i
		fmt.Fprintf(&b, "%d:;%d,%d %d:%d,1 %d:%d,1 ", x, x+1, x+2, x+1, x+3, x+2, x+3)
	}
	return b.String() + fmt.Sprint(1+3*n)
}

// Arguments writes the layers to a folder and returns the arguments for a reader's program.
func (o *Order) Arguments(dir string) ([]string, error) {
	args := []string{"order"}
	for i, layer := range o.Layers {
		var rs []parcel.Resource
		for _, text := range strings.Fields(layer) {
			own, needs, _ := strings.Cut(text, ":")
			required, optional, _ := strings.Cut(needs, ";")
			id := numbers(own)[0]
			rs = append(rs, Resource(id, fmt.Sprint("r/", id), "data", text, shifted(required, away), shifted(optional, away)))
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.parcel", i))
		if err := parcel.Write(path, rs, parcel.Options{}); err != nil {
			return nil, err
		}
		if err := bringNear(path); err != nil {
			return nil, err
		}
		args = append(args, path)
	}
	return append(append(args, "--"), strings.Fields(o.Ask)...), nil
}

// away is added to needs while a parcel is written, because the writer refuses circles.
const away = 1 << 20

func shifted(list string, by uint32) []uint32 {
	ns := numbers(list)
	for i := range ns {
		ns[i] += by
	}
	return ns
}

// bringNear subtracts away from the needs in a parcel.
func bringNear(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	h, err := kilnrt.ReadHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	s := h.Sections[kilnrt.SectionNeeds]
	for at := s.Offset; at < s.Offset+s.Size; at += 4 {
		binary.LittleEndian.PutUint32(b[at:], binary.LittleEndian.Uint32(b[at:])-away)
	}
	mend(b, h.Slot*kilnrt.SlotPitch)
	return os.WriteFile(path, b, 0o600)
}

func numbers(list string) []uint32 {
	var ns []uint32
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		var n uint32
		fmt.Sscan(text, &n)
		ns = append(ns, n)
	}
	return ns
}
