package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stepCode has what the parts of polishEnds share. A register has a word for each of 16 pixels, or for each place after four moves.
type stepCode struct {
	table Mem
	size  int

	moves              [3][2]Mem // of both endpoints: the moves, in two registers, and none
	tops, widen, down  [3]Mem    // the greatest endpoint of each channel; it is widened to 8 bits by a product and a shift
	sign, ones         Mem
	bias, first, other Mem // double words: what sign has changed, and the numbers of moves

	channels Mem // the pixels' words of each channel
	squares  Mem // for each channel and place, the squares of the distances
	moved    Mem // eight bytes for each move: the first endpoint, repeated; the second ones follow
	places   Mem // 16 bytes for each move: its places, as double words of two equal words

	ends    Mem
	weights reg.GPVirtual // of both endpoints for the places, and the divisor
	err     reg.GPVirtual // the least error
	left    reg.GPVirtual // channels to try
	others  [4]reg.VecPhysical
	pixels  reg.VecPhysical
}

const (
	noMoves    = 2 // the registers of moves that have none
	movedSize  = 2 * lane
	squareSize = 4 * lane
)

// words adds a register of words to the table.
func (s *stepCode) words(of func(i int) int) Mem {
	for i := range 16 {
		DATA(s.size+2*i, U16(uint16(of(i))))
	}
	s.size += lane
	return s.table.Offset(s.size - lane)
}

func (s *stepCode) filled(w int) Mem { return s.words(func(int) int { return w }) }

func (s *stepCode) doubles(of func(i int) int) Mem {
	return s.words(func(i int) int { return of(i/2) >> (16 * (i % 2)) & 0xffff })
}

// polishEnds writes a function that does what colors.polish does for 16 pixels with a colour.
func polishEnds() {
	s := &stepCode{table: GLOBL("stepTables", RODATA|NOPTR)}
	weights := s.constants()
	TEXT("polishEnds", NOSPLIT, "func(pixels *uint32, last int, ends *int32) int32")
	Doc("polishEnds moves endpoints as colors.polish does, and returns the error.")
	pixels, last := pointer("pixels"), Load(Param("last"), GP64())
	s.ends = pointer("ends")
	s.err, s.left = GP32(), GP32()
	s.others, s.pixels = [4]reg.VecPhysical{y(0), y(1), y(2), y(3)}, y(4)
	s.channels, s.squares = AllocLocal(3*lane), AllocLocal(3*squareSize)
	s.moved, s.places = AllocLocal(2*movedSize), AllocLocal(2*movedSize)
	s.weights = weightsOf(weights, last)
	s.load(pixels)
	for k := range 3 {
		s.find(k, 0, noMoves)
		VMOVDQU(s.channels.Offset(k*lane), s.pixels)
		s.square(k, s.places)
	}
	s.total()
	MOVL(U32(3), s.left)
	Label("stepChannels")
	for k := range 3 {
		s.try(k)
	}
	JMP(LabelRef("stepChannels"))
	Label("stepEnded")
	VZEROUPPER()
	Store(s.err, ReturnIndex(0))
	RET()
}

// constants fills the table, and returns where the weights of three places are; those of four follow.
func (s *stepCode) constants() (weights Mem) {
	for end := range 2 {
		for part := range 2 {
			s.moves[part][end] = s.words(func(i int) int { return endMoves[4*part+i/4][end] })
		}
		s.moves[noMoves][end] = s.filled(0)
	}
	for k := range 3 {
		green := k & 1
		s.tops[k], s.widen[k], s.down[k] = s.filled(31+32*green), s.filled(33+32*green), s.filled(1<<(14-2*green))
	}
	s.sign, s.ones = s.filled(1<<15), s.filled(1)
	s.bias = s.doubles(func(int) int { return 16 << 15 })
	s.first, s.other = s.doubles(func(i int) int { return i & 3 }), s.doubles(func(i int) int { return i&3 + 4 })
	for last := 2; last <= 3; last++ {
		w := s.words(func(i int) int { return last - min(i%4, last) })
		s.words(func(i int) int { return min(i%4, last) })
		s.filled((1<<16 + last - 1) / last)
		if last == 2 {
			weights = w
		}
	}
	return weights
}

// load divides the pixels into channels.
func (s *stepCode) load(pixels Mem) {
	for k := range 2 {
		VMOVDQU(pixels.Offset(k*lane), y(k))
		VPSLLD(Imm(16), y(k), y(2+k))
		VPSRLD(Imm(16), y(2+k), y(2+k))
		VPSRLD(Imm(16), y(k), y(k))
	}
	VPACKUSDW(y(3), y(2), y(2))
	VMOVDQU(y(2), s.channels)
	VPACKUSDW(y(1), y(0), y(0))
	VMOVDQU(y(0), s.channels.Offset(lane))
	VMOVDQU(pixels.Offset(2*lane), y(0))
	VPACKUSDW(pixels.Offset(3*lane), y(0), y(0))
	VMOVDQU(y(0), s.channels.Offset(2*lane))
}

