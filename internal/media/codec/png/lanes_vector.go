//go:build amd64 || arm64

package png

//go:generate go -C ../../../../asm run . png

//go:noescape
func paethLanes(dst, src, above *byte, n int, opaque uint32)

//go:noescape
func averageLanes(dst, src, above *byte, n int, opaque uint32)
