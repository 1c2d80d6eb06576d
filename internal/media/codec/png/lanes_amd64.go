package png

import "golang.org/x/sys/cpu"

//go:generate go -C ../../../../asm run . png

// lanes reports whether all channels of a pixel are computed at once. The pixels are the same.
var lanes = cpu.X86.HasAVX2

//go:noescape
func paethLanes(dst, src, above *byte, n int, opaque uint32)

//go:noescape
func averageLanes(dst, src, above *byte, n int, opaque uint32)
