package sound

import "math"

// The functions in this file give the same bits on every machine. They use only addition, multiplication and division,
// which IEEE 754 defines exactly, and every product is rounded before it is added. Their error is a few units in the
// last place.

// Decibels returns 20 log10 of an amplitude, or -Inf for 0.
func Decibels(amplitude float64) float64 { return float64(ln(math.Abs(amplitude)) * (20 / math.Ln10)) }

// Amplitude is the inverse of [Decibels].
func Amplitude(decibels float64) float64 { return exp(float64(decibels * (math.Ln10 / 20))) }

// lufs returns the loudness of a K-weighted mean square.
func lufs(power float64) float64 { return float64(ln(power)*(10/math.Ln10)) - 0.691 }

// meanSquare is the inverse of lufs.
func meanSquare(lufs float64) float64 { return exp(float64((lufs + 0.691) * (math.Ln10 / 10))) }

// sinPi is sin(pi x).
func sinPi(x float64) float64 {
	x -= float64(2 * math.Round(x/2)) // -1 to 1, exactly
	switch {
	case x > 0.5:
		x = 1 - x
	case x < -0.5:
		x = -1 - x
	}
	r := float64(x * math.Pi)
	r2 := float64(r * r)
	sum, term := r, r
	for k := 2.0; k < 30; k += 2 {
		term = -float64(term*r2) / float64(k*(k+1))
		sum += term
	}
	return sum
}

// tanPi is tan(pi x) for 0 <= x < 0.5.
func tanPi(x float64) float64 { return sinPi(x) / sinPi(0.5-x) }

// exp is e^x.
func exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 709:
		return math.Inf(1)
	case x < -745:
		return 0
	}
	// ln 2 in two parts. The product of high and k is exact.
	const high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	k := math.Round(x / math.Ln2)
	r := (x - float64(k*high)) - float64(k*low)
	sum, term := 1.0, 1.0
	for i := 1.0; i < 20; i++ {
		term = float64(term*r) / i
		sum += term
	}
	return math.Ldexp(sum, int(k))
}

// ln is the natural logarithm of a number that is not negative.
func ln(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x != x || math.IsInf(x, 1):
		return x
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	// ln m = 2 artanh z
	z := (m - 1) / (m + 1)
	z2 := float64(z * z)
	sum, power := z, z
	for k := 3.0; k < 30; k += 2 {
		power = float64(power * z2)
		sum += power / k
	}
	const high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	return float64(float64(e)*high) + (float64(2*sum) + float64(float64(e)*low))
}

// bessel0 is the modified Bessel function of the first kind, of order 0.
func bessel0(x float64) float64 {
	q := float64(x*x) / 4
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-18; k++ {
		term = float64(term*q) / float64(k*k)
		sum += term
	}
	return sum
}

// kaiser is a Kaiser window: 1 at 0, almost 0 at -1 and 1, 0 beyond.
type kaiser struct{ beta, middle float64 }

// newKaiser returns the window for a beta. A larger beta gives more attenuation and a wider transition.
func newKaiser(beta float64) kaiser { return kaiser{beta, bessel0(beta)} }

func (k kaiser) at(t float64) float64 {
	d := 1 - float64(t*t)
	if d < 0 {
		return 0
	}
	return bessel0(float64(k.beta*math.Sqrt(d))) / k.middle
}

// sinc is sin(pi x) / (pi x).
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return sinPi(x) / float64(math.Pi*x)
}
