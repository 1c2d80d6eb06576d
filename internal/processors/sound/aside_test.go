package sound

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/processor"
)

// scratchJob is a job that has a scratch folder, and nothing else.
type scratchJob struct {
	processor.Job
	dir string
}

func (j scratchJob) Scratch() (string, error) { return j.dir, nil }

// What is written, also before the end, is what is read, whether it stays in memory or not.
func TestAside(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1000, asideMemory - 1, asideMemory, asideMemory + 1, 3*asideMemory + asidePiece/2} {
		dir := t.TempDir()
		a := newAside(scratchJob{dir: dir}, int64(size/2))
		var want []byte
		for len(want) < size {
			p := make([]byte, min(1+r.IntN(asidePiece*3/2), size-len(want)))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			check(t, a, p)
			want = append(want, p...)
			if at := r.IntN(len(want)); r.IntN(4) == 0 { // as FLAC completes its head
				if _, err := a.Seek(int64(at), io.SeekStart); err != nil {
					t.Fatal(err)
				}
				over := p[:min(len(p), len(want)-at)]
				check(t, a, over)
				copy(want[at:], over)
				if end, err := a.Seek(0, io.SeekEnd); err != nil || end != int64(len(want)) {
					t.Fatal(end, err)
				}
			}
		}
		if now, err := a.Seek(0, io.SeekCurrent); err != nil || now != int64(size) {
			t.Fatal(now, err)
		}
		if inFile := a.file != nil; inFile != (size > asideMemory) {
			t.Errorf("%d bytes in a file: %v", size, inFile)
		}
		var got bytes.Buffer
		if err := a.copy(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes: %v, or other bytes", size, err)
		}
		name, err := a.name()
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(data, want) {
			t.Errorf("%d bytes: the file of a program has others, %v", size, err)
		}
		a.remove()
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%d bytes: %v is left", size, left)
		}
	}
}

func check(t *testing.T, a *aside, p []byte) {
	t.Helper()
	if n, err := a.Write(p); n != len(p) || err != nil {
		t.Fatal(n, err)
	}
}
