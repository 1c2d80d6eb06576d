package ids

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse(FileName, []byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// body is a file without its first line, tabs as spaces.
func body(f *File) string {
	_, rest, _ := strings.Cut(string(f.Format()), "\n")
	return strings.ReplaceAll(rest, "\t", " ")
}

func names(list string) []Name {
	var out []Name
	for _, s := range strings.Fields(list) {
		asset, product, _ := strings.Cut(s, ":")
		out = append(out, Name{Asset: asset, Product: product})
	}
	return out
}

const pin = "0f1d7c2e-91a4-4c7e-8b35-3c6f0a9d2e11"

func TestAssign(t *testing.T) {
	for name, c := range map[string]struct{ file, products, want, changes string }{
		"first":         {"", "b a a:page", "a 0\na 1 page\nb 2\n", "added a 0, added a 1, added b 2"},
		"nothing":       {"a\t0\nb\t1\n", "a b", "a 0\nb 1\n", ""},
		"twice given":   {"", "a a b a", "a 0\nb 1\n", "added a 0, added b 1"},
		"order of file": {"b\t0\na\t1\n", "a b", "a 1\nb 0\n", ""},
		"gone":          {"a\t0\nb\t1\nc\t2\n", "a c", "a 0\nc 2\n", "removed b 1"},
		"reused":        {"a\t0\nc\t2\ne\t4\n", "a c e z y x", "a 0\nc 2\ne 4\nx 1\ny 3\nz 5\n", "added x 1, added y 3, added z 5"},
		"in one step":   {"a\t0\nb\t1\n", "b c", "b 1\nc 0\n", "removed a 0, added c 0"},
		"far away":      {"a\t16777215\n", "a b", "a 16777215\nb 0\n", "added b 0"},
		"case":          {"Tank.png\t3\n", "tank.png", "tank.png 3\n", "renamed tank.png 3"},
		"failed":        {"failed\t0\nfailed\t1\tpage\n", "a", "a 2\nfailed 0\nfailed 1 page\n", "added a 2"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := Name{Asset: "failed"}.Identity()
			got, changes, err := Assign(parse(t, c.file), names(c.products), func(u string) bool { return u == failed })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, body(got)); diff != "" {
				t.Error(diff)
			}
			var told []string
			for _, ch := range changes {
				told = append(told, fmt.Sprintf("%s %s %d", ch.What, ch.Name.Asset, ch.ID))
			}
			if diff := cmp.Diff(c.changes, strings.Join(told, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRenameKeepsTheNumber(t *testing.T) {
	was := Name{Asset: "a.png"}.Identity()
	got, changes, err := Assign(parse(t, "a.png\t7\n"), []Name{{Asset: "b.png", UUID: was}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "b.png 7  " + was + "\n"; body(got) != want {
		t.Errorf("got %q, want %q", body(got), want)
	}
	if len(changes) != 1 || changes[0].What != Renamed || changes[0].Old != "a.png" {
		t.Errorf("changes %+v", changes)
	}
	again, changes, err := Assign(parse(t, string(got.Format())), []Name{{Asset: "b.png", UUID: was}, {Asset: "a.png", UUID: pin}}, nil)
	if err != nil || len(changes) != 1 || body(again) != "a.png 0  "+pin+"\nb.png 7  "+was+"\n" {
		t.Errorf("%q, %+v, %v", body(again), changes, err)
	}
}

func TestRepair(t *testing.T) {
	for name, c := range map[string]struct{ file, released, want, moved string }{
		"nothing wrong":  {"a\t1\nb\t0\n", "", "a 1\nb 0\n", ""},
		"by name":        {"z\t0\nb\t1\na\t1\n", "", "a 1\nb 2\nz 0\n", "b 1>2"},
		"released":       {"a\t1\nb\t1\n", "b\t1\n", "a 0\nb 1\n", "a 1>0"},
		"not released":   {"a\t1\nb\t1\n", "b\t9\n", "a 1\nb 0\n", "b 1>0"},
		"two lines":      {"a\t5\na\t3\n", "", "a 3\n", "a 5>3"},
		"two, released":  {"a\t5\na\t3\n", "a\t5\n", "a 5\n", "a 3>5"},
		"the same twice": {"a\t5\na\t5\n", "", "a 5\n", ""},
		"crossed":        {"a\t1\na\t2\nb\t1\nb\t2\n", "", "a 1\nb 2\n", "a 2>1, b 1>2"},
		"three":          {"a\t0\nb\t0\nc\t0\nd\t2\n", "", "a 0\nb 1\nc 3\nd 2\n", "b 0>1, c 0>3"},
	} {
		t.Run(name, func(t *testing.T) {
			got, changes, err := Repair(parse(t, c.file), parse(t, c.released))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, body(got)); diff != "" {
				t.Error(diff)
			}
			var told []string
			for _, ch := range changes {
				told = append(told, fmt.Sprintf("%s %d>%d", ch.Name.Asset, ch.From, ch.ID))
			}
			if diff := cmp.Diff(c.moved, strings.Join(told, ", ")); diff != "" {
				t.Error(diff)
			}
			if c := got.Conflicts(); len(c) > 0 {
				t.Errorf("still in conflict: %+v", c)
			}
		})
	}
}

// TestMerge: two branches add assets, a union merge takes both, and the repair gives every resource one number and moves the fewest.
func TestMerge(t *testing.T) {
	base := "a\t0\nm\t1\n"
	ours, _, _ := Assign(parse(t, base), names("a b m"), nil)
	theirs, _, _ := Assign(parse(t, base), names("a m x"), nil)
	merged := "a\t0\n<<<<<<< ours\n" + strings.ReplaceAll(body(ours)[4:8], " ", "\t") + "||||||| base\nq\t1\n=======\nx\t2\n>>>>>>> theirs\nm\t1\n"
	if _, err := Parse(FileName, []byte(merged), false); err == nil || !strings.Contains(err.Error(), "unfinished merge") {
		t.Errorf("conflict marks: %v", err)
	}
	f := parse(t, merged)
	if c := f.Conflicts(); len(c) != 1 || !c[0].SameID || c[0].First.Asset != "b" || c[0].Second.Asset != "x" || c[0].Second.Line != 7 {
		t.Errorf("conflicts %+v", c)
	}
	got, changes, err := Repair(f, nil)
	if err != nil || body(got) != "a 0\nb 2\nm 1\nx 3\n" || len(changes) != 1 {
		t.Errorf("%q, %+v, %v (theirs was %q)", body(got), changes, err, body(theirs))
	}
}

// TestRandom holds Assign to its rules over random projects: numbers are kept, unique and the lowest free ones, and the order in which
// lines and products are given does not matter.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	f := &File{}
	for step := range 300 {
		var products []Name
		for i := range 40 {
			if rng.IntN(3) > 0 {
				products = append(products, Name{Asset: fmt.Sprintf("asset%d", i%13), Product: fmt.Sprintf("p%d", i)})
			}
		}
		next, _, err := Assign(f, products, nil)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := &File{Entries: append([]Entry{}, f.Entries...)}
		rng.Shuffle(len(shuffled.Entries), func(i, j int) {
			shuffled.Entries[i], shuffled.Entries[j] = shuffled.Entries[j], shuffled.Entries[i]
		})
		rng.Shuffle(len(products), func(i, j int) { products[i], products[j] = products[j], products[i] })
		same, _, _ := Assign(shuffled, products, nil)
		if string(same.Format()) != string(next.Format()) {
			t.Fatalf("step %d: depends on order", step)
		}
		checkStep(t, f, next, len(products))
		again, changes, _ := Assign(parse(t, string(next.Format())), products, nil)
		if len(changes) != 0 || string(again.Format()) != string(next.Format()) {
			t.Fatalf("step %d: not settled: %v", step, changes)
		}
		f = next
	}
}

func checkStep(t *testing.T, before, after *File, products int) {
	t.Helper()
	if len(after.Entries) != products || len(after.Conflicts()) > 0 {
		t.Fatalf("%d entries for %d products, conflicts %v", len(after.Entries), products, after.Conflicts())
	}
	old, fresh, numbers := map[key]uint32{}, map[uint32]bool{}, map[uint32]bool{}
	for _, e := range before.Entries {
		old[e.key()] = e.ID
	}
	highest := uint32(0)
	for _, e := range after.Entries {
		numbers[e.ID] = true
		id, had := old[e.key()]
		if had && id != e.ID {
			t.Fatalf("%s had %d, has %d", e.Name, id, e.ID)
		}
		if !had {
			fresh[e.ID] = true
			highest = max(highest, e.ID)
		}
	}
	for id := range highest {
		if len(fresh) > 0 && !numbers[id] {
			t.Fatalf("%d is free and %d was given", id, highest)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a":                                     "2 to 4 fields",
		"a\t1\t\t" + pin + "\t":                 "2 to 4 fields",
		"a 1":                                   "2 to 4 fields",
		"\t1":                                   "asset is missing",
		"a\tone":                                `"one" is not a number`,
		"a\t-1":                                 "is not a number",
		"a\t01":                                 "is not a number",
		"a\t16777216":                           "is not a number from 0 to 16777215",
		"a\t1\tp\tnot":                          "is not a UUID",
		"a\t1\tp\t" + strings.ToUpper(pin):      "is not a UUID",
		"\"a\t1":                                "is not a quoted name",
		"\xff\t1":                               "not UTF-8",
		strings.Repeat("a", maxField+1) + "\t1": "more than 16384",
		"# kiln.ids 2: of the future":           "version 2",
		"a\t0\n\n<<<<<<< HEAD\n":                "unfinished merge",
	} {
		if _, err := Parse(FileName, []byte(text), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestFormatIsParsed(t *testing.T) {
	f := &File{}
	for i, name := range []string{"a b", "#hash", `"quoted"`, "tab\tnew\nline", "höhle/ß.png", "<<<<<<< x", "======= y", "\uFEFFbom", `back\slash`, "sprites/ui/"} {
		f.Entries = append(f.Entries, Entry{Name: Name{Asset: name, Product: name}, ID: uint32(i)}, Entry{Name: Name{Asset: name, UUID: pin}, ID: uint32(100 + i)})
	}
	got, err := Parse(FileName, f.Format(), false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Entries {
		got.Entries[i].Line = 0
	}
	if diff := cmp.Diff(f, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		t.Error(diff)
	}
	if crlf, err := Parse(FileName, []byte("\uFEFF# kiln.ids 1\r\na\t1\r\n"), false); err != nil || body(crlf) != "a 1\n" {
		t.Errorf("%v, %v", crlf, err)
	}
}

// TestClear: what is seen to have no conflict at a glance has none by the table of names, and a file as Assign writes it is seen so.
func TestClear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	clear := 0
	for range 20000 {
		f := &File{}
		for range r.IntN(6) {
			e := Entry{Name: Name{Asset: string(rune('a' + r.IntN(5))), Product: []string{"", "", "p"}[r.IntN(3)]}, ID: uint32(r.IntN(300))}
			if r.IntN(20) == 0 {
				e.UUID = pin
			}
			f.Entries = append(f.Entries, e)
		}
		if r.IntN(2) == 0 {
			f.sort()
		}
		if !f.clear() {
			continue
		}
		if clear++; len(f.conflicts()) > 0 {
			t.Fatalf("%v has conflicts: %v", f.Entries, f.conflicts())
		}
	}
	f, _, err := Assign(&File{}, []Name{{Asset: "b"}, {Asset: "a", Product: "x"}, {Asset: "a"}}, nil)
	if err != nil || !f.clear() || clear < 1000 {
		t.Errorf("%v; %d were clear", err, clear)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# kiln.ids 1: x\na\t0\nb\t1\tp\t" + pin + "\n"))
	f.Add([]byte("<<<<<<< a\na\t0\n||||||| b\n=======\n\"\\n\"\t0\n>>>>>>> c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(FileName, data, true)
		if err != nil {
			return
		}
		repaired, _, err := Repair(file, nil)
		if err != nil || len(repaired.Conflicts()) > 0 {
			t.Fatalf("repair: %v, %v", err, repaired)
		}
		again, err := Parse(FileName, repaired.Format(), false)
		if err != nil || string(again.Format()) != string(repaired.Format()) {
			t.Fatalf("%v: %q, %q", err, repaired.Format(), again.Format())
		}
	})
}

func BenchmarkAssign(b *testing.B) {
	products := make([]Name, 100_000)
	for i := range products {
		products[i] = Name{Asset: fmt.Sprintf("sprites/%05d.png", i)}
	}
	for b.Loop() {
		if _, _, err := Assign(&File{}, products, nil); err != nil {
			b.Fatal(err)
		}
	}
}
