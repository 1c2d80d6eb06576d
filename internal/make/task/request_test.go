package task

import (
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// TestRequestText: a request is read as it was written, whatever is in its names, and no two are written alike, for Kiln or for people.
func TestRequestText(t *testing.T) {
	hash := digest.Of([]byte("x"))
	inner := Request{"obj2gltf", `{"a":"\u0001"}`, "", Source{Kind: File, Path: "a b/\"c\" [pc].obj"}}
	all := []Request{
		{"seed", "{}", "", Source{}},
		{"seed", `{"n":1}`, "", Source{}},
		{"texture", "{}", "", Source{Kind: File, Path: "x.png"}},
		{"texture", "{}", "", Source{Kind: Bytes, Hash: hash, Extension: ".png"}},
		{"texture", "{}", "", Source{Kind: Bytes, Hash: hash}},
		{"texture", "{}", "", Source{Kind: Product, By: Subject{Asset: "x.png"}}},
		{"texture", "{}", "", Source{Kind: Product, By: Subject{Asset: "x.png"}, SubID: 7}},
		{"texture", "{}", "", Source{Kind: Product, By: Subject{Asset: "x.png", Part: "p \" q", Processor: "gltf"}, SubID: 7}},
		{"gltf", "{}", "", Source{Kind: Product, By: Subject{Asset: inner.ID()}}},
		inner,
		{"texture", "{}", "input \"a \\\"b\"\n", Source{Kind: File, Path: "x.png"}},
		{"texture", "{}", "input \"a\"\nneed \"b/**\"\n", Source{Kind: File, Path: "x.png"}},
	}
	ids, names := map[string]bool{}, map[string]bool{}
	for _, r := range all {
		id := r.ID()
		got, ok := ParseRequest(id)
		if !ok || got != r || !IsRequest(id) || !AsksFor(Subject{Platform: "pc", Asset: id}.String()) {
			t.Errorf("%+v is read as %+v", r, got)
		}
		if strings.Contains(id, "\x00") || strings.ContainsAny(r.String(), "\x00\x01") || ids[id] || names[r.String()] {
			t.Errorf("%q, %q", id, r.String())
		}
		ids[id], names[r.String()] = true, true
	}
	for _, bad := range []string{"", "x.png", "//", "//texture", "//texture\x01{}", "//texture\x01{}\x01z", "//texture\x01{}\x01b12", "//texture\x01{}\x01p7", "//texture\x01{}\x01p7 \"\" \"\" "} {
		if r, ok := ParseRequest(bad); ok {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
	if name := all[3].Source.FileName(); !IsFileName(name) || !strings.HasSuffix(name, ".png") || IsFileName("~notes.txt") || IsFileName("~0123456789abcdeg.png") {
		t.Errorf("%q", name)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add("//texture\x01{}\x01p7 \"\" \"\" x.png")
	f.Add("//seed\x01{}\x01")
	f.Fuzz(func(t *testing.T, id string) {
		r, ok := ParseRequest(id)
		if !ok {
			return
		}
		if again, ok := ParseRequest(r.ID()); !ok || again != r {
			t.Errorf("%q: %+v, then %+v", id, r, again)
		}
		_ = r.String()
	})
}
