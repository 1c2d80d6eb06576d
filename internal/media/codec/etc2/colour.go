package etc2

import "github.com/kiln-pipeline/kiln/internal/media/codec/block"

// effort sets the work of a search.
type effort struct {
	margin, reach       int32 // steps of the walk through base colours to either side of the mean
	bothFlips           bool  // try both flips, or only the one with the lower estimate
	individual          bool  // try the individual mode even if the differential mode suffices
	polish              bool  // move base colours by single steps at the end
	pairAbove           int32 // try the modes T and H if a block costs more
	pairStarts          int   // the number of distances to refine, for each mode and two base colours
	pairTurns           int   // rounds of refining them
	multipliers, starts int32 // for EAC, for each table
	turns               int   // rounds of refining EAC
	bases               int32 // of EAC, on either side of the best one, to try at the end
}

var efforts = [...]effort{
	block.Fast: {
		margin: 1, reach: 2,
		pairAbove: 1000, pairStarts: 1, pairTurns: 2,
		multipliers: 1, starts: 1, turns: 1,
	},
	block.Normal: {
		margin: 1, reach: 6, bothFlips: true, individual: true, polish: true,
		pairAbove: 300, pairStarts: 2, pairTurns: 3,
		multipliers: 2, starts: 1, turns: 3, bases: 2,
	},
	block.Best: {
		margin: 2, reach: 10, bothFlips: true, individual: true, polish: true,
		pairAbove: 0, pairStarts: 8, pairTurns: 5,
		multipliers: 3, starts: 3, turns: 4, bases: 4,
	},
}

// pixels are those of a block, in columns.
type pixels [16]rgb

// search finds the best word for a block of colour.
type search struct {
	effort
	px     pixels
	mask   uint16       // of the opaque pixels
	punch  bool         // the format has punch-through alpha, and no individual mode
	tables *[8][2]int32 // modifiers; punched if a pixel is transparent
	lanes  bool         // packed is filled, for vector code
	packed blockLanes
	bit    uint64 // of words in all modes but the individual one: opaque, or 0 if a pixel is transparent
	best   found
}

// found is a word, without its indices unless it is planar.
type found struct {
	cost  int32
	word  uint64
	paint [2][4]rgb  // by half and index
	half  *[16]uint8 // the half of each pixel; nil if planar
}

const never = 1 << 30 // above any possible cost: 16*3*255² is 3 million

// opaque is bit 33. Without punch-through alpha, it is 0 in the individual mode. With punch-through alpha, it is 0 in blocks
// with a transparent pixel.
const opaque = 1 << 33

// colour encodes the colours of 16 RGBA pixels, and if punch is set, whether their alpha is at least 128.
func (e *effort) colour(src *[64]byte, punch bool) uint64 {
	s := e.search(punch)
	s.find(src)
	return s.best.word | s.indices()
}

func (e *effort) search(punch bool) search {
	return search{effort: *e, punch: punch, mask: 0xffff, tables: &modifiers, bit: opaque, best: found{cost: never}}
}

// find finds the best word for 16 RGBA pixels.
func (s *search) find(src *[64]byte) {
	for i := range s.px {
		at := src[4*(i&3<<2|i>>2):][:4:4]
		s.px[i] = rgb{int32(at[0]), int32(at[1]), int32(at[2])}
		if s.punch && at[3] < 128 {
			s.mask &^= 1 << i
		}
	}
	switch {
	case s.mask == 0:
		s.best = found{half: &leftHalf} // black in the differential mode
		return
	case s.mask != 0xffff:
		s.tables, s.bit = &punched, 0
		s.split()
	case s.solid():
		s.planar(src)
	default:
		s.pack(src)
		s.planar(src) // the best of most blocks of photographs
		s.split()
	}
	if s.best.cost > s.pairAbove {
		s.pair()
	}
}

// take keeps a word if it is better than the best so far.
func (s *search) take(f found) {
	if f.cost < s.best.cost {
		s.best = f
	}
}

// indices returns the indices of the nearest paints, the lowest of equally near ones.
func (s *search) indices() uint64 {
	if s.best.half == nil {
		return 0
	}
	var w uint64
	for i := range s.px {
		if s.mask>>i&1 == 0 {
			w |= 2 << (15 + i)
			continue
		}
		paint := &s.best.paint[s.best.half[i]&1]
		x := &s.px[i]
		index := min(distance(x, &paint[0])<<2, distance(x, &paint[1])<<2|1, distance(x, &paint[2])<<2|2, distance(x, &paint[3])<<2|3)
		w |= uint64(index&2)<<(15+i) | uint64(index&1)<<i
	}
	return w
}
