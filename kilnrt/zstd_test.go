package kilnrt_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/kilnrt"
	"github.com/kiln-pipeline/kiln/kilnrt/internal/judge"
)

// TestFrames tests this reader with frames whose content is known. The other readers are compared with this one.
func TestFrames(t *testing.T) {
	sets, err := judge.FrameSets(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		path := filepath.Join(t.TempDir(), "p")
		if err := set.Write(path); err != nil {
			t.Fatal(err)
		}
		p, err := kilnrt.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for i, f := range set.Frames {
			r, err := p.At(i)
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Bytes()
			if f.Wrong != (err != nil) || err == nil && !bytes.Equal(b, f.Content) {
				t.Errorf("%s: %.40q, %v; it should be %.40q", f.Name, b, err, f.Content)
			}
		}
	}
}
