//go:build amd64 || arm64

package pixel

//go:generate go -C ../../../asm run . pixel

//go:noescape
func halve(dst, above, below *uint32, n int)
