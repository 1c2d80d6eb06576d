package astc

import "encoding/binary"

// pack writes a trial's bits.
func (t *trial) pack() [BlockSize]byte {
	l := t.layout
	places := t.shape.width * t.shape.height
	var weights [maxWeights]uint8
	code := &weightLevels[t.choice.weights].code
	for i := range places {
		for plane := range l.planes {
			weights[i*l.planes+plane] = code[t.weights[plane][i]]
		}
	}
	w := putSequence(weights[:places*l.planes], t.choice.weights).reverse()
	w.put(0, 11, uint32(t.choice.code))
	w.put(11, 2, uint32(l.partitions-1))
	start := 17
	if l.partitions == 1 {
		w.put(13, 4, uint32(t.mode))
	} else {
		start = 29
		w.put(13, 10, uint32(l.seed))
		w.put(25, 4, uint32(t.mode))
	}
	if l.planes == 2 {
		w.put(128-t.choice.size-2, 2, uint32(l.second))
	}
	values := make([]uint8, 0, 18)
	for p := range l.partitions {
		for _, v := range t.ends[p].values[:endpointValues(t.mode)] {
			values = append(values, levelsOf()[t.colors].code[v])
		}
	}
	v := putSequence(values, t.colors)
	w.low |= v.low << start
	w.high |= v.high<<start | v.low>>(64-start)
	return w.bytes()
}

// voidExtent is a block of one colour, which extends nowhere.
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
