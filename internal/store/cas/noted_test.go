package cas

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// sumNoted tells whether the file has the SHA-256 of a blob.
func sumNoted(s *Store, h digest.Hash) bool {
	data, _ := os.ReadFile(s.dir + notedFile)
	r, _ := parseNotes(data)
	_, ok := r.sums[h]
	return ok
}

// TestSHA256: it is that of the blob, computed once for all stores to come, kept by later records, and gone with the blob.
func TestSHA256(t *testing.T) {
	for _, size := range []int{0, 10, smallBlob + 1} {
		b := noise(size)
		s := open(t)
		h := put(t, s, b)
		if s = reopen(t, s); sumNoted(s, h) {
			t.Errorf("%d bytes: noted although nobody asked", size)
		}
		for round := range 3 {
			sum, err := s.SHA256(h)
			if err != nil || sum != sha256.Sum256(b) {
				t.Errorf("%d bytes, round %d: %x, %v", size, round, sum, err)
			}
			if s = reopen(t, s); !sumNoted(s, h) {
				t.Errorf("%d bytes: not noted", size)
			}
			put(t, s, b) // is there already
			put(t, s, []byte{byte(round)})
		}
		// What is noted is given, so that nobody reads the blob again.
		other := sha256.Sum256([]byte("other"))
		s.notes.sums = map[digest.Hash][sha256.Size]byte{h: other}
		if sum, err := s.SHA256(h); err != nil || sum != other {
			t.Errorf("%d bytes: it was computed again: %v", size, err)
		}
		delete(s.notes.sums, h)
		if err := s.Remove(h); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SHA256(h); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d bytes, removed: %v", size, err)
		}
		if reopen(t, s); sumNoted(s, h) {
			t.Errorf("%d bytes: still noted after it was removed", size)
		}
	}
}

// TestSHA256OfDamage: nobody gets the SHA-256 of a blob that is not what its name says, noted or not; of the right bytes it is given again.
func TestSHA256OfDamage(t *testing.T) {
	for _, asked := range []bool{false, true} {
		s := open(t)
		h := put(t, s, []byte("content"))
		if asked {
			if _, err := s.SHA256(h); err != nil {
				t.Fatal(err)
			}
		}
		s = reopen(t, s)
		if err := errors.Join(os.Chmod(s.Path(h), 0o666), os.WriteFile(s.Path(h), []byte("damaged"), 0o666)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenReadOnly(s.dir).SHA256(h); !errors.Is(err, ErrDamaged) {
			t.Errorf("who only looks: %v", err)
		}
		if _, err := s.SHA256(h); !errors.Is(err, ErrDamaged) {
			t.Errorf("damaged: %v", err)
		}
		if s = reopen(t, s); sumNoted(s, h) {
			t.Error("still noted")
		}
		put(t, s, []byte("content"))
		if sum, err := s.SHA256(h); err != nil || sum != sha256.Sum256([]byte("content")) {
			t.Errorf("made anew: %x, %v", sum, err)
		}
	}
}

// TestFirstNotes: a list of the first version is read, and then written as one of this.
func TestFirstNotes(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		s := open(t)
		h := put(t, s, []byte("content"))
		record := appendLook(nil, h, s.notes.known[h])[:firstSize]
		first := append([]byte(firstHead), bytes.Repeat(record, recordSize)...) // of a size that a list of this version may have, too
		if err := os.WriteFile(s.dir+notedFile, first, 0o666); err != nil {
			t.Fatal(err)
		}
		again, err := Open(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		if loaded && !again.Known(h) {
			t.Error("what was noted is lost")
		}
		other := put(t, again, []byte("other"))
		again = reopen(t, again)
		data, err := os.ReadFile(s.dir + notedFile)
		if err != nil || !bytes.HasPrefix(data, []byte(notedHead)) || len(data) != len(notedHead)+2*recordSize {
			t.Errorf("loaded %t: %d bytes, %v", loaded, len(data), err)
		}
		if !again.Known(h) || !again.Known(other) {
			t.Errorf("loaded %t: something is lost", loaded)
		}
	}
}

// TestFlippedNote: a record in which a bit is wrong is none, so that no wrong SHA-256 is given.
func TestFlippedNote(t *testing.T) {
	s := open(t)
	h := put(t, s, []byte("content"))
	if _, err := s.SHA256(h); err != nil {
		t.Fatal(err)
	}
	data := s.notes.records.file()
	for i := len(notedHead); i < len(data); i++ {
		flipped := bytes.Clone(data)
		flipped[i] ^= 1 << (i % 8)
		r, anew := parseNotes(flipped)
		if !anew || len(r.known)+len(r.sums) != 1 {
			t.Fatalf("byte %d: anew %t, %d and %d records", i, anew, len(r.known), len(r.sums))
		}
	}
}

// FuzzNotes: whatever stands in the file, it is read, and what was read is written as what reads the same.
func FuzzNotes(f *testing.F) {
	var h digest.Hash
	look := appendLook([]byte(notedHead), h, parseLook(bytes.Repeat([]byte{1}, lookSize)))
	f.Add([]byte{})
	f.Add(look)
	f.Add(look[:len(look)-1])
	f.Add(appendRecord(look, h, [lookSize]byte{2}, sumRecord))
	f.Add(appendRecord(look, h, [lookSize]byte{2}, 3))
	f.Add(append([]byte(firstHead), look[len(notedHead):]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, _ := parseNotes(data)
		again, anew := parseNotes(r.file())
		if anew || !reflect.DeepEqual(r, again) {
			t.Errorf("%d and %d records, again %d and %d, anew %t", len(r.known), len(r.sums), len(again.known), len(again.sums), anew)
		}
	})
}
