package ids

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/content/asset"
)

// randomProject are assets with their products; some were renamed, with a UUID that keeps them what they are.
type randomProject map[string]Owner // by UUID

func (p randomProject) change(rng *rand.Rand, uuid string) {
	o, has := p[uuid]
	switch {
	case has && rng.IntN(3) == 0:
		delete(p, uuid)
		return
	case has && rng.IntN(4) == 0:
		o.Asset = fmt.Sprintf("moved%d", rng.Uint32())
	case has && asset.UUID(strings.ToUpper(o.Asset)) == uuid && rng.IntN(4) == 0:
		o.Asset = strings.ToUpper(o.Asset)
	}
	o.Products = nil
	for i := range 4 {
		if rng.IntN(2) == 0 {
			o.Products = append(o.Products, strings.Repeat("p", i))
		}
	}
	o.Keep = rng.IntN(6) == 0
	p[uuid] = o
}

// TestSortedIsAssign: what is done by lines gives the bytes that Assign gives, and the numbers, or nothing.
func TestSortedIsAssign(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	file, byLines := &File{}, 0
	p := randomProject{}
	for step := range 3000 {
		changed := map[string]Owner{}
		for range 1 + rng.IntN(3) {
			name := fmt.Sprintf("asset%d.png", rng.IntN(40))
			uuid := asset.UUID(name)
			if _, ok := changed[uuid]; ok {
				continue
			}
			if _, ok := p[uuid]; !ok {
				p[uuid] = Owner{Asset: name, UUID: uuid}
			}
			changed[uuid] = Owner{Asset: p[uuid].Asset, UUID: uuid}
			if p.change(rng, uuid); p[uuid].UUID != "" {
				changed[uuid] = p[uuid]
			}
		}
		var list []Owner
		var names []Name
		for _, o := range changed {
			list = append(list, o)
			for _, product := range o.Products {
				names = append(names, Name{o.Asset, o.UUID, product})
			}
		}
		want, changes, err := Assign(file, names, func(uuid string) bool { o, ok := changed[uuid]; return !ok || o.Keep })
		if err != nil {
			t.Fatal(err)
		}
		s, ok := ReadSorted(file.Format())
		if step > 0 && !ok {
			t.Fatalf("step %d: is not as it is written:\n%s", step, file.Format())
		}
		for u, o := range p { // under the name that it has now, which may not be that in the file
			wantID, want := uint32(0), false
			for _, e := range file.Entries {
				if e.Identity() == u && e.Product == "pp" {
					wantID, want = e.ID, true
				}
			}
			if id, has := s.Of(Name{o.Asset, u, "pp"}); ok && (id != wantID || has != want) {
				t.Fatalf("step %d: %v has number %d, %v; want %d, %v", step, o, id, has, wantID, want)
			}
		}
		if now, n, ok := s.Assign(list); ok {
			byLines++
			if string(now.Text()) != string(want.Format()) || (n == 0) != (len(changes) == 0) {
				t.Fatalf("step %d: %d and %v\n%s\nand not\n%s\nbefore\n%s\nchanged %v",
					step, n, changes, now.Text(), want.Format(), file.Format(), list)
			}
			for _, e := range want.Entries {
				if id, ok := now.ID(e.Name); !ok || id != e.ID || now.AssetOf(e.Identity()) == "" {
					t.Fatalf("step %d: %v has number %d, %v", step, e, id, ok)
				}
			}
		}
		file = parse(t, string(want.Format()))
	}
	if byLines < 2500 {
		t.Errorf("%d of 3000 steps were done by lines", byLines)
	}
}

func TestReadSortedRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"not sorted":             "b\t1\na\t2\n",
		"a name twice":           "a\t1\na\t2\n",
		"a number twice":         "a\t1\nb\t1\n",
		"two UUIDs of one name":  "a\t1\na\t2\t\t" + pin + "\n",
		"a conflict":             "a\t1\n<<<<<<< ours\nb\t2\n",
		"a comment":              "a\t1\n# b\nc\t2\n",
		"an empty line":          "a\t1\n\nb\t2\n",
		"CR LF":                  "a\t1\r\nb\t2\r\n",
		"no end of line":         "a\t1",
		"no number":              "a\n",
		"a wrong number":         "a\t01\n",
		"a number that is large": fmt.Sprintf("a\t%d\n", Limit),
		"an empty field":         "a\t1\t\n",
		"an empty UUID":          "a\t1\tp\t\n",
		"a UUID too many":        "a\t1\tp\t" + asset.UUID("a") + "\n",
		"UUID in capitals":       "a\t1\tp\t" + strings.ToUpper(pin) + "\n",
		"five fields":            "a\t1\tp\t" + pin + "\tx\n",
		"a quoted name":          "\"a\\tb\"\t1\n",
		"no UTF-8":               "a\xff\t1\n",
		"a control character":    "a\x01\t1\n",
		"no asset":               "\t1\n",
	} {
		if _, ok := ReadSorted([]byte(header + "\n" + text)); ok {
			t.Errorf("%s: %q passes", name, text)
		}
	}
	if _, ok := ReadSorted([]byte("# kiln.ids 2: x\na\t1\n")); ok {
		t.Error("another version passes")
	}
	if _, ok := ReadSorted([]byte(header + "\na\t1\nb\t0\t\t" + pin + "\nb/ä\t7\tp\n")); !ok {
		t.Error("what Format writes does not pass")
	}
}

func BenchmarkSortedAssign(b *testing.B) {
	products := make([]Name, 100_000)
	for i := range products {
		products[i] = Name{Asset: fmt.Sprintf("sprites/%05d.png", i)}
	}
	f, _, err := Assign(&File{}, products, nil)
	if err != nil {
		b.Fatal(err)
	}
	text := f.Format()
	fresh := []Owner{{Asset: "sprites/new.png", UUID: asset.UUID("sprites/new.png"), Products: []string{""}}}
	for b.Loop() {
		s, ok := ReadSorted(text)
		if _, n, ok2 := s.Assign(fresh); !ok || !ok2 || n != 1 {
			b.Fatal("not by lines")
		}
	}
}

// FuzzReadSorted: a text that is read by its order is as Format writes it, and has the same numbers.
func FuzzReadSorted(f *testing.F) {
	f.Add([]byte("a\t0\nb\t1\tp\t" + pin + "\n"))
	f.Add([]byte("a\t0\na\t1\tp\na.b\t2\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		data := append([]byte(header+"\n"), lines...)
		s, ok := ReadSorted(data)
		if !ok {
			return
		}
		file, err := Parse(FileName, data, false)
		if err != nil || string(file.Format()) != string(data) {
			t.Fatalf("%v: %q", err, data)
		}
		for _, e := range file.Entries {
			if id, ok := s.ID(e.Name); !ok || id != e.ID {
				t.Fatalf("%v has the number %d, %t", e, id, ok)
			}
		}
	})
}
