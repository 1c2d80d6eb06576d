package state

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"sync"

	"github.com/kiln-pipeline/kiln/internal/base/varint"
)

// Edge means that the current trace of a task observed a subject. There may be more edges than observations, and
// different subjects may have the same hash. So following edges finds every concerned task, and possibly more.
type Edge struct {
	Subject uint64 // hash by the function Subject
	Task    int    // number of the task
}

// Glob is a pattern that traces observed, and their tasks.
type Glob struct {
	Pattern string
	Tasks   []int
}

// Classes of subjects.
const (
	PathSubject  = 'p' // a path below the source roots: content, presence or absence
	AssetSubject = 'a' // an asset by any of its names: whether it exists
	TaskSubject  = 't' // a task by any of its names: its products
)

// Subject hashes a subject of a class: FNV-1a, 64 bits.
func Subject(class byte, subject string) uint64 {
	h := uint64(14695981039346656037)
	h = (h ^ uint64(class)) * 1099511628211
	for i := range len(subject) {
		h = (h ^ uint64(subject[i])) * 1099511628211
	}
	return h
}

// edges are the edges on disk and those that deltas added.
type edges struct {
	raw   []byte // edgeSize bytes each, sorted
	more  []Edge
	globs []Glob
}

const edgeSize = 12

func encodeEdges(e *varint.Encoder, list []Edge, globs []Glob) {
	slices.SortFunc(list, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Task, b.Task)) })
	list = slices.Compact(list)
	e.Fixed64(uint64(len(list)))
	for _, x := range list {
		e.Fixed64(x.Subject)
		e.Buf = binary.LittleEndian.AppendUint32(e.Buf, uint32(x.Task))
	}
	encodeGlobs(e, globs)
}

func encodeGlobs(e *varint.Encoder, globs []Glob) {
	e.Uint(uint64(len(globs)))
	for _, g := range globs {
		e.Str(g.Pattern)
		e.Uint(uint64(len(g.Tasks)))
		for _, t := range g.Tasks {
			e.Uint(uint64(t))
		}
	}
}

func decodeEdges(data []byte) (x edges, ok bool) {
	if len(data) < 8 {
		return x, false
	}
	n := binary.LittleEndian.Uint64(data)
	if n > uint64(len(data)-8)/edgeSize {
		return x, false
	}
	end := 8 + int(n)*edgeSize
	x.raw = data[8:end]
	d := varint.Decoder{Buf: data[end:]}
	x.globs = decodeGlobs(&d)
	return x, d.Err == nil
}

func decodeGlobs(d *varint.Decoder) []Glob {
	globs := make([]Glob, d.Count(2))
	for i := range globs {
		globs[i].Pattern = d.Str()
		globs[i].Tasks = make([]int, d.Count(1))
		for k := range globs[i].Tasks {
			globs[i].Tasks[k] = int(d.Uint() & (1<<31 - 1))
		}
	}
	return globs
}

// Looked returns the numbers of the tasks that may have observed a subject.
func (t *Tasks) Looked(subject uint64) []int {
	raw := t.edges.raw
	n := len(raw) / edgeSize
	at := sort.Search(n, func(i int) bool { return binary.LittleEndian.Uint64(raw[i*edgeSize:]) >= subject })
	var list []int
	for ; at < n && binary.LittleEndian.Uint64(raw[at*edgeSize:]) == subject; at++ {
		if task := int(binary.LittleEndian.Uint32(raw[at*edgeSize+8:])); task < t.Len() {
			list = append(list, task)
		}
	}
	for _, x := range t.edges.more {
		if x.Subject == subject && x.Task < t.Len() {
			list = append(list, x.Task)
		}
	}
	return list
}

// Globs returns all patterns that traces observed.
func (t *Tasks) Globs() []Glob { return t.edges.globs }

// Ahead begins to read the tasks, for which Tasks then waits.
func (s *Snapshot) Ahead() {
	if s.tasks == nil && s.ahead == nil {
		s.ahead = sync.OnceValues(s.readTasks)
		go s.ahead()
	}
}

// Tasks reads the tasks. An error means that the snapshot cannot be used.
func (s *Snapshot) Tasks() (*Tasks, error) {
	if s.tasks != nil {
		return s.tasks, nil
	}
	s.Ahead()
	t, err := s.ahead()
	if err != nil {
		return nil, err
	}
	for _, d := range s.later {
		if !t.take(d) {
			return nil, errDamaged
		}
	}
	s.tasks = t
	return t, nil
}

// readTasks reads the tasks of the image.
func (s *Snapshot) readTasks() (t *Tasks, err error) {
	var edges edges
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() {
		var data []byte
		var ok bool
		if data, failed = s.load(blockEdges); failed == nil {
			if edges, ok = decodeEdges(data); !ok {
				failed = errDamaged
			}
		}
	})
	data, err := s.load(blockTasks)
	if err == nil {
		var ok bool
		if t, ok = decodeTasks(data); !ok {
			err = errDamaged
		}
	}
	if wg.Wait(); err != nil || failed != nil {
		return nil, cmp.Or(err, failed)
	}
	t.edges = edges
	return t, nil
}
