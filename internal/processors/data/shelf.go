package data

import (
	"bytes"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/schema"
	"github.com/kiln-pipeline/kiln/processor"
)

// shelf keeps schemas that were compiled, so that the thousands of assets that one schema is for do not compile it each: of 5,000 with a
// schema of
// 17 KB, that was four fifths of the time of a build. A job still reads all that its schema is made of, as if it compiled it.
type shelf struct {
	mu   sync.Mutex
	kept map[schemaName]*kept
	size int // of the text behind them
}

// mostKept is how many bytes of text the schemas on the shelf were compiled of at most. Compiled, they take some seven times as much.
const mostKept = 2 << 20

// schemaName is what a schema is asked for by.
type schemaName struct{ path, fragment string }

// kept is a schema, and the files that it was compiled of, in the order in which they were read.
type kept struct {
	files  []schemaFile
	size   int
	schema *schema.Schema
}

type schemaFile struct {
	path string
	text []byte
}

// reader reads each file once.
type reader struct {
	job  processor.Job
	text map[string][]byte
	errs map[string]error
}

func newReader(job processor.Job) *reader {
	return &reader{job, map[string][]byte{}, map[string]error{}}
}

func (r *reader) read(file string) ([]byte, error) {
	text, ok := r.text[file]
	if !ok {
		text, r.errs[file] = readBounded(r.job, file)
		r.text[file] = text
	}
	return text, r.errs[file]
}

// find finds a schema of which all files are as they were. One after the other says which is the next, so that up to the first that differs
// the job reads what it would to compile it.
func (s *shelf) find(r *reader, n schemaName) *schema.Schema {
	s.mu.Lock()
	k := s.kept[n]
	s.mu.Unlock()
	if k == nil {
		return nil
	}
	for _, f := range k.files {
		if text, err := r.read(f.path); err != nil || !bytes.Equal(text, f.text) {
			return nil
		}
	}
	return k.schema
}

func (s *shelf) put(n schemaName, k *kept) {
	for _, f := range k.files {
		k.size += len(f.text)
	}
	if k.size > mostKept {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.kept[n]; old != nil {
		s.size -= old.size
		delete(s.kept, n)
	}
	if s.size+k.size > mostKept || s.kept == nil {
		s.kept, s.size = map[schemaName]*kept{}, 0
	}
	s.kept[n] = k
	s.size += k.size
}
