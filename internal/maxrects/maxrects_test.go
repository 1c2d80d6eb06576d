package maxrects

import (
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check holds a layout against what Pack promises.
func check(t interface {
	Helper()
	Errorf(string, ...any)
}, sizes []Size, o Options, l Layout) {
	t.Helper()
	if len(l.Places) != len(sizes) {
		t.Errorf("%d places for %d rectangles", len(l.Places), len(sizes))
		return
	}
	onPage := make([][]Rect, len(l.Pages))
	for i, s := range sizes {
		p := l.Places[i]
		fits := o.Fits(s)
		if fits != (p.Page != TooBig) {
			t.Errorf("%v on page %d, though it fits: %t", s, p.Page, fits)
		}
		if p.Page == TooBig {
			continue
		}
		page := l.Pages[p.Page]
		if p.X < o.Border || p.Y < o.Border || p.X+s.W+o.Border > page.W || p.Y+s.H+o.Border > page.H {
			t.Errorf("%v at %v is outside of %v", s, p, page)
		}
		padded := Rect{p.X, p.Y, s.W + o.Padding, s.H + o.Padding}
		for _, r := range onPage[p.Page] {
			if padded.intersects(r) {
				t.Errorf("%v overlaps %v", padded, r)
			}
		}
		onPage[p.Page] = append(onPage[p.Page], padded)
	}
	for i, page := range l.Pages {
		if len(onPage[i]) == 0 {
			t.Errorf("page %d is empty", i)
		}
		if page.W > o.Max || page.H > o.Max || page.W < 1 || page.H < 1 {
			t.Errorf("page %v, largest is %d", page, o.Max)
		}
		if o.PowerOfTwo && (bits.OnesCount(uint(page.W)) != 1 || bits.OnesCount(uint(page.H)) != 1) {
			t.Errorf("page %v is no power of two", page)
		}
		if !o.PowerOfTwo && (page.W%multiple != 0 && page.W != o.Max || page.H%multiple != 0 && page.H != o.Max) {
			t.Errorf("page %v is no multiple of %d", page, multiple)
		}
		if o.Square && page.W != page.H {
			t.Errorf("page %v is not square", page)
		}
	}
}

func TestPackHoldsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, rapid.SampledFrom([]int{4, 40, 150}).Draw(t, "sides up to"))
		sizes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Size {
			return Size{side.Draw(t, "w"), side.Draw(t, "h")}
		}), 0, 60).Draw(t, "sizes")
		o := Options{
			Max:        rapid.IntRange(1, 200).Draw(t, "max"),
			Padding:    rapid.IntRange(0, 9).Draw(t, "padding"),
			Border:     rapid.IntRange(0, 9).Draw(t, "border"),
			PowerOfTwo: rapid.Bool().Draw(t, "power of two"),
			Square:     rapid.Bool().Draw(t, "square"),
		}
		if rapid.Bool().Draw(t, "by area") {
			o.Heuristic = BestArea
		}
		l := Pack(sizes, o)
		check(t, sizes, o, l)
		if again := Pack(sizes, o); !reflect.DeepEqual(l, again) {
			t.Errorf("packed twice:\n%v\n%v", l, again)
		}
	})
}

// The free list says all: every place where a rectangle could be lies in one of its rectangles, and
// none of them is inside another.
func TestFreeListIsMaximal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const side = 12
		p := newPage(Size{side, side}, Options{Heuristic: BestShortSide})
		var taken [side][side]bool
		for range rapid.IntRange(0, 12).Draw(t, "rectangles") {
			r, ok := p.insert(Size{rapid.IntRange(1, 5).Draw(t, "w"), rapid.IntRange(1, 5).Draw(t, "h")})
			if !ok {
				continue
			}
			for y := r.Y; y < r.bottom(); y++ {
				for x := r.X; x < r.right(); x++ {
					if taken[y][x] {
						t.Fatalf("%v is on something", r)
					}
					taken[y][x] = true
				}
			}
		}
		if want := maximal(taken[:]); !slices.Equal(sorted(p.free), want) {
			t.Fatalf("free %v\nwant %v", sorted(p.free), want)
		}
	})
}

// maximal finds all maximal free rectangles by trying every rectangle.
func maximal[Row ~[12]bool](taken []Row) []Rect {
	empty := func(r Rect) bool {
		if r.X < 0 || r.Y < 0 || r.right() > len(taken) || r.bottom() > len(taken) {
			return false
		}
		for y := r.Y; y < r.bottom(); y++ {
			for x := r.X; x < r.right(); x++ {
				if taken[y][x] {
					return false
				}
			}
		}
		return true
	}
	var all []Rect
	for y := range taken {
		for x := range taken {
			for h := 1; h <= len(taken)-y; h++ {
				for w := 1; w <= len(taken)-x; w++ {
					if empty(Rect{x, y, w, h}) && !empty(Rect{x - 1, y, w + 1, h}) && !empty(Rect{x, y - 1, w, h + 1}) &&
						!empty(Rect{x, y, w + 1, h}) && !empty(Rect{x, y, w, h + 1}) {
						all = append(all, Rect{x, y, w, h})
					}
				}
			}
		}
	}
	return sorted(all)
}

