package source

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDangles: over links in the way, by relative and absolute paths, up to where nothing is.
func TestDangles(t *testing.T) {
	links(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	if err := os.MkdirAll(at("real/deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("real/there"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, l := range [][2]string{
		{"real/plain", "nothing"}, {"folder", "real"}, {"up", "folder/deep/../up"}, {"absolute", at("folder/gone")}, {"chain", "real/plain"},
		{"away", "no/such/folder/x"}, {"came", "real/there"}, {"loop", "pool"}, {"pool", "loop"},
	} {
		if err := os.Symlink(filepath.FromSlash(l[1]), at(l[0])); err != nil {
			t.Fatal(err)
		}
	}
	for link, want := range map[string]string{
		"real/plain": "real/nothing", "folder/plain": "real/nothing", "up": "real/up", "absolute": "real/gone", "chain": "real/nothing",
		"away": "no/such/folder/x", "came": "real/there", "loop": "",
	} {
		got, ok := Dangles(at(link))
		if ok && got != at(want) || ok != (want != "") {
			t.Errorf("%s: %s, %t; want %s", link, got, ok, want)
		}
	}
}
