package sound

import "math"

// Properties of the resampler (see [Conversion]).
const (
	attenuation = 125 // of the window in dB; 5 more than promised
	passPart    = 20000.0 / 22050
	openRate    = 44100
	tableSize   = 1 << 20 // most taps for all positions of a ratio
	fineRows    = 2048    // positions per frame, for ratios with too many
)

// kernel is a sinc under a Kaiser window, sampled at positions between two frames.
type kernel struct {
	half  int       // number of frames used on each side
	rows  []float32 // 2*half taps for each position, and for the position of the next frame
	count int64     // number of positions between a frame and the next
}

// taps returns the number of taps for a position.
func (k *kernel) taps() int { return 2 * k.half }

// row returns the taps for a position.
func (k *kernel) row(place int64) []float32 {
	at := int(place) * k.taps()
	return k.rows[at : at+k.taps()]
}

// band returns where the transition of a kernel begins and ends, in periods per input frame. It is the given part of
// the lower of the two rates.
func band(r Ratio, from, to int) (pass, stop float64) {
	nyquist := 0.5 * min(1, float64(r.Out)/float64(r.In))
	pass = float64(nyquist * passPart)
	if min(from, to) >= openRate {
		return pass, 2*nyquist - pass
	}
	return pass, nyquist
}

// halfKernel returns the number of frames that a kernel needs on each side: Kaiser's formula, rounded up to a multiple
// of 4.
func halfKernel(r Ratio, from, to int) int {
	pass, stop := band(r, from, to)
	return 4 * int(math.Ceil((attenuation-7.95)/float64(14.36*(stop-pass))/8))
}

// newKernel returns the kernel for a ratio. It has a row for each position that frames can have. If there are too many
// positions, it has fewer rows, and a position between two rows is interpolated with an error below -125 dB.
func newKernel(r Ratio, from, to int) kernel {
	pass, stop := band(r, from, to)
	k := kernel{half: halfKernel(r, from, to), count: r.Out}
	if k.count > int64(tableSize/k.taps()) {
		// A kernel that is n times as long is n times as smooth.
		k.count = min(k.count, max(64, int64(math.Ceil(float64(fineRows*2*stop)))))
	}
	window := newKaiser(0.1102 * (attenuation - 8.7))
	width := pass + stop // twice the middle of the transition
	k.rows = make([]float32, int(k.count+1)*k.taps())
	taps := make([]float64, k.taps())
	for place := range k.count + 1 {
		sum := 0.0
		for i := range taps {
			t := float64(i-k.half+1) - float64(place)/float64(k.count)
			taps[i] = float64(sinc(float64(t*width)) * window.at(t/float64(k.half)))
			sum += taps[i]
		}
		row := k.row(place)
		for i, c := range taps {
			row[i] = float32(c / sum)
		}
	}
	return k
}

// apply stores the sum of taps times frames for each channel in out. The order of additions does not depend on the number
// of channels.
func apply(taps, frames, out []float32) {
	switch len(out) {
	case 1:
		out[0] = applyMono(taps, frames)
	case 2:
		out[0], out[1] = applyStereo(taps, frames)
	default:
		for c := range out {
			out[c] = applyStride(taps, frames[c:], len(out))
		}
	}
}

// The loops add eight taps at a time; halfKernel returns multiples of 4, for two sides.

func applyMono(taps, frames []float32) float32 {
	var a, b float32
	for len(taps) >= 8 && len(frames) >= 8 {
		t, x := (*[8]float32)(taps), (*[8]float32)(frames)
		a += float32(t[0]*x[0]) + float32(t[1]*x[1])
		b += float32(t[2]*x[2]) + float32(t[3]*x[3])
		a += float32(t[4]*x[4]) + float32(t[5]*x[5])
		b += float32(t[6]*x[6]) + float32(t[7]*x[7])
		taps, frames = taps[8:], frames[8:]
	}
	return a + b
}

func applyStereo(taps, frames []float32) (left, right float32) {
	var a, b, c, d float32
	for len(taps) >= 8 && len(frames) >= 16 {
		t, x := (*[8]float32)(taps), (*[16]float32)(frames)
		a += float32(t[0]*x[0]) + float32(t[1]*x[2])
		c += float32(t[0]*x[1]) + float32(t[1]*x[3])
		b += float32(t[2]*x[4]) + float32(t[3]*x[6])
		d += float32(t[2]*x[5]) + float32(t[3]*x[7])
		a += float32(t[4]*x[8]) + float32(t[5]*x[10])
		c += float32(t[4]*x[9]) + float32(t[5]*x[11])
		b += float32(t[6]*x[12]) + float32(t[7]*x[14])
		d += float32(t[6]*x[13]) + float32(t[7]*x[15])
		taps, frames = taps[8:], frames[16:]
	}
	return a + b, c + d
}

func applyStride(taps, frames []float32, stride int) float32 {
	var a, b float32
	for i, at := 0, 0; i < len(taps); i, at = i+4, at+4*stride {
		a += float32(taps[i]*frames[at]) + float32(taps[i+1]*frames[at+stride])
		b += float32(taps[i+2]*frames[at+2*stride]) + float32(taps[i+3]*frames[at+3*stride])
	}
	return a + b
}
