package packing

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check compares a layout with what the documentation of Pack promises.
func check(t interface {
	Helper()
	Errorf(string, ...any)
}, items []Item, o Options, l Layout) {
	t.Helper()
	if len(l.Places) != len(items) {
		t.Errorf("%d places for %d rectangles", len(l.Places), len(items))
		return
	}
	onPage := make([][]box, len(l.Pages))
	pageOf := map[int]int{}
	for i, it := range items {
		p := l.Places[i]
		if fits := o.Fits(it); fits != (p.Page != TooBig) {
			t.Errorf("%v on page %d, though it fits: %t", it, p.Page, fits)
		}
		if p.Page == Crowded && it.Together == 0 {
			t.Errorf("%v is crowded out of nothing", it)
		}
		if p.Page < 0 {
			continue
		}
		w, h := max(it.W, 1), max(it.H, 1)
		if p.Turned {
			w, h = h, w
		}
		if p.Turned && (!o.Rotate || it.Upright) {
			t.Errorf("%v is turned", it)
		}
		if page, seen := pageOf[it.Together]; it.Together > 0 && seen && page != p.Page {
			t.Errorf("%v is not on page %d, where others are that belong to it", it, page)
		}
		pageOf[it.Together] = p.Page
		page := l.Pages[p.Page]
		if p.X < o.Border.W || p.Y < o.Border.H || p.X+w+o.Border.W > page.W || p.Y+h+o.Border.H > page.H {
			t.Errorf("%v at %v is outside of %v", it, p, page)
		}
		padded := box{int32(p.X), int32(p.Y), int32(p.X + w + o.Padding.W), int32(p.Y + h + o.Padding.H)}
		for _, r := range onPage[p.Page] {
			if padded.x0 < r.x1 && r.x0 < padded.x1 && padded.y0 < r.y1 && r.y0 < padded.y1 {
				t.Errorf("%v overlaps %v", padded, r)
			}
		}
		onPage[p.Page] = append(onPage[p.Page], padded)
	}
	for i, page := range l.Pages {
		if len(onPage[i]) == 0 {
			t.Errorf("page %d is empty", i)
		}
		checkPage(t, page, o)
	}
}

func checkPage(t interface{ Errorf(string, ...any) }, page Size, o Options) {
	if page.W > o.Max.W || page.H > o.Max.H || page.W < 1 || page.H < 1 {
		t.Errorf("page %v, largest is %v", page, o.Max)
	}
	if page.W < min(o.Min.W, o.largest().W) || page.H < min(o.Min.H, o.largest().H) {
		t.Errorf("page %v, least is %v", page, o.Min)
	}
	if o.PowerOfTwo && (bits.OnesCount(uint(page.W)) != 1 || bits.OnesCount(uint(page.H)) != 1) {
		t.Errorf("page %v is not a power of two", page)
	}
	if m := o.Multiple; !o.PowerOfTwo && m > 1 && (page.W%m != 0 && page.W != o.largest().W || page.H%m != 0 && page.H != o.largest().H) {
		t.Errorf("page %v is not a multiple of %d", page, m)
	}
	if o.Square && page.W != page.H {
		t.Errorf("page %v is not square", page)
	}
}

func TestPackHoldsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(0, rapid.SampledFrom([]int{4, 40, 150}).Draw(t, "sides up to"))
		few := rapid.IntRange(0, 9)
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
			return Item{Size{side.Draw(t, "w"), side.Draw(t, "h")}, max(0, rapid.IntRange(-5, 2).Draw(t, "together")), rapid.Bool().Draw(t, "upright")}
		}), 0, 80).Draw(t, "items")
		o := Options{
			Max:        Size{rapid.IntRange(0, 200).Draw(t, "max width"), rapid.IntRange(0, 200).Draw(t, "max height")},
			Min:        Size{rapid.IntRange(0, 30).Draw(t, "min width"), rapid.IntRange(0, 30).Draw(t, "min height")},
			Padding:    Size{few.Draw(t, "padding x"), few.Draw(t, "padding y")},
			Border:     Size{few.Draw(t, "border x"), few.Draw(t, "border y")},
			PowerOfTwo: rapid.Bool().Draw(t, "power of two"),
			Square:     rapid.Bool().Draw(t, "square"),
			Multiple:   few.Draw(t, "multiple"),
			Rotate:     rapid.Bool().Draw(t, "rotate"),
		}
		if m := rapid.IntRange(-1, int(methods)-1).Draw(t, "method"); m >= 0 {
			o.Methods = []Method{Method(m)}
		}
		l := Pack(items, o)
		check(t, items, o, l)
		if again := Pack(items, o); !reflect.DeepEqual(l, again) {
			t.Errorf("packed twice:\n%v\n%v", l, again)
		}
	})
}

