package block

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// A memo gives what was written for the same pixels, however often others took its place.
func TestMemo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var m Memo
	hits := 0
	for range 20000 {
		n := uint64(r.IntN(400)) // more than there are slots
		var pix [64]byte
		binary.LittleEndian.PutUint64(pix[r.IntN(2)*56:], n)
		code, known := m.Of(&pix)
		want := [16]byte{byte(n), byte(n >> 8), pix[0], pix[56]}
		if known {
			hits++
			if *code != want {
				t.Fatalf("block %v has the code %v, want %v", pix, *code, want)
			}
		}
		*code = want
	}
	if hits < 1000 {
		t.Errorf("%d of 20000 were known", hits)
	}
}
