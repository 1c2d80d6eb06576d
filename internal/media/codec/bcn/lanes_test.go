package bcn

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/block"
	"github.com/kiln-pipeline/kiln/internal/media/codec/lanestest"
)

// A channel is encoded to the same bytes: soft and hard blocks, values near 0 and 255, few values, and no search at all.
func TestChannelLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(5, 6))
	plain, wide := new(channel), new(channel)
	both := encoder{values: new([3072]byte)}
	for i := range 60000 {
		var pixels [64]byte
		around, strength := r.IntN(256), 1+r.IntN(256)>>r.IntN(6)
		for j := range pixels {
			pixels[j] = byte(min(max(around+r.IntN(strength)-strength/2, 0), 255))
			switch {
			case i%4 == 1 && r.IntN(3) == 0:
				pixels[j] = byte(255 * r.IntN(2))
			case i%4 == 2 && r.IntN(3) == 0:
				pixels[j] = byte(r.IntN(9) + 247*r.IntN(2))
			case i%8 == 3:
				pixels[j] = byte(around + 33*r.IntN(3))
			}
		}
		at, q := i%4, block.Quality(r.IntN(3))
		wide.starts = &channelTables()[q]
		if got, want := wide.encode(&pixels, at, q), plain.encode(&pixels, at, q); got != want {
			t.Fatalf("channel %d of %v, quality %d: %x, plain %x", at, pixels, q, got, want)
		}
		if !wider {
			continue
		}
		var two [16]byte
		both.pixels, both.channel.starts = pixels, wide.starts
		both.block(BC5, two[:])
		for at := range 2 {
			if got, want := binary.LittleEndian.Uint64(two[8*at:]), plain.encode(&pixels, at, q); got != want {
				t.Fatalf("channel %d of two of %v, quality %d: %x, plain %x", at, pixels, q, got, want)
			}
		}
	}
}

// Vector code and plain Go encode every block to the same bytes.
func TestLanesSameBytes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	sameBytes(t, "picture", picture(128, 64), 128, 64)
	sameBytes(t, "noise", noise(128, 64, 9), 128, 64)
}

// sameBytes checks that both encode an image to the same bytes, in every format and at every quality.
func sameBytes(t *testing.T, name string, pix []byte, width, height int) {
	t.Helper()
	best := wider
	defer func() { lanes, wider = true, best }()
	for _, f := range []Format{BC1, BC1A, BC3, BC4, BC5} {
		for q := block.Fast; q <= block.Best; q++ {
			o := block.Options{Quality: q, Workers: 1}
			lanes = false
			slow, err := Encode(f, pix, width, height, o)
			if err != nil {
				t.Fatal(err)
			}
			lanes = true
			for wider = range tiers(best) {
				if fast, err := Encode(f, pix, width, height, o); err != nil || !bytes.Equal(fast, slow) {
					t.Errorf("%s, %v, quality %d, AVX-512 %v: lanes give other bytes (%v)", name, f, q, wider, err)
				}
			}
		}
	}
}

// tiers yields false, and true if this processor has AVX-512.
func tiers(wide bool) iter.Seq[bool] {
	return func(yield func(bool) bool) {
		if yield(false) && wide {
			yield(true)
		}
	}
}

// Blocks of all kinds are encoded to the same bytes: noise of every strength, two values, few values, greys, gradients.
func TestColorLanes(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	const n = 4000
	r := rand.New(rand.NewPCG(7, 8))
	pix := make([]byte, 0, 64*n)
	for i := range n {
		around, strength, few := r.IntN(256), 1+r.IntN(256), 2+r.IntN(4)
		slope := [3]int{r.IntN(41) - 20, r.IntN(41) - 20, r.IntN(41) - 20}
		for j := range 64 {
			v := around + r.IntN(strength) - strength/2
			switch c := j % 4; {
			case i%5 == 1:
				v = 255 * r.IntN(2)
			case i%5 == 2:
				v = 37 * (r.IntN(few) + c)
			case i%5 == 3 && c > 0:
				v = int(pix[len(pix)-1])
			case i%5 == 4 && c < 3:
				v = around + j/4*slope[c] + r.IntN(3)
			}
			pix = append(pix, byte(min(max(v, 0), 255)))
		}
	}
	sameBytes(t, "blocks", pix, 4, 4*n)
}

// Textures of games are encoded to the same bytes, too.
func TestColorLanesCorpus(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	corpus := os.Getenv("KILN_CORPUS")
	if corpus == "" {
		t.Skip("KILN_CORPUS names no folder of game content")
	}
	for _, name := range []string{"gdx-skins/arcade/skin/arcade-ui.png", "raylib-cc0/examples/textures/resources/explosion.png"} {
		pix, width, height := load(t, filepath.Join(corpus, name))
		const rows = 64
		sameBytes(t, name, pix[4*width*(height/2-rows/2):][:4*width*rows], width, rows)
	}
}

func TestGenerated(t *testing.T) { lanestest.Generated(t, "bcn") }

// Each step of vector code gives the same as that of plain Go: sums, directions, orders, the best endpoints of a cluster and of other
// lines, and the ends along an axis.
func TestColorSteps(t *testing.T) {
	if !lanes {
		t.Skip("this processor has no AVX2")
	}
	defer func() { lanes = true }()
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 20000 {
		var pixels [64]byte
		around, strength := r.IntN(256), 1+r.IntN(256)
		for j := range pixels {
			pixels[j] = byte(min(max(around+r.IntN(strength)-strength/2, 0), 255))
		}
		plain, wide := new(colors), &colors{by: new(colorLanes)}
		f := []Format{BC1, BC3}[i%2]
		same := plain.load(&pixels, f)
		if got := wide.load(&pixels, f); got != same || wide.n != 16 || wide.sum != plain.sum {
			t.Fatalf("%v: equal %v, sum %v; plain %v, %v", pixels, got, wide.sum, same, plain.sum)
		}
		if same {
			continue
		}
		axis := plain.axis()
		if got := wide.axis(); got != axis {
			t.Fatalf("%v: axis %v, plain %v", pixels, got, axis)
		}
		plain.sort(axis)
		wide.sort(axis)
		for cut := uint8(1); cut <= 16; cut++ {
			if got, want := wide.from(cut), plain.from(cut); got != want {
				t.Fatalf("%v: sum from %d on %v, plain %v", pixels, cut, got, want)
			}
		}
		if _, spread := plain.measure(&allShapes()[0][16], false); spread != wide.by.spread {
			t.Fatalf("%v: spread %v, plain %v", pixels, wide.by.spread, spread)
		}
		most := []int{1, 2, 3, 16}[r.IntN(4)]
		lanes = true
		got := wide.cluster(f, most)
		from, _ := wide.again(got, worst, f)
		lanes = false
		want := plain.cluster(f, most)
		if got != want {
			t.Fatalf("%v: ends %v, plain %v", pixels, got, want)
		}
		if to, _ := plain.again(want, worst, f); from != to {
			t.Fatalf("%v: ends of other lines %v, plain %v", pixels, from, to)
		}
		least, greatest := wide.reach(axis)
		if low, high := plain.reach(axis); least != low || greatest != high {
			t.Fatalf("%v: %d to %d along %v, plain %d to %d", pixels, least, greatest, axis, low, high)
		}
	}
}
