package main

import "math"

// joint is a node of the skeleton of both characters.
type joint int

const (
	root joint = iota
	hips
	torso
	head
	armL
	forearmL
	armR
	forearmR
	thighL
	shinL
	thighR
	shinR
	cape
	capeTip
	joints
)

// skeleton has each joint's parent and its position relative to it.
var skeleton = [joints]struct {
	name   string
	parent joint
	rest   vec
}{
	root:     {"root", -1, vec{}},
	hips:     {"hips", root, vec{0, 0.58, 0}},
	torso:    {"torso", hips, vec{0, 0.05, 0}},
	head:     {"head", torso, vec{0, 0.47, 0.01}},
	armL:     {"upper_arm.L", torso, vec{0.265, 0.36, 0}},
	forearmL: {"forearm.L", armL, vec{0.02, -0.21, 0}},
	armR:     {"upper_arm.R", torso, vec{-0.265, 0.36, 0}},
	forearmR: {"forearm.R", armR, vec{-0.02, -0.21, 0}},
	thighL:   {"thigh.L", hips, vec{0.115, -0.02, 0}},
	shinL:    {"shin.L", thighL, vec{0, -0.26, 0}},
	thighR:   {"thigh.R", hips, vec{-0.115, -0.02, 0}},
	shinR:    {"shin.R", thighR, vec{0, -0.26, 0}},
	cape:     {"cape", torso, vec{0, 0.41, -0.20}},
	capeTip:  {"cape_tip", cape, vec{0, -0.34, 0}},
}

// pose is the rotation of the joints, and the position of the hips.
type pose struct {
	turn [joints]quat
	hips vec
}

// rest is the pose in which the models are built.
func rest() pose {
	p := pose{hips: skeleton[hips].rest}
	for j := range p.turn {
		p.turn[j] = quat{w: 1}
	}
	return p
}

// run is the run cycle at a phase from 0 to 1. The left leg is furthest forward at a quarter. A negative rotation about
// X moves a limb forward.
func run(phase, stride float64) pose {
	wave := func(shift float64) float64 { return math.Sin(2 * math.Pi * (phase + shift)) }
	// A knee bends most while its leg passes forward under the body.
	knee := func(shift float64) float64 {
		return 0.25 + 1.35*math.Pow(max(0, math.Cos(2*math.Pi*(phase+shift+0.08))), 1.5)
	}
	twice := func(shift float64) float64 { return math.Sin(4*math.Pi*phase + shift) }

	p := rest()
	p.hips.y += 0.035 * stride * -math.Cos(4*math.Pi*phase)
	p.turn[hips] = around(0.08, -0.16*stride*wave(0), 0)
	p.turn[torso] = around(0.16, 0.34*stride*wave(0), 0)
	p.turn[head] = around(-0.16+0.03*twice(0), -0.18*stride*wave(0), 0)
	p.turn[thighL] = around(-0.28-0.92*stride*wave(0), 0, 0)
	p.turn[thighR] = around(-0.28-0.92*stride*wave(0.5), 0, 0)
	p.turn[shinL] = around(knee(0), 0, 0)
	p.turn[shinR] = around(knee(0.5), 0, 0)
	p.turn[armL] = around(0.1-0.55*stride*wave(0.5), 0, 0.22)
	p.turn[armR] = around(0.1-0.75*stride*wave(0), 0, -0.22)
	p.turn[forearmL] = around(-1.1+0.15*wave(0.5), 0, 0)
	p.turn[forearmR] = around(-1.2+0.2*wave(0), 0, 0)
	p.turn[cape] = around(0.62+0.10*twice(0), 0, 0.06*wave(0.1))
	p.turn[capeTip] = around(0.22+0.26*twice(-1.2), 0, 0.08*wave(0))
	return p
}

// places returns every joint's place in the model for a pose.
func (p pose) places() [joints]place {
	var out [joints]place
	for j, bone := range skeleton {
		local := place{bone.rest, p.turn[j]}
		if joint(j) == hips {
			local.at = p.hips
		}
		if bone.parent >= 0 {
			local = local.then(out[bone.parent])
		}
		out[j] = local
	}
	return out
}
