package sound

import (
	"math"
	"testing"
)

func TestExactFunctions(t *testing.T) {
	near := func(name string, x, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-15*max(1, math.Abs(want)) {
			t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
		}
	}
	for i := range 4001 {
		x := float64(i-2000) / 331
		near("exp", x, exp(x)/math.Exp(x), 1)
		near("ln", x, ln(math.Exp(x*20)), math.Log(math.Exp(x*20)))
		near("sinPi", x, sinPi(x), math.Sin(math.Pi*math.Mod(x, 2)))
	}
	for i := range 499 {
		x := float64(i) / 1000
		if want := math.Tan(math.Pi * x); math.Abs(tanPi(x)-want) > 1e-13*math.Abs(want)*want {
			near("tanPi", x, tanPi(x), want) // math.Tan gets a rounded pi*x, which matters where tan is steep
		}
	}
	// I0 from Abramowitz and Stegun, table 9.8.
	near("bessel0", 1, bessel0(1), 1.2660658777520084)
	near("bessel0", 10, bessel0(10)/2815.7166284662544, 1)

	if got := ln(0); !math.IsInf(got, -1) {
		t.Error("ln(0) =", got)
	}
	if got := exp(-2000); got != 0 {
		t.Error("exp(-2000) =", got)
	}
	near("Decibels", 0.1, Decibels(0.1), -20)
	near("Decibels", -2, Decibels(-2), 20*math.Log10(2))
	near("Amplitude", -20, Amplitude(-20), 0.1)
	if got := Amplitude(math.Inf(-1)); got != 0 {
		t.Error("Amplitude(-Inf) =", got)
	}
	near("lufs", -23, lufs(meanSquare(-23)), -23)
}
