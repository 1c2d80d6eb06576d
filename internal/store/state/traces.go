// Package state keeps on disk what a build needs to know of the builds before: the traces of every key, and a snapshot
// of the table of files and outputs. Both can be lost without harm: what is not known is built again.
//
// Traces are a log. A record is added when a job ends, before its outputs are put in place, so that a build killed at any
// moment goes on from there; a torn tail is cut off. The snapshot is written whole at the end of
// a build. Formats: docs/formats/state.md.
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

// TracesVersion is in the header of the log; a log of another version is set aside.
const TracesVersion = 3

// KeptTraces is how many traces a key keeps: enough to go back and forth between some branches.
const KeptTraces = 8

var (
	tracesMagic = []byte("KILN\x00trc")
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

const (
	headerSize = 12
	logHead    = headerSize + 8 + 4 // and when the log was made, and a checksum
	recordHead = 8
	maxRecord  = 256 << 20

	// A record's payload begins with its kind, its key, and the place of the record before it with that key.
	keyedHead = 1 + digest.Size + 8
)

// MaxRecord is how many bytes a trace may have in the log; tests lower it.
var MaxRecord = maxRecord

// ErrTooLarge says that a trace has more bytes than MaxRecord. It was not kept.
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
	byKey map[engine.Key]kept
	made  uint64 // when the log was begun or written anew, in nanoseconds since 1970: tells it from others of its size
	size  int64
	live  int64 // bytes of records that still count
	slabs slabs // of what load makes
	enc   varint.Encoder

	scratch []byte // of drop
	last    uint64 // highest build number of a trace

	find    func(engine.Key) int64 // where the last record of a key is; nil: all were read when the log was opened
	damaged bool                   // a record was found damaged after that
}

// Mark tells a state of the log from others.
type Mark struct {
	Made uint64
	Size int64
	Live int64 // bytes of records that still count
}

// Holds tells whether the log at path is as it was at the mark.
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

// Wasteful tells whether more than half of the log is dead, so that it is to be read in full and compacted.
func (m Mark) Wasteful() bool { return m.Size > 2*m.Live+compactSlack }

// kept are the traces of a key, the one used last first. The times are for those who clear up; no build looks at them.
type kept struct {
	traces []*engine.Trace
	used   []int64 // when each was made or last used, in nanoseconds since 1970
	head   int64   // where the last record of the key is; 0: nowhere
}

// OpenTraces reads the log, or begins one. why is not empty if an older log was set aside or cut.
// With readOnly nothing is written, and Add and Use change memory only.
func OpenTraces(path string, readOnly bool) (t *Traces, why string, err error) {
	t = &Traces{path: path, now: time.Now, byKey: map[engine.Key]kept{}}
	data, err := disk.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	good, why := t.load(data)
	t.slabs = slabs{} // do not keep what is left of them
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

// OpenTracesAt opens a log that is as it was at a mark, to be written to, and reads of it only the traces that are asked for. find gives
// where the last record of a key is, and 0 for a key that has none. ok is false if the log is not what it was then.
func OpenTracesAt(path string, at Mark, last uint64, find func(engine.Key) int64) (t *Traces, ok bool, err error) {
	t = &Traces{path: path, now: time.Now, byKey: map[engine.Key]kept{}, made: at.Made, size: at.Size, live: at.Live, last: last, find: find}
	if t.file, err = disk.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, false, err
	}
	if ok, err := at.holds(t.file); !ok || err != nil {
		return nil, false, errors.Join(err, t.file.Close())
	}
	_, err = t.file.Seek(at.Size, io.SeekStart)
	return t, true, err
}

// begun is the beginning of a new log.
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

// Head is where the last record of a key is, for OpenTracesAt; 0 if there is none.
func (t *Traces) Head(k engine.Key) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.get(k).head
}

// Damaged tells whether a record was found damaged when it was asked for. Its key has no traces then.
func (t *Traces) Damaged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damaged
}

// get is what is kept of a key, read now if it was not yet.
func (t *Traces) get(k engine.Key) kept {
	if v, ok := t.byKey[k]; ok || t.find == nil {
		return v
	}
	live, last := t.live, t.last // these know of what is read
	if !t.readChain(k, t.find(k)) {
		t.damaged = true
		t.byKey[k] = kept{}
	} else if _, ok := t.byKey[k]; !ok {
		t.byKey[k] = kept{}
	}
	t.live, t.last = live, last
	return t.byKey[k]
}

func header(magic []byte, version uint32) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(magic), version)
}

func (t *Traces) setHead(key engine.Key, at int64) {
	v := t.byKey[key]
	v.head = at
	t.byKey[key] = v
}

// forget drops the traces of a key. Where its records are stays known.
func (t *Traces) forget(key engine.Key) {
	v := t.byKey[key]
	for _, tr := range v.traces {
		t.drop(tr)
	}
	t.byKey[key] = kept{head: v.head}
}

func (t *Traces) put(key engine.Key, tr *engine.Trace, used int64, size int) {
	old := t.byKey[key]
	now := kept{carve(&t.slabs.lists, len(old.traces)+1)[:1], carve(&t.slabs.times, len(old.traces)+1)[:1], old.head}
	now.traces[0], now.used[0] = tr, used
	for i, o := range old.traces {
		switch last := len(now.traces) - 1; {
		case o.ID == tr.ID || sameQuestion(o, tr):
			t.drop(o)
		case len(now.traces) < KeptTraces:
			now.traces, now.used = append(now.traces, o), append(now.used, old.used[i])
		case succeeded(o) && !slices.ContainsFunc(now.traces, succeeded): // the last good one, which may be wanted when all else fails
			t.drop(now.traces[last])
			now.traces[last], now.used[last] = o, old.used[i]
		default:
			t.drop(o)
		}
	}
	t.byKey[key] = now
	t.last = max(t.last, tr.Build)
	t.live += int64(size)
}

