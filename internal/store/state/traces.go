// Package state stores what a build needs to know about earlier builds: the traces of every key, and a snapshot of the
// tables of files and outputs. Losing them is harmless: what is not known is built again.
//
// Traces are in a log. A record is added when a job ends, before its outputs are put in place, so that the build after
// a killed one continues from there; an incomplete end is cut off. The snapshot is written at the end of a build.
// Formats: docs/formats/state.md.
package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/varint"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// TracesVersion is in the header of the log; a log of another version is renamed and not used.
const TracesVersion = 3

// KeptTraces is how many traces a key keeps: enough to switch between some branches.
const KeptTraces = 8

var (
	tracesMagic = []byte("KILN\x00trc")
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

const (
	headerSize = 12
	logHead    = headerSize + 8 + 4 // followed by the time when the log was created, and a checksum
	recordHead = 8
	maxRecord  = 256 << 20

	// A record's payload begins with its kind, its key, and the position of the previous record with that
	// key.
	keyedHead = 1 + digest.Size + 8
)

// MaxRecord is the maximum size of a trace in the log; tests lower it.
var MaxRecord = maxRecord

// ErrTooLarge means that a trace is larger than MaxRecord. It was not stored.
var ErrTooLarge = errors.New("state: too large to be kept")

// Kinds of record in the log.
const (
	recordTrace  = 1
	recordUse    = 2
	recordForget = 3
)

// Traces is the log, read into memory. It is an engine.Store.
type Traces struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	file  *os.File // nil: read only
	byKey *digest.Index[kept]
	made  uint64 // when the log was created or rewritten, in nanoseconds since 1970: distinguishes logs of the same size
	size  int64
	live  int64 // bytes of records that are still used
	slabs slabs // for load
	enc   varint.Encoder

	scratch []byte // for drop
	last    uint64 // highest build number of a trace

	find    func(engine.Key) int64 // position of the last record of a key; nil: all records were read when the log was opened
	damaged bool                   // a record was found damaged later
}

// Mark identifies a state of the log.
type Mark struct {
	Made uint64
	Size int64
	Live int64 // bytes of records that are still used
}

// Holds reports whether the log at path still has this state.
func (m Mark) Holds(path string) bool {
	f, err := disk.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	ok, err := m.holds(f)
	return ok && err == nil
}

func (m Mark) holds(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() != m.Size {
		return false, err
	}
	var head [logHead]byte
	_, err = f.ReadAt(head[:], 0)
	return bytes.Equal(head[:], logHeader(m.Made)), err
}

// Wasteful reports whether more than half of the log is unused, so that it should be read completely and
// compacted.
func (m Mark) Wasteful() bool { return m.Size > 2*m.Live+compactSlack }

// kept are the traces of a key. Most keys have one. All but head stays as it is: whoever asked for traces may still look at them.
type kept struct {
	key  engine.Key
	head int64            // position of the last record of the key; 0: there is none
	last [1]*engine.Trace // the last used; nil: there is none
	used int64            // when it was made or last used, in nanoseconds since 1970, which is for gc; no build uses it
	more *several         // all, if they are several
}

// several are traces of a key, the last used first, and when each was made or last used.
type several struct {
	traces []*engine.Trace
	used   []int64
}

func (v *kept) traces() []*engine.Trace {
	switch {
	case v == nil || v.last[0] == nil:
		return nil
	case v.more != nil:
		return v.more.traces
	}
	return v.last[:]
}

func (v *kept) usedAt(i int) int64 {
	if v.more != nil {
		return v.more.used[i]
	}
	return v.used
}

func newIndex(room int) *digest.Index[kept] {
	return digest.NewIndex(func(v *kept) *digest.Hash { return (*digest.Hash)(&v.key) }, room)
}

// of is what is kept of a key, of what was read; nil: nothing.
func (t *Traces) of(k engine.Key) *kept { return t.byKey.Get(digest.Hash(k)) }

