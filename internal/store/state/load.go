package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/kiln-pipeline/kiln/internal/base/varint"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/engine"
)

// Reading the log: all of it when it is opened, or the records of one key on request.

// load reads all records up to the first incomplete one. It returns the length of the good part.
func (t *Traces) load(data []byte) (good int64, why string) {
	switch {
	case len(data) == 0:
		return 0, ""
	case len(data) < headerSize || !bytes.Equal(data[:8], tracesMagic):
		return 0, "the trace log is not one; all jobs run again"
	case binary.LittleEndian.Uint32(data[8:]) != TracesVersion:
		return 0, fmt.Sprintf("the trace log has version %d, not %d; all jobs run again", binary.LittleEndian.Uint32(data[8:]), TracesVersion)
	case len(data) < logHead || !bytes.Equal(data[:logHead], logHeader(binary.LittleEndian.Uint64(data[headerSize:]))):
		return 0, "the head of the trace log is damaged; all jobs run again"
	}
	t.made = binary.LittleEndian.Uint64(data[headerSize:])
	t.byKey = newIndex(countTraces(data))
	at := logHead
	for at < len(data) {
		n, ok := t.loadRecord(data[at:], int64(at))
		if !ok {
			return int64(at), fmt.Sprintf("the trace log is damaged at byte %d; what follows was dropped", at)
		}
		at += n
	}
	return int64(at), ""
}

// countTraces skips over records to count them, so that the index is allocated once. Damage makes the
// count wrong, but not large.
func countTraces(data []byte) (n int) {
	for at := logHead; at+recordHead < len(data); {
		size := binary.LittleEndian.Uint32(data[at:])
		if size > maxRecord {
			break
		}
		if data[at+recordHead] == recordTrace {
			n++
		}
		at += recordHead + int(size)
	}
	return min(n, len(data)/(recordHead+leastTrace))
}

func (t *Traces) loadRecord(b []byte, at int64) (int, bool) {
	if len(b) < recordHead {
		return 0, false
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > maxRecord || n > len(b)-recordHead || n == 0 {
		return 0, false
	}
	payload := b[recordHead : recordHead+n]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, false
	}
	d := varint.Decoder{Buf: payload[1:]}
	key := engine.Key(d.Hash())
	d.Fixed64() // position of the record before, which has been read
	if d.Err != nil {
		return 0, false
	}
	switch payload[0] {
	case recordTrace:
		tr, used := decodeTrace(&d, &t.slabs)
		if d.Err != nil {
			return 0, false
		}
		t.put(key, tr, used, n+recordHead)
	case recordUse:
		if id, used := d.Fixed64(), int64(d.Fixed64()); d.Err == nil {
			t.moveToFront(key, id, used)
		}
	case recordForget:
		t.forget(key)
	}
	if d.Err != nil {
		return 0, false
	}
	t.setHead(key, at)
	return n + recordHead, true
}

// readChain reads all records of a key, in the order in which they were written; they are linked in reverse.
func (t *Traces) readChain(k engine.Key, at int64) bool {
	var records [][]byte
	var places []int64
	for before := t.size; at != 0; {
		if at < logHead || at >= before {
			return false // records only link backwards, so this ends
		}
		var head [recordHead]byte
		if _, err := t.file.ReadAt(head[:], at); err != nil {
			return false
		}
		n := int64(binary.LittleEndian.Uint32(head[:]))
		if n < keyedHead || n > maxRecord || n > before-at-recordHead {
			return false
		}
		b := make([]byte, recordHead+n)
		if _, err := t.file.ReadAt(b, at); err != nil || engine.Key(b[recordHead+1:][:digest.Size]) != k {
			return false
		}
		records, places = append(records, b), append(places, at)
		before, at = at, int64(binary.LittleEndian.Uint64(b[recordHead+1+digest.Size:]))
	}
	for i := len(records) - 1; i >= 0; i-- {
		if _, ok := t.loadRecord(records[i], places[i]); !ok {
			return false
		}
	}
	return true
}
