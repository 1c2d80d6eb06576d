package release

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/base/digest"
	internalparcel "github.com/kiln-pipeline/kiln/internal/delivery/parcel"
)

// res is a resource of so many bytes in a file, whose content a letter stands for.
func res(name, content string, stored int64) Resource {
	return Resource{Name: name, UUID: identity(name), Size: 2 * stored, Stored: stored, Hash: Hash{content[0]}}
}

func parcel(name string, size int64, rs ...Resource) Parcel {
	x := Parcel{Platform: "pc", Name: name, Size: size, Resources: rs}
	x.Digest = digest.Of(fmt.Append(nil, rs))
	x.sort()
	return x
}

func words(list []Difference) []string {
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprintf("%s %s %d>%d patch %d", d.Parcel, d.Change, d.OldSize, d.NewSize, d.Patch))
		for _, c := range d.Changes {
			all = append(all, strings.TrimSpace(fmt.Sprintf("- %s %s %d>%d patch %d %s", c.Name, c.Change, c.OldSize, c.NewSize, c.Patch, c.OldName)))
		}
	}
	return all
}

func TestSince(t *testing.T) {
	moved := res("new/place", "d", 40)
	moved.UUID = identity("old/place")
	older := &Manifest{Parcels: []Parcel{
		parcel("level", 1000, res("a", "a", 100), res("b", "b", 200), res("c", "c", 300), res("old/place", "d", 40)),
		parcel("left", 90, res("a", "a", 50)),
		parcel("same", 70, res("a", "a", 50)),
	}}
	newer := &Manifest{Parcels: []Parcel{
		parcel("same", 70, res("a", "a", 50)),
		parcel("late", 80, res("z", "z", 60)),
		// b is other, c is gone, e is new with the content of a, f and g are new and share theirs
		parcel("level", 1200, res("a", "a", 100), res("b", "B", 210), moved, res("e", "a", 100), res("f", "f", 7), res("g", "f", 7)),
	}}
	want := []string{
		"late added 0>80 patch 80",
		"- z added 0>120 patch 60",
		"left removed 90>0 patch 0",
		"- a removed 100>0 patch 0",
		"level changed 1000>1200 patch 1060", // all but a and what was moved, which the older parcel has
		"- b changed 400>420 patch 210",
		"- c removed 600>0 patch 0",
		"- e added 0>200 patch 0",
		"- f added 0>14 patch 7",
		"- g added 0>14 patch 0",
		"- new/place renamed 80>80 patch 0 old/place",
		"same  70>70 patch 0",
	}
	if d := cmp.Diff(want, words(Since(older, newer))); d != "" {
		t.Error(d)
	}
	for _, d := range Since(older, older) {
		if d.Change != "" || d.Patch != 0 || len(d.Changes) > 0 {
			t.Errorf("the same is other: %+v", d)
		}
	}
}