// keep replaces what is kept of a key.
func (t *Traces) keep(k engine.Key, traces []*engine.Trace, used []int64) {
	v := &carve(&t.slabs.kept, 1)[0]
	v.key, v.head = k, t.head(k)
	if len(traces) > 0 {
		v.last[0], v.used = traces[0], used[0]
	}
	if len(traces) > 1 {
		v.more = &several{slices.Clone(traces), slices.Clone(used)}
	}
	t.byKey.Put(v)
}

// head is the position of the last record of a key, of what was read.
func (t *Traces) head(k engine.Key) int64 {
	if v := t.of(k); v != nil {
		return v.head
	}
	return 0
}

// OpenTraces reads the log, or creates one. why is not empty if an older log was renamed or cut.
// With readOnly nothing is written, and Add and Use change memory only.
func OpenTraces(path string, readOnly bool) (t *Traces, why string, err error) {
	t = &Traces{path: path, now: time.Now, byKey: newIndex(0)}
	data, err := disk.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	good, why := t.load(data)
	t.slabs = slabs{} // release the rest of them
	if readOnly {
		return t, why, nil
	}
	if good < logHead {
		if err := writeFile(path, false, t.begun()); err != nil {
			return nil, why, err
		}
		good = logHead
	}
	t.file, err = disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, why, err
	}
	if err := t.file.Truncate(good); err != nil {
		t.file.Close()
		return nil, why, err
	}
	t.size = good
	_, err = t.file.Seek(good, io.SeekStart)
	return t, why, err
}

// OpenTracesAt opens a log that must have the state of a mark, for writing, and reads traces only on request. find
// returns the position of the last record of a key, and 0 for a key that has none. ok is false if the log has another
// state.
func OpenTracesAt(path string, at Mark, last uint64, find func(engine.Key) int64) (t *Traces, ok bool, err error) {
	t = &Traces{path: path, now: time.Now, byKey: newIndex(0), made: at.Made, size: at.Size, live: at.Live, last: last, find: find}
	if t.file, err = disk.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, false, err
	}
	if ok, err := at.holds(t.file); !ok || err != nil {
		return nil, false, errors.Join(err, t.file.Close())
	}
	_, err = t.file.Seek(at.Size, io.SeekStart)
	return t, true, err
}

// begun is the header of a new log.
func (t *Traces) begun() []byte {
	t.made = uint64(t.now().UnixNano())
	return logHeader(t.made)
}

func logHeader(made uint64) []byte {
	b := binary.LittleEndian.AppendUint64(header(tracesMagic, TracesVersion), made)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Mark is the state of the log.
func (t *Traces) Mark() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Mark{t.made, t.size, t.live}
}

// Head is the position of the last record of a key, for OpenTracesAt; 0 if there is none.
func (t *Traces) Head(k engine.Key) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.get(k); v != nil {
		return v.head
	}
	return 0
}

// Damaged reports whether a record was found damaged when it was requested. Its key then has no
// traces.
func (t *Traces) Damaged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damaged
}

// get returns what is kept of a key, and reads it if necessary.
func (t *Traces) get(k engine.Key) *kept {
	if v := t.of(k); v != nil || t.find == nil {
		return v
	}
	live, last := t.live, t.last // they include what is read
	if !t.readChain(k, t.find(k)) {
		t.damaged = true
		t.keep(k, nil, nil)
	} else if t.of(k) == nil {
		t.keep(k, nil, nil)
	}
	t.live, t.last = live, last
	return t.of(k)
}

func header(magic []byte, version uint32) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(magic), version)
}

func (t *Traces) setHead(key engine.Key, at int64) {
	if t.of(key) == nil {
		t.keep(key, nil, nil)
	}
	t.of(key).head = at
}

// forget forgets the traces of a key. The position of its records stays known.
func (t *Traces) forget(key engine.Key) {
	for _, tr := range t.of(key).traces() {
		t.drop(tr)
	}
	t.keep(key, nil, nil)
}

