package cas

import (
	"math"
	"os"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

// TestNoted: what blobs looked like is known to the next store, also if the list was cut short, and forgotten when it is to be.
func TestNoted(t *testing.T) {
	dir := t.TempDir() + "/cas"
	var all []digest.Hash
	next := func(content string) *Store {
		t.Helper()
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if content != "" {
			all = append(all, put(t, s, []byte(content)))
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	known := func(want int) {
		t.Helper()
		s, n := OpenReadOnly(dir), 0
		for _, h := range all {
			if s.Known(h) {
				n++
			}
			if !has(s, h) {
				t.Errorf("%s is not sound", h.Short())
			}
		}
		if n != want {
			t.Errorf("%d of %d are known, not %d", n, len(all), want)
		}
	}
	next("a")
	next("b")
	known(2)
	list, err := os.ReadFile(dir + notedFile)
	if err != nil {
		t.Fatal(err)
	}
	for cut, left := range map[int]int{1: 1, recordSize: 1, recordSize + 1: 0, len(list) - 3: 0} {
		if err := os.WriteFile(dir+notedFile, list[:len(list)-cut], 0o666); err != nil {
			t.Fatal(err)
		}
		known(left)
		next("c")
		all = all[:2]
		known(left)
	}
	if err := os.Remove(dir + notedFile); err != nil {
		t.Fatal(err)
	}
	known(0)
	s := next("d")
	known(1)
	if err := s.Distrust(math.MinInt64); err != nil {
		t.Fatal(err)
	}
	known(0)
}
