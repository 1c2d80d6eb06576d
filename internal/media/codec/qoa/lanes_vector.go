//go:build amd64 || arm64

package qoa

//go:generate go -C ../../../../asm run . qoa

//go:noescape
func tryAll(want *int16, step int, state *[8]int16, table *[160]int16, out *[1188]int16)

//go:noescape
func tryWide(want *int16, step int, state *[8]int16, table *[160]int16, out *[1188]int16)
