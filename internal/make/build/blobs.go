package build

import (
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// What becomes of products whose contents were lost or damaged.

// damaged drops all outputs with a content of which the blob was damaged: they may be the same file.
func (w *world) damaged(h digest.Hash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spoilt[h] = true
	for f, o := range w.outputs {
		if o.Hash == h {
			delete(w.outputs, f)
			w.edited[f] = source.Differs
		}
	}
}

// restore makes a lost blob anew of an output that holds it.
func (w *world) restore(h digest.Hash, file string) bool {
	return file != "" && w.blobs.Restore(h, filepath.Join(w.outputDir, filepath.FromSlash(file)))
}

// open opens a blob, which is made anew of an output if it was lost.
func (w *world) open(h digest.Hash) (*os.File, error) {
	f, err := w.blobs.Open(h)
	if !cas.Lost(err) {
		return f, err
	}
	var files []string
	w.mu.Lock()
	for file, o := range w.outputs {
		if o.Hash == h {
			files = append(files, file)
		}
	}
	w.mu.Unlock()
	for _, file := range files {
		if w.restore(h, file) {
			return w.blobs.Open(h)
		}
		w.mu.Lock()
		w.forget(file) // the job that makes it runs in the next build
		w.mu.Unlock()
	}
	return nil, err
}
