package state

import (
	"cmp"
	"encoding/binary"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/varint"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// The encoding of a trace in a record of the log, after its key. docs/formats/state.md has the layout.

// sign fills in the fields that encodeTrace left empty in the record in the buffer.
func sign(e *varint.Encoder, id uint64, used int64) {
	at := e.Buf[recordHead+keyedHead:]
	binary.LittleEndian.PutUint64(at, id)
	binary.LittleEndian.PutUint64(at[8:], uint64(used))
}

// away is a bit of the outcome of a run on another machine, whose name is the end of the record.
const away = 0x20

// shareable is a flag in the outcome.
const shareable = 0x80

// encodeTrace leaves the fields for the ID and the time of last use empty, at the beginning: the ID is a hash of the
// rest.
func encodeTrace(e *varint.Encoder, t *engine.Trace) {
	e.Fixed64(0)
	e.Fixed64(0)
	e.Hash(&t.Fingerprint)
	outcome := byte(t.Outcome)
	if t.Shareable {
		outcome |= shareable
	}
	if t.Adopted {
		outcome |= adopted
	}
	if t.Worker != "" {
		outcome |= away
	}
	e.Byte(outcome)
	e.Uint(t.Build)
	e.Float(t.Seconds)
	e.Int(t.Memory)
	e.Bytes(t.Messages)
	e.Str(t.Root)
	e.Uint(uint64(len(t.Cycle)))
	for _, s := range t.Cycle {
		e.Str(s)
	}
	why := cmp.Or(t.Why, &engine.Reason{})
	e.Byte(byte(why.Cause))
	e.Str(why.Subject)
	encodeObservation(e, &why.Observation)
	e.Hash(&why.New)
	e.Uint(uint64(len(t.Observations)))
	for i := range t.Observations {
		encodeObservation(e, &t.Observations[i])
	}
	e.Uint(uint64(len(t.Products)))
	for i := range t.Products {
		encodeProduct(e, &t.Products[i])
	}
	encodeFacts(e, t.Products, t.Worker != "" || t.Origin != "")
	if t.Worker != "" {
		e.Str(t.Worker)
	}
	if t.Origin != "" {
		e.Str(t.Origin)
	}
}

// encodeFacts writes the facts of those products that have any. It is the end of the record, unless more follows, and is left out where
// there are none: so a trace of an earlier Kiln is read as one without facts.
func encodeFacts(e *varint.Encoder, products []engine.Product, more bool) {
	n := 0
	for i := range products {
		if products[i].Facts != "" {
			n++
		}
	}
	if n == 0 && !more {
		return
	}
	e.Uint(uint64(n))
	for i := range products {
		if products[i].Facts != "" {
			e.Uint(uint64(i))
			e.Str(products[i].Facts)
		}
	}
}

func decodeFacts(d *varint.Decoder, products []engine.Product) {
	if len(d.Buf) == 0 {
		return
	}
	for range d.Count(leastString + 1) {
		i, facts := d.Uint(), d.Str()
		if i >= uint64(len(products)) {
			d.Fail()
			return
		}
		products[i].Facts = facts
	}
}

// adopted is added to the outcome of a trace whose result came from another build. A Kiln that does not know it
// considers the log to end there.
const adopted = 0x40

func encodeObservation(e *varint.Encoder, o *engine.Observation) {
	e.Byte(byte(o.Kind))
	e.Bool(o.Joined)
	e.Uint(uint64(o.SubID))
	e.Str(o.Subject)
	e.Hash(&o.Value)
}

// decodeReason returns equal consecutive reasons as one value: after a build of a whole project, all are equal.
func decodeReason(d *varint.Decoder, s *slabs) *engine.Reason {
	r := engine.Reason{Cause: engine.Cause(d.Byte()), Subject: d.Str()}
	decodeObservation(d, &r.Observation)
	r.New = d.Hash()
	if r == (engine.Reason{}) {
		return nil
	}
	if s.why == nil || *s.why != r {
		kept := r
		s.why = &kept
	}
	return s.why
}

func encodeProduct(e *varint.Encoder, p *engine.Product) {
	e.Uint(uint64(p.SubID))
	e.Str(p.Name)
	e.Str(p.Type)
	e.Str(cmp.Or(p.File, p.Extension)) // a file is in a platform's folder, while an extension begins with a dot
	e.Hash(&p.Hash)
	e.Int(p.Size)
	e.Uint(uint64(len(p.References)))
	for _, r := range p.References {
		e.Buf = append(e.Buf, r.UUID[:]...)
		e.Uint(uint64(r.SubID))
		e.Bool(r.Required)
	}
}

// Minimum sizes of repeated parts, in bytes.
const (
	leastString      = 1
	leastObservation = 4 + digest.Size
	leastProduct     = 6 + digest.Size
	leastReference   = 18
	leastTrace       = 9 + 6*digest.Size
)

// slabs are allocated for many traces, lists of observations and lists of products at once. Single allocations would
// take longer than everything else.
type slabs struct {
	traces       []engine.Trace
	observations []engine.Observation
	products     []engine.Product
	kept         []kept
	why          *engine.Reason // the last reason
}

const slabSize = 128

// carve returns n zero values.
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

func decodeTrace(d *varint.Decoder, s *slabs) (t *engine.Trace, used int64) {
	t = &carve(&s.traces, 1)[0]
	t.ID, used = d.Fixed64(), int64(d.Fixed64())
	*t = engine.Trace{ID: t.ID, Fingerprint: d.Hash(), Outcome: engine.Outcome(d.Byte()), Build: d.Uint(), Seconds: d.Float(), Memory: d.Int()}
	t.Shareable, t.Adopted = t.Outcome&shareable != 0, t.Outcome&adopted != 0
	worker := t.Outcome&away != 0
	t.Outcome &^= shareable | adopted | away
	t.Messages = d.Bytes()
	t.Root = d.Str()
	if n := d.Count(leastString); n > 0 {
		t.Cycle = make([]string, n)
		for i := range t.Cycle {
			t.Cycle[i] = d.Str()
		}
	}
	t.Why = decodeReason(d, s)
	if n := d.Count(leastObservation); n > 0 {
		t.Observations = carve(&s.observations, n)
		for i := range t.Observations {
			decodeObservation(d, &t.Observations[i])
		}
	}
	if n := d.Count(leastProduct); n > 0 {
		t.Products = carve(&s.products, n)
		for i := range t.Products {
			decodeProduct(d, &t.Products[i])
		}
	}
	decodeFacts(d, t.Products)
	if worker && len(d.Buf) > 0 { // a trace of an earlier Kiln ends here
		t.Worker = d.Str()
	}
	if t.Adopted && len(d.Buf) > 0 {
		t.Origin = d.Str()
	}
	if t.Outcome < engine.Succeeded || t.Outcome > engine.Cyclic || t.Outcome == engine.Cyclic && len(t.Cycle) == 0 {
		d.Fail()
	}
	return t, used
}

func decodeObservation(d *varint.Decoder, o *engine.Observation) {
	o.Kind, o.Joined, o.SubID = engine.Kind(d.Byte()), d.Bool(), uint32(d.Uint())
	o.Subject, o.Value = d.Str(), d.Hash()
}

func decodeProduct(d *varint.Decoder, p *engine.Product) {
	p.SubID = uint32(d.Uint())
	p.Name, p.Type, p.File = d.Str(), d.Str(), d.Str()
	if strings.HasPrefix(p.File, ".") && !strings.Contains(p.File, "/") {
		p.File, p.Extension = "", p.File
	}
	p.Hash, p.Size = d.Hash(), d.Int()
	if n := d.Count(leastReference); n > 0 {
		p.References = make([]engine.Reference, n)
		for i := range p.References {
			r := &p.References[i]
			copy(r.UUID[:], d.Take(16))
			r.SubID, r.Required = uint32(d.Uint()), d.Bool()
		}
	}
}