// The free list is complete: every free position lies inside one of its rectangles, and no rectangle lies inside
// another one.
func TestFreeListIsMaximal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const side = 12
		var m maxRects
		m.reset(Size{side, side}, Method(rapid.IntRange(0, int(Skyline)-1).Draw(t, "method")))
		var taken [side][side]bool
		for range rapid.IntRange(0, 12).Draw(t, "rectangles") {
			r, _, ok := m.find(rapid.Int32Range(1, 5).Draw(t, "w"), rapid.Int32Range(1, 5).Draw(t, "h"))
			if !ok {
				continue
			}
			m.take(r)
			for y := r.y0; y < r.y1; y++ {
				for x := r.x0; x < r.x1; x++ {
					if taken[y][x] {
						t.Fatalf("%v is on something", r)
					}
					taken[y][x] = true
				}
			}
		}
		if want := maximal(taken[:]); !slices.Equal(sorted(m.free), want) {
			t.Fatalf("free %v\nwant %v", sorted(m.free), want)
		}
	})
}

// maximal finds all maximal free rectangles by brute force.
func maximal[Row ~[12]bool](taken []Row) []box {
	n := int32(len(taken))
	empty := func(r box) bool {
		if r.x0 < 0 || r.y0 < 0 || r.x1 > n || r.y1 > n {
			return false
		}
		for y := r.y0; y < r.y1; y++ {
			for x := r.x0; x < r.x1; x++ {
				if taken[y][x] {
					return false
				}
			}
		}
		return true
	}
	var all []box
	for y := range n {
		for x := range n {
			for y1 := y + 1; y1 <= n; y1++ {
				for x1 := x + 1; x1 <= n; x1++ {
					if empty(box{x, y, x1, y1}) && !empty(box{x - 1, y, x1, y1}) && !empty(box{x, y - 1, x1, y1}) &&
						!empty(box{x, y, x1 + 1, y1}) && !empty(box{x, y, x1, y1 + 1}) {
						all = append(all, box{x, y, x1, y1})
					}
				}
			}
		}
	}
	return sorted(all)
}

func sorted(rs []box) []box {
	rs = slices.Clone(rs)
	slices.SortFunc(rs, func(a, b box) int {
		return slices.Compare([]int32{a.y0, a.x0, a.x1, a.y1}, []int32{b.y0, b.x0, b.x1, b.y1})
	})
	return rs
}

// The contact length is the same as a count pixel by pixel.
func TestContact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const side = 10
		var m maxRects
		m.reset(Size{side, side}, Contact)
		taken := func(x, y int32) bool { return x < 0 || y < 0 || x >= side || y >= side }
		for range rapid.IntRange(0, 8).Draw(t, "rectangles") {
			w, h := rapid.Int32Range(1, 4).Draw(t, "w"), rapid.Int32Range(1, 4).Draw(t, "h")
			r, s, ok := m.find(w, h)
			if !ok {
				continue
			}
			var want int32
			for x := r.x0; x < r.x1; x++ {
				want += count(taken(x, r.y0-1)) + count(taken(x, r.y1))
			}
			for y := r.y0; y < r.y1; y++ {
				want += count(taken(r.x0-1, y)) + count(taken(r.x1, y))
			}
			if s.first != -want {
				t.Fatalf("%v touches %d pixels, want %d", r, -s.first, want)
			}
			m.take(r)
			before := taken
			taken = func(x, y int32) bool { return before(x, y) || r.x0 <= x && x < r.x1 && r.y0 <= y && y < r.y1 }
		}
	})
}

