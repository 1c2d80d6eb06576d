package main

import "math"

// model is a character: the mesh of each joint.
type model struct {
	name string
	mesh [joints]*mesh
}

func (m *model) at(j joint) *mesh {
	if m.mesh[j] == nil {
		m.mesh[j] = &mesh{}
	}
	return m.mesh[j]
}

// armour is the difference between the two bodies.
type armour struct{ plate, cloth, chest region }

// body builds what both characters have: the same shapes, with different squares of the page.
func body(name string, a armour) *model {
	m := &model{name: name}

	m.at(hips).lathe(at(0, 0, 0), mail, 10, 0.8, ring{0.10, 0.17}, ring{0, 0.19}, ring{-0.06, 0.19}, ring{-0.10, 0.12})
	m.at(hips).lathe(at(0, 0.07, 0), a.cloth, 10, 0.82, ring{0, 0.185}, ring{-0.12, 0.235}, ring{-0.22, 0.265})
	m.at(torso).lathe(at(0, 0, 0), a.chest, 12, 0.78,
		ring{0.46, 0.06}, ring{0.44, 0.15}, ring{0.36, 0.235}, ring{0.24, 0.245}, ring{0.08, 0.19}, ring{-0.02, 0.20})
	m.at(head).lathe(at(0, 0.03, 0), mail, 10, 0.9, ring{0.06, 0.13}, ring{-0.02, 0.16}, ring{-0.08, 0.20})

	for _, side := range []struct {
		sign                        float64
		upper, forearm, thigh, shin joint
	}{{1, armL, forearmL, thighL, shinL}, {-1, armR, forearmR, thighR, shinR}} {
		s := side.sign
		m.at(side.upper).ball(at(0.01*s, 0.02, 0).turned(0, 0, -0.35*s), a.plate, 0.135, 0.125, 1, -0.25)
		m.at(side.upper).lathe(at(0.02*s, 0, 0), mail, 8, 1, ring{0, 0.07}, ring{-0.22, 0.065})
		m.at(side.forearm).ball(at(0, 0, 0), trimGold, 0.07, 0.06, 1, -1)
		m.at(side.forearm).lathe(at(0, 0, 0), a.plate, 8, 1, ring{0.02, 0.06}, ring{-0.03, 0.085}, ring{-0.18, 0.06})
		m.at(side.forearm).ball(at(0, -0.22, 0.01), leather, 0.075, 0.08, 1, -1)
		m.at(side.thigh).lathe(at(0, 0, 0), a.cloth, 8, 1, ring{0.02, 0.08}, ring{-0.06, 0.105}, ring{-0.26, 0.075})
		m.at(side.shin).ball(at(0, 0, 0.02), a.plate, 0.085, 0.08, 1, -1)
		m.at(side.shin).lathe(at(0, 0, 0), a.plate, 8, 1, ring{0, 0.07}, ring{-0.10, 0.085}, ring{-0.20, 0.07}, ring{-0.27, 0.08})
		m.at(side.shin).slab(at(0, -0.22, 0.045), leather, 0.065, 0.085, 0.085, 0.135, 0.08)
	}
	m.at(cape).slab(at(0, 0, 0), a.cloth, 0.16, 0.014, 0.22, 0.014, 0.35)
	m.at(capeTip).slab(at(0, 0, 0), a.cloth, 0.22, 0.014, 0.27, 0.010, 0.33)
	return m
}

