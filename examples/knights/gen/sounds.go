package main

import (
	"encoding/binary"
	"math"
)

// Sounds have 16 bits, one channel, 22,050 frames per second.
const soundRate int = 22050

// sounds returns the sounds by their paths in the example: four steps, a horn, and a theme whose loop is stored in the
// file.
func sounds() map[string][]byte {
	files := map[string][]byte{}
	for i, name := range []string{"1", "2", "3", "4"} {
		files["assets/sounds/step_0"+name+".wav"] = waveFile(step(i), 0, 0)
	}
	files["assets/sounds/horn.wav"] = waveFile(horn(), 0, 0)
	intro, whole := theme()
	files["assets/sounds/theme.wav"] = waveFile(whole, intro, len(whole))
	return files
}

// grain is noise from -1 to 1, always the same (a linear congruential generator of Numerical Recipes).
type grain uint32

func (g *grain) next() float64 {
	*g = *g*1664525 + 1013904223
	return float64(int32(*g)) / (1 << 31)
}

// step is gravel and a thump under a boot.
func step(variant int) []float64 {
	out := make([]float64, soundRate*18/100)
	noise := grain(41 + variant)
	low := 0.0
	for i := range out {
		t := float64(i) / float64(soundRate)
		low += (noise.next() - low) * (0.28 + 0.04*float64(variant))
		crunch := low * math.Exp(-t*28) * (1 + 0.8*noise.next())
		thump := math.Sin(2*math.Pi*(92-120*t)*t+float64(variant)) * math.Exp(-t*40)
		out[i] = (0.4*crunch + 0.5*thump) * min(1, t*400)
	}
	return out
}

// tone is a note of a few harmonics.
func tone(hz, t float64, harmonics ...float64) (v float64) {
	for k, loud := range harmonics {
		v += loud * math.Sin(2*math.Pi*hz*float64(k+1)*t)
	}
	return v
}

// horn calls twice, a fourth apart.
func horn() []float64 {
	out := make([]float64, soundRate*14/10)
	for i := range out {
		t := float64(i) / float64(soundRate)
		hz, at := 220.0, t
		if t > 0.45 {
			hz, at = 293.66, t-0.45
		}
		swell := min(1, at*14) * math.Exp(-at*1.5) * min(1, (1.4-t)*12)
		out[i] = 0.3 * swell * tone(hz, at, 1, 0.6, 0.45, 0.3, 0.2, 0.1)
	}
	return out
}

// theme is one bar of introduction, and four that repeat. Each note ends before its loop does. The echo wraps around:
// what sounds at the end of the loop also sounds at its begin.
func theme() (loop int, out []float64) {
	beat := soundRate / 2
	bars := [][4]float64{{146.83, 220, 261.63, 293.66}, {130.81, 196, 261.63, 329.63}, {116.54, 174.61, 233.08, 293.66}, {110, 164.81, 220, 277.18}}
	render := func(notes [][4]float64, round bool) []float64 {
		out := make([]float64, len(notes)*4*beat)
		put := func(at, length int, hz, loud, decay float64) {
			for i := range length {
				t := float64(i) / float64(soundRate)
				v := loud * tone(hz, t, 1, 0.3, 0.12) * min(1, t*200) * math.Exp(-t*decay)
				if k := at + i; k < len(out) {
					out[k] += v
				} else if round {
					out[k-len(out)] += v
				}
			}
		}
		for b, bar := range notes {
			at := b * 4 * beat
			put(at, 6*beat, bar[0]/2, 0.22, 1.1)
			for k, n := range []int{1, 2, 3, 2, 1, 3, 2, 1} {
				put(at+k*beat/2, 2*beat, bar[n]*2, 0.12, 3.2)
			}
		}
		return out
	}
	intro := render([][4]float64{{110, 164.81, 220, 277.18}}, false)
	return len(intro), append(intro, render(bars, true)...)
}

// waveFile returns a RIFF WAVE file. A loop from frame begin to before frame end is stored in a chunk smpl, where the
// end is the last frame of the loop.
func waveFile(samples []float64, begin, end int) []byte {
	le := binary.LittleEndian
	u32 := func(b []byte, all ...uint32) []byte {
		for _, v := range all {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	b := u32([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), 16, 1|1<<16, uint32(soundRate), uint32(soundRate*2), 2|16<<16)
	b = u32(append(b, "data"...), uint32(2*len(samples)))
	for _, v := range samples {
		b = le.AppendUint16(b, uint16(int16(math.Round(max(-1, min(1, v))*32767))))
	}
	if end > 0 {
		b = u32(append(b, "smpl"...), 60, 0, 0, uint32(1_000_000_000/soundRate), 60, 0, 0, 0, 1, 0, 0, 0, uint32(begin), uint32(end-1), 0, 0)
	}
	le.PutUint32(b[4:], uint32(len(b)-8))
	return b
}