func count(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func items(sizes ...Size) []Item {
	var all []Item
	for _, s := range sizes {
		all = append(all, Item{Size: s})
	}
	return all
}

func TestPageSizes(t *testing.T) {
	same := func(n, w, h int) []Size { return slices.Repeat([]Size{{w, h}}, n) }
	max64 := Options{Max: Size{64, 64}, PowerOfTwo: true}
	with := func(change func(*Options)) Options {
		o := max64
		change(&o)
		return o
	}
	for _, c := range []struct {
		name  string
		sizes []Size
		o     Options
		want  []Size
	}{
		{"nothing", nil, max64, nil},
		{"exact", same(4, 32, 32), max64, []Size{{64, 64}}},
		{"padding is only between", same(4, 31, 31), with(func(o *Options) { o.Padding = Size{2, 2} }), []Size{{64, 64}}},
		{"padding too wide", same(4, 31, 31), with(func(o *Options) { o.Padding = Size{2, 3} }), []Size{{64, 32}, {64, 32}}},
		{"border", same(1, 62, 62), with(func(o *Options) { o.Border = Size{1, 1} }), []Size{{64, 64}}},
		{"wide before high", same(2, 16, 16), max64, []Size{{32, 16}}},
		{"square", same(2, 16, 16), with(func(o *Options) { o.Square = true }), []Size{{32, 32}}},
		{"largest is rounded down", same(2, 64, 64), with(func(o *Options) { o.Max = Size{127, 70} }), []Size{{64, 64}, {64, 64}}},
		{"any size", same(3, 10, 10), Options{Max: Size{64, 64}, Multiple: 4}, []Size{{32, 12}}},
		{"any size at all", same(3, 10, 10), Options{Max: Size{64, 64}}, []Size{{30, 10}}},
		{"last page is small", append(same(1, 64, 64), Size{3, 3}), max64, []Size{{64, 64}, {4, 4}}},
		{"first page too", []Size{{64, 5}, {64, 60}}, max64, []Size{{64, 64}, {64, 8}}},
		{"largest may be odd", same(1, 63, 1), Options{Max: Size{63, 63}, Multiple: 4}, []Size{{63, 4}}},
		{"no room", same(1, 1, 1), Options{}, nil},
		{"not smaller", same(1, 1, 1), with(func(o *Options) { o.Min = Size{16, 8} }), []Size{{16, 8}}},
		{"blocks of a power of two", same(1, 1, 1), with(func(o *Options) { o.Multiple = 4 }), []Size{{4, 4}}},
		{"turned to fit", []Size{{10, 40}}, Options{Max: Size{40, 10}, Rotate: true}, []Size{{40, 10}}},
		{"turned to fill", []Size{{64, 16}, {64, 16}, {32, 64}}, with(func(o *Options) { o.Rotate = true }), []Size{{64, 64}}},
	} {
		l := Pack(items(c.sizes...), c.o)
		check(t, items(c.sizes...), c.o, l)
		if !slices.Equal(l.Pages, c.want) {
			t.Errorf("%s: pages %v, want %v", c.name, l.Pages, c.want)
		}
	}
}

func TestTogether(t *testing.T) {
	o := Options{Max: Size{64, 64}, PowerOfTwo: true}
	big, small := Size{64, 32}, Size{16, 16}
	l := Pack([]Item{{Size: big}, {small, 7, false}, {Size: big}, {small, 3, false}, {small, 7, false}, {small, 3, false}}, o)
	// Group 3 comes before group 7. The other items fill the space that is left.
	want := []int{0, 1, 1, 0, 1, 0}
	for i, p := range l.Places {
		if p.Page != want[i] {
			t.Errorf("item %d is on page %d, want %d", i, p.Page, want[i])
		}
	}
	l = Pack([]Item{{big, 1, false}, {big, 1, false}, {big, 1, false}, {Size: small}}, o)
	crowded := 0
	for _, p := range l.Places[:3] {
		if p.Page == Crowded {
			crowded++
		}
	}
	if crowded != 1 || l.Places[3].Page != 1 {
		t.Errorf("%d of three halves have no place on one page, want 1: %v", crowded, l.Places)
	}
}

// sprites returns sizes that are typical for a game: many small ones, few large ones.
func sprites(n int) []Item {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]Item, n)
	for i := range all {
		base := 8 << r.IntN(4)
		all[i].Size = Size{base + r.IntN(base), base + r.IntN(base)}
	}
	return all
}

// fillOf returns the share of the pages that is covered.
func fillOf(all []Item, l Layout) float64 {
	used, area := 0, 0
	for _, it := range all {
		used += it.W * it.H
	}
	for _, p := range l.Pages {
		area += p.W * p.H
	}
	return float64(used) / float64(area)
}

func TestFill(t *testing.T) {
	all := sprites(500)
	for _, c := range []struct {
		name string
		o    Options
		want float64
	}{
		{"any size", Options{Max: Size{4096, 4096}, Multiple: 4}, 0.97},
		{"several pages", Options{Max: Size{256, 256}}, 0.94},
	} {
		l := Pack(all, c.o)
		check(t, all, c.o, l)
		if got := fillOf(all, l); got < c.want {
			t.Errorf("%s: %.1f%% of %v is covered, want %.1f%%", c.name, 100*got, l.Pages, 100*c.want)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, n := range []int{100, 500, 2000, 5000} {
		all := sprites(n)
		for _, c := range []struct {
			name string
			o    Options
		}{
			{"one page", Options{Max: Size{4096, 4096}, Padding: Size{2, 2}, PowerOfTwo: true}},
			{"any size", Options{Max: Size{4096, 4096}, Padding: Size{2, 2}, Multiple: 4}},
			{"several pages", Options{Max: Size{512, 512}, Padding: Size{2, 2}, PowerOfTwo: true}},
			{"turned", Options{Max: Size{4096, 4096}, Padding: Size{2, 2}, Multiple: 4, Rotate: true}},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				for b.Loop() {
					l := Pack(all, c.o)
					b.ReportMetric(100*fillOf(all, l), "%filled")
					b.ReportMetric(float64(len(l.Pages)), "pages")
				}
			})
		}
	}
}
