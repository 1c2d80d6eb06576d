package bcn

import "sync"

// solid is the best pair of endpoints for one value of one channel, when all pixels are at place 1.
type solid struct {
	q   [2]uint8
	err uint16 // the error's square
}

// solidTable has the best pair for each value.
type solidTable [256]solid

// solids holds the tables, for 2 and 3 as the last place and for 5 and 6 bits.
//
// Between two endpoints a single colour is met more exactly than at one: 5 bits alone miss by up to 4, four places by no more than 1, three
// by 2. Of equal pairs the closer one is taken, on which decoders that round in other ways differ less.
var solids = sync.OnceValue(func() *[4][2]solidTable {
	all := new([4][2]solidTable)
	for last := int32(2); last <= 3; last++ {
		for wide := range 2 {
			t := &all[last][wide]
			for v := range t {
				t[v].err = 1<<16 - 1
			}
			top := levels[wide]
			for apart := int32(0); apart <= top; apart++ {
				for q := int32(0); q+apart <= top; q++ {
					t.offer(last, wide, q, q+apart)
					t.offer(last, wide, q+apart, q)
				}
			}
		}
	}
	return all
})

// offer enters a pair of endpoints for the values near what it makes; none is further than 8 from all that pairs make.
func (t *solidTable) offer(last int32, wide int, q0, q1 int32) {
	at := between(widen(q0, wide), widen(q1, wide), 1, last)
	for v := max(0, at-8); v <= min(255, at+8); v++ {
		if err := uint16((v - at) * (v - at)); err < t[v].err {
			t[v] = solid{[2]uint8{uint8(q0), uint8(q1)}, err}
		}
	}
}

// solid gives the best endpoints for a single colour.
func (c *colors) solid(x rgb, f Format) (best ends) {
	least := worst
	for last := int32(3); last >= 2; last-- {
		if !c.may(last, f) {
			continue
		}
		e, err := ends{last: last}, int32(0)
		for k, v := range x {
			s := &solids()[last][k&1][v]
			e.q[0][k], e.q[1][k] = int32(s.q[0]), int32(s.q[1])
			err += int32(s.err)
		}
		if err < least {
			best, least = e, err
		}
	}
	return best
}
