package parcel

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/kilnrt"
)

// res makes a resource with the given content; its UUID and name come from its id.
func res(id uint32, content string) Resource {
	r := Resource{ID: id, Name: fmt.Sprintf("r/%d", id), Type: "data"}
	r.UUID[0], r.UUID[15] = byte(id>>8), byte(id)
	return with(r, []byte(content))
}

func with(r Resource, b []byte) Resource {
	r.Size, r.Hash = int64(len(b)), digest.Of(b)
	r.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	return r
}

// holds compares a parcel with the resources it should hold.
func holds(t *testing.T, path string, rs []Resource) {
	t.Helper()
	p, err := kilnrt.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := Verify(p); err != nil {
		t.Fatal(err)
	}
	if p.Len() != len(rs) {
		t.Fatalf("%d resources, not %d", p.Len(), len(rs))
	}
	for _, want := range rs {
		r, err := p.ByID(want.ID)
		if err != nil {
			t.Fatalf("%d: %v", want.ID, err)
		}
		from, _ := want.Open()
		content, _ := io.ReadAll(from)
		got, err := r.Bytes()
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%s: %d bytes, %v", want.Label(), len(got), err)
		}
		var needs []uint32
		for k := range r.Required + r.Optional {
			needs = append(needs, r.Need(k))
		}
		if r.Name() != want.Name || r.Type() != want.Type || r.UUID != want.UUID || r.SubID != want.SubID || r.Required != len(want.Required) ||
			!slices.Equal(needs, slices.Concat(want.Required, want.Optional)) {
			t.Fatalf("%s is %+v", want.Label(), r)
		}
		if want.Align != 0 && r.Codec == kilnrt.None && r.Offset%int64(want.Align) != 0 {
			t.Fatalf("%s lies at %d, not at a multiple of %d", want.Label(), r.Offset, want.Align)
		}
	}
}

// some makes resources of many kinds, by chance.
func some(rng *rand.Rand, n int) []Resource {
	var rs []Resource
	for i := range n {
		rs = append(rs, one(rng, uint32(i*3)))
	}
	return rs
}

func one(rng *rand.Rand, id uint32) Resource {
	b := make([]byte, rng.IntN(4)*rng.IntN(3000))
	letters := 1 + rng.IntN(255)
	for i := range b {
		b[i] = byte(rng.IntN(letters))
	}
	if rng.IntN(4) == 0 {
		b = bytes.Repeat([]byte("same "), rng.IntN(3)*100)
	}
	r := with(res(id, ""), b)
	r.Compress = rng.IntN(2) == 0
	r.Align = []int{0, 16, 256, 4096}[rng.IntN(4)]
	r.Type = []string{"data", "texture", "model"}[rng.IntN(3)]
	for k := uint32(0); k < id && k < 9; k += 3 {
		if rng.IntN(3) == 0 {
			r.Required = append(r.Required, k)
		} else if rng.IntN(3) == 0 {
			r.Optional = append(r.Optional, k, 1_000_000)
		}
	}
	return r
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrite: any resources come back, and the bytes depend on nothing but them.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for n := range 20 {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		rs := some(rng, n*n)
		o := Options{}
		if n%2 == 1 {
			o.Dictionary = bytes.Repeat([]byte("a dictionary of raw content "), 20)
		}
		var first []byte
		for _, workers := range []int{1, 2, 7} {
			rng.Shuffle(len(rs), func(i, k int) { rs[i], rs[k] = rs[k], rs[i] })
			path := filepath.Join(dir, fmt.Sprint(n, workers))
			o.Workers = workers
			if err := Write(path, rs, o); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = read(t, path)
			}
			if !bytes.Equal(first, read(t, path)) {
				t.Fatalf("%d resources with %d workers are other bytes", len(rs), workers)
			}
			holds(t, path, rs)
		}
	}
}

