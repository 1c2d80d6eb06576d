package astc

import "encoding/binary"

// pack encodes a trial as a block.
func (t *trial) pack() [BlockSize]byte {
	l := t.layout
	places := t.shape.width * t.shape.height
	var weights [maxWeights]uint8
	code := &weightLevels()[t.choice.weights].code
	for i := range places {
		for plane := range l.planes {
			weights[i*l.planes+plane] = code[t.weights[plane][i]]
		}
	}
	w := putSequence(weights[:places*l.planes], t.choice.weights).reverse()
	w.put(0, 11, uint32(t.choice.code))
	w.put(11, 2, uint32(l.partitions-1))
	start, top := 17, 128-t.choice.size
	if l.partitions == 1 {
		w.put(13, 4, uint32(t.modes[0]))
	} else {
		start = 29
		w.put(13, 10, uint32(l.seed))
		top -= t.putModes(&w, top)
	}
	if l.planes == 2 {
		w.put(top-2, 2, uint32(l.second))
	}
	values := make([]uint8, 0, 18)
	for p := range l.partitions {
		for _, v := range t.ends[p].values[:endpointValues(t.modes[p])] {
			values = append(values, levelsOf()[t.colors].code[v])
		}
	}
	v := putSequence(values, t.colors)
	w.low |= v.low << start
	w.high |= v.high<<start | v.low>>(64-start)
	return w.bytes()
}

// putModes writes the endpoint modes of several partitions. Bits that do not fit the fixed field go below top; putModes
// returns their number.
func (t *trial) putModes(w *word, top int) int {
	n := t.layout.partitions
	if t.way.extra == 0 {
		w.put(25, 4, uint32(t.modes[0]))
		return 0
	}
	low := 3
	for _, m := range t.modes[:n] {
		low = min(low, m>>2)
	}
	all := uint32(low + 1)
	for p, m := range t.modes[:n] {
		all |= uint32(m>>2-low)<<(2+p) | uint32(m&3)<<(2+n+2*p)
	}
	w.put(23, 6, all&63)
	w.put(top-t.way.extra, t.way.extra, all>>6)
	return t.way.extra
}

// voidExtent returns a block of one colour, without an extent.
func voidExtent(c [4]byte) [BlockSize]byte {
	w := word{low: 0xFFFFFFFFFFFFFDFC}
	for i, v := range c {
		w.put(64+16*i, 16, 257*uint32(v))
	}
	return w.bytes()
}

func (w word) bytes() (b [BlockSize]byte) {
	binary.LittleEndian.PutUint64(b[:8], w.low)
	binary.LittleEndian.PutUint64(b[8:], w.high)
	return b
}
