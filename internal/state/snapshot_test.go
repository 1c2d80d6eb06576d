package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/source"
)

func stat(n int64) source.Stat {
	return source.Stat{Size: n, MTime: -n, CTime: 1<<62 + n, Inode: 1<<63 + uint64(n)}
}

func snapshot() *Snapshot {
	h := func(s string) digest.Hash { return digest.Of([]byte(s)) }
	return &Snapshot{
		Signature: h("s"), Project: h("p"), Build: 1 << 40, Mirrored: 3, Whole: true,
		Sources: &source.Table{
			Roots: []string{"/a", "/b"},
			Folders: []source.Folder{
				{Root: 0, Path: "", Stat: stat(1), First: 0, Count: 2}, {Root: 0, Path: "sub", Racy: true, Stat: stat(2), First: 2},
				{Root: 1, Path: "", Stat: stat(3), First: 2, Count: 1},
			},
			Files: []source.File{
				{Name: "x.png", Stat: stat(4), Hash: h("x")}, {Name: "ÿ", Trouble: source.Loop, Racy: true, Stat: stat(5)}, {Name: "z", Stat: stat(6)},
			},
		},
		Outputs:   []Output{{File: "pc/x", Stat: stat(7), Hash: h("o")}, {File: "web/x", Stat: stat(8)}},
		Tools:     []Tool{{Name: "cp", Path: "/bin/cp", Stat: stat(9), Hash: h("t")}, {Name: "none"}},
		Variables: []Variable{{"HOME", h("v")}, {"NONE", digest.Hash{}}},
		Tasks:     []TaskState{{key("k"), 1 << 60}, {key("l"), 2}},
		Messages:  []byte("[{}]"),
		Totals:    Totals{Assets: 1, Jobs: 2, Failed: 3, Products: 4, Bytes: 1 << 50},
	}
}

var sameSnapshot = cmp.Options{cmpopts.IgnoreUnexported(source.Table{}), cmpopts.EquateEmpty()}

func TestSnapshotRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if s, why, err := ReadSnapshot(path); s != nil || why != "" || err != nil {
		t.Fatal("there is none, but:", s, why, err)
	}
	for _, want := range []*Snapshot{snapshot(), {Sources: &source.Table{}}, snapshot()} {
		if err := WriteSnapshot(path, want); err != nil {
			t.Fatal(err)
		}
		got, why, err := ReadSnapshot(path)
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		if diff := cmp.Diff(want, got, sameSnapshot); diff != "" {
			t.Error(diff)
		}
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A field that is new in Snapshot, or in what it holds, has to be written too.
func TestSnapshotFieldsAreFilled(t *testing.T) {
	s := snapshot()
	for name, v := range map[string]any{"snapshot": *s, "totals": s.Totals, "tool": s.Tools[0], "output": s.Outputs[0], "variable": s.Variables[0], "task": s.Tasks[0],
		"file": s.Sources.Files[1], "stat": s.Outputs[0].Stat} {
		if empty := emptyFields(v); len(empty) > 0 && name != "file" || name == "file" && !slices.Equal(empty, []string{"Hash"}) {
			t.Errorf("%s: the round trip says nothing about %q", name, empty)
		}
	}
	tr := everything()
	tr.ID = 1
	if empty := emptyFields(*tr); len(empty) > 0 {
		t.Errorf("trace: the round trip says nothing about %q", empty)
	}
}

func TestSnapshotDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := WriteSnapshot(path, snapshot()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, damaged []byte) {
		t.Helper()
		if err := os.WriteFile(path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		if s, why, err := ReadSnapshot(path); s != nil || why == "" || strings.Contains(why, "\n") || err != nil {
			t.Fatalf("%s: %v, %q, %v", what, s, why, err)
		}
	}
	for i := range data {
		check(fmt.Sprintf("cut at %d", i), data[:i])
		for bit := range 8 {
			flipped := slices.Clone(data)
			flipped[i] ^= 1 << bit
			if s, why := parseSnapshot(flipped); s != nil || why == "" {
				t.Fatalf("flip of bit %d at %d: %v, %q", bit, i, s, why)
			}
		}
	}
	check("another version", append(header(snapshotMagic, SnapshotVersion+1), data[headerSize:]...))
	if _, why, _ := ReadSnapshot(path); !strings.Contains(why, fmt.Sprintf("version %d", SnapshotVersion+1)) {
		t.Errorf("says %q", why)
	}
	check("a log of traces", header(tracesMagic, TracesVersion))
}

func TestSnapshotCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	if err := WriteSnapshot(path, snapshot()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".tmp", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteSnapshot(path, &Snapshot{Sources: &source.Table{}}); err == nil {
		t.Error("no error")
	}
	got, why, err := ReadSnapshot(path)
	if diff := cmp.Diff(snapshot(), got, sameSnapshot); diff != "" || why != "" || err != nil {
		t.Error(diff, why, err)
	}
}

// framed gives a body the head and checksum of a snapshot.
func framed(body []byte) []byte {
	b := header(snapshotMagic, SnapshotVersion)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

// A root that is not there, also one whose number is negative once it is an int.
func TestSnapshotRootOutOfRange(t *testing.T) {
	for _, root := range []uint64{1, 1 << 40, 1<<64 - 1} {
		var e encoder
		e.hash(&digest.Hash{})
		e.hash(&digest.Hash{})
		e.uint(1)
		e.uint(1)
		e.bool(true)
		e.uint(1)
		e.str("/a")
		e.uint(0)
		e.uint(1)
		e.uint(root)
		e.buf = append(e.buf, make([]byte, 500)...)
		if s, why := parseSnapshot(framed(e.buf)); s != nil || why == "" {
			t.Errorf("root %d: %v", root, s.Sources.Folders)
		}
	}
}

// FuzzSnapshot reads bytes as a snapshot, and as the body of one whose checksum is right.
func FuzzSnapshot(f *testing.F) {
	for _, s := range []*Snapshot{snapshot(), {Sources: &source.Table{}}} {
		var e encoder
		encodeSnapshot(&e, s)
		f.Add(e.buf)
		f.Add(framed(e.buf))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, in := range [][]byte{data, framed(data)} {
			s, why := parseSnapshot(in)
			if (s == nil) == (why == "") {
				t.Fatalf("%v, %q", s, why)
			}
			if s == nil {
				continue
			}
			for _, fo := range s.Sources.Folders {
				if fo.Root < 0 || fo.Root >= len(s.Sources.Roots) || fo.First < 0 || fo.Count < 0 || fo.First+fo.Count > len(s.Sources.Files) {
					t.Fatalf("folder %+v", fo)
				}
			}
			for _, p := range s.Sources.Paths() {
				s.Sources.Find(p)
			}
			memory := 64*len(s.Sources.Roots) + 128*cap(s.Sources.Files) + 128*len(s.Sources.Folders) + 128*len(s.Outputs) + 128*len(s.Tools)
			if memory > 64*len(in) {
				t.Fatalf("%d bytes for %d", memory, len(in))
			}
			var e encoder
			encodeSnapshot(&e, s)
			again, why := parseSnapshot(framed(e.buf))
			if why != "" {
				t.Fatal(why)
			}
			if diff := cmp.Diff(s, again, sameSnapshot); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func taskStates(n int) []TaskState {
	ts := make([]TaskState, n)
	for i := range ts {
		ts[i] = TaskState{engine.Key(digest.Of(binary.AppendUvarint(nil, uint64(i)))), uint64(i)}
	}
	return ts
}