func sorted(rs []Rect) []Rect {
	rs = slices.Clone(rs)
	slices.SortFunc(rs, func(a, b Rect) int {
		return slices.Compare([]int{a.Y, a.X, a.W, a.H}, []int{b.Y, b.X, b.W, b.H})
	})
	return rs
}

func TestPageSizes(t *testing.T) {
	same := func(n, w, h int) []Size { return slices.Repeat([]Size{{w, h}}, n) }
	for _, c := range []struct {
		name  string
		sizes []Size
		o     Options
		want  []Size
	}{
		{"nothing", nil, Options{Max: 64}, nil},
		{"exact", same(4, 32, 32), Options{Max: 64, PowerOfTwo: true}, []Size{{64, 64}}},
		{"padding is only between", same(4, 31, 31), Options{Max: 64, PowerOfTwo: true, Padding: 2}, []Size{{64, 64}}},
		{"padding too wide", same(4, 31, 31), Options{Max: 64, PowerOfTwo: true, Padding: 3}, same(4, 32, 32)},
		{"border", same(1, 62, 62), Options{Max: 64, PowerOfTwo: true, Border: 1}, []Size{{64, 64}}},
		{"wide before high", same(2, 16, 16), Options{Max: 64, PowerOfTwo: true}, []Size{{32, 16}}},
		{"square", same(2, 16, 16), Options{Max: 64, PowerOfTwo: true, Square: true}, []Size{{32, 32}}},
		{"largest is rounded down", same(2, 64, 64), Options{Max: 127, PowerOfTwo: true}, []Size{{64, 64}, {64, 64}}},
		{"any size", same(3, 10, 10), Options{Max: 64}, []Size{{20, 20}}},
		{"last page is small", append(same(1, 64, 64), Size{3, 3}), Options{Max: 64, PowerOfTwo: true}, []Size{{64, 64}, {4, 4}}},
		{"first page too", []Size{{64, 5}, {64, 60}}, Options{Max: 64, PowerOfTwo: true}, []Size{{64, 64}, {64, 8}}},
		{"Max may be odd", same(1, 63, 1), Options{Max: 63}, []Size{{63, 4}}},
		{"no room", same(1, 1, 1), Options{Max: 0}, nil},
	} {
		l := Pack(c.sizes, c.o)
		check(t, c.sizes, c.o, l)
		if !slices.Equal(l.Pages, c.want) {
			t.Errorf("%s: pages %v, want %v", c.name, l.Pages, c.want)
		}
	}
}

// sprites are sizes as a game has them: many small ones, few large.
func sprites(n int) []Size {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := make([]Size, n)
	for i := range sizes {
		base := 8 << r.IntN(4)
		sizes[i] = Size{base + r.IntN(base), base + r.IntN(base)}
	}
	return sizes
}

// fillOf is the share of the pages that is covered.
func fillOf(sizes []Size, l Layout) float64 {
	used, all := 0, 0
	for _, s := range sizes {
		used += s.W * s.H
	}
	for _, p := range l.Pages {
		all += p.W * p.H
	}
	return float64(used) / float64(all)
}

func TestFill(t *testing.T) {
	sizes := sprites(500)
	for _, c := range []struct {
		name string
		o    Options
		want float64
	}{
		{"any size", Options{Max: 4096}, 0.93},
		{"several pages", Options{Max: 256}, 0.90},
	} {
		l := Pack(sizes, c.o)
		check(t, sizes, c.o, l)
		if got := fillOf(sizes, l); got < c.want {
			t.Errorf("%s: %.1f%% of %v is covered, want %.1f%%", c.name, 100*got, l.Pages, 100*c.want)
		}
	}
}

func BenchmarkPack2000(b *testing.B) {
	sizes := sprites(2000)
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"one page", Options{Max: 4096, Padding: 2, PowerOfTwo: true}},
		{"any size", Options{Max: 4096, Padding: 2}},
		{"several pages", Options{Max: 512, Padding: 2, PowerOfTwo: true}},
		{"by area", Options{Max: 4096, Padding: 2, Heuristic: BestArea}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(100*fillOf(sizes, Pack(sizes, c.o)), "%filled")
			}
		})
	}
}
