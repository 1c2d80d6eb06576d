package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/varint"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

func stat(n int64) source.Stat {
	return source.Stat{Size: n, MTime: -n, CTime: 1<<62 + n, Inode: 1<<63 + uint64(n)}
}

func snapshot() *Image {
	h := func(s string) digest.Hash { return digest.Of([]byte(s)) }
	return &Image{
		Head: Head{
			Signature: h("s"), Project: h("p"), Build: 1 << 40, Mirrored: 3, Journal: 4, Whole: true, Plain: true, Pinned: true,
			Log:       Mark{1 << 60, 1 << 40, 5},
			Tools:     []Tool{{Name: "cp", Path: "/bin/cp", Stat: stat(9), Hash: h("t")}, {Name: "none"}},
			Variables: []Variable{{"HOME", h("v")}, {"NONE", digest.Hash{}}},
			Shipped:   []Shipped{{"build/pc/main.parcel", true, stat(11)}, {File: "kiln.ids"}},
			Messages:  []byte("[{}]"),
			Notices:   []byte("{}"),
			Totals:    Totals{Assets: 1, Jobs: 2, Requests: 5, Failed: 3, Products: 4, Bytes: 1 << 50},
		},
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
		Outputs: []Output{{File: "odd", Stat: stat(10)}, {File: "pc/x", Stat: stat(7), Hash: h("o")}, {File: "pc/x.d/y", Stat: stat(7), Hash: h("y")}, {File: "web/x", Stat: stat(8)}},
		Tasks: []TaskState{
			{Subject: "pc\x00x", Key: key("k"), Trace: 1 << 60, Head: 12}, {Key: key("gone"), Head: 1 << 40, Gone: true},
			{Subject: "web\x00x", Key: key("l"), Trace: 2, Head: 40, Speaks: true, Ignores: true},
		},
		Edges: []Edge{{Subject(PathSubject, "x.png"), 0}, {Subject(PathSubject, "x.png"), 2}, {Subject(AssetSubject, "x"), 2}},
		Globs: []Glob{{"**/*.png", []int{0, 2}}},
	}
}

var sameSnapshot = cmp.Options{cmpopts.IgnoreUnexported(source.Table{}), cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b Edge) bool {
	return a.Subject < b.Subject || a.Subject == b.Subject && a.Task < b.Task
})}

// readImage reads all of a snapshot.
func readImage(path string) (*Image, string, error) {
	s, why, err := ReadSnapshot(path)
	if s == nil {
		return nil, why, err
	}
	im, err := s.Image()
	if err != nil {
		return nil, err.Error(), nil
	}
	return im, why, nil
}

func TestSnapshotRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if s, why, err := ReadSnapshot(path); s != nil || why != "" || err != nil {
		t.Fatal("there is none, but:", s, why, err)
	}
	for _, want := range []*Image{snapshot(), {Sources: &source.Table{}}, snapshot()} {
		if err := WriteSnapshot(path, want); err != nil {
			t.Fatal(err)
		}
		got, why, err := readImage(path)
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
	for name, v := range map[string]any{"image": *s, "head": s.Head, "totals": s.Totals, "tool": s.Tools[0], "output": s.Outputs[1], "variable": s.Variables[0], "shipped": s.Shipped[0], "mark": s.Log, "edge": s.Edges[1], "glob": s.Globs[0],
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
		if s, why, err := readImage(path); s != nil || why == "" || strings.Contains(why, "\n") || err != nil {
			t.Fatalf("%s: %v, %q, %v", what, s, why, err)
		}
	}
	for i := range data {
		check(fmt.Sprintf("cut at %d", i), data[:i])
		for bit := range 8 {
			flipped := slices.Clone(data)
			flipped[i] ^= 1 << bit
			check(fmt.Sprintf("flip of bit %d at %d", bit, i), flipped)
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
	if err := os.MkdirAll(filepath.Join(disk.Temp(path), "in the way"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteSnapshot(path, &Image{Sources: &source.Table{}}); err == nil {
		t.Error("no error")
	}
	got, why, err := readImage(path)
	if diff := cmp.Diff(snapshot(), got, sameSnapshot); diff != "" || why != "" || err != nil {
		t.Error(diff, why, err)
	}
}

// delta changes something of everything.
func delta() *Delta {
	d := &Delta{Head: snapshot().Head}
	d.Head.Build++
	d.Head.Messages = []byte("other")
	d.Folders = []FolderChange{
		{Number: 0, Folder: source.Folder{Stat: stat(20), Racy: true}, At: []int{1}, Files: []source.File{{Name: "z", Stat: stat(21)}}},
		{Number: 1, Folder: source.Folder{Stat: stat(22)}, All: true, Files: []source.File{{Name: "a", Stat: stat(23)}, {Name: "b", Stat: stat(24)}}},
	}
	d.Outputs = []Output{{File: "new/x", Stat: stat(30), Hash: digest.Of([]byte("n"))}, {File: "pc/x", Stat: stat(31)}}
	d.Removed = []string{"odd", "never/was"}
	d.Tasks = []TaskChange{{0, TaskState{Subject: "pc\x00x", Key: key("k"), Trace: 77, Head: 99, Speaks: true, Ignores: true}}, {3, TaskState{Subject: "pc\x00new", Key: key("n"), Trace: 3, Head: 100}}}
	d.Edges = []Edge{{Subject(TaskSubject, "y"), 3}}
	d.Globs = []Glob{{"**/*.png", []int{3}}, {"*.gif", []int{3}}}
	return d
}

// withDelta is what snapshot with delta comes to.
func withDelta() *Image {
	im, d := snapshot(), delta()
	im.Head = d.Head
	t := im.Sources
	t.Folders[0].Stat, t.Folders[0].Racy = stat(20), true
	t.Folders[1].Stat, t.Folders[1].Racy, t.Folders[1].Count = stat(22), false, 2
	t.Folders[2].First = 4
	t.Files = []source.File{t.Files[0], d.Folders[0].Files[0], d.Folders[1].Files[0], d.Folders[1].Files[1], t.Files[2]}
	im.Outputs = []Output{d.Outputs[0], d.Outputs[1], im.Outputs[2], im.Outputs[3]}
	im.Tasks[0] = d.Tasks[0].TaskState
	im.Tasks = append(im.Tasks, d.Tasks[1].TaskState)
	im.Edges = append(im.Edges, d.Edges...)
	im.Globs = []Glob{{"**/*.png", []int{0, 2, 3}}, {"*.gif", []int{3}}}
	return im
}

func appended(t testing.TB, path string, deltas ...*Delta) {
	t.Helper()
	if err := WriteSnapshot(path, snapshot()); err != nil {
		t.Fatal(err)
	}
	for _, d := range deltas {
		s, why, err := ReadSnapshot(path)
		if why != "" || err != nil {
			t.Fatal(why, err)
		}
		if err := s.Append(d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDelta(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	appended(t, path, delta())
	got, why, err := readImage(path)
	if diff := cmp.Diff(withDelta(), got, sameSnapshot); diff != "" || why != "" || err != nil {
		t.Fatal(diff, why, err)
	}
	s, _, _ := ReadSnapshot(path)
	tasks, err := s.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		subject uint64
		want    []int
	}{{Subject(PathSubject, "x.png"), []int{0, 2}}, {Subject(TaskSubject, "y"), []int{3}}, {Subject(TaskSubject, "x.png"), nil}} {
		if got := tasks.Looked(x.subject); !slices.Equal(got, x.want) {
			t.Errorf("%x: %v, want %v", x.subject, got, x.want)
		}
	}
	for i, want := range withDelta().Tasks {
		if n, ok := tasks.ByKey(want.Key); !ok || n != i {
			t.Errorf("task %d: found as %d, %t", i, n, ok)
		}
	}
	if n, ok := tasks.ByKey(key("nobody")); ok {
		t.Errorf("nobody is task %d", n)
	}
	if got := tasks.Speaking(); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("speaking: %v", got)
	}
	for _, want := range withDelta().Outputs {
		if got, ok, err := s.Outputs.Find(want.File); got != want || !ok || err != nil {
			t.Errorf("%s: %+v, %t, %v", want.File, got, ok, err)
		}
	}
	for _, gone := range []string{"odd", "never/was", "pc/y", "", "pc"} {
		if got, ok, err := s.Outputs.Find(gone); ok || err != nil {
			t.Errorf("%s: %+v, %v", gone, got, err)
		}
	}
	var seen []string
	s.Outputs.Paths(func(folder, name string) { seen = append(seen, joinFile(folder, name)) })
	slices.Sort(seen)
	if want := []string{"new/x", "pc/x", "pc/x.d/y", "web/x"}; !slices.Equal(seen, want) {
		t.Errorf("paths %q, want %q", seen, want)
	}
	whole, err := func() (*Image, error) {
		if err := WriteSnapshot(path, snapshot()); err != nil {
			return nil, err
		}
		s, _, _ := ReadSnapshot(path)
		if _, err := s.Tasks(); err != nil {
			return nil, err
		}
		return s.With(delta())
	}()
	if diff := cmp.Diff(withDelta(), whole, sameSnapshot); diff != "" || err != nil {
		t.Error("With:", diff, err)
	}
}

// A delta that is cut short, or has a bit flipped, or is nothing but zeros, costs itself and what comes after it. What is before stays, and
// is added to by writing the snapshot anew; the database is not known to tell of that.
func TestDeltaDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	appended(t, path)
	base, _ := os.ReadFile(path)
	appended(t, path, delta())
	one, _ := os.ReadFile(path)
	third := &Delta{Head: snapshot().Head, Removed: []string{"pc/x"}}
	third.Head.Build += 2
	appended(t, path, delta(), third)
	data, _ := os.ReadFile(path)
	for i := len(base); i < len(data); i++ {
		if in := (i - len(base)) % (len(one) - len(base)); in > 2*blockHeadSize {
			i += 11 // beyond the head of a delta all is alike
		}
		if i >= len(data) {
			break
		}
		zeros := make([]byte, len(data)-i)
		for _, damaged := range [][]byte{data[:i], slices.Concat(data[:i], []byte{data[i] ^ 0x10}, data[i+1:]), slices.Concat(data[:i], zeros)} {
			if err := os.WriteFile(path, damaged, 0o666); err != nil {
				t.Fatal(err)
			}
			got, why, err := readImage(path)
			want := snapshot()
			if i >= len(one) {
				want = withDelta()
			}
			if bytes.Equal(damaged, data) { // what was there were zeros
				continue
			}
			whole := len(damaged) == len(base) || len(damaged) == len(one)
			if !whole {
				want.Mirrored = 0
			}
			if diff := cmp.Diff(want, got, sameSnapshot); diff != "" || (why == "") != whole || err != nil {
				t.Fatalf("%d of %d bytes: %s, %q, %v", len(damaged), i, diff, why, err)
			}
		}
	}
	if err := os.WriteFile(path, data[:len(data)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	s, _, _ := ReadSnapshot(path)
	if err := s.Append(third); !errors.Is(err, ErrWriteAnew) {
		t.Errorf("behind a delta that is not whole: %v", err)
	}
}

func TestDeltaRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	appended(t, path)
	s, _, _ := ReadSnapshot(path)
	other, _, _ := ReadSnapshot(path)
	if err := other.Append(delta()); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(delta()); !errors.Is(err, ErrWriteAnew) {
		t.Errorf("behind a file that is longer than when it was read: %v", err)
	}
	var many []*Delta
	for range mostDeltas {
		many = append(many, &Delta{Head: snapshot().Head})
	}
	appended(t, path, many...)
	s, _, _ = ReadSnapshot(path)
	if err := s.Append(delta()); !errors.Is(err, ErrWriteAnew) {
		t.Errorf("after %d deltas: %v", mostDeltas, err)
	}
	for name, d := range map[string]*Delta{
		"folder": {Folders: []FolderChange{{Number: 3}}}, "place": {Folders: []FolderChange{{Number: 1, At: []int{0}, Files: []source.File{{Name: "x"}}}}},
		"task": {Tasks: []TaskChange{{Number: 4}}},
	} {
		appended(t, path)
		s, _, _ := ReadSnapshot(path)
		if _, err := s.Tasks(); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(d); err == nil {
			t.Errorf("a %s that is not there could be appended", name)
		}
		if im, why, err := readImage(path); im != nil || why == "" || err != nil {
			t.Errorf("a %s that is not there: %v, %q, %v", name, im, why, err)
		}
	}
}

// TestAhead: what is read ahead is what is read on request, whatever is appended meanwhile; and a damage is found.
func TestAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	appended(t, path)
	s, _, _ := ReadSnapshot(path)
	s.Ahead()
	if err := s.Append(delta()); err != nil {
		t.Fatal(err)
	}
	s.Ahead() // has no effect
	got, err := s.Image()
	if diff := cmp.Diff(withDelta(), got, sameSnapshot); diff != "" || err != nil {
		t.Error(diff, err)
	}

	for _, kind := range []uint32{blockTasks, blockEdges} {
		appended(t, path)
		s, _, _ := ReadSnapshot(path)
		data, _ := os.ReadFile(path)
		data[s.blocks[kind].at+9] ^= 1
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		s.Ahead()
		if _, err := s.Tasks(); err == nil {
			t.Errorf("block %d: its damage was not found", kind)
		}
	}
}

// A snapshot to which deltas were appended is what reading it again gives.
func TestAppendGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	appended(t, path)
	s, _, _ := ReadSnapshot(path)
	if _, err := s.Tasks(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Append(delta()); err != nil {
			t.Fatal(err)
		}
		again, _, err := readImage(path)
		if err != nil {
			t.Fatal(err)
		}
		now, err := s.Image()
		if diff := cmp.Diff(again, now, sameSnapshot); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
	}
}

// The outputs of a large folder stand in pieces.
func TestOutputsOfALargeFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	im := &Image{Sources: &source.Table{}}
	for i := range 3*mostInFolder + 5 {
		im.Outputs = append(im.Outputs, Output{File: fmt.Sprintf("pc/%06d", i), Stat: stat(int64(i)), Hash: digest.Of([]byte{byte(i), byte(i >> 8)})})
	}
	if err := WriteSnapshot(path, im); err != nil {
		t.Fatal(err)
	}
	s, why, err := ReadSnapshot(path)
	if why != "" || err != nil || s.Outputs.Folders() != 4 {
		t.Fatal(why, err, s.Outputs.Folders())
	}
	for i, want := range im.Outputs {
		if got, ok, err := s.Outputs.Find(want.File); got != want || !ok || err != nil {
			t.Fatalf("%d: %+v, %t, %v", i, got, ok, err)
		}
	}
}

// framed makes a snapshot of the bodies of its blocks, whose checksums are right.
func framed(kinds []uint32, bodies ...[]byte) []byte {
	e := varint.Encoder{Buf: header(snapshotMagic, SnapshotVersion)}
	for i, body := range bodies {
		writeBlock(&e, kinds[i], func() { e.Buf = append(e.Buf, body...) })
	}
	return e.Buf
}

// bodies takes a snapshot apart.
func bodies(t testing.TB, data []byte) (kinds []uint32, list [][]byte) {
	for at := int64(headerSize); at < int64(len(data)); {
		kind, b, ok := readBlock(bytes.NewReader(data), at, int64(len(data)))
		if !ok {
			t.Fatal("no block")
		}
		kinds, list = append(kinds, kind), append(list, data[b.at:b.at+b.size])
		at = b.at + b.size
	}
	return kinds, list
}

// A root that is not there, also one whose number is negative once it is an int.
func TestSnapshotRootOutOfRange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	appended(t, path)
	data, _ := os.ReadFile(path)
	kinds, parts := bodies(t, data)
	for _, root := range []uint64{1, 1 << 40, 1<<64 - 1} {
		var e varint.Encoder
		e.Uint(1)
		e.Str("/a")
		e.Uint(0)
		e.Uint(1)
		e.Uint(root)
		e.Str("")
		encodeFolder(&e, &source.Folder{})
		e.Uint(0)
		parts[1] = e.Buf
		in := framed(kinds, parts...)
		if s, why := parseSnapshot(bytes.NewReader(in), int64(len(in))); s != nil || why == "" {
			t.Errorf("root %d: %v", root, s.Sources.Folders)
		}
	}
}

// FuzzSnapshot puts bytes in the place of each block of a good snapshot with a delta, with the right checksum.
func FuzzSnapshot(f *testing.F) {
	path := filepath.Join(f.TempDir(), "snapshot")
	appended(f, path, delta())
	data, _ := os.ReadFile(path)
	kinds, good := bodies(f, data)
	for i, b := range good {
		f.Add(uint8(i), b)
	}
	f.Add(uint8(len(good)), data)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		in := data
		if int(which) < len(good) {
			parts := slices.Clone(good)
			parts[which] = data
			in = framed(kinds, parts...)
		}
		path := filepath.Join(t.TempDir(), "snapshot")
		if err := os.WriteFile(path, in, 0o666); err != nil {
			t.Fatal(err)
		}
		s, why, err := ReadSnapshot(path)
		if err != nil || (s == nil) == (why == "") {
			t.Fatalf("%v, %q, %v", s, why, err)
		}
		if s == nil {
			return
		}
		for _, fo := range s.Sources.Folders {
			if fo.Root < 0 || fo.Root >= len(s.Sources.Roots) || fo.First < 0 || fo.Count < 0 || fo.First+fo.Count > len(s.Sources.Files) {
				t.Fatalf("folder %+v", fo)
			}
		}
		for _, p := range s.Sources.Paths() {
			s.Sources.Find(p)
		}
		memory := 64*len(s.Sources.Roots) + 128*cap(s.Sources.Files) + 128*len(s.Sources.Folders) + 128*len(s.Outputs.folders) + 128*len(s.Tools)
		if memory > 64*len(in) {
			t.Fatalf("%d bytes for %d", memory, len(in))
		}
		im, err := s.Image()
		if err != nil {
			return
		}
		tasks, _ := s.Tasks()
		for _, x := range im.Edges {
			for _, n := range tasks.Looked(x.Subject) {
				tasks.At(n)
			}
		}
		for _, x := range im.Tasks {
			tasks.ByKey(x.Key)
		}
		for _, o := range im.Outputs {
			s.Outputs.Find(o.File)
		}
	})
}

