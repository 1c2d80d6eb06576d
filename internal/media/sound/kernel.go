package sound

import "math"

// What the resampler promises (see [Conversion]).
const (
	attenuation = 125 // dB of the window; 5 more than promised
	passPart    = 20000.0 / 22050
	openRate    = 44100
	tableSize   = 1 << 20 // most taps for all places of a ratio
	fineRows    = 2048    // places a frame, where the ratio has too many
)

// A kernel is a sinc under a Kaiser window, sampled at places between two frames.
type kernel struct {
	half  int       // frames on each side that count
	rows  []float32 // for each place, 2*half taps; and once more for the place of the next frame
	count int64     // of places between a frame and the next
}

// taps is how many there are for a place.
func (k *kernel) taps() int { return 2 * k.half }

// row has the taps of a place.
func (k *kernel) row(place int64) []float32 {
	at := int(place) * k.taps()
	return k.rows[at : at+k.taps()]
}

// band is where a kernel begins and ends to stop, in periods a frame of the input, for that part of the lower of two rates.
func band(r Ratio, from, to int) (pass, stop float64) {
	nyquist := 0.5 * min(1, float64(r.Out)/float64(r.In))
	pass = float64(nyquist * passPart)
	if min(from, to) >= openRate {
		return pass, 2*nyquist - pass
	}
	return pass, nyquist
}

// halfKernel is how many frames a kernel needs on each side: the rule of Kaiser, up to an even number.
func halfKernel(r Ratio, from, to int) int {
	pass, stop := band(r, from, to)
	return 2 * int(math.Ceil((attenuation-7.95)/float64(14.36*(stop-pass))/4))
}

// newKernel makes the kernel of a ratio: a row for each place that frames can have, if there are not too many of these; else so
// many that a place between two rows is a mix of both, with an error under -125 dB.
func newKernel(r Ratio, from, to int) kernel {
	pass, stop := band(r, from, to)
	k := kernel{half: halfKernel(r, from, to), count: r.Out}
	if k.count > int64(tableSize/k.taps()) {
		// A kernel that is n times as long is n times as smooth.
		k.count = min(k.count, max(64, int64(math.Ceil(float64(fineRows*2*stop)))))
	}
	window := newKaiser(0.1102 * (attenuation - 8.7))
	width := pass + stop // twice the middle
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

// apply sums taps times frames for each channel, into out. Every channel is added up in the same order, however many there are.
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

func applyMono(taps, frames []float32) float32 {
	var a, b, c, d float32
	for i := 0; i+4 <= len(taps); i += 4 {
		t, x := (*[4]float32)(taps[i:]), (*[4]float32)(frames[i:])
		a += float32(t[0] * x[0])
		b += float32(t[1] * x[1])
		c += float32(t[2] * x[2])
		d += float32(t[3] * x[3])
	}
	return (a + b) + (c + d)
}

func applyStereo(taps, frames []float32) (left, right float32) {
	var a, b, c, d, e, f, g, h float32
	for i := 0; i+4 <= len(taps); i += 4 {
		t, x := (*[4]float32)(taps[i:]), (*[8]float32)(frames[2*i:])
		a += float32(t[0] * x[0])
		e += float32(t[0] * x[1])
		b += float32(t[1] * x[2])
		f += float32(t[1] * x[3])
		c += float32(t[2] * x[4])
		g += float32(t[2] * x[5])
		d += float32(t[3] * x[6])
		h += float32(t[3] * x[7])
	}
	return (a + b) + (c + d), (e + f) + (g + h)
}

func applyStride(taps, frames []float32, stride int) float32 {
	var a, b, c, d float32
	at := 0
	for i := 0; i+4 <= len(taps); i += 4 {
		t := (*[4]float32)(taps[i:])
		a += float32(t[0] * frames[at])
		b += float32(t[1] * frames[at+stride])
		c += float32(t[2] * frames[at+2*stride])
		d += float32(t[3] * frames[at+3*stride])
		at += 4 * stride
	}
	return (a + b) + (c + d)
}
