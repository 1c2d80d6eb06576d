package pixel

import (
	"bytes"
	"testing"
)

func TestOpaqueAndGrey(t *testing.T) {
	m := constant(3, 3, 7, 7, 7, 255)
	if !m.Opaque() || !m.Grey() {
		t.Error("opaque grey")
	}
	m.Pix[35] = 254
	if m.Opaque() {
		t.Error("one pixel shines through")
	}
	m.Pix[34] = 8
	if m.Grey() {
		t.Error("one pixel is blue")
	}
}

func TestKeyed(t *testing.T) {
	m := &Image{3, 1, []byte{255, 0, 255, 255, 255, 0, 254, 255, 255, 0, 255, 3}}
	want := []byte{0, 0, 0, 0, 255, 0, 254, 255, 0, 0, 0, 0}
	if got := m.Keyed([3]byte{255, 0, 255}); !bytes.Equal(got.Pix, want) {
		t.Errorf("got %v", got.Pix)
	}
}

// naiveBleed implements the definition of Bled: it goes over the whole image in each round.
func naiveBleed(m *Image, reach int) []byte {
	pix := bytes.Clone(m.Pix)
	have := make([]bool, m.Width*m.Height)
	for i := range have {
		have[i] = pix[4*i+3] > 0
	}
	for range reach {
		next, was := bytes.Clone(pix), append([]bool{}, have...)
		for y := range m.Height {
			for x := range m.Width {
				if was[y*m.Width+x] {
					continue
				}
				n, sum := 0, [3]int{}
				for dy := -1; dy <= 1; dy++ {
					for dx := -1; dx <= 1; dx++ {
						u, v := x+dx, y+dy
						if u >= 0 && v >= 0 && u < m.Width && v < m.Height && was[v*m.Width+u] {
							n++
							for c := range 3 {
								sum[c] += int(pix[4*(v*m.Width+u)+c])
							}
						}
					}
				}
				if n > 0 {
					for c := range 3 {
						next[4*(y*m.Width+x)+c] = byte((sum[c] + n/2) / n)
					}
					have[y*m.Width+x] = true
				}
			}
		}
		pix = next
	}
	return pix
}

func TestBled(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {9, 7}, {17, 1}, {16, 16}} {
		m := noise(s[0], s[1], 5)
		for i := 3; i < len(m.Pix); i += 4 {
			if m.Pix[i] > 20 {
				m.Pix[i] = 0 // most pixels are transparent
			}
		}
		for _, reach := range []int{0, 1, 2, 5, 40} {
			before := bytes.Clone(m.Pix)
			if got := m.Bled(reach); !bytes.Equal(got.Pix, naiveBleed(m, reach)) {
				t.Errorf("%v reach %d differs", s, reach)
			}
			if !bytes.Equal(before, m.Pix) {
				t.Error("the image was changed")
			}
		}
	}
	if empty := constant(4, 4, 9, 9, 9, 0); !bytes.Equal(empty.Bled(3).Pix, empty.Pix) {
		t.Error("nothing to spread")
	}
}

// The picture is like thin leaves: unless coverage is kept, the mean alpha of smaller levels is below the cutoff
// everywhere.
func TestKeepCoverage(t *testing.T) {
	f := Filter{SRGB: true, Weighted: true}
	for _, cutoff := range []byte{1, 64, 128, 200, 255} {
		m := noise(64, 64, 8)
		for i := 3; i < len(m.Pix); i += 4 {
			if m.Pix[i] < 180 { // three of ten pixels
				m.Pix[i] = 0
			} else {
				m.Pix[i] = 255
			}
		}
		levels := f.Mips(m)
		first := bytes.Clone(levels[0].Pix)
		KeepCoverage(levels, cutoff)
		if !bytes.Equal(first, levels[0].Pix) {
			t.Error("the first level was changed")
		}
		part := func(m *Image) float64 {
			n := 0
			for i := 3; i < len(m.Pix); i += 4 {
				if m.Pix[i] >= cutoff {
					n++
				}
			}
			return float64(n) / float64(m.Width*m.Height)
		}
		want := part(levels[0])
		for n, l := range levels[1:4] { // 32 x 32 to 8 x 8; smaller levels have too few pixels for a measurement
			if got := part(l); got < want-0.06 || got > want+0.06 {
				t.Errorf("cutoff %d level %d: %.3f pass, want %.3f", cutoff, n+1, got, want)
			}
		}
	}
	// An image that is fully opaque or fully transparent does not change.
	for _, alpha := range []byte{0, 255} {
		levels := f.Mips(constant(8, 8, 1, 2, 3, alpha))
		KeepCoverage(levels, 128)
		for _, l := range levels {
			if l.Pix[3] != alpha {
				t.Errorf("alpha %d became %d", alpha, l.Pix[3])
			}
		}
	}
}
