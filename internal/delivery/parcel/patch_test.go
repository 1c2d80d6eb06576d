package parcel

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/kilnrt"
)

func patchOf(t testing.TB, a, b []byte) []byte {
	t.Helper()
	var p bytes.Buffer
	if err := MakePatch(&p, bytes.NewReader(a), int64(len(a)), bytes.NewReader(b), int64(len(b))); err != nil {
		t.Fatal(err)
	}
	return p.Bytes()
}

func apply(a, patch []byte) ([]byte, error) {
	var out bytes.Buffer
	err := ApplyPatch(&out, bytes.NewReader(a), int64(len(a)), bytes.NewReader(patch))
	return out.Bytes(), err
}

func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, 3))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestPatch: a patch makes b of a, and is about as large as what is new.
func TestPatch(t *testing.T) {
	a := noise(1, 3<<20)
	insert := slices.Concat(a[:1_000_001], noise(2, 5000), a[1_000_001:])
	moved := slices.Concat(a[2<<20:], a[:2<<20])
	for name, c := range map[string]struct {
		a, b []byte
		most int
	}{
		"same":    {a, a, 200},
		"insert":  {a, insert, 5300},
		"delete":  {insert, a, 300},
		"moved":   {a, moved, 70_000},
		"nothing": {a, nil, 200},
		"new":     {nil, a, len(a) + 1000},
		"both":    {nil, nil, 200},
		"other":   {a, noise(3, 100), 300},
	} {
		p := patchOf(t, c.a, c.b)
		got, err := apply(c.a, p)
		if err != nil || !bytes.Equal(got, c.b) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if len(p) > c.most {
			t.Errorf("%s: the patch has %d bytes, more than %d", name, len(p), c.most)
		}
		if len(c.a) > 0 {
			wrong := slices.Clone(c.a)
			wrong[len(wrong)/2]++
			if got, err := apply(wrong, p); err == nil || len(got) > 0 {
				t.Errorf("%s: applied to another file: %d bytes, %v", name, len(got), err)
			}
		}
		for _, n := range []int{0, 50, len(p) / 2, len(p) - 1} {
			if _, err := apply(c.a, p[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes of a patch are enough", name, n, len(p))
			}
		}
	}
}

// TestChunks: they are the whole, of the right sizes, and an insertion changes only those around it.
func TestChunks(t *testing.T) {
	list := func(b []byte) (all []string) {
		err := chunks(io.MultiReader(bytes.NewReader(b)), func(at int64, c []byte) error {
			if at+int64(len(c)) < int64(len(b)) && len(c) < chunkLeast || len(c) > chunkMost {
				t.Errorf("a chunk of %d bytes", len(c))
			}
			all = append(all, string(c))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	a := noise(4, 4<<20)
	one, two := list(a), list(slices.Concat(a[:2<<20], []byte("x"), a[2<<20:]))
	if usual := len(a) / len(one); usual < 8<<10 || usual > 32<<10 {
		t.Errorf("chunks have %d bytes on average", usual)
	}
	fresh := 0
	for _, c := range two {
		if !slices.Contains(one, c) {
			fresh++
		}
	}
	if fresh == 0 || fresh > 4 {
		t.Errorf("%d chunks are new", fresh)
	}
}

func TestPatchFile(t *testing.T) {
	dir := t.TempDir()
	a, b, p := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "p")
	rng := rand.New(rand.NewPCG(5, 5))
	rs := some(rng, 50)
	if err := Write(a, rs, Options{}); err != nil {
		t.Fatal(err)
	}
	rs[7] = with(rs[7], []byte("changed"))
	if err := Write(b, rs, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := MakePatchFile(p, a, b); err != nil {
		t.Fatal(err)
	}
	if err := ApplyPatchFile(a, a, p); err != nil {
		t.Fatal(err)
	}
	holds(t, a, rs)
	if err := ApplyPatchFile(a, a, p); err == nil {
		t.Error("applied twice")
	}
	holds(t, a, rs)
}

func FuzzApply(f *testing.F) {
	a := noise(6, 100_000)
	f.Add(patchOf(f, a, append([]byte("new"), a...)))
	f.Add(patchOf(f, a, nil))
	f.Fuzz(func(t *testing.T, patch []byte) {
		if len(patch) >= patchHeader {
			copy(patch[16:24], le.AppendUint64(nil, uint64(len(a))))
			if le.Uint64(patch[24:]) > 1<<24 {
				return
			}
		}
		apply(a, patch)
	})
}

// FuzzMakePatch: whatever stands where a parcel should be, a patch to it and from it makes what it should.
func FuzzMakePatch(f *testing.F) {
	path := filepath.Join(f.TempDir(), "p")
	rs := some(rand.New(rand.NewPCG(4, 3)), 8)
	if err := Write(path, rs, Options{}); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:9000])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= kilnrt.SlotSize { // or nothing would ever come past it
			le.PutUint32(b[508:], crc32.ChecksumIEEE(b[:508]))
		}
		for _, c := range [][2][]byte{{good, b}, {b, good}} {
			got, err := apply(c[0], patchOf(t, c[0], c[1]))
			if err != nil || !bytes.Equal(got, c[1]) {
				t.Fatalf("%d bytes, not %d: %v", len(got), len(c[1]), err)
			}
		}
	})
}
