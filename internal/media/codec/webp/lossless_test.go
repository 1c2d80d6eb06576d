package webp

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// bitText are bits, from a text of 0 and 1 whose first is the lowest of a byte; others are ignored.
func bitText(text string) string {
	var out []byte
	n := 0
	for _, c := range text {
		if c != '0' && c != '1' {
			continue
		}
		if n%8 == 0 {
			out = append(out, 0)
		}
		out[n/8] |= byte(c-'0') << (n % 8)
		n++
	}
	return string(out)
}

// low is a number in bits, the lowest first.
func low(v, bits int) (text string) {
	for i := range bits {
		text += string(rune('0' + v>>i&1))
	}
	return text
}

// losslessOf is the chunk of a lossless image.
func losslessOf(w, h int, text string) string {
	return part("VP8L", "\x2f"+bitText(low(w-1, 14)+low(h-1, 14)+"1 000"+text))
}

// Codes of one symbol, and of two.
func one(v int) string    { return " 1 0 1 " + low(v, 8) }
func two(v, w int) string { return " 1 1 1 " + low(v, 8) + low(w, 8) }

// anyCode is a random complete code of an alphabet.
func anyCode(r *rand.Rand, alphabet int) string {
	switch r.IntN(4) {
	case 0:
		return one(r.IntN(min(alphabet, 256)))
	case 1:
		return two(r.IntN(min(alphabet, 256)), r.IntN(min(alphabet, 256)))
	}
	sizes := []int{0}
	for range 1 + r.IntN(min(alphabet-1, 40)) {
		i := r.IntN(len(sizes))
		if r.IntN(3) == 0 {
			i = len(sizes) - 1 // some are long
		}
		if sizes[i] < longestCode {
			sizes[i]++
			sizes = append(sizes, sizes[i])
		}
	}
	all := make([]int, alphabet)
	for i, s := range r.Perm(alphabet)[:len(sizes)] {
		all[s] = sizes[i]
	}
	// The lengths 0 to 15 have codes of four bits, from the highest down; then there is no number of lengths.
	text := " 0 1111 000 000 001 001 001 001 001 001 000" + strings.Repeat(" 001", 10) + " 0 "
	for _, n := range all {
		for i := 3; i >= 0; i-- {
			text += string(rune('0' + n>>i&1))
		}
	}
	return text
}

// anyImage is a random main image with one group of codes, without the bits of its pixels, which may be any.
func anyImage(r *rand.Rand) string {
	cache, text := 0, "0"
	if r.IntN(3) == 0 {
		bits := 1 + r.IntN(7)
		cache, text = 1<<bits, "1"+low(bits, 4)
	}
	text += "0"
	if r.IntN(3) == 0 {
		text += one(r.IntN(256))
	} else { // with copies, and colours of the cache
		text += anyCode(r, 256+lengths+cache)
	}
	return text + anyCode(r, 256) + anyCode(r, 256) + anyCode(r, 256) + anyCode(r, distances)
}

func anyBits(r *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = '0' + byte(r.IntN(2))
	}
	return string(text)
}

// anyLossless is a random image. The images of its transforms have one colour, or colours of two bits.
func anyLossless(r *rand.Rand, w, h int) (text string) {
	flat := func(v uint32) string {
		return "0" + one(int(v>>8&255)) + one(int(v>>16&255)) + one(int(v&255)) + one(int(v>>24)) + one(0)
	}
	for _, kind := range r.Perm(4)[:r.IntN(5)] {
		text += "1" + low(kind, 2)
		switch kind {
		case predictor, crossColour:
			text += low(r.IntN(8), 3) + flat(r.Uint32())
		case colourIndexing:
			n := 1 + []int{0, 1, 2, 3, 7, 15, 16, 255}[r.IntN(8)]
			text += low(n-1, 8) + "0" + two(r.IntN(256), r.IntN(256)) + one(r.IntN(256)) + one(r.IntN(256)) + two(r.IntN(256), 255) + one(0)
			text += anyBits(r, 2*n)
		}
	}
	return text + "0" + anyImage(r) + anyBits(r, 60*w*h)
}

// TestLosslessAgainstLibwebp has random bits for dwebp and this package: both have the same pixels, or refuse them.
func TestLosslessAgainstLibwebp(t *testing.T) {
	if _, err := exec.LookPath("dwebp"); err != nil {
		t.Skip("dwebp is not installed")
	}
	r, dir := rand.New(rand.NewPCG(thorough.Seed(t), 1)), t.TempDir()
	equal := 0
	files := thorough.OfPeers(60, 200, 1000)
	for i := range files {
		w, h := 1+r.IntN(20), 1+r.IntN(20)
		data := riff(losslessOf(w, h, anyLossless(r, w, h)))
		if err := os.WriteFile(filepath.Join(dir, "a.webp"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Parse(data)
		var got []byte
		if err == nil {
			got, err = f.Frames[0].Decode()
		}
		want, failed := exec.Command("dwebp", "-quiet", filepath.Join(dir, "a.webp"), "-pam", "-o", "-").Output()
		if (err == nil) != (failed == nil) {
			t.Fatalf("%d: %v, dwebp %v", i, err, failed)
		}
		if err != nil {
			continue
		}
		equal++
		if want = want[max(0, len(want)-4*w*h):]; !bytes.Equal(got, want) {
			keep := filepath.Join(os.TempDir(), fmt.Sprint("kiln-lossless-", i, ".webp"))
			t.Fatalf("%d: %v: other pixels; %v", i, image.Pt(w, h), os.WriteFile(keep, data, 0o644))
		}
	}
	if t.Logf("%d of %d files are read, with equal pixels", equal, files); equal < files/4 {
		t.Error("too few of them")
	}
}
