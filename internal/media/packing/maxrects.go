package packing

// Method is a strategy for choosing the position of a rectangle on a page.
type Method int

// The five heuristics of MaxRects and the skyline algorithm, from Jukka Jylänki, "A Thousand Ways to Pack the Bin: A
// Practical Approach to Two-Dimensional Rectangle Bin Packing", 2010.
const (
	ShortSide  Method = iota // BSSF: the free rectangle where the shorter leftover side is smallest
	LongSide                 // BLSF: the free rectangle where the longer leftover side is smallest
	Area                     // BAF: the smallest free rectangle
	BottomLeft               // BL: the topmost position, then the leftmost
	Contact                  // CP: the position where most of the outline touches something
	Skyline                  // the topmost position on the skyline, with the least area lost below it

	methods // number of methods
)

// box is a rectangle given by its corners: x0 <= x < x1, y0 <= y < y1. The fields have 32 bits so that a page's free
// list stays in the first-level cache.
type box struct{ x0, y0, x1, y1 int32 }

func (b box) contains(o box) bool {
	return b.x0 <= o.x0 && b.y0 <= o.y0 && o.x1 <= b.x1 && o.y1 <= b.y1
}

// maxRects is one page being filled. It keeps a list of its maximal free rectangles, which may overlap. A rectangle is
// placed in the top left corner of one of them. Then each free rectangle that it overlaps is replaced by up to four
// maximal rectangles around it, and those that lie inside another one are removed.
type maxRects struct {
	method Method
	free   []box
	near   []box // kept rectangles that touch the rectangle placed last; a field to reuse its memory
	made   []box // rectangles created by the last placement; a field to reuse its memory

	// Free rectangles narrower than minW or lower than minH are removed, because no remaining rectangle fits there.
	minW, minH int32

	touch *contacts // for Contact only
}

func (m *maxRects) reset(room Size, method Method) {
	m.method = method
	m.free = append(m.free[:0], box{0, 0, int32(room.W), int32(room.H)})
	m.minW, m.minH = 1, 1
	if method == Contact {
		if m.touch == nil {
			m.touch = &contacts{}
		}
		m.touch.reset(room)
	}
}

// least sets the least width and height of the rectangles that are still to be placed.
func (m *maxRects) least(s Size) { m.minW, m.minH = int32(s.W), int32(s.H) }

// score rates a position; lower is better. first is compared first, then second. If both are equal, the topmost
// position wins, then the leftmost.
type score struct{ first, second, y, x int32 }

func (a score) less(b score) bool {
	if a.first != b.first {
		return a.first < b.first
	}
	if a.second != b.second {
		return a.second < b.second
	}
	if a.y != b.y {
		return a.y < b.y
	}
	return a.x < b.x
}

// find returns the best position for a rectangle of w x h, not rotated.
func (m *maxRects) find(w, h int32) (at box, best score, ok bool) {
	for i := range m.free {
		f := &m.free[i]
		dx, dy := f.x1-f.x0-w, f.y1-f.y0-h
		if dx < 0 || dy < 0 {
			continue
		}
		s := score{y: f.y0, x: f.x0}
		switch m.method {
		case ShortSide:
			s.first, s.second = min(dx, dy), max(dx, dy)
		case LongSide:
			s.first, s.second = max(dx, dy), min(dx, dy)
		case Area:
			// Sides are below 2^15, so that an area fits into 32 bits.
			s.first, s.second = (dx+w)*(dy+h)-w*h, min(dx, dy)
		case BottomLeft:
			s.first, s.second = f.y0+h, f.x0
		case Contact:
			s.first = -m.touch.length(box{f.x0, f.y0, f.x0 + w, f.y0 + h})
			s.second = min(dx, dy)
		}
		if !ok || s.less(best) {
			at, best, ok = box{f.x0, f.y0, f.x0 + w, f.y0 + h}, s, true
		}
	}
	return at, best, ok
}

