package packing

import "slices"

// skyline is one page being filled from the top. It stores the lower outline of the placed rectangles, as segments from
// left to right, but not the gaps behind the outline. It is fast, and works well for rectangles of similar height, such
// as glyphs.
type skyline struct {
	room Size
	line []segment
}

// segment is a part of the outline: from x to x+w, everything above y is occupied or lost.
type segment struct{ x, y, w int32 }

func (s *skyline) reset(room Size) {
	s.room = room
	s.line = append(s.line[:0], segment{0, 0, int32(room.W)})
}

// find returns the position whose lower edge is highest. Of equal positions it takes the one that loses least area.
func (s *skyline) find(w, h int32) (at box, best score, ok bool) {
	for i, from := range s.line {
		if from.x+w > int32(s.room.W) {
			break
		}
		y, lost := s.rest(i, w)
		if y+h > int32(s.room.H) {
			continue
		}
		c := score{y + h, lost, y, from.x}
		if !ok || c.less(best) {
			at, best, ok = box{from.x, y, from.x + w, y + h}, c, true
		}
	}
	return at, best, ok
}

func (s *skyline) full() bool { return false }

// rest returns the y of a rectangle of width w that begins at the i-th segment, and the area that it would make
// unusable.
func (s *skyline) rest(i int, w int32) (y, lost int32) {
	end := s.line[i].x + w
	for k := i; k < len(s.line) && s.line[k].x < end; k++ {
		y = max(y, s.line[k].y)
	}
	for k := i; k < len(s.line) && s.line[k].x < end; k++ {
		g := s.line[k]
		lost += (y - g.y) * (min(g.x+g.w, end) - g.x)
	}
	return y, lost
}

// take adds r to the outline. r begins where a segment begins.
func (s *skyline) take(r box) {
	i := 0
	for s.line[i].x != r.x0 {
		i++
	}
	k := i
	for k < len(s.line) && s.line[k].x+s.line[k].w <= r.x1 {
		k++
	}
	var made [2]segment
	n := 1
	made[0] = segment{r.x0, r.y1, r.x1 - r.x0}
	if k < len(s.line) && s.line[k].x < r.x1 {
		g := s.line[k]
		made[1], n = segment{r.x1, g.y, g.x + g.w - r.x1}, 2
		k++
	}
	s.line = slices.Replace(s.line, i, k, made[:n]...)
	s.merge()
}

// merge joins neighbouring segments with the same y.
func (s *skyline) merge() {
	kept := s.line[:1]
	for _, g := range s.line[1:] {
		if last := &kept[len(kept)-1]; last.y == g.y {
			last.w += g.w
		} else {
			kept = append(kept, g)
		}
	}
	s.line = kept
}