// find finds the endpoints of a channel after four moves, and the places between them.
func (s *stepCode) find(k, part, moves int) {
	place, t := y(5), [2]reg.VecPhysical{y(6), y(7)}
	for end, v := range t {
		VPBROADCASTW(s.ends.Offset(12*end+4*k), v)
		VPADDW(s.moves[moves][end], v, v)
		VPXOR(place, place, place)
		VPMAXSW(place, v, v)
		VPMINSW(s.tops[k], v, v)
		VMOVDQU(v, s.moved.Offset(end*movedSize+part*lane))
		VPMULLW(s.widen[k], v, v)
		VPMULHUW(s.down[k], v, v)
		VPMULLW(Mem{Base: s.weights, Disp: end * lane}, v, v)
	}
	VPADDW(t[0], t[1], place)
	VPMULHUW(Mem{Base: s.weights, Disp: 2 * lane}, place, place)
	VPERMQ(Imm(0xd8), place, place)
	VPUNPCKLWD(place, place, t[0])
	VPUNPCKHWD(place, place, t[1])
	VMOVDQU(t[0], s.places.Offset(2*part*lane))
	VMOVDQU(t[1], s.places.Offset((2*part+1)*lane))
}

// distance finds the squares of the pixels' distances from a place.
func (s *stepCode) distance(place Mem, to reg.VecPhysical) {
	VPBROADCASTD(place, to)
	VPSUBW(to, s.pixels, to)
	VPMULLW(to, to, to)
}

// square stores the squares of a channel's distances from four places.
func (s *stepCode) square(k int, places Mem) {
	for t := range 4 {
		to := y(6 + t)
		place := places
		place.Disp += 4 * t
		s.distance(place, to)
		VMOVDQU(to, s.squares.Offset(k*squareSize+t*lane))
	}
}

// sum finds sums of two pixels each, less what bias says.
func (s *stepCode) sum(errs reg.VecPhysical) {
	VPXOR(s.sign, errs, errs)
	VPMADDWD(s.ones, errs, errs)
}

// total finds the error of the endpoints.
func (s *stepCode) total() {
	least := y(5)
	VPCMPEQD(least, least, least)
	for t := range 4 {
		VMOVDQU(s.squares.Offset(t*lane), y(6))
		VPADDUSW(s.squares.Offset(squareSize+t*lane), y(6), y(6))
		VPADDUSW(s.squares.Offset(2*squareSize+t*lane), y(6), y(6))
		VPMINUW(y(6), least, least)
	}
	s.sum(least)
	across(least, reg.X5, reg.X6)
	VMOVD(reg.X5, s.err)
	ADDL(U32(16<<15), s.err)
}

// try makes the best move of a channel if it lowers the error.
func (s *stepCode) try(k int) {
	number := string('0' + rune(k))
	better, next := "stepBetter"+number, "stepNext"+number
	s.find(k, 0, 0)
	s.find(k, 1, 1)
	VMOVDQU(s.channels.Offset(k*lane), s.pixels)
	a, b := (k+1)%3*squareSize, (k+2)%3*squareSize
	for t, v := range s.others {
		VMOVDQU(s.squares.Offset(a+t*lane), v)
		VPADDUSW(s.squares.Offset(b+t*lane), v, v)
	}
	s.errors(0, y(5))
	s.errors(4, y(6))
	key := reg.X5
	VPMINSD(reg.X6, key, key)
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(order), key, reg.X6)
		VPMINSD(reg.X6, key, key)
	}
	move, now := GP64(), GP32()
	VMOVD(key, now)
	MOVL(now, move.As32())
	ANDL(Imm(7), move.As32())
	SHRL(Imm(3), now)
	CMPL(now, s.err)
	JB(LabelRef(better))
	DECL(s.left)
	JZ(LabelRef("stepEnded"))
	JMP(LabelRef(next))
	Label(better)
	MOVL(now, s.err)
	MOVL(U32(2), s.left)
	to := GP32()
	for end := range 2 {
		MOVWLZX(Mem{Base: s.moved.Base, Disp: s.moved.Disp + end*movedSize, Index: move, Scale: 8}, to)
		MOVL(to, s.ends.Offset(12*end+4*k))
	}
	SHLQ(Imm(4), move)
	s.square(k, Mem{Base: s.places.Base, Disp: s.places.Disp, Index: move, Scale: 1})
	Label(next)
}

// errors finds the errors after four moves, each with the number of the move in its lowest three bits, in the lower half of a register.
func (s *stepCode) errors(from int, to reg.VecPhysical) {
	sums := [4]reg.VecPhysical{to, y(7), y(8), y(9)}
	for i, least := range sums {
		for t, others := range s.others {
			square := least
			if t > 0 {
				square = y(10 + t)
			}
			s.distance(s.places.Offset(16*(from+i)+4*t), square)
			VPADDUSW(others, square, square)
			if t > 0 {
				VPMINUW(square, least, least)
			}
		}
		s.sum(least)
	}
	VPHADDD(sums[1], sums[0], to)
	VPHADDD(sums[3], sums[2], sums[2])
	VPHADDD(sums[2], to, to)
	low := map[reg.VecPhysical]reg.VecPhysical{y(5): reg.X5, y(6): reg.X6}[to]
	VEXTRACTI128(Imm(1), to, reg.X7)
	VPADDD(reg.X7, low, low)
	VPADDD(s.bias, low, low)
	VPSLLD(Imm(3), low, low)
	if from == 0 {
		VPOR(s.first, low, low)
	} else {
		VPOR(s.other, low, low)
	}
}
