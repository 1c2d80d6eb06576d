package build

import (
	"io/fs"
	"os"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/internal/source"
)

// distrust looks into the blobs that somebody may have edited: an output may be a hard link to its blob. Damaged ones are removed, before a job that makes
// the same, or a trace that names them, puts them in place anew. Which they are, the outputs tell that are not as they were, and if they are gone, that
// their blob is younger than they were. If it is not known how the outputs were, it is those blobs that changed after the last trace was written.
func (s *session) distrust() {
	var doubtful []digest.Hash
	for _, o := range s.before.outputs {
		p := s.pres[o.File]
		if p == source.Same || o.Hash.IsZero() {
			continue
		}
		if info, err := os.Lstat(s.w.blobs.Path(o.Hash)); err == nil && (p == source.Differs || info.ModTime().UnixNano() > o.Stat.MTime) {
			doubtful = append(doubtful, o.Hash)
		}
		s.w.edited[o.File] = source.Missing // its blob need not be looked into once more
	}
	if s.prev == nil || s.killed {
		s.w.blobs.Walk(func(h digest.Hash, info fs.FileInfo) error {
			if !info.ModTime().Before(s.logged) {
				doubtful = append(doubtful, h)
			}
			return nil
		})
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, s.p.workers(s.req.Workers))
	for _, h := range doubtful {
		slots <- struct{}{}
		wg.Go(func() {
			s.w.blobs.Verify(h) // one that cannot be read is found out when it is wanted
			<-slots
		})
	}
	wg.Wait()
}
