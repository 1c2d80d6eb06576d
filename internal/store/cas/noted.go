package cas

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"maps"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
	"github.com/kiln-pipeline/kiln/internal/base/disk"
	"github.com/kiln-pipeline/kiln/internal/content/source"
)

// notedFile is the suffix of a file of records beside the store. A record has the hash of a blob, 32 bytes about it,
// the kind of record, which defines these bytes, and a checksum. Of several records of one kind about one blob, the
// last counts.
const notedFile = ".noted"

const (
	notedHead  = "KILN\x00not\x02\x00\x00\x00" // followed by its version
	recordSize = checkedSize + 4
)

// Version 1 had only stats: hash and stat, no kind and no checksum.
const (
	firstHead   = "KILN\x00not\x01\x00\x00\x00"
	firstSize   = digest.Size + lookSize
	lookSize    = 4 * 8
	checkedSize = firstSize + 4
)

// Kinds of record.
const (
	lookRecord = 1 // the blob's stat when its bytes were known: size, modification and change time, inode
	sumRecord  = 2 // the SHA-256 of its bytes

	promiseRecord = 3 // the size of a blob that can be fetched; an earlier record has its SHA-256
)

// records are the content of the file.
type records struct {
	known map[digest.Hash]source.Stat       // stats of blobs when their bytes were known
	sums  map[digest.Hash][sha256.Size]byte // of blobs for which it was requested

	promised map[digest.Hash]int64 // sizes of blobs that can be fetched
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parseNotes reads a file, and reports whether it should be rewritten. It skips useless records.
func parseNotes(data []byte) (r records, anew bool) {
	r = records{known: map[digest.Hash]source.Stat{}, sums: map[digest.Hash][sha256.Size]byte{}, promised: map[digest.Hash]int64{}}
	if rest, ok := bytes.CutPrefix(data, []byte(firstHead)); ok {
		for ; len(rest) >= firstSize; rest = rest[firstSize:] {
			r.known[digest.Hash(rest[:digest.Size])] = parseLook(rest[digest.Size:])
		}
		return r, true
	}
	rest, ok := bytes.CutPrefix(data, []byte(notedHead))
	if !ok {
		return r, true
	}
	n := len(rest) / recordSize
	for ; len(rest) >= recordSize; rest = rest[recordSize:] {
		h, about := digest.Hash(rest[:digest.Size]), rest[digest.Size:firstSize]
		if crc32.Checksum(rest[:checkedSize], castagnoli) != binary.LittleEndian.Uint32(rest[checkedSize:]) {
			anew = true
			continue
		}
		switch binary.LittleEndian.Uint32(rest[firstSize:]) {
		case lookRecord:
			r.known[h] = parseLook(about)
		case sumRecord:
			r.sums[h] = [sha256.Size]byte(about)
		case promiseRecord:
			if size := int64(binary.LittleEndian.Uint64(about)); size >= 0 {
				r.promised[h] = size
			}
		default:
			anew = true
		}
	}
	return r, anew || len(rest) > 0 || n > 1024+2*(len(r.known)+len(r.sums)+len(r.promised))
}

func parseLook(b []byte) source.Stat {
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return source.Stat{Size: int64(v(0)), MTime: int64(v(1)), CTime: int64(v(2)), Inode: v(3)}
}

// file encodes these records.
func (r *records) file() []byte {
	b := append(make([]byte, 0, len(notedHead)+(len(r.known)+len(r.sums))*recordSize), notedHead...)
	for h, st := range r.known {
		b = appendLook(b, h, st)
	}
	for h, sum := range r.sums {
		b = appendRecord(b, h, sum, sumRecord)
	}
	for h, size := range r.promised {
		b = appendPromise(b, h, size)
	}
	return b
}

func appendLook(b []byte, h digest.Hash, st source.Stat) []byte {
	var look [lookSize]byte
	for i, v := range [...]uint64{uint64(st.Size), uint64(st.MTime), uint64(st.CTime), st.Inode} {
		binary.LittleEndian.PutUint64(look[8*i:], v)
	}
	return appendRecord(b, h, look, lookRecord)
}

func appendRecord(b []byte, h digest.Hash, about [lookSize]byte, kind uint32) []byte {
	from := len(b)
	b = append(append(b, h[:]...), about[:]...)
	b = binary.LittleEndian.AppendUint32(b, kind)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// load reads the recorded stats. What is in memory already is newer.
func (s *Store) load() {
	data, _ := disk.ReadFile(s.dir + notedFile)
	newer, anew := s.notes.records, s.notes.anew
	s.notes.records, s.notes.anew = parseNotes(data)
	s.notes.loaded, s.notes.anew = true, s.notes.anew || anew
	maps.Copy(s.notes.known, newer.known)
	maps.Copy(s.notes.sums, newer.sums)
	maps.Copy(s.notes.promised, newer.promised)
}

// SHA256 returns the SHA-256 of a blob that is correct or promised. It is recorded as long as the blob
// exists.
func (s *Store) SHA256(h digest.Hash) ([sha256.Size]byte, error) {
	l := s.lock(h)
	l.Lock()
	defer l.Unlock()
	if err := s.check(h, anySize); err != nil {
		if sum, _, ok := s.promised(h); ok {
			return sum, nil
		}
		return [sha256.Size]byte{}, err
	}
	s.notes.mu.Lock()
	sum, ok := s.notes.sums[h]
	if !ok && !s.notes.loaded {
		s.load()
		sum, ok = s.notes.sums[h]
	}
	s.notes.mu.Unlock()
	if ok {
		return sum, nil
	}
	all := sha256.New()
	if err := s.verify(h, all); err != nil {
		return sum, err
	}
	sum = [sha256.Size]byte(all.Sum(nil))
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	s.notes.know(h, sum)
	s.writeLater(appendRecord(nil, h, sum, sumRecord))
	return sum, nil
}
