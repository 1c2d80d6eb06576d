package data

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kiln-pipeline/kiln/processor/processortest"
)

// shelved are jobs on one shelf, each beside one without.
type shelved struct {
	*testing.T
	p     Processor
	files map[string][]byte
}

// run does the job of an asset, and gives the schema that is on the shelf then.
func (s *shelved) run(asset string) *kept {
	s.Helper()
	c := processortest.Case{Files: s.files, Asset: asset, Settings: with(func(s *Settings) { s.Schema = "/s.json" })}
	told := func(p Processor) string {
		var b strings.Builder
		tell(&b, processortest.Run(s.T, p, c))
		return b.String()
	}
	if diff := cmp.Diff(told(Processor{}), told(s.p)); diff != "" {
		s.Errorf("%s: -without a shelf +with one\n%s", asset, diff)
	}
	s.p.shelf.mu.Lock()
	defer s.p.shelf.mu.Unlock()
	return s.p.shelf.kept[schemaName{"s.json", ""}]
}

func newShelved(t *testing.T) *shelved {
	return &shelved{t, New(), map[string][]byte{
		"s.json": []byte(`{"$ref": "ref/name.json", "properties": {"next": {"kiln:asset": true}}, "unevaluatedProperties": false}`),
		"ref/name.json": []byte(`{"$dynamicRef": "#it", "properties": {"name": {"pattern": "^[a-z]+$"}, "age": {"minimum": 0}},
			"$defs": {"it": {"$dynamicAnchor": "it", "required": ["name"]}}}`),
		"good.json":    []byte(`{"name": "ann", "age": 7, "next": "bad.json"}`),
		"bad.json":     []byte(`{"name": "Bob", "age": -1}`),
		"another.json": []byte(`{"name": "cem", "more": 1}`),
	}}
}

func TestShelf(t *testing.T) {
	s := newShelved(t)
	first := s.run("good.json")
	if first == nil || s.run("bad.json") != first || s.run("another.json") != first {
		t.Error("three assets of a schema do not share it")
	}
	for _, edit := range []struct{ file, old, new string }{
		{"ref/name.json", "[a-z]", "[A-Z]"},
		{"s.json", `"unevaluatedProperties": false`, `"required": ["age"]`},
		{"s.json", "ref/name.json", "name.json"}, // there is none
	} {
		s.files[edit.file] = []byte(strings.Replace(string(s.files[edit.file]), edit.old, edit.new, 1))
		s.run("good.json")
		s.run("bad.json")
	}
	s.files["name.json"] = s.files["ref/name.json"]
	last := s.run("good.json")
	if last == first || len(last.files) != 2 || last.files[1].path != "name.json" {
		t.Errorf("the schema on the shelf is an old one")
	}
	delete(s.files, "name.json")
	s.run("good.json")
	s.files["name.json"] = []byte("{")
	s.run("good.json")
}

// TestShelfAtOnce has many jobs ask one schema at a time.
func TestShelfAtOnce(t *testing.T) {
	s := newShelved(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				s.run("good.json")
				s.run("bad.json")
				s.run("another.json")
			}
		})
	}
	wg.Wait()
}

// TestShelfSize puts more on a shelf than it holds.
func TestShelfSize(t *testing.T) {
	s := &shelf{}
	most := 0
	for i := range 100 {
		n := schemaName{fmt.Sprint(i % 60), ""}
		s.put(n, &kept{files: []schemaFile{{"a", make([]byte, mostKept/8)}, {"b", make([]byte, i)}}})
		if s.kept[n] == nil {
			t.Fatal(n)
		}
		size := 0
		for _, k := range s.kept {
			size += k.size
		}
		most = max(most, size)
		if size != s.size || size > mostKept {
			t.Fatalf("after %d: %d bytes, counted %d", i, size, s.size)
		}
	}
	if most < mostKept/2 {
		t.Errorf("never more than %d bytes", most)
	}
	n := schemaName{"large", ""}
	s.put(n, &kept{files: []schemaFile{{"a", make([]byte, mostKept+1)}}})
	if s.kept[n] != nil {
		t.Error("a schema larger than the shelf is on it")
	}
}
