package share

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/varint"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Limits of a hint. New items are added at the front, and the oldest are removed.
const (
	MaxLists = 16      // lists of observations
	MaxSeen  = 16      // values of runs for each list
	maxHint  = 1 << 18 // bytes, unless there is only one list
)

// HintKey is the key of a task's hint. of contains everything that is known about the task before
// it runs.
func HintKey(of digest.Hash) Key { return keyOf("kiln cache hint 1\n", of) }

func keyOf(kind string, of digest.Hash) Key {
	return sha256.Sum256(append([]byte(kind), of[:]...))
}

// List is what a run observed, in order, without values.
type List struct {
	Observations []engine.Observation

	// Seen are the values that runs with this list saw, shortened, those of the newest run first. If the
	// list has no other tasks, only the newest are kept, for display.
	Seen [][]uint32
}

// Hint has the lists of observations of a task's runs, the newest first.
type Hint struct{ Lists []List }

// Short is the shortened value in a hint.
func Short(value digest.Hash) uint32 { return binary.LittleEndian.Uint32(value[:]) }

// Asks reports whether a list contains another task.
func (l *List) Asks() bool {
	return slices.ContainsFunc(l.Observations, func(o engine.Observation) bool { return o.Kind < engine.FirstLeaf })
}

// Add adds the observations of a run at the front, and reports whether that changes the hint.
func (h *Hint) Add(run []engine.Observation) bool {
	bare, seen := make([]engine.Observation, len(run)), make([]uint32, len(run))
	for i := range run {
		bare[i], seen[i] = run[i], Short(run[i].Value)
		bare[i].Value = digest.Hash{}
	}
	at := slices.IndexFunc(h.Lists, func(l List) bool { return slices.Equal(l.Observations, bare) })
	l := List{Observations: bare}
	if at >= 0 {
		l = h.Lists[at]
		if at == 0 && len(l.Seen) > 0 && slices.Equal(l.Seen[0], seen) {
			return false
		}
		h.Lists = slices.Delete(h.Lists, at, at+1)
	}
	was := l.Seen
	l.Seen = [][]uint32{seen}
	if l.Asks() {
		for _, s := range was {
			if !slices.Equal(s, seen) && len(l.Seen) < MaxSeen {
				l.Seen = append(l.Seen, s)
			}
		}
	}
	h.Lists = slices.Insert(h.Lists, 0, l)
	h.Lists = h.Lists[:min(len(h.Lists), MaxLists)]
	return true
}

// Merge adds the lists of another hint.
func (h *Hint) Merge(other *Hint) {
	for _, l := range other.Lists {
		at := slices.IndexFunc(h.Lists, func(o List) bool { return slices.Equal(o.Observations, l.Observations) })
		if at < 0 {
			h.Lists = append(h.Lists, l)
		} else {
			h.Lists[at].Seen = append(h.Lists[at].Seen, l.Seen...)
		}
	}
}

// Encode encodes a hint. It omits the oldest lists if there are too many bytes, and returns nil if the newest
// alone is too large.
func (h *Hint) Encode(key Key) []byte {
	lists := h.Lists
	for seen := MaxSeen; ; {
		e := begin(hintMagic, key)
		e.Uint(uint64(len(lists)))
		for i := range lists {
			encodeList(e, &lists[i], seen)
		}
		b := end(e)
		switch {
		case len(b) <= maxHint, seen == 1 && len(lists) == 1 && len(b) <= MaxValue:
			return b
		case len(lists) > 1:
			lists = lists[:len(lists)/2]
		case seen == 1 || len(lists) == 0:
			return nil
		default:
			seen /= 2
		}
	}
}

func encodeList(e *varint.Encoder, l *List, most int) {
	e.Uint(uint64(len(l.Observations)))
	for i := range l.Observations {
		o := &l.Observations[i]
		e.Byte(byte(o.Kind))
		e.Bool(o.Joined)
		e.Uint(uint64(o.SubID))
		e.Str(o.Subject)
	}
	seen := l.Seen[:min(most, len(l.Seen))]
	e.Uint(uint64(len(seen)))
	for _, s := range seen {
		for _, v := range s {
			e.Fixed32(v)
		}
	}
}

// leastLooked is the minimum size of an observation in a list, in bytes.
const leastLooked = 4

// DecodeHint decodes the hint of a key.
func DecodeHint(key Key, value []byte) (*Hint, error) {
	d, err := open(hintMagic, key, value)
	if err != nil {
		return nil, err
	}
	h := &Hint{}
	n := d.Count(2)
	if n > MaxLists {
		d.Fail()
	}
	for ; n > 0 && d.Err == nil; n-- {
		h.Lists = append(h.Lists, decodeList(d))
	}
	return h, closed(d)
}

func decodeList(d *varint.Decoder) (l List) {
	if n := d.Count(leastLooked); n > 0 {
		l.Observations = make([]engine.Observation, n)
	}
	for i := range l.Observations {
		o := &l.Observations[i]
		o.Kind, o.Joined, o.SubID, o.Subject = engine.Kind(d.Byte()), d.Bool(), d.Uint32(), d.Str()
	}
	n := d.Uint()
	if n > MaxSeen {
		d.Fail()
	}
	for ; n > 0 && d.Err == nil; n-- {
		b := d.Take(4 * uint64(len(l.Observations)))
		s := make([]uint32, len(b)/4)
		for i := range s {
			s[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		l.Seen = append(l.Seen, s)
	}
	return l
}
