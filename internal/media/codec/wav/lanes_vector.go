//go:build amd64 || arm64

package wav

//go:generate go -C ../../../../asm run . wav

//go:noescape
func fromInt16(dst *float32, src *byte, n int)
