package data

import (
	"bytes"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/media/schema"
	"github.com/kiln-pipeline/kiln/processor"
)

// shelf caches compiled schemas, so that they are not compiled for each of the thousands of assets that use one: with
// 5,000 assets and a schema of 17 KB, that was four fifths of the time of a build. A job still reads all files of its
// schema, as if it compiled it.
type shelf struct {
	mu   sync.Mutex
	kept map[schemaName]*kept
	size int // size of the source text
}

// mostKept is the maximum source text of the cached schemas, in bytes. Compiled, they take about seven times as much.
const mostKept = 2 << 20

// schemaName identifies a schema.
type schemaName struct{ path, fragment string }

// kept is a schema, and the files from which it was compiled, in the order in which they were read.
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

// find returns a schema whose files are all unchanged. It reads them in order and stops at the first that differs, so
// the job reads only files that it would read to compile the schema.
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
