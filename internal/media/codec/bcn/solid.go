package bcn

import "sync"

// solid is the best pair of endpoints for one value of one channel, with all pixels at place 1.
type solid struct {
	q   [2]uint8
	err uint16 // squared error
}

// solidTable has the best pair for each value.
type solidTable [256]solid

// solids has the tables, for 2 and 3 as the last place and for 5 and 6 bits.
//
// A place between two endpoints represents a single colour more exactly than an endpoint: 5 bits alone are off by up to 4,
// four places by at most 1, three by 2. Of equally good pairs the closer one is taken, which differs less between decoders
// with other rounding.
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

// offer enters a pair of endpoints for the values within 8 of its result; no value is further from the result of every pair.
func (t *solidTable) offer(last int32, wide int, q0, q1 int32) {
	at := between(widen(q0, wide), widen(q1, wide), 1, last)
	for v := max(0, at-8); v <= min(255, at+8); v++ {
		if err := uint16((v - at) * (v - at)); err < t[v].err {
			t[v] = solid{[2]uint8{uint8(q0), uint8(q1)}, err}
		}
	}
}

// solid returns the best endpoints for a single colour.
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
