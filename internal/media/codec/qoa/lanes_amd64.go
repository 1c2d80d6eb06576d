package qoa

import "golang.org/x/sys/cpu"

//go:generate go -C ../../../../asm run . qoa

// lanes reports whether a slice is encoded with all scales at once. The output is the same.
var lanes = cpu.X86.HasAVX2

//go:noescape
func tryAll(want *int32, n int, state *[4]uint32, table *[152]int32, out *[400]uint32)
