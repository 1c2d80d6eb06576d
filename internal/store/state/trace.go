package state

import (
	"cmp"
	"encoding/binary"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// A trace as bytes: what stands in a record of the log after its key. docs/formats/state.md has the layout.

// sign fills in what encodeTrace leaves room for in the record in the buffer.
func (e *encoder) sign(id uint64, used int64) {
	at := e.buf[recordHead+keyedHead:]
	binary.LittleEndian.PutUint64(at, id)
	binary.LittleEndian.PutUint64(at[8:], uint64(used))
}

// encodeTrace leaves room for the ID and the time when it was last used, first of all: the ID is a hash of the rest.
func encodeTrace(e *encoder, t *engine.Trace) {
	e.fixed64(0)
	e.fixed64(0)
	e.hash(&t.Fingerprint)
	e.byte(byte(t.Outcome))
	e.uint(t.Build)
	e.float(t.Seconds)
	e.int(t.Memory)
	e.bytes(t.Messages)
	e.str(t.Root)
	e.uint(uint64(len(t.Ring)))
	for _, s := range t.Ring {
		e.str(s)
	}
	why := cmp.Or(t.Why, &engine.Reason{})
	e.byte(byte(why.Cause))
	e.str(why.Subject)
	encodeObservation(e, &why.Observation)
	e.hash(&why.New)
	e.uint(uint64(len(t.Observations)))
	for i := range t.Observations {
		encodeObservation(e, &t.Observations[i])
	}
	e.uint(uint64(len(t.Products)))
	for i := range t.Products {
		encodeProduct(e, &t.Products[i])
	}
}

func encodeObservation(e *encoder, o *engine.Observation) {
	e.byte(byte(o.Kind))
	e.bool(o.Joined)
	e.uint(uint64(o.SubID))
	e.str(o.Subject)
	e.hash(&o.Value)
}

// decodeReason gives equal reasons that follow one another as one: of a project that was built at once, all are.
func decodeReason(d *decoder, s *slabs) *engine.Reason {
	r := engine.Reason{Cause: engine.Cause(d.byte()), Subject: d.str()}
	decodeObservation(d, &r.Observation)
	r.New = d.hash()
	if r == (engine.Reason{}) {
		return nil
	}
	if s.why == nil || *s.why != r {
		kept := r
		s.why = &kept
	}
	return s.why
}

func encodeProduct(e *encoder, p *engine.Product) {
	e.uint(uint64(p.SubID))
	e.str(p.Name)
	e.str(p.Type)
	e.str(cmp.Or(p.File, p.Extension)) // a file is in a platform's folder, and an extension begins with a dot
	e.hash(&p.Hash)
	e.int(p.Size)
	e.uint(uint64(len(p.References)))
	for _, r := range p.References {
		e.buf = append(e.buf, r.UUID[:]...)
		e.uint(uint64(r.SubID))
		e.bool(r.Required)
	}
}

// Least sizes of what there can be many of, in bytes.
const (
	leastString      = 1
	leastObservation = 4 + digest.Size
	leastProduct     = 6 + digest.Size
	leastReference   = 18
	leastTrace       = 9 + 6*digest.Size
)

// slabs are what a log is read into: an allocation for each trace, list of observations and list of products would take longer than all the rest.
type slabs struct {
	traces       []engine.Trace
	observations []engine.Observation
	products     []engine.Product
	lists        []*engine.Trace
	why          *engine.Reason // the last one
	times        []int64
}

const slabSize = 128

// carve gives n zero values.
func carve[T any](slab *[]T, n int) []T {
	if n > slabSize/8 {
		return make([]T, n)
	}
	if n > len(*slab) {
		*slab = make([]T, slabSize)
	}
	s := (*slab)[:n:n]
	*slab = (*slab)[n:]
	return s
}

func decodeTrace(d *decoder, s *slabs) (t *engine.Trace, used int64) {
	t = &carve(&s.traces, 1)[0]
	t.ID, used = d.fixed64(), int64(d.fixed64())
	*t = engine.Trace{ID: t.ID, Fingerprint: d.hash(), Outcome: engine.Outcome(d.byte()), Build: d.uint(), Seconds: d.float(), Memory: d.int()}
	t.Messages = d.bytes()
	t.Root = d.str()
	if n := d.count(leastString); n > 0 {
		t.Ring = make([]string, n)
		for i := range t.Ring {
			t.Ring[i] = d.str()
		}
	}
	t.Why = decodeReason(d, s)
	if n := d.count(leastObservation); n > 0 {
		t.Observations = carve(&s.observations, n)
		for i := range t.Observations {
			decodeObservation(d, &t.Observations[i])
		}
	}
	if n := d.count(leastProduct); n > 0 {
		t.Products = carve(&s.products, n)
		for i := range t.Products {
			decodeProduct(d, &t.Products[i])
		}
	}
	if t.Outcome < engine.Succeeded || t.Outcome > engine.Cyclic || t.Outcome == engine.Cyclic && len(t.Ring) == 0 {
		d.fail()
	}
	return t, used
}

func decodeObservation(d *decoder, o *engine.Observation) {
	o.Kind, o.Joined, o.SubID = engine.Kind(d.byte()), d.bool(), uint32(d.uint())
	o.Subject, o.Value = d.str(), d.hash()
}

func decodeProduct(d *decoder, p *engine.Product) {
	p.SubID = uint32(d.uint())
	p.Name, p.Type, p.File = d.str(), d.str(), d.str()
	if strings.HasPrefix(p.File, ".") && !strings.Contains(p.File, "/") {
		p.File, p.Extension = "", p.File
	}
	p.Hash, p.Size = d.hash(), d.int()
	if n := d.count(leastReference); n > 0 {
		p.References = make([]engine.Reference, n)
		for i := range p.References {
			r := &p.References[i]
			copy(r.UUID[:], d.take(16))
			r.SubID, r.Required = uint32(d.uint()), d.bool()
		}
	}
}
