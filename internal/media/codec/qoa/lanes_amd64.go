package qoa

import "golang.org/x/sys/cpu"

//go:generate go -C ../../../../asm run . qoa

// lanes reports whether a slice is encoded with all scales at once. The output is the same.
var lanes = cpu.X86.HasAVX2

//go:noescape
func tryAll(want *int16, step int, state *[8]int16, table *[160]int16, out *[1188]int16)

//go:noescape
func tryWide(want *int16, step int, state *[8]int16, table *[160]int16, out *[1188]int16)
