//go:build amd64 || arm64

package sound

//go:generate go -C ../../../asm run . sound

//go:noescape
func deinterleave(left, right, both *float32, n int)

//go:noescape
func largest(s *float32, n int) uint32

//go:noescape
func highestBetween(s *float32, n int, taps *[24]float32) float32

//go:noescape
func toInt16(dst *int16, src *float32, n int, inner float32) (done int)