func taskStates(n int) []TaskState {
	ts := make([]TaskState, n)
	for i := range ts {
		ts[i] = TaskState{Subject: fmt.Sprintf("pc\x00textures/folder%03d/image%06d.png", i/100, i), Key: engine.Key(digest.Of(binary.AppendUvarint(nil, uint64(i)))), Trace: uint64(i), Head: int64(i)}
	}
	return ts
}

// TestFolderChanges appends random changes of folders; read again, or as they were applied one by one, they give the folders that a plain
// list of lists has.
func TestFolderChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "snapshot")
	for round := range 30 {
		table := &source.Table{Roots: []string{"/a"}}
		want := make([][]source.File, 1+rng.IntN(6))
		file := func() source.File {
			return source.File{Name: fmt.Sprint(rng.Uint32()), Stat: stat(int64(rng.IntN(100)))}
		}
		for i := range want {
			table.Folders = append(table.Folders, source.Folder{Path: fmt.Sprint(i), First: len(table.Files), Count: rng.IntN(4)})
			for range table.Folders[i].Count {
				table.Files = append(table.Files, file())
			}
			want[i] = slices.Clone(table.Files[table.Folders[i].First:])
		}
		if err := WriteSnapshot(path, &Image{Sources: table}); err != nil {
			t.Fatal(err)
		}
		kept, _, _ := ReadSnapshot(path)
		for range 12 {
			d := &Delta{}
			for range 1 + rng.IntN(3) {
				i := rng.IntN(len(want))
				c := FolderChange{Number: i, All: rng.IntN(2) == 0}
				if c.All {
					for range rng.IntN(4) {
						c.Files = append(c.Files, file())
					}
					want[i] = slices.Clone(c.Files)
				} else if len(want[i]) > 0 {
					c.At, c.Files = []int{rng.IntN(len(want[i]))}, []source.File{file()}
					want[i][c.At[0]] = c.Files[0]
				}
				d.Folders = append(d.Folders, c)
			}
			if err := kept.Append(d); err != nil {
				t.Fatal(err)
			}
		}
		read, why, err := ReadSnapshot(path)
		if read == nil || why != "" || err != nil {
			t.Fatal(why, err)
		}
		for name, s := range map[string]*Snapshot{"read": read, "kept": kept} {
			n := 0
			for i, f := range s.Sources.Folders {
				if diff := cmp.Diff(want[i], s.Sources.Files[f.First:f.First+f.Count], cmpopts.EquateEmpty()); diff != "" || f.First != n {
					t.Fatalf("round %d, %s: folder %d begins at %d, not %d\n%s", round, name, i, f.First, n, diff)
				}
				n += f.Count
			}
			if n != len(s.Sources.Files) {
				t.Fatalf("round %d, %s: %d files, not %d", round, name, len(s.Sources.Files), n)
			}
		}
	}
}