// TestEdits: after any sequence of edits the parcel holds what it should, and compacted it is a clean pack.
func TestEdits(t *testing.T) {
	dir := t.TempDir()
	ways := map[How]int{}
	for seed := range 12 {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		rs := some(rng, 5+seed*20)
		path, clean := filepath.Join(dir, fmt.Sprint(seed)), filepath.Join(dir, fmt.Sprint(seed, "clean"))
		o := Options{Workers: 2}
		for step := range 15 {
			rep, err := Update(path, rs, o)
			if err != nil {
				t.Fatal(err)
			}
			ways[rep.How]++
			holds(t, path, rs)
			if step%4 == 3 {
				if err := Write(clean, rs, o); err != nil {
					t.Fatal(err)
				}
				if err := Compact(path, o.First); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(read(t, path), read(t, clean)) {
					t.Fatalf("seed %d, step %d: compacted it is no clean pack", seed, step)
				}
			}
			if step%5 == 2 {
				o.First = []uint32{uint32(step), 3, 0, 6, 1 << 20}
				o.Order = digest.Of([]byte{byte(step)})
			}
			switch i := rng.IntN(len(rs)); rng.IntN(6) {
			case 0: // nothing
			case 1:
				rs = slices.Delete(rs, i, i+1)
			case 2:
				rs = append(rs, one(rng, 100_000+uint32(step)))
			case 3:
				rs[i].Name += "!"
			default:
				old := rs[i]
				fresh := one(rng, old.ID)
				fresh.Required, fresh.Optional, fresh.Type, fresh.Name = old.Required, old.Optional, old.Type, old.Name
				rs[i] = fresh
			}
			if len(rs) == 0 {
				rs = some(rng, 3)
			}
		}
	}
	if ways[Nothing] == 0 || ways[Appended] == 0 || ways[Rewritten] == 0 {
		t.Errorf("not every way was gone: %v", ways)
	}
}

// TestWasteOfSmall: however often a small parcel is changed, what is not waste has room for all that it holds.
func TestWasteOfSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parcel")
	for n := range 20 {
		rs := []Resource{res(1, "what stays as it is"), res(2, fmt.Sprint("changes ", n))}
		if _, err := Update(path, rs, Options{}); err != nil {
			t.Fatal(err)
		}
		p, err := kilnrt.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h, held := p.Header(), int64(p.Len())*kilnrt.RecordSize
		for i := range p.Len() {
			r, err := p.At(i)
			if err != nil {
				t.Fatal(err)
			}
			held += r.Stored
		}
		p.Close()
		if used := h.End - h.Waste; used < held {
			t.Fatalf("after edit %d, %d bytes are in use, and what it holds takes %d", n, used, held)
		}
	}
}

// FuzzUpdate: whatever stands where a parcel should be, it becomes the one that is wanted, or stays with an error. Run it with
// -fuzzminimizetime 1x.
func FuzzUpdate(f *testing.F) {
	key, _ := testKey(f, 1)
	path := filepath.Join(f.TempDir(), "p")
	rs := some(rand.New(rand.NewPCG(3, 3)), 8)
	for _, o := range []Options{{}, {Sign: key.Sign}, {Dictionary: []byte("a dictionary")}} {
		if err := Write(path, rs, o); err != nil {
			f.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	rs[3] = with(rs[3], []byte("another content"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for slot := 0; slot <= kilnrt.SlotPitch && slot+kilnrt.SlotSize <= len(b); slot += kilnrt.SlotPitch {
			le.PutUint32(b[slot+508:], crc32.ChecksumIEEE(b[slot:slot+508]))
		}
		path := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Update(path, rs, Options{}); err != nil {
			if !bytes.Equal(read(t, path)[:min(len(b), kilnrt.DataStart)], b[:min(len(b), kilnrt.DataStart)]) {
				t.Errorf("an error, and a changed header: %v", err)
			}
			return
		}
		p, err := kilnrt.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if p.Len() != len(rs) {
			t.Errorf("it has %d resources", p.Len())
		}
		Verify(p) // of contents that were there it may find that they are not what they were
		if text := p.Signature(); len(text) > 0 && checkSignature(text) != nil {
			t.Error("it has a signature that is none")
		}
	})
}

// TestLargerTables: another writer may make larger tables than ours. A change of contents leaves them as they are.
func TestLargerTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	rs := some(rand.New(rand.NewPCG(1, 2)), 40)
	c, err := prepare(rs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.tables, err = makeTables(c.items, c.bits+3); err != nil {
		t.Fatal(err)
	}
	if err := write(path, c, Options{}, nil); err != nil {
		t.Fatal(err)
	}
	holds(t, path, rs)
	rs[7] = with(rs[7], []byte("other"))
	if rep, err := Update(path, rs, Options{}); err != nil || rep.How != Appended {
		t.Fatal(rep, err)
	}
	holds(t, path, rs)
}