func (t *Traces) put(key engine.Key, tr *engine.Trace, used int64, size int) {
	old := t.of(key)
	traces, times := append(make([]*engine.Trace, 0, KeptTraces), tr), append(make([]int64, 0, KeptTraces), used)
	for i, o := range old.traces() {
		switch last := len(traces) - 1; {
		case o.ID == tr.ID || sameQuestion(o, tr):
			t.drop(o)
		case len(traces) < KeptTraces:
			traces, times = append(traces, o), append(times, old.usedAt(i))
		case succeeded(o) && !slices.ContainsFunc(traces, succeeded): // the last good one, which is needed when all others fail
			t.drop(traces[last])
			traces[last], times[last] = o, old.usedAt(i)
		default:
			t.drop(o)
		}
	}
	t.keep(key, traces, times)
	t.last = max(t.last, tr.Build)
	t.live += int64(size)
}

func succeeded(t *engine.Trace) bool { return t.Outcome == engine.Succeeded }

// drop subtracts the size of a trace from the used bytes. It encodes the trace again to find its size: that is rare,
// and a table of sizes would slow each opening.
func (t *Traces) drop(tr *engine.Trace) {
	e := varint.Encoder{Buf: t.scratch[:0]}
	encodeTrace(&e, tr)
	t.scratch = e.Buf
	t.live -= int64(recordHead + keyedHead + len(e.Buf))
}

// sameQuestion reports whether two traces hold under the same conditions: the newer one then replaces the
// other.
func sameQuestion(a, b *engine.Trace) bool {
	return a.Fingerprint == b.Fingerprint && slices.Equal(a.Observations, b.Observations)
}

// moveToFront makes a trace the last used one; the former one counts as used until now.
func (t *Traces) moveToFront(key engine.Key, id uint64, used int64) {
	old := t.of(key)
	for i, tr := range old.traces() {
		if tr.ID != id {
			continue
		}
		traces, times := []*engine.Trace{tr}, []int64{used}
		for k, o := range old.traces() {
			if k != i {
				traces, times = append(traces, o), append(times, old.usedAt(k))
			}
		}
		if i > 0 {
			times[1] = used
		}
		t.keep(key, traces, times)
		return
	}
}

// Traces returns the traces of a key, the last used first.
func (t *Traces) Traces(k engine.Key) []*engine.Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.get(k).traces()
}

// Each calls f for every trace, the last used of a key first, with the time when it was made or last used. The first
// trace of a key counts as used when it became the first: nothing is written by builds in which nothing changes. Keys
// are in no order.
func (t *Traces) Each(f func(k engine.Key, tr *engine.Trace, used time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for v := range t.byKey.All() {
		for i, tr := range v.traces() {
			f(v.key, tr, time.Unix(0, v.usedAt(i)))
		}
	}
}

// LastBuild is the highest number of a build in the traces.
func (t *Traces) LastBuild() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Keys of all traces, in no order.
func (t *Traces) Keys() []engine.Key { return t.KeysOf(func(engine.Key) bool { return true }) }

// KeysOf are those of the keys that f wants.
func (t *Traces) KeysOf(f func(engine.Key) bool) (keys []engine.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for v := range t.byKey.All() {
		if v.last[0] != nil && f(v.key) {
			keys = append(keys, v.key)
		}
	}
	return keys
}

// Add sets a trace's ID and appends it, with one write for each record: what write(2) accepted survives
// the process.
func (t *Traces) Add(k engine.Key, tr *engine.Trace) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now().UnixNano()
	if old := t.get(k).traces(); len(old) > 0 {
		t.use(k, old[0].ID, now)
	}
	payload := t.begin(recordTrace, k)
	encodeTrace(payload, tr)
	before := payload.Buf[recordHead+1+digest.Size:][:8]
	at := binary.LittleEndian.Uint64(before)
	clear(before) // the position of a trace in the log is not part of it
	sum := digest.Of(payload.Buf[recordHead:])
	binary.LittleEndian.PutUint64(before, at)
	tr.ID = binary.LittleEndian.Uint64(sum[:8])
	sign(payload, tr.ID, now)
	n, err := t.append(k)
	if err == nil {
		t.put(k, tr, now, n)
	}
	return err
}

// Use records that an older trace of a key holds again or, for the last used one, that it was used until
// now.
func (t *Traces) Use(k engine.Key, tr *engine.Trace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.use(k, tr.ID, t.now().UnixNano())
}

