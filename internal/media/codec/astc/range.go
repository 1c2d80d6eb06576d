package astc

// valueRange is the values that an integer of a sequence can have: 0 to levels-1. levels is 2, 3 or 5 times a power of two.
type valueRange struct {
	levels int
	trits  uint8 // 1 if the upper part of a value is a trit
	quints uint8 // 1 if the upper part is a quint
	bits   uint8 // of the lower part
}

// ranges lists all ranges. The first 12 are for weights, those from minColor on for colours.
var ranges = [21]valueRange{
	{2, 0, 0, 1}, {3, 1, 0, 0}, {4, 0, 0, 2}, {5, 0, 1, 0}, {6, 1, 0, 1}, {8, 0, 0, 3}, {10, 0, 1, 1},
	{12, 1, 0, 2}, {16, 0, 0, 4}, {20, 0, 1, 2}, {24, 1, 0, 3}, {32, 0, 0, 5}, {40, 0, 1, 3}, {48, 1, 0, 4},
	{64, 0, 0, 6}, {80, 0, 1, 4}, {96, 1, 0, 5}, {128, 0, 0, 7}, {160, 0, 1, 5}, {192, 1, 0, 6}, {256, 0, 0, 8},
}

const (
	weightRanges = 12
	minColor     = 4
)

// scramble has the constants of "Endpoint Unquantization" and "Weight Unquantization": the factor C, and the layout of B.
// The letters of the layout are the bits of the lower part, a the lowest.
type scramble struct {
	factor int
	layout string
}

var colorScramble = map[int]scramble{
	6: {204, "000000000"}, 10: {113, "000000000"}, 12: {93, "b000b0bb0"}, 20: {54, "b0000bb00"}, 24: {44, "cb000cbcb"}, 40: {26, "cb0000cbc"},
	48: {22, "dcb000dcb"}, 80: {13, "dcb0000dc"}, 96: {11, "edcb000ed"}, 160: {6, "edcb0000e"}, 192: {5, "fedcb000f"},
}

var weightScramble = map[int]scramble{
	6: {50, "0000000"}, 10: {28, "0000000"}, 12: {23, "b000b0b"}, 20: {13, "b0000b0"}, 24: {11, "cb000cb"},
}

// unscramble returns the colour or weight of a value in a range with trits or quints. Colours have 9 bits in between and 8
// in the result, weights 7 and 6.
func (s scramble) unscramble(value int, bits uint8) int {
	low, high := value&(1<<bits-1), value>>bits
	b := 0
	for _, c := range s.layout {
		b <<= 1
		if c != '0' {
			b |= low >> (c - 'a') & 1
		}
	}
	all := 0
	if low&1 != 0 {
		all = 1<<len(s.layout) - 1
	}
	return all&(1<<(len(s.layout)-2)) | ((high*s.factor+b)^all)>>2
}

// replicate widens a value to width bits by repeating its bits from the top.
func replicate(value int, bits uint8, width int) int {
	v := 0
	for at := width - int(bits); at > -int(bits); at -= int(bits) {
		if at >= 0 {
			v |= value << at
		} else {
			v |= value >> -at
		}
	}
	return v
}

// colorValues has the colour components, 0..255, of the values of each range.
var colorValues = func() (t [len(ranges)][256]uint8) {
	for r := minColor; r < len(ranges); r++ {
		for v := range ranges[r].levels {
			if s, ok := colorScramble[ranges[r].levels]; ok {
				t[r][v] = uint8(s.unscramble(v, ranges[r].bits))
			} else {
				t[r][v] = uint8(replicate(v, ranges[r].bits, 8))
			}
		}
	}
	return t
}()

// weightValues has the weights, 0..64, of the values of each range.
var weightValues = func() (t [weightRanges][32]uint8) {
	for r := range t {
		for v := range ranges[r].levels {
			var w int
			switch s, ok := weightScramble[ranges[r].levels]; {
			case ok:
				w = s.unscramble(v, ranges[r].bits)
			case ranges[r].levels == 3:
				w = [...]int{0, 32, 63}[v]
			case ranges[r].levels == 5:
				w = [...]int{0, 16, 32, 47, 63}[v]
			default:
				w = replicate(v, ranges[r].bits, 6)
			}
			if w > 32 {
				w++
			}
			t[r][v] = uint8(w)
		}
	}
	return t
}()