func succeeded(t *engine.Trace) bool { return t.Outcome == engine.Succeeded }

// drop takes a trace off what is live. Its size is found by writing it again: that is rare, and a table of sizes costs each opening.
func (t *Traces) drop(tr *engine.Trace) {
	e := varint.Encoder{Buf: t.scratch[:0]}
	encodeTrace(&e, tr)
	t.scratch = e.Buf
	t.live -= int64(recordHead + keyedHead + len(e.Buf))
}

// sameQuestion tells whether two traces hold under the same conditions: the newer one then stands for both.
func sameQuestion(a, b *engine.Trace) bool {
	return a.Fingerprint == b.Fingerprint && slices.Equal(a.Observations, b.Observations)
}

// moveToFront says that a trace is used, and that the one which was in front was used until then.
func (t *Traces) moveToFront(key engine.Key, id uint64, used int64) {
	old := t.byKey[key]
	for i, tr := range old.traces {
		if tr.ID == id {
			if old.used[0] = used; i == 0 {
				return
			}
			t.byKey[key] = kept{
				append(append([]*engine.Trace{tr}, old.traces[:i]...), old.traces[i+1:]...),
				append(append([]int64{used}, old.used[:i]...), old.used[i+1:]...),
				old.head,
			}
			return
		}
	}
}

// Traces of a key, the one used last first.
func (t *Traces) Traces(k engine.Key) []*engine.Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.get(k).traces
}

// Each calls f for every trace, the one used last of a key first, and tells when it was made or last used. A trace in front
// counts as used when it came there: nothing is written for builds in which nothing changes. Keys come in no order.
func (t *Traces) Each(f func(k engine.Key, tr *engine.Trace, used time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, all := range t.byKey {
		for i, tr := range all.traces {
			f(k, tr, time.Unix(0, all.used[i]))
		}
	}
}

// LastBuild is the highest number of a build in which a trace was made.
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
	for k, v := range t.byKey {
		if len(v.traces) > 0 && f(k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Add gives a trace its ID and appends it. One write a record: what write(2) took survives the process.
func (t *Traces) Add(k engine.Key, tr *engine.Trace) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now().UnixNano()
	if old := t.get(k).traces; len(old) > 0 {
		t.use(k, old[0].ID, now)
	}
	payload := t.begin(recordTrace, k)
	encodeTrace(payload, tr)
	before := payload.Buf[recordHead+1+digest.Size:][:8]
	at := binary.LittleEndian.Uint64(before)
	clear(before) // where a trace stands in the log is not a part of it
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

// Use says that an older trace of a key holds again, or, of the one used last, that it was used until now.
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
	t.append(k) // only the order of traces is lost if it fails
}

// Forget drops all traces of a key.
func (t *Traces) Forget(k engine.Key) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(k)
	t.forget(k)
	t.begin(recordForget, k)
	_, err := t.append(k)
	return err
}

// Retain drops all traces but those that keep says yes to, and writes the log anew, at once, unless it then holds nothing in vain.
// If that fails, the log is as it was. Nothing may be added afterwards.
func (t *Traces) Retain(keep func(engine.Key, *engine.Trace) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, all := range t.byKey {
		now := kept{head: all.head}
		for i, tr := range all.traces {
			if keep(k, tr) {
				now.traces, now.used = append(now.traces, tr), append(now.used, all.used[i])
			} else {
				t.drop(tr)
			}
		}
		if t.byKey[k] = now; len(now.traces) == 0 {
			delete(t.byKey, k)
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
	t.enc.Fixed64(uint64(t.byKey[k].head))
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
		// A record cut short would hide all that comes after it.
		t.file.Truncate(t.size)
		t.file.Seek(t.size, io.SeekStart)
		return 0, err
	}
	t.setHead(k, t.size)
	t.size += int64(n)
	return n, nil
}

// Size is how long the log is, in bytes.
func (t *Traces) Size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// compactSlack is what a log may hold in vain besides as much again as is live: rewriting less is not worth it.
const compactSlack = 1 << 20

// Compact writes a log anew that is wasteful, if it was read in full. Mark and Head tell of the new one.
func (t *Traces) Compact() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil || t.find != nil || !(Mark{Size: t.size, Live: t.live}).Wasteful() {
		return nil
	}
	err := t.file.Close() // Windows replaces no file that is open
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

// Close ends the log.
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

// compact is synced: nobody else knows what the log knew, of years maybe, and which outputs are Kiln's.
func (t *Traces) compact() error {
	keys := make([]engine.Key, 0, len(t.byKey))
	for k := range t.byKey {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b engine.Key) int { return bytes.Compare(a[:], b[:]) })
	var buf bytes.Buffer
	buf.Write(t.begun())
	for _, k := range keys {
		v := t.byKey[k]
		v.head = 0
		for i, tr := range slices.Backward(v.traces) {
			t.byKey[k] = v
			e := t.begin(recordTrace, k)
			encodeTrace(e, tr)
			sign(e, tr.ID, v.used[i])
			v.head = int64(buf.Len())
			if _, err := t.append(k); err != nil {
				return err
			}
			buf.Write(e.Buf)
		}
		t.byKey[k] = v
	}
	if err := writeFile(t.path, true, buf.Bytes()); err != nil {
		return err
	}
	t.size, t.live = int64(buf.Len()), int64(buf.Len()-logHead)
	return nil
}
