package block

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// A memo returns the code that was written for the same pixels, after any number of replacements, while it grows, and for any size of
// block.
func TestMemo(t *testing.T) {
	for _, size := range []int{64, 100, 576} {
		testMemo(t, size)
	}
}

func testMemo(t *testing.T, size int) {
	r := rand.New(rand.NewPCG(1, 2))
	var m Memo
	hits := 0
	for range 20000 {
		n := uint64(r.IntN(3000)) // more than the number of slots
		pix := make([]byte, size)
		binary.LittleEndian.PutUint64(pix[r.IntN(2)*(size-8):], n)
		code, known := m.OfAny(pix)
		want := [16]byte{byte(n), byte(n >> 8), pix[0], pix[size-8]}
		if known {
			hits++
			if *code != want {
				t.Fatalf("block %v has the code %v, want %v", pix, *code, want)
			}
		}
		*code = want
	}
	if hits < 5000 || len(m.slots) != mostSlots {
		t.Errorf("%d of 20000 were known, with %d slots", hits, len(m.slots))
	}
}
