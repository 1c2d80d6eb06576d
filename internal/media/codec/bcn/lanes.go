package bcn

import "sync"

// lineTable is what lineErrors knows of lines of eight places, or of six and both ends of the range.
type lineTable struct {
	low, high, more, by [16]int16 // twice the eight places
	pick                [8][32]uint8
}

var lineTables = sync.OnceValue(func() *[2]lineTable {
	t := new([2]lineTable)
	for i := range 16 {
		eight, six, place := &t[0], &t[1], int16(i&7)
		eight.low[i], eight.high[i], eight.by[i] = 7-place, place, 65536/7+1
		six.by[i] = 65536/5 + 1
		switch place {
		case 0:
		case 7:
			six.more[i] = 5 * 255
		default:
			six.low[i], six.high[i] = 6-place, place-1
		}
	}
	for place := range t[0].pick {
		for i := range t[0].pick[place] {
			t[0].pick[place][i], t[1].pick[place][i] = uint8(place), uint8(place)
		}
	}
	return t
})

// gains gives the gains of the first n lines, all of eight places or all of six. Of what is no line the gain means nothing.
func (c *channel) gains(lines *[8]line, n int) (gains [8]int32) {
	if !c.lanes {
		for i := range lines[:n] {
			gains[i] = c.gain(lines[i])
		}
		return gains
	}
	var low, high [8]int16
	for i, l := range lines {
		low[i], high[i] = int16(l.low), int16(l.high)
	}
	table := &lineTables()[0]
	if lines[0].six {
		table = &lineTables()[1]
	}
	lineErrors(&c.values, &low, &high, &table.low[0], &gains)
	for i := range gains {
		gains[i] = c.squares - gains[i]
	}
	return gains
}

// fill takes the values in for lineErrors.
func (c *channel) fill(pixels *[64]byte, at int) {
	c.squares = 0
	for i := range c.values {
		v := pixels[(4*i+at)&63]
		c.values[i] = v
		c.squares += int32(v) * int32(v)
	}
}

// searchLanes is search with the gains of all moves at once, which it takes in the same order.
func (c *channel) searchLanes(s scored) scored {
	var lines [8]line
	for step := max(1, (s.high-s.low)>>4); step > 0; step >>= 1 {
		gains := c.around(s, step, &lines)
		for moved := true; moved; {
			moved = false
			for i := range lines {
				if l := lines[i]; gains[i] > s.gain && l.is() {
					s, moved = scored{l, gains[i]}, true
					gains = c.around(s, step, &lines)
				}
			}
		}
	}
	return s
}

// around gives the lines that a step leads to, and their gains.
func (c *channel) around(s scored, step int32, lines *[8]line) [8]int32 {
	for i, d := range moves {
		lines[i] = line{s.low + d[0]*step, s.high + d[1]*step, s.six}
	}
	return c.gains(lines, 8)
}
