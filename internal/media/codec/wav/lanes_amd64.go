package wav

import "golang.org/x/sys/cpu"

//go:generate go -C ../../../../asm run . wav

// lanes reports whether samples of 16 bits are converted sixteen at a time. The results are the same.
var lanes = cpu.X86.HasAVX2

//go:noescape
func fromInt16(dst *float32, src *byte, n int)
