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
)

var update = flag.Bool("update", false, "write the goldens")

func example() *Table {
	return &Table{
		Pages: []Page{{"ui.0.ktx2", 0x340ca71c, 64, 32}, {"ui.1.ktx2", 0x330ca589, 16, 16}},
		Frames: []Frame{
			{Name: "button/down", Page: 0, X: 2, Y: 3, W: 30, H: 12, OffsetX: 1, OffsetY: 0, SourceW: 32, SourceH: 12},
			{Name: "button/up", Page: 0, X: 34, Y: 3, W: 30, H: 12, OffsetX: 0, OffsetY: 2, SourceW: 32, SourceH: 16},
			{Name: "größe <&>", Page: 1, X: 0, Y: 0, W: 1, H: 1, OffsetX: 0, OffsetY: 0, SourceW: 500, SourceH: 300},
		},
	}
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

// annotate writes the bytes of a table with what they are.
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
		take(2, "  reserved")
	}
	for _, n := range lengths {
		take(n, fmt.Sprintf("%q", b[:n]))
	}
	fmt.Fprintf(&out, "%d bytes more\n", len(b))
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	b, err := Write(example())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/example.atlas.txt", annotate(b))
	got, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(example(), got); d != "" {
		t.Errorf("read what was written (-want +got):\n%s", d)
	}
	j, err := WriteJSON(example())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/example.atlas.json", j)
	if !json.Valid(j) {
		t.Error("not JSON")
	}
}

// The file as version 1 wrote it stays readable.
func TestReadsKeptFile(t *testing.T) {
	const file = "testdata/v1.atlas"
	if _, err := os.Stat(file); *update && os.IsNotExist(err) {
		b, _ := Write(example())
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
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
		{"not a frame table", func(b []byte) []byte { return b[:headerSize-1] }},
		{"not a frame table", func(b []byte) []byte { b[0] = 'k'; return b }},
		{"version 2", func(b []byte) []byte { b[4] = 2; return b }},
		{"reserved bytes of the header", func(b []byte) []byte { b[6] = 1; return b }},
		{"4294967295 frames, more than", func(b []byte) []byte { le.PutUint32(b[12:], 1<<32-1); return b }},
		{"its header says", func(b []byte) []byte { return b[:len(b)-1] }},
		{"its header says", func(b []byte) []byte { return append(b, 0) }},
		{"its header says", func(b []byte) []byte { le.PutUint32(b[12:], MaxFrames); return b }},
		{"page 0: flags or reserved", func(b []byte) []byte { b[headerSize+14] = 1; return b }},
		{"page 0: name of 9 bytes at 1", func(b []byte) []byte { b[headerSize+4] = 1; return b }},
		{"page 0: size 0 x 32", func(b []byte) []byte { b[headerSize+10] = 0; return b }},
		{"frame 0: flags or reserved", func(b []byte) []byte { b[frame0+24] = 1; return b }},
		{"frame 0: flags or reserved", func(b []byte) []byte { b[frame0+26] = 1; return b }},
		{"frame 0: name of 65291 bytes", func(b []byte) []byte { b[frame0+5] = 0xff; return b }},
		{"frame 0: \"button/down\" is on page 3", func(b []byte) []byte { b[frame0+6] = 3; return b }},
		{"strings have 1 bytes that nothing names", func(b []byte) []byte { b[16]++; return append(b, 'x') }},
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
	for _, t := range []*Table{{}, example()} {
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
		if !bytes.Equal(again, data) {
			t.Fatalf("two encodings of one table:\n%x\n%x", data, again)
		}
		if _, err := WriteJSON(table); err != nil {
			t.Fatal(err)
		}
	})
}
