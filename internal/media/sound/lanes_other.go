//go:build !amd64 && !arm64

package sound

// lanes is always false here; the compiler needs the functions.
var lanes = false

func deinterleave(*float32, *float32, *float32, int) {}

func largest(*float32, int) uint32 { return 0 }

func highestBetween(*float32, int, *[24]float32) float32 { return 0 }

func toInt16(*int16, *float32, int, float32) int { return 0 }
