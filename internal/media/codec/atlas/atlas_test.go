package atlas

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the goldens")

func example() *Table {
	return &Table{
		Scale: 1000,
		Pages: []Page{{"ui.0.ktx2", 0x340ca71c, 64, 32}, {"ui.1.ktx2", 0x330ca589, 16, 16}},
		Frames: []Frame{
			{Name: "button/down", Page: 0, X: 2, Y: 3, W: 30, H: 12, OffsetX: 1, OffsetY: 0, SourceW: 32, SourceH: 12},
			{Name: "button/up", Page: 0, X: 34, Y: 3, W: 30, H: 12, OffsetX: 0, OffsetY: 2, SourceW: 32, SourceH: 16},
			{Name: "größe <&>", Page: 1, X: 0, Y: 0, W: 1, H: 1, OffsetX: 0, OffsetY: 0, SourceW: 500, SourceH: 300},
		},
	}
}

// full returns a table that uses every field.
func full() *Table {
	t := example()
	t.Scale = 500
	t.Frames = append(t.Frames[:2:2], []Frame{
		{Name: "frame", X: 0, Y: 20, W: 8, H: 9, SourceW: 8, SourceH: 9, Patch: &Patch{Split: Sides{3, 2, 4, 1}, Pad: &Sides{-1, -1, 2, 2}}},
		{Name: "panel", X: 9, Y: 16, W: 10, H: 16, OffsetX: 1, OffsetY: 2, SourceW: 12, SourceH: 20, Patch: &Patch{Split: Sides{0, 0, 5, 6}}},
		{Name: "run_00", X: 20, Y: 16, W: 14, H: 10, OffsetX: 2, SourceW: 16, SourceH: 16, Turn: Right, Number: 1},
		{Name: "run_01", X: 34, Y: 16, W: 16, H: 12, OffsetY: 4, SourceW: 16, SourceH: 16, Number: 2},
		{Name: "run_10", Page: 1, X: 0, Y: 0, W: 12, H: 16, SourceW: 16, SourceH: 16, Turn: Right, Number: 11},
	}...)
	t.Animations = []Animation{{"run", []int{4, 5, 6}}}
	return t
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// annotate lists the bytes of a table with their meaning.
func annotate(b []byte) []byte {
	var out bytes.Buffer
	take := func(n int, what string) []byte {
		var hex []string
		for _, c := range b[:n] {
			hex = append(hex, fmt.Sprintf("%02x", c))
		}
		fmt.Fprintf(&out, "%-36s %s\n", strings.Join(hex, " "), what)
		v := b[:n]
		b = b[n:]
		return v
	}
	take(4, "magic KATL")
	take(2, "version")
	take(2, "reserved")
	pages := le.Uint32(take(4, "pages"))
	frames := le.Uint32(take(4, "frames"))
	take(4, "bytes of strings")
	patches := le.Uint32(take(4, "patches"))
	animations := le.Uint32(take(4, "animations"))
	steps := le.Uint32(take(4, "steps"))
	take(4, "scale")
	var lengths []int
	for i := range pages {
		take(4, fmt.Sprintf("page %d: sub id", i))
		take(4, "  file: offset")
		lengths = append(lengths, int(le.Uint16(take(2, "  file: bytes"))))
		take(4, "  width, height")
		take(2, "  reserved")
	}
	for i := range frames {
		take(4, fmt.Sprintf("frame %d: name: offset", i))
		lengths = append(lengths, int(le.Uint16(take(2, "  name: bytes"))))
		take(2, "  page")
		take(8, "  x, y, w, h")
		take(4, "  offset x, offset y")
		take(4, "  source w, source h")
		take(2, "  flags")
		take(2, "  number + 1")
	}
	for i := range patches {
		take(4, fmt.Sprintf("patch %d: frame", i))
		take(8, "  split: left, right, top, bottom")
		take(8, "  pad: the same")
	}
	for i := range animations {
		take(4, fmt.Sprintf("animation %d: name: offset", i))
		lengths = append(lengths, int(le.Uint16(take(2, "  name: bytes"))))
		take(2, "  reserved")
		take(4, "  frames")
	}
	for i := range steps {
		take(4, fmt.Sprintf("step %d: frame", i))
	}
	for _, n := range lengths {
		take(n, fmt.Sprintf("%q", b[:n]))
	}
	fmt.Fprintf(&out, "%d bytes more\n", len(b))
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for name, table := range map[string]*Table{"example": example(), "full": full()} {
		b, err := Write(table)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+name+".atlas.txt", annotate(b))
		got, err := Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(table, got); d != "" {
			t.Errorf("read what was written (-want +got):\n%s", d)
		}
		j, err := WriteJSON(table)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+name+".atlas.json", j)
		if got, err = ReadJSON(j); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(table, got); d != "" {
			t.Errorf("read as JSON (-want +got):\n%s", d)
		}
	}
}

func TestReadJSONRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{`, "unexpected end"},
		{`{"version":1}`, "version 1"},
		{`{"version":2}`, "scale of 0"},
		{`{"version":2,"scale":1,"frames":{"a":{"turn":"up"}}}`, `"up" is not a direction`},
		{`{"version":2,"scale":1,"frames":{"a":{}}}`, "is on page 0 of 0"},
		{`{"version":2,"scale":1,"animations":{"a":["b"]}}`, `frame "b", which does not exist`},
	} {
		if got, err := ReadJSON([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.text, got, err)
		}
	}
}

func FuzzReadJSON(f *testing.F) {
	j, err := WriteJSON(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(j)
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ReadJSON(data)
		if err != nil {
			return
		}
		b, err := Write(table)
		if err != nil {
			t.Fatalf("read what cannot be written: %v", err)
		}
		if again, err := Read(b); err != nil || !cmp.Equal(table, again, cmpopts.EquateEmpty()) {
			t.Fatalf("%v: %s", err, cmp.Diff(table, again))
		}
	})
}

func TestGoldenOfPackers(t *testing.T) {
	for name, form := range map[string]PackerJSON{"hash": Hash, "array": Array} {
		for page := range 2 {
			j, err := WritePacker(full(), page, form, []string{"ui.json", "ui-1.json"})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, fmt.Sprintf("testdata/full.%s.%d.json", name, page), j)
			if !json.Valid(j) {
				t.Error("not JSON")
			}
		}
	}
	if _, err := WritePacker(full(), 2, Hash, nil); err == nil {
		t.Error("a page that is not there was written")
	}
	left := full()
	left.Frames[4].Turn, left.Frames[6].Turn = Left, Left
	if _, err := WritePacker(left, 0, Hash, nil); err == nil || !strings.Contains(err.Error(), "counter-clockwise") {
		t.Errorf("%v", err)
	}
}

func TestLibGDX(t *testing.T) {
	o := LibGDXOptions{Format: "RGBA8888", MinFilter: "Nearest", MagFilter: "Linear", Repeat: "none"}
	left := full()
	left.Frames[4].Turn, left.Frames[6].Turn = Left, Left
	b, err := WriteLibGDX(left, o)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/full.libgdx.atlas", b)
	got, err := ReadLibGDX(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Pages) != 2 || got.Pages[1] != (Page{File: "ui.1.ktx2", Width: 16, Height: 16}) || len(got.Regions) != len(left.Frames) {
		t.Fatalf("%+v", got)
	}
	// Offsets count from the bottom: of 16 pixels 10 remain and 0 were removed at the top, so 6 at the bottom.
	want := Region{Name: "run", Rotate: true, XY: [2]int{20, 16}, Size: [2]int{14, 10}, Orig: [2]int{16, 16}, Offset: [2]int{2, 6}, Index: 0}
	if d := cmp.Diff(want, got.Regions[4]); d != "" {
		t.Error(d)
	}
	want = Region{Name: "frame", XY: [2]int{0, 20}, Size: [2]int{8, 9}, Orig: [2]int{8, 9}, Index: -1, Split: []int{3, 2, 4, 1}, Pad: []int{-1, -1, 2, 2}}
	if d := cmp.Diff(want, got.Regions[2]); d != "" {
		t.Error(d)
	}
	if _, err := WriteLibGDX(full(), o); err == nil || !strings.Contains(err.Error(), "turned clockwise") {
		t.Errorf("%v", err)
	}
	left.Frames[6].Name = "run_1:0"
	if _, err := WriteLibGDX(left, o); err != nil {
		t.Errorf("the name of an animation stands for its frames': %v", err)
	}
	left.Animations = nil
	if _, err := WriteLibGDX(left, o); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("%v", err)
	}
}

func TestReadLibGDX(t *testing.T) {
	// The newer form, without spaces, and with unknown lines.
	got, err := ReadLibGDX([]byte("a.png\r\nsize:64,32\r\npma:true\nhero\nbounds:1,2,30,20\noffsets:3,4,40,50\nrotate:90\nfoo:bar\n\nb.png\nx\nindex:7\nbounds:0,0,1,1\n"))
	want := &LibGDX{
		Pages: []Page{{File: "a.png", Width: 64, Height: 32}, {File: "b.png"}},
		Regions: []Region{
			{Name: "hero", XY: [2]int{1, 2}, Size: [2]int{30, 20}, Offset: [2]int{3, 4}, Orig: [2]int{40, 50}, Rotate: true, Index: -1},
			{Page: 1, Name: "x", Size: [2]int{1, 1}, Orig: [2]int{1, 1}, Index: 7},
		},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, c := range []struct{ text, want string }{
		{"size: 1,2\n", `line 1: "size: 1,2" stands where the name of a page should`},
		{"a.png\nsize: 1\n", `line 2: "1" is not 2 numbers`},
		{"a.png\nx\n  xy: 1, y\n", `line 3: xy: "y" is not a number`},
		{"a.png\nx\n  split: 99999999999, 0,0,0\n", "is not a number"},
	} {
		if _, err := ReadLibGDX([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

func FuzzReadLibGDX(f *testing.F) {
	for _, file := range []string{"testdata/full.libgdx.atlas"} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("a.png\nx\nbounds:1,2,3,4\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadLibGDX(data)
		if err != nil {
			return
		}
		for _, r := range a.Regions {
			if r.Page < 0 || r.Page >= len(a.Pages) {
				t.Fatalf("%+v is on page %d of %d", r, r.Page, len(a.Pages))
			}
		}
	})
}

// A file of version 1 remains readable.
func TestReadsKeptFile(t *testing.T) {
	b, err := os.ReadFile("testdata/v1.atlas")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(example(), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b[20+2*pageSize+24] = 1 // version 1 had no flags
	if _, err := Read(b); err == nil {
		t.Error("a flag in version 1 was taken")
	}
}

func TestEmptyTable(t *testing.T) {
	b, err := Write(&Table{})
	if err != nil || len(b) != headerSize {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if got, err := Read(b); err != nil || len(got.Pages)+len(got.Frames) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	j, err := WriteJSON(&Table{})
	if err != nil || !json.Valid(j) {
		t.Errorf("%s, %v", j, err)
	}
}

func TestFind(t *testing.T) {
	table := example()
	for _, f := range table.Frames {
		if got, ok := table.Find(f.Name); !ok || got != f {
			t.Errorf("Find(%q) = %v, %t", f.Name, got, ok)
		}
	}
	for _, name := range []string{"", "button", "zzz"} {
		if got, ok := table.Find(name); ok {
			t.Errorf("Find(%q) = %v", name, got)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		damage func(*Table)
	}{
		{"more than 4096", func(t *Table) { t.Pages = make([]Page, MaxPages+1) }},
		{"more than 1048576", func(t *Table) { t.Frames = make([]Frame, MaxFrames+1) }},
		{"page 1: file is empty", func(t *Table) { t.Pages[1].File = "" }},
		{"page 0: size 0 x 32", func(t *Table) { t.Pages[0].Width = 0 }},
		{"page 0: size 64 x 65536", func(t *Table) { t.Pages[0].Height = 65536 }},
		{"frame 0: name is empty", func(t *Table) { t.Frames[0].Name = "" }},
		{"frame 0: name has 65536 bytes", func(t *Table) { t.Frames[0].Name = strings.Repeat("x", 65536) }},
		{"not valid UTF-8", func(t *Table) { t.Frames[0].Name = "a\xff" }},
		{`name "button/down" does not come after "button/down"`, func(t *Table) { t.Frames[1].Name = "button/down" }},
		{"is on page 2 of 2", func(t *Table) { t.Frames[2].Page = 2 }},
		{"is on page -1 of 2", func(t *Table) { t.Frames[2].Page = -1 }},
		{"30 x 12 at 35,3 is not inside its page of 64 x 32", func(t *Table) { t.Frames[1].X = 35 }},
		{"not inside its page", func(t *Table) { t.Frames[1].Y = -1 }},
		{"not inside its page", func(t *Table) { t.Frames[1].W = 0 }},
		{"30 x 12 at 3,2 is not inside its image of 32 x 16", func(t *Table) { t.Frames[1].OffsetX = 3 }},
		{"not inside its image", func(t *Table) { t.Frames[1].SourceW = 1 << 20 }},
		{"12 x 30 at 2,3", func(t *Table) { t.Frames[0].Turn = Right }},
		{"turned in way 3", func(t *Table) { t.Frames[0].Turn = 3 }},
		{"has number 65535", func(t *Table) { t.Frames[0].Number = 65536 }},
		{"scale of -1", func(t *Table) { t.Scale = -1 }},
		{"split [0 33 0 0]", func(t *Table) { t.Frames[0].Patch = &Patch{Split: Sides{0, 33}} }},
		{"split [-1 -1 0 0]", func(t *Table) { t.Frames[0].Patch = &Patch{Split: Sides{-1, -1}} }},
		{"pad [-1 0 0 0]", func(t *Table) { t.Frames[0].Patch = &Patch{Pad: &Sides{-1}} }},
		{"animation 0: name is empty", func(t *Table) { t.Animations = []Animation{{"", []int{0}}} }},
		{`"a" has 0 frames`, func(t *Table) { t.Animations = []Animation{{"a", nil}} }},
		{`"a" has frame 3 of 3`, func(t *Table) { t.Animations = []Animation{{"a", []int{3}}} }},
		{`"a" has 4 frames`, func(t *Table) { t.Animations = []Animation{{"a", []int{0, 1, 2, 0}}} }},
		{`order of its numbers`, func(t *Table) { t.Animations = []Animation{{"a", []int{0, 1}}} }},
		{`name "a" does not come after "a"`, func(t *Table) { t.Animations = []Animation{{"a", []int{0}}, {"a", []int{1}}} }},
	} {
		table := example()
		c.damage(table)
		for name, write := range map[string]func(*Table) ([]byte, error){"Write": Write, "WriteJSON": WriteJSON} {
			if b, err := write(table); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %d bytes, %v; want %q", name, len(b), err, c.want)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	frame0 := headerSize + 2*pageSize
	for _, c := range []struct {
		want   string
		damage func([]byte) []byte
	}{
		{"not a frame table", func(b []byte) []byte { return nil }},
		{"not a frame table", func(b []byte) []byte { return b[:headerSizeV1-1] }},
		{"not a frame table", func(b []byte) []byte { b[0] = 'k'; return b }},
		{"version 3", func(b []byte) []byte { b[4] = 3; return b }},
		{"less than its header", func(b []byte) []byte { return b[:headerSize-1] }},
		{"or more patches", func(b []byte) []byte { b[20] = 4; return b }},
		{"scale is 0", func(b []byte) []byte { le.PutUint32(b[32:], 0); return b }},
		{"reserved bytes of the header", func(b []byte) []byte { b[6] = 1; return b }},
		{"4294967295 frames, more than", func(b []byte) []byte { le.PutUint32(b[12:], 1<<32-1); return b }},
		{"its header says", func(b []byte) []byte { return b[:len(b)-1] }},
		{"its header says", func(b []byte) []byte { return append(b, 0) }},
		{"its header says", func(b []byte) []byte { le.PutUint32(b[12:], MaxFrames); return b }},
		{"page 0: flags or reserved", func(b []byte) []byte { b[headerSize+14] = 1; return b }},
		{"page 0: name of 9 bytes at 1", func(b []byte) []byte { b[headerSize+4] = 1; return b }},
		{"page 0: size 0 x 32", func(b []byte) []byte { b[headerSize+10] = 0; return b }},
		{"frame 0: flags or reserved", func(b []byte) []byte { b[frame0+24] = 3; return b }},
		{"frame 0: flags or reserved", func(b []byte) []byte { b[frame0+24] = 16; return b }},
		{"frame 0: flags or reserved", func(b []byte) []byte { b[frame0+24] = 8; return b }},
		{"1 frames have patches, the header says 0", func(b []byte) []byte { b[frame0+24] = 4; return b }},
		{"frame 0: name of 65291 bytes", func(b []byte) []byte { b[frame0+5] = 0xff; return b }},
		{"frame 0: \"button/down\" is on page 3", func(b []byte) []byte { b[frame0+6] = 3; return b }},
		{"strings have 1 unused bytes", func(b []byte) []byte { b[16]++; return append(b, 'x') }},
	} {
		b, err := Write(example())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Read(c.damage(b)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v; want %q", got, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, t := range []*Table{{}, example(), full()} {
		b, err := Write(t)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Read(data)
		if err != nil {
			return
		}
		again, err := Write(table)
		if err != nil {
			t.Fatalf("read what cannot be written: %v", err)
		}
		if data[4] == Version && !bytes.Equal(again, data) {
			t.Fatalf("two encodings of one table:\n%x\n%x", data, again)
		}
		if _, err := WriteJSON(table); err != nil {
			t.Fatal(err)
		}
	})
}
