package astc

// mode is the content of the lowest eleven bits of a block.
type mode struct {
	width, height int   // of the grid of weights
	weights       uint8 // range of a weight, an index of ranges
	planes        int   // weights at each place of the grid: 1 or 2
}

// count returns the number of weights in all planes.
func (m mode) count() int { return m.width * m.height * m.planes }

// parseMode reads the eleven bits, by the table of section "Block mode". It returns false for void extents, reserved modes,
// and modes with too many weights, or with too many or too few bits for them.
func parseMode(b uint32) (mode, bool) {
	field := func(at, n int) int { return int(b>>at) & (1<<n - 1) }
	m := mode{planes: 1 + field(10, 1)}
	precise := field(9, 1)
	var rho int
	if field(0, 2) != 0 {
		rho = field(4, 1) | field(0, 2)<<1
		x, y := field(7, 2), field(5, 2)
		switch field(2, 2) {
		case 0:
			m.width, m.height = x+4, y+2
		case 1:
			m.width, m.height = x+8, y+2
		case 2:
			m.width, m.height = y+2, x+8
		case 3:
			if x >= 2 {
				m.width, m.height = x, y+2 // the upper bit of the field, worth 2, is the constant to be added
			} else {
				m.width, m.height = y+2, x+6
			}
		}
	} else {
		rho = field(4, 1) | field(2, 2)<<1
		x := field(5, 2)
		switch field(7, 2) {
		case 0:
			m.width, m.height = 12, x+2
		case 1:
			m.width, m.height = x+2, 12
		case 2:
			m.width, m.height = x+6, field(9, 2)+6
			m.planes, precise = 1, 0
		case 3:
			switch x {
			case 0:
				m.width, m.height = 6, 10
			case 1:
				m.width, m.height = 10, 6
			default:
				return m, false
			}
		}
	}
	if rho < 2 {
		return m, false
	}
	m.weights = uint8(rho - 2 + 6*precise)
	size := sequenceSize(m.count(), m.weights)
	return m, m.count() <= maxWeights && size >= 24 && size <= 96
}
