package main

import "math"

// vec is a point or direction in glTF's space: metres, Y up, Z forward, X to the
// character's left.
type vec struct{ x, y, z float64 }

func (a vec) add(b vec) vec       { return vec{a.x + b.x, a.y + b.y, a.z + b.z} }
func (a vec) sub(b vec) vec       { return vec{a.x - b.x, a.y - b.y, a.z - b.z} }
func (a vec) scale(s float64) vec { return vec{a.x * s, a.y * s, a.z * s} }
func (a vec) dot(b vec) float64   { return a.x*b.x + a.y*b.y + a.z*b.z }
func (a vec) cross(b vec) vec {
	return vec{a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x}
}

func (a vec) unit() vec {
	l := math.Sqrt(a.dot(a))
	if l == 0 {
		return vec{0, 1, 0}
	}
	return a.scale(1 / l)
}

// quat is a rotation, w last as in glTF.
type quat struct{ x, y, z, w float64 }

// around is a rotation in radians about each axis: X first, then Y, then Z.
func around(x, y, z float64) quat {
	one := func(axis vec, a float64) quat {
		s, c := math.Sincos(a / 2)
		return quat{axis.x * s, axis.y * s, axis.z * s, c}
	}
	return one(vec{z: 1}, z).mul(one(vec{y: 1}, y)).mul(one(vec{x: 1}, x))
}

// mul rotates by b, then by a.
func (a quat) mul(b quat) quat {
	return quat{
		a.w*b.x + a.x*b.w + a.y*b.z - a.z*b.y,
		a.w*b.y - a.x*b.z + a.y*b.w + a.z*b.x,
		a.w*b.z + a.x*b.y - a.y*b.x + a.z*b.w,
		a.w*b.w - a.x*b.x - a.y*b.y - a.z*b.z,
	}
}

func (a quat) rotate(v vec) vec {
	u := vec{a.x, a.y, a.z}
	t := u.cross(v).scale(2)
	return v.add(t.scale(a.w)).add(u.cross(t))
}

// place is the position and rotation of a thing.
type place struct {
	at   vec
	turn quat
}

func at(x, y, z float64) place { return place{vec{x, y, z}, quat{w: 1}} }

func (p place) turned(x, y, z float64) place {
	p.turn = p.turn.mul(around(x, y, z))
	return p
}

func (p place) point(v vec) vec { return p.turn.rotate(v).add(p.at) }

// then returns p within q: first p, then q.
func (p place) then(q place) place { return place{q.point(p.at), q.turn.mul(p.turn)} }
