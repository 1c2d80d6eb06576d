package build

import (
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/digest"
	"github.com/kiln-pipeline/kiln/internal/source"
)

// distrust looks into the blobs that somebody may have edited: an output may be a hard link to its blob. Damaged ones are removed, before a job that makes
// the same, or a trace that names them, puts them in place anew. Which they are, the outputs tell that are not as they were, and if they are gone, that
// their blob is younger than they were. If it is not known how the outputs were, it is those blobs that changed after the last trace was written.
func (s *session) distrust() {
	type doubt struct {
		blob  digest.Hash
		since int64 // it is in doubt if it was written later than this, in nanoseconds
	}
	var doubts []doubt
	for _, o := range s.before.outputs {
		p := s.pres[o.File]
		if p == source.Same || o.Hash.IsZero() {
			continue
		}
		since := o.Stat.MTime
		if p == source.Differs {
			since = math.MinInt64
		}
		doubts = append(doubts, doubt{o.Hash, since})
		s.w.edited[o.File] = source.Missing // its blob need not be looked into once more
	}
	if s.prev == nil || s.killed {
		s.w.blobs.Walk(func(h digest.Hash, info fs.FileInfo) error {
			if !info.ModTime().Before(s.logged) {
				doubts = append(doubts, doubt{h, math.MinInt64})
			}
			return nil
		})
	}
	var wg sync.WaitGroup
	for some := range slices.Chunk(doubts, 1+len(doubts)/s.p.workers(s.req.Workers)) {
		wg.Go(func() {
			for _, d := range some {
				if info, err := os.Lstat(s.w.blobs.Path(d.blob)); err == nil && info.ModTime().UnixNano() > d.since {
					s.w.blobs.Verify(d.blob) // one that cannot be read is found out when it is wanted
				}
			}
		})
	}
	wg.Wait()
}