func TestText(t *testing.T) {
	pinned := res("sprites/ui/#page 1", "p", 5)
	pinned.UUID[0]++
	m := &Manifest{Name: "1.2 \"gold\"", Parcels: []Parcel{
		parcel("common", 0),
		parcel("level1+level2", 12345, res("a b/c.png", "a", 1), res("a.atlas#page1", "b", 2), pinned, res("\"odd\n", "o", 3)),
	}}
	text := m.Format()
	got, err := parse("r", text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, got); d != "" {
		t.Error(d)
	}
	want := "# kiln release 1: what was released, made by `kiln parcel release`. Commit this file.\nrelease 1.2 \"gold\"\nparcel pc common 0 " + digest.Of([]byte("[]")).String() + "\n"
	if !strings.HasPrefix(string(text), want) || !strings.Contains(string(text), "\n- 0 2 1 61"+strings.Repeat("0", 30)+" a b/c.png\n") {
		t.Errorf("%s", text)
	}
	if crlf, err := parse("r", bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))); err != nil || !cmp.Equal(crlf, m) {
		t.Errorf("with other line ends: %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	const digest = " 5b5d000000000000000000000000000000000000000000000000000000000000\n"
	begin := head + ":\n"
	for text, want := range map[string]string{
		"":                                  "r:1:1: error[K1609]: this is not a manifest of a release",
		"# kiln release 2:\n":               "r:1:1: error[K1609]: this is not a manifest of a release",
		begin + "- 0 1 1 00 a\n":            "r:2:1: error[K1609]: this is not a resource of a parcel",
		begin + "parcel pc a 5\n":           "r:2:1: error[K1609]: this is not a parcel",
		begin + "parcel pc a -5" + digest:   "r:2:1: error[K1609]: this is not a parcel",
		begin + "release \"1\n":             "r:2:1: error[K1609]: the name of the release is not text",
		begin + "<<<<<<< HEAD\n":            "r:2:1: error[K1609]: this is not a resource of a parcel",
		begin + strings.Repeat("x", 20_000): "r:2:1: error[K1609]: the line has more than",
		begin + "\nparcel pc a 5" + digest + "parcel pc a 5" + digest: "r:4:1: error[K1609]: parcel a [pc] is there twice",
	} {
		_, err := parse("r", []byte(text))
		if l := diag.Messages(err, diag.Internal); len(l) != 1 || !strings.HasPrefix(l[0].String(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestPatch: a patch between two parcels has no more bytes than Since says, in whatever they differ, and a manifest takes no more than a
// line for each resource.
func TestPatch(t *testing.T) {
	dir := t.TempDir()
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		contents := make([][]byte, 60)
		for i := range contents {
			contents[i] = noise(rnd, rnd.IntN(40_000))
		}
		older := packed(t, filepath.Join(dir, "a"), contents, seed%2 == 0)
		for range seed {
			switch i := rnd.IntN(len(contents)); rnd.IntN(3) {
			case 0:
				contents[i] = noise(rnd, rnd.IntN(40_000))
			case 1:
				contents = append(contents, noise(rnd, 1000))
			default:
				contents = slices.Delete(contents, i, i+1)
			}
		}
		newer := packed(t, filepath.Join(dir, "b"), contents, seed%2 == 0)
		patch := filepath.Join(dir, "patch")
		if err := internalparcel.MakePatchFile(patch, filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(patch)
		if err != nil {
			t.Fatal(err)
		}
		most := Sum(Since(older, newer)).Patch
		t.Logf("%d changes: %d bytes, at most %d", seed, info.Size(), most)
		steps := 200 + 16*int64(len(contents)) // frames and steps of the patch, whatever is in it
		if info.Size() > most+steps || seed == 0 && most != 0 {
			t.Errorf("seed %d: the patch has %d bytes, more than %d", seed, info.Size(), most)
		}
		if n := bytes.Count(newer.Format(), []byte("\n")); n != len(contents)+3 {
			t.Errorf("%d lines for %d resources", n, len(contents))
		}
	}
}

func noise(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// packed writes contents to a parcel, and takes it down.
func packed(t *testing.T, path string, contents [][]byte, compress bool) *Manifest {
	t.Helper()
	var rs []internalparcel.Resource
	for i, b := range contents {
		name := fmt.Sprintf("%x", digest.Of(b).String()[:8])
		rs = append(rs, internalparcel.Resource{ID: uint32(i), UUID: identity(name), Name: name, Type: "data", Size: int64(len(b)), Hash: digest.Of(b), Compress: compress,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }})
	}
	os.Remove(path)
	if err := internalparcel.Write(path, rs, internalparcel.Options{}); err != nil {
		t.Fatal(err)
	}
	x, err := ReadParcel("pc", "p", path)
	if err != nil {
		t.Fatal(err)
	}
	return &Manifest{Parcels: []Parcel{x}}
}

// FuzzParse: whatever is read is written and read again as the same, and compared with itself nothing is other.
func FuzzParse(f *testing.F) {
	m := &Manifest{Name: "1", Parcels: []Parcel{parcel("a", 10, res("x", "x", 1), res("y#z", "y", 2))}}
	f.Add(m.Format())
	f.Add([]byte(head + ":\nrelease \"\\n\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parse("r", text)
		if err != nil {
			return
		}
		again, err := parse("r", m.Format())
		if err != nil || !cmp.Equal(m, again) {
			t.Fatalf("%q is written as %q: %v", text, m.Format(), err)
		}
		if slices.ContainsFunc(Since(m, again), func(d Difference) bool { return d.Change != "" }) {
			t.Error("it is other than itself")
		}
	})
}
