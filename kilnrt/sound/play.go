package sound

import "math"

// Player reads a sound. It must not be used by several goroutines at the same time.
type Player struct {
	s     *Sound
	at    int64 // next frame
	back  bool  // playing backwards, within the loop
	loop  *Loop
	left  int64 // remaining repetitions of the loop; below 0 forever
	gain  float32
	first int64 // first frame of the block in the buffer; -1 if it is empty
	n     int64 // frames in the buffer
	ints  []int16
	reals []float32 // used instead of ints for float samples
}

// Play returns a player at the first frame, with looping turned off.
func (s *Sound) Play() *Player {
	p := &Player{s: s, first: -1, gain: float32(math.Pow(10, s.Gain/20))}
	if s.coding == float {
		p.reals = make([]float32, s.block*int64(s.Channels))
	} else {
		p.ints = make([]int16, s.block*int64(s.Channels))
	}
	return p
}

// Loop turns the sound's first loop on or off. When it is off, the sound plays to its end.
func (p *Player) Loop(on bool) {
	if p.loop, p.back = nil, false; on && len(p.s.Loops) > 0 {
		p.loopOver(p.s.Loops[0])
	}
}

// LoopOver sets another loop than that of the file. A loop outside of the sound's frames turns looping off.
func (p *Player) LoopOver(l Loop) {
	if p.loop, p.back = nil, false; l.Begin >= 0 && l.Begin < l.End && l.End <= p.s.Frames && l.Kind <= Backward {
		p.loopOver(l)
	}
}

func (p *Player) loopOver(l Loop) {
	p.loop, p.left = &l, -1
	if l.Count > 0 {
		p.left = l.Count - 1 // the first pass comes before the first jump
	}
}

// SeekFrame moves to a frame. The sound plays forward from there.
func (p *Player) SeekFrame(frame int64) {
	p.at, p.back = min(max(frame, 0), p.s.Frames), false
}

// Frame returns the frame that is read next.
func (p *Player) Frame() int64 { return p.at }

// turn decides where to continue at an end of the loop.
func (p *Player) turn() {
	l := p.loop
	if l == nil {
		return
	}
	switch {
	case !p.back && p.at == l.End:
		if p.left == 0 {
			p.loop = nil
			return
		}
		p.left = max(p.left-1, -1)
		switch l.Kind {
		case Forward:
			p.at = l.Begin
		case PingPong:
			p.back, p.at = true, max(l.End-2, l.Begin)
		case Backward:
			p.back, p.at = true, l.End-1
		}
	case p.back && p.at < l.Begin:
		if p.left == 0 { // continue from the end of the loop
			p.loop, p.back, p.at = nil, false, l.End
			return
		}
		p.left = max(p.left-1, -1)
		if l.Kind == PingPong {
			p.back, p.at = false, min(l.Begin+1, l.End-1)
		} else {
			p.at = l.End - 1
		}
	}
}

// run returns the next frames that are adjacent in the buffer: their offset and number. Backwards it is one frame.
func (p *Player) run(room int) (offset, n int64) {
	p.turn()
	if p.at >= p.s.Frames || p.at < 0 || room == 0 {
		return 0, 0
	}
	if first := p.at / p.s.block * p.s.block; first != p.first {
		p.first, p.n = first, p.s.decode(p.ints, p.reals, first/p.s.block)
	}
	offset = p.at - p.first
	if p.back {
		p.at--
		return offset, 1
	}
	n = min(p.n-offset, int64(room))
	if p.loop != nil && p.at < p.loop.End {
		n = min(n, p.loop.End-p.at)
	}
	p.at += n
	return offset, n
}

// Read fills dst with interleaved frames of 16 bits and returns their number. At the end it returns fewer frames than
// fit, and then 0. The gain is not applied.
func (p *Player) Read(dst []int16) (frames int) {
	ch := int64(p.s.Channels)
	for room := len(dst) / int(ch); frames < room; {
		at, n := p.run(room - frames)
		if n == 0 {
			break
		}
		to := dst[int64(frames)*ch:]
		if p.reals == nil {
			copy(to, p.ints[at*ch:(at+n)*ch])
		} else {
			for i, v := range p.reals[at*ch : (at+n)*ch] {
				to[i] = toInt(v)
			}
		}
		frames += int(n)
	}
	return frames
}

func toInt(v float32) int16 {
	if v != v {
		return 0
	}
	return int16(min(max(math.RoundToEven(float64(v)*32768), -32768), 32767))
}

// ReadFloat is like Read with samples from -1 to 1. The gain is applied.
func (p *Player) ReadFloat(dst []float32) (frames int) {
	ch := int64(p.s.Channels)
	for room := len(dst) / int(ch); frames < room; {
		at, n := p.run(room - frames)
		if n == 0 {
			break
		}
		to := dst[int64(frames)*ch:]
		if p.reals == nil {
			for i, v := range p.ints[at*ch : (at+n)*ch] {
				to[i] = float32(v) / 32768 * p.gain
			}
		} else {
			for i, v := range p.reals[at*ch : (at+n)*ch] {
				to[i] = v * p.gain
			}
		}
		frames += int(n)
	}
	return frames
}
