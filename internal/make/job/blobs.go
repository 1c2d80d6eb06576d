package job

import (
	"os"
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/content/source"
	"github.com/kiln-pipeline/kiln/internal/store/cas"
)

// How lost or damaged contents of products are replaced.

// damaged forgets all outputs with a content whose blob was damaged: they may be hard links to it.
func (w *World) damaged(h digest.Hash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Spoilt[h] = true
	for f, o := range w.Outputs {
		if o.Hash == h {
			delete(w.Outputs, f)
			w.Edited[f] = source.Differs
		}
	}
}

// Lose records that a content is needed and cannot be had: the next build makes it.
func (w *World) Lose(h digest.Hash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Lost == nil {
		w.Lost = map[digest.Hash]bool{}
	}
	w.Lost[h] = true
}

// AnyLost reports whether there is such a content.
func (w *World) AnyLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.Lost) > 0
}

// restore makes a lost blob from an output with the same content.
func (w *World) restore(h digest.Hash, file string) bool {
	return file != "" && w.Blobs.Restore(h, filepath.Join(w.Bounds.Root(), filepath.FromSlash(file)))
}

// Open opens a blob. If the blob was lost, it is made from an output first.
func (w *World) Open(h digest.Hash) (*os.File, error) {
	f, err := w.Blobs.OpenFile(h)
	if !cas.Lost(err) {
		return f, err
	}
	var files []string
	w.mu.Lock()
	for file, o := range w.Outputs {
		if o.Hash == h {
			files = append(files, file)
		}
	}
	w.mu.Unlock()
	for _, file := range files {
		if w.restore(h, file) {
			return w.Blobs.OpenFile(h)
		}
		w.mu.Lock()
		w.Forget(file) // the next build runs the job that makes it
		w.mu.Unlock()
	}
	w.Lose(h)
	return nil, err
}