// take marks r as occupied.
func (m *maxRects) take(r box) {
	if m.method == Contact {
		m.touch.add(r)
	}
	kept := m.free[:0]
	m.near, m.made = m.near[:0], m.made[:0]
	for _, f := range m.free {
		if f.x1 < r.x0 || r.x1 < f.x0 || f.y1 < r.y0 || r.y1 < f.y0 {
			kept = append(kept, f)
			continue
		}
		if f.x1 == r.x0 || r.x1 == f.x0 || f.y1 == r.y0 || r.y1 == f.y0 {
			kept = append(kept, f)
			m.near = append(m.near, f)
			continue
		}
		m.split(f, r)
	}
	m.free = kept
	// Each new rectangle has a side on a side of r. A rectangle that contains it reaches that side and ends there, so
	// only rectangles that touch r need to be checked. A kept rectangle cannot lie inside a new one: it would have been
	// inside the one that was split.
	for i := range m.made {
		if !m.covered(i) {
			m.free = append(m.free, m.made[i])
		}
	}
}

func (m *maxRects) full() bool { return len(m.free) == 0 }

// split appends the maximal rectangles of f around r, at most four.
func (m *maxRects) split(f, r box) {
	tall, wide := f.y1-f.y0 >= m.minH, f.x1-f.x0 >= m.minW
	if tall && r.x0-f.x0 >= m.minW {
		m.made = append(m.made, box{f.x0, f.y0, r.x0, f.y1})
	}
	if tall && f.x1-r.x1 >= m.minW {
		m.made = append(m.made, box{r.x1, f.y0, f.x1, f.y1})
	}
	if wide && r.y0-f.y0 >= m.minH {
		m.made = append(m.made, box{f.x0, f.y0, f.x1, r.y0})
	}
	if wide && f.y1-r.y1 >= m.minH {
		m.made = append(m.made, box{f.x0, r.y1, f.x1, f.y1})
	}
}

// covered reports whether the i-th new rectangle lies inside another one. Of two equal rectangles the first is kept.
func (m *maxRects) covered(i int) bool {
	n := m.made[i]
	for _, f := range m.near {
		if f.contains(n) {
			return true
		}
	}
	for j, o := range m.made {
		if j != i && o.contains(n) && (o != n || j < i) {
			return true
		}
	}
	return false
}

// contacts computes how much of a rectangle's outline touches placed rectangles or the edges of the page. Sides are
// indexed by their coordinate, so that a lookup visits only the sides on that line.
type contacts struct {
	room                     Size
	left, right, top, bottom [][]span // sides of placed rectangles
}

type span struct{ from, to int32 }

func (c *contacts) reset(room Size) {
	c.room = room
	for _, sides := range []struct {
		list *[][]span
		n    int
	}{{&c.left, room.W}, {&c.right, room.W}, {&c.top, room.H}, {&c.bottom, room.H}} {
		if len(*sides.list) <= sides.n {
			*sides.list = make([][]span, sides.n+1)
		}
		for i := range *sides.list {
			(*sides.list)[i] = (*sides.list)[i][:0]
		}
	}
}

func (c *contacts) add(r box) {
	c.left[r.x0] = append(c.left[r.x0], span{r.y0, r.y1})
	c.right[r.x1] = append(c.right[r.x1], span{r.y0, r.y1})
	c.top[r.y0] = append(c.top[r.y0], span{r.x0, r.x1})
	c.bottom[r.y1] = append(c.bottom[r.y1], span{r.x0, r.x1})
}

// length returns how many pixels of the outline touch something.
func (c *contacts) length(r box) (n int32) {
	side := func(edge bool, others []span, from, to int32) {
		if edge {
			n += to - from
			return
		}
		for _, s := range others {
			n += max(0, min(to, s.to)-max(from, s.from))
		}
	}
	side(r.x0 == 0, c.right[r.x0], r.y0, r.y1)
	side(int(r.x1) == c.room.W, c.left[r.x1], r.y0, r.y1)
	side(r.y0 == 0, c.bottom[r.y0], r.x0, r.x1)
	side(int(r.y1) == c.room.H, c.top[r.y1], r.x0, r.x1)
	return n
}
