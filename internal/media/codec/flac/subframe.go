package flac

// Kinds of subframes, as stored.
const (
	constant = 0
	verbatim = 1
	fixed    = 8
	linear   = 32 // plus the order less 1
)

// subframe is a channel, or a channel of a stereo mode, with its encoding.
type subframe struct {
	x      []int32 // without the wasted bits
	bits   int     // of each
	wasted uint    // number of lowest bits that are 0 in all samples
	kind   int
	size   int // estimated bits

	order, precision, shift int
	weights                 [encodeOrder]int32
	u                       []uint32 // the errors of the predictor
	rice                    parameters
}

// plan finds the encoding that takes the fewest bits. It removes the wasted bits from s.x.
func (s *subframe) plan(e *Encoder, bits int) {
	x := s.x
	s.bits, s.wasted = bits, 0
	all, differ := int32(0), int32(0)
	for _, v := range x {
		all |= v
		differ |= v ^ x[0]
	}
	if differ == 0 {
		s.kind, s.size = constant, 8+bits
		return
	}
	for all&1 == 0 {
		all >>= 1
		s.wasted++
	}
	if s.wasted > 0 {
		for i := range x {
			x[i] >>= s.wasted
		}
		s.bits -= int(s.wasted)
	}
	extra := 8 + int(s.wasted)
	s.kind, s.size = verbatim, extra+s.bits*len(x)
	s.try(e, e.planLinear(x, s.bits), extra)
	s.try(e, planFixed(x), extra)
}

// predictor is a kind of prediction; kind 0 is no prediction.
type predictor struct {
	kind, order, precision, shift int
	weights                       [encodeOrder]int32
}

// try keeps a predictor if it is better than the current one.
func (s *subframe) try(e *Encoder, p predictor, extra int) {
	if p.kind == 0 {
		return
	}
	u := e.spare[:len(s.x)]
	if !predict(u, s.x, &p.weights, p.order, p.shift) {
		return
	}
	rice := &e.rice
	rice.choose(u, p.order, s.bits)
	size := extra + p.order*s.bits + rice.bits
	if p.kind >= linear {
		size += 9 + p.order*p.precision
	}
	if size < s.size {
		s.size, s.kind, s.order, s.precision, s.shift, s.weights, s.rice = size, p.kind, p.order, p.precision, p.shift, p.weights, *rice
		s.u, e.spare = u, s.u[:cap(s.u)]
	}
}

// planLinear finds the weights of a linear predictor.
func (e *Encoder) planLinear(x []int32, bits int) (p predictor) {
	most := min(encodeOrder, len(x)-1)
	if len(x) < 2*encodeOrder {
		return p
	}
	if len(e.window) != len(x) {
		e.window = tukey(len(x))
	}
	f := e.floats[:len(x)]
	for i, w := range e.window {
		f[i] = float64(float64(x[i]) * w)
	}
	weights, left, orders := solve(correlate(f), most)
	if orders == 0 {
		return p
	}
	p.precision = precision(bits)
	p.order = bestOrder(left[:orders], len(x), p.precision+bits)
	var ok bool
	if p.weights, p.shift, ok = quantize(weights[p.order-1][:p.order], p.precision); ok {
		p.kind = linear + p.order - 1
	}
	return p
}

// planFixed finds the best of the fixed predictors.
func planFixed(x []int32) (p predictor) {
	sums := fixedSums(x)
	for order, sum := range sums {
		if sum < sums[p.order] {
			p.order = order
		}
	}
	p.kind, p.weights = fixed+p.order, fixedWeights[p.order]
	return p
}

// write is the reverse of [Decoder.subframe].
func (s *subframe) write(w *bitWriter) {
	w.write(uint64(s.kind), 7)
	if s.wasted == 0 {
		w.write(0, 1)
	} else {
		w.write(1, 1)
		w.unary(uint64(s.wasted) - 1)
	}
	bits := uint(s.bits)
	switch {
	case s.kind == constant:
		w.write(uint64(s.x[0]), bits)
		return
	case s.kind == verbatim:
		for _, v := range s.x {
			w.write(uint64(v), bits)
		}
		return
	}
	for _, v := range s.x[:s.order] {
		w.write(uint64(v), bits)
	}
	if s.kind >= linear {
		w.write(uint64(s.precision-1), 4)
		w.write(uint64(s.shift), 5)
		for _, v := range s.weights[:s.order] {
			w.write(uint64(v), uint(s.precision))
		}
	}
	s.rice.write(w, s.u, s.order)
}