func (t *Traces) use(k engine.Key, id uint64, now int64) {
	t.get(k)
	t.moveToFront(k, id, now)
	e := t.begin(recordUse, k)
	e.Fixed64(id)
	e.Fixed64(uint64(now))
	t.append(k) // if it fails, only the order of traces is lost
}

// Forget removes all traces of a key.
func (t *Traces) Forget(k engine.Key) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(k)
	t.forget(k)
	t.begin(recordForget, k)
	_, err := t.append(k)
	return err
}

// Retain removes all traces except those for which keep returns true, and rewrites the log, at once, unless nothing in
// it is unused. If that fails, the log is unchanged. Nothing may be added afterwards.
func (t *Traces) Retain(keep func(engine.Key, *engine.Trace) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.byKey
	t.byKey = newIndex(0)
	for v := range all.All() {
		var traces []*engine.Trace
		var used []int64
		for i, tr := range v.traces() {
			if keep(v.key, tr) {
				traces, used = append(traces, tr), append(used, v.usedAt(i))
			} else {
				t.drop(tr)
			}
		}
		if len(traces) > 0 {
			t.keep(v.key, traces, used)
			t.setHead(v.key, v.head)
		}
	}
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	if t.size > t.live+logHead {
		err = errors.Join(err, t.compact())
	}
	return err
}

func (t *Traces) begin(kind byte, k engine.Key) *varint.Encoder {
	t.enc.Buf = append(t.enc.Buf[:0], make([]byte, recordHead)...)
	t.enc.Byte(kind)
	t.enc.Hash((*digest.Hash)(&k))
	t.enc.Fixed64(uint64(t.head(k)))
	return &t.enc
}

func (t *Traces) append(k engine.Key) (int, error) {
	b := t.enc.Buf
	if n := len(b) - recordHead; n > MaxRecord {
		t.enc.Buf = nil
		return 0, fmt.Errorf("a record of %d bytes; at most %d can be kept: %w", n, MaxRecord, ErrTooLarge)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-recordHead))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[recordHead:], castagnoli))
	if t.file == nil {
		return len(b), nil
	}
	n, err := t.file.Write(b)
	if err != nil {
		// An incomplete record would hide all later ones.
		t.file.Truncate(t.size)
		t.file.Seek(t.size, io.SeekStart)
		return 0, err
	}
	t.setHead(k, t.size)
	t.size += int64(n)
	return n, nil
}

// Size is the size of the log, in bytes.
func (t *Traces) Size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// compactSlack is how many unused bytes a log may have in addition to the size of the used ones; less is not
// worth rewriting.
const compactSlack = 1 << 20

// Compact rewrites a wasteful log, if it was read completely. Mark and Head then describe the new one.
func (t *Traces) Compact() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil || t.find != nil || !(Mark{Size: t.size, Live: t.live}).Wasteful() {
		return nil
	}
	err := t.file.Close() // Windows cannot replace an open file
	t.file = nil
	if err = errors.Join(err, t.compact()); err != nil {
		return err
	}
	t.file, err = disk.OpenFile(t.path, os.O_RDWR, 0)
	if err == nil {
		_, err = t.file.Seek(t.size, io.SeekStart)
	}
	return err
}

// Close closes the log.
func (t *Traces) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// compact syncs the new log, because nothing else knows its content, perhaps of years, and which
// outputs are Kiln's.
func (t *Traces) compact() error {
	list := slices.SortedFunc(t.byKey.All(), func(a, b *kept) int { return bytes.Compare(a.key[:], b.key[:]) })
	var buf bytes.Buffer
	buf.Write(t.begun())
	for _, v := range list {
		v.head = 0
		for i, tr := range slices.Backward(v.traces()) {
			e := t.begin(recordTrace, v.key)
			encodeTrace(e, tr)
			sign(e, tr.ID, v.usedAt(i))
			at := int64(buf.Len())
			if _, err := t.append(v.key); err != nil {
				return err
			}
			v.head = at
			buf.Write(e.Buf)
		}
	}
	if err := writeFile(t.path, true, buf.Bytes()); err != nil {
		return err
	}
	t.size, t.live = int64(buf.Len()), int64(buf.Len()-logHead)
	return nil
}