// knight: great helm and plume, sword and heater shield.
func knight() *model {
	m := body("knight", armour{plateSteel, clothRed, chestKnight})
	h := m.at(head)
	h.lathe(at(0, 0, 0), helmKnight, 12, 1,
		ring{0.47, 0.02}, ring{0.44, 0.15}, ring{0.40, 0.225}, ring{0.40, 0.225}, ring{0.22, 0.25}, ring{0.02, 0.225})
	// The plume: feathers of decreasing size, in an arc to the back.
	for i := range 6 {
		t := float64(i) / 5
		sin, cos := math.Sincos(-0.5 + 2.4*t)
		h.ball(at(0, 0.43+0.15*cos, -0.10-0.20*sin).turned(-0.4+2.0*t, 0, 0), plume, 0.060+0.02*t, 0.13-0.02*t, 1.15, -1)
	}
	sword(m.at(forearmR))
	// The shield hangs on the forearm and faces away from it, outwards.
	m.at(forearmL).plate(at(0.105, -0.12, 0.04).turned(0, math.Pi/2, 0).turned(0, 0, 0.55), shieldKnight, timber, 0.03, 0.04,
		-0.24, 0.30, 0, 0.33, 0.24, 0.30, 0.24, 0.02, 0.16, -0.20, 0, -0.36, -0.16, -0.20, -0.24, 0.02)
	return m
}

// sword is held in a fist at the end of the forearm and points forward from it.
func sword(m *mesh) {
	grip := at(0, -0.23, 0.02).turned(math.Pi/2+0.25, 0, 0)
	on := func(y float64) place { return at(0, y, 0).then(grip) }
	m.lathe(grip, leather, 6, 1, ring{0.10, 0.022}, ring{-0.10, 0.022})
	m.slab(on(0.135), trimGold, 0.13, 0.03, 0.13, 0.03, 0.045)
	m.ball(on(-0.12), trimGold, 0.042, 0.042, 1, -1)
	m.slab(on(0.70), blade, 0.042, 0.010, 0.055, 0.016, 0.57)
	m.slab(on(0.79), blade, 0.002, 0.002, 0.042, 0.010, 0.09)
}

// paladin: open winged helm, warhammer and round shield.
func paladin() *model {
	m := body("paladin", armour{plateIvory, clothBlue, chestPaladin})
	h := m.at(head)
	h.lathe(at(0, 0, 0), helmPaladin, 12, 1,
		ring{0.49, 0.01}, ring{0.46, 0.11}, ring{0.38, 0.20}, ring{0.26, 0.235}, ring{0.10, 0.225}, ring{0.0, 0.17})
	h.slab(at(0, 0.53, 0.02), trimGold, 0.018, 0.10, 0.03, 0.19, 0.13)
	for _, s := range []float64{1, -1} {
		wing := at(0.235*s, 0.28, -0.02).turned(0, 1.25*s, 0)
		for i, long := range []float64{0.34, 0.27, 0.19} {
			feather := at(0, 0, 0).turned(0, 0, -s*(0.35+0.42*float64(i)))
			tip := at(0, long, -0.012*float64(i)).then(feather).then(wing)
			h.slab(tip, plateIvory, 0.02, 0.008, 0.052, 0.014, long)
		}
		h.ball(wing, trimGold, 0.055, 0.055, 1, -1)
	}
	hammer(m.at(forearmR))
	var disc []float64
	for i := range 14 {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / 14)
		disc = append(disc, 0.29*sin, 0.29*cos)
	}
	m.at(forearmL).plate(at(0.105, -0.12, 0.02).turned(0, math.Pi/2, 0), shieldPaladin, timber, 0.03, 0.05, disc...)
	return m
}

func hammer(m *mesh) {
	grip := at(0, -0.23, 0.02).turned(math.Pi/2+0.55, 0, 0)
	on := func(y float64) place { return at(0, y, 0).then(grip) }
	m.lathe(grip, timber, 6, 1, ring{0.52, 0.024}, ring{-0.16, 0.024})
	m.ball(on(-0.17), trimGold, 0.04, 0.04, 1, -1)
	m.slab(on(0.66), plateIvory, 0.10, 0.17, 0.10, 0.17, 0.19)
	m.slab(on(0.68), trimGold, 0.115, 0.06, 0.115, 0.06, 0.23)
	m.lathe(on(0.78), trimGold, 6, 1, ring{0, 0.005}, ring{-0.11, 0.05})
}
